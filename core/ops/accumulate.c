/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/accumulate.h"

#include "ops/plans.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

/* into = into (operation) other, where `other` has as many elements as `into`, or one. */
static helio_status apply(hi_device *device, int stream, helio_operation operation, const helio_accumulation *what,
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
