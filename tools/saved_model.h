/* SPDX-License-Identifier: Apache-2.0 */
/* A model of `helio train --save`, and what is known of where it comes from. */
#ifndef SAVED_MODEL_H
#define SAVED_MODEL_H

#include "command.h"
#include "lesson_files.h"
#include "recipes.h"

typedef struct saved_model {
  helio_model *model;
  const recipe *recipe; /* that it was trained by; NULL: none that is known */
  lesson lesson;
} saved_model;

/* Loads the file that the line names onto a device, NULL: the preferred one. The recipe is the one given, NULL: the one
 * that has the model's name. The exit status, after a message; the model is NULL then. */
int saved_model_open(saved_model *m, const command_line *line, const char *recipe_name, const char *device);

/* Takes samples as `read` finds them in a file of the user's own, or those of the recipe: of a folder, of its set's
 * file, or, where `data` is NULL, of where sets are looked for. Then the shape that the model takes. The exit status,
 * after a message; *of_recipe tells which it was. */
typedef int saved_model_reader(lesson *l, const char *data, const helio_model *model, const char *path);
int saved_model_take(saved_model *m, const char *data, saved_model_reader *read, const char *path, bool *of_recipe);

#endif
