/* SPDX-License-Identifier: Apache-2.0 */
/* What is looked at around a kernel: its call when it is planned, its places when it is handed over, and the memory
 * next to its arguments when it has run. */
#include "strict.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static helio_status check_argument(strict_call *call, const helio_argument *argument, uint32_t index) {
  if (argument->size < HELIO_STRUCT_SIZE(helio_argument, extent)) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "argument %u has a size of %zu", index, argument->size);
  }
  if (!helio_struct_fits(argument, sizeof *argument)) {
    return strict_fail(call, HELIO_NOT_SUPPORTED, "argument %u has something that this plugin does not know", index);
  }
  if (argument->type < HELIO_FLOAT32 || argument->type > HELIO_BOOL || argument->rank > HELIO_MAX_RANK) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "argument %u has type %u and rank %u", index, argument->type,
                       argument->rank);
  }
  size_t elements = 1;
  for (uint32_t axis = 0; axis < argument->rank; axis++) {
    int64_t extent = argument->extent[axis];
    if (extent < 0 || (extent != 0 && elements > SIZE_MAX / 16 / (uint64_t)extent)) {
      return strict_fail(call, HELIO_INVALID_ARGUMENT, "argument %u has %" PRId64 " along axis %u", index, extent,
                         axis);
    }
    elements *= (size_t)extent;
  }
  return HELIO_OK;
}

/* Mistakes of the core, before the inner plugin sees the call. */
helio_status strict_call_check(strict_call *call, const helio_call *planned) {
  if (planned->size < HELIO_STRUCT_SIZE(helio_call, attributes)) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "a call of %zu bytes", planned->size);
  }
  if (!helio_struct_fits(planned, sizeof *planned)) {
    return strict_fail(call, HELIO_NOT_SUPPORTED, "something in the call that this plugin does not know is set");
  }
  const strict_operation *operation = strict_operation_of(planned->operation);
  if (operation == NULL) return strict_fail(call, HELIO_INVALID_ARGUMENT, "operation %u", planned->operation);
  if (!strict_operation_takes(operation, planned->input_count, planned->output_count)) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "%s with %u inputs and %u outputs", operation->name,
                       planned->input_count, planned->output_count);
  }
  for (uint32_t i = 0; i < planned->input_count + planned->output_count; i++) {
    const helio_argument *argument = planned->arguments[i];
    bool optional = islower((unsigned char)strict_operation_letter(operation, planned->input_count, i)) != 0;
    if (argument == NULL && optional) continue;
    if (argument == NULL) return strict_fail(call, HELIO_INVALID_ARGUMENT, "argument %u is NULL", i);
    helio_status status = check_argument(call, argument, i);
    if (status != HELIO_OK) return status;
  }
  if ((operation->types & HELIO_TYPE_BIT(planned->arguments[0]->type)) != 0) return HELIO_OK;
  return strict_fail(call, HELIO_NOT_SUPPORTED, "%s of type %u", operation->name, planned->arguments[0]->type);
}

static void region_name(const strict_plan *plan, uint32_t index, char *text, size_t size) {
  const char *role = plan->regions[index].written ? "output" : "input";
  if (index == plan->argument_count) {
    snprintf(text, size, "workspace");
  } else if (index > plan->argument_count) {
    snprintf(text, size, "status word");
  } else {
    snprintf(text, size, "argument %u (%s)", index, role);
  }
}

static helio_status check_region(strict_call *call, const strict_plan *plan, uint32_t index, helio_place place) {
  const strict_region *region = &plan->regions[index];
  char name[40];
  region_name(plan, index, name, sizeof name);
  if (region->bytes == 0) {
    if (place.buffer == NULL && place.offset == 0) return HELIO_OK;
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "%s has no bytes, its place must be { NULL, 0 }", name);
  }
  helio_status status = strict_place_check(call, plan->object.device, place, region->bytes, name);
  if (status == HELIO_OK && place.offset % region->alignment != 0) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "%s: offset %zu is no multiple of %zu", name, place.offset,
                       region->alignment);
  }
  return status;
}

static bool regions_meet(const strict_plan *plan, const helio_place *places, uint32_t a, uint32_t b) {
  if (plan->regions[a].bytes == 0 || plan->regions[b].bytes == 0 || places[a].buffer != places[b].buffer) return false;
  return places[a].offset < places[b].offset + plan->regions[b].bytes &&
         places[b].offset < places[a].offset + plan->regions[a].bytes;
}

/* The output of some operations may lie exactly on an input; any other meeting of something written with something else
 * is a mistake. */
static helio_status check_overlap(strict_call *call, const strict_plan *plan, const helio_place *places,
                                  uint32_t written, uint32_t other) {
  const strict_region *regions = plan->regions;
  if (written == other || !regions_meet(plan, places, written, other)) return HELIO_OK;
  bool same = places[written].offset == places[other].offset && regions[written].bytes == regions[other].bytes;
  if (same && !regions[other].written && strict_operation_in_place(plan->operation)) return HELIO_OK;
  char first[40], second[40];
  region_name(plan, written, first, sizeof first);
  region_name(plan, other, second, sizeof second);
  return strict_fail(call, HELIO_INVALID_ARGUMENT, "%s at offset %zu overlaps %s at offset %zu", first,
                     places[written].offset, second, places[other].offset);
}

helio_status strict_run_check(strict_call *call, const strict_plan *plan, const helio_place *places) {
  helio_status status = HELIO_OK;
  for (uint32_t i = 0; i < plan->region_count && status == HELIO_OK; i++) {
    status = check_region(call, plan, i, places[i]);
  }
  for (uint32_t i = 0; i < plan->region_count; i++) {
    for (uint32_t k = 0; plan->regions[i].written && k < plan->region_count && status == HELIO_OK; k++) {
      status = check_overlap(call, plan, places, i, k);
    }
  }
  return status;
}

static strict_buffer *buffer_of(helio_place place) {
  return place.buffer != NULL ? (strict_buffer *)strict_object_find(place.buffer, STRICT_BUFFER) : NULL;
}

/* Keeps what lies directly before and behind every argument. The guards make these bytes readable even at the ends of a
 * buffer; inside it they belong to other tensors, which an arena puts next to each other. */
void strict_neighbours_save(strict_plan *plan, const strict_command *command) {
  for (uint32_t i = 0; i < plan->region_count; i++) {
    strict_buffer *buffer = buffer_of(command->places[i]);
    if (buffer == NULL) continue;
    unsigned char *start = buffer->memory + command->places[i].offset;
    unsigned char *saved = plan->neighbours + (size_t)i * 2 * STRICT_NEIGHBOUR;
    memcpy(saved, start - STRICT_NEIGHBOUR, STRICT_NEIGHBOUR);
    memcpy(saved + STRICT_NEIGHBOUR, start + plan->regions[i].bytes, STRICT_NEIGHBOUR);
  }
}

/* Was the kernel allowed to write this byte, because it lies in something written of the same call? */
static bool may_be_written(const strict_plan *plan, const strict_command *command, const unsigned char *byte) {
  for (uint32_t i = 0; i < plan->region_count; i++) {
    strict_buffer *buffer = plan->regions[i].written ? buffer_of(command->places[i]) : NULL;
    if (buffer == NULL) continue;
    const unsigned char *start = buffer->memory + command->places[i].offset;
    if (byte >= start && byte < start + plan->regions[i].bytes) return true;
  }
  return false;
}

static void report_write(const strict_plan *plan, const strict_command *command, uint32_t index, int64_t where,
                         strict_failure *failure) {
  const strict_buffer *buffer = buffer_of(command->places[index]);
  size_t offset = command->places[index].offset;
  char name[40];
  region_name(plan, index, name, sizeof name);
  strict_remember(failure, HELIO_DEVICE_FAILURE,
                  "%s wrote outside of its arguments, next to %s: %zu bytes at offset %zu of buffer %u of %zu bytes; "
                  "first changed byte at offset %" PRId64,
                  command->name, name, plan->regions[index].bytes, offset, buffer->object.number, buffer->bytes, where);
}

static bool compare_neighbours(const strict_plan *plan, const strict_command *command, uint32_t index,
                               strict_failure *failure) {
  const strict_buffer *buffer = buffer_of(command->places[index]);
  if (buffer == NULL) return false;
  const unsigned char *start = buffer->memory + command->places[index].offset;
  const unsigned char *saved = plan->neighbours + (size_t)index * 2 * STRICT_NEIGHBOUR;
  bool same = memcmp(start - STRICT_NEIGHBOUR, saved, STRICT_NEIGHBOUR) == 0 &&
              memcmp(start + plan->regions[index].bytes, saved + STRICT_NEIGHBOUR, STRICT_NEIGHBOUR) == 0;
  /* Behind first: that is where most overruns go. */
  for (size_t k = 0; !same && k < 2 * STRICT_NEIGHBOUR; k++) {
    size_t i = (k + STRICT_NEIGHBOUR) % (2 * (size_t)STRICT_NEIGHBOUR);
    const unsigned char *byte =
        i < STRICT_NEIGHBOUR ? start - STRICT_NEIGHBOUR + i : start + plan->regions[index].bytes + i - STRICT_NEIGHBOUR;
    if (*byte == saved[i] || may_be_written(plan, command, byte)) continue;
    report_write(plan, command, index, byte - buffer->memory, failure);
    return true;
  }
  int64_t where = 0;
  if (!strict_guard_broken(buffer, &where)) return false;
  report_write(plan, command, index, where, failure);
  return true;
}

/* What was written comes first, because that is what was most likely overrun. */
void strict_neighbours_compare(strict_plan *plan, const strict_command *command, strict_failure *failure) {
  for (uint32_t i = 0; i < plan->region_count; i++) {
    if (plan->regions[i].written && compare_neighbours(plan, command, i, failure)) return;
  }
  for (uint32_t i = 0; i < plan->region_count; i++) {
    if (!plan->regions[i].written && compare_neighbours(plan, command, i, failure)) return;
  }
}

/* What a kernel only reads, unless its output lies there. */
static const unsigned char *read_only(const strict_plan *plan, const strict_command *command, uint32_t index) {
  const strict_buffer *buffer = plan->regions[index].written ? NULL : buffer_of(command->places[index]);
  if (buffer == NULL) return NULL;
  const unsigned char *start = buffer->memory + command->places[index].offset;
  return may_be_written(plan, command, start) ? NULL : start;
}

void strict_inputs_save(strict_plan *plan, const strict_command *command) {
  for (uint32_t i = 0; i < plan->region_count; i++) {
    const unsigned char *start = read_only(plan, command, i);
    if (start != NULL) plan->checksums[i] = strict_checksum(start, plan->regions[i].bytes);
  }
}

void strict_inputs_compare(const strict_plan *plan, const strict_command *command, strict_failure *failure) {
  for (uint32_t i = 0; i < plan->region_count; i++) {
    const unsigned char *start = read_only(plan, command, i);
    if (start == NULL || strict_checksum(start, plan->regions[i].bytes) == plan->checksums[i]) continue;
    strict_remember(failure, HELIO_DEVICE_FAILURE, "%s wrote to argument %u, which it may only read", command->name, i);
  }
}
