/* SPDX-License-Identifier: Apache-2.0 */
/* A training with callbacks: one of your own, and some of the usual ones. Writes training.csv and training.jsonl. */
#include <helio/helio.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 640 };

static helio_status print_loss(void *user, helio_training *training) {
  (void)user;
  if (training->total_steps % 10 == 0) {
    printf("step %3lld: loss %.3e\n", (long long)training->total_steps, helio_logs_get(training->logs, "loss"));
  }
  return HELIO_OK;
}

int main(void) {
  static float x[SAMPLES], y[SAMPLES];
  for (int i = 0; i < SAMPLES; i++) {
    x[i] = (float)(i * 37 % SAMPLES) / SAMPLES;
    y[i] = 3 * x[i] - 1;
  }
  helio_array *features = helio_array_of(x, HELIO_SHAPE(SAMPLES, 1));
  helio_array *labels = helio_array_of(y, HELIO_SHAPE(SAMPLES, 1));
  helio_model *model = helio_sequential({helio_dense(1)}, .input_shape = HELIO_SHAPE(1));
  helio_compile(model, .optimizer = helio_sgd(0.5), .loss = helio_mean_squared_error());
  helio_history *history = helio_fit(
      model, .x = features, .y = labels, .epochs = 100, .validation_split = 0.2, .verbose = HELIO_QUIET,
      .callbacks = {helio_callback(.batch_end = print_loss), helio_early_stopping(.patience = 2, .min_delta = 1e-6),
                    helio_csv_logger("training.csv"), helio_json_logger("training.jsonl")});
  if (history) printf("it has learned after %d epochs\n", helio_history_epochs(history));
  helio_release(model);

  helio_error error;
  if (helio_error_take(&error) == HELIO_OK) return EXIT_SUCCESS;
  fprintf(stderr, "%s: %s\n", error.where, error.message);
  return EXIT_FAILURE;
}
