/* SPDX-License-Identifier: Apache-2.0 */
/* Models from Keras' JSON: of Keras 3 and, where it differs, of Keras 2. A key is known, or it is an error. Not looked
 * at are build_config, which says again what follows from the inputs, and compile_config, which is about training. */
#include "nn/architecture_read.h"

#include <stdlib.h>
#include <string.h>

#include "nn/architecture.h"
#include "nn/config_forms.h"
#include "nn/model.h"
#include "runtime/error.h"
#include "runtime/nearest.h"
#include "tensor/pool.h"

static const char *const object_keys[] = {"module",  "class_name",    "config",           "registered_name",
                                          "name",    "inbound_nodes", "build_config",     "compile_config",
                                          "backend", "keras_version", "shared_object_id", NULL};
static const char *const chain_keys[] = {"name", "trainable", "dtype", "layers", "build_input_shape", NULL};
static const char *const graph_keys[] = {"name", "trainable", "layers", "input_layers", "output_layers", NULL};

helio_status hi_check_keys(const json_t *object, const char *const *known) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)object, key, value) {
    int i = 0;
    while (known[i] && strcmp(known[i], key) != 0) i++;
    if (!known[i]) return hi_key_unknown(key, known, i);
  }
  return HELIO_OK;
}

helio_status hi_add_calls(int64_t *calls, int64_t more) {
  *calls += more;
  if (*calls <= HI_MOST_LAYER_CALLS) return HELIO_OK;
  return hi_fail(HELIO_NOT_SUPPORTED, "a call of the model would be more than %d calls of layers", HI_MOST_LAYER_CALLS);
}

/* ---- objects ---- */

/* A functional model was a "Model" before Keras 2.4. */
static const char *const models[] = {"Sequential", "Functional", "Model"};
enum { MODELS = sizeof models / sizeof models[0] };

static bool is_model(const char *class_name) {
  int i = 0;
  while (i < MODELS && strcmp(models[i], class_name) != 0) i++;
  return i < MODELS;
}

static helio_status refuse_model(const char *class_name) {
  const char *near = hi_nearest(class_name, models, MODELS);
  if (near) return hi_fail(HELIO_NOT_SUPPORTED, "a model of class '%s'; did you mean '%s'?", class_name, near);
  return hi_fail(HELIO_NOT_SUPPORTED, "a model of class '%s' is not supported; Sequential and Functional ones are",
                 class_name);
}

/* Names and classes stand in messages, and names in those of variables. */
static bool is_plain(const json_t *value) {
  const char *text = json_string_value(value);
  size_t length = json_string_length(value);
  for (size_t i = 0; i < length; i++) {
    if ((unsigned char)text[i] < 32 || text[i] == 127) return false;
  }
  return length > 0 && length <= 255;
}

/* "keras", or a module that has only what it is called after: "keras.src.models.functional", "tf_keras.src.engine.…".
 */
static bool is_module_of_models(const char *module) {
  const char *last = strrchr(module, '.');
  bool inside = strncmp(module, "keras.", 6) == 0 || strncmp(module, "tf_keras.", 9) == 0;
  return strcmp(module, "keras") == 0 || (inside && strcmp(last, ".functional") == 0);
}

/* Is one of Keras' own layers and models meant, and not something else of that name: an operation, or the user's own?
 * Keras 2 wrote no modules. */
static helio_status check_origin(const json_t *object, const char *class_name) {
  const json_t *module = json_object_get(object, "module"), *name = json_object_get(object, "registered_name");
  bool model = is_model(class_name), good = !module || json_is_null(module);
  const char *place = json_string_value(module), *registered = json_string_value(name);
  if (place) good = model ? is_module_of_models(place) : strcmp(place, "keras.layers") == 0;
  if (place && strncmp(place, "keras.", 6) == 0 && strstr(place, ".ops")) {
    return hi_fail(HELIO_NOT_SUPPORTED,
                   "%s of keras.ops, as in x * 2 + 1, is no layer and cannot be read: make the model of layers alone, "
                   "such as Rescaling, Add or Activation",
                   class_name);
  }
  if (!good) {
    return hi_form_refuse(HELIO_NOT_SUPPORTED, model ? "'module' keras" : "'module' keras.layers", module);
  }
  if (!name || json_is_null(name) || (registered && strcmp(registered, class_name) == 0)) return HELIO_OK;
  return hi_form_refuse(HELIO_NOT_SUPPORTED, "'registered_name' null", name);
}

typedef struct opened {
  const char *class_name, *name;
  json_t *config;
} opened;

/* The name may stand beside the config, in it, or in both. */
static helio_status open_object(const json_t *object, opened *result) {
  const json_t *class_name = json_object_get(object, "class_name"), *outer = json_object_get(object, "name");
  json_t *config = json_object_get(object, "config");
  const json_t *inner = json_object_get(config, "name"), *name = inner ? inner : outer;
  if (!is_plain(class_name) || !json_is_object(config)) {
    return hi_form_refuse(HELIO_INVALID_ARGUMENT, "an object with class_name and config", object);
  }
  if (!is_plain(name)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "a layer %s has no 'name', or one that cannot be shown",
                   json_string_value(class_name));
  }
  *result = (opened){json_string_value(class_name), json_string_value(name), config};
  helio_status status = hi_check_keys(object, object_keys);
  if (!status) status = check_origin(object, result->class_name);
  if (!status && outer && !json_equal(outer, name)) {
    status = hi_form_refuse(HELIO_INVALID_ARGUMENT, "the 'name' that stands in its config", outer);
  }
  return status;
}

/* ---- sequential models ---- */

typedef struct chain {
  helio_layer *owner;
  hi_input_config input;
  int64_t calls;
} chain;

static helio_status take_layer(helio_layer *owner, const hi_read_layer *read) {
  for (int i = 0; i < owner->model->layer_count; i++) {
    if (strcmp(owner->model->names[i], read->name) != 0) continue;
    return hi_fail(HELIO_INVALID_ARGUMENT, "there are two layers '%s'", read->name);
  }
  helio_status status = helio_model_add(owner, read->layer);
  return status ? status : hi_rename_within(owner, read->layer, read->name);
}

static helio_status add_to_chain(hi_architecture *a, chain *c, json_t *object, bool first) {
  hi_read_layer read;
  helio_status status = hi_read_layer_from(a, object, &read);
  if (!status) status = hi_add_calls(&c->calls, read.calls);
  if (status) return status;
  if (first) c->input = read.input;
  if (read.layer) return take_layer(c->owner, &read);
  if (!first) return hi_fail(HELIO_INVALID_ARGUMENT, "layer '%s': an InputLayer stands behind others", read.name);
  c->owner->model->input_name = strdup(read.name);
  return c->owner->model->input_name ? HELIO_OK : hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a model");
}

/* A batch of a certain size is only shown, as in Keras. */
static helio_status build_chain(const chain *c) {
  hi_model *model = c->owner->model;
  if (model->layer_count == 0) return hi_fail(HELIO_NOT_SUPPORTED, "a Sequential without layers");
  if (c->input.batch_shape.rank == 0) return HELIO_OK;
  helio_status status = helio_model_build(c->owner, c->input.batch_shape);
  if (status) return status;
  if (c->input.type) model->input_types[0] = c->input.type;
  if (c->input.batch_shape.extent[0] != HI_ANY) model->first_input = c->input.batch_shape;
  return HELIO_OK;
}

/* Variables are made when all layers are there, and not with each of them anew. */
static helio_status read_chain(hi_architecture *a, const json_t *config, chain *c) {
  static const hi_field built = {"build_input_shape", HI_FIELD_BATCH_SHAPE, 0, NULL};
  const json_t *layers = json_object_get(config, "layers"), *shape = json_object_get(config, built.name);
  helio_status status = HELIO_OK;
  for (size_t i = 0; i < json_array_size(layers) && !status; i++) {
    status = add_to_chain(a, c, json_array_get(layers, i), i == 0);
  }
  if (!status && shape && c->input.batch_shape.rank == 0) {
    status = hi_field_read(&built, built.name, shape, &c->input.batch_shape);
  }
  return status ? status : build_chain(c);
}

static helio_layer *read_sequential(hi_architecture *a, const json_t *config, const hi_layer_common *common,
                                    int64_t *calls) {
  chain c = {.owner = helio_sequential(.name = common->name, .type = common->type)};
  if (!c.owner) return NULL;
  helio_status status = read_chain(a, config, &c);
  *calls = c.calls;
  if (!status) return c.owner;
  helio_release(c.owner);
  return NULL;
}

/* ---- models ---- */

/* What all models have in their configs. */
static helio_status read_common(const json_t *config, hi_layer_common *common) {
  helio_status status = HELIO_OK;
  for (const hi_field *field = hi_common_fields; field->name && !status; field++) {
    const json_t *value = json_object_get(config, field->name);
    if (value) status = hi_field_read(field, field->name, value, common);
  }
  if (status || json_is_array(json_object_get(config, "layers"))) return status;
  return hi_fail(HELIO_INVALID_ARGUMENT, "'layers' is missing or not a list");
}

/* With the user's reference. */
static helio_layer *read_model(hi_architecture *a, const opened *o, int64_t *calls) {
  hi_layer_common common = {0};
  bool sequential = strcmp(o->class_name, "Sequential") == 0;
  if (hi_check_keys(o->config, sequential ? chain_keys : graph_keys) || read_common(o->config, &common)) return NULL;
  if (a->nesting == HI_MOST_NESTING) {
    hi_fail(HELIO_NOT_SUPPORTED, "models stand in models more than %d deep", HI_MOST_NESTING);
    return NULL;
  }
  a->nesting++;
  helio_layer *model =
      sequential ? read_sequential(a, o->config, &common, calls) : hi_read_graph(a, o->config, common.name, calls);
  a->nesting--;
  if (model && common.not_trainable) helio_layer_set_trainable(model, false);
  return model;
}

/* The user's reference becomes the pool's. */
static helio_layer *into_pool(helio_layer *model) {
  if (!model) return NULL;
  atomic_store(&model->object.kept, 0);
  if (hi_pool_add(&model->object)) return model;
  hi_drop(model);
  return NULL;
}

/* ---- layers that stand in several models ---- */

typedef struct hi_shared_layer {
  json_int_t id;
  helio_layer *layer;
  int64_t calls;
} shared_layer;

static const shared_layer *find_shared(const hi_architecture *a, const json_t *id, const char *class_name) {
  for (int i = 0; json_is_integer(id) && i < a->shared_count; i++) {
    const shared_layer *one = &a->shared[i];
    if (one->id == json_integer_value(id) && strcmp(one->layer->kind->class_name, class_name) == 0) return one;
  }
  return NULL;
}

static helio_status note_shared(hi_architecture *a, const json_t *id, const hi_read_layer *read) {
  if (!json_is_integer(id)) return hi_form_refuse(HELIO_INVALID_ARGUMENT, "a number as 'shared_object_id'", id);
  if (a->shared_count == a->shared_room) {
    int room = a->shared_room ? a->shared_room * 2 : 16;
    shared_layer *shared = realloc(a->shared, (size_t)room * sizeof *shared);
    if (!shared) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a list of layers");
    a->shared = shared;
    a->shared_room = room;
  }
  a->shared[a->shared_count++] = (shared_layer){json_integer_value(id), read->layer, read->calls};
  return HELIO_OK;
}

/* ---- layers ---- */

/* In Keras 2 an InputLayer has its shape under this key, and any layer may have it; what stands first in a Sequential
 * had to where there was no InputLayer. */
static helio_status take_old_shape(json_t *config, helio_shape *shape) {
  static const hi_field old = {"batch_input_shape", HI_FIELD_BATCH_SHAPE, 0, NULL};
  const json_t *value = json_object_get(config, old.name);
  helio_status status = value ? hi_field_read(&old, old.name, value, shape) : HELIO_OK;
  json_object_del(config, old.name);
  return status;
}

static helio_status read_input(json_t *config, hi_input_config *input) {
  *input = (hi_input_config){.type = HELIO_FLOAT32};
  helio_status status = take_old_shape(config, &input->batch_shape);
  if (!status) status = hi_fields_read(hi_input_fields, config, input);
  if (status || input->batch_shape.rank > 0) return status;
  return hi_fail(HELIO_INVALID_ARGUMENT, "'batch_shape' is missing");
}

/* Keras' layers do not take their type from the model around them. The length of a sequence, which an Embedding of
 * Keras 2 may have, is that of its input. */
static helio_layer *read_plain(const opened *o, helio_shape *old_shape) {
  if (take_old_shape(o->config, old_shape)) return NULL;
  if (strcmp(o->class_name, "Embedding") == 0) json_object_del(o->config, "input_length");
  helio_layer *layer = hi_layer_from_json(o->class_name, o->config);
  if (layer && !layer->type) layer->type = HELIO_FLOAT32;
  return layer;
}

static helio_status read_by_class(hi_architecture *a, const json_t *object, const opened *o, hi_read_layer *result) {
  const json_t *id = json_object_get(object, "shared_object_id");
  const shared_layer *shared = find_shared(a, id, o->class_name);
  if (shared) {
    result->layer = shared->layer;
    result->calls = shared->calls;
    result->layer->named = false; /* it may have other names in other models */
    return HELIO_OK;
  }
  if (strcmp(o->class_name, "InputLayer") == 0) return read_input(o->config, &result->input);
  result->layer =
      is_model(o->class_name) ? into_pool(read_model(a, o, &result->calls)) : read_plain(o, &result->input.batch_shape);
  if (!result->layer) return helio_error_pending();
  result->calls++; /* its own: models of nothing but models take time as well */
  return id ? note_shared(a, id, result) : HELIO_OK;
}

helio_status hi_read_layer_from(hi_architecture *a, json_t *object, hi_read_layer *result) {
  opened o = {0};
  helio_status status = open_object(object, &o);
  *result = (hi_read_layer){.name = o.name, .nodes = json_object_get(object, "inbound_nodes")};
  if (!status && ++a->layers > HI_MOST_READ_LAYERS) {
    status = hi_fail(HELIO_NOT_SUPPORTED, "there are more than %d layers", HI_MOST_READ_LAYERS);
  }
  if (!status) status = read_by_class(a, object, &o, result);
  if (status && o.name) hi_error_prefix("layer '%s': ", o.name);
  return status;
}

helio_layer *hi_model_from_json(json_t *json) {
  hi_architecture a = {0};
  opened o = {0};
  int64_t calls;
  const json_t *class_name = json_object_get(json, "class_name");
  bool other = is_plain(class_name) && !is_model(json_string_value(class_name));
  helio_status status = other ? refuse_model(json_string_value(class_name)) : open_object(json, &o);
  helio_scope pool = helio_pool_enter();
  helio_layer *model = status ? NULL : read_model(&a, &o, &calls);
  helio_pool_leave(&pool);
  free(a.shared);
  return model;
}
