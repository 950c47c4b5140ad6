/* SPDX-License-Identifier: Apache-2.0 */
/* Models: layers made of layers. */
#ifndef HI_MODEL_H
#define HI_MODEL_H

#include <pthread.h>

#include "data/safetensors.h"
#include "nn/layer.h"

/* A place in a graph of layers: what a layer makes of other nodes. */
struct helio_node {
  hi_object object;
  uint64_t serial;     /* nodes are made after those they depend on */
  helio_layer *layer;  /* a reference; an InputLayer at the beginning */
  helio_node **inputs; /* references */
  int input_count;
  int applied;       /* how often its layer was applied before: Keras counts connections by it */
  helio_node *first; /* a reference: of a further output, the node of output 0; NULL: this is it */
  int output;        /* which one */
  int output_count;
  helio_shape *shapes; /* of all outputs, with HI_ANY; of the first node alone */
};

/* A step of a functional model: its layer applied to values that were computed before. */
typedef struct hi_graph_step {
  helio_node *node; /* of output 0; a reference */
  int *inputs;      /* numbers of values */
  int result;       /* the number of the first of its outputs' values */
} hi_graph_step;

struct hi_model {
  helio_layer **layers; /* each once, references */
  char **names;         /* within this model: a layer may stand in several */
  int layer_count, room;

  /* sequential and functional models know their inputs, the former perhaps only after the first call */
  helio_shape *input_shapes; /* with the batch, HI_ANY */
  helio_type *input_types;
  int input_count;

  int *inputs;          /* functional: the numbers of the values that are the inputs */
  hi_graph_step *steps; /* functional: in the order of computation */
  int step_count, value_count;
  int *outputs; /* numbers of values */
  int output_count;

  helio_call_function call; /* the user's own */
  void *self;

  /* of the call that made the variables, its batch shown in summaries; rank 0: they were made without one */
  helio_shape first_input;

  /* as Keras' JSON had it, for it to be so again */
  char *input_name;                   /* of a sequential model's InputLayer; NULL: "input_layer" */
  bool inputs_listed, outputs_listed; /* of a functional model: one alone stands in a list */

  pthread_mutex_t lock; /* of the lists */
  unsigned generation;  /* of hi_variables_generation() when they were made */
  bool listed;
  helio_variables weights, trainable, non_trainable;

  hi_replicas *scope;           /* in which it was made, a reference; NULL: in none */
  struct hi_compiled *compiled; /* how it is trained, kept by train/; NULL: it was not compiled */
  char *note;                   /* a text of the program's own; NULL: none */
};

extern const hi_layer_kind hi_sequential_kind, hi_functional_kind, hi_custom_kind, hi_input_kind;

/* A model without layers, with the one reference that the user is given. */
helio_layer *hi_model_begin(const hi_layer_kind *kind, const char *name, helio_type type);
void hi_model_free(hi_model *model);

/* The shape of a batch of samples of a shape, whose extents are known or HI_ANY. */
helio_status hi_with_batch(const helio_shape *sample, helio_shape *batch);

/* Takes a layer in, under a name that no other has. */
helio_status hi_model_take(helio_layer *owner, helio_layer *layer);

/* The name that a layer has there; and gives one that it has another, which the caller knows to be free. */
const char *hi_name_within(const hi_model *model, const helio_layer *layer);
helio_status hi_rename_within(helio_layer *owner, const helio_layer *layer, const char *name);

/* hi_layer_call for models. */
helio_tensor *hi_model_call(helio_layer *owner, helio_tensor *const *inputs, int count, bool training,
                            helio_tensor **outputs);

/* What the forms of models are made of: a call of each, in which all checks of inputs were done. */
helio_tensor *hi_sequential_call(helio_layer *owner, helio_tensor *const *inputs, int count, bool training);
helio_status hi_functional_call(helio_layer *owner, helio_tensor *const *inputs, bool training, helio_tensor **outputs);
void hi_functional_free(hi_model *model);

/* The shape of one of a functional model's outputs for inputs of these shapes. */
helio_status hi_functional_shapes(const helio_layer *owner, const helio_shape *inputs, int count, helio_shape *outputs);

/* The node of a layer in a functional model that was made next after `previous`, NULL: the first; NULL: none was. */
const helio_node *hi_model_next_use(const hi_model *model, const helio_layer *layer, const helio_node *previous);

/* Is the object a model, and has it all its variables? Sets the error if not. */
bool hi_model_usable(const helio_layer *model);
bool hi_model_ready(const helio_layer *model);

/* Visits all variables in Keras' order with their names within the model: "conv2d/kernel". */
typedef helio_status hi_weight_visitor(void *user, const char *name, hi_weight *weight);
helio_status hi_model_visit(helio_layer *owner, hi_weight_visitor *visitor, void *user);

/* The sum of all regularizers' losses; NULL, without an error, where there are none. The model has its variables. */
helio_tensor *hi_model_penalty(helio_layer *model);

/* Adds all variables to a file that is to be written. Some are joined from several copies, so a pool of the caller's
 * must last until the file is finished. */
helio_status hi_weights_add(helio_layer *owner, hi_safetensors_writer *writer);

/* helio_save_weights() and helio_save_model(), helio_load_weights() of a file that is open. */
helio_status hi_model_save(helio_layer *owner, const char *path, bool architecture);
helio_status hi_weights_load(helio_layer *owner, hi_safetensors *file, const char *path);

/* Fails if the file is a checkpoint: its tensors have other names, and what to do with it is for a training. */
helio_status hi_refuse_checkpoint(const hi_safetensors *file, const char *path);

/* helio_model_summary_text, with a line for the variables of an optimizer; NULL: there is none. */
char *hi_model_summary_text(helio_layer *owner, int columns, const helio_variables *optimizer);

#endif
