/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/config.h"

#include <stdlib.h>
#include <string.h>

#include "data/json.h"
#include "runtime/error.h"

/* The keys of all layers. */
static const hi_field common_fields[] = {
    {"name", HI_FIELD_NAME, offsetof(hi_layer_common, name), NULL},
    {"trainable", HI_FIELD_NOT_FLAG, offsetof(hi_layer_common, not_trainable), NULL},
    {"dtype", HI_FIELD_TYPE, offsetof(hi_layer_common, type), NULL},
    {0},
};

/* ---- reading ---- */

static helio_status read_config(const hi_layer_kind *kind, const json_t *config, char *options) {
  const char *key;
  json_t *value;
  helio_status status = HELIO_OK;
  json_object_foreach((json_t *)config, key, value) {
    const hi_field *common = hi_field_of(common_fields, key);
    const hi_field *field = common ? common : hi_field_of(kind->fields, key);
    status = hi_field_read(field, key, value, common ? options + kind->common : options);
    if (status) break;
  }
  if (status) hi_error_prefix("the config of a layer %s: ", kind->class_name);
  return status;
}

static helio_layer *layer_of(const hi_layer_kind *kind, const json_t *config) {
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
  const hi_layer_kind *kind = hi_layer_kind_of(class_name);
  if (!kind) return NULL;
  json_error_t error; /* jansson itself limits the depth */
  json_t *config = hi_json_load(text, strlen(text), JSON_REJECT_DUPLICATES, &error);
  if (!config && !*error.text) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the config of a layer %s", class_name);
  } else if (!json_is_object(config)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the config of a layer %s is not a JSON object: %s", class_name,
            config ? "it is a list" : error.text);
  }
  helio_layer *layer = json_is_object(config) ? layer_of(kind, config) : NULL;
  json_decref(config);
  return layer;
}

/* ---- writing ---- */

/* Not json_dumps(): what that returns is to be freed as the program around us told jansson to. */
static char *text_of(const json_t *json) {
  size_t length = json_dumpb(json, NULL, 0, 0);
  char *text = length ? malloc(length + 1) : NULL;
  if (!text) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a config");
    return NULL;
  }
  json_dumpb(json, text, length, 0);
  text[length] = 0;
  return text;
}

char *hi_layer_config(const helio_layer *layer) {
  hi_layer_common common = {.name = layer->name, .type = layer->type, .not_trainable = layer->not_trainable};
  if (!layer->kind->fields) {
    hi_fail(HELIO_NOT_SUPPORTED, "%s has no config", layer->title);
    return NULL;
  }
  json_t *config = json_object();
  helio_status status = config ? HELIO_OK : hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a config");
  if (!status) status = hi_fields_write(common_fields, &common, config);
  if (!status) status = hi_fields_write(layer->kind->fields, layer->options, config);
  char *text = status ? NULL : text_of(config);
  json_decref(config);
  return text;
}
