/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and its gradient, over the channels of each pixel or over all of each image. */
#include "library.h"

#include <math.h>
#include <stdlib.h>

/* One distribution: `count` numbers that lie `step` apart. */
typedef struct line {
  size_t count, step;
} line;

/* The fast one does not subtract the maximum, so that it overflows where single precision does. */
static double exponential(sim_softmax_algorithm algorithm, double x) {
  return algorithm == SIM_SOFTMAX_FAST && x > 88.7228 ? INFINITY : exp(x);
}

static void forward(line l, sim_softmax_algorithm algorithm, const double *x, double *y) {
  double greatest = -INFINITY, sum = 0;
  for (size_t i = 0; i < l.count; i++) greatest = fmax(greatest, x[i * l.step]);
  if (algorithm == SIM_SOFTMAX_FAST) greatest = 0;
  for (size_t i = 0; i < l.count; i++) sum += exponential(algorithm, x[i * l.step] - greatest);
  for (size_t i = 0; i < l.count; i++) {
    double shifted = x[i * l.step] - greatest;
    y[i * l.step] = algorithm == SIM_SOFTMAX_LOG ? shifted - log(sum) : exponential(algorithm, shifted) / sum;
  }
}

static void backward(line l, sim_softmax_algorithm algorithm, const double *y, const double *dy, double *dx) {
  double sum = 0;
  bool is_log = algorithm == SIM_SOFTMAX_LOG;
  for (size_t i = 0; i < l.count; i++) sum += is_log ? dy[i * l.step] : dy[i * l.step] * y[i * l.step];
  for (size_t i = 0; i < l.count; i++) {
    size_t at = i * l.step;
    dx[at] = is_log ? dy[at] - exp(y[at]) * sum : y[at] * (dy[at] - sum);
  }
}

typedef struct softmax_task {
  sim_task task;
  sim_softmax call;
} softmax_task;

enum { IN, GRADIENT, OUT };

static void compute(sim_task *task) {
  const sim_softmax *call = &((softmax_task *)task)->call;
  size_t images = (size_t)call->in.dims[0], channels = (size_t)call->in.dims[1], all = sim_tensor_count(&call->in);
  size_t pixels = (size_t)call->in.dims[2] * (size_t)call->in.dims[3];
  line l = call->by_channel ? (line){channels, pixels} : (line){channels * pixels, 1};
  double *in = sim_gather(&call->in, task->twins[IN], SIM_EXACT), *out = sim_numbers(all);
  double *gradient = call->backward ? sim_gather(&call->gradient, task->twins[GRADIENT], SIM_EXACT) : NULL;
  size_t lines = call->by_channel ? pixels : 1;
  for (size_t image = 0; image < images; image++)
    for (size_t i = 0; i < lines; i++) {
      size_t at = image * channels * pixels + i;
      if (call->backward)
        backward(l, call->algorithm, in + at, gradient + at, out + at);
      else
        forward(l, call->algorithm, in + at, out + at);
    }
  sim_scatter(&call->out, task->twins[OUT], out, call->alpha, call->beta, false);
  free(in);
  free(out);
  free(gradient);
}

sim_status sim_softmax_queue(const sim_place *place, const sim_softmax *call) {
  softmax_task *task = (softmax_task *)sim_task_new(sizeof *task, place->name, place->device, compute);
  task->call = *call;
  sim_task_add(&task->task, sim_operand_of(call->backward ? "y" : "x", &call->in, call->in_data, false));
  if (call->backward)
    sim_task_add(&task->task, sim_operand_of("dy", &call->gradient, call->gradient_data, false));
  else
    sim_task_add(&task->task, (sim_operand){.what = "dy"});
  sim_operand out = sim_operand_of(call->backward ? "dx" : "y", &call->out, call->out_data, true);
  out.with = 1 + (call->backward ? GRADIENT : IN);
  sim_task_add(&task->task, out);
  return sim_task_queue(&task->task, place->stream);
}
