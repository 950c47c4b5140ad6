/* SPDX-License-Identifier: Apache-2.0 */
/* Samples from files of the user's own. Each gives the exit status, after a message that begins with `path`. */
#ifndef SAMPLE_FILES_H
#define SAMPLE_FILES_H

#include "sample_set.h"

/* Features and labels: an .npz file with x_train and y_train, or x and y, and, to validate, x_test and y_test, or x_val
 * and y_val, which may also be all that there is; a .csv or .tsv file, whose labels are the column label, class, target
 * or y, in any capitals and the first of these that there is, else the last one; or a known set's name. */
int sample_set_read(sample_set *set, const char *data, const helio_model *model, const char *path);

/* Features alone, as the samples for testing: IDX, .npy, .npz (x_test, x_val, x, or what there is alone), .csv, .tsv,
 * or a known set's name. */
int sample_set_read_inputs(sample_set *set, const char *data, const helio_model *model, const char *path);

/* Is it an .npz file whose x are Python's lists, as Keras has sets of texts? Only the set's own reader makes arrays of
 * them. */
bool sample_file_has_lists(const char *file);

#endif
