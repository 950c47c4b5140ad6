/* SPDX-License-Identifier: Apache-2.0 */
#include "saved_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model_file.h"
#include "train_devices.h"

static int check_file(const command_line *line) {
  const char *file = line->operands[0];
  if (command_is_folder(file)) {
    return command_failure(line->path,
                           "%s is a folder, not a saved model; if it has checkpoints, 'helio train … --checkpoint %s "
                           "--resume --save FILE' goes on from the last one and writes a model",
                           file, file);
  }
  if (access(file, R_OK) != 0) return command_failure(line->path, "%s: %s", file, strerror(errno));
  if (!model_file_is_architecture(file)) return EXIT_SUCCESS;
  return command_failure(line->path,
                         "%s is an architecture without trained weights; 'helio train --model %s --data … --save FILE' "
                         "makes a saved model of it",
                         file, file);
}

int saved_model_open(saved_model *m, const command_line *line, const char *recipe_name, const char *device) {
  helio_strategy *strategy = NULL;
  *m = (saved_model){.recipe = recipe_name ? recipe_named(recipe_name) : NULL};
  int status = check_file(line);
  if (!status) status = devices_choose_one(device, line->path, &strategy);
  if (status) return status;
  HELIO_SCOPE(strategy) m->model = model_file_read(line->operands[0], line->path);
  if (!m->model) return EXIT_FAILURE;
  if (!m->recipe) m->recipe = model_record_recipe(m->model);
  if (helio_error_pending()) return command_library_failure(line->path);
  m->record = model_record_of(m->model, m->recipe);
  return EXIT_SUCCESS;
}

/* ---- samples ---- */

/* What the model was trained on, or others were, says nothing of it where there are samples for testing. */
static void keep_for_testing(sample_set *set) {
  if (!set->test_x) set->test_x = set->x, set->test_y = set->y;
  set->x = set->y = NULL;
}

int saved_model_take(saved_model *m, const char *data, saved_model_reader *read, const char *path, bool *of_recipe) {
  if (!data && !m->recipe) {
    return command_usage_error(
        path,
        "%s was trained by no recipe: --data gives it the samples of a file or of a known set, or "
        "--recipe NAME those of a recipe",
        helio_layer_name(m->model));
  }
  *of_recipe = m->recipe && (!data || command_is_folder(data) || (m->recipe->set && sample_file_has_lists(data)));
  int status = *of_recipe ? recipe_load(m->recipe, data, &m->samples, path) : read(&m->samples, data, m->model, path);
  if (status) return status;
  keep_for_testing(&m->samples);
  model_record_apply(&m->record, &m->samples, m->model, data ? data : m->recipe->set, path);
  return sample_set_suit(&m->samples, m->model, path);
}
