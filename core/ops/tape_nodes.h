/* SPDX-License-Identifier: Apache-2.0 */
/* What is on a tape. */
#ifndef HI_TAPE_NODES_H
#define HI_TAPE_NODES_H

#include "device/device.h"
#include "ops/tape.h"

/* A tensor that gradients may be asked for or pass through. Tensors are known by their id, so that a tape keeps none
 * alive that no gradient looks at. */
typedef struct hi_tape_slot_record {
  uint64_t id;
  unsigned version; /* of its memory when it was first met */
} hi_tape_slot_record;

/* An input or output of a recorded call. */
typedef struct hi_operand {
  int slot;           /* −1: no gradient reaches it */
  helio_tensor *kept; /* NULL unless the row's gradient looks at it */
  unsigned version;   /* of its memory when it was recorded */
  helio_type type;    /* 0: an optional one that is absent */
  helio_shape shape;
} hi_operand;

typedef struct hi_tape_node {
  const hi_row *row;
  hi_attributes attributes;
  helio_scalar scalars[HI_MAX_SCALARS];
  hi_device *device; /* where it ran; valid while a tensor it keeps or was given is */
  int input_count, output_count;
  hi_operand operands[]; /* the inputs, then the outputs */
} hi_tape_node;

struct helio_tape {
  hi_object object;
  bool persistent;
  bool recording; /* it is on its thread's list */
  bool busy;      /* walking back: what is computed for that is not recorded here */
  bool used;      /* not persistent, and has given its gradients */
  helio_tape *outer;
  hi_tape_node **nodes; /* in the order of calls */
  int node_count, node_room;
  hi_tape_slot_record *slots;
  int slot_count, slot_room;
  int *places; /* hash table of slots by id, −1: free */
  int place_count;
};

/* The slot of a tensor, −1 if it has none; and a new one, −1 with the error set. */
int hi_tape_slot(const helio_tape *tape, uint64_t id);
int hi_tape_add_slot(helio_tape *tape, const helio_tensor *tensor);

/* Records a call, unless no gradient can pass through it. */
helio_status hi_tape_add_node(helio_tape *tape, const hi_call *call, helio_tensor *const *outputs);

void hi_tape_node_free(hi_tape_node *node); /* NULL: nothing */

/* Forgets everything, for a new start. */
void hi_tape_clear(helio_tape *tape);

#endif
