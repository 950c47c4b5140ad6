/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: those of the inner plugin, queued here and run on hidden memory later. */
#include "strict.h"

#include <ctype.h>
#include <string.h>

static size_t type_bytes(uint32_t type) {
  switch (type) {
#define BYTES_OF_TYPE(name, value, text, bytes)                                                                        \
  case value:                                                                                                          \
    return bytes;
    HELIO_TYPE_LIST(BYTES_OF_TYPE)
#undef BYTES_OF_TYPE
  default:
    return 0;
  }
}

static strict_region argument_region(const helio_argument *argument, bool written) {
  strict_region region = {.alignment = 1, .written = written};
  if (argument == NULL) return region;
  region.alignment = type_bytes(argument->type);
  region.bytes = region.alignment;
  for (uint32_t axis = 0; axis < argument->rank; axis++) region.bytes *= (size_t)argument->extent[axis];
  return region;
}

/* A plan with room for all that executing it needs, so that a run allocates nothing. */
static strict_plan *new_plan(const helio_call *planned) {
  strict_plan *plan = strict_allocate(sizeof *plan);
  if (plan == NULL) return NULL;
  plan->operation = planned->operation;
  plan->argument_count = planned->input_count + planned->output_count;
  plan->region_count = plan->argument_count + 2;
  plan->regions = strict_allocate(plan->region_count * sizeof *plan->regions);
  plan->inner_places = strict_allocate(plan->region_count * sizeof *plan->inner_places);
  plan->neighbours = strict_allocate((size_t)plan->region_count * 2 * STRICT_NEIGHBOUR);
  plan->checksums = strict_allocate(plan->region_count * sizeof *plan->checksums);
  if (plan->regions == NULL || plan->inner_places == NULL || plan->neighbours == NULL || plan->checksums == NULL ||
      !strict_command_reserve(plan->region_count)) {
    strict_plan_discard(plan);
    return NULL;
  }
  const strict_operation *operation = strict_operation_of(planned->operation);
  for (uint32_t i = 0; i < plan->argument_count; i++) {
    int letter = toupper((unsigned char)strict_operation_letter(operation, planned->input_count, i));
    plan->regions[i] = argument_region(planned->arguments[i], i >= planned->input_count || letter == 'V');
  }
  return plan;
}

void strict_plan_discard(strict_plan *plan) {
  if (plan->inner != NULL) plan->inner_kernel->plan_free(plan->inner);
  strict_object_remove(&plan->object);
  strict_release(plan->regions);
  strict_release(plan->inner_places);
  strict_release(plan->neighbours);
  strict_release(plan->checksums);
  strict_release(plan);
}

static helio_status plan_inner(strict_call *call, const strict_device *device, const helio_call *planned,
                               strict_plan *plan) {
  helio_plan_answer answer = {.size = sizeof answer};
  plan->inner_kernel = strict_inner_kernel(planned->operation);
  if (plan->inner_kernel == NULL) {
    return strict_fail(call, HELIO_NOT_SUPPORTED, "%s: the plugin inside has no such kernel",
                       strict_operation_name(planned->operation));
  }
  helio_status status = plan->inner_kernel->plan(device->inner, planned, &answer);
  if (status != HELIO_OK) return strict_inner_fail(call, status, strict_operation_name(planned->operation));
  plan->inner = answer.plan;
  plan->regions[plan->argument_count] =
      (strict_region){.bytes = answer.workspace, .alignment = STRICT_ALIGNMENT, .written = true};
  plan->regions[plan->argument_count + 1] =
      (strict_region){.bytes = sizeof(helio_status_word), .alignment = _Alignof(helio_status_word), .written = true};
  return HELIO_OK;
}

static helio_status make_plan(strict_call *call, helio_backend_device *handle, const helio_call *planned,
                              helio_plan_answer *answer) {
  strict_device *device = NULL;
  helio_status status = strict_device_get(call, handle, &device);
  if (status == HELIO_OK) status = strict_call_check(call, planned);
  if (status != HELIO_OK) return status;
  if (answer->size < HELIO_STRUCT_SIZE(helio_plan_answer, workspace)) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "an answer of %zu bytes", answer->size);
  }
  if (strict_current->settings.refused[planned->operation]) {
    return strict_fail(call, HELIO_NOT_SUPPORTED, "%s: refused by HELIO_STRICT_REFUSE",
                       strict_operation_name(planned->operation));
  }
  strict_plan *plan = new_plan(planned);
  if (plan == NULL) return strict_fail(call, HELIO_OUT_OF_MEMORY, "no host memory");
  status = plan_inner(call, device, planned, plan);
  if (status == HELIO_OK) status = strict_object_add(call, &plan->object, STRICT_PLAN, device);
  if (status != HELIO_OK) {
    strict_plan_discard(plan);
    return status;
  }
  answer->plan = plan->object.handle;
  answer->workspace = plan->regions[plan->argument_count].bytes;
  return HELIO_OK;
}

helio_status strict_kernel_plan(helio_backend_device *device, const helio_call *planned, helio_plan_answer *answer) {
  strict_call call;
  strict_enter(&call, "plan");
  return strict_leave(&call, make_plan(&call, device, planned, answer));
}

static helio_status check_run(strict_call *call, const strict_plan *plan, const helio_run *run) {
  uint32_t scalars = strict_operation_of(plan->operation)->scalars;
  if (run->size < HELIO_STRUCT_SIZE(helio_run, scalar_count) || run->place_size < sizeof(helio_place)) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "a run of %zu bytes, places of %zu", run->size, run->place_size);
  }
  if (!helio_struct_fits(run, sizeof *run)) {
    return strict_fail(call, HELIO_NOT_SUPPORTED, "something in the run that this plugin does not know is set");
  }
  if (run->scalar_count != scalars || (scalars > 0 && run->scalars == NULL)) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "%zu scalars, not %u", run->scalar_count, scalars);
  }
  return HELIO_OK;
}

/* Nothing of `run` outlives the call, so all of it is copied. */
static void copy_run(strict_command *command, const strict_plan *plan, const helio_run *run) {
  for (uint32_t i = 0; i < plan->argument_count; i++) {
    memcpy(&command->places[i], (const char *)run->places + i * run->place_size, sizeof(helio_place));
  }
  command->places[plan->argument_count] = run->workspace;
  command->places[plan->argument_count + 1] = run->status;
  command->scalar_count = run->scalar_count;
  for (size_t i = 0; i < run->scalar_count; i++) command->scalars[i] = run->scalars[i];
}

static helio_status queue_run(strict_call *call, helio_plan *handle, const helio_run *run) {
  strict_object *plan_object = NULL, *stream_object = NULL;
  helio_status status = strict_object_get(call, handle, STRICT_PLAN, &plan_object);
  if (status != HELIO_OK) return status;
  strict_plan *plan = (strict_plan *)plan_object;
  call->name = strict_operation_name(plan->operation);
  status = check_run(call, plan, run);
  if (status != HELIO_OK) return status;
  status = strict_object_of(call, plan_object->device, run->stream, STRICT_STREAM, &stream_object);
  if (status != HELIO_OK) return status;
  strict_command *command = strict_command_new(plan->region_count);
  if (command == NULL) return strict_fail(call, HELIO_OUT_OF_MEMORY, "no host memory for a command");
  copy_run(command, plan, run);
  status = strict_run_check(call, plan, command->places);
  if (status != HELIO_OK) {
    command->place_count = 0;
    strict_command_retire(command);
    return status;
  }
  command->kind = STRICT_RUN;
  command->name = call->name;
  command->plan = plan;
  plan->queued++;
  strict_enqueue((strict_stream *)stream_object, command);
  return HELIO_OK;
}

helio_status strict_kernel_run(helio_plan *plan, const helio_run *run) {
  strict_call call;
  strict_enter(&call, "run");
  return strict_leave(&call, queue_run(&call, plan, run));
}

/* With runs still queued the plan stays until the last of them, but its handle is gone. */
void strict_kernel_plan_free(helio_plan *handle) {
  strict_call call;
  strict_object *object = NULL;
  strict_enter(&call, "plan_free");
  if (strict_object_get(&call, handle, STRICT_PLAN, &object) != HELIO_OK) {
    strict_violation(&call, "%s", call.message);
  } else if (((strict_plan *)object)->queued == 0) {
    strict_plan_discard((strict_plan *)object);
  } else {
    strict_plan *plan = (strict_plan *)object;
    strict_violation(&call, "plan %u (%s) is freed while %u runs of it are queued", object->number,
                     strict_operation_name(plan->operation), plan->queued);
    plan->freed = true;
    strict_object_remove(object);
  }
  strict_leave(&call, HELIO_OK);
}
