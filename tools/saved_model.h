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

/* Says that samples are needed, and how to give them. The exit status. */
int saved_model_ask(const saved_model *m, const char *path);

#endif
