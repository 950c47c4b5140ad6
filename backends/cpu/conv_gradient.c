/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of conv2d, by tiles like conv2d itself.
 *
 * By x: tiles of dy × kernelᵀ are added back to where the columns came from. Images are shared out, and each is worked
 * through in order, so no two threads add to one place.
 * By the kernel: each part sums columnsᵀ × dy over its own positions; then the parts' sums are added in their order. */
#include "conv.h"

#include <string.h>

typedef struct gradient_plan {
  helio_plan base;
  cpu_conv conv;
  size_t kernel_count; /* elements of the kernel */
  size_t shared_bytes; /* of the widened kernel; halves only */
  size_t work_bytes;   /* of one part: tiles and rows, */
  size_t sum_bytes;    /* and what it sums up: an image, or the kernel's gradient */
} gradient_plan;

typedef struct gradient_work {
  const gradient_plan *plan;
  const unsigned char *x, *dy;
  const unsigned char *kernel; /* in the type of the arithmetic */
  unsigned char *result;
  unsigned char *scratch; /* of part 0, the others' follow */
} gradient_work;

static unsigned char *scratch_of(const gradient_work *work, unsigned part) {
  const gradient_plan *plan = work->plan;
  size_t each = plan->work_bytes + plan->sum_bytes;
  return each == 0 ? NULL : work->scratch + part * each;
}

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* `rows` rows of dy from `first` on, in the type of the arithmetic. */
static const unsigned char *rows_of_dy(const gradient_work *work, size_t first, size_t rows, unsigned char *scratch) {
  const cpu_conv *conv = &work->plan->conv;
  const unsigned char *given = work->dy + first * conv->out_channels * conv->stored;
  return cpu_conv_widen(&work->plan->base, conv, given, rows * conv->out_channels, scratch);
}

/* A plan for x, kernel and y of these shapes. */
static helio_status plan_make(helio_backend_device *device, const helio_call *call,
                              const helio_argument *const shapes[3], gradient_plan **result) {
  helio_conv2d_attributes attributes;
  helio_status status = cpu_call_attributes(device, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  gradient_plan *plan = (gradient_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  status = cpu_conv_describe(device, call, shapes[0], shapes[1], shapes[2], &attributes, &plan->conv);
  if (status != HELIO_OK) {
    cpu_plan_free(&plan->base);
    return status;
  }
  const cpu_conv *conv = &plan->conv;
  plan->kernel_count = conv->taps * conv->group_in * conv->out_channels;
  plan->base.empty = call_element_count(call_output(call)) == 0;
  *result = plan;
  return HELIO_OK;
}

static helio_status plan_answer(gradient_plan *plan, helio_plan_answer *answer) {
  size_t workspace = 0, each = plan->work_bytes + plan->sum_bytes;
  helio_status status = HELIO_OK;
  if (!plan->base.empty)
    status = cpu_conv_workspace(plan->base.device, plan->base.parts, each, plan->shared_bytes, &workspace);
  if (status != HELIO_OK) {
    cpu_plan_free(&plan->base);
    return status;
  }
  answer->plan = &plan->base;
  answer->workspace = workspace;
  return HELIO_OK;
}

static helio_status check_run(const gradient_plan *plan, const helio_run *run) {
  const helio_host *host = plan->base.device->host;
  size_t bytes = plan->shared_bytes + plan->work_bytes + plan->sum_bytes;
  if (bytes == 0 || cpu_run_workspace(run) != NULL) return HELIO_OK;
  return host->fail(host, HELIO_INVALID_ARGUMENT, "CONV2D: the gradient's workspace is missing");
}

/* --- by x --- */

static helio_status input_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"TT", "T", CPU_CONV_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *const shapes[3] = {call_output(call), call_input(call, 1), call_input(call, 0)};
  gradient_plan *plan;
  status = plan_make(device, call, shapes, &plan);
  if (status != HELIO_OK) return status;
  const cpu_conv *conv = &plan->conv;
  size_t units = conv->images;
  plan->shared_bytes = conv->half ? cpu_conv_padded(plan->kernel_count * conv->element) : 0;
  if (conv->depthwise) {
    units = conv->images * conv->height;
    plan->work_bytes = 3 * cpu_conv_depthwise_row_bytes(conv);
  } else if (conv->pointwise && !conv->half) {
    units = conv->positions;
  } else {
    plan->work_bytes = conv->tile_bytes + conv->rows_bytes;
    plan->sum_bytes = conv->half ? cpu_conv_padded(conv->height * conv->width * conv->channels * conv->element) : 0;
  }
  plan->base.parts = cpu_conv_parts(device, conv, units);
  return plan_answer(plan, answer);
}

/* The product that gives a tile, or with `pointwise` dx itself. */
static void input_product(const gradient_work *work, const cpu_tile *tile, const unsigned char *dy, unsigned char *c,
                          size_t stride) {
  const cpu_conv *conv = &work->plan->conv;
  size_t from = tile->taps.begin * conv->group_in * conv->out_channels + tile->group * conv->group_out;
  cpu_product p = {.transpose_b = true, .k = conv->group_out};
  p.m = tile->positions.end - tile->positions.begin;
  p.n = (tile->taps.end - tile->taps.begin) * conv->group_in;
  p.a = dy + tile->group * conv->group_out * conv->element;
  p.b = work->kernel + from * conv->element;
  p.a_stride = p.b_stride = conv->out_channels;
  p.c = c;
  p.c_stride = stride;
  cpu_conv_multiply(&work->plan->base, conv, &p);
}

/* All tiles of some positions of one image, whose gradient is `sum`. */
static void input_rows(const gradient_work *work, cpu_range rows, unsigned char *sum, unsigned char *scratch) {
  const gradient_plan *plan = work->plan;
  const cpu_conv *conv = &plan->conv;
  const unsigned char *dy = rows_of_dy(work, rows.begin, rows.end - rows.begin, scratch + conv->tile_bytes);
  for (size_t group = 0; group < conv->groups; group++) {
    for (size_t tap = 0; tap < conv->taps; tap += conv->tile_taps) {
      cpu_tile tile = {rows, {tap, tap + least(conv->taps - tap, conv->tile_taps)}, group};
      input_product(work, &tile, dy, scratch, (tile.taps.end - tile.taps.begin) * conv->group_in);
      cpu_conv_scatter(&plan->base, conv, &tile, sum, scratch);
    }
  }
}

static void input_part(void *argument, unsigned part, unsigned parts) {
  const gradient_work *work = argument;
  const gradient_plan *plan = work->plan;
  const cpu_conv *conv = &plan->conv;
  size_t count = conv->height * conv->width * conv->channels, each = conv->out_height * conv->out_width;
  unsigned char *scratch = scratch_of(work, part);
  cpu_range images = cpu_part_range(conv->images, 1, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t image = images.begin; image < images.end; image++) {
    unsigned char *dx = work->result + image * count * conv->stored;
    unsigned char *sum = conv->half ? scratch + plan->work_bytes : dx;
    memset(sum, 0, count * conv->element);
    for (size_t at = 0; at < each; at += conv->tile_rows) {
      size_t begin = image * each + at, rows = least(each - at, conv->tile_rows);
      input_rows(work, (cpu_range){begin, begin + rows}, sum, scratch);
    }
    if (conv->half) plan->base.device->vector->cast(conv->type, conv->compute, dx, sum, count);
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static void input_pointwise_part(void *argument, unsigned part, unsigned parts) {
  const gradient_work *work = argument;
  const cpu_conv *conv = &work->plan->conv;
  cpu_range range = cpu_part_range(conv->positions, 16, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t at = range.begin; at < range.end; at += conv->tile_rows) {
    for (size_t group = 0; group < conv->groups; group++) {
      cpu_tile tile = {{at, at + least(range.end - at, conv->tile_rows)}, {0, 1}, group};
      size_t first = at * conv->channels + group * conv->group_in;
      input_product(work, &tile, work->dy + at * conv->out_channels * conv->element,
                    work->result + first * conv->element, conv->channels);
    }
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static void input_depthwise_part(void *argument, unsigned part, unsigned parts) {
  const gradient_work *work = argument;
  const gradient_plan *plan = work->plan;
  cpu_range rows = cpu_part_range(plan->conv.images * plan->conv.height, 1, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t row = rows.begin; row < rows.end; row++)
    cpu_conv_depthwise_input_row(&plan->base, &plan->conv, row, work->result, work->dy, work->kernel,
                                 scratch_of(work, part));
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static helio_status input_run(helio_plan *base, const helio_run *run) {
  const gradient_plan *plan = (const gradient_plan *)base;
  const cpu_conv *conv = &plan->conv;
  helio_status status = cpu_run_check(base, run);
  if (status == HELIO_OK && !base->empty) status = check_run(plan, run);
  if (status != HELIO_OK || base->empty) return status;
  gradient_work work = {.plan = plan, .dy = cpu_run_address(run, 0), .result = cpu_run_address(run, 2)};
  if (conv->out_channels == 0) {
    memset(work.result, 0, conv->images * conv->height * conv->width * conv->channels * conv->stored);
    return HELIO_OK;
  }
  unsigned char *workspace = cpu_run_workspace(run);
  work.kernel = cpu_conv_widen(base, conv, cpu_run_address(run, 1), plan->kernel_count, workspace);
  if (workspace != NULL) work.scratch = workspace + plan->shared_bytes;
  cpu_team_function *function = conv->depthwise                  ? input_depthwise_part
                                : conv->pointwise && !conv->half ? input_pointwise_part
                                                                 : input_part;
  cpu_plan_execute(base, function, &work);
  return HELIO_OK;
}

/* --- by the kernel --- */

static helio_status kernel_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"TT", "T", CPU_CONV_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *const shapes[3] = {call_input(call, 0), call_output(call), call_input(call, 1)};
  gradient_plan *plan;
  status = plan_make(device, call, shapes, &plan);
  if (status != HELIO_OK) return status;
  const cpu_conv *conv = &plan->conv;
  bool direct = conv->pointwise && !conv->half;
  plan->base.parts = cpu_conv_parts(device, conv, conv->depthwise ? conv->images * conv->out_height : conv->positions);
  plan->work_bytes = conv->depthwise ? 3 * cpu_conv_depthwise_row_bytes(conv)
                     : direct        ? 0
                                     : conv->gathered_bytes + conv->tile_bytes + conv->rows_bytes;
  if (plan->base.parts > 1 || conv->half) plan->sum_bytes = cpu_conv_padded(plan->kernel_count * conv->element);
  return plan_answer(plan, answer);
}

/* Where a part sums up. The first one does so in the result itself, unless that is to be narrowed. */
static unsigned char *sum_of(const gradient_work *work, unsigned part) {
  if (part == 0 && !work->plan->conv.half) return work->result;
  return scratch_of(work, part) + work->plan->work_bytes;
}

/* Adds what some positions give. */
static void kernel_rows(const gradient_work *work, cpu_range rows, unsigned char *sum, unsigned char *scratch) {
  const gradient_plan *plan = work->plan;
  const cpu_conv *conv = &plan->conv;
  unsigned char *widened = conv->half ? scratch + conv->gathered_bytes + conv->tile_bytes : NULL;
  const unsigned char *dy = rows_of_dy(work, rows.begin, rows.end - rows.begin, widened);
  for (size_t group = 0; group < conv->groups; group++) {
    for (size_t tap = 0; tap < conv->taps; tap += conv->tile_taps) {
      size_t taps = least(conv->taps - tap, conv->tile_taps);
      cpu_tile tile = {rows, {tap, tap + taps}, group};
      cpu_matrix columns = cpu_conv_columns(&plan->base, conv, &tile, work->x, scratch);
      size_t from = tap * conv->group_in * conv->out_channels + group * conv->group_out;
      cpu_product p = {.transpose_a = true, .m = taps * conv->group_in, .n = conv->group_out, .accumulate = true};
      p.k = rows.end - rows.begin;
      p.a = columns.data;
      p.a_stride = columns.stride;
      p.b = dy + group * conv->group_out * conv->element;
      p.b_stride = p.c_stride = conv->out_channels;
      p.c = sum + from * conv->element;
      cpu_conv_multiply(&plan->base, conv, &p);
    }
  }
}

static void kernel_part(void *argument, unsigned part, unsigned parts) {
  const gradient_work *work = argument;
  const gradient_plan *plan = work->plan;
  const cpu_conv *conv = &plan->conv;
  unsigned char *scratch = scratch_of(work, part), *sum = sum_of(work, part);
  cpu_range range = cpu_part_range(conv->positions, 16, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  memset(sum, 0, plan->kernel_count * conv->element);
  for (size_t at = range.begin; at < range.end; at += conv->tile_rows)
    kernel_rows(work, (cpu_range){at, at + least(range.end - at, conv->tile_rows)}, sum, scratch);
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static void kernel_depthwise_part(void *argument, unsigned part, unsigned parts) {
  const gradient_work *work = argument;
  const gradient_plan *plan = work->plan;
  const cpu_conv *conv = &plan->conv;
  unsigned char *scratch = scratch_of(work, part), *sum = sum_of(work, part);
  cpu_range rows = cpu_part_range(conv->images * conv->out_height, 1, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  memset(sum, 0, plan->kernel_count * conv->element);
  for (size_t row = rows.begin; row < rows.end; row++)
    cpu_conv_depthwise_kernel_row(&plan->base, conv, row, sum, work->x, work->dy, scratch);
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

/* The parts' sums in their order, for this part's share of the kernel. */
static void add_sums_part(void *argument, unsigned part, unsigned parts) {
  const gradient_work *work = argument;
  const gradient_plan *plan = work->plan;
  const cpu_conv *conv = &plan->conv;
  const cpu_vector_table *vector = plan->base.device->vector;
  cpu_range range = cpu_part_range(plan->kernel_count, 64, part, parts);
  size_t count = range.end - range.begin, at = range.begin * conv->element;
  unsigned char *sum = sum_of(work, 0) + at;
  if (count == 0) return;
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (unsigned i = 1; i < plan->base.parts; i++)
    vector->arithmetic(CPU_ADD, CPU_FORM_BOTH, conv->compute, sum, sum, sum_of(work, i) + at, count);
  if (conv->half) vector->cast(conv->type, conv->compute, work->result + range.begin * conv->stored, sum, count);
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static helio_status kernel_run(helio_plan *base, const helio_run *run) {
  const gradient_plan *plan = (const gradient_plan *)base;
  const cpu_conv *conv = &plan->conv;
  helio_status status = cpu_run_check(base, run);
  if (status == HELIO_OK && !base->empty) status = check_run(plan, run);
  if (status != HELIO_OK || base->empty) return status;
  gradient_work work = {.plan = plan, .x = cpu_run_address(run, 0), .dy = cpu_run_address(run, 1)};
  work.result = cpu_run_address(run, 2);
  work.scratch = cpu_run_workspace(run);
  if (conv->positions == 0) {
    memset(work.result, 0, plan->kernel_count * conv->stored);
    return HELIO_OK;
  }
  cpu_plan_execute(base, conv->depthwise ? kernel_depthwise_part : kernel_part, &work);
  if (base->parts > 1 || conv->half) cpu_plan_execute(base, add_sums_part, &work);
  return HELIO_OK;
}

const helio_kernel cpu_kernel_conv2d_grad_input = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_CONV2D_GRAD_INPUT,
    .types = CPU_CONV_TYPES,
    .plan = input_plan_make,
    .run = input_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_conv2d_grad_kernel = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_CONV2D_GRAD_KERNEL,
    .types = CPU_CONV_TYPES,
    .plan = kernel_plan_make,
    .run = kernel_run,
    .plan_free = cpu_plan_free,
};
