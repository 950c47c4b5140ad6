/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of models: listed, counted, set, saved and loaded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/safetensors.h"
#include "device/copy.h"
#include "nn/architecture.h"
#include "nn/model.h"
#include "ops/tape.h"
#include "runtime/error.h"

/* ---- visiting ---- */

typedef struct tour {
  hi_weight_visitor *visitor;
  void *user;
  hi_weight **seen; /* a layer that stands in several places is visited once */
  int count, room;
} tour;

static helio_status see(tour *t, const char *name, hi_weight *weight) {
  for (int i = 0; i < t->count; i++) {
    if (t->seen[i] == weight) return HELIO_OK;
  }
  if (t->count == t->room) {
    int room = t->room ? t->room * 2 : 32;
    hi_weight **seen = realloc(t->seen, (size_t)room * sizeof *seen);
    if (!seen) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a list of variables");
    t->seen = seen;
    t->room = room;
  }
  t->seen[t->count++] = weight;
  return t->visitor(t->user, name, weight);
}

static helio_status visit(tour *t, const helio_layer *owner, const char *prefix) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < owner->model->layer_count && !status; i++) {
    helio_layer *layer = owner->model->layers[i];
    char *name = NULL;
    if (asprintf(&name, "%s%s/", prefix, owner->model->names[i]) < 0) {
      return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of a variable");
    }
    if (layer->model) status = visit(t, layer, name);
    for (int j = 0; j < layer->weight_count && !status; j++) {
      char *whole = NULL;
      if (asprintf(&whole, "%s%s", name, layer->weights[j].local_name) < 0) whole = NULL;
      status = whole ? see(t, whole, &layer->weights[j])
                     : hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of a variable");
      free(whole);
    }
    free(name);
  }
  return status;
}

helio_status hi_model_visit(helio_layer *owner, hi_weight_visitor *visitor, void *user) {
  tour t = {.visitor = visitor, .user = user};
  helio_status status = visit(&t, owner, "");
  free(t.seen);
  return status;
}

/* ---- lists ---- */

typedef struct collector {
  helio_variable **at[3]; /* all, trainable, not trainable */
  int count[3], room;
} collector;

static helio_status collect(void *user, const char *name, hi_weight *weight) {
  collector *c = user;
  (void)name;
  if (c->count[0] == c->room) {
    c->room = c->room ? c->room * 2 : 32;
    for (int i = 0; i < 3; i++) {
      helio_variable **at = realloc(c->at[i], (size_t)c->room * sizeof *at);
      if (!at) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a list of %d variables", c->room);
      c->at[i] = at;
    }
  }
  int kind = weight->variable->trainable ? 1 : 2;
  c->at[0][c->count[0]++] = weight->variable;
  c->at[kind][c->count[kind]++] = weight->variable;
  return HELIO_OK;
}

/* A list that has not changed stays where it is: other models change the generation too. */
static void replace(helio_variables *list, helio_variable **at, int count) {
  if (list->count == count && list->at && memcmp(list->at, at, (size_t)count * sizeof *at) == 0) {
    free(at);
    return;
  }
  free((void *)list->at);
  *list = (helio_variables){count, at};
}

static helio_status make_lists(helio_layer *owner) {
  hi_model *model = owner->model;
  unsigned generation = hi_variables_generation();
  if (model->listed && model->generation == generation) return HELIO_OK;
  collector c = {0};
  helio_status status = hi_model_visit(owner, collect, &c);
  if (status) {
    for (int i = 0; i < 3; i++) free(c.at[i]);
    return status;
  }
  replace(&model->weights, c.at[0], c.count[0]);
  replace(&model->trainable, c.at[1], c.count[1]);
  replace(&model->non_trainable, c.at[2], c.count[2]);
  model->generation = generation;
  model->listed = true;
  return HELIO_OK;
}

static const helio_variables *list(const char *function, helio_model *model, size_t which) {
  if (hi_enter(function) || !hi_model_ready(model)) return NULL;
  pthread_mutex_lock(&model->model->lock);
  helio_status status = make_lists(model);
  pthread_mutex_unlock(&model->model->lock);
  return status ? NULL : (const helio_variables *)((char *)model->model + which);
}

const helio_variables *helio_weights(helio_model *model) {
  return list(__func__, model, offsetof(hi_model, weights));
}

const helio_variables *helio_trainable_variables(helio_model *model) {
  return list(__func__, model, offsetof(hi_model, trainable));
}

const helio_variables *helio_non_trainable_variables(helio_model *model) {
  return list(__func__, model, offsetof(hi_model, non_trainable));
}

int64_t helio_count_params(helio_model *model) {
  const helio_variables *weights = helio_weights(model);
  int64_t count = 0;
  for (int i = 0; weights && i < weights->count; i++) count += hi_variable_tensor(weights->at[i])->elements;
  return weights ? count : -1;
}

/* ---- setting ---- */

static helio_status check_value(const helio_variable *variable, const helio_tensor *value) {
  const helio_tensor *own = hi_variable_tensor(variable);
  if (!hi_tensor_usable(value, variable->name)) return helio_error_pending();
  if (value->type == own->type && hi_shape_equal(&value->shape, &own->shape)) return HELIO_OK;
  char a[HI_SHAPE_TEXT], b[HI_SHAPE_TEXT];
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s is %s %s, the value for it %s %s", variable->name,
                 helio_type_name(own->type), hi_shape_text(&own->shape, a), helio_type_name(value->type),
                 hi_shape_text(&value->shape, b));
}

/* Values that lie in a weight's own memory are copied first: two weights may be swapped. */
static helio_status assign_all(const helio_variables *weights, helio_tensor *const *values) {
  helio_tensor **copies = calloc((size_t)weights->count + 1, sizeof *copies);
  if (!copies) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %d values", weights->count);
  helio_status status = HELIO_OK;
  hi_tape_pause();
  for (int i = 0; i < weights->count && !status; i++) {
    copies[i] = values[i];
    for (int j = 0; j < weights->count && copies[i] == values[i]; j++) {
      if (values[i]->block == hi_variable_tensor(weights->at[j])->block) copies[i] = helio_copy(values[i]);
    }
    if (!copies[i]) status = helio_error_pending();
  }
  hi_tape_resume();
  for (int i = 0; i < weights->count && !status; i++) status = helio_assign(weights->at[i], copies[i]);
  free(copies);
  return status;
}

helio_status helio_set_weights(helio_model *model, helio_tensor *const *values, int count) {
  const helio_variables *weights = helio_weights(model);
  if (!weights) return helio_error_pending();
  if (!values) return hi_fail(HELIO_INVALID_ARGUMENT, "values is NULL");
  if (count != weights->count) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s has %d weights, %d are given", model->title, weights->count, count);
  }
  for (int i = 0; i < count; i++) {
    helio_status status = check_value(weights->at[i], values[i]);
    if (status) return status;
  }
  helio_scope pool = helio_pool_enter();
  helio_status status = assign_all(weights, values);
  helio_pool_leave(&pool);
  return status;
}

/* ---- regularizers ---- */

static helio_tensor *scaled(helio_tensor *x, double factor) {
  return x ? helio_mul(x, helio_fill(HELIO_SCALAR, factor, .type = x->type)) : NULL;
}

static helio_status add_loss(void *user, const char *name, hi_weight *weight) {
  helio_tensor **total = user;
  const helio_regularizer *r = &weight->regularizer;
  (void)name;
  if (!weight->variable->trainable) return HELIO_OK; /* as in Keras */
  for (int i = 0; i < 2; i++) {
    double factor = i == 0 ? r->l1 : r->l2;
    if (factor == 0) continue;
    helio_tensor *w = helio_value(weight->variable);
    helio_tensor *part = scaled(helio_sum(i == 0 ? helio_abs(w) : helio_square(w)), factor);
    *total = *total ? helio_add(*total, part) : part;
    if (!*total) return helio_error_pending();
  }
  return HELIO_OK;
}

helio_tensor *hi_model_penalty(helio_model *model) {
  helio_tensor *total = NULL;
  return hi_model_visit(model, add_loss, &total) ? NULL : total;
}

helio_tensor *helio_regularization_loss(helio_model *model) {
  if (hi_enter(__func__) || !hi_model_ready(model)) return NULL;
  helio_tensor *total = hi_model_penalty(model);
  return total || helio_error_pending() ? total : helio_fill(HELIO_SCALAR, 0, .type = model->type);
}

/* ---- files ---- */

static helio_status save_one(void *user, const char *name, hi_weight *weight) {
  helio_tensor *tensor = hi_variable_usable(weight->variable) ? hi_variable_read(weight->variable) : NULL;
  if (!tensor) return helio_error_pending();
  return hi_safetensors_add_tensor(user, name, tensor);
}

helio_status hi_weights_add(helio_layer *owner, hi_safetensors_writer *writer) {
  return hi_model_visit(owner, save_one, writer);
}

helio_status hi_model_save(helio_layer *model, const char *path, bool architecture) {
  if (!hi_model_ready(model)) return helio_error_pending();
  if (!path) return hi_fail(HELIO_INVALID_ARGUMENT, "the path is NULL");
  hi_safetensors_writer *writer = hi_safetensors_begin(path);
  if (!writer) return helio_error_pending();
  helio_scope pool = helio_pool_enter(); /* of values that are joined from several copies */
  helio_status status = hi_weights_add(model, writer);
  if (!status && architecture) status = hi_architecture_add(model, writer);
  if (!status) status = hi_safetensors_add_metadata(writer, "format", "helio");
  if (status) {
    hi_safetensors_abandon(writer);
  } else {
    status = hi_safetensors_finish(writer);
  }
  helio_pool_leave(&pool);
  return status;
}

helio_status helio_save_weights(helio_model *model, const char *path) {
  helio_status status = hi_enter(__func__);
  return status ? status : hi_model_save(model, path, false);
}

typedef struct loader {
  const char *path;
  hi_safetensors *file;
  helio_tensor **values; /* in the order of weights; NULL: only checking */
  int count;
} loader;

static helio_status check_one(void *user, const char *name, hi_weight *weight) {
  loader *l = user;
  const helio_tensor *own = hi_variable_tensor(weight->variable);
  const hi_safetensors_entry *entry = hi_safetensors_find(l->file, name);
  l->count++;
  if (!hi_variable_usable(weight->variable)) return helio_error_pending();
  if (!entry) return hi_fail(HELIO_BAD_DATA, "%s: there is no %s in it, which the model has", l->path, name);
  if (entry->type == own->type && hi_shape_equal(&entry->shape, &own->shape)) return HELIO_OK;
  char a[HI_SHAPE_TEXT], b[HI_SHAPE_TEXT];
  return hi_fail(HELIO_BAD_DATA, "%s: %s is %s %s there, %s %s in the model", l->path, name,
                 helio_type_name(entry->type), hi_shape_text(&entry->shape, a), helio_type_name(own->type),
                 hi_shape_text(&own->shape, b));
}

static helio_status name_stranger(void *user, const char *name, hi_weight *weight) {
  const hi_safetensors_entry **left = user;
  (void)weight;
  for (; *left && strcmp((*left)->name, name) != 0; left++) {
  }
  for (; *left; left++) left[0] = left[1];
  return HELIO_OK;
}

/* More tensors than weights: finds one that the model lacks. */
static helio_status refuse_strangers(helio_model *model, const loader *l) {
  int count = hi_safetensors_count(l->file);
  if (count == l->count) return HELIO_OK;
  const hi_safetensors_entry **left = calloc((size_t)count + 1, sizeof *left);
  if (!left) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a list of %d tensors", count);
  for (int i = 0; i < count; i++) left[i] = hi_safetensors_at(l->file, i);
  helio_status status = hi_model_visit(model, name_stranger, left);
  if (!status) {
    status =
        hi_fail(HELIO_BAD_DATA, "%s: it has %s, which the model lacks", l->path, left[0] ? left[0]->name : "a tensor");
  }
  free(left);
  return status;
}

/* Onto the variable's device, beside its value. */
static helio_status stage_one(void *user, const char *name, hi_weight *weight) {
  loader *l = user;
  const helio_tensor *own = hi_variable_tensor(weight->variable);
  const hi_safetensors_entry *entry = hi_safetensors_find(l->file, name);
  void *data = malloc(entry->bytes ? entry->bytes : 1);
  if (!data) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %s", name);
  helio_status status = hi_safetensors_read(l->file, entry, data);
  helio_tensor *value = status ? NULL : hi_tensor_new(own->device, own->type, &own->shape, name);
  if (value) status = hi_copy_in(own->device, hi_tensor_place(value), data, hi_tensor_bytes(value));
  free(data);
  if (!value || status) return helio_error_pending();
  l->values[l->count++] = value;
  return HELIO_OK;
}

static helio_status load(helio_model *model, loader *l) {
  const helio_variables *weights = helio_weights(model);
  helio_status status = weights ? hi_model_visit(model, check_one, l) : helio_error_pending();
  if (!status) status = refuse_strangers(model, l);
  if (status) return status;
  l->count = 0;
  l->values = calloc((size_t)weights->count + 1, sizeof *l->values);
  if (!l->values) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %d tensors", weights->count);
  status = hi_model_visit(model, stage_one, l);
  if (!status) status = helio_set_weights(model, l->values, l->count);
  free(l->values);
  return status;
}

helio_status hi_refuse_checkpoint(const hi_safetensors *file, const char *path) {
  if (!hi_safetensors_metadata(file, HI_SAFETENSORS_TRAINING)) return HELIO_OK;
  return hi_fail(HELIO_BAD_DATA,
                 "%s is a checkpoint, the state of a training, and not a saved model: go on from it with .resume of "
                 "helio_fit() (helio train --checkpoint DIR --resume), and save the model (--save FILE)",
                 path);
}

helio_status hi_weights_load(helio_layer *owner, hi_safetensors *file, const char *path) {
  if (!hi_model_ready(owner) || hi_refuse_checkpoint(file, path)) return helio_error_pending();
  loader l = {.path = path, .file = file};
  helio_scope pool = helio_pool_enter();
  helio_status status = load(owner, &l);
  helio_pool_leave(&pool);
  return status;
}

helio_status helio_load_weights(helio_model *model, const char *path) {
  if (hi_enter(__func__) || !hi_model_ready(model)) return helio_error_pending();
  if (!path) return hi_fail(HELIO_INVALID_ARGUMENT, "the path is NULL");
  hi_safetensors *file = hi_safetensors_open_verified(path);
  helio_status status = file ? hi_weights_load(model, file, path) : helio_error_pending();
  hi_safetensors_close(file);
  return status;
}
