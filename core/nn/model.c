/* SPDX-License-Identifier: Apache-2.0 */
/* What all models share, sequential models, and those of the user's own. */
#include "nn/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/layer_help.h"
#include "ops/options.h"
#include "ops/tape.h"
#include "runtime/error.h"
#include "runtime/progress.h"
#include "tensor/pool.h"

/* ---- life ---- */

helio_layer *hi_model_begin(const hi_layer_kind *kind, const char *name, helio_type type) {
  if (type && !hi_type_is_float(type)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "a model cannot be of type %s", helio_type_name(type));
    return NULL;
  }
  helio_layer *owner = hi_layer_begin(kind, name);
  if (!owner) return NULL;
  owner->model = calloc(1, sizeof *owner->model);
  if (!owner->model) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a model");
    hi_drop(owner);
    return NULL;
  }
  pthread_mutex_init(&owner->model->lock, NULL);
  owner->model->scope = hi_context_now().replicas;
  if (owner->model->scope) hi_hold(owner->model->scope);
  owner->type = type;
  hi_census_rename(&owner->object, "a model");
  atomic_store(&owner->object.kept, 1); /* the user's, to be given back by helio_release() */
  return owner;
}

void hi_model_free(hi_model *model) {
  if (!model) return;
  hi_functional_free(model);
  hi_drop(model->compiled);
  hi_drop(model->scope);
  for (int i = 0; i < model->layer_count; i++) {
    hi_drop(model->layers[i]);
    free(model->names[i]);
  }
  free(model->layers);
  free(model->names);
  free(model->input_shapes);
  free(model->input_types);
  free(model->input_name);
  free(model->note);
  free((void *)model->weights.at);
  free((void *)model->trainable.at);
  free((void *)model->non_trainable.at);
  pthread_mutex_destroy(&model->lock);
  free(model);
}

/* ---- layers and their names ---- */

static int find_name(const hi_model *model, const char *name) {
  for (int i = 0; i < model->layer_count; i++) {
    if (strcmp(model->names[i], name) == 0) return i;
  }
  return -1;
}

const char *hi_name_within(const hi_model *model, const helio_layer *layer) {
  for (int i = 0; i < model->layer_count; i++) {
    if (model->layers[i] == layer) return model->names[i];
  }
  return hi_layer_label(layer);
}

/* The name that the layer has, or has not yet: then the first of "dense", "dense_1", … that is free. */
static char *name_for(const hi_model *model, const helio_layer *layer) {
  const char *base = layer->named ? layer->name : layer->kind->base_name;
  char *name = NULL;
  if (layer->name && find_name(model, layer->name) < 0) return strdup(layer->name);
  if (layer->named) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the model has a layer '%s' already; names must differ", layer->name);
    return NULL;
  }
  if (find_name(model, base) < 0) return strdup(base);
  for (int i = 1; i <= model->layer_count; i++) {
    if (asprintf(&name, "%s_%d", base, i) < 0) return NULL;
    if (find_name(model, name) < 0) break;
    free(name);
    name = NULL;
  }
  return name;
}

helio_status hi_rename_within(helio_layer *owner, const helio_layer *layer, const char *name) {
  hi_model *model = owner->model;
  int i = 0;
  while (model->layers[i] != layer) i++;
  if (strcmp(model->names[i], name) == 0) return HELIO_OK;
  char *copy = strdup(name);
  if (!copy) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of a layer");
  free(model->names[i]);
  model->names[i] = copy;
  return HELIO_OK;
}

static bool make_room(hi_model *model) {
  if (model->layer_count < model->room) return true;
  int room = model->room ? model->room * 2 : 16;
  helio_layer **layers = realloc(model->layers, (size_t)room * sizeof *layers);
  if (layers) model->layers = layers;
  char **names = layers ? realloc(model->names, (size_t)room * sizeof *names) : NULL;
  if (names) model->names = names;
  if (names) model->room = room;
  return names != NULL;
}

static bool contains(const helio_layer *layer, const helio_layer *other) {
  bool found = layer == other;
  for (int i = 0; layer->model && i < layer->model->layer_count && !found; i++) {
    found = contains(layer->model->layers[i], other);
  }
  return found;
}

/* The model's type is that of all layers inside that have none. */
static void give_type(helio_layer *layer, helio_type type) {
  if (layer->type || atomic_load(&layer->built)) return;
  layer->type = type;
  for (int i = 0; layer->model && i < layer->model->layer_count; i++) give_type(layer->model->layers[i], type);
}

helio_status hi_model_take(helio_layer *owner, helio_layer *layer) {
  hi_model *model = owner->model;
  if (contains(layer, owner)) return hi_fail(HELIO_INVALID_ARGUMENT, "%s cannot stand in itself", owner->title);
  for (int i = 0; i < model->layer_count; i++) {
    if (model->layers[i] == layer) {
      return hi_fail(HELIO_INVALID_ARGUMENT, "%s stands in the model already", layer->title);
    }
  }
  char *name = make_room(model) ? name_for(model, layer) : NULL;
  if (!name) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for one more layer");
  helio_status status = layer->name ? HELIO_OK : hi_layer_set_name(layer, name);
  if (status) {
    free(name);
    return status;
  }
  give_type(layer, owner->type);
  hi_hold(layer);
  model->layers[model->layer_count] = layer;
  model->names[model->layer_count++] = name;
  hi_variables_changed();
  return HELIO_OK;
}

bool hi_model_usable(const helio_layer *model) {
  if (model && model->model) return true;
  hi_fail(HELIO_INVALID_ARGUMENT, model ? "%s is a layer, not a model" : "the model is NULL",
          model ? model->title : "");
  return false;
}

bool hi_model_ready(const helio_layer *owner) {
  if (!hi_model_usable(owner)) return false;
  if (owner->kind == &hi_custom_kind && atomic_load(&owner->built)) return true; /* what was not called has none */
  if (owner->model->layer_count == 0) {
    hi_fail(HELIO_WRONG_STATE, "%s has no layers", owner->title);
    return false;
  }
  bool ready = true;
  for (int i = 0; i < owner->model->layer_count && ready; i++) {
    const helio_layer *layer = owner->model->layers[i];
    ready = layer->model ? hi_model_ready(layer) : atomic_load(&layer->built);
  }
  if (!ready && !helio_error_pending()) {
    hi_fail(HELIO_WRONG_STATE,
            "%s has no variables yet: it was given no input shape, so it makes them at its first call (or by "
            "helio_model_build)",
            owner->title);
  }
  return ready;
}

int helio_model_layer_count(const helio_model *model) {
  return model && model->model ? model->model->layer_count : 0;
}

helio_layer *helio_model_layer(const helio_model *model, int index) {
  if (hi_enter(__func__) || !hi_model_usable(model)) return NULL;
  if (index >= 0 && index < model->model->layer_count) return model->model->layers[index];
  hi_fail(HELIO_INVALID_ARGUMENT, "%s has %d layers, no number %d", model->title, model->model->layer_count, index);
  return NULL;
}

helio_layer *helio_model_layer_named(const helio_model *model, const char *name) {
  if (hi_enter(__func__) || !hi_model_usable(model)) return NULL;
  int index = name ? find_name(model->model, name) : -1;
  if (index >= 0) return model->model->layers[index];
  hi_fail(HELIO_INVALID_ARGUMENT, "%s has no layer '%s'", model->title, name ? name : "(NULL)");
  return NULL;
}

/* ---- sequential ---- */

/* From the model's input on through all layers, building them. */
static helio_status build_chain(helio_layer *owner) {
  helio_shape shape = owner->model->input_shapes[0], next;
  for (int i = 0; i < owner->model->layer_count; i++) {
    helio_layer *layer = owner->model->layers[i];
    helio_status status = hi_layer_build(layer, &shape, 1);
    if (!status) status = hi_layer_shape(layer, &shape, 1, &next);
    if (status) return status;
    shape = next;
  }
  owner->output_shape = shape;
  atomic_store(&owner->built, true);
  return HELIO_OK;
}

static helio_status know_input(helio_layer *owner, const helio_shape *batch, helio_type type) {
  hi_model *model = owner->model;
  free(model->input_shapes);
  free(model->input_types);
  model->input_shapes = malloc(sizeof *model->input_shapes);
  model->input_types = malloc(sizeof *model->input_types);
  if (!model->input_shapes || !model->input_types) {
    model->input_count = 0;
    return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a model");
  }
  model->input_shapes[0] = *batch;
  model->input_types[0] = type;
  model->input_count = 1;
  return HELIO_OK;
}

helio_status hi_with_batch(const helio_shape *sample, helio_shape *batch) {
  if (sample->rank < 0 || sample->rank >= HELIO_MAX_RANK) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "an input shape of rank %d", sample->rank);
  }
  *batch = (helio_shape){.rank = sample->rank + 1, .extent = {HI_ANY}};
  for (int i = 0; i < sample->rank; i++) {
    batch->extent[i + 1] = sample->extent[i];
    if (sample->extent[i] >= 0 || sample->extent[i] == HI_ANY) continue;
    return hi_fail(HELIO_INVALID_ARGUMENT, "an extent of %lld in an input shape", (long long)sample->extent[i]);
  }
  return HELIO_OK;
}

static helio_type input_type_for(const helio_layer *first, helio_type given, helio_type own) {
  if (given) return given;
  return strcmp(first->kind->class_name, "Embedding") == 0 ? HELIO_INT32 : own ? own : HELIO_FLOAT32;
}

/* A sequential model whose first layer knows its input knows its own. */
static helio_status take_input_of(helio_layer *owner, const helio_layer *first) {
  helio_shape batch;
  helio_status status = hi_with_batch(&first->input_shape, &batch);
  return status ? status : know_input(owner, &batch, input_type_for(first, (helio_type)0, owner->type));
}

static helio_status add_layer(helio_layer *owner, helio_layer *layer) {
  hi_model *model = owner->model;
  bool knew = model->input_count > 0;
  helio_status status = hi_model_take(owner, layer);
  if (status) return status;
  if (model->layer_count == 1 && !knew && layer->input_shape.rank > 0) status = take_input_of(owner, layer);
  if (!status && model->input_count > 0) status = build_chain(owner);
  if (!status) return HELIO_OK;
  hi_drop(model->layers[--model->layer_count]); /* as before */
  free(model->names[model->layer_count]);
  if (!knew) model->input_count = 0;
  return status;
}

helio_model *helio_sequential_with(const helio_sequential_options *given) {
  helio_sequential_options o;
  helio_shape batch;
  if (!hi_options_enter("helio_sequential", &o, sizeof o, given)) return NULL;
  helio_layer *owner = hi_model_begin(&hi_sequential_kind, o.name, o.type);
  if (!owner) return NULL;
  helio_status status = HELIO_OK;
  if (o.input_shape.rank != 0) {
    status = hi_with_batch(&o.input_shape, &batch);
    helio_type type = o.layers[0] ? input_type_for(o.layers[0], o.input_type, o.type) : o.input_type;
    if (!status) status = know_input(owner, &batch, type ? type : HELIO_FLOAT32);
  }
  int count = 0;
  while (count < HELIO_MOST_LAYERS && o.layers[count]) count++;
  for (int i = count; i < HELIO_MOST_LAYERS && !status; i++) {
    if (o.layers[i]) status = hi_fail(HELIO_INVALID_ARGUMENT, "layer %d is NULL, but others follow it", count);
  }
  for (int i = 0; i < count && !status; i++) status = add_layer(owner, o.layers[i]);
  if (!status) return owner;
  hi_drop(owner);
  return NULL;
}

helio_status helio_model_add(helio_model *model, helio_layer *layer) {
  helio_status status = hi_enter(__func__);
  if (status) return status;
  if (!hi_model_usable(model)) return helio_error_pending();
  if (model->kind != &hi_sequential_kind) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s is not a sequential model", model->title);
  }
  if (!layer) return hi_fail(HELIO_INVALID_ARGUMENT, "the layer is NULL");
  return add_layer(model, layer);
}

/* What a layer made is let go as soon as the next one has used it, unless a tape keeps it. */
helio_tensor *hi_sequential_call(helio_layer *owner, helio_tensor *const *inputs, int count, bool training) {
  helio_tensor *x = inputs[0];
  (void)count;
  hi_hold(x);
  for (int i = 0; i < owner->model->layer_count && x; i++) {
    helio_scope pool = helio_pool_enter();
    helio_tensor *y = hi_layer_call(owner->model->layers[i], &x, 1, training, NULL);
    if (y) hi_hold(y);
    helio_pool_leave(&pool);
    hi_drop(x);
    x = y;
  }
  if (!x || hi_pool_add(&x->object)) return x;
  hi_drop(x);
  return NULL;
}

static helio_status sequential_shape(const helio_layer *owner, const helio_shape *inputs, int count,
                                     helio_shape *result) {
  (void)count;
  *result = inputs[0];
  for (int i = 0; i < owner->model->layer_count; i++) {
    helio_shape x = *result;
    helio_status status = hi_layer_shape(owner->model->layers[i], &x, 1, result);
    if (status) return status;
  }
  return HELIO_OK;
}

static helio_status sequential_build(helio_layer *owner, const helio_shape *inputs, int count) {
  (void)count;
  if (owner->model->input_count == 0) {
    helio_shape batch = inputs[0];
    if (batch.rank > 0) batch.extent[0] = HI_ANY;
    const hi_model *model = owner->model;
    helio_type type = owner->type ? owner->type : HELIO_FLOAT32;
    if (model->layer_count > 0) type = input_type_for(model->layers[0], (helio_type)0, owner->type);
    helio_status status = know_input(owner, &batch, type);
    if (status) return status;
  }
  return build_chain(owner);
}

const hi_layer_kind hi_sequential_kind = {
    .class_name = "Sequential",
    .base_name = "sequential",
    .least_inputs = 1,
    .most_inputs = 1,
    .any_type = true,
    .shape = sequential_shape,
    .build = sequential_build,
};

/* ---- the user's own ---- */

helio_model *helio_model_of_with(const helio_model_of_options *given) {
  helio_model_of_options o;
  if (!hi_options_enter("helio_model_of", &o, sizeof o, given)) return NULL;
  if (!o.call) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the function to call is NULL");
    return NULL;
  }
  helio_layer *owner = hi_model_begin(&hi_custom_kind, o.name, o.type);
  if (!owner) return NULL;
  owner->model->call = o.call;
  owner->model->self = o.self;
  return owner;
}

helio_layer *helio_track(helio_model *model, helio_layer *layer) {
  if (hi_enter(__func__) || !hi_model_usable(model)) return NULL;
  if (model->kind != &hi_custom_kind || !layer) {
    hi_fail(HELIO_INVALID_ARGUMENT, layer ? "%s was not made by helio_model_of" : "a layer for %s is NULL",
            model->title);
    return NULL;
  }
  return hi_model_take(model, layer) ? NULL : layer;
}

/* Nobody knows what the user's function does but by trying: on zeros, in no tape. */
static helio_status custom_shape(const helio_layer *owner, const helio_shape *inputs, int count, helio_shape *result) {
  enum { MOST = 16 };
  helio_tensor *zeros[MOST];
  if (count > MOST) return hi_fail(HELIO_NOT_SUPPORTED, "%d inputs for %s", count, owner->title);
  helio_scope pool = helio_pool_enter();
  hi_tape_pause();
  for (int i = 0; i < count; i++) {
    helio_shape shape = inputs[i];
    if (shape.rank > 0 && shape.extent[0] == HI_ANY) shape.extent[0] = 1;
    zeros[i] = helio_fill(shape, 0, .type = owner->type ? owner->type : HELIO_FLOAT32);
  }
  helio_tensor *y = owner->model->call(owner->model->self, zeros, count, false);
  if (y) *result = y->shape;
  if (y && result->rank > 0 && inputs[0].rank > 0) result->extent[0] = inputs[0].extent[0];
  hi_tape_resume();
  helio_pool_leave(&pool);
  if (y) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s: its call function returned NULL", owner->title);
}

const hi_layer_kind hi_custom_kind = {
    .class_name = "Model",
    .base_name = "model",
    .mixes = true,
    .least_inputs = 1,
    .most_inputs = 16,
    .any_type = true,
    .shape = custom_shape,
};

static helio_tensor *custom_call(helio_layer *owner, helio_tensor *const *inputs, int count, bool training) {
  helio_scope pool = helio_pool_enter();
  helio_tensor *y = owner->model->call(owner->model->self, inputs, count, training);
  hi_done();
  if (!y) hi_fail(HELIO_INVALID_ARGUMENT, "%s: its call function returned NULL", owner->title);
  return hi_pool_leave_with(&pool, helio_error_pending() ? NULL : y);
}

/* ---- calling and building any of them ---- */

static bool inputs_fit(const helio_layer *owner, helio_tensor *const *inputs, int count) {
  const hi_model *model = owner->model;
  if (count < owner->kind->least_inputs || (model->input_count > 0 && count != model->input_count)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%s takes %d input%s, not %d", owner->title,
            model->input_count ? model->input_count : owner->kind->least_inputs, model->input_count == 1 ? "" : "s",
            count);
    return false;
  }
  for (int i = 0; i < model->input_count; i++) {
    const helio_shape *wanted = &model->input_shapes[i], *got = &inputs[i]->shape;
    bool fits = wanted->rank == got->rank;
    for (int j = 0; fits && j < wanted->rank; j++) {
      fits = wanted->extent[j] == HI_ANY || wanted->extent[j] == got->extent[j];
    }
    if (fits) continue;
    char a[HI_SHAPE_TEXT], b[HI_SHAPE_TEXT];
    hi_fail(HELIO_INVALID_ARGUMENT, "%s: input %d has the shape %s, expected is %s", owner->title, i,
            hi_known_text(got, a), hi_known_text(wanted, b));
    return false;
  }
  return true;
}

/* A model that was given no input shape is built when its first call is over. */
static void first_call(helio_layer *owner, const helio_tensor *x, const helio_tensor *y) {
  hi_context before = hi_build_lock();
  if (!atomic_load(&owner->built)) {
    owner->output_shape = y->shape;
    if (y->shape.rank > 0) owner->output_shape.extent[0] = HI_ANY;
    owner->model->first_input = x->shape;
    atomic_store(&owner->built, true);
  }
  hi_build_unlock(before);
}

helio_tensor *hi_model_call(helio_layer *owner, helio_tensor *const *inputs, int count, bool training,
                            helio_tensor **outputs) {
  if (!inputs_fit(owner, inputs, count)) return NULL;
  if (owner->kind == &hi_functional_kind) {
    helio_tensor *all[HELIO_MOST_LAYERS];
    return hi_functional_call(owner, inputs, training, outputs ? outputs : all) ? NULL : (outputs ? outputs : all)[0];
  }
  bool sequential = owner->kind == &hi_sequential_kind;
  if (sequential && owner->model->layer_count == 0) {
    hi_fail(HELIO_WRONG_STATE, "%s has no layers", owner->title);
    return NULL;
  }
  helio_tensor *y =
      sequential ? hi_sequential_call(owner, inputs, count, training) : custom_call(owner, inputs, count, training);
  if (outputs) outputs[0] = y;
  if (y && !atomic_load(&owner->built)) first_call(owner, inputs[0], y);
  return y;
}

static helio_status check_batch(const helio_shape *batch) {
  bool good = batch->rank >= 1 && batch->rank <= HELIO_MAX_RANK;
  for (int i = 0; good && i < batch->rank; i++) good = batch->extent[i] >= HI_ANY;
  if (good) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT,
                 "that is not the shape of a batch: of 1 to %d axes, −1 where any extent will do", HELIO_MAX_RANK);
}

helio_status helio_model_build(helio_model *model, helio_shape input) {
  helio_status status = hi_enter(__func__);
  if (status) return status;
  if (!hi_model_usable(model)) return helio_error_pending();
  if (model->kind == &hi_functional_kind) return HELIO_OK;
  bool knew = model->model->input_count > 0;
  status = check_batch(&input);
  if (!status) status = hi_layer_build(model, &input, 1);
  if (status && !knew) model->model->input_count = 0;
  return status;
}

static bool knows_input(const helio_layer *model, int input) {
  return model && model->model && input >= 0 && input < model->model->input_count;
}

helio_shape helio_model_input_shape(const helio_model *model, int input) {
  helio_shape sample = {0};
  if (!knows_input(model, input)) return sample;
  const helio_shape *batch = &model->model->input_shapes[input];
  sample.rank = batch->rank - 1;
  for (int i = 0; i < sample.rank; i++) sample.extent[i] = batch->extent[i + 1];
  return sample;
}

helio_type helio_model_input_type(const helio_model *model, int input) {
  return knows_input(model, input) ? model->model->input_types[input] : (helio_type)0;
}
