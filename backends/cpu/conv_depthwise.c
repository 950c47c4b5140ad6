/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in which every channel is a group of its own: rows of x, y and the kernel are multiplied elementwise. A
 * kernel that makes several channels of each channel of x sees rows of x in which every element is repeated. */
#include "conv.h"

#include <string.h>

size_t cpu_conv_depthwise_row_bytes(const cpu_conv *conv) {
  size_t width = conv->width > conv->out_width ? conv->width : conv->out_width;
  return cpu_conv_padded(width * conv->out_channels * conv->element);
}

/* The first column of x that the kernel's column `tap` meets, if y's columns went on to the left. */
static int64_t tap_start(const cpu_conv *conv, size_t tap) {
  return (int64_t)(tap * conv->dilation[1]) - (int64_t)conv->before[1];
}

/* The columns of y for which the kernel's column `tap` lies within x. */
static cpu_range columns_inside(const cpu_conv *conv, size_t tap) {
  int64_t start = tap_start(conv, tap), stride = (int64_t)conv->stride[1], last = (int64_t)conv->width - 1 - start;
  int64_t begin = start >= 0 ? 0 : (-start + stride - 1) / stride, end = last < 0 ? 0 : last / stride + 1;
  if (end > (int64_t)conv->out_width) end = (int64_t)conv->out_width;
  return (cpu_range){(size_t)begin, (size_t)(end < begin ? begin : end)};
}

/* The row of x that kernel row `tap` meets for row `row` of y; −1 if it is padding. */
static int64_t input_row(const cpu_conv *conv, size_t row, size_t tap) {
  int64_t found = (int64_t)(row * conv->stride[0] + tap * conv->dilation[0]) - (int64_t)conv->before[0];
  return found < 0 || (size_t)found >= conv->height || conv->width == 0 ? -1 : found;
}

/* The row of y for which kernel row `tap` meets row `row` of x; −1 if there is none. */
static int64_t output_row(const cpu_conv *conv, size_t row, size_t tap) {
  int64_t found = (int64_t)(row + conv->before[0]) - (int64_t)(tap * conv->dilation[0]);
  int64_t stride = (int64_t)conv->stride[0];
  return found < 0 || found % stride != 0 || (size_t)(found / stride) >= conv->out_height ? -1 : found / stride;
}

static void repeat_elements(unsigned char *y, const unsigned char *x, size_t element, size_t count, size_t times) {
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < times; j++, y += element) memcpy(y, x + i * element, element == 4 ? 4 : 8);
  }
}

/* A row of x in the type of the arithmetic, with as many channels as y has. */
static const unsigned char *expanded_row(const helio_plan *plan, const cpu_conv *conv, const unsigned char *x,
                                         size_t row, unsigned char *scratch) {
  size_t count = conv->width * conv->channels;
  bool repeated = conv->group_out > 1;
  unsigned char *plain = repeated ? scratch + cpu_conv_depthwise_row_bytes(conv) : scratch;
  const unsigned char *widened = cpu_conv_widen(plan, conv, x + row * count * conv->stored, count, plain);
  if (!repeated) return widened;
  repeat_elements(scratch, widened, conv->element, count, conv->group_out);
  return scratch;
}

/* A row of dy in the type of the arithmetic. */
static const unsigned char *widened_row(const helio_plan *plan, const cpu_conv *conv, const unsigned char *dy,
                                        size_t row, unsigned char *scratch) {
  size_t count = conv->out_width * conv->out_channels;
  return cpu_conv_widen(plan, conv, dy + row * count * conv->stored, count, scratch);
}

void cpu_conv_depthwise_row(const helio_plan *plan, const cpu_conv *conv, size_t row, unsigned char *y,
                            const unsigned char *x, const unsigned char *kernel, unsigned char *scratch) {
  size_t image = row / conv->out_height, channels = conv->out_channels, element = conv->element;
  memset(y, 0, conv->out_width * channels * element);
  for (size_t i = 0; i < conv->kernel[0]; i++) {
    int64_t from = input_row(conv, row % conv->out_height, i);
    if (from < 0) continue;
    const unsigned char *source = expanded_row(plan, conv, x, image * conv->height + (size_t)from, scratch);
    for (size_t j = 0; j < conv->kernel[1]; j++) {
      cpu_range columns = columns_inside(conv, j);
      if (columns.begin == columns.end) continue;
      size_t first = (size_t)((int64_t)(columns.begin * conv->stride[1]) + tap_start(conv, j));
      cpu_row_product p = {.rows = columns.end - columns.begin, .columns = channels};
      p.y = y + columns.begin * channels * element;
      p.y_stride = channels;
      p.a = source + first * channels * element;
      p.a_stride = conv->stride[1] * channels;
      p.b = kernel + (i * conv->kernel[1] + j) * channels * element;
      plan->device->vector->multiply_rows(conv->compute, &p);
    }
  }
}

/* Sums what the repeated elements of a row of x have got, and stores the row. */
static void store_folded(const helio_plan *plan, const cpu_conv *conv, unsigned char *dx, unsigned char *sums,
                         const unsigned char *repeated) {
  const cpu_vector_table *vector = plan->device->vector;
  size_t count = conv->width * conv->channels, times = conv->group_out;
  if (times > 1) {
    for (size_t i = 0; i < count && conv->element == 4; i++) {
      float sum = 0;
      for (size_t j = 0; j < times; j++) sum += ((const float *)repeated)[i * times + j];
      ((float *)sums)[i] = sum;
    }
    for (size_t i = 0; i < count && conv->element == 8; i++) {
      double sum = 0;
      for (size_t j = 0; j < times; j++) sum += ((const double *)repeated)[i * times + j];
      ((double *)sums)[i] = sum;
    }
    repeated = sums;
  }
  if (repeated != dx) vector->cast(conv->type, conv->compute, dx, repeated, count);
}

void cpu_conv_depthwise_input_row(const helio_plan *plan, const cpu_conv *conv, size_t row, unsigned char *dx,
                                  const unsigned char *dy, const unsigned char *kernel, unsigned char *scratch) {
  size_t image = row / conv->height, channels = conv->out_channels, element = conv->element;
  size_t row_bytes = cpu_conv_depthwise_row_bytes(conv);
  unsigned char *widened = scratch, *sums = scratch + row_bytes, *target = scratch + 2 * row_bytes;
  dx += row * conv->width * conv->channels * conv->stored;
  if (conv->group_out == 1 && !conv->half) target = dx;
  memset(target, 0, conv->width * channels * element);
  for (size_t i = 0; i < conv->kernel[0]; i++) {
    int64_t from = output_row(conv, row % conv->height, i);
    if (from < 0) continue;
    const unsigned char *source = widened_row(plan, conv, dy, image * conv->out_height + (size_t)from, widened);
    for (size_t j = 0; j < conv->kernel[1]; j++) {
      cpu_range columns = columns_inside(conv, j);
      if (columns.begin == columns.end) continue;
      size_t first = (size_t)((int64_t)(columns.begin * conv->stride[1]) + tap_start(conv, j));
      cpu_row_product p = {.rows = columns.end - columns.begin, .columns = channels};
      p.y = target + first * channels * element;
      p.y_stride = conv->stride[1] * channels;
      p.a = source + columns.begin * channels * element;
      p.a_stride = channels;
      p.b = kernel + (i * conv->kernel[1] + j) * channels * element;
      plan->device->vector->multiply_rows(conv->compute, &p);
    }
  }
  store_folded(plan, conv, dx, sums, target);
}

void cpu_conv_depthwise_kernel_row(const helio_plan *plan, const cpu_conv *conv, size_t row, unsigned char *gradient,
                                   const unsigned char *x, const unsigned char *dy, unsigned char *scratch) {
  size_t image = row / conv->out_height, channels = conv->out_channels, element = conv->element;
  const unsigned char *factor = widened_row(plan, conv, dy, row, scratch + 2 * cpu_conv_depthwise_row_bytes(conv));
  for (size_t i = 0; i < conv->kernel[0]; i++) {
    int64_t from = input_row(conv, row % conv->out_height, i);
    if (from < 0) continue;
    const unsigned char *source = expanded_row(plan, conv, x, image * conv->height + (size_t)from, scratch);
    for (size_t j = 0; j < conv->kernel[1]; j++) {
      cpu_range columns = columns_inside(conv, j);
      if (columns.begin == columns.end) continue;
      size_t first = (size_t)((int64_t)(columns.begin * conv->stride[1]) + tap_start(conv, j));
      cpu_row_product p = {.rows = columns.end - columns.begin, .columns = channels};
      p.y = gradient + (i * conv->kernel[1] + j) * channels * element;
      p.a = source + first * channels * element;
      p.a_stride = conv->stride[1] * channels;
      p.b = factor + columns.begin * channels * element;
      p.b_stride = channels;
      plan->device->vector->multiply_rows(conv->compute, &p);
    }
  }
}
