/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: one for each operation there is. What the plugin inside has not, it refuses to plan. */
#include "wrap.h"

enum { HANDFUL = 16 }; /* rows that are not worth the time */

struct helio_plan {
  helio_backend_device *device;
  const helio_kernel *kernel;
  helio_plan *inner;
  uint32_t operation;
  size_t elements;
  int64_t rows;
  uint32_t written; /* the place of the first argument that it writes */
  size_t written_bytes;
};

static const char *name_of(uint32_t operation) {
  switch (operation) {
#define NAME(name, value)                                                                                              \
  case value:                                                                                                          \
    return #name;
    HELIO_OPERATION_LIST(NAME)
#undef NAME
  default:
    return "?";
  }
}

static const helio_kernel *kernel_of(const helio_kernel_table *table, const helio_call *call) {
  const helio_argument *first = call->input_count + call->output_count > 0 ? call->arguments[0] : NULL;
  for (size_t i = 0; i < table->count && first; i++) {
    const helio_kernel *kernel = table->kernels[i];
    if (kernel->operation == call->operation && kernel->types & HELIO_TYPE_BIT(first->type)) return kernel;
  }
  return NULL;
}

static size_t elements_of(const helio_argument *argument) {
  size_t elements = 1;
  for (uint32_t i = 0; argument && i < argument->rank; i++) elements *= (size_t)argument->extent[i];
  return elements;
}

static size_t bytes_of(const helio_argument *argument) {
  return argument ? elements_of(argument) * wrap_type_bytes(argument->type) : 0;
}

static int64_t rows_of(const helio_call *call) {
  for (uint32_t i = 0; i < call->input_count + call->output_count; i++) {
    const helio_argument *argument = call->arguments[i];
    if (argument && argument->rank >= 2 && argument->extent[0] > HANDFUL) return argument->extent[0];
  }
  return 0;
}

static helio_status plan(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_host *host = device->target.inner->real;
  const helio_kernel *kernel = kernel_of(device->plugin->kernels, call);
  if (!kernel) return host->fail(host, HELIO_NOT_SUPPORTED, "there is no kernel for %s", name_of(call->operation));
  helio_plan *made = host->allocate(host, sizeof *made);
  if (!made) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a plan");
  wrap_add(&device->target, WRAP_OBJECTS, 1);
  helio_status status = kernel->plan(device->inner, call, answer);
  if (status) {
    host->release(host, made);
    return status;
  }
  /* Without an output it changes its first input. */
  uint32_t written = call->output_count > 0 ? call->input_count : 0;
  *made = (helio_plan){.device = device,
                       .kernel = kernel,
                       .inner = answer->plan,
                       .operation = call->operation,
                       .elements = elements_of(call->arguments[0]),
                       .rows = rows_of(call),
                       .written = written,
                       .written_bytes = bytes_of(call->arguments[written])};
  answer->plan = made;
  return HELIO_OK;
}

static helio_status run(helio_plan *planned, const helio_run *what) {
  helio_backend_device *device = planned->device;
  const void *written = (const char *)what->places + planned->written * what->place_size;
  wrap_call call = {.target = &device->target,
                    .kind = WRAP_KERNEL,
                    .name = name_of(planned->operation),
                    .elements = planned->elements,
                    .rows = planned->rows,
                    .device = device->inner,
                    .memory = device->plugin->memory,
                    .stream = what->stream,
                    .place = *(const helio_place *)written,
                    .bytes = planned->written_bytes};
  wrap_add(&device->target, WRAP_RUNS, 1);
  helio_status status = wrap_before(&call);
  return status || call.skipped ? status : wrap_after(&call, planned->kernel->run(planned->inner, what));
}

static void plan_free(helio_plan *planned) {
  const helio_host *host = planned->device->target.inner->real;
  planned->kernel->plan_free(planned->inner);
  host->release(host, planned);
}

#define KERNEL(name, value)                                                                                            \
  &(const helio_kernel){.size = sizeof(helio_kernel),                                                                  \
                        .operation = value,                                                                            \
                        .types = UINT32_MAX,                                                                           \
                        .plan = plan,                                                                                  \
                        .run = run,                                                                                    \
                        .plan_free = plan_free},
static const helio_kernel *const kernels[] = {HELIO_OPERATION_LIST(KERNEL)};
#undef KERNEL

const helio_kernel_table wrap_kernel_table = {
    .size = sizeof(helio_kernel_table),
    .count = sizeof kernels / sizeof kernels[0],
    .kernels = kernels,
};
