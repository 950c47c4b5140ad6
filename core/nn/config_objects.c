/* SPDX-License-Identifier: Apache-2.0 */
/* Names in configs, and objects that Keras has serialized: {"module", "class_name", "config", "registered_name"}. */
#include <string.h>

#include "data/json.h"
#include "nn/config_forms.h"
#include "nn/initializer.h"
#include "nn/layer_help.h"
#include "runtime/error.h"

/* ---- names ---- */

static helio_status read_name(const hi_field *field, const json_t *value, void *place) {
  (void)field;
  if (!json_is_null(value) && !json_is_string(value)) return hi_form_refuse(HELIO_INVALID_ARGUMENT, "a name", value);
  *(const char **)place = json_string_value(value); /* NULL of null */
  return HELIO_OK;
}

static json_t *write_name(const hi_field *field, const void *place) {
  const char *name = *(const char *const *)place;
  (void)field;
  return name ? json_string(name) : json_null();
}

static const char *const paddings[] = {[HELIO_VALID] = "valid", [HELIO_SAME] = "same", [HELIO_CAUSAL] = "causal"};

static helio_status read_padding(const hi_field *field, const json_t *value, void *place) {
  (void)field;
  for (helio_padding padding = HELIO_VALID; json_is_string(value) && padding <= HELIO_CAUSAL; padding++) {
    if (strcmp(json_string_value(value), paddings[padding]) != 0) continue;
    *(helio_padding *)place = padding;
    return HELIO_OK;
  }
  return hi_form_refuse(HELIO_INVALID_ARGUMENT, "\"valid\", \"same\" or \"causal\"", value);
}

static json_t *write_padding(const hi_field *field, const void *place) {
  (void)field;
  return json_string(paddings[*(const helio_padding *)place]);
}

static const char *const interpolations[] = {[HELIO_NEAREST] = "nearest", [HELIO_BILINEAR] = "bilinear"};

static helio_status read_interpolation(const hi_field *field, const json_t *value, void *place) {
  (void)field;
  for (helio_interpolation kind = HELIO_NEAREST; json_is_string(value) && kind <= HELIO_BILINEAR; kind++) {
    if (strcmp(json_string_value(value), interpolations[kind]) != 0) continue;
    *(helio_interpolation *)place = kind;
    return HELIO_OK;
  }
  return hi_form_refuse(HELIO_NOT_SUPPORTED, "\"nearest\" or \"bilinear\"", value);
}

static json_t *write_interpolation(const hi_field *field, const void *place) {
  (void)field;
  return json_string(interpolations[*(const helio_interpolation *)place]);
}

/* ---- what must be as it is ---- */

/* The value that ends at the next '|', which is passed over. */
static json_t *next_value(const char **only) {
  json_error_t error;
  size_t length = strcspn(*only, "|");
  json_t *value = hi_json_load(*only, length, JSON_DECODE_ANY, &error);
  if (!value) hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a config");
  *only += length + ((*only)[length] == '|');
  return value;
}

static helio_status read_fixed(const hi_field *field, const json_t *value, void *place) {
  bool same = false;
  (void)place;
  for (const char *only = field->only; *only && !same;) {
    json_t *good = next_value(&only);
    same = json_equal(good, value);
    json_decref(good);
  }
  char expected[64];
  snprintf(expected, sizeof expected, "%s", field->only);
  if (strchr(expected, '|')) *strchr(expected, '|') = 0;
  return same ? HELIO_OK : hi_form_refuse(HELIO_NOT_SUPPORTED, expected, value);
}

static json_t *write_fixed(const hi_field *field, const void *place) {
  const char *only = field->only;
  (void)place;
  return next_value(&only);
}

/* ---- objects ---- */

/* Class and config of a serialized object, or of a name alone, which has no config (NULL). */
static helio_status open_object(const json_t *value, const char **class_name, const json_t **config) {
  *class_name = json_string_value(json_is_string(value) ? value : json_object_get(value, "class_name"));
  *config = json_object_get(value, "config");
  if (*class_name && (!*config || json_is_object(*config))) return HELIO_OK;
  return hi_form_refuse(HELIO_INVALID_ARGUMENT, "a name or an object with class_name and config", value);
}

static json_t *serialized(const char *module, const char *class_name, const hi_field *fields, const void *base) {
  json_t *config = json_object();
  if (config && hi_fields_write(fields, base, config)) {
    json_decref(config);
    return NULL;
  }
  return json_pack("{s:s, s:s, s:o, s:n}", "module", module, "class_name", class_name, "config", config,
                   "registered_name");
}

/* A function of Keras is its name; one from elsewhere may have the same name. */
static const char *function_name(const json_t *value) {
  const char *class_name = json_string_value(json_object_get(value, "class_name"));
  const char *module = json_string_value(json_object_get(value, "module"));
  if (!class_name || strcmp(class_name, "function") != 0) return NULL;
  if (module && strcmp(module, "builtins") != 0 && strcmp(module, "keras.activations") != 0) return NULL;
  return json_string_value(json_object_get(value, "config"));
}

static helio_status read_activation(const hi_field *field, const json_t *value, void *place) {
  const char *name = json_is_string(value) ? json_string_value(value) : function_name(value);
  (void)field;
  if (json_is_null(value)) name = "linear";
  if (!name) return hi_form_refuse(HELIO_NOT_SUPPORTED, "the name of an activation", value);
  helio_activation activation = hi_activation_named(name);
  if (!activation) return helio_error_pending();
  *(helio_activation *)place = activation;
  return HELIO_OK;
}

static json_t *write_activation(const hi_field *field, const void *place) {
  (void)field;
  return json_string(hi_activation_name(*(const helio_activation *)place));
}

/* ---- types ---- */

static const hi_field type_fields[] = {{"name", HI_FIELD_NAME, 0, NULL}, {0}};

static helio_status read_type(const hi_field *field, const json_t *value, void *place) {
  const char *name = json_string_value(value), *class_name;
  const json_t *config;
  (void)field;
  if (json_is_object(value)) {
    helio_status status = open_object(value, &class_name, &config);
    if (!status && strcmp(class_name, "DTypePolicy") == 0) status = hi_fields_read(type_fields, config, &name);
    if (status) return status;
  }
  for (helio_type type = HELIO_FLOAT32; name && type <= HELIO_BFLOAT16; type++) {
    if (strcmp(name, helio_type_name(type)) != 0) continue;
    *(helio_type *)place = type;
    return HELIO_OK;
  }
  if (json_is_null(value)) return HELIO_OK;
  return hi_form_refuse(HELIO_NOT_SUPPORTED, "float32, float64, float16 or bfloat16", value);
}

static json_t *write_type(const hi_field *field, const void *place) {
  helio_type type = *(const helio_type *)place;
  (void)field;
  if (!type) return json_null();
  const char *name = helio_type_name(type);
  return serialized("keras", "DTypePolicy", type_fields, &name);
}

static helio_status read_input_type(const hi_field *field, const json_t *value, void *place) {
  const char *name = json_string_value(value);
  (void)field;
  for (helio_type type = HELIO_FLOAT32; name && hi_type_valid(type); type++) {
    if (strcmp(name, helio_type_name(type)) != 0) continue;
    *(helio_type *)place = type;
    return HELIO_OK;
  }
  return hi_form_refuse(HELIO_NOT_SUPPORTED, "the name of one of our types", value);
}

static json_t *write_input_type(const hi_field *field, const void *place) {
  (void)field;
  return json_string(helio_type_name(*(const helio_type *)place));
}

/* ---- initializers ---- */

static const hi_field constant_fields[] = {
    {"value", HI_FIELD_REAL, offsetof(helio_initializer, value), NULL},
    {0},
};
static const hi_field uniform_fields[] = {
    {"seed", HI_FIELD_SEED, offsetof(helio_initializer, seed), NULL},
    {"minval", HI_FIELD_REAL, offsetof(helio_initializer, low), NULL},
    {"maxval", HI_FIELD_REAL, offsetof(helio_initializer, high), NULL},
    {0},
};
static const hi_field normal_fields[] = {
    {"seed", HI_FIELD_SEED, offsetof(helio_initializer, seed), NULL},
    {"mean", HI_FIELD_REAL, offsetof(helio_initializer, mean), NULL},
    {"stddev", HI_FIELD_REAL, offsetof(helio_initializer, deviation), NULL},
    {0},
};
static const hi_field scaled_fields[] = {
    {"seed", HI_FIELD_SEED, offsetof(helio_initializer, seed), NULL},
    {"input_axes", HI_FIELD_FIXED, 0, "null"},
    {"output_axes", HI_FIELD_FIXED, 0, "null"},
    {0},
};
static const hi_field no_fields[] = {{0}};

static const hi_field *initializer_fields(helio_initializer_kind kind) {
  if (kind == HELIO_ZEROS || kind == HELIO_ONES) return no_fields;
  if (kind == HELIO_CONSTANT) return constant_fields;
  if (kind == HELIO_RANDOM_UNIFORM) return uniform_fields;
  return kind == HELIO_RANDOM_NORMAL || kind == HELIO_TRUNCATED_NORMAL ? normal_fields : scaled_fields;
}

/* Keras has short names for two of them. */
static helio_initializer_kind initializer_kind(const char *name) {
  if (strcmp(name, "uniform") == 0) return HELIO_RANDOM_UNIFORM;
  if (strcmp(name, "normal") == 0) return HELIO_RANDOM_NORMAL;
  return hi_initializer_named(name);
}

/* The numbers that the distributions have in Keras where none are given. */
static helio_initializer initializer_of(helio_initializer_kind kind) {
  bool normal = kind == HELIO_RANDOM_NORMAL || kind == HELIO_TRUNCATED_NORMAL, uniform = kind == HELIO_RANDOM_UNIFORM;
  return (helio_initializer){
      .kind = kind, .low = uniform ? -0.05 : 0, .high = uniform ? 0.05 : 0, .deviation = normal ? 0.05 : 0};
}

static helio_status read_initializer(const hi_field *field, const json_t *value, void *place) {
  const char *name;
  const json_t *config;
  (void)field;
  helio_status status = open_object(value, &name, &config);
  helio_initializer_kind kind = status ? (helio_initializer_kind)0 : initializer_kind(name);
  if (!status && !kind) status = hi_form_refuse(HELIO_NOT_SUPPORTED, "one of our initializers", value);
  if (status) return status;
  helio_initializer initializer = initializer_of(kind);
  if (config) status = hi_fields_read(initializer_fields(kind), config, &initializer);
  if (status) return status;
  if (kind == HELIO_RANDOM_UNIFORM && initializer.low == 0 && initializer.high == 0) {
    return hi_form_refuse(HELIO_NOT_SUPPORTED, "minval or maxval to differ from 0", value);
  }
  initializer.value += 0.0; /* not −0 */
  *(helio_initializer *)place = initializer;
  return HELIO_OK;
}

static json_t *write_initializer(const hi_field *field, const void *place) {
  helio_initializer initializer = *(const helio_initializer *)place;
  if (!initializer.kind) initializer.kind = hi_initializer_named(field->only);
  helio_initializer otherwise = initializer_of(initializer.kind);
  if (initializer.low == 0 && initializer.high == 0) {
    initializer.low = otherwise.low;
    initializer.high = otherwise.high;
  }
  initializer.deviation = hi_real_or(initializer.deviation, otherwise.deviation);
  return serialized("keras.initializers", hi_initializer_class(initializer.kind), initializer_fields(initializer.kind),
                    &initializer);
}

/* ---- regularizers ---- */

/* L1 and L2 are the first and the last of the fields of L1L2. */
static const hi_field regularizer_fields[] = {
    {"l1", HI_FIELD_REAL, offsetof(helio_regularizer, l1), NULL},
    {"l2", HI_FIELD_REAL, offsetof(helio_regularizer, l2), NULL},
    {0},
};
static const hi_field l1_fields[] = {{"l1", HI_FIELD_REAL, offsetof(helio_regularizer, l1), NULL}, {0}};

static const struct {
  const char *class_name, *name;
  const hi_field *fields;
  helio_regularizer otherwise;
} regularizers[] = {
    {"L1", "l1", l1_fields, {0.01, 0}},
    {"L2", "l2", &regularizer_fields[1], {0, 0.01}},
    {"L1L2", "l1_l2", regularizer_fields, {0, 0}},
};

static helio_status read_regularizer(const hi_field *field, const json_t *value, void *place) {
  const char *name;
  const json_t *config;
  (void)field;
  if (json_is_null(value)) return HELIO_OK;
  helio_status status = open_object(value, &name, &config);
  for (int i = 0; !status && i < 3; i++) {
    if (strcmp(name, regularizers[i].class_name) != 0 && strcmp(name, regularizers[i].name) != 0) continue;
    helio_regularizer regularizer = regularizers[i].otherwise;
    if (config) status = hi_fields_read(regularizers[i].fields, config, &regularizer);
    if (!status) *(helio_regularizer *)place = regularizer;
    return status;
  }
  return status ? status : hi_form_refuse(HELIO_NOT_SUPPORTED, "L1, L2 or L1L2", value);
}

static json_t *write_regularizer(const hi_field *field, const void *place) {
  const helio_regularizer *regularizer = place;
  int index = regularizer->l2 == 0 ? 0 : regularizer->l1 == 0 ? 1 : 2;
  (void)field;
  if (regularizer->l1 == 0 && regularizer->l2 == 0) return json_null();
  return serialized("keras.regularizers", regularizers[index].class_name, regularizers[index].fields, regularizer);
}

/* ---- forms ---- */

const hi_form hi_form_padding = {read_padding, write_padding};
const hi_form hi_form_interpolation = {read_interpolation, write_interpolation};
const hi_form hi_form_name = {read_name, write_name};
const hi_form hi_form_fixed = {read_fixed, write_fixed};
const hi_form hi_form_activation = {read_activation, write_activation};
const hi_form hi_form_type = {read_type, write_type};
const hi_form hi_form_input_type = {read_input_type, write_input_type};
const hi_form hi_form_initializer = {read_initializer, write_initializer};
const hi_form hi_form_regularizer = {read_regularizer, write_regularizer};
