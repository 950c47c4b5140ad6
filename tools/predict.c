/* SPDX-License-Identifier: Apache-2.0 */
/* helio predict: what a saved model says of each input. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "objective.h"
#include "output.h"
#include "saved_model.h"

enum { RECIPE, DATA, COUNT, BATCH, DEVICE, JSON };

static const command_option options[] = {
    [RECIPE] = {"recipe", "NAME", RECIPE_WORDS,
                "take inputs as this recipe does (default: the one that trained the model)"},
    [DATA] = {"data", "DIR|FILE", NULL, "folder of the recipe's samples, a file of inputs, or a known set"},
    [COUNT] = {"count", "COUNT", NULL, "the first COUNT inputs only"},
    [BATCH] = {"batch", "COUNT", NULL, "batch size (default: 256)"},
    [DEVICE] = {"device", "NAME", NULL, "run on this device instead of the preferred one"},
    [JSON] = {"json", NULL, NULL, "print JSON"},
    {0},
};

/* ---- inputs ---- */

static int take_inputs(const command_line *line, saved_model *m, int64_t count) {
  sample_set *set = &m->samples;
  bool of_recipe = false;
  int status = saved_model_take(m, line->values[DATA], sample_set_read_inputs, line->path, &of_recipe);
  if (status) return status;
  if (count && count < sample_set_count(set->test_x)) set->test_x = helio_array_part(set->test_x, 0, count);
  return set->test_x ? EXIT_SUCCESS : command_library_failure(line->path);
}

/* ---- answers ---- */

enum { VALUES, CLASSES, YES_OR_NO };

static int64_t width_of(const helio_array *answers) {
  return sample_set_count(answers) ? helio_array_elements(answers) / sample_set_count(answers) : 0;
}

/* Where there are classes at several places of a sample, it has none itself, in whatever shape they come. */
static bool is_one_choice(const helio_array *answers) {
  const float *numbers = helio_array_data(answers);
  double sum = 0;
  for (int64_t i = 0; i < width_of(answers); i++) sum += (double)numbers[i];
  return helio_array_shape(answers).rank == 2 &&
         !(fabs(sum - 1) > 1e-3); /* also where there is none that is a number */
}

/* What the numbers of a sample are, by the model's last layer; −1 with the error pending. */
static int kind_of(helio_model *model, const helio_array *answers) {
  char *activation = objective_activation(model);
  int kind = activation ? VALUES : -1;
  if (activation && strcmp(activation, "softmax") == 0 && is_one_choice(answers)) kind = CLASSES;
  if (activation && strcmp(activation, "sigmoid") == 0 && width_of(answers) == 1) kind = YES_OR_NO;
  free(activation);
  return kind;
}

typedef struct answer {
  int64_t class; /* −1: none, where there is a number that is none */
  double probability;
} answer;

static answer answer_of(const float *numbers, int64_t width, int kind) {
  answer a = {0, numbers[0]};
  if (kind == YES_OR_NO && !isnan(numbers[0])) {
    return numbers[0] > 0.5f ? (answer){1, numbers[0]} : (answer){0, 1 - numbers[0]};
  }
  for (int64_t i = 0; i < width; i++) {
    if (isnan(numbers[i])) return (answer){-1, NAN};
    if (numbers[i] > a.probability) a = (answer){i, numbers[i]};
  }
  return a;
}

static json_t *row_json(const float *numbers, int64_t width, int kind) {
  json_t *row = json_object();
  if (kind == VALUES) {
    json_t *values = json_array();
    for (int64_t i = 0; i < width; i++) output_append(values, output_number(numbers[i]));
    output_set(row, "values", values);
    return row;
  }
  answer a = answer_of(numbers, width, kind);
  output_set(row, "class", a.class < 0 ? json_null() : json_integer(a.class));
  output_set(row, "probability", output_number(a.probability));
  return row;
}

static void print_row(int64_t index, const float *numbers, int64_t width, int kind) {
  answer a = answer_of(numbers, width, kind);
  printf("%5lld", (long long)index);
  if (kind != VALUES && a.class < 0) printf("  %5s  %11s", "-", "-");
  if (kind != VALUES && a.class >= 0) printf("  %5lld  %11.4f", (long long)a.class, a.probability);
  for (int64_t i = 0; kind == VALUES && i < width; i++) printf("  %.6g", output_unsigned_nan(numbers[i]));
  printf("\n");
}

static void print(helio_array *answers, int kind, bool json) {
  int64_t rows = sample_set_count(answers), width = width_of(answers);
  const float *numbers = helio_array_data(answers);
  json_t *list = json ? json_array() : NULL;
  if (!json) puts(kind == VALUES ? "input  value" : "input  class  probability");
  for (int64_t i = 0; i < rows; i++, numbers += width) {
    if (json) {
      output_append(list, row_json(numbers, width, kind));
    } else {
      print_row(i, numbers, width, kind);
    }
  }
  if (json) output_json(list);
}

static void warn_if_not_finite(const helio_array *answers, const char *path) {
  const float *numbers = helio_array_data(answers);
  for (int64_t i = 0; i < helio_array_elements(answers); i++) {
    if (isfinite(numbers[i])) continue;
    command_tell(path, "warning: some answers are no numbers: the model or the data have some that are none");
    return;
  }
}

static int predict(const command_line *line, saved_model *m, int64_t batch, int64_t count) {
  sample_set *set = &m->samples;
  int status = take_inputs(line, m, count);
  if (status) return status;
  helio_array *answers = helio_predict(m->model, sample_set_batches(set, set->test_x, NULL, batch, 0));
  answers = answers ? helio_array_cast(answers, HELIO_FLOAT32) : NULL;
  int kind = answers ? kind_of(m->model, answers) : -1;
  if (kind < 0) return command_library_failure(line->path);
  print(answers, kind, line->values[JSON]);
  warn_if_not_finite(answers, line->path);
  return EXIT_SUCCESS;
}

static int run_predict(const command_line *line) {
  int64_t batch = 256, count = 0;
  int status = command_integer(line, options, BATCH, 1, 1000000000, &batch);
  if (!status) status = command_integer(line, options, COUNT, 1, INT64_MAX, &count);
  if (status) return status;
  HELIO_POOL {
    saved_model m;
    status = saved_model_open(&m, line, line->values[RECIPE], line->values[DEVICE]);
    if (!status) status = predict(line, &m, batch, count);
    helio_release(m.model);
  }
  return status;
}

const command command_predict = {
    .name = "predict",
    .summary = "Predicts the class of each input with a saved model",
    .description =
        "Inputs are those of a file (IDX, .npy, .npz with x_test, x_val or x, .csv, .tsv), or the test samples of a\n"
        "known set or of the model's recipe. Bytes are scaled as in the training. If the model gives no\n"
        "probabilities, or several classes for each input, the values are printed.",
    .operands = "FILE",
    .missing = SAVED_MODEL_MISSING,
    .options = options,
    .run = run_predict,
};
