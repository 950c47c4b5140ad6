/* SPDX-License-Identifier: Apache-2.0 */
/* One physical device cut into two logical ones, on which a model is trained mirrored: how several devices are tried
 * out where there is one. As TensorFlow's guide "Use a GPU" does it, at "Simulate multiple GPUs with virtual GPUs". */
#include <helio/helio.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 64, STEPS = 20 };

typedef struct trainer {
  helio_model *model;
  helio_optimizer *optimizer;
} trainer;

static helio_status step(void *argument, const helio_element *batch, helio_element *result) {
  trainer *t = argument;
  helio_tape *tape = helio_tape_new();
  helio_tensor *loss = NULL;
  HELIO_TAPE(tape) {
    helio_tensor *error = helio_sub(helio_call(t->model, batch->part[0], .training = true), batch->part[1]);
    loss = helio_compute_average_loss(helio_mean(helio_square(error), .axes = HELIO_AXES(1)));
  }
  helio_minimize(t->optimizer, tape, loss, helio_trainable_variables(t->model));
  result->count = 1;
  result->part[0] = loss;
  return helio_error_pending();
}

/* A line, y = 2x + 1. */
static helio_dataset *make_data(void) {
  static float x[SAMPLES], y[SAMPLES];
  for (int i = 0; i < SAMPLES; i++) {
    x[i] = (float)i / SAMPLES;
    y[i] = 2 * x[i] + 1;
  }
  helio_dataset *all =
      helio_dataset_from_slices(helio_array_of(x, HELIO_SHAPE(SAMPLES, 1)), helio_array_of(y, HELIO_SHAPE(SAMPLES, 1)));
  return helio_dataset_repeat(helio_dataset_batch(all, SAMPLES), STEPS);
}

/* Of the preferred device, a GPU where there is one. */
static void cut_in_two(void) {
  int physical = 0, logical = 0;
  const helio_device *const *devices = helio_physical_devices(NULL, &physical);
  if (!devices) return;
  const char *type = devices[0]->type;
  uint64_t limits[] = {UINT64_C(1) << 30, UINT64_C(1) << 30};
  helio_set_logical_devices(devices[0]->name, limits, 2);
  helio_physical_devices(type, &physical);
  helio_logical_devices(type, &logical);
  printf("%d Physical %s%s, %d Logical %s%s\n", physical, type, physical == 1 ? "" : "s", logical, type,
         logical == 1 ? "" : "s");
}

int main(void) {
  cut_in_two();
  helio_strategy *strategy = helio_mirrored();
  trainer t = {0};
  HELIO_SCOPE(strategy) {
    t.model = helio_sequential({helio_dense(1)}, .input_shape = HELIO_SHAPE(1));
    t.optimizer = helio_sgd(.learning_rate = 0.2);
  }
  helio_distributed_iterator *batches = helio_iterate_distributed(helio_distribute(strategy, make_data()));
  for (int i = 1; i <= STEPS; i++) {
    HELIO_POOL {
      helio_values *losses = helio_run(strategy, step, &t, helio_next_values(batches));
      if (i % 5 == 0 && losses)
        printf("step %d: loss %.4f\n", i, helio_item(helio_reduce(strategy, HELIO_SUM, losses)));
    }
  }
  helio_release(t.model);

  helio_error error;
  if (helio_error_take(&error) == HELIO_OK) return EXIT_SUCCESS;
  fprintf(stderr, "%s: %s\n", error.where, error.message);
  return EXIT_FAILURE;
}
