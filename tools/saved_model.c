/* SPDX-License-Identifier: Apache-2.0 */
#include "saved_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train_devices.h"

static int check_line(const command_line *line) {
  if (line->operand_count == 0) {
    return command_usage_error(line->path, "which file? 'helio train RECIPE --save FILE' writes one");
  }
  if (line->operand_count > 1) {
    return command_usage_error(line->path, "one file at a time; there is '%s' too", line->operands[1]);
  }
  const char *file = line->operands[0];
  return access(file, R_OK) == 0 ? EXIT_SUCCESS : command_failure(line->path, "%s: %s", file, strerror(errno));
}

int saved_model_open(saved_model *m, const command_line *line, const char *recipe_name, const char *device) {
  helio_strategy *strategy = NULL;
  *m = (saved_model){.recipe = recipe_name ? recipe_named(recipe_name) : NULL};
  if (recipe_name && !m->recipe) return recipe_unknown(recipe_name, line->path);
  int status = check_line(line);
  if (!status) status = devices_choose(&(device_options){.devices = device}, line->path, &strategy);
  if (status) return status;
  HELIO_SCOPE(strategy) m->model = helio_load_model(line->operands[0]);
  if (!m->model) return command_library_failure(line->path);
  if (!m->recipe) m->recipe = recipe_named(helio_layer_name(m->model));
  return EXIT_SUCCESS;
}

int saved_model_ask(const saved_model *m, const char *path) {
  return command_usage_error(path, "%s was trained by no recipe: --data FILE gives it samples, or --recipe NAME",
                             helio_layer_name(m->model));
}
