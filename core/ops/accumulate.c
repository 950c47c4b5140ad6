/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/accumulate.h"

#include <stdio.h>

#include "device/copy.h"
#include "device/topology.h"
#include "ops/placement.h"
#include "ops/plans.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

/* into = into (operation) other, where `other` has as many elements as `into`, or one. HELIO_NOT_SUPPORTED: the device
 * has no kernel for it. */
static helio_status apply_here(hi_device *device, int stream, helio_operation operation, const helio_accumulation *what,
                               helio_place other, size_t other_count) {
  helio_type type = (helio_type)what->type;
  helio_tensor a = {.type = type, .shape = {1, {(int64_t)what->count}}};
  helio_tensor b = {.type = type, .shape = {1, {(int64_t)other_count}}};
  hi_call call = {.row = hi_row_of(operation),
                  .inputs = (helio_tensor *[]){&a, &b},
                  .input_count = 2,
                  .outputs = {{type, a.shape}}};
  hi_plan *plan;
  helio_status status = hi_plan_possible(device, &call);
  if (!status) status = hi_plan_get(device, &call, &plan);
  if (status) return status;
  status = hi_plan_run(plan, device, stream, &call, (helio_place[]){what->into, other, what->into});
  hi_plan_release(plan);
  return status;
}

/* The same on another device, with copies of both in two blocks there. Everybody waits. */
static helio_status apply_on(hi_device *elsewhere, hi_device *device, helio_operation operation,
                             const helio_accumulation *what, helio_place other, size_t other_count,
                             hi_block *const blocks[2]) {
  size_t element = helio_type_bytes((helio_type)what->type);
  const helio_member *here = &device->member, *there = &elsewhere->member;
  helio_stream *stream = elsewhere->streams[HI_STREAM_COMPUTE];
  helio_accumulation copied = *what;
  copied.stream = stream;
  copied.into = blocks[0]->place;
  helio_status status = here->streams->synchronize(here->device, what->stream);
  if (!status) status = hi_host_copy(NULL, there, stream, copied.into, here, what->into, what->count * element);
  if (!status) status = hi_host_copy(NULL, there, stream, blocks[1]->place, here, other, other_count * element);
  if (!status) {
    status = apply_here(elsewhere, HI_STREAM_COMPUTE, operation, &copied, blocks[1]->place, other_count);
  }
  if (!status) status = there->streams->synchronize(there->device, stream);
  if (!status) status = hi_host_copy(NULL, here, what->stream, what->into, there, copied.into, what->count * element);
  return status ? status : here->streams->synchronize(here->device, what->stream);
}

static helio_status apply_elsewhere(hi_device *elsewhere, hi_device *device, helio_operation operation,
                                    const helio_accumulation *what, helio_place other, size_t other_count) {
  size_t bytes = what->count * helio_type_bytes((helio_type)what->type);
  helio_status status = hi_device_use(elsewhere);
  if (status) return status;
  hi_block *blocks[2] = {hi_arena_allocate(elsewhere->arena, bytes, HI_STREAM_COMPUTE, "sum for another device"), NULL};
  if (blocks[0]) blocks[1] = hi_arena_allocate(elsewhere->arena, bytes, HI_STREAM_COMPUTE, "sum for another device");
  status = blocks[1] ? apply_on(elsewhere, device, operation, what, other, other_count, blocks) : helio_error_pending();
  hi_block_release(blocks[1]);
  hi_block_release(blocks[0]);
  return status;
}

/* On the device itself or, where it has no kernel, on the first that has one. */
static helio_status apply(hi_device *device, int stream, helio_operation operation, const helio_accumulation *what,
                          helio_place other, size_t other_count) {
  char reason[600];
  helio_status status = apply_here(device, stream, operation, what, other, other_count);
  if (status != HELIO_NOT_SUPPORTED) return status;
  snprintf(reason, sizeof reason, "%s", hi_reason(status));
  int count;
  hi_device *const *devices = hi_devices(&count);
  for (int i = 0; i < count && status == HELIO_NOT_SUPPORTED; i++) {
    if (devices[i]->physical->plugin == device->physical->plugin) continue;
    status = apply_elsewhere(devices[i], device, operation, what, other, other_count);
    if (!status) return hi_placement_elsewhere(hi_row_of(operation), devices[i], device->name, reason);
  }
  if (status == HELIO_NOT_SUPPORTED) hi_reason_say("%s", reason);
  return status;
}

static helio_status scale(hi_device *device, int stream, const helio_accumulation *what) {
  char pattern[8];
  helio_type type = (helio_type)what->type;
  hi_type_encode(type, what->scale, pattern);
  hi_block *factor = hi_arena_allocate(device->arena, helio_type_bytes(type), stream, "scale");
  if (!factor) return helio_error_pending();
  helio_status status = device->member.memory->fill(device->member.device, what->stream, factor->place, pattern,
                                                    helio_type_bytes(type), 1);
  if (!status) status = apply(device, stream, HELIO_OP_MUL, what, factor->place, 1);
  hi_block_release(factor);
  return status;
}

static helio_operation operation_of(uint32_t reduction) {
  switch (reduction) {
  case HELIO_REDUCTION_MAX:
    return HELIO_OP_MAXIMUM;
  case HELIO_REDUCTION_MIN:
    return HELIO_OP_MINIMUM;
  default:
    return HELIO_OP_ADD;
  }
}

static const char *wrong_with(const helio_accumulation *what, int stream) {
  if (what->size < sizeof *what || !helio_struct_fits(what, sizeof *what)) return "the request is of another version";
  if (stream == HI_STREAM_COUNT) return "the stream is not one of the device's";
  if (!hi_type_valid((helio_type)what->type)) return "the type is unknown";
  if (what->reduction < HELIO_REDUCTION_SUM || what->reduction > HELIO_REDUCTION_MIN) return "the reduction is unknown";
  bool scales = what->reduction == HELIO_REDUCTION_SUM && hi_type_is_float((helio_type)what->type);
  return what->scale != 1 && !scales ? "only sums of floats are scaled" : NULL;
}

helio_status hi_host_accumulate(const helio_host *host, const helio_member *member, const helio_accumulation *what) {
  hi_device *device = (hi_device *)member;
  int stream = 0;
  while (stream < HI_STREAM_COUNT && device->streams[stream] != what->stream) stream++;
  const char *wrong = wrong_with(what, stream);
  (void)host;
  if (wrong) {
    hi_reason_say("accumulate on %s: %s", device->name, wrong);
    return HELIO_INVALID_ARGUMENT;
  }
  if (what->count == 0) return HELIO_OK;
  helio_status status = apply(device, stream, operation_of(what->reduction), what, what->from, what->count);
  if (!status && what->scale != 1) status = scale(device, stream, what);
  return hi_error_as_reason(status); /* this is a plugin's thread: nobody there takes the library's error */
}
