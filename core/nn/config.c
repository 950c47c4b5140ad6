/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/config.h"

#include <stdlib.h>
#include <string.h>

#include "data/json.h"
#include "runtime/error.h"
#include "runtime/printable.h"

const hi_field hi_common_fields[] = {
    {"name", HI_FIELD_NAME, offsetof(hi_layer_common, name), NULL},
    {"trainable", HI_FIELD_NOT_FLAG, offsetof(hi_layer_common, not_trainable), NULL},
    {"dtype", HI_FIELD_TYPE, offsetof(hi_layer_common, type), NULL},
    {0},
};

const hi_field hi_input_fields[] = {
    {"batch_shape", HI_FIELD_BATCH_SHAPE, offsetof(hi_input_config, batch_shape), NULL},
    {"dtype", HI_FIELD_INPUT_TYPE, offsetof(hi_input_config, type), NULL},
    {"sparse", HI_FIELD_FIXED, 0, "false"},
    {"ragged", HI_FIELD_FIXED, 0, "false"},
    {"name", HI_FIELD_NAME, offsetof(hi_input_config, name), NULL},
    {"optional", HI_FIELD_FIXED, 0, "false"},
    {0},
};

/* ---- reading ---- */

static helio_status read_config(const hi_layer_kind *kind, const json_t *config, char *options) {
  const char *key;
  json_t *value;
  helio_status status = HELIO_OK;
  json_object_foreach((json_t *)config, key, value) {
    const hi_field *common = hi_field_of(hi_common_fields, key);
    const hi_field *field = common ? common : hi_field_of(kind->fields, key);
    status = field ? hi_field_read(field, key, value, common ? options + kind->common : options)
                   : hi_field_unknown(kind->fields, key);
    if (status) break;
  }
  for (int i = 0; !status && kind->required[i]; i++) {
    if (!json_object_get(config, kind->required[i])) {
      status = hi_fail(HELIO_INVALID_ARGUMENT, "the key '%s' is missing", kind->required[i]);
    }
  }
  if (status) hi_error_prefix("the config of a layer %s: ", kind->class_name);
  return status;
}

helio_layer *hi_layer_from_json(const char *class_name, const json_t *config) {
  const hi_layer_kind *kind = hi_layer_kind_of(class_name);
  if (!kind) return NULL;
  char *options = calloc(1, kind->options_size);
  if (!options) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a layer %s", kind->class_name);
    return NULL;
  }
  *(size_t *)(void *)options = kind->options_size;
  helio_status status = read_config(kind, config, options);
  helio_layer *layer = status ? NULL : hi_layer_new("helio_layer_from_config", kind, options);
  free(options);
  return layer;
}

helio_layer *helio_layer_from_config(const char *class_name, const char *text) {
  if (hi_enter(__func__)) return NULL;
  if (!class_name || !text) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the %s is NULL", class_name ? "config" : "class");
    return NULL;
  }
  if (!hi_layer_kind_of(class_name)) return NULL;
  json_error_t error; /* jansson itself limits the depth */
  json_t *config = hi_json_load(text, strlen(text), JSON_REJECT_DUPLICATES, &error);
  if (!config && !*error.text) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the config of a layer %s", class_name);
  } else if (!json_is_object(config)) {
    hi_make_printable(error.text);
    hi_fail(HELIO_INVALID_ARGUMENT, "the config of a layer %s is not a JSON object: %s", class_name,
            config ? "it is a list" : error.text);
  }
  helio_layer *layer = json_is_object(config) ? hi_layer_from_json(class_name, config) : NULL;
  json_decref(config);
  return layer;
}

/* ---- writing ---- */

json_t *hi_layer_to_json(const helio_layer *layer, const char *name) {
  hi_layer_common common = {.name = name, .type = layer->type, .not_trainable = layer->not_trainable};
  if (!common.type) common.type = HELIO_FLOAT32;
  if (!layer->kind->fields) {
    hi_fail(HELIO_NOT_SUPPORTED, "%s has no config", layer->title);
    return NULL;
  }
  json_t *config = json_object();
  helio_status status = config ? HELIO_OK : hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a config");
  if (!status) status = hi_fields_write(hi_common_fields, &common, config);
  if (!status) status = hi_fields_write(layer->kind->fields, layer->options, config);
  if (!status) return config;
  json_decref(config);
  return NULL;
}

char *hi_layer_config(const helio_layer *layer) {
  json_t *config = hi_layer_to_json(layer, layer->name);
  char *text = config ? hi_json_text(config) : NULL;
  if (!text) hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a config"); /* unless the error is set */
  json_decref(config);
  return text;
}
