/* SPDX-License-Identifier: Apache-2.0 */
/* helio summary: the layers of a model. */
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "model_file.h"
#include "recipes.h"

enum { DATA, JSON };

static const command_option options[] = {
    [DATA] = {"data", "DIR|FILE", NULL, "the recipe's samples, which determine the size of a vocabulary"},
    [JSON] = {"json", NULL, NULL, "print the architecture as Keras' model_from_json() takes it"},
    {0},
};

static int make_recipe(const command_line *line, const recipe *r, helio_model **model) {
  sample_set set = {0};
  int status = line->values[DATA] ? recipe_load(r, line->values[DATA], &set, line->path) : EXIT_SUCCESS;
  if (status) return status;
  *model = r->make_model(r->name, &set);
  return *model ? EXIT_SUCCESS : command_library_failure(line->path);
}

static int load_file(const command_line *line, const char *word, helio_model **model) {
  if (command_is_word(word)) return recipe_unknown(word, line->path);
  if (line->values[DATA]) return command_usage_error(line->path, "%s has its layers already: leave --data out", word);
  *model = model_file_read(word, line->path);
  return *model ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int print(const command_line *line, helio_model *model) {
  if (!line->values[JSON] && !helio_model_input_type(model, 0)) {
    return command_failure(line->path,
                           "%s says no shape of its input, from which the sizes of its layers follow: give the model a "
                           "keras.Input(shape=…) first, or train it, by which the data say it",
                           line->operands[0]);
  }
  char *json = line->values[JSON] ? helio_model_to_json(model) : NULL;
  if (json) puts(json);
  if (!line->values[JSON]) helio_model_summary(model);
  free(json);
  return helio_error_pending() ? command_library_failure(line->path) : EXIT_SUCCESS;
}

static int run_summary(const command_line *line) {
  helio_model *model = NULL;
  int status = EXIT_FAILURE;
  const recipe *r = recipe_named(line->operands[0]);
  HELIO_POOL {
    status = r ? make_recipe(line, r, &model) : load_file(line, line->operands[0], &model);
    if (!status) status = print(line, model);
    helio_release(model);
  }
  return status;
}

const command command_summary = {
    .name = "summary",
    .summary = "Lists the layers of a recipe's model or of a file",
    .description = "A file is a saved model (.safetensors) or an architecture that Keras has written (.json).",
    .operands = "RECIPE|FILE",
    .operand_words = RECIPE_WORDS,
    .missing = "which recipe or file? One is needed",
    .options = options,
    .run = run_summary,
};
