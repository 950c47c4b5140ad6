/* SPDX-License-Identifier: Apache-2.0 */
/* Samples from files of the user's own. Each gives the exit status, after a message that begins with `path`. */
#ifndef LESSON_FILES_H
#define LESSON_FILES_H

#include "lesson.h"

/* Features and labels: an .npz file with x_train and y_train and, to validate, x_test and y_test, or with x and y; a
 * .csv or .tsv file, whose labels are the column label, class, target or y, else the last one; or a known set's name.
 */
int lesson_read(lesson *l, const char *data, const helio_model *model, const char *path);

/* Features alone, as the samples for testing: IDX, .npy, .npz (x_test, x, or what there is alone), .csv, .tsv. */
int lesson_read_inputs(lesson *l, const char *file, const char *path);

#endif
