/* SPDX-License-Identifier: Apache-2.0 */
/* helio eval: how good a saved model is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "goal.h"
#include "output.h"
#include "saved_model.h"

enum { RECIPE, DATA, LOSS, BATCH, DEVICE, JSON };

static const command_option options[] = {
    [RECIPE] = {"recipe", "NAME", RECIPE_WORDS,
                "evaluate on this recipe's data; unless given, the one it was trained by"},
    [DATA] = {"data", "DIR|FILE", NULL, "where the recipe's samples are, a file of samples, or a set's name"},
    [LOSS] = {"loss", "NAME", NULL, "in place of the one that suits the model"},
    [BATCH] = {"batch", "COUNT", NULL, "samples of a batch (256)"},
    [DEVICE] = {"device", "NAME", NULL, "run on this device, not on the preferred one"},
    [JSON] = {"json", NULL, NULL, "print JSON"},
    {0},
};

/* Samples, and the goal that suits the model; on samples of a recipe its metrics, too. */
static int take_samples(const command_line *line, saved_model *m, goal *g) {
  bool of_recipe = false;
  int status = saved_model_take(m, line->values[DATA], lesson_read, line->path, &of_recipe);
  if (!status) status = goal_choose(g, m->model, &m->lesson, line->values[LOSS], line->path);
  bool as_trained = !status && of_recipe && strcmp(g->loss, m->recipe->goal.loss) == 0;
  if (as_trained) memcpy(g->metrics, m->recipe->goal.metrics, sizeof g->metrics);
  return status;
}

static void print(helio_logs *logs, int64_t samples, bool json) {
  json_t *result = json_object();
  for (int i = 0; i < helio_logs_count(logs); i++) {
    output_set(result, helio_logs_name(logs, i), output_number(helio_logs_value(logs, i)));
  }
  output_set(result, "samples", json_integer(samples));
  if (json) {
    output_json(result);
    return;
  }
  for (int i = 0; i < helio_logs_count(logs); i++) {
    double value = output_unsigned_nan(helio_logs_value(logs, i));
    printf("%s%s %.4f", i ? ", " : "", helio_logs_name(logs, i), value);
  }
  printf(" on %lld samples\n", (long long)samples);
  json_decref(result);
}

static void warn_of_nonsense(helio_logs *logs, const char *path) {
  for (int i = 0; i < helio_logs_count(logs); i++) {
    if (strcmp(helio_logs_name(logs, i), "loss") != 0 || isfinite(helio_logs_value(logs, i))) continue;
    command_failure(path, "warning: the loss is no number: the model or the data have some that are none");
  }
}

static int evaluate(const command_line *line, saved_model *m, int64_t batch) {
  goal g;
  lesson *l = &m->lesson;
  int status = take_samples(line, m, &g);
  if (status) return status;
  helio_array *x = l->test_x ? l->test_x : l->x, *y = l->test_x ? l->test_y : l->y;
  helio_logs *logs = NULL;
  if (!goal_compile(&g, m->model, NULL)) {
    logs = helio_evaluate(m->model, lesson_batches(l, x, y, batch, 0), .verbose = HELIO_QUIET);
  }
  if (!logs) return command_library_failure(line->path);
  print(logs, lesson_count(x), line->values[JSON]);
  warn_of_nonsense(logs, line->path);
  return EXIT_SUCCESS;
}

static int run_eval(const command_line *line) {
  int64_t batch = 256;
  int status = command_integer(line, options, BATCH, 1, 1000000000, &batch);
  if (status) return status;
  HELIO_POOL {
    saved_model m;
    status = saved_model_open(&m, line, line->values[RECIPE], line->values[DEVICE]);
    if (!status) status = evaluate(line, &m, batch);
    helio_release(m.model);
  }
  return status;
}

const command command_eval = {
    .name = "eval",
    .summary = "Evaluates a saved model",
    .description =
        "On the samples for testing of the recipe that it was trained by, of a known set, or of a file: .npz\n"
        "with x_test and y_test, else x and y, or .csv or .tsv with a column of labels.",
    .operands = "FILE",
    .options = options,
    .run = run_eval,
};
