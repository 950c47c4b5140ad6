/* SPDX-License-Identifier: Apache-2.0 */
/* Models from files. */
#ifndef MODEL_FILE_H
#define MODEL_FILE_H

#include <helio/helio.h>

/* An architecture that Keras has written (.json), with weights drawn anew, or a saved model (any other name). NULL
 * after a message that begins with `path`. */
helio_model *model_file_read(const char *file, const char *path);

#endif
