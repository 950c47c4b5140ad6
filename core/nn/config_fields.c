/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "data/json.h"
#include "nn/config_forms.h"
#include "runtime/error.h"
#include "runtime/nearest.h"

static const hi_form *const forms[] = {
    [HI_FIELD_INT] = &hi_form_int,
    [HI_FIELD_INT64] = &hi_form_int64,
    [HI_FIELD_REAL] = &hi_form_real,
    [HI_FIELD_FLAG] = &hi_form_flag,
    [HI_FIELD_NOT_FLAG] = &hi_form_flag,
    [HI_FIELD_PAIR] = &hi_form_pair,
    [HI_FIELD_PADDING] = &hi_form_padding,
    [HI_FIELD_INTERPOLATION] = &hi_form_interpolation,
    [HI_FIELD_ACTIVATION] = &hi_form_activation,
    [HI_FIELD_INITIALIZER] = &hi_form_initializer,
    [HI_FIELD_REGULARIZER] = &hi_form_regularizer,
    [HI_FIELD_SHAPE] = &hi_form_shape,
    [HI_FIELD_AXES] = &hi_form_axes,
    [HI_FIELD_SEED] = &hi_form_seed,
    [HI_FIELD_BORDERS] = &hi_form_borders,
    [HI_FIELD_NAME] = &hi_form_name,
    [HI_FIELD_TYPE] = &hi_form_type,
    [HI_FIELD_INPUT_TYPE] = &hi_form_input_type,
    [HI_FIELD_BATCH_SHAPE] = &hi_form_batch_shape,
    [HI_FIELD_FIXED] = &hi_form_fixed,
};

helio_status hi_form_refuse(helio_status status, const char *expected, const json_t *value) {
  char text[100] = "";
  size_t length = json_dumpb(value, text, sizeof text - 1, JSON_ENCODE_ANY | JSON_COMPACT);
  return hi_fail(status, "expected %s, got %s%s", expected, text, length >= sizeof text ? "…" : "");
}

const hi_field *hi_field_of(const hi_field *fields, const char *name) {
  for (; fields->name; fields++) {
    if (strcmp(fields->name, name) == 0) return fields;
  }
  return NULL;
}

helio_status hi_key_unknown(const char *key, const char *const *known, int count) {
  char shown[HI_SHOWN];
  const char *nearest = hi_nearest(key, known, count);
  return hi_fail(HELIO_NOT_SUPPORTED, "the key '%s' is not known%s%s%s", hi_shown(key, shown),
                 nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

helio_status hi_field_unknown(const hi_field *fields, const char *key) {
  enum { MOST_FIELDS = 64 };
  const char *known[MOST_FIELDS];
  int count = 0;
  for (; fields[count].name && count < MOST_FIELDS; count++) known[count] = fields[count].name;
  return hi_key_unknown(key, known, count);
}

helio_status hi_field_read(const hi_field *field, const char *key, const json_t *value, void *base) {
  helio_status status = forms[field->kind]->read(field, value, (char *)base + field->offset);
  if (status) hi_error_prefix("'%s': ", key);
  return status;
}

helio_status hi_fields_read(const hi_field *fields, const json_t *config, void *base) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)config, key, value) {
    const hi_field *field = hi_field_of(fields, key);
    helio_status status = field ? hi_field_read(field, key, value, base) : hi_field_unknown(fields, key);
    if (status) return status;
  }
  return HELIO_OK;
}

helio_status hi_fields_write(const hi_field *fields, const void *base, json_t *config) {
  for (; fields->name; fields++) {
    json_t *value = forms[fields->kind]->write(fields, (const char *)base + fields->offset);
    if (!value && helio_error_pending()) return helio_error_pending();
    if (json_object_set_new(config, fields->name, value)) {
      return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a config");
    }
  }
  return HELIO_OK;
}
