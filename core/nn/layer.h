/* SPDX-License-Identifier: Apache-2.0 */
/* Layers from the inside. A kind of layer is one hi_layer_kind at the end of its file; nn/kinds.c lists them all. */
#ifndef HI_LAYER_H
#define HI_LAYER_H

#include "ops/variable.h"
#include "tensor/tensor.h"

enum { HI_ANY = -1, HI_MOST_WEIGHTS = 8 }; /* an extent that is not known; variables of one layer */

/* How an option of a layer stands in Keras' JSON config (nn/config.c). */
typedef enum hi_field_kind {
  HI_FIELD_INT = 1,       /* int */
  HI_FIELD_INT64,         /* int64_t */
  HI_FIELD_REAL,          /* double; zero is stored as HELIO_ZERO */
  HI_FIELD_FLAG,          /* bool */
  HI_FIELD_NOT_FLAG,      /* bool that says the opposite: use_bias → no_bias */
  HI_FIELD_PAIR,          /* int[2]: a positive number, or a list of one or two; written as one if the second is 0 */
  HI_FIELD_PADDING,       /* helio_padding */
  HI_FIELD_INTERPOLATION, /* helio_interpolation */
  HI_FIELD_ACTIVATION,    /* helio_activation */
  HI_FIELD_INITIALIZER,   /* helio_initializer */
  HI_FIELD_REGULARIZER,   /* helio_regularizer */
  HI_FIELD_SHAPE,         /* helio_shape */
  HI_FIELD_AXES,          /* helio_axes */
  HI_FIELD_SEED,          /* uint64_t; null: 0 */
  HI_FIELD_BORDERS,       /* int[4]: Keras' padding of images in its three forms */
  HI_FIELD_NAME,          /* const char *; null: NULL */
  HI_FIELD_TYPE,          /* helio_type of layers; null: 0 */
  HI_FIELD_INPUT_TYPE,    /* helio_type, any of them, by its name alone */
  HI_FIELD_BATCH_SHAPE,   /* helio_shape with the batch; null in it: HI_ANY; null: rank 0 */
  HI_FIELD_FIXED,         /* not an option of ours: must be what `only` says, as JSON text */
} hi_field_kind;

typedef struct hi_field {
  const char *name; /* in the config */
  hi_field_kind kind;
  size_t offset; /* in the options */

  /* HI_FIELD_FIXED: values that mean what we do, separated by '|'; the first of them is written. HI_FIELD_INITIALIZER:
   * the class where none is given. HI_FIELD_REAL: "null" if null stands for 0. HI_FIELD_INT: "list" if it may stand in
   * a list, alone. HI_FIELD_AXES: "number" if one axis may stand in none, as it is then written. */
  const char *only;
} hi_field;

enum { HI_REQUIRED_FIELDS = 2 };

typedef struct hi_layer_kind {
  const char *class_name; /* "MaxPooling2D", as Keras has it */
  const char *base_name;  /* "max_pooling2d": automatic names are counted from it */
  size_t options_size;
  size_t common;     /* offset of HELIO_LAYER_OPTIONS in the options */
  size_t activation; /* offset of a helio_activation that its name follows; 0: it has none */
  int least_inputs, most_inputs;
  bool any_type; /* takes integers as they are; else inputs become the layer's type */
  bool mixes;    /* in training what it makes of a sample depends on others of the batch, or on its place in it; so it
                    may be with a user's own */

  /* (optional) default: all are good. Checks the options by themselves, and completes defaults in layer->options. */
  helio_status (*check)(helio_layer *layer);

  /* The shape of the result for inputs of these shapes, where extents may be HI_ANY. Fails, with shapes, where the
   * inputs do not fit; the layer's name is put before it by the caller. Does not look at variables. */
  helio_status (*shape)(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result);

  /* (optional) default: it has no variables. Makes them by hi_layer_add_weight(). */
  helio_status (*build)(helio_layer *layer, const helio_shape *inputs, int count);

  /* The inputs have passed `shape` and have the layer's type; the variables are there. */
  helio_tensor *(*call)(helio_layer *layer, helio_tensor *const *inputs, int count, bool training);

  const hi_field *fields;                       /* the last one has no name */
  const char *required[HI_REQUIRED_FIELDS + 1]; /* of them: those that Keras has no default for */

  /* What Keras notes in a model's JSON besides: whether a layer has no build_config, because it was built before it met
   * an input; and arguments of calls other than the inputs, as JSON, NULL: none. */
  bool no_build_config;
  const char *call_arguments;
} hi_layer_kind;

/* What all options end in. */
typedef struct hi_layer_common {
  HELIO_LAYER_OPTIONS
} hi_layer_common;

typedef struct hi_weight {
  const char *local_name;   /* "kernel"; a literal */
  helio_variable *variable; /* a reference */
  helio_regularizer regularizer;
  bool trainable; /* as long as the layer is: moving statistics never are */
} hi_weight;

typedef struct hi_model hi_model; /* nn/model.h */

struct helio_layer {
  hi_object object;
  const hi_layer_kind *kind;
  uint64_t serial; /* counts layers in the order they are made */
  char *name;      /* NULL: none yet; the first model that takes it gives one */
  char *title;     /* "dense_1 (Dense)", for messages */
  bool named;      /* by the user */
  bool not_trainable;
  atomic_bool built;       /* set under the lock of building, when all else is there */
  helio_type type;         /* 0: not decided */
  helio_shape input_shape; /* of one sample as the options say it; rank 0: not known */
  hi_weight weights[HI_MOST_WEIGHTS];
  int weight_count;
  helio_shape output_shape;     /* with HI_ANY for the batch, of its first use; valid once built */
  atomic_uint_least64_t *calls; /* by replica: of dropout in training, which draws anew each time; else NULL */
  atomic_int applied;           /* how many nodes of graphs it has */
  hi_model *model;              /* NULL unless it is a model */
  void *options;                /* kind->options_size bytes, strings in it not to be used */
};

/* A new layer with a copy of the options, owned by the innermost pool; `function` is the public one. NULL with the
 * error set. */
helio_layer *hi_layer_new(const char *function, const hi_layer_kind *kind, const void *options);

/* Makes one of the layer's variables: drawn by `initializer`, or by `otherwise` if it has no kind. */
helio_status hi_layer_add_weight(helio_layer *layer, const char *local_name, const helio_shape *shape,
                                 const helio_initializer *initializer, helio_initializer_kind otherwise,
                                 const helio_regularizer *regularizer, bool trainable);

/* The value of a weight by its local name, for use in `call`: tapes are told. NULL, with no error, if there is none. */
helio_tensor *hi_layer_weight(helio_layer *layer, const char *local_name);

/* Decides name and type, and makes the variables for inputs of these shapes, unless that was done. Threads that meet a
 * layer for the first time together make its variables once. */
helio_status hi_layer_build(helio_layer *layer, const helio_shape *inputs, int count);

/* The lock of building, which a thread may take again: layers are built inside models that are. Between the two the
 * thread is in no replica, because it builds for all: unlocking sets the context again that locking gave. */
hi_context hi_build_lock(void);
void hi_build_unlock(hi_context before);

/* kind->shape with the layer's title before the message. */
helio_status hi_layer_shape(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result);

/* The whole call of any layer or model: checks, builds if need be, computes; `outputs` receives all results of a model
 * that has several, NULL: only the first is wanted. */
helio_tensor *hi_layer_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training,
                            helio_tensor **outputs);

/* Its name, or the kind's where it has none yet. */
const char *hi_layer_label(const helio_layer *layer);

/* Gives it a name; layer->named is left as it is. */
helio_status hi_layer_set_name(helio_layer *layer, const char *name);

/* A layer or model without options and with one reference, which the caller owns; the base of hi_layer_new(). */
helio_layer *hi_layer_begin(const hi_layer_kind *kind, const char *name);

/* An activation at the end of a layer: a softmax or sigmoid remembers what it was made of (helio_tensor.logits). */
helio_tensor *hi_layer_activate(helio_tensor *x, helio_activation activation);

/* Keras' names of activations; 0 with the error set, which lists them, if there is none of that name. */
helio_activation hi_activation_named(const char *name);
const char *hi_activation_name(helio_activation activation);

/* All kinds, the last one NULL, and one by its class. */
extern const hi_layer_kind *const hi_layer_kinds[];
const hi_layer_kind *hi_layer_kind_of(const char *class_name);

#endif
