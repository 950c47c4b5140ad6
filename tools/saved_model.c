/* SPDX-License-Identifier: Apache-2.0 */
#include "saved_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train_devices.h"

static bool is_folder(const char *name) {
  struct stat about;
  return stat(name, &about) == 0 && S_ISDIR(about.st_mode);
}

static int check_line(const command_line *line) {
  if (line->operand_count == 0) {
    return command_usage_error(line->path, "which file? 'helio train RECIPE --save FILE' writes one");
  }
  if (line->operand_count > 1) {
    return command_usage_error(line->path, "one file at a time; there is '%s' too", line->operands[1]);
  }
  const char *file = line->operands[0];
  if (is_folder(file)) {
    return command_failure(line->path,
                           "%s is a folder, not a saved model; if it has checkpoints, 'helio train … --checkpoint %s "
                           "--resume --save FILE' goes on from the last one and writes a model",
                           file, file);
  }
  return access(file, R_OK) == 0 ? EXIT_SUCCESS : command_failure(line->path, "%s: %s", file, strerror(errno));
}

int saved_model_open(saved_model *m, const command_line *line, const char *recipe_name, const char *device) {
  helio_strategy *strategy = NULL;
  *m = (saved_model){.recipe = recipe_name ? recipe_named(recipe_name) : NULL};
  int status = check_line(line);
  if (!status) status = devices_choose_one(device, line->path, &strategy);
  if (status) return status;
  HELIO_SCOPE(strategy) m->model = helio_load_model(line->operands[0]);
  if (!m->model) return command_library_failure(line->path);
  if (!m->recipe) m->recipe = recipe_of_model(m->model);
  return helio_error_pending() ? command_library_failure(line->path) : EXIT_SUCCESS;
}

/* ---- samples ---- */

/* Bytes are pixels where the recipe has pixels; other numbers are taken as they are. */
static void scale_pixels(saved_model *m) {
  const helio_array *x = m->lesson.test_x ? m->lesson.test_x : m->lesson.x;
  bool pixels = m->recipe && m->recipe->set && helio_model_input_type(m->model, 0) == HELIO_FLOAT32;
  if (pixels && helio_array_type(x) == HELIO_UINT8) m->lesson.divisor = 255;
}

int saved_model_take(saved_model *m, const char *data, saved_model_reader *read, const char *path, bool *of_recipe) {
  if (!data && !m->recipe) {
    return command_usage_error(path, "%s was trained by no recipe: --data FILE gives it samples, or --recipe NAME",
                               helio_layer_name(m->model));
  }
  *of_recipe = m->recipe && (!data || is_folder(data) || (m->recipe->set && lesson_file_has_lists(data)));
  int status = *of_recipe ? recipe_load(m->recipe, data, &m->lesson, path) : read(&m->lesson, data, m->model, path);
  if (!status && !*of_recipe) scale_pixels(m);
  return status ? status : lesson_suit(&m->lesson, m->model, path);
}
