/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and their gradients. The input of one image and one group is spread out into a matrix, a column for each
 * pixel of the result; then each direction is a product of matrices. */
#include "library.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t sim_convolution_size(int64_t size, int64_t window, int64_t pad, int64_t stride, int64_t dilation) {
  int64_t room = size + 2 * pad - ((window - 1) * dilation + 1);
  return room < 0 ? 0 : room / stride + 1;
}

bool sim_convolution_fits(const sim_convolution *convolution, const sim_tensor *x, const sim_tensor *w,
                          const sim_tensor *y) {
  if (x->dims[1] != (int64_t)w->dims[1] * convolution->groups || w->dims[0] % convolution->groups) return false;
  if (y->dims[0] != x->dims[0] || y->dims[1] != w->dims[0]) return false;
  for (int i = 0; i < 2; i++) {
    int64_t size = sim_convolution_size(x->dims[2 + i], w->dims[2 + i], convolution->pad[i], convolution->stride[i],
                                        convolution->dilation[i]);
    if (size <= 0 || size != y->dims[2 + i]) return false;
  }
  return true;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Spreading
 */

/* Sizes of one group. */
typedef struct geometry {
  const sim_convolution *convolution;
  size_t images, groups, channels, filters; /* channels and filters of a group */
  int x[2], w[2], y[2];
  size_t x_pixels, y_pixels, taps; /* taps: channels and window, the rows of the matrix */
} geometry;

static geometry geometry_of(const sim_convolution_call *call) {
  geometry g = {.convolution = &call->convolution,
                .images = (size_t)call->x.dims[0],
                .groups = (size_t)call->convolution.groups,
                .channels = (size_t)call->w.dims[1]};
  g.filters = (size_t)call->w.dims[0] / g.groups;
  for (int i = 0; i < 2; i++) {
    g.x[i] = call->x.dims[2 + i];
    g.w[i] = call->w.dims[2 + i];
    g.y[i] = call->y.dims[2 + i];
  }
  g.x_pixels = (size_t)g.x[0] * (size_t)g.x[1];
  g.y_pixels = (size_t)g.y[0] * (size_t)g.y[1];
  g.taps = g.channels * (size_t)g.w[0] * (size_t)g.w[1];
  return g;
}

/* What is done with each row of pixels that one tap sees: x += rows, or rows = x. */
typedef void row_function(const geometry *g, double *x, double *row, int tap_w);

static int64_t x_at(const geometry *g, int dim, int y, int tap) {
  const sim_convolution *c = g->convolution;
  return (int64_t)y * c->stride[dim] - c->pad[dim] + (int64_t)tap * c->dilation[dim];
}

static void spread_row(const geometry *g, double *x, double *row, int tap_w) {
  for (int y = 0; y < g->y[1]; y++) {
    int64_t at = x_at(g, 1, y, tap_w);
    row[y] = at >= 0 && at < g->x[1] ? x[at] : 0;
  }
}

static void fold_row(const geometry *g, double *x, double *row, int tap_w) {
  for (int y = 0; y < g->y[1]; y++) {
    int64_t at = x_at(g, 1, y, tap_w);
    if (at >= 0 && at < g->x[1]) x[at] += row[y];
  }
}

/* Visits the rows of the matrix [channel][tap_h][tap_w][y_h][y_w] with the rows of x, [channel][x_h][x_w], that they
 * see. */
static void visit(const geometry *g, double *x, double *matrix, row_function *function) {
  for (size_t channel = 0; channel < g->channels; channel++, x += g->x_pixels)
    for (int tap_h = 0; tap_h < g->w[0]; tap_h++)
      for (int tap_w = 0; tap_w < g->w[1]; tap_w++)
        for (int y = 0; y < g->y[0]; y++, matrix += g->y[1]) {
          int64_t at = x_at(g, 0, y, tap_h);
          if (at >= 0 && at < g->x[0]) function(g, x + (size_t)at * (size_t)g->x[1], matrix, tap_w);
        }
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The three directions. x, w and y are dense; the matrix is scratch of taps by pixels, zero before.
 */

typedef void direction_function(const geometry *g, double *x, double *w, double *y, double *matrix);

static void forward(const geometry *g, double *x, double *w, double *y, double *matrix) {
  visit(g, x, matrix, spread_row);
  sim_multiply(g->filters, g->y_pixels, g->taps, (sim_matrix){w, g->taps, 1}, (sim_matrix){matrix, g->y_pixels, 1}, y,
               g->y_pixels);
}

static void backward_data(const geometry *g, double *x, double *w, double *y, double *matrix) {
  sim_multiply(g->taps, g->y_pixels, g->filters, (sim_matrix){w, 1, g->taps}, (sim_matrix){y, g->y_pixels, 1}, matrix,
               g->y_pixels);
  visit(g, x, matrix, fold_row);
}

static void backward_filter(const geometry *g, double *x, double *w, double *y, double *matrix) {
  visit(g, x, matrix, spread_row);
  sim_multiply(g->filters, g->taps, g->y_pixels, (sim_matrix){y, g->y_pixels, 1}, (sim_matrix){matrix, 1, g->y_pixels},
               w, g->taps);
}

static void each_group(const geometry *g, double *x, double *w, double *y, direction_function *function) {
  size_t matrix_size = g->taps * g->y_pixels;
  double *matrix = sim_numbers(matrix_size);
  for (size_t image = 0; image < g->images; image++)
    for (size_t group = 0; group < g->groups; group++) {
      size_t part = image * g->groups + group;
      memset(matrix, 0, matrix_size * sizeof *matrix);
      function(g, x + part * g->channels * g->x_pixels, w + group * g->filters * g->taps,
               y + part * g->filters * g->y_pixels, matrix);
    }
  free(matrix);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The call
 */

enum { X, W, Y, WORKSPACE };

typedef struct convolution_task {
  sim_task task;
  sim_convolution_call call;
} convolution_task;

/* The filter seen from its last tap to its first; `data` moves to the last. */
static sim_tensor flip(sim_tensor w, void **data) {
  int64_t offset = (w.dims[2] - 1) * w.strides[2] + (w.dims[3] - 1) * w.strides[3];
  *data = (char *)*data + offset * (int64_t)sim_type_bytes(w.type);
  w.strides[2] = -w.strides[2];
  w.strides[3] = -w.strides[3];
  return w;
}

static double *numbers_of(const sim_tensor *tensor, const void *data, bool result, sim_rounding rounding) {
  return result ? sim_numbers(sim_tensor_count(tensor)) : sim_gather(tensor, data, rounding);
}

static void compute(sim_task *task) {
  static direction_function *const functions[] = {forward, backward_data, backward_filter};
  static const int results[] = {Y, X, W};
  sim_convolution_call *call = &((convolution_task *)task)->call;
  void *data[] = {task->twins[X], task->twins[W], task->twins[Y]};
  sim_tensor tensors[] = {call->x, call->convolution.flipped ? flip(call->w, &data[W]) : call->w, call->y};
  int result = results[call->direction];
  double *numbers[3];
  for (int i = 0; i < 3; i++) numbers[i] = numbers_of(&tensors[i], data[i], i == result, call->rounding);
  geometry g = geometry_of(call);
  each_group(&g, numbers[X], numbers[W], numbers[Y], functions[call->direction]);
  for (size_t i = 0; call->poison && i < sim_tensor_count(&tensors[result]); i++) numbers[result][i] = NAN;
  sim_scatter(&tensors[result], data[result], numbers[result], call->alpha, call->beta, !call->deterministic);
  for (int i = 0; i < 3; i++) free(numbers[i]);
}

bool sim_convolution_is_packed(const sim_convolution_call *call, bool channels_last) {
  return sim_tensor_is_packed(&call->x, channels_last) && sim_tensor_is_packed(&call->w, channels_last) &&
         sim_tensor_is_packed(&call->y, channels_last);
}

sim_status sim_convolution_queue(const sim_place *place, const sim_convolution_call *call) {
  static const char *const names[][3] = {{"x", "w", "y"}, {"dx", "w", "dy"}, {"x", "dw", "dy"}};
  const char *const *name = names[call->direction];
  convolution_task *task = (convolution_task *)sim_task_new(sizeof *task, place->name, place->device, compute);
  task->call = *call;
  geometry g = geometry_of(call);
  task->task.numbers = sim_times(g.taps, g.y_pixels);
  sim_task_add(&task->task, sim_operand_of(name[X], &call->x, call->x_data, call->direction == SIM_BACKWARD_DATA));
  sim_task_add(&task->task, sim_operand_of(name[W], &call->w, call->w_data, call->direction == SIM_BACKWARD_FILTER));
  sim_task_add(&task->task, sim_operand_of(name[Y], &call->y, call->y_data, call->direction == SIM_FORWARD));
  sim_task_add(&task->task, (sim_operand){.what = "the workspace",
                                          .address = call->workspace,
                                          .bytes = call->workspace ? call->workspace_bytes : 0,
                                          .alignment = 16,
                                          .written = true,
                                          .scratch = call->workspace_wanted + 1});
  return sim_task_queue(&task->task, place->stream);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The gradient of a bias
 */

typedef struct bias_task {
  sim_task task;
  sim_tensor y, b;
  double alpha, beta;
} bias_task;

static void compute_bias(sim_task *task) {
  bias_task *bias = (bias_task *)task;
  size_t channels = (size_t)bias->y.dims[1], pixels = (size_t)bias->y.dims[2] * (size_t)bias->y.dims[3];
  double *y = sim_gather(&bias->y, task->twins[0], SIM_EXACT), *sums = sim_numbers(channels), *at = y;
  for (size_t row = 0; row < (size_t)bias->y.dims[0] * channels; row++)
    for (size_t pixel = 0; pixel < pixels; pixel++) sums[row % channels] += *at++;
  sim_scatter(&bias->b, task->twins[1], sums, bias->alpha, bias->beta, false);
  free(y);
  free(sums);
}

sim_status sim_bias_queue(const sim_place *place, const sim_tensor *y, const void *y_data, const sim_tensor *b,
                          void *b_data, double alpha, double beta) {
  bias_task *task = (bias_task *)sim_task_new(sizeof *task, place->name, place->device, compute_bias);
  task->y = *y;
  task->b = *b;
  task->alpha = alpha;
  task->beta = beta;
  sim_task_add(&task->task, sim_operand_of("dy", y, y_data, false));
  sim_task_add(&task->task, sim_operand_of("db", b, b_data, true));
  return sim_task_queue(&task->task, place->stream);
}
