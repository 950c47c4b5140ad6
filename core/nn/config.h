/* SPDX-License-Identifier: Apache-2.0 */
/* Layers as Keras' JSON configs. Read by helio_layer_from_config(). */
#ifndef HI_CONFIG_H
#define HI_CONFIG_H

#include <jansson.h>

#include "nn/layer.h"

/* What Keras' get_config() gives for such a layer, to be freed with free(). NULL with the error set. */
char *hi_layer_config(const helio_layer *layer);

/* The same as JSON, which is the caller's, under the name that the layer has in a model. NULL with the error set. */
json_t *hi_layer_to_json(const helio_layer *layer, const char *name);

/* helio_layer_from_config() of a config that is JSON already, an object. */
helio_layer *hi_layer_from_json(const char *class_name, const json_t *config);

/* The keys of all layers, which hi_layer_common has. */
extern const hi_field hi_common_fields[];

/* Those of an InputLayer, which is a layer only there. */
typedef struct hi_input_config {
  helio_shape batch_shape;
  helio_type type;
  const char *name;
} hi_input_config;
extern const hi_field hi_input_fields[];

/* ---- config_fields.c: options one by one ---- */

/* NULL if there is none of that name. */
const hi_field *hi_field_of(const hi_field *fields, const char *name);

/* Reads the value of one key into the options at `base`, for which strings are borrowed. Fails, with the key, for a
 * value that is wrong or not supported. */
helio_status hi_field_read(const hi_field *field, const char *key, const json_t *value, void *base);

/* "the key '…' is not known", with the nearest of those that are. */
helio_status hi_key_unknown(const char *key, const char *const *known, int count);
helio_status hi_field_unknown(const hi_field *fields, const char *key);

/* Reads all keys of a config. */
helio_status hi_fields_read(const hi_field *fields, const json_t *config, void *base);

/* Adds all fields of the options at `base` to a config. */
helio_status hi_fields_write(const hi_field *fields, const void *base, json_t *config);

#endif
