/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling. The backward pass of a maximum finds it again in x, or reads where it was in a workspace that the forward
 * pass left, behind which it says who made it. Of equal maxima the first counts; vendors do not say which. */
#include "library.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool sim_pooling_fits(const sim_pooling *pooling, const sim_tensor *x, const sim_tensor *y) {
  if (x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1]) return false;
  for (int i = 0; i < 2; i++) {
    int64_t size = sim_convolution_size(x->dims[2 + i], pooling->window[i], pooling->pad[i], pooling->stride[i], 1);
    if (size <= 0 || size != y->dims[2 + i]) return false;
  }
  return true;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The workspace: indices within the window, then a seal
 */

typedef struct seal {
  char magic[8];
  int64_t numbers[14]; /* of the problem */
} seal;

static seal seal_of(const sim_pooling *pooling, const sim_tensor *x, const sim_tensor *y) {
  seal made = {.magic = "gpusim!"};
  int64_t *to = made.numbers;
  for (int i = 0; i < 2; i++) {
    *to++ = pooling->window[i];
    *to++ = pooling->pad[i];
    *to++ = pooling->stride[i];
  }
  for (int i = 0; i < 4; i++) *to++ = x->dims[i];
  for (int i = 2; i < 4; i++) *to++ = y->dims[i];
  *to++ = (int64_t)pooling->index_bytes;
  return made;
}

static size_t index_space(const sim_pooling *pooling, const sim_tensor *y) {
  return (sim_tensor_count(y) * pooling->index_bytes + 15) / 16 * 16;
}

size_t sim_pooling_workspace(const sim_pooling *pooling, const sim_tensor *y) {
  if (pooling->mode != SIM_POOL_MAX || !pooling->index_bytes) return 0;
  return index_space(pooling, y) + sizeof(seal);
}

/* Little-endian, as every machine that this runs on is. */
static void keep_index(void *workspace, size_t bytes, size_t at, uint64_t index) {
  memcpy((char *)workspace + at * bytes, &index, bytes);
}

static uint64_t kept_index(const void *workspace, size_t bytes, size_t at) {
  uint64_t index = 0;
  memcpy(&index, (const char *)workspace + at * bytes, bytes);
  return index;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Windows
 */

typedef struct window {
  int64_t begin[2], end[2]; /* in x, without padding */
  int64_t corner[2];        /* of the whole window, also in the padding */
  double size;              /* what an average is divided by */
} window;

static window window_at(const sim_pooling *pooling, const sim_tensor *x, int64_t y_h, int64_t y_w) {
  window made = {.size = (double)pooling->window[0] * pooling->window[1]};
  int64_t y[] = {y_h, y_w};
  double inside = 1;
  for (int i = 0; i < 2; i++) {
    int64_t corner = y[i] * pooling->stride[i] - pooling->pad[i], end = corner + pooling->window[i];
    made.corner[i] = corner;
    made.begin[i] = corner < 0 ? 0 : corner;
    made.end[i] = end > x->dims[2 + i] ? x->dims[2 + i] : end;
    inside *= made.end[i] > made.begin[i] ? (double)(made.end[i] - made.begin[i]) : 0;
  }
  if (pooling->mode == SIM_POOL_AVERAGE) made.size = inside > 0 ? inside : 1;
  return made;
}

static double sum_of(const window *at, const double *x, int row) {
  double sum = 0;
  for (int64_t h = at->begin[0]; h < at->end[0]; h++)
    for (int64_t w = at->begin[1]; w < at->end[1]; w++) sum += x[(size_t)h * (size_t)row + (size_t)w];
  return sum;
}

/* Where the maximum is, as an index within the whole window; -1: the window lies in the padding. */
static int64_t maximum_of(const window *at, const sim_pooling *pooling, const double *x, int row, double *maximum) {
  int64_t best = -1;
  *maximum = -INFINITY;
  for (int64_t h = at->begin[0]; h < at->end[0]; h++)
    for (int64_t w = at->begin[1]; w < at->end[1]; w++) {
      double value = x[(size_t)h * (size_t)row + (size_t)w];
      bool first_nan = pooling->propagate_nan && isnan(value) && !isnan(*maximum);
      if (best >= 0 && !(value > *maximum) && !first_nan) continue;
      if (best < 0 && isnan(value) && !first_nan) value = -INFINITY; /* counts as nothing, but for its place */
      *maximum = value;
      best = (h - at->corner[0]) * pooling->window[1] + (w - at->corner[1]);
    }
  return best;
}

static double *pixel_of(const window *at, const sim_pooling *pooling, double *x, int row, int64_t index) {
  int64_t h = at->corner[0] + index / pooling->window[1], w = at->corner[1] + index % pooling->window[1];
  if (h < at->begin[0] || h >= at->end[0] || w < at->begin[1] || w >= at->end[1]) return NULL;
  return x + (size_t)h * (size_t)row + (size_t)w;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Both passes, over planes of pixels
 */

typedef struct pooling_task {
  sim_task task;
  sim_pooling_call call;
} pooling_task;

typedef struct plane {
  const sim_pooling *pooling;
  const sim_tensor *x_tensor;
  double *x, *y;     /* of this plane; backward: their gradients */
  const double *old; /* backward: x itself; NULL: not needed */
  void *workspace;   /* of all planes */
  size_t y_before;   /* elements of y in earlier planes */
} plane;

static void forward(const plane *p, size_t at, const window *seen) {
  int row = p->x_tensor->dims[3];
  if (p->pooling->mode != SIM_POOL_MAX) {
    p->y[at] = sum_of(seen, p->x, row) / seen->size;
    return;
  }
  int64_t index = maximum_of(seen, p->pooling, p->x, row, &p->y[at]);
  if (p->workspace) keep_index(p->workspace, p->pooling->index_bytes, p->y_before + at, (uint64_t)index);
}

static void backward(const plane *p, size_t at, const window *seen) {
  int row = p->x_tensor->dims[3];
  if (p->pooling->mode != SIM_POOL_MAX) {
    for (int64_t h = seen->begin[0]; h < seen->end[0]; h++)
      for (int64_t w = seen->begin[1]; w < seen->end[1]; w++)
        p->x[(size_t)h * (size_t)row + (size_t)w] += p->y[at] / seen->size;
    return;
  }
  double maximum;
  int64_t index = p->workspace ? (int64_t)kept_index(p->workspace, p->pooling->index_bytes, p->y_before + at)
                               : maximum_of(seen, p->pooling, p->old, row, &maximum);
  double *pixel = index < 0 ? NULL : pixel_of(seen, p->pooling, p->x, row, index);
  if (pixel) *pixel += p->y[at];
}

static void each_window(const sim_pooling_call *call, double *x, double *y, const double *old, void *workspace) {
  const sim_tensor *x_tensor = call->backward ? &call->dx : &call->x, *y_tensor = call->backward ? &call->dy : &call->y;
  size_t planes = (size_t)x_tensor->dims[0] * (size_t)x_tensor->dims[1];
  size_t x_pixels = (size_t)x_tensor->dims[2] * (size_t)x_tensor->dims[3];
  size_t y_pixels = (size_t)y_tensor->dims[2] * (size_t)y_tensor->dims[3];
  for (size_t i = 0; i < planes; i++) {
    plane p = {&call->pooling, x_tensor,    x + i * x_pixels, y + i * y_pixels, old ? old + i * x_pixels : NULL,
               workspace,      i * y_pixels};
    for (size_t at = 0; at < y_pixels; at++) {
      int64_t place = (int64_t)at;
      window w = window_at(&call->pooling, x_tensor, place / y_tensor->dims[3], place % y_tensor->dims[3]);
      (call->backward ? backward : forward)(&p, at, &w);
    }
  }
}

enum { OLD_X, RESULT, GRADIENT, WORKSPACE, OLD_Y };

static void compute_forward(sim_task *task) {
  const sim_pooling_call *call = &((pooling_task *)task)->call;
  double *x = sim_gather(&call->x, task->twins[OLD_X], SIM_EXACT), *y = sim_numbers(sim_tensor_count(&call->y));
  void *workspace = task->twins[WORKSPACE];
  each_window(call, x, y, NULL, workspace);
  if (workspace) {
    seal made = seal_of(&call->pooling, &call->x, &call->y);
    memcpy((char *)workspace + index_space(&call->pooling, &call->y), &made, sizeof made);
  }
  sim_scatter(&call->y, task->twins[RESULT], y, call->alpha, call->beta, false);
  free(x);
  free(y);
}

static bool check_seal(const sim_pooling_call *call, const void *workspace) {
  seal made = seal_of(&call->pooling, &call->dx, &call->dy), found;
  memcpy(&found, (const char *)workspace + index_space(&call->pooling, &call->dy), sizeof found);
  if (!memcmp(&made, &found, sizeof made)) return true;
  sim_violation("workspace without its forward pass",
                memcmp(found.magic, made.magic, sizeof made.magic)
                    ? "no forward pass of pooling has filled this workspace, or it was overwritten"
                    : "this workspace was filled by the forward pass of another pooling");
  return false;
}

static void compute_backward(sim_task *task) {
  const sim_pooling_call *call = &((pooling_task *)task)->call;
  void *workspace = task->twins[WORKSPACE];
  if (workspace && !check_seal(call, workspace)) return;
  bool overlapping =
      call->pooling.stride[0] < call->pooling.window[0] || call->pooling.stride[1] < call->pooling.window[1];
  bool needs_x = call->pooling.mode == SIM_POOL_MAX && !workspace;
  double *old = needs_x ? sim_gather(&call->x, task->twins[OLD_X], SIM_EXACT) : NULL;
  double *dx = sim_numbers(sim_tensor_count(&call->dx)), *dy = sim_gather(&call->dy, task->twins[GRADIENT], SIM_EXACT);
  each_window(call, dx, dy, old, workspace);
  sim_scatter(&call->dx, task->twins[RESULT], dx, call->alpha, call->beta, overlapping && !call->pooling.deterministic);
  free(old);
  free(dx);
  free(dy);
}

sim_status sim_pooling_queue(const sim_place *place, const sim_pooling_call *call) {
  pooling_task *task = (pooling_task *)sim_task_new(sizeof *task, place->name, place->device,
                                                    call->backward ? compute_backward : compute_forward);
  task->call = *call;
  sim_operand workspace = {.what = "the workspace", .address = call->workspace, .alignment = 16};
  if (call->workspace) workspace.bytes = sim_pooling_workspace(&call->pooling, call->backward ? &call->dy : &call->y);
  sim_task_add(&task->task, sim_operand_of("x", &call->x, call->x_data, false));
  if (call->backward) {
    sim_task_add(&task->task, sim_operand_of("dx", &call->dx, call->dx_data, true));
    sim_task_add(&task->task, sim_operand_of("dy", &call->dy, call->dy_data, false));
    sim_task_add(&task->task, workspace);
    sim_task_add(&task->task, sim_operand_of("y", &call->y, call->y_data, false));
  } else {
    workspace.written = true;
    sim_task_add(&task->task, sim_operand_of("y", &call->y, call->y_data, true));
    sim_task_add(&task->task, (sim_operand){.what = "dy"});
    sim_task_add(&task->task, workspace);
  }
  return sim_task_queue(&task->task, place->stream);
}
