/* SPDX-License-Identifier: Apache-2.0 */
#include "model_record.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "command.h"
#include "output.h"

static const char recipe_key[] = "recipe", loss_key[] = "loss", bytes_key[] = "bytes_divided_by";

static json_t *read_note(const helio_model *model) {
  const char *note = helio_model_note(model);
  json_t *json = note ? json_loads(note, 0, NULL) : NULL;
  if (json_is_object(json)) return json;
  json_decref(json);
  return json_object();
}

const recipe *model_record_recipe(const helio_model *model) {
  json_t *note = read_note(model), *told = json_object_get(note, recipe_key);
  const char *name = json_string_value(told);
  const recipe *r = name ? recipe_named(name) : told ? NULL : recipe_of_model(model);
  json_decref(note);
  return r;
}

/* A loss that this version does not know is as good as none. */
static const char *known_loss(const char *name) {
  helio_loss *loss = name ? helio_loss_named(name) : NULL;
  if (name && !loss) helio_error_take(NULL);
  return loss ? helio_loss_name(loss) : NULL;
}

static void assume_recipe(model_record *record, const recipe *r, const helio_model *model) {
  bool pixels = r->set && helio_model_input_type(model, 0) == HELIO_FLOAT32;
  if (!record->loss) record->loss = r->objective.loss;
  if (pixels && record->bytes_divisor == 0) record->bytes_divisor = 255;
}

model_record model_record_of(const helio_model *model, const recipe *r) {
  json_t *note = read_note(model);
  double divisor = json_number_value(json_object_get(note, bytes_key));
  model_record record = {.loss = known_loss(json_string_value(json_object_get(note, loss_key))),
                         .bytes_divisor = isfinite(divisor) && divisor > 0 ? divisor : 0};
  json_decref(note);
  if (r) assume_recipe(&record, r, model);
  return record;
}

helio_status model_record_keep(helio_model *model, const recipe *r, const char *loss, const sample_set *set) {
  json_t *note = read_note(model);
  output_set(note, recipe_key, r ? output_text(r->name) : json_null());
  output_set(note, loss_key, output_text(loss));
  json_object_del(note, bytes_key); /* how other numbers were taken does not tell how bytes are */
  if (helio_array_type(set->x) == HELIO_UINT8) output_set(note, bytes_key, json_real(set->divisor ? set->divisor : 1));
  char *text = json_dumps(note, JSON_REAL_PRECISION(17));
  helio_status status = text ? helio_model_set_note(model, text) : HELIO_OUT_OF_MEMORY;
  free(text);
  json_decref(note);
  return status;
}

/* A model that learnt from numbers from 0 to 1 has its answers to bytes, too, and they are poor. */
void model_record_apply(const model_record *record, sample_set *set, const helio_model *model, const char *data,
                        const char *path) {
  if (!sample_set_has_bytes(set)) return;
  if (record->bytes_divisor != 0) {
    set->divisor = record->bytes_divisor == 1 ? 0 : record->bytes_divisor;
  } else if (set->divisor == 0 && !sample_set_model_rescales(model) &&
             helio_model_input_type(model, 0) == HELIO_FLOAT32) {
    command_tell(path,
                 "warning: %s has bytes, and the model does not tell how it takes them: they stay numbers from 0 to "
                 "255; if it was trained on numbers from 0 to 1, divide them by 255",
                 data);
  }
}
