/* SPDX-License-Identifier: Apache-2.0 */
/* Running a queued kernel on hidden memory, and the mistakes that tests ask to be made there. */
#include "strict.h"

#include <string.h>

/* Places as the inner plugin knows them. Its offsets are never 0, because the guard comes first. */
static bool translate(strict_plan *plan, const strict_command *command, strict_failure *failure) {
  for (uint32_t i = 0; i < plan->region_count; i++) {
    helio_place place = command->places[i];
    plan->inner_places[i] = (helio_place){NULL, 0};
    if (place.buffer == NULL) continue;
    strict_buffer *buffer = (strict_buffer *)strict_object_find(place.buffer, STRICT_BUFFER);
    if (buffer == NULL) {
      strict_remember(failure, HELIO_DEVICE_FAILURE, "%s: the buffer of argument %u was freed before it ran",
                      command->name, i);
      return false;
    }
    plan->inner_places[i] = (helio_place){buffer->inner, STRICT_GUARD + place.offset};
  }
  return true;
}

static void run_inner(strict_stream *stream, const strict_command *command, strict_failure *failure) {
  strict_plan *plan = command->plan;
  const strict_device *device = stream->object.device;
  const helio_run run = {
      .size = sizeof run,
      .stream = device->inner_stream,
      .places = plan->inner_places,
      .place_size = sizeof(helio_place),
      .workspace = plan->inner_places[plan->argument_count],
      .status = plan->inner_places[plan->argument_count + 1],
      .scalars = command->scalars,
      .scalar_count = command->scalar_count,
  };
  helio_status status = plan->inner_kernel->run(plan->inner, &run);
  if (status == HELIO_OK) {
    status = strict_current->inner.plugin->streams->synchronize(device->inner, device->inner_stream);
  }
  if (status == HELIO_OK) return;
  char message[STRICT_MESSAGE / 2];
  strict_inner_message(message, sizeof message);
  strict_remember(failure, status, "%s: %s", strict_operation_name(plan->operation), message);
}

static unsigned char *address_of(const strict_command *command, uint32_t index) {
  strict_failure ignored = {.status = HELIO_OK};
  return strict_place_address(command->places[index], 0, &ignored, "");
}

/* One element past the end of the first output, changed in every bit so that it is sure to differ. */
static void plant_overrun(const strict_plan *plan, const strict_command *command) {
  uint32_t output = plan->argument_count - 1;
  unsigned char *memory = address_of(command, output);
  if (memory == NULL || strict_current->planted) return;
  strict_current->planted = true;
  unsigned char *end = memory + plan->regions[output].bytes;
  for (size_t i = 0; i < plan->regions[output].alignment; i++) end[i] = (unsigned char)~end[i];
}

static void plant_bad_data(const strict_plan *plan, const strict_command *command) {
  helio_status_word word;
  unsigned char *memory = address_of(command, plan->argument_count + 1);
  if (memory == NULL) return;
  memcpy(&word, memory, sizeof word);
  if (word.code != 0) return;
  word = (helio_status_word){.code = HELIO_BAD_DATA, .operation = plan->operation, .value = 7};
  memcpy(memory, &word, sizeof word);
}

static bool plant_late_error(const strict_command *command, strict_failure *failure) {
  if (strict_current->settings.plant != STRICT_PLANT_LATE_ERROR || strict_current->planted) return false;
  strict_current->planted = true;
  strict_remember(failure, HELIO_DEVICE_FAILURE, "%s: planted by HELIO_STRICT_PLANT=late-error", command->name);
  return true;
}

void strict_execute_run(strict_stream *stream, strict_command *command, strict_failure *failure) {
  strict_plan *plan = command->plan;
  strict_plant plant = strict_current->settings.plant;
  if (!translate(plan, command, failure) || plant_late_error(command, failure)) return;
  strict_neighbours_save(plan, command);
  strict_inputs_save(plan, command);
  run_inner(stream, command, failure);
  if (plan->operation == HELIO_OP_RELU && plant == STRICT_PLANT_OVERRUN) plant_overrun(plan, command);
  if (plan->operation == HELIO_OP_RELU && plant == STRICT_PLANT_BAD_DATA) plant_bad_data(plan, command);
  strict_neighbours_compare(plan, command, failure);
  strict_inputs_compare(plan, command, failure);
}
