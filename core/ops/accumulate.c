/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/accumulate.h"

#include "ops/dispatch.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

static int index_of(const hi_device *device, const helio_stream *stream) {
  int index = 0;
  while (index < HI_STREAM_COUNT && device->streams[index] != stream) index++;
  return index;
}

/* into = into (operation) other, where `other` has as many elements as `into`, or one. */
static helio_status apply(hi_device *device, int stream, helio_operation operation, helio_type type, helio_place into,
                          size_t count, helio_place other, size_t other_count) {
  helio_tensor a = {.type = type, .shape = {1, {(int64_t)count}}};
  helio_tensor b = {.type = type, .shape = {1, {(int64_t)other_count}}};
  hi_call call = {.row = hi_row_of(operation),
                  .inputs = (helio_tensor *[]){&a, &b},
                  .input_count = 2,
                  .outputs = {{type, a.shape}}};
  hi_plan *plan;
  helio_status status = hi_plan_get(device, &call, &plan);
  if (status) return status;
  status = hi_run_plan(device, plan, stream, &call, (helio_place[]){into, other, into});
  hi_plan_release(plan);
  return status;
}

static helio_status scale_by(hi_device *device, int stream, helio_type type, helio_place into, size_t count,
                             double scale) {
  char pattern[8];
  hi_type_encode(type, scale, pattern);
  hi_block *factor = hi_arena_allocate(device->arena, helio_type_bytes(type), stream, "scale");
  if (!factor) return helio_error_pending();
  helio_status status = device->member.memory->fill(device->member.device, device->streams[stream], factor->place,
                                                    pattern, helio_type_bytes(type), 1);
  if (!status) status = apply(device, stream, HELIO_OP_MUL, type, into, count, factor->place, 1);
  hi_block_release(factor);
  return status;
}

helio_status hi_host_accumulate(const helio_host *host, const helio_member *member, helio_stream *stream,
                                helio_place into, helio_place from, helio_type type, size_t count, double scale) {
  hi_device *device = (hi_device *)member;
  int index = index_of(device, stream);
  if (index == HI_STREAM_COUNT) return host->fail(host, HELIO_INVALID_ARGUMENT, "the stream is not %s's", device->name);
  if (!hi_type_valid(type)) return host->fail(host, HELIO_INVALID_ARGUMENT, "%d is not a type", (int)type);
  if (count == 0) return HELIO_OK;
  helio_status status = apply(device, index, HELIO_OP_ADD, type, into, count, from, count);
  return status || scale == 1 ? status : scale_by(device, index, type, into, count, scale);
}
