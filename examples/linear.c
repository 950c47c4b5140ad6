/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest model that learns, with a training loop written by hand: a line through the point (1, 1).
 * Each step divides the error by five, because the rate is 0.2 and both kernel and bias see an input of 1. */
#include <helio/helio.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 10, STEPS = 10 };

static void train_step(helio_model *model, helio_loss *mse, helio_optimizer *sgd, int step) {
  helio_tensor *features = helio_fill(HELIO_SHAPE(BATCH, 1), 1), *labels = helio_fill(HELIO_SHAPE(BATCH, 1), 1);
  helio_tape *tape = helio_tape_new();
  helio_tensor *loss = NULL;
  HELIO_TAPE(tape) {
    helio_tensor *predictions = helio_call(model, features, .training = true);
    loss = helio_compute_loss(mse, labels, predictions);
  }
  const helio_variables *variables = helio_trainable_variables(model);
  helio_apply_gradients(sgd, helio_gradient(tape, loss, variables), variables);
  printf("step %2d: loss %.3e\n", step, helio_item(loss));
}

int main(void) {
  helio_node *inputs = helio_input(HELIO_SHAPE(1));
  helio_node *predictions = helio_apply(helio_dense(1), inputs);
  helio_model *model = helio_model(inputs, predictions);
  helio_loss *mse = helio_mean_squared_error();
  helio_optimizer *sgd = helio_sgd(0.2);

  helio_model_summary(model);
  for (int step = 1; step <= STEPS && !helio_error_pending(); step++) {
    HELIO_POOL {
      train_step(model, mse, sgd, step);
    }
  }
  double y = helio_item(helio_call(model, helio_fill(HELIO_SHAPE(1, 1), 1)));
  printf("f(1) = %.4f\n", y);
  helio_release(model);

  helio_error error;
  if (helio_error_take(&error) == HELIO_OK) return EXIT_SUCCESS;
  fprintf(stderr, "%s: %s\n", error.where, error.message);
  return EXIT_FAILURE;
}
