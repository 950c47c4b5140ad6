/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, its logarithm, their gradients and the cross entropy: along the last axis, rows shared out among the parts.
 * Halves are computed in float32, row by row, in a workspace of which each part has its own. */
#include "cpu.h"

#include <string.h>

#define SOFTMAX_TYPES                                                                                                  \
  (HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64) | HELIO_TYPE_BIT(HELIO_FLOAT16) |                     \
   HELIO_TYPE_BIT(HELIO_BFLOAT16))

/* Rows that a part of halves has in the workspace: what is read, twice, and what is written. */
enum { ROW_A, ROW_B, ROW_Y, WIDE_ROWS };

typedef struct softmax_plan {
  helio_plan base;
  cpu_softmax which;
  uint32_t operation;
  helio_type type, compute; /* of the arguments; of the arithmetic */
  helio_type label_type;    /* of sparse labels */
  bool half, gradient;      /* has the cross entropy a second output? */
  size_t rows, columns;
} softmax_plan;

typedef struct softmax_work {
  const softmax_plan *plan;
  const unsigned char *a, *b; /* of gradients dy and y; of cross entropies x and labels */
  unsigned char *y;           /* of cross entropies their gradient; NULL: none */
  unsigned char *loss;
  unsigned char *wide;
} softmax_work;

static size_t wide_row_bytes(const softmax_plan *plan) {
  return (plan->columns * sizeof(float) + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

static softmax_plan *plan_new(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_argument *x = call_input(call, 0);
  softmax_plan *plan = (softmax_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return NULL;
  plan->operation = call->operation;
  plan->type = (helio_type)x->type;
  plan->half = x->type == HELIO_FLOAT16 || x->type == HELIO_BFLOAT16;
  plan->compute = plan->half ? HELIO_FLOAT32 : plan->type;
  plan->columns = x->rank == 0 ? 1 : (size_t)x->extent[x->rank - 1];
  plan->rows = 1;
  for (uint32_t i = 0; i + 1 < x->rank; i++) plan->rows *= (size_t)x->extent[i];
  size_t weight = plan->type == HELIO_FLOAT64 ? 12 : 6;
  plan->base.parts = cpu_parts_for_bytes(device, plan->rows * plan->columns * call_type_size(plan->type) * weight);
  plan->base.empty = plan->rows * plan->columns == 0;
  answer->plan = &plan->base;
  answer->workspace = plan->half ? plan->base.parts * WIDE_ROWS * wide_row_bytes(plan) : 0;
  return plan;
}

/* The places of row `row`: in the arguments or, widened, in the part's workspace. */
static void row_begin(const softmax_work *work, unsigned part, size_t row, const void *read[2], void **written) {
  const softmax_plan *plan = work->plan;
  const size_t at = row * plan->columns * call_type_size(plan->type), bytes = wide_row_bytes(plan);
  unsigned char *wide = plan->half ? work->wide + part * WIDE_ROWS * bytes : NULL;
  const unsigned char *given[2] = {work->a, work->b};
  for (int i = 0; i < 2; i++) {
    read[i] = given[i] == NULL ? NULL : given[i] + at;
    if (!plan->half || given[i] == NULL) continue;
    plan->base.device->vector->cast(HELIO_FLOAT32, plan->type, wide + (size_t)i * bytes, given[i] + at, plan->columns);
    read[i] = wide + (size_t)i * bytes;
  }
  *written = work->y == NULL ? NULL : plan->half ? wide + ROW_Y * bytes : work->y + at;
}

static void row_end(const softmax_work *work, size_t row, const void *written) {
  const softmax_plan *plan = work->plan;
  if (!plan->half || written == NULL) return;
  unsigned char *y = work->y + row * plan->columns * call_type_size(plan->type);
  plan->base.device->vector->cast(plan->type, HELIO_FLOAT32, y, written, plan->columns);
}

/* Rows of a part, so many that parts share few cache lines. */
static cpu_range part_rows(const softmax_plan *plan, unsigned part, unsigned parts) {
  return cpu_part_range(plan->rows, plan->columns < 64 ? 64 / (plan->columns + 1) + 1 : 1, part, parts);
}

static helio_status use_workspace(softmax_work *work, const helio_run *run) {
  const helio_host *host = work->plan->base.device->host;
  work->wide = cpu_run_workspace(run);
  if (!work->plan->half || work->wide != NULL) return HELIO_OK;
  return host->fail(host, HELIO_INVALID_ARGUMENT, "the workspace is missing");
}

/* ---- softmax, log_softmax and their gradients ---- */

static helio_status softmax_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const bool gradient = call->operation == HELIO_OP_SOFTMAX_GRAD || call->operation == HELIO_OP_LOG_SOFTMAX_GRAD;
  const bool logarithm = call->operation == HELIO_OP_LOG_SOFTMAX || call->operation == HELIO_OP_LOG_SOFTMAX_GRAD;
  const call_signature signature = {gradient ? "TT" : "T", "T", SOFTMAX_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  for (uint32_t i = 0; i < call->input_count; i++) {
    if (!call_same_shape(call_input(call, i), call_output(call)))
      return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "input %u does not have the output's shape", i);
  }
  softmax_plan *plan = plan_new(device, call, answer);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->which = gradient ? (logarithm ? CPU_LOG_SOFTMAX_GRADIENT : CPU_SOFTMAX_GRADIENT)
                         : (logarithm ? CPU_LOG_SOFTMAX : CPU_SOFTMAX);
  return HELIO_OK;
}

static void softmax_part(void *argument, unsigned part, unsigned parts) {
  const softmax_work *work = argument;
  const softmax_plan *plan = work->plan;
  cpu_range rows = part_rows(plan, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t row = rows.begin; row < rows.end; row++) {
    const void *read[2];
    void *written;
    row_begin(work, part, row, read, &written);
    plan->base.device->vector->softmax(plan->which, plan->compute, written, read[0], read[1], plan->columns);
    row_end(work, row, written);
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static helio_status softmax_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const softmax_plan *plan = (const softmax_plan *)base;
  const bool gradient = plan->which == CPU_SOFTMAX_GRADIENT || plan->which == CPU_LOG_SOFTMAX_GRADIENT;
  softmax_work work = {.plan = plan,
                       .a = cpu_run_address(run, 0),
                       .b = gradient ? cpu_run_address(run, 1) : NULL,
                       .y = cpu_run_address(run, gradient ? 2 : 1)};
  status = use_workspace(&work, run);
  if (status == HELIO_OK) cpu_plan_execute(base, softmax_part, &work);
  return status;
}

/* ---- cross entropies ---- */

/* x is a matrix; there is a label or a row of labels for each row, a loss for each row, perhaps a gradient like x. */
static bool shapes_fit(const helio_call *call, bool sparse) {
  const helio_argument *x = call_input(call, 0), *labels = call_input(call, 1), *loss = call_output(call);
  const helio_argument *gradient = call_output_at(call, 1);
  if (x->rank != 2 || loss->rank != 1 || loss->extent[0] != x->extent[0]) return false;
  if (gradient != NULL && !call_same_shape(gradient, x)) return false;
  return sparse ? call_same_shape(labels, loss) : call_same_shape(labels, x);
}

static helio_status entropy_plan(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const bool sparse = call->operation == HELIO_OP_SPARSE_CROSS_ENTROPY;
  const call_signature signature = {sparse ? "TI" : "TT", "Tt", SOFTMAX_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  if (!shapes_fit(call, sparse))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "the shapes do not fit each other");
  softmax_plan *plan = plan_new(device, call, answer);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->label_type = (helio_type)call_input(call, 1)->type;
  plan->gradient = call_output_at(call, 1) != NULL;
  plan->base.empty = plan->rows == 0;
  return HELIO_OK;
}

static int64_t label_of(const softmax_plan *plan, const unsigned char *labels, size_t row) {
  return plan->label_type == HELIO_INT32 ? ((const int32_t *)(const void *)labels)[row]
                                         : ((const int64_t *)(const void *)labels)[row];
}

static bool label_fits(const softmax_plan *plan, int64_t label) {
  return label >= 0 && (uint64_t)label < plan->columns;
}

/* The loss of row `row`. A label that is none gives a loss of 0 and a gradient of 0. */
static double entropy_row(const softmax_work *work, const unsigned char *labels, unsigned part, size_t row) {
  const softmax_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  const int64_t label = labels == NULL ? 0 : label_of(plan, labels, row);
  if (plan->columns == 0) return 0;
  const void *read[2];
  void *written;
  double loss = 0;
  row_begin(work, part, row, read, &written);
  if (labels == NULL || label_fits(plan, label)) {
    loss = vector->cross_entropy(plan->compute, written, read[0], read[1], (size_t)label, plan->columns);
  } else if (written != NULL) {
    memset(written, 0, plan->columns * call_type_size(plan->compute));
  }
  row_end(work, row, written);
  return loss;
}

static void entropy_part(void *argument, unsigned part, unsigned parts) {
  softmax_work work = *(const softmax_work *)argument;
  const softmax_plan *plan = work.plan;
  const unsigned char *labels = NULL;
  if (plan->operation == HELIO_OP_SPARSE_CROSS_ENTROPY) {
    labels = work.b;
    work.b = NULL;
  }
  cpu_range rows = part_rows(plan, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t row = rows.begin; row < rows.end; row++) {
    double loss = entropy_row(&work, labels, part, row);
    plan->base.device->vector->cast(plan->type, HELIO_FLOAT64, work.loss + row * call_type_size(plan->type), &loss, 1);
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

/* Tells the first label that is out of range. By the calling thread, so that it is always the same one. */
static void report_labels(const softmax_work *work, const helio_run *run) {
  for (size_t row = 0; row < work->plan->rows; row++) {
    int64_t label = label_of(work->plan, work->b, row);
    if (label_fits(work->plan, label)) continue;
    cpu_run_report(run, work->plan->operation, label);
    return;
  }
}

static helio_status entropy_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const softmax_plan *plan = (const softmax_plan *)base;
  softmax_work work = {.plan = plan,
                       .a = cpu_run_address(run, 0),
                       .b = cpu_run_address(run, 1),
                       .loss = cpu_run_address(run, 2),
                       .y = plan->gradient ? cpu_run_address(run, 3) : NULL};
  if (plan->columns > 0) status = use_workspace(&work, run);
  if (status != HELIO_OK) return status;
  if (plan->operation == HELIO_OP_SPARSE_CROSS_ENTROPY) report_labels(&work, run);
  cpu_plan_execute(base, entropy_part, &work);
  return HELIO_OK;
}

#define SOFTMAX_LIST(X)                                                                                                \
  X(softmax, SOFTMAX, softmax_plan_make, softmax_run)                                                                  \
  X(log_softmax, LOG_SOFTMAX, softmax_plan_make, softmax_run)                                                          \
  X(softmax_grad, SOFTMAX_GRAD, softmax_plan_make, softmax_run)                                                        \
  X(log_softmax_grad, LOG_SOFTMAX_GRAD, softmax_plan_make, softmax_run)                                                \
  X(sparse_cross_entropy, SPARSE_CROSS_ENTROPY, entropy_plan, entropy_run)                                             \
  X(cross_entropy, CROSS_ENTROPY, entropy_plan, entropy_run)

#define SOFTMAX_KERNEL(lower, upper, planned, carried_out)                                                             \
  const helio_kernel cpu_kernel_##lower = {                                                                            \
      .size = sizeof(helio_kernel),                                                                                    \
      .operation = HELIO_OP_##upper,                                                                                   \
      .types = SOFTMAX_TYPES,                                                                                          \
      .plan = planned,                                                                                                 \
      .run = carried_out,                                                                                              \
      .plan_free = cpu_plan_free,                                                                                      \
  };
SOFTMAX_LIST(SOFTMAX_KERNEL)
#undef SOFTMAX_KERNEL
