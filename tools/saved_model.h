/* SPDX-License-Identifier: Apache-2.0 */
/* A model of `helio train --save`, and what is known of where it comes from. */
#ifndef SAVED_MODEL_H
#define SAVED_MODEL_H

#include "command.h"
#include "model_record.h"
#include "recipes.h"
#include "sample_files.h"

/* What a command says that names no file. */
#define SAVED_MODEL_MISSING "which file? 'helio train RECIPE --save FILE' writes one"

typedef struct saved_model {
  helio_model *model;
  const recipe *recipe; /* that it was trained by; NULL: none that is known */
  model_record record;
  sample_set samples; /* to test it on, none to train on */
} saved_model;

/* Loads the file that the line names onto a device, NULL: the preferred one. The recipe is the one given, NULL: the one
 * that model_record_recipe() finds. The exit status, after a message; if there is a model then, it is the caller's all
 * the same. */
int saved_model_open(saved_model *m, const command_line *line, const char *recipe_name, const char *device);

typedef int saved_model_reader(sample_set *set, const char *data, const helio_model *model, const char *path);

/* Takes samples as `read` finds them in a file of the user's own, or those of the recipe: of a folder, of its set's
 * file, or, where `data` is NULL, of where sets are looked for. Then the shape that the model takes. The exit status,
 * after a message; *of_recipe tells which it was. */
int saved_model_take(saved_model *m, const char *data, saved_model_reader *read, const char *path, bool *of_recipe);

#endif
