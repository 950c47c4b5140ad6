/* SPDX-License-Identifier: Apache-2.0 */
/* Models that hold their architecture: as Keras' JSON, and in files beside their weights. */
#include "nn/architecture.h"

#include <stdlib.h>
#include <string.h>

#include "data/json.h"
#include "nn/model.h"
#include "runtime/error.h"
#include "runtime/printable.h"

/* Of the metadata of safetensors files: keras.models.model_from_json() takes the value. */
static const char metadata_key[] = "keras_config";
static const char note_key[] = "helio_note";

/* jansson may need 75 bytes for each of a text, and limits how deep it nests. The largest models that come with Keras
 * have some 2 MB. */
enum { LARGEST_TEXT = 8 << 20 };

/* ---- text ---- */

/* A byte order mark, which programs of Windows put before a text in UTF-8, is no part of it. */
static helio_layer *model_of_text(const char *text) {
  static const char mark[] = "\xef\xbb\xbf";
  json_error_t error;
  if (strncmp(text, mark, sizeof mark - 1) == 0) text += sizeof mark - 1;
  size_t length = strlen(text);
  if (length > LARGEST_TEXT) {
    hi_fail(HELIO_NOT_SUPPORTED, "the JSON has %zu bytes, more than %d", length, LARGEST_TEXT);
    return NULL;
  }
  json_t *json = hi_json_load(text, length, JSON_REJECT_DUPLICATES, &error);
  if (!json && !*error.text) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the JSON of a model");
  } else if (!json) {
    hi_make_printable(error.text);
    hi_fail(HELIO_INVALID_ARGUMENT, "this is not the JSON of a model: line %d, column %d: %s", error.line, error.column,
            error.text);
  }
  helio_layer *model = json ? hi_model_from_json(json) : NULL;
  json_decref(json);
  return model;
}

static char *text_of_model(const helio_layer *model) {
  json_t *json = hi_model_to_json(model);
  char *text = json ? hi_json_text(json) : NULL;
  if (!text) hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the JSON of a model"); /* unless the error is set */
  json_decref(json);
  return text;
}

char *helio_model_to_json(helio_model *model) {
  return hi_enter(__func__) || !hi_model_usable(model) ? NULL : text_of_model(model);
}

helio_model *helio_model_from_json(const char *json) {
  if (hi_enter(__func__)) return NULL;
  if (json) return model_of_text(json);
  hi_fail(HELIO_INVALID_ARGUMENT, "the JSON is NULL");
  return NULL;
}

/* ---- notes ---- */

static helio_status set_note(helio_layer *model, const char *text) {
  char *copy = text ? strdup(text) : NULL;
  if (text && !copy) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a note of %zu bytes", strlen(text));
  free(model->model->note);
  model->model->note = copy;
  return HELIO_OK;
}

helio_status helio_model_set_note(helio_model *model, const char *text) {
  return hi_enter(__func__) || !hi_model_usable(model) ? helio_error_pending() : set_note(model, text);
}

const char *helio_model_note(const helio_model *model) {
  return model && model->model ? model->model->note : NULL;
}

/* ---- files ---- */

helio_status hi_architecture_add(helio_layer *model, hi_safetensors_writer *writer) {
  const hi_model *inside = model->model;
  if (model->kind == &hi_sequential_kind && inside->input_count == 0 && inside->first_input.rank == 0) {
    return hi_fail(HELIO_WRONG_STATE, "%s does not know the shape of its input: call it, or helio_model_build()",
                   model->title);
  }
  char *text = text_of_model(model);
  if (!text) return helio_error_pending();
  helio_status status = hi_safetensors_add_metadata(writer, metadata_key, text);
  free(text);
  if (!status && inside->note) status = hi_safetensors_add_metadata(writer, note_key, inside->note);
  return status;
}

helio_layer *hi_architecture_of(const hi_safetensors *file, const char *path) {
  const char *text = hi_safetensors_metadata(file, metadata_key);
  if (!text && hi_refuse_checkpoint(file, path)) return NULL;
  if (!text) {
    hi_fail(HELIO_BAD_DATA,
            "%s: there is no architecture in it (%s in the metadata): build the model by code and take the weights "
            "with helio_load_weights(), or write the file with helio_save_model()",
            path, metadata_key);
    return NULL;
  }
  helio_layer *model = model_of_text(text);
  if (!model) hi_error_prefix("%s: %s: ", path, metadata_key);
  if (!model || !set_note(model, hi_safetensors_metadata(file, note_key))) return model;
  helio_release(model);
  return NULL;
}

helio_status helio_save_model(helio_model *model, const char *path) {
  helio_status status = hi_enter(__func__);
  return status ? status : hi_model_save(model, path, true);
}

helio_model *helio_load_model(const char *path) {
  if (hi_enter(__func__)) return NULL;
  hi_safetensors *file = hi_safetensors_open_verified(path);
  if (!file) return NULL;
  helio_layer *model = hi_architecture_of(file, path);
  helio_status status = model ? hi_weights_load(model, file, path) : helio_error_pending();
  hi_safetensors_close(file);
  if (!status) return model;
  helio_release(model);
  return NULL;
}
