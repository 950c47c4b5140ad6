/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of layers: nodes, and the model between inputs and outputs. */
#include <stdlib.h>
#include <string.h>

#include "nn/model.h"
#include "ops/options.h"
#include "ops/table.h"
#include "runtime/error.h"
#include "tensor/pool.h"

static atomic_uint_least64_t serials;

/* ---- nodes ---- */

static void node_end(void *object) {
  helio_node *node = object;
  for (int i = 0; i < node->input_count; i++) hi_drop(node->inputs[i]);
  free(node->inputs);
  free(node->shapes);
  hi_drop(node->layer);
  hi_drop(node->first);
  free(node);
}

static helio_node *node_new(helio_layer *layer, helio_node *const *inputs, int count, int outputs) {
  helio_node *node = hi_object_new(sizeof *node, node_end, "a node");
  if (!node) return NULL;
  node->serial = atomic_fetch_add(&serials, 1);
  hi_hold(layer);
  node->layer = layer;
  node->inputs = calloc((size_t)count + 1, sizeof *node->inputs);
  node->shapes = calloc((size_t)outputs, sizeof *node->shapes);
  if (!node->inputs || !node->shapes) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a node of %s", layer->title);
    return NULL;
  }
  node->output_count = outputs;
  for (int i = 0; i < count; i++) {
    hi_hold(inputs[i]);
    node->inputs[node->input_count++] = inputs[i];
  }
  return node;
}

static const helio_shape *shape_of(const helio_node *node) {
  return node->first ? &node->first->shapes[node->output] : &node->shapes[0];
}

static helio_status input_shape_rule(const helio_layer *layer, const helio_shape *inputs, int count,
                                     helio_shape *result) {
  (void)layer, (void)count;
  *result = inputs[0];
  return HELIO_OK;
}

static helio_tensor *input_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  (void)layer, (void)count, (void)training;
  return inputs[0];
}

const hi_layer_kind hi_input_kind = {
    .class_name = "InputLayer",
    .base_name = "input_layer",
    .least_inputs = 1,
    .most_inputs = 1,
    .any_type = true,
    .shape = input_shape_rule,
    .call = input_call,
};

helio_node *helio_input_with(const helio_input_options *given) {
  helio_input_options o;
  if (!hi_options_enter("helio_input", &o, sizeof o, given)) return NULL;
  helio_shape batch;
  if (o.type && !hi_type_valid(o.type)) hi_fail(HELIO_INVALID_ARGUMENT, "%d is not a type", (int)o.type);
  if (helio_error_pending() || hi_with_batch(&o.shape, &batch)) return NULL;
  helio_layer *layer = hi_layer_begin(&hi_input_kind, o.name);
  helio_node *node = layer ? node_new(layer, NULL, 0, 1) : NULL;
  hi_drop(layer);
  if (!node) return NULL;
  layer->type = o.type ? o.type : HELIO_FLOAT32;
  node->shapes[0] = batch;
  layer->output_shape = node->shapes[0];
  layer->built = true;
  return node;
}

static helio_status infer(helio_layer *layer, helio_node *const *inputs, int count, helio_shape *results) {
  helio_shape *shapes = malloc((size_t)count * sizeof *shapes);
  if (!shapes) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %d shapes", count);
  for (int i = 0; i < count; i++) shapes[i] = *shape_of(inputs[i]);
  helio_status status = layer->kind == &hi_functional_kind ? hi_functional_shapes(layer, shapes, count, results)
                                                           : hi_layer_shape(layer, shapes, count, results);
  free(shapes);
  return status;
}

helio_node *helio_apply_list(helio_layer *layer, helio_node *const *inputs) {
  if (hi_enter("helio_apply")) return NULL;
  int count = 0;
  bool good = layer && inputs;
  for (; good && inputs[count] != HELIO_END && count <= HI_MAX_INPUTS; count++) good = inputs[count] != NULL;
  if (!good || count < 1 || count > HI_MAX_INPUTS) {
    hi_fail(HELIO_INVALID_ARGUMENT, layer ? "%s: an input is NULL, or there are none" : "the layer is NULL",
            layer ? layer->title : "");
    return NULL;
  }
  int outputs = layer->kind == &hi_functional_kind ? layer->model->output_count : 1;
  helio_node *node = node_new(layer, inputs, count, outputs);
  if (!node || infer(layer, inputs, count, node->shapes)) return NULL;
  node->applied = atomic_fetch_add(&layer->applied, 1);
  return node;
}

helio_node *helio_node_output(helio_node *node, int output) {
  if (hi_enter(__func__)) return NULL;
  if (!node || node->first || output < 0 || output >= node->output_count) {
    hi_fail(HELIO_INVALID_ARGUMENT, node ? "there is no output %d" : "the node is NULL", output);
    return NULL;
  }
  if (output == 0) return node;
  helio_node *other = hi_object_new(sizeof *other, node_end, "a node");
  if (!other) return NULL;
  hi_hold(node);
  hi_hold(node->layer);
  other->layer = node->layer;
  other->first = node;
  other->output = output;
  return other;
}

static helio_node *first_of(helio_node *node) {
  return node->first ? node->first : node;
}

/* ---- the order of layers ----
 *
 * Keras lists layers by their depth, the longest way to an output, those of equal depth in the order in which a walk
 * from the outputs first meets them; weights follow that order. */

typedef struct found {
  helio_node *node;
  int depth;
} found;

typedef struct met {
  helio_layer *layer;
  int depth, index;
} met;

typedef struct graph {
  found *nodes; /* behind those they depend on */
  met *layers;
  int node_count, node_room, layer_count, layer_room;
} graph;

static int find_node(const graph *g, const helio_node *node) {
  for (int i = 0; i < g->node_count; i++) {
    if (g->nodes[i].node == node) return i;
  }
  return -1;
}

static met *find_layer(const graph *g, const helio_layer *layer) {
  for (int i = 0; i < g->layer_count; i++) {
    if (g->layers[i].layer == layer) return &g->layers[i];
  }
  return NULL;
}

static helio_status no_memory(void) {
  return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a graph of layers");
}

static helio_status meet(graph *g, helio_layer *layer) {
  if (find_layer(g, layer)) return HELIO_OK;
  if (g->layer_count == g->layer_room) {
    int room = g->layer_room ? g->layer_room * 2 : 32;
    met *layers = realloc(g->layers, (size_t)room * sizeof *layers);
    if (!layers) return no_memory();
    g->layers = layers;
    g->layer_room = room;
  }
  g->layers[g->layer_count] = (met){.layer = layer, .index = g->layer_count};
  g->layer_count++;
  return HELIO_OK;
}

static helio_status walk(graph *g, helio_node *node) {
  node = first_of(node);
  if (find_node(g, node) >= 0) return HELIO_OK;
  helio_status status = meet(g, node->layer);
  for (int i = 0; i < node->input_count && !status; i++) status = walk(g, node->inputs[i]);
  if (status) return status;
  if (g->node_count == g->node_room) {
    int room = g->node_room ? g->node_room * 2 : 32;
    found *nodes = realloc(g->nodes, (size_t)room * sizeof *nodes);
    if (!nodes) return no_memory();
    g->nodes = nodes;
    g->node_room = room;
  }
  g->nodes[g->node_count++] = (found){.node = node};
  return HELIO_OK;
}

static void measure(graph *g) {
  for (int i = g->node_count - 1; i >= 0; i--) {
    met *layer = find_layer(g, g->nodes[i].node->layer);
    if (layer->depth < g->nodes[i].depth) layer->depth = g->nodes[i].depth;
    g->nodes[i].depth = layer->depth;
    for (int j = 0; j < g->nodes[i].node->input_count; j++) {
      found *input = &g->nodes[find_node(g, first_of(g->nodes[i].node->inputs[j]))];
      if (input->depth < layer->depth + 1) input->depth = layer->depth + 1;
    }
  }
}

static int by_depth(const void *a, const void *b) {
  const met *x = a, *y = b;
  return x->depth != y->depth ? y->depth - x->depth : x->index - y->index;
}

static int by_serial(const void *a, const void *b) {
  uint64_t x = (*(helio_layer *const *)a)->serial, y = (*(helio_layer *const *)b)->serial;
  return x < y ? -1 : x > y;
}

/* Layers get their names in the order in which they were made, as in Keras, and are then listed by depth. */
static helio_status take_layers(helio_layer *owner, graph *g) {
  hi_model *model = owner->model;
  helio_layer **made = malloc((size_t)g->layer_count * sizeof *made);
  if (!made) return no_memory();
  for (int i = 0; i < g->layer_count; i++) made[i] = g->layers[i].layer;
  qsort(made, (size_t)g->layer_count, sizeof *made, by_serial);
  helio_status status = HELIO_OK;
  for (int i = 0; i < g->layer_count && !status; i++) status = hi_model_take(owner, made[i]);
  free(made);
  if (status) return status;
  qsort(g->layers, (size_t)g->layer_count, sizeof *g->layers, by_depth);
  for (int i = 0; i < g->layer_count; i++) {
    int at = i;
    while (model->layers[at] != g->layers[i].layer) at++;
    helio_layer *layer = model->layers[at];
    char *name = model->names[at];
    model->layers[at] = model->layers[i], model->names[at] = model->names[i];
    model->layers[i] = layer, model->names[i] = name;
  }
  return HELIO_OK;
}

/* ---- the model ---- */

void hi_functional_free(hi_model *model) {
  for (int i = 0; i < model->step_count; i++) {
    hi_drop(model->steps[i].node);
    free(model->steps[i].inputs);
  }
  free(model->steps);
  free(model->inputs);
  free(model->outputs);
}

static int value_of(const hi_model *model, const graph *g, const helio_node *node) {
  return model->steps[find_node(g, node->first ? node->first : node)].result + (node->first ? node->output : 0);
}

static helio_status make_steps(helio_layer *owner, graph *g, const helio_model_options *o) {
  hi_model *model = owner->model;
  model->steps = calloc((size_t)g->node_count, sizeof *model->steps);
  model->inputs = calloc((size_t)o->input_count, sizeof *model->inputs);
  model->outputs = calloc((size_t)o->output_count, sizeof *model->outputs);
  if (!model->steps || !model->inputs || !model->outputs) return no_memory();
  for (int i = 0; i < g->node_count; i++) {
    hi_graph_step *step = &model->steps[i];
    helio_node *node = g->nodes[i].node;
    step->inputs = calloc((size_t)node->input_count + 1, sizeof *step->inputs);
    if (!step->inputs) return no_memory();
    hi_hold(node);
    step->node = node;
    step->result = model->value_count;
    model->value_count += node->output_count;
    model->step_count++;
    for (int j = 0; j < node->input_count; j++) step->inputs[j] = value_of(model, g, node->inputs[j]);
  }
  for (int i = 0; i < o->input_count; i++) model->inputs[i] = value_of(model, g, o->inputs[i]);
  for (int i = 0; i < o->output_count; i++) model->outputs[i] = value_of(model, g, o->outputs[i]);
  model->output_count = o->output_count;
  return HELIO_OK;
}

static helio_status know_inputs(helio_layer *owner, const helio_model_options *o) {
  hi_model *model = owner->model;
  model->input_shapes = calloc((size_t)o->input_count, sizeof *model->input_shapes);
  model->input_types = calloc((size_t)o->input_count, sizeof *model->input_types);
  if (!model->input_shapes || !model->input_types) return no_memory();
  model->input_count = o->input_count;
  for (int i = 0; i < o->input_count; i++) {
    model->input_shapes[i] = *shape_of(o->inputs[i]);
    model->input_types[i] = o->inputs[i]->layer->type;
  }
  return HELIO_OK;
}

/* All inputs that the outputs depend on are given, once each, and are inputs. */
static helio_status check_inputs(const graph *g, const helio_model_options *o) {
  for (int i = 0; i < o->input_count; i++) {
    if (o->inputs[i]->layer->kind != &hi_input_kind) {
      return hi_fail(HELIO_INVALID_ARGUMENT, "input %d of the model is not made by helio_input()", i);
    }
    for (int j = 0; j < i; j++) {
      if (o->inputs[i] == o->inputs[j]) return hi_fail(HELIO_INVALID_ARGUMENT, "input %d is given twice", i);
    }
  }
  for (int i = 0; i < g->node_count; i++) {
    if (g->nodes[i].node->layer->kind != &hi_input_kind) continue;
    int j = 0;
    while (j < o->input_count && o->inputs[j] != g->nodes[i].node) j++;
    if (j < o->input_count) continue;
    return hi_fail(HELIO_INVALID_ARGUMENT, "an output depends on %s, which is not among the model's inputs",
                   g->nodes[i].node->layer->title);
  }
  return HELIO_OK;
}

static helio_status build_steps(helio_layer *owner) {
  for (int i = 0; i < owner->model->step_count; i++) {
    helio_node *node = owner->model->steps[i].node;
    helio_shape *shapes = malloc(((size_t)node->input_count + 1) * sizeof *shapes);
    if (!shapes) return no_memory();
    for (int j = 0; j < node->input_count; j++) shapes[j] = *shape_of(node->inputs[j]);
    helio_status status = hi_layer_build(node->layer, shapes, node->input_count);
    free(shapes);
    if (status) return status;
  }
  return HELIO_OK;
}

static helio_status between(helio_layer *owner, const helio_model_options *o) {
  graph g = {0};
  helio_status status = HELIO_OK;
  for (int i = 0; i < o->output_count && !status; i++) status = walk(&g, o->outputs[i]);
  for (int i = 0; i < o->input_count && !status; i++) { /* inputs without use stand before all of their depth */
    int known = g.layer_count;
    status = walk(&g, o->inputs[i]);
    if (g.layer_count > known) g.layers[known].index = i - o->input_count;
  }
  if (!status) status = check_inputs(&g, o);
  if (!status) measure(&g);
  if (!status) status = make_steps(owner, &g, o);
  if (!status) status = take_layers(owner, &g);
  if (!status) status = know_inputs(owner, o);
  free(g.nodes);
  free(g.layers);
  return status ? status : build_steps(owner);
}

helio_model *helio_model_with(const helio_model_options *given) {
  helio_model_options o;
  if (!hi_options_enter("helio_model", &o, sizeof o, given)) return NULL;
  if (!o.inputs && o.input_count == 0) o.inputs = &o.input, o.input_count = 1;
  if (!o.outputs && o.output_count == 0) o.outputs = &o.output, o.output_count = 1;
  bool good = o.inputs && o.outputs && o.input_count > 0 && o.output_count > 0 && o.output_count <= HELIO_MOST_LAYERS &&
              o.input_count <= HELIO_MOST_LAYERS;
  for (int i = 0; good && i < o.input_count; i++) good = o.inputs[i] != NULL;
  for (int i = 0; good && i < o.output_count; i++) good = o.outputs[i] != NULL;
  if (!good) {
    hi_fail(HELIO_INVALID_ARGUMENT, "a model needs inputs and outputs, at most %d each, none of them NULL",
            HELIO_MOST_LAYERS);
    return NULL;
  }
  helio_layer *owner = hi_model_begin(&hi_functional_kind, o.name, o.type);
  if (!owner) return NULL;
  if (!between(owner, &o)) {
    owner->output_shape = *shape_of(o.outputs[0]);
    owner->built = true;
    return owner;
  }
  hi_drop(owner);
  return NULL;
}

const helio_node *hi_model_next_use(const hi_model *model, const helio_layer *layer, const helio_node *previous) {
  const helio_node *next = NULL;
  for (int i = 0; i < model->step_count; i++) {
    const helio_node *node = model->steps[i].node;
    if (node->layer != layer || (previous && node->applied <= previous->applied)) continue;
    if (!next || node->applied < next->applied) next = node;
  }
  return next;
}

/* ---- calling ---- */

/* Which of the model's inputs a step is, −1 if it is none. */
static int input_of(const helio_layer *owner, const hi_graph_step *step) {
  for (int i = 0; i < owner->model->input_count; i++) {
    if (owner->model->inputs[i] == step->result) return i;
  }
  return -1;
}

static helio_status run_step(helio_layer *owner, const hi_graph_step *step, helio_tensor *const *inputs, bool training,
                             helio_tensor **values) {
  enum { FEW = 16 };
  helio_tensor *few[FEW], **arguments = few;
  int number = input_of(owner, step), count = step->node->input_count;
  if (number >= 0) {
    values[step->result] = inputs[number];
    return HELIO_OK;
  }
  if (count > FEW) arguments = malloc((size_t)count * sizeof *arguments);
  if (!arguments) return no_memory();
  for (int i = 0; i < count; i++) arguments[i] = values[step->inputs[i]];
  helio_tensor *y = hi_layer_call(step->node->layer, arguments, count, training, &values[step->result]);
  if (arguments != few) free(arguments);
  return y ? HELIO_OK : helio_error_pending();
}

helio_status hi_functional_call(helio_layer *owner, helio_tensor *const *inputs, bool training,
                                helio_tensor **outputs) {
  hi_model *model = owner->model;
  helio_tensor **values = calloc((size_t)model->value_count, sizeof *values);
  if (!values) return no_memory();
  helio_scope pool = helio_pool_enter();
  helio_status status = HELIO_OK;
  for (int i = 0; i < model->step_count && !status; i++) {
    status = run_step(owner, &model->steps[i], inputs, training, values);
  }
  for (int i = 0; i < model->output_count && !status; i++) {
    outputs[i] = values[model->outputs[i]];
    hi_hold(outputs[i]);
  }
  helio_pool_leave(&pool);
  free(values);
  for (int i = 0; i < model->output_count && !status; i++) {
    if (hi_pool_add(&outputs[i]->object)) continue;
    for (int j = i; j < model->output_count; j++) hi_drop(outputs[j]);
    return helio_error_pending();
  }
  return status;
}

/* The same on shapes. */
helio_status hi_functional_shapes(const helio_layer *owner, const helio_shape *inputs, int count,
                                  helio_shape *outputs) {
  const hi_model *model = owner->model;
  if (count != model->input_count) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s takes %d inputs, not %d", owner->title, model->input_count, count);
  }
  helio_shape *values = calloc((size_t)model->value_count, sizeof *values);
  helio_status status = values ? HELIO_OK : no_memory();
  for (int i = 0; i < model->step_count && !status; i++) {
    const hi_graph_step *step = &model->steps[i];
    const helio_node *node = step->node;
    int number = input_of(owner, step);
    if (number >= 0) {
      values[step->result] = inputs[number];
      continue;
    }
    helio_shape *shapes = malloc((size_t)node->input_count * sizeof *shapes);
    if (!shapes) {
      status = no_memory();
      break;
    }
    for (int j = 0; j < node->input_count; j++) shapes[j] = values[step->inputs[j]];
    status = node->layer->kind == &hi_functional_kind
                 ? hi_functional_shapes(node->layer, shapes, node->input_count, &values[step->result])
                 : hi_layer_shape(node->layer, shapes, node->input_count, &values[step->result]);
    free(shapes);
  }
  for (int i = 0; i < model->output_count && !status; i++) outputs[i] = values[model->outputs[i]];
  free(values);
  return status;
}

static helio_status first_shape(const helio_layer *owner, const helio_shape *inputs, int count, helio_shape *result) {
  helio_shape outputs[HELIO_MOST_LAYERS];
  helio_status status = hi_functional_shapes(owner, inputs, count, outputs);
  if (!status) *result = outputs[0];
  return status;
}

const hi_layer_kind hi_functional_kind = {
    .class_name = "Functional",
    .base_name = "functional",
    .least_inputs = 1,
    .most_inputs = HELIO_MOST_LAYERS,
    .any_type = true,
    .shape = first_shape,
};
