/* SPDX-License-Identifier: Apache-2.0 */
/* helio predict: what a saved model says of each input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "goal.h"
#include "output.h"
#include "saved_model.h"

enum { RECIPE, DATA, COUNT, BATCH, DEVICE, JSON };

static const command_option options[] = {
    [RECIPE] = {"recipe", "NAME", RECIPE_WORDS,
                "take inputs as this recipe does; unless given, the one it was trained by"},
    [DATA] = {"data", "DIR|FILE", NULL, "where the recipe's samples are, a file of inputs, or a set's name"},
    [COUNT] = {"count", "N", NULL, "of the first N inputs only"},
    [BATCH] = {"batch", "COUNT", NULL, "samples of a batch (256)"},
    [DEVICE] = {"device", "NAME", NULL, "run on this device, not on the preferred one"},
    [JSON] = {"json", NULL, NULL, "print JSON"},
    {0},
};

/* ---- inputs ---- */

static int take_inputs(const command_line *line, saved_model *m, int64_t count) {
  lesson *l = &m->lesson;
  bool of_recipe = false;
  int status = saved_model_take(m, line->values[DATA], lesson_read_inputs, line->path, &of_recipe);
  if (status) return status;
  if (!l->test_x) l->test_x = l->x;
  if (count && count < lesson_count(l->test_x)) l->test_x = helio_array_part(l->test_x, 0, count);
  return l->test_x ? EXIT_SUCCESS : command_library_failure(line->path);
}

/* ---- answers ---- */

enum { VALUES, CLASSES, YES_OR_NO };

/* What the numbers of a sample are, by the model's last layer; −1 with the error pending. */
static int kind_of(helio_model *model, int64_t width) {
  char *activation = goal_activation(model);
  int kind = activation ? VALUES : -1;
  if (activation && strcmp(activation, "softmax") == 0) kind = CLASSES;
  if (activation && strcmp(activation, "sigmoid") == 0 && width == 1) kind = YES_OR_NO;
  free(activation);
  return kind;
}

typedef struct answer {
  int64_t class;
  double probability;
} answer;

static answer answer_of(const float *numbers, int64_t width, int kind) {
  answer a = {0, numbers[0]};
  if (kind == YES_OR_NO) return numbers[0] > 0.5f ? (answer){1, numbers[0]} : (answer){0, 1 - numbers[0]};
  for (int64_t i = 1; i < width; i++) {
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
  output_set(row, "class", json_integer(a.class));
  output_set(row, "probability", output_number(a.probability));
  return row;
}

static void print_row(int64_t index, const float *numbers, int64_t width, int kind) {
  answer a = answer_of(numbers, width, kind);
  printf("%5lld", (long long)index);
  if (kind != VALUES) printf("  %5lld  %11.4f", (long long)a.class, a.probability);
  for (int64_t i = 0; kind == VALUES && i < width; i++) printf("  %.6g", numbers[i]);
  printf("\n");
}

static void print(helio_array *answers, int kind, bool json) {
  int64_t rows = lesson_count(answers), width = rows ? helio_array_elements(answers) / rows : 0;
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

static int predict(const command_line *line, saved_model *m, int64_t batch, int64_t count) {
  lesson *l = &m->lesson;
  int status = take_inputs(line, m, count);
  if (status) return status;
  helio_array *answers = helio_predict(m->model, lesson_batches(l, l->test_x, NULL, batch, 0));
  answers = answers ? helio_array_cast(answers, HELIO_FLOAT32) : NULL;
  int kind = answers ? kind_of(m->model, helio_array_elements(answers) / lesson_count(answers)) : -1;
  if (kind < 0) return command_library_failure(line->path);
  print(answers, kind, line->values[JSON]);
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
    .summary = "Tells the class of each input, by a saved model",
    .description =
        "Inputs are those of a file (IDX, .npy, .npz with x_test or x, .csv, .tsv), the samples for testing of a\n"
        "known set, or of the recipe that the model was trained by. Bytes of a file are taken for pixels, that is\n"
        "divided by 255, where a recipe's model takes pixels, else as they are. Of a model that gives no\n"
        "probabilities the values are printed.",
    .operands = "FILE",
    .options = options,
    .run = run_predict,
};
