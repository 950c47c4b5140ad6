/* SPDX-License-Identifier: Apache-2.0 */
/* helio eval: how good a saved model is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "objective.h"
#include "output.h"
#include "saved_model.h"

enum { RECIPE, DATA, LOSS, BATCH, DEVICE, JSON };

static const command_option options[] = {
    [RECIPE] = {"recipe", "NAME", RECIPE_WORDS, "evaluate as this recipe (default: the one that trained the model)"},
    [DATA] = {"data", "DIR|FILE", NULL, "folder of the recipe's samples, a file of samples, or a known set"},
    [LOSS] = {"loss", "NAME", NULL, "override the loss that the model was trained with"},
    [BATCH] = {"batch", "COUNT", NULL, "batch size (default: 256)"},
    [DEVICE] = {"device", "NAME", NULL, "run on this device instead of the preferred one"},
    [JSON] = {"json", NULL, NULL, "print JSON"},
    {0},
};

/* Samples, and the objective that the model was trained for; on samples of a recipe its metrics, too. */
static int take_samples(const command_line *line, saved_model *m, objective *aim) {
  bool of_recipe = false;
  int status = saved_model_take(m, line->values[DATA], sample_set_read, line->path, &of_recipe);
  if (!status) status = objective_choose(aim, m->model, &m->samples, line->values[LOSS], m->record.loss, line->path);
  if (!status && of_recipe) recipe_add_metrics(m->recipe, aim);
  return status;
}

static void print(const objective *aim, helio_logs *logs, int64_t samples, const char *of, bool json) {
  json_t *result = json_object();
  for (int i = 0; i < helio_logs_count(logs); i++) {
    output_set(result, helio_logs_name(logs, i), output_number(helio_logs_value(logs, i)));
  }
  output_set(result, "samples", json_integer(samples));
  if (json) {
    output_json(result);
    return;
  }
  objective_print(aim);
  puts("");
  for (int i = 0; i < helio_logs_count(logs); i++) {
    double value = output_unsigned_nan(helio_logs_value(logs, i));
    printf("%s%s %.4f", i ? ", " : "", helio_logs_name(logs, i), value);
  }
  printf(" on %lld samples of %s\n", (long long)samples, of);
  json_decref(result);
}

static int evaluate(const command_line *line, saved_model *m, int64_t batch) {
  objective aim;
  sample_set *set = &m->samples;
  int status = take_samples(line, m, &aim);
  if (status) return status;
  helio_logs *logs = NULL;
  if (!objective_compile(&aim, m->model, NULL)) {
    logs =
        helio_evaluate(m->model, sample_set_batches(set, set->test_x, set->test_y, batch, 0), .verbose = HELIO_QUIET);
  }
  if (!logs) return command_library_failure(line->path);
  const char *of = line->values[DATA] ? line->values[DATA] : m->recipe->name;
  print(&aim, logs, sample_set_count(set->test_x), of, line->values[JSON]);
  if (!isfinite(helio_logs_get(logs, "loss"))) {
    command_tell(line->path, "warning: the loss is no number: the model or the data have some that are none");
  }
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
        "It is evaluated on the test samples of its recipe or of a known set, or on a file: .npz with x_test and\n"
        "y_test, else x_val and y_val, else x and y, or .csv or .tsv with a column of labels. Bytes are scaled as in\n"
        "the training.",
    .operands = "FILE",
    .missing = SAVED_MODEL_MISSING,
    .options = options,
    .run = run_eval,
};
