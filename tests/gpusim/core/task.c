/* SPDX-License-Identifier: Apache-2.0 */
/* A library's call as work of a stream: the memory that it touches is checked when it is handed over, and again when it
 * is done, when some of it may be gone. */
#include "library.h"

#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sim_device *sim_here(sim_vendor vendor) {
  sim_device *device = sim_current(vendor);
  return device || vendor != SIM_HIP ? device : sim_device_at(vendor, 0);
}

sim_status sim_handle_enter(sim_vendor vendor, const void *handle, const char *kind, sim_handle **entered,
                            sim_stream **stream) {
  sim_handle *found = sim_check(handle, kind);
  if (!found) return SIM_INVALID_HANDLE;
  sim_device *device = found->object.device, *current = sim_here(vendor);
  if (current != device) {
    if (current)
      sim_violation("wrong device", "the %s is of device %d, but device %d is current in this thread", kind,
                    sim_device_index(device), sim_device_index(current));
    else
      sim_violation("no current context", "the %s is of device %d, but no device is current in this thread", kind,
                    sim_device_index(device));
    return SIM_INVALID_HANDLE;
  }
  sim_status status = sim_after_fork();
  if (!status) status = sim_device_health(device);
  if (status) return status;
  *entered = found;
  *stream = sim_stream_of(device, found->stream);
  return *stream ? SIM_OK : SIM_INVALID_HANDLE;
}

bool sim_scalar(const void *address, bool is_double, const char *what, double *value) {
  float single;
  if (!address) return false;
  if (sim_is_device_address(address)) {
    sim_violation("not host memory", "%s at %p must be in host memory", what, address);
    return false;
  }
  if (is_double) {
    memcpy(value, address, sizeof *value);
  } else {
    memcpy(&single, address, sizeof single);
    *value = single;
  }
  return true;
}

sim_operand sim_operand_of(const char *what, const sim_tensor *tensor, const void *address, bool written) {
  return (sim_operand){.what = what,
                       .address = address,
                       .bytes = sim_tensor_bytes(tensor),
                       .alignment = sim_type_bytes(tensor->type),
                       .has_gaps = sim_tensor_count(tensor) * sim_type_bytes(tensor->type) != sim_tensor_bytes(tensor),
                       .written = written};
}

sim_task *sim_task_new(size_t size, const char *name, sim_device *device, void (*compute)(sim_task *)) {
  sim_task *task = calloc(1, size);
  if (!task) {
    fprintf(stderr, "gpusim: no memory for a call of %s\n", name);
    abort();
  }
  task->name = name;
  task->device = device;
  task->compute = compute;
  return task;
}

void sim_task_add(sim_task *task, sim_operand operand) {
  task->operands[task->count++] = operand;
}

static bool may_share(const sim_task *task, int i, int k) {
  const sim_operand *a = &task->operands[i], *b = &task->operands[k];
  return a->address == b->address && (a->with == k + 1 || b->with == i + 1);
}

/* Nothing that is written may overlap anything else: vendors leave open what comes out. */
static bool check_overlap(const sim_task *task) {
  for (int i = 0; i < task->count; i++)
    for (int k = 0; k < task->count; k++) {
      const sim_operand *a = &task->operands[i], *b = &task->operands[k];
      if (i == k || !a->written || !sim_overlap(a->address, a->bytes, b->address, b->bytes) || may_share(task, i, k))
        continue;
      sim_violation("overlapping operands", "%s is written and overlaps %s", a->what, b->what);
      return false;
    }
  return true;
}

static bool check_alignment(const sim_operand *operand) {
  if (!operand->bytes || !operand->alignment || (uintptr_t)operand->address % operand->alignment == 0) return true;
  sim_violation("misaligned", "%s at %p is not aligned to %zu bytes", operand->what, operand->address,
                operand->alignment);
  return false;
}

static bool find_twins(sim_task *task) {
  for (int i = 0; i < task->count; i++) {
    const sim_operand *operand = &task->operands[i];
    if (!operand->bytes) continue;
    task->twins[i] = sim_twin(task->device, operand->address, operand->bytes, operand->what);
    if (!task->twins[i]) return false;
  }
  return true;
}

/* A program may give far more than is asked for, and often the same to each call. */
static void fill_scratch(const sim_task *task) {
  for (int i = 0; i < task->count; i++) {
    size_t bytes = task->operands[i].bytes, scratch = task->operands[i].scratch;
    if (!scratch || !bytes) continue;
    size_t end = bytes < SIM_PAGE ? bytes : SIM_PAGE;
    memset(task->twins[i], 0xFF, scratch < bytes ? scratch : bytes);
    memset((char *)task->twins[i] + bytes - end, 0xFF, end);
  }
}

static sim_status run(void *argument) {
  sim_task *task = argument;
  if (!find_twins(task)) return SIM_ILLEGAL_ADDRESS;
  fill_scratch(task);
  task->compute(task);
  fill_scratch(task);
  return SIM_OK;
}

/* What it touches, to the byte. */
static size_t list_accesses(const sim_task *task, sim_access list[SIM_OPERANDS + 1]) {
  size_t count = 0;
  for (int i = 0; i < task->count; i++) {
    const sim_operand *operand = &task->operands[i];
    if (!operand->bytes || operand->has_gaps) continue;
    list[count++] =
        (sim_access){operand->what, operand->address, operand->bytes, operand->written, operand->scratch > 0};
  }
  if (task->handle) list[count++] = (sim_access){"the handle's own workspace", task->handle, 1, true, true};
  return count;
}

/* Operands become numbers in double precision. More than the machine has would end the process. */
static bool has_room(const sim_task *task) {
  size_t most = sim_machine_bytes(), bytes = sim_times(task->numbers, sizeof(double));
  for (int i = 0; i < task->count; i++) {
    const sim_operand *operand = &task->operands[i];
    size_t size = operand->scratch ? 0 : sim_times(operand->bytes, sizeof(double) / sizeof(uint16_t));
    bytes = size > SIZE_MAX - bytes ? SIZE_MAX : bytes + size;
  }
  if (bytes <= most) return true;
  fprintf(stderr, "gpusim: %s would need %zu bytes of the host, which has %zu\n", task->name, bytes, most);
  return false;
}

sim_status sim_task_queue(sim_task *task, sim_stream *stream) {
  bool right = check_overlap(task);
  for (int i = 0; i < task->count; i++) right &= check_alignment(&task->operands[i]);
  if (!right || !find_twins(task)) {
    free(task);
    return SIM_ILLEGAL_ADDRESS;
  }
  if (!has_room(task)) {
    free(task);
    return SIM_OUT_OF_MEMORY;
  }
  sim_access accesses[SIM_OPERANDS + 1];
  size_t count = list_accesses(task, accesses);
  return sim_queue_with(stream, &(sim_work){.name = task->name, .argument = task, .run = run}, accesses, count);
}
