/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of Keras' JSON share. */
#ifndef HI_ARCHITECTURE_READ_H
#define HI_ARCHITECTURE_READ_H

#include "nn/config.h"

/* A text may be hostile: a few lines of it can apply layers without end, or nest so deep that no stack suffices. All
 * are of a whole text. */
enum { HI_MOST_READ_LAYERS = 4096, HI_MOST_READ_NODES = 4096, HI_MOST_NESTING = 32, HI_MOST_LAYER_CALLS = 16384 };

typedef struct hi_architecture {
  int layers, nodes; /* so far */
  int nesting;       /* models around what is read */
  struct hi_shared_layer *shared;
  int shared_count, shared_room;
} hi_architecture;

/* A layer of a model. */
typedef struct hi_read_layer {
  const char *name;
  const json_t *nodes;   /* "inbound_nodes"; NULL: none are given */
  helio_layer *layer;    /* owned by the pool; NULL: it is an InputLayer */
  int64_t calls;         /* of layers in one call of it, which counts too */
  hi_input_config input; /* of an InputLayer; in Keras 2 others may have a shape too */
} hi_read_layer;

/* Reads an object of "layers". */
helio_status hi_read_layer_from(hi_architecture *a, json_t *object, hi_read_layer *result);

/* The keys of an object are among those, of which the last is NULL. */
helio_status hi_check_keys(const json_t *object, const char *const *known);

/* Adds to the calls of layers in one of a model; an error if they are too many. */
helio_status hi_add_calls(int64_t *calls, int64_t more);

/* architecture_graph.c: the model of a functional model's config, with the user's reference, from its "layers",
 * "input_layers" and "output_layers"; and how many calls of layers are in one of it. NULL with the error set. */
helio_layer *hi_read_graph(hi_architecture *a, const json_t *config, const char *name, int64_t *calls);

#endif
