/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/tape_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "tensor/tensor.h"

/* Room for one more in an array of `count`; false with the error set. */
static bool make_room(void **array, int count, int *room, size_t each) {
  if (count < *room) return true;
  int more = *room ? *room * 2 : 64;
  void *larger = realloc(*array, (size_t)more * each);
  if (!larger) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a tape of %d records", more);
    return false;
  }
  *array = larger;
  *room = more;
  return true;
}

/* ---- slots ---- */

/* Ids are counted up, so their low bits are as good as a hash. */
static int place_of(const helio_tape *tape, uint64_t id) {
  unsigned mask = (unsigned)tape->place_count - 1, place = (unsigned)(id * 0x9E3779B9u) & mask;
  while (tape->places[place] >= 0 && tape->slots[tape->places[place]].id != id) place = (place + 1) & mask;
  return (int)place;
}

int hi_tape_slot(const helio_tape *tape, uint64_t id) {
  return tape->place_count ? tape->places[place_of(tape, id)] : -1;
}

/* At most half of the places are taken. */
static bool make_places(helio_tape *tape) {
  if (2 * (tape->slot_count + 1) <= tape->place_count) return true;
  int count = tape->place_count ? tape->place_count * 2 : 128;
  int *places = malloc((size_t)count * sizeof *places);
  if (!places) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a tape of %d tensors", tape->slot_count);
    return false;
  }
  memset(places, -1, (size_t)count * sizeof *places);
  free(tape->places);
  tape->places = places;
  tape->place_count = count;
  for (int i = 0; i < tape->slot_count; i++) places[place_of(tape, tape->slots[i].id)] = i;
  return true;
}

int hi_tape_add_slot(helio_tape *tape, const helio_tensor *tensor) {
  void *slots = tape->slots;
  bool room = make_places(tape) && make_room(&slots, tape->slot_count, &tape->slot_room, sizeof *tape->slots);
  tape->slots = slots;
  if (!room) return -1;
  int slot = tape->slot_count;
  tape->places[place_of(tape, tensor->id)] = slot;
  tape->slots[slot] = (hi_tape_slot_record){
      .id = tensor->id, .version = atomic_load_explicit(&tensor->block->version, memory_order_relaxed)};
  tape->slot_count++;
  return slot;
}

/* ---- nodes ---- */

static bool passes(const helio_tape *tape, const hi_call *call, helio_tensor *const *outputs) {
  bool tracked = false, makes_float = false;
  for (int i = 0; i < call->input_count && !tracked; i++) {
    tracked = call->inputs[i] && hi_tape_slot(tape, call->inputs[i]->id) >= 0;
  }
  for (int i = 0; i < HI_MAX_OUTPUTS && tracked; i++) {
    makes_float = makes_float || (outputs[i] && hi_type_is_float(outputs[i]->type));
  }
  return tracked && makes_float;
}

static hi_operand operand_of(helio_tensor *tensor, int slot, bool keep) {
  if (!tensor) return (hi_operand){.slot = -1};
  if (keep) hi_hold(tensor);
  return (hi_operand){.slot = slot,
                      .kept = keep ? tensor : NULL,
                      .version = atomic_load_explicit(&tensor->block->version, memory_order_relaxed),
                      .type = tensor->type,
                      .shape = tensor->shape};
}

static hi_tape_node *node_new(const hi_call *call) {
  int outputs = hi_row_outputs(call->row);
  size_t operands = (size_t)(call->input_count + outputs);
  hi_tape_node *node = calloc(1, sizeof *node + operands * sizeof node->operands[0]);
  if (!node) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a tape's record of %s", call->row->info.label);
    return NULL;
  }
  node->row = call->row;
  node->attributes = call->attributes;
  memcpy(node->scalars, call->scalars, sizeof node->scalars);
  node->input_count = call->input_count;
  node->output_count = outputs;
  for (size_t i = 0; i < operands; i++) node->operands[i].slot = -1;
  return node;
}

helio_status hi_tape_add_node(helio_tape *tape, const hi_call *call, helio_tensor *const *outputs) {
  if (!passes(tape, call, outputs)) return HELIO_OK;
  void *nodes = tape->nodes;
  bool room = make_room(&nodes, tape->node_count, &tape->node_room, sizeof *tape->nodes);
  tape->nodes = nodes;
  hi_tape_node *node = room ? node_new(call) : NULL;
  if (!node) return helio_error_pending();
  for (int i = 0; i < call->input_count; i++) {
    helio_tensor *input = call->inputs[i];
    bool keep = i < 32 && call->row->keeps_inputs >> i & 1;
    node->operands[i] = operand_of(input, input ? hi_tape_slot(tape, input->id) : -1, keep);
  }
  for (int i = 0; i < node->output_count; i++) {
    helio_tensor *output = outputs[i];
    if (!output) continue;
    if (!node->device) node->device = output->device;
    int slot = hi_type_is_float(output->type) ? hi_tape_add_slot(tape, output) : -1;
    node->operands[node->input_count + i] = operand_of(output, slot, call->row->keeps_outputs >> i & 1);
    if (slot < 0 && helio_error_pending()) {
      hi_tape_node_free(node);
      return helio_error_pending();
    }
  }
  tape->nodes[tape->node_count++] = node;
  return HELIO_OK;
}

void hi_tape_node_free(hi_tape_node *node) {
  if (!node) return;
  for (int i = 0; i < node->input_count + node->output_count; i++) hi_drop(node->operands[i].kept);
  free(node);
}

void hi_tape_clear(helio_tape *tape) {
  for (int i = 0; i < tape->node_count; i++) hi_tape_node_free(tape->nodes[i]);
  tape->node_count = tape->slot_count = 0;
  if (tape->places) memset(tape->places, -1, (size_t)tape->place_count * sizeof *tape->places);
  tape->used = false;
}
