/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of a functional model from Keras' JSON: each layer lists its uses, each use the places that its inputs come
 * from. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "nn/architecture_read.h"
#include "nn/config_forms.h"
#include "nn/model.h"
#include "runtime/error.h"

/* Where a value comes from: ["dense", 0, 0]. */
typedef struct origin {
  int member, use, output;
} origin;

typedef struct use {
  origin *inputs;
  int count;
  helio_node *node; /* NULL: not made yet */
} use;

typedef struct member {
  hi_read_layer read;
  use *uses;
  int count, made;
} member;

typedef struct graph {
  member *members;
  int count;
  json_t *numbers; /* of members by their names */
  bool old;        /* as Keras 2 wrote it */
  int64_t calls;
} graph;

static helio_status no_memory(void) {
  return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a graph of layers");
}

static void free_graph(graph *g) {
  for (int i = 0; i < g->count; i++) {
    for (int j = 0; j < g->members[i].count; j++) free(g->members[i].uses[j].inputs);
    free(g->members[i].uses);
  }
  free(g->members);
  json_decref(g->numbers);
}

/* ---- origins ---- */

/* Keras counts the uses of nested models from 1 in some places: Keras 2 everywhere, Keras 3 those of Functional ones
 * among the outputs. */
static bool counts_from_one(const graph *g, const helio_layer *layer, bool output) {
  if (!layer || !layer->model) return false;
  return g->old || (output && layer->kind == &hi_functional_kind);
}

static helio_status read_origin(const graph *g, const json_t *value, bool output, origin *result) {
  const json_t *name = json_array_get(value, 0), *node = json_array_get(value, 1), *which = json_array_get(value, 2);
  if (!json_is_string(name) || !json_is_integer(node) || !json_is_integer(which)) {
    return hi_form_refuse(HELIO_INVALID_ARGUMENT, "the name of a layer and two numbers", value);
  }
  const json_t *number = json_object_get(g->numbers, json_string_value(name));
  if (!number) return hi_form_refuse(HELIO_INVALID_ARGUMENT, "the name of a layer of the model", name);
  const member *from = &g->members[json_integer_value(number)];
  json_int_t index = json_integer_value(node), place = json_integer_value(which);
  int first = counts_from_one(g, from->read.layer, output);
  if (index < first || index >= first + from->count || place < 0 || place > INT_MAX) {
    return hi_form_refuse(HELIO_INVALID_ARGUMENT, "a node that the layer has", value);
  }
  *result = (origin){(int)json_integer_value(number), (int)index - first, (int)place};
  return HELIO_OK;
}

/* Arguments of a call besides the inputs that change nothing. */
static helio_status check_arguments(const json_t *arguments) {
  static const char *const known[] = {"mask", "training", NULL};
  const json_t *mask = json_object_get(arguments, "mask"), *training = json_object_get(arguments, "training");
  if (!json_is_object(arguments)) return hi_form_refuse(HELIO_INVALID_ARGUMENT, "arguments by name", arguments);
  if (mask && !json_is_null(mask)) return hi_form_refuse(HELIO_NOT_SUPPORTED, "'mask' null", mask);
  if (training && !json_is_null(training) && !json_is_false(training)) {
    return hi_form_refuse(HELIO_NOT_SUPPORTED, "'training' null or false", training);
  }
  return hi_check_keys(arguments, known);
}

/* [[name, use, output, {arguments}], …] */
static helio_status read_old_use(const graph *g, const json_t *list, use *result) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < result->count && !status; i++) {
    const json_t *one = json_array_get(list, (size_t)i), *arguments = json_array_get(one, 3);
    status = read_origin(g, one, false, &result->inputs[i]);
    if (!status && arguments) status = check_arguments(arguments);
  }
  return status;
}

/* {"class_name": "__keras_tensor__", "config": {"shape", "dtype", "keras_history": [name, use, output]}} */
static helio_status read_tensor(const graph *g, const json_t *value, origin *result) {
  static const char *const known[] = {"shape", "dtype", "keras_history", NULL};
  const json_t *config = json_object_get(value, "config");
  const char *class_name = json_string_value(json_object_get(value, "class_name"));
  if (!class_name || strcmp(class_name, "__keras_tensor__") != 0 || !json_is_object(config)) {
    return hi_form_refuse(HELIO_NOT_SUPPORTED, "what another layer gives", value);
  }
  helio_status status = hi_check_keys(config, known);
  return status ? status : read_origin(g, json_object_get(config, "keras_history"), false, result);
}

/* The inputs of a use: in Keras 3 those of {"args": [input] or [[input, …]], "kwargs": {…}}. */
static const json_t *inputs_of(const json_t *value) {
  const json_t *arguments = json_object_get(value, "args"), *first = json_array_get(arguments, 0);
  if (json_is_array(value)) return value;
  if (json_array_size(arguments) != 1) return NULL;
  return json_is_array(first) ? first : arguments;
}

static helio_status read_use(graph *g, const json_t *value, use *result) {
  static const char *const known[] = {"args", "kwargs", NULL};
  const json_t *inputs = inputs_of(value), *named = json_object_get(value, "kwargs");
  size_t count = json_array_size(inputs);
  if (count < 1 || count > INT_MAX) return hi_form_refuse(HELIO_NOT_SUPPORTED, "inputs as the only argument", value);
  result->inputs = calloc(count, sizeof *result->inputs);
  if (!result->inputs) return no_memory();
  result->count = (int)count;
  g->old = json_is_array(value);
  if (g->old) return read_old_use(g, inputs, result);
  helio_status status = hi_check_keys(value, known);
  for (int i = 0; i < result->count && !status; i++) {
    status = read_tensor(g, json_array_get(inputs, (size_t)i), &result->inputs[i]);
  }
  return status || !named ? status : check_arguments(named);
}

/* ---- layers ---- */

/* An InputLayer has one node from the start. */
static helio_status make_input(member *m) {
  const hi_input_config *input = &m->read.input;
  helio_shape sample = {.rank = input->batch_shape.rank - 1};
  if (input->batch_shape.extent[0] != HI_ANY) {
    return hi_fail(HELIO_NOT_SUPPORTED, "'batch_shape': a batch of a certain size; null stands for any");
  }
  memcpy(sample.extent, input->batch_shape.extent + 1, (size_t)sample.rank * sizeof sample.extent[0]);
  if (json_array_size(m->read.nodes) > 0) return hi_fail(HELIO_INVALID_ARGUMENT, "an InputLayer has 'inbound_nodes'");
  m->uses[0].node = helio_input(sample, .type = input->type, .name = m->read.name);
  m->made = 1;
  return m->uses[0].node ? HELIO_OK : helio_error_pending();
}

static helio_status make_room(hi_architecture *a, member *m) {
  if (m->read.nodes && !json_is_array(m->read.nodes)) {
    return hi_form_refuse(HELIO_INVALID_ARGUMENT, "'inbound_nodes': a list", m->read.nodes);
  }
  size_t count = m->read.layer ? json_array_size(m->read.nodes) : 1;
  if (count > (size_t)(HI_MOST_READ_NODES - a->nodes)) {
    return hi_fail(HELIO_NOT_SUPPORTED, "there are more than %d nodes", HI_MOST_READ_NODES);
  }
  m->uses = calloc(count + 1, sizeof *m->uses);
  if (!m->uses) return no_memory();
  m->count = (int)count;
  a->nodes += m->count;
  return m->read.layer ? HELIO_OK : make_input(m);
}

static helio_status read_member(hi_architecture *a, graph *g, json_t *object) {
  member *m = &g->members[g->count];
  helio_status status = hi_read_layer_from(a, object, &m->read);
  if (status) return status;
  if (json_object_get(g->numbers, m->read.name)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "there are two layers '%s'", m->read.name);
  }
  if (json_object_set_new(g->numbers, m->read.name, json_integer(g->count))) return no_memory();
  g->count++;
  status = make_room(a, m);
  if (status) hi_error_prefix("layer '%s': ", m->read.name);
  return status;
}

static helio_status read_members(hi_architecture *a, graph *g, const json_t *layers) {
  size_t count = json_array_size(layers);
  g->members = calloc(count + 1, sizeof *g->members);
  g->numbers = json_object();
  helio_status status = g->members && g->numbers ? HELIO_OK : no_memory();
  for (size_t i = 0; i < count && !status; i++) status = read_member(a, g, json_array_get(layers, i));
  for (int i = 0; i < g->count && !status; i++) {
    member *m = &g->members[i];
    for (int j = 0; m->read.layer && j < m->count && !status; j++) {
      status = read_use(g, json_array_get(m->read.nodes, (size_t)j), &m->uses[j]);
      if (status) hi_error_prefix("layer '%s': node %d of 'inbound_nodes': ", m->read.name, j);
    }
  }
  return status;
}

/* ---- nodes ---- */

static helio_node *node_at(const graph *g, const origin *from) {
  return g->members[from->member].uses[from->use].node;
}

static bool is_ready(const graph *g, const use *u) {
  bool ready = true;
  for (int i = 0; i < u->count && ready; i++) ready = node_at(g, &u->inputs[i]) != NULL;
  return ready;
}

static helio_status make_node(graph *g, member *m) {
  use *u = &m->uses[m->made];
  helio_node **inputs = calloc((size_t)u->count + 1, sizeof(helio_node *));
  if (!inputs) return no_memory();
  for (int i = 0; i < u->count; i++) inputs[i] = helio_node_output(node_at(g, &u->inputs[i]), u->inputs[i].output);
  inputs[u->count] = HELIO_END;
  hi_add_calls(&g->calls, m->read.calls);
  u->node = helio_apply_list(m->read.layer, inputs); /* which does nothing if something went wrong before */
  free(inputs);
  if (!u->node) hi_error_prefix("layer '%s': node %d of 'inbound_nodes': ", m->read.name, m->made);
  return u->node ? HELIO_OK : helio_error_pending();
}

/* Uses of one layer are made in their order, others as soon as their inputs are there. */
static helio_status make_nodes(graph *g) {
  helio_status status = HELIO_OK;
  const member *waiting = NULL;
  for (bool progress = true; progress && !status;) {
    progress = false;
    waiting = NULL;
    for (int i = 0; i < g->count && !status; i++) {
      member *m = &g->members[i];
      for (; m->made < m->count && !status && is_ready(g, &m->uses[m->made]); m->made++) {
        status = make_node(g, m);
        progress = true;
      }
      if (m->made < m->count) waiting = m;
    }
  }
  if (status || !waiting) return status;
  return hi_fail(HELIO_INVALID_ARGUMENT, "layer '%s': its inputs depend on what it gives: the graph has a cycle",
                 waiting->read.name);
}

/* ---- the model ---- */

typedef struct ends {
  helio_node *at[HELIO_MOST_LAYERS];
  int count;
  bool listed;
} ends;

/* [name, use, output], or a list of such. */
static helio_status read_ends(const graph *g, const json_t *config, const char *key, ends *result) {
  const json_t *value = json_object_get(config, key);
  result->listed = json_is_array(json_array_get(value, 0));
  size_t count = result->listed ? json_array_size(value) : 1;
  helio_status status = HELIO_OK;
  if (count > HELIO_MOST_LAYERS) status = hi_fail(HELIO_NOT_SUPPORTED, "there are %zu of them", count);
  if (!json_is_array(value)) status = hi_form_refuse(HELIO_NOT_SUPPORTED, "a list", value ? value : config);
  for (size_t i = 0; i < count && !status; i++) {
    origin from;
    status = read_origin(g, result->listed ? json_array_get(value, i) : value, true, &from);
    if (!status) result->at[i] = helio_node_output(node_at(g, &from), from.output);
    if (!status) status = helio_error_pending();
  }
  result->count = (int)count;
  if (status) hi_error_prefix("'%s': ", key);
  return status;
}

/* All layers have found a place, under the names that they have here. */
static helio_status check_members(const graph *g, helio_layer *model) {
  for (int i = 0; i < g->count; i++) {
    const helio_layer *layer = g->members[i].read.layer;
    if (!layer) layer = g->members[i].uses[0].node->layer;
    int j = 0;
    while (j < model->model->layer_count && model->model->layers[j] != layer) j++;
    if (j == model->model->layer_count) {
      return hi_fail(HELIO_INVALID_ARGUMENT, "layer '%s': no output depends on it", g->members[i].read.name);
    }
    if (hi_rename_within(model, layer, g->members[i].read.name)) return helio_error_pending();
  }
  return HELIO_OK;
}

static helio_layer *between(const graph *g, const json_t *config, const char *name) {
  ends inputs = {0}, outputs = {0};
  if (read_ends(g, config, "input_layers", &inputs) || read_ends(g, config, "output_layers", &outputs)) return NULL;
  helio_layer *model = helio_model(.inputs = inputs.at, .input_count = inputs.count, .outputs = outputs.at,
                                   .output_count = outputs.count, .name = name);
  if (!model) return NULL;
  model->model->inputs_listed = inputs.listed;
  model->model->outputs_listed = outputs.listed;
  if (!check_members(g, model)) return model;
  helio_release(model);
  return NULL;
}

helio_layer *hi_read_graph(hi_architecture *a, const json_t *config, const char *name, int64_t *calls) {
  graph g = {0};
  helio_status status = read_members(a, &g, json_object_get(config, "layers"));
  if (!status) status = make_nodes(&g);
  helio_layer *model = status ? NULL : between(&g, config, name);
  *calls = g.calls;
  free_graph(&g);
  return model;
}
