/* SPDX-License-Identifier: Apache-2.0 */
/* Models from files. */
#ifndef MODEL_FILE_H
#define MODEL_FILE_H

#include <helio/helio.h>

/* By its name, is it an architecture that Keras has written (.json), or a saved model (any other)? */
bool model_file_is_architecture(const char *file);

/* The model: of an architecture with weights drawn anew, of a saved model with its own. NULL after a
 * message that begins with `path`. */
helio_model *model_file_read(const char *file, const char *path);

#endif
