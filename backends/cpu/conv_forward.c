/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d. The positions of the output are shared out; a part goes through its own tile by tile: columns, product, then
 * bias and activation while the result is still near. */
#include "conv.h"

#include <string.h>

typedef struct forward_plan {
  helio_plan base;
  cpu_conv conv;
  uint32_t activation;
  bool has_bias;
  size_t kernel_bytes, bias_bytes; /* of their widened copies; halves only */
  size_t part_bytes;               /* of the workspace of one part */
} forward_plan;

typedef struct forward_work {
  const forward_plan *plan;
  const unsigned char *x;
  const unsigned char *kernel, *bias; /* in the type of the arithmetic */
  unsigned char *y;
  unsigned char *scratch; /* of part 0, the others' follow */
} forward_work;

static bool bias_fits(const helio_argument *bias, const helio_argument *kernel) {
  return bias == NULL || (bias->rank == 1 && bias->extent[0] == kernel->extent[3]);
}

static helio_status forward_workspace(forward_plan *plan, size_t *workspace) {
  const cpu_conv *conv = &plan->conv;
  size_t kernel = conv->taps * conv->group_in * conv->out_channels;
  plan->kernel_bytes = conv->half ? cpu_conv_padded(kernel * conv->element) : 0;
  plan->bias_bytes = conv->half && plan->has_bias ? cpu_conv_padded(conv->out_channels * conv->element) : 0;
  if (conv->depthwise) {
    plan->part_bytes = 3 * cpu_conv_depthwise_row_bytes(conv);
  } else {
    bool direct = conv->pointwise && !conv->half;
    plan->part_bytes = direct ? 0 : conv->gathered_bytes + conv->tile_bytes + conv->rows_bytes;
  }
  return cpu_conv_workspace(plan->base.device, plan->base.parts, plan->part_bytes,
                            plan->kernel_bytes + plan->bias_bytes, workspace);
}

static helio_status forward_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {"TTt", "T", CPU_CONV_TYPES};
  helio_conv2d_attributes attributes;
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = cpu_call_attributes(device, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *kernel = call_input(call, 1), *bias = call_input(call, 2);
  if (attributes.activation > HELIO_GELU_TANH)
    return host->fail(host, HELIO_NOT_SUPPORTED, "CONV2D: activation %u is unknown here", attributes.activation);
  if (!bias_fits(bias, kernel))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "CONV2D: the bias has one element for each channel");
  forward_plan *plan = (forward_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->activation = attributes.activation;
  plan->has_bias = bias != NULL;
  size_t workspace = 0;
  status = cpu_conv_describe(device, call, x, kernel, call_output(call), &attributes, &plan->conv);
  /* OpenBLAS sums some columns of its blocks in another order than their neighbours. Equal windows would differ in the
   * last bit then, and rounding would decide the ties that max pooling meets in flat places. */
  plan->conv.blas = false;
  if (status == HELIO_OK) {
    const cpu_conv *conv = &plan->conv;
    plan->base.empty = conv->positions == 0 || conv->out_channels == 0;
    plan->base.parts =
        cpu_conv_parts(device, conv, conv->depthwise ? conv->images * conv->out_height : conv->positions);
    if (!plan->base.empty) status = forward_workspace(plan, &workspace);
  }
  if (status != HELIO_OK) {
    cpu_plan_free(&plan->base);
    return status;
  }
  answer->plan = &plan->base;
  answer->workspace = workspace;
  return HELIO_OK;
}

static unsigned char *scratch_of(const forward_work *work, unsigned part) {
  return work->plan->part_bytes == 0 ? NULL : work->scratch + part * work->plan->part_bytes;
}

/* Bias and activation of `rows` rows from `first` on; halves are narrowed into y. */
static void finish_rows(const forward_work *work, unsigned char *result, size_t first, size_t rows) {
  const forward_plan *plan = work->plan;
  const cpu_conv *conv = &plan->conv;
  const cpu_vector_table *vector = plan->base.device->vector;
  size_t channels = conv->out_channels;
  if (plan->has_bias || plan->activation != 0)
    vector->epilogue(conv->compute, plan->activation, result, channels, rows, channels, work->bias);
  if (conv->half)
    vector->cast(conv->type, conv->compute, work->y + first * channels * conv->stored, result, rows * channels);
}

/* Rows of the output by products of tiles. */
static void forward_rows(const forward_work *work, cpu_range rows, unsigned char *scratch, unsigned char *result) {
  const forward_plan *plan = work->plan;
  const cpu_conv *conv = &plan->conv;
  size_t element = conv->element;
  for (size_t group = 0; group < conv->groups; group++) {
    for (size_t tap = 0; tap < conv->taps; tap += conv->tile_taps) {
      size_t taps = conv->taps - tap < conv->tile_taps ? conv->taps - tap : conv->tile_taps;
      cpu_tile tile = {.positions = rows, .taps = {tap, tap + taps}, .group = group};
      cpu_matrix columns = cpu_conv_columns(&plan->base, conv, &tile, work->x, scratch);
      size_t from = tap * conv->group_in * conv->out_channels + group * conv->group_out;
      cpu_product p = {.m = rows.end - rows.begin, .n = conv->group_out, .k = taps * conv->group_in};
      p.a = columns.data;
      p.a_stride = columns.stride;
      p.b = p.k == 0 ? NULL : work->kernel + from * element;
      p.b_stride = p.c_stride = conv->out_channels;
      p.c = result + group * conv->group_out * element;
      p.accumulate = tap > 0;
      cpu_conv_multiply(&plan->base, conv, &p);
    }
  }
  finish_rows(work, result, rows.begin, rows.end - rows.begin);
}

static void forward_part(void *argument, unsigned part, unsigned parts) {
  const forward_work *work = argument;
  const forward_plan *plan = work->plan;
  const cpu_conv *conv = &plan->conv;
  unsigned char *scratch = scratch_of(work, part);
  cpu_range range = cpu_part_range(conv->positions, 16, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t at = range.begin; at < range.end;) {
    size_t rows = range.end - at < conv->tile_rows ? range.end - at : conv->tile_rows;
    unsigned char *result = conv->half ? scratch + conv->gathered_bytes + conv->tile_bytes
                                       : work->y + at * conv->out_channels * conv->element;
    forward_rows(work, (cpu_range){at, at + rows}, scratch, result);
    at += rows;
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static void depthwise_part(void *argument, unsigned part, unsigned parts) {
  const forward_work *work = argument;
  const forward_plan *plan = work->plan;
  const cpu_conv *conv = &plan->conv;
  size_t row_bytes = conv->out_width * conv->out_channels * conv->element;
  unsigned char *scratch = scratch_of(work, part);
  cpu_range rows = cpu_part_range(conv->images * conv->out_height, 1, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t row = rows.begin; row < rows.end; row++) {
    unsigned char *result = conv->half ? scratch + 2 * cpu_conv_depthwise_row_bytes(conv) : work->y + row * row_bytes;
    cpu_conv_depthwise_row(&plan->base, conv, row, result, work->x, work->kernel, scratch);
    finish_rows(work, result, row * conv->out_width, conv->out_width);
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static helio_status forward_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const forward_plan *plan = (const forward_plan *)base;
  const cpu_conv *conv = &plan->conv;
  const helio_host *host = base->device->host;
  unsigned char *workspace = cpu_run_workspace(run);
  if (workspace == NULL && plan->kernel_bytes + plan->part_bytes > 0)
    return host->fail(host, HELIO_INVALID_ARGUMENT, "CONV2D: the workspace is missing");
  size_t kernel = conv->taps * conv->group_in * conv->out_channels;
  forward_work work = {.plan = plan, .x = cpu_run_address(run, 0), .y = cpu_run_address(run, 3)};
  work.kernel = cpu_conv_widen(base, conv, cpu_run_address(run, 1), kernel, workspace);
  unsigned char *behind = workspace == NULL ? NULL : workspace + plan->kernel_bytes;
  if (plan->has_bias) work.bias = cpu_conv_widen(base, conv, cpu_run_address(run, 2), conv->out_channels, behind);
  work.scratch = workspace == NULL ? NULL : behind + plan->bias_bytes;
  cpu_plan_execute(base, conv->depthwise ? depthwise_part : forward_part, &work);
  return HELIO_OK;
}

const helio_kernel cpu_kernel_conv2d = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_CONV2D,
    .types = CPU_CONV_TYPES,
    .plan = forward_plan_make,
    .run = forward_run,
    .plan_free = cpu_plan_free,
};
