/* SPDX-License-Identifier: Apache-2.0 */
/* Models as Keras' JSON: model.to_json(). */
#ifndef HI_ARCHITECTURE_H
#define HI_ARCHITECTURE_H

#include <jansson.h>

#include "data/safetensors.h"
#include "nn/layer.h"

/* Adds a model's JSON and its note to the metadata of a file that is to be written, for hi_architecture_of(). Fails for
 * models that have none, or that do not know their input, for which no variables could be made. */
helio_status hi_architecture_add(helio_layer *model, hi_safetensors_writer *writer);

/* The model of a file, made anew and without the file's weights, with the one reference that the user is given. NULL
 * with the error set, which names the file, also if there is none in it. */
helio_layer *hi_architecture_of(const hi_safetensors *file, const char *path);

/* architecture_write.c: the caller's; NULL with the error set. */
json_t *hi_model_to_json(const helio_layer *model);

/* architecture_read.c: a model with the one reference that the user is given; NULL with the error set. Keys that were
 * read may be taken out of the JSON. */
helio_layer *hi_model_from_json(json_t *json);

#endif
