/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/layer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/status.h"
#include "nn/initializer.h"
#include "nn/model.h"
#include "ops/options.h"
#include "ops/tape.h"
#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/progress.h"
#include "tensor/pool.h"

static atomic_uint_least64_t serials;

/* ---- life ---- */

static void drop_weights(helio_layer *layer) {
  for (int i = 0; i < layer->weight_count; i++) hi_drop(layer->weights[i].variable);
  layer->weight_count = 0;
}

static void end(void *object) {
  helio_layer *layer = object;
  drop_weights(layer);
  hi_model_free(layer->model);
  free(layer->name);
  free(layer->title);
  free(layer->options);
  free(layer->calls);
  free(layer);
}

helio_status hi_layer_set_name(helio_layer *layer, const char *name) {
  char *title = NULL, *copy = strdup(name);
  if (!copy || asprintf(&title, "%s (%s)", name, layer->kind->class_name) < 0) {
    free(copy);
    return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of layer %s", name);
  }
  free(layer->name);
  free(layer->title);
  layer->name = copy;
  layer->title = title;
  return HELIO_OK;
}

/* Names are parts of the variables' names, which are joined by '/'. */
static helio_status name_by_user(helio_layer *layer, const char *name) {
  if (!*name || strchr(name, '/')) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "'%s' cannot be the name of a layer: it is empty or has a '/'", name);
  }
  layer->named = true;
  return hi_layer_set_name(layer, name);
}

helio_layer *hi_layer_begin(const hi_layer_kind *kind, const char *name) {
  helio_layer *layer = calloc(1, sizeof *layer);
  if (!layer) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a layer %s", kind->class_name);
    return NULL;
  }
  hi_object_begin(layer, end, "a layer");
  hi_census_name(&layer->object, &layer->title);
  layer->kind = kind;
  layer->serial = atomic_fetch_add(&serials, 1);
  helio_status status = hi_layer_set_name(layer, kind->base_name);
  if (!status && name) status = name_by_user(layer, name);
  if (!status && !name) {
    free(layer->name); /* the title stands until a model gives it a name */
    layer->name = NULL;
  }
  if (!status) return layer;
  hi_drop(layer);
  return NULL;
}

/* An activation given by name joins the one given by number; the name's place follows the number's, aligned. */
static helio_status take_activation(helio_layer *layer) {
  if (!layer->kind->activation) return HELIO_OK;
  size_t align = _Alignof(char *), behind = layer->kind->activation + sizeof(helio_activation);
  helio_activation *activation = (helio_activation *)((char *)layer->options + layer->kind->activation);
  const char **name = (const char **)((char *)layer->options + (behind + align - 1) / align * align);
  helio_activation named = *name ? hi_activation_named(*name) : *activation;
  if (*name && !named) return helio_error_pending();
  if (*activation && *activation != named) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "the activation is given by number and as '%s', which is another", *name);
  }
  if (named && !*hi_activation_name(named)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%d is not an activation", (int)named);
  }
  *activation = named;
  *name = NULL;
  return HELIO_OK;
}

static helio_status take_options(helio_layer *layer, hi_layer_common *common) {
  helio_status status = HELIO_OK;
  if (common->type && !hi_type_is_float(common->type)) {
    status = hi_fail(HELIO_INVALID_ARGUMENT, "a layer cannot be of type %s", helio_type_name(common->type));
  }
  layer->type = common->type;
  layer->not_trainable = common->not_trainable;
  layer->input_shape = common->input_shape;
  common->name = NULL;
  if (!status) status = take_activation(layer);
  if (!status && layer->kind->check) status = layer->kind->check(layer);
  if (status) hi_error_prefix("%s: ", layer->title);
  return status;
}

helio_layer *hi_layer_new(const char *function, const hi_layer_kind *kind, const void *given) {
  void *options = calloc(1, kind->options_size);
  if (!options) {
    if (!hi_enter(function)) hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a layer %s", kind->class_name);
    return NULL;
  }
  bool good = hi_options_enter(function, options, kind->options_size, given);
  hi_layer_common *common = (hi_layer_common *)((char *)options + kind->common);
  helio_layer *layer = good ? hi_layer_begin(kind, common->name) : NULL;
  if (!layer) {
    free(options);
    return NULL;
  }
  layer->options = options;
  if (!take_options(layer, common) && hi_pool_add(&layer->object)) return layer;
  hi_drop(layer);
  return NULL;
}

/* ---- facts ---- */

const char *hi_layer_label(const helio_layer *layer) {
  return layer->name ? layer->name : layer->kind->base_name;
}

const char *helio_layer_name(const helio_layer *layer) {
  return layer ? hi_layer_label(layer) : "";
}

const char *helio_layer_class(const helio_layer *layer) {
  return layer ? layer->kind->class_name : "";
}

static void set_trainable(helio_layer *layer, bool trainable) {
  layer->not_trainable = !trainable;
  for (int i = 0; i < layer->weight_count; i++) {
    layer->weights[i].variable->trainable = trainable && layer->weights[i].trainable;
  }
  for (int i = 0; layer->model && i < layer->model->layer_count; i++) {
    set_trainable(layer->model->layers[i], trainable);
  }
}

helio_status helio_layer_set_trainable(helio_layer *layer, bool trainable) {
  helio_status status = hi_enter(__func__);
  if (status) return status;
  if (!layer) return hi_fail(HELIO_INVALID_ARGUMENT, "the layer is NULL");
  set_trainable(layer, trainable);
  hi_variables_changed();
  return HELIO_OK;
}

/* ---- variables ---- */

/* Which variable it was says which layer to make smaller. */
static void blame_model(const char *name, const helio_shape *shape) {
  helio_error error;
  char text[HI_SHAPE_TEXT];
  if (helio_error_pending() != HELIO_OUT_OF_MEMORY) return;
  helio_error_take(&error);
  hi_fail(HELIO_OUT_OF_MEMORY, "the model is too large: there is no memory for its variable %s of shape %s: %s", name,
          hi_shape_text(shape, text), error.message);
}

helio_status hi_layer_add_weight(helio_layer *layer, const char *local_name, const helio_shape *shape,
                                 const helio_initializer *initializer, helio_initializer_kind otherwise,
                                 const helio_regularizer *regularizer, bool trainable) {
  char *name = NULL;
  helio_initializer how = *initializer;
  if (layer->weight_count == HI_MOST_WEIGHTS)
    return hi_fail(HELIO_NOT_SUPPORTED, "more variables than a layer may have");
  if (!how.kind) how.kind = otherwise;
  if (asprintf(&name, "%s/%s", hi_layer_label(layer), local_name) < 0) {
    return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of a variable");
  }
  helio_scope pool = helio_pool_enter();
  helio_tensor *value = hi_initialize(&how, name, layer->type, shape);
  hi_variable_traits traits = {.trainable = trainable && !layer->not_trainable};
  if (!trainable) { /* statistics of what each replica sees */
    traits.synchronization = HELIO_ON_READ;
    traits.aggregation = HELIO_AGGREGATE_MEAN;
  }
  helio_variable *variable = hi_variable_new(name, value, &traits);
  if (!variable) blame_model(name, shape);
  free(name);
  if (variable) {
    hi_hold(variable);
    layer->weights[layer->weight_count++] =
        (hi_weight){.local_name = local_name,
                    .variable = variable,
                    .regularizer = regularizer ? *regularizer : (helio_regularizer){0},
                    .trainable = trainable};
  }
  helio_pool_leave(&pool);
  return variable ? HELIO_OK : helio_error_pending();
}

helio_tensor *hi_layer_weight(helio_layer *layer, const char *local_name) {
  for (int i = 0; i < layer->weight_count; i++) {
    if (strcmp(layer->weights[i].local_name, local_name) == 0) return helio_value(layer->weights[i].variable);
  }
  return NULL;
}

helio_status hi_layer_shape(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  helio_status status = HELIO_OK;
  if (count < layer->kind->least_inputs || count > layer->kind->most_inputs) {
    status = hi_fail(HELIO_INVALID_ARGUMENT, "it takes %s%d input%s, not %d",
                     layer->kind->most_inputs > layer->kind->least_inputs ? "at least " : "", layer->kind->least_inputs,
                     layer->kind->least_inputs == 1 ? "" : "s", count);
  }
  *result = (helio_shape){0};
  if (!status) status = layer->kind->shape(layer, inputs, count, result);
  if (status && !layer->model) hi_error_prefix("%s: ", layer->title);
  return status;
}

/* Who builds makes variables on devices, which may hang: the next then takes over from a thread that was given up. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct {
  pthread_t thread;
  const hi_progress *progress;
  int depth; /* 0: nobody builds */
} builder;

static bool another_builds(void) {
  return builder.depth > 0 && !pthread_equal(builder.thread, pthread_self()) &&
         !hi_progress_abandoned(builder.progress);
}

static unsigned long life_of_builder(void) {
  return builder.progress ? atomic_load(&builder.progress->sequence) : 0;
}

/* Whoever builds has a deadline before this thread has. The gate is held, but not while this thread, which may have
 * been abandoned meanwhile, says that it still waits: as long as the other shows signs of life. */
static void wait_for_builder(void) {
  static const char what[] = "waiting for a thread that makes a layer's variables";
  unsigned long seen = life_of_builder();
  pthread_mutex_unlock(&gate);
  hi_doing(what, NULL);
  hi_activity before = hi_progress_change(HI_WAITS);
  pthread_mutex_lock(&gate);
  while (another_builds()) {
    struct timespec soon = hi_in_milliseconds(CLOCK_REALTIME, 50);
    pthread_cond_timedwait(&changed, &gate, &soon);
    if (life_of_builder() == seen) continue;
    seen = life_of_builder();
    pthread_mutex_unlock(&gate);
    hi_doing(what, NULL);
    pthread_mutex_lock(&gate);
  }
  pthread_mutex_unlock(&gate);
  hi_progress_change(before);
  hi_done();
  pthread_mutex_lock(&gate);
}

hi_context hi_build_lock(void) {
  pthread_mutex_lock(&gate);
  while (another_builds()) wait_for_builder();
  bool again = builder.depth > 0 && pthread_equal(builder.thread, pthread_self());
  if (!again) {
    builder.thread = pthread_self();
    builder.progress = hi_progress_own();
    builder.depth = 0;
  }
  builder.depth++;
  pthread_mutex_unlock(&gate);
  return hi_context_alone();
}

void hi_build_unlock(hi_context before) {
  hi_context_set(before);
  pthread_mutex_lock(&gate);
  if (--builder.depth == 0) pthread_cond_signal(&changed);
  pthread_mutex_unlock(&gate);
}

/* What a thread that was given up in the midst of it has left behind is made anew. */
static helio_status build(helio_layer *layer, const helio_shape *inputs, int count) {
  drop_weights(layer);
  free(layer->calls);
  layer->calls = NULL;
  helio_status status = hi_layer_shape(layer, inputs, count, &layer->output_shape);
  if (status) return status;
  if (layer->output_shape.rank > 0) layer->output_shape.extent[0] = HI_ANY;
  if (!layer->type) layer->type = HELIO_FLOAT32;
  if (!layer->name) status = hi_layer_set_name(layer, layer->kind->base_name);
  if (!status && layer->kind->build) {
    status = layer->kind->build(layer, inputs, count);
    if (status && !layer->model) hi_error_prefix("%s: ", layer->title);
  }
  if (status) {
    drop_weights(layer);
    return status;
  }
  hi_variables_changed();
  atomic_store(&layer->built, true);
  return HELIO_OK;
}

helio_status hi_layer_build(helio_layer *layer, const helio_shape *inputs, int count) {
  if (atomic_load(&layer->built)) return HELIO_OK;
  hi_context before = hi_build_lock();
  helio_status status = atomic_load(&layer->built) ? HELIO_OK : build(layer, inputs, count);
  hi_build_unlock(before);
  return status;
}

/* ---- calling ---- */

enum { FEW = 8 };

static helio_tensor *compute(helio_layer *layer, helio_tensor **inputs, helio_shape *shapes, int count, bool training) {
  helio_shape result;
  for (int i = 0; i < count; i++) shapes[i] = inputs[i]->shape;
  if (hi_layer_shape(layer, shapes, count, &result) || hi_layer_build(layer, shapes, count)) return NULL;
  for (int i = 0; i < count; i++) {
    if (!layer->kind->any_type && inputs[i]->type != layer->type) inputs[i] = helio_cast(inputs[i], layer->type);
    if (!inputs[i]) return NULL;
  }
  const char *before = hi_blame_enter(layer->title);
  helio_tensor *y = layer->kind->call(layer, inputs, count, training);
  hi_blame_leave(before);
  if (!y) hi_error_prefix("%s: ", layer->title);
  return y;
}

static helio_tensor *call_plain(helio_layer *layer, helio_tensor *const *given, int count, bool training) {
  helio_tensor *few[FEW], **inputs = few;
  helio_shape few_shapes[FEW], *shapes = few_shapes;
  if (count > FEW) {
    inputs = malloc((size_t)count * sizeof *inputs);
    shapes = malloc((size_t)count * sizeof *shapes);
  }
  helio_tensor *y = NULL;
  if (inputs && shapes) {
    memcpy(inputs, given, (size_t)count * sizeof *inputs);
    helio_scope pool = helio_pool_enter();
    y = hi_pool_leave_with(&pool, compute(layer, inputs, shapes, count, training));
  } else {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a call with %d inputs", count);
  }
  if (inputs != few) free(inputs);
  if (shapes != few_shapes) free(shapes);
  return y;
}

helio_tensor *hi_layer_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training,
                            helio_tensor **outputs) {
  for (int i = 0; i < count; i++) {
    char what[32];
    snprintf(what, sizeof what, "input %d", i);
    if (inputs[i] && inputs[i]->block->arena) continue;
    hi_tensor_usable(inputs[i], what);
    hi_error_prefix("%s: ", layer->title);
    return NULL;
  }
  if (layer->model) return hi_model_call(layer, inputs, count, training, outputs);
  helio_tensor *y = call_plain(layer, inputs, count, training);
  if (outputs) outputs[0] = y;
  return y;
}

helio_tensor *helio_call_with(const helio_call_options *given) {
  helio_call_options o;
  if (!hi_options_enter("helio_call", &o, sizeof o, given)) return NULL;
  if (!o.layer || (o.inputs ? o.input_count < 1 || o.x : o.input_count != 0)) {
    hi_fail(HELIO_INVALID_ARGUMENT, o.layer ? "give x, or inputs and their number" : "the layer is NULL");
    return NULL;
  }
  helio_tensor *const *inputs = o.inputs ? o.inputs : &o.x;
  return hi_layer_call(o.layer, inputs, o.inputs ? o.input_count : 1, o.training, o.outputs);
}

helio_tensor *hi_layer_activate(helio_tensor *x, helio_activation activation) {
  helio_tensor *y = x ? helio_activate(x, activation) : NULL;
  if (!y || (activation != HELIO_SOFTMAX && activation != HELIO_SIGMOID)) return y;
  hi_hold(x);
  y->logits = x;
  y->logits_by = activation;
  return y;
}
