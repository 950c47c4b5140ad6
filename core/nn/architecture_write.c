/* SPDX-License-Identifier: Apache-2.0 */
/* Models to Keras' JSON. What stands in it follows from the model: also shapes and arguments of calls, which are Keras'
 * notes to itself. */
#include <errno.h>
#include <stdlib.h>

#include "nn/architecture.h"
#include "nn/config_forms.h"
#include "nn/kinds.h"
#include "nn/model.h"
#include "runtime/error.h"

/* A layer that stands in several models is to be one layer again when it is read: Keras gives all of its places the
 * same number then, in .keras files. */
typedef struct written {
  const helio_layer *layer;
  json_t *object; /* its first place; borrowed */
} written;

typedef struct scribe {
  written *all;
  int count, room;
} scribe;

static json_t *object_of(scribe *s, const helio_layer *layer, const char *name, const helio_shape *inputs, int count);

static helio_status no_memory(void) {
  return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the architecture of a model");
}

/* ---- values ---- */

static json_t *shape_json(const helio_shape *shape) {
  return hi_form_batch_shape.write(NULL, shape);
}

/* One, or a list of them for layers that take a list. */
static json_t *shapes_json(const helio_shape *shapes, int count, bool listed) {
  json_t *list = listed ? json_array() : NULL;
  for (int i = 0; listed && i < count; i++) json_array_append_new(list, shape_json(&shapes[i]));
  return listed ? list : shape_json(shapes);
}

static bool takes_list(const helio_layer *layer, int count) {
  return layer->model ? count > 1 : layer->kind->most_inputs > 1;
}

/* ---- which type a value has ---- */

static const helio_node *first_of(const helio_node *node) {
  return node->first ? node->first : node;
}

/* The node whose value has this number; `output` says which of its outputs that is. */
static const helio_node *node_of_value(const hi_model *model, int value, int *output) {
  int i = model->step_count - 1;
  while (model->steps[i].result > value) i--;
  *output = value - model->steps[i].result;
  return model->steps[i].node;
}

static helio_type type_of_node(const helio_node *node, int output);

/* Of what a layer makes; 0: the type of what it is given, of which it only moves the elements. */
static helio_type type_of_layer(const helio_layer *layer, int output) {
  const hi_layer_kind *kind = layer->kind;
  helio_type type = (helio_type)0;
  if (kind == &hi_functional_kind) {
    const helio_node *node = node_of_value(layer->model, layer->model->outputs[output], &output);
    return type_of_node(node, output);
  }
  for (int i = layer->model ? layer->model->layer_count - 1 : -1; i >= 0 && !type; i--) {
    type = type_of_layer(layer->model->layers[i], 0);
  }
  if (layer->model || kind == &hi_flatten_kind || kind == &hi_reshape_kind || kind == &hi_permute_kind) return type;
  return layer->type ? layer->type : HELIO_FLOAT32;
}

static helio_type type_of_node(const helio_node *node, int output) {
  helio_type type = type_of_layer(node->layer, output);
  return type ? type : type_of_node(first_of(node->inputs[0]), node->inputs[0]->output);
}

/* ---- nodes ---- */

/* Uses of a layer are counted within the model. */
static int use_of(const hi_model *model, const helio_node *node) {
  int before = 0;
  for (int i = 0; i < model->step_count; i++) {
    const helio_node *other = model->steps[i].node;
    before += other->layer == node->layer && other->applied < node->applied;
  }
  return before;
}

static json_t *tensor_json(const hi_model *model, const helio_node *tensor) {
  const helio_node *node = first_of(tensor);
  const char *type = helio_type_name(type_of_node(node, tensor->output));
  return json_pack("{s:s, s:{s:o, s:s, s:[s, i, i]}}", "class_name", "__keras_tensor__", "config", "shape",
                   shape_json(&node->shapes[tensor->output]), "dtype", type, "keras_history",
                   hi_name_within(model, node->layer), use_of(model, node), tensor->output);
}

static json_t *call_arguments(const helio_layer *layer) {
  const char *text = layer->model ? "{\"mask\": null}" : layer->kind->call_arguments;
  return text ? json_loads(text, 0, NULL) : json_object();
}

static json_t *node_json(const hi_model *model, const helio_node *node) {
  json_t *arguments = json_array(), *list = takes_list(node->layer, node->input_count) ? json_array() : NULL;
  json_t *place = list ? list : arguments;
  for (int i = 0; i < node->input_count; i++) json_array_append_new(place, tensor_json(model, node->inputs[i]));
  if (list) json_array_append_new(arguments, list);
  return json_pack("{s:o, s:o}", "args", arguments, "kwargs", call_arguments(node->layer));
}

/* ---- functional models ---- */

static json_t *graph_layer(scribe *s, const hi_model *model, int index) {
  const helio_layer *layer = model->layers[index];
  const helio_node *node = hi_model_next_use(model, layer, NULL);
  helio_shape *shapes = malloc(((size_t)node->input_count + 1) * sizeof *shapes);
  if (!shapes) {
    no_memory();
    return NULL;
  }
  for (int i = 0; i < node->input_count; i++) {
    shapes[i] = first_of(node->inputs[i])->shapes[node->inputs[i]->output];
  }
  json_t *object = object_of(s, layer, model->names[index], shapes, node->input_count), *nodes = json_array();
  free(shapes);
  for (; node && node->input_count > 0; node = hi_model_next_use(model, layer, node)) {
    json_array_append_new(nodes, node_json(model, node));
  }
  json_object_set_new(object, "name", json_string(model->names[index]));
  json_object_set_new(object, "inbound_nodes", nodes);
  return object;
}

/* Models count their uses from 1 here, and nowhere else. */
static json_t *end_json(const hi_model *model, int value) {
  int output;
  const helio_node *node = node_of_value(model, value, &output);
  int use = use_of(model, node) + (node->layer->kind == &hi_functional_kind);
  return json_pack("[s, i, i]", hi_name_within(model, node->layer), use, output);
}

static json_t *ends_json(const hi_model *model, const int *values, int count, bool listed) {
  if (count == 1 && !listed) return end_json(model, values[0]);
  json_t *list = json_array();
  for (int i = 0; i < count; i++) json_array_append_new(list, end_json(model, values[i]));
  return list;
}

static json_t *functional_config(scribe *s, const helio_layer *owner, const char *name) {
  const hi_model *model = owner->model;
  json_t *layers = json_array();
  for (int i = 0; i < model->layer_count && !helio_error_pending(); i++) {
    json_array_append_new(layers, graph_layer(s, model, i));
  }
  return json_pack("{s:s, s:b, s:o, s:o, s:o}", "name", name, "trainable", !owner->not_trainable, "layers", layers,
                   "input_layers", ends_json(model, model->inputs, model->input_count, model->inputs_listed),
                   "output_layers", ends_json(model, model->outputs, model->output_count, model->outputs_listed));
}

/* ---- sequential models ---- */

static json_t *input_json(const char *name, const helio_shape *batch, helio_type type) {
  const hi_input_config input = {.batch_shape = *batch, .type = type ? type : HELIO_FLOAT32, .name = name};
  json_t *config = json_object();
  hi_fields_write(hi_input_fields, &input, config);
  return config;
}

/* With the batch of the call that made the variables, if one did, as in Keras; rank 0: it is not known. */
static helio_shape input_of(const helio_layer *owner) {
  const hi_model *model = owner->model;
  if (model->first_input.rank > 0) return model->first_input;
  return model->input_count > 0 ? model->input_shapes[0] : (helio_shape){0};
}

static helio_type input_type_of(const helio_layer *owner) {
  const helio_layer *first = owner->model->layers[0];
  if (owner->model->input_count > 0) return owner->model->input_types[0];
  return first->model ? owner->type : first->type;
}

static json_t *wrapped(const char *module, const char *class_name, json_t *config, const char *registered_name) {
  return json_pack("{s:s, s:s, s:o, s:s?}", "module", module, "class_name", class_name, "config", config,
                   "registered_name", registered_name);
}

static json_t *chain_json(scribe *s, const helio_layer *owner, helio_shape shape) {
  const hi_model *model = owner->model;
  const char *input = model->input_name ? model->input_name : "input_layer";
  bool known = shape.rank > 0;
  json_t *list = json_array();
  if (known) {
    json_t *config = input_json(input, &shape, input_type_of(owner));
    json_array_append_new(list, wrapped("keras.layers", "InputLayer", config, NULL));
  }
  for (int i = 0; i < model->layer_count && !helio_error_pending(); i++) {
    helio_shape next = {0};
    json_array_append_new(list, object_of(s, model->layers[i], model->names[i], known ? &shape : NULL, 1));
    if (known && !helio_error_pending()) hi_layer_shape(model->layers[i], &shape, 1, &next);
    shape = next;
  }
  return list;
}

static json_t *sequential_config(scribe *s, const helio_layer *owner, const char *name) {
  hi_layer_common common = {.name = name, .type = owner->type, .not_trainable = owner->not_trainable};
  helio_shape input = input_of(owner);
  json_t *config = json_object();
  if (!common.type) common.type = HELIO_FLOAT32;
  hi_fields_write(hi_common_fields, &common, config);
  json_object_set_new(config, "layers", chain_json(s, owner, input));
  if (input.rank > 0) json_object_set_new(config, "build_input_shape", shape_json(&input));
  return config;
}

/* ---- any of them ---- */

static json_t *config_of(scribe *s, const helio_layer *layer, const char *name) {
  if (layer->kind == &hi_functional_kind) return functional_config(s, layer, name);
  if (layer->kind == &hi_sequential_kind) return sequential_config(s, layer, name);
  if (layer->kind == &hi_input_kind) return input_json(name, &layer->output_shape, layer->type);
  return hi_layer_to_json(layer, name);
}

/* What the layer was built with, if it was. */
static void add_build_config(json_t *object, const helio_layer *layer, const helio_shape *inputs, int count) {
  json_t *shape = NULL;
  helio_shape own = layer->kind == &hi_sequential_kind ? input_of(layer) : (helio_shape){0};
  if (own.rank > 0) {
    shape = shape_json(&own);
  } else if (layer->kind == &hi_functional_kind) {
    shape = json_null();
  } else if (!layer->model && inputs && count > 0 && !layer->kind->no_build_config) {
    shape = shapes_json(inputs, count, takes_list(layer, count));
  }
  if (shape) json_object_set_new(object, "build_config", json_pack("{s:o}", "input_shape", shape));
}

static void note_place(scribe *s, const helio_layer *layer, json_t *object) {
  for (int i = 0; i < s->count; i++) {
    if (s->all[i].layer != layer) continue;
    json_object_set_new(s->all[i].object, "shared_object_id", json_integer(i));
    json_object_set_new(object, "shared_object_id", json_integer(i));
    return;
  }
  if (s->count == s->room) {
    int room = s->room ? s->room * 2 : 32;
    written *all = realloc(s->all, (size_t)room * sizeof *all);
    if (!all) {
      no_memory();
      return;
    }
    s->all = all;
    s->room = room;
  }
  s->all[s->count++] = (written){layer, object};
}

static bool can_be_written(const helio_layer *layer, const char *name) {
  json_t *text = json_string(name);
  if (!text && errno != ENOMEM) hi_fail(HELIO_INVALID_ARGUMENT, "the name of %s is not UTF-8", layer->title);
  json_decref(text);
  if (layer->kind == &hi_custom_kind) {
    hi_fail(HELIO_NOT_SUPPORTED,
            "%s has no architecture that could be written: what it computes is a function of the program "
            "(helio_model_of). helio_save_weights() saves its weights",
            layer->title);
  }
  return !helio_error_pending();
}

/* `inputs` are what the layer is built with; NULL: it is not. */
static json_t *object_of(scribe *s, const helio_layer *layer, const char *name, const helio_shape *inputs, int count) {
  bool functional = layer->kind == &hi_functional_kind, sequential = layer->kind == &hi_sequential_kind;
  if (!can_be_written(layer, name)) return NULL;
  const char *module = functional ? "keras.src.models.functional" : sequential ? "keras" : "keras.layers";
  json_t *config = config_of(s, layer, name);
  json_t *object = wrapped(module, layer->kind->class_name, config, functional ? "Functional" : NULL);
  if (!object) return NULL;
  add_build_config(object, layer, inputs, count);
  if (layer->model) json_object_set_new(object, "compile_config", json_object());
  note_place(s, layer, object);
  return object;
}

/* jansson does not tell of all that it had no memory for: errno does. */
json_t *hi_model_to_json(const helio_layer *model) {
  scribe s = {0};
  errno = 0;
  json_t *json = object_of(&s, model, hi_layer_label(model), NULL, 0);
  free(s.all);
  if (json && errno != ENOMEM && !helio_error_pending()) return json;
  no_memory(); /* unless the error is set */
  json_decref(json);
  return NULL;
}
