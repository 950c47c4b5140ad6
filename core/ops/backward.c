/* SPDX-License-Identifier: Apache-2.0 */
/* Walking a tape back: from a target to what gradients are asked for. */
#include <stdlib.h>
#include <string.h>

#include "ops/options.h"
#include "ops/placement.h"
#include "ops/tape_nodes.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

/* ---- gradients, dense or rows ---- */

void hi_gradient_hold(const hi_gradient *gradient) {
  if (gradient->values) hi_hold(gradient->values);
  if (gradient->indices) hi_hold(gradient->indices);
}

void hi_gradient_drop(hi_gradient *gradient) {
  hi_drop(gradient->values);
  hi_drop(gradient->indices);
  *gradient = (hi_gradient){0};
}

helio_tensor *hi_gradient_dense(const hi_gradient *gradient) {
  if (!gradient->indices) return gradient->values;
  return helio_scatter_add(gradient->values, gradient->indices, gradient->shape.extent[0]);
}

static helio_status rows_behind(const hi_gradient *a, const hi_gradient *b, hi_gradient *sum) {
  helio_tensor *indices = b->indices;
  if (indices->type != a->indices->type) indices = helio_cast(indices, a->indices->type);
  *sum = (hi_gradient){.values = helio_concat((helio_tensor *[]){a->values, b->values}, 2, 0),
                       .indices = helio_concat((helio_tensor *[]){a->indices, indices}, 2, 0),
                       .shape = a->shape};
  return sum->values && sum->indices ? HELIO_OK : helio_error_pending();
}

helio_status hi_gradient_sum_of(const hi_gradient *a, const hi_gradient *b, hi_gradient *sum) {
  if (a->indices && b->indices) return rows_behind(a, b, sum);
  *sum = (hi_gradient){.values = helio_add(hi_gradient_dense(a), hi_gradient_dense(b)), .shape = a->shape};
  return sum->values ? HELIO_OK : helio_error_pending();
}

static void gradients_end(void *object) {
  helio_gradients *gradients = object;
  for (int i = 0; i < gradients->count; i++) hi_gradient_drop(&gradients->list[i]);
  free(gradients->list);
  free(gradients);
}

helio_gradients *hi_gradients_new(int count) {
  helio_gradients *gradients = hi_object_new(sizeof *gradients, gradients_end, "a list of gradients");
  if (!gradients) return NULL;
  gradients->list = calloc((size_t)count + 1, sizeof *gradients->list);
  if (gradients->list) {
    gradients->count = count;
    return gradients;
  }
  hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %d gradients", count);
  return NULL;
}

/* ---- one walk ---- */

/* What gradients are asked for. */
typedef struct sources {
  int count;
  helio_tensor **tensors;
} sources;

/* A gradient that is asked for, and the first call on the tape that has a part in it: the last that the walk meets. */
typedef struct due {
  int node, slot, source;
} due;

typedef struct walk {
  helio_tape *tape;
  hi_gradient *gradients;   /* by slot, with references */
  bool *useful;             /* by slot: what is asked for depends on it */
  bool *asked;              /* by slot: its gradient is to stay */
  hi_gradient_ready *ready; /* NULL: nobody waits */
  void *user;
  due *due; /* the ones of sources, in the order of the walk */
  int due_count, due_next;
} walk;

static helio_status walk_begin(walk *w, helio_tape *tape) {
  size_t slots = (size_t)tape->slot_count + 1;
  *w = (walk){.tape = tape,
              .gradients = calloc(slots, sizeof *w->gradients),
              .useful = calloc(slots, sizeof *w->useful),
              .asked = calloc(slots, sizeof *w->asked)};
  if (w->gradients && w->useful && w->asked) return HELIO_OK;
  return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the gradients of %d tensors", tape->slot_count);
}

static void walk_end(walk *w) {
  for (int i = 0; w->gradients && i < w->tape->slot_count; i++) hi_gradient_drop(&w->gradients[i]);
  free(w->gradients);
  free(w->useful);
  free(w->asked);
  free(w->due);
}

/* Only what lies between the target and what is asked for is walked. */
static void mark_useful(walk *w) {
  for (int i = 0; i < w->tape->node_count; i++) {
    const hi_tape_node *node = w->tape->nodes[i];
    bool useful = false;
    for (int j = 0; j < node->input_count && !useful; j++) {
      useful = node->operands[j].slot >= 0 && w->useful[node->operands[j].slot];
    }
    for (int j = node->input_count; useful && j < node->input_count + node->output_count; j++) {
      if (node->operands[j].slot >= 0) w->useful[node->operands[j].slot] = true;
    }
  }
}

static helio_status add_to(hi_gradient *total, const hi_gradient *gradient) {
  hi_gradient sum = *gradient;
  if (total->values) {
    helio_status status = hi_gradient_sum_of(total, gradient, &sum);
    if (status) return status;
  }
  hi_gradient_hold(&sum);
  hi_gradient_drop(total);
  *total = sum;
  return HELIO_OK;
}

helio_status hi_gradients_add(helio_gradients *total, const helio_gradients *more) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < total->count && !status; i++) {
    if (more->list[i].values) status = add_to(&total->list[i], &more->list[i]);
  }
  return status;
}

static helio_status collect(walk *w, int slot, const hi_gradient *gradient) {
  return add_to(&w->gradients[slot], gradient);
}

static helio_status check_versions(const hi_tape_node *node) {
  for (int i = 0; i < node->input_count + node->output_count; i++) {
    const hi_operand *operand = &node->operands[i];
    if (!operand->kept || !operand->kept->block->arena || operand->kept->block->version == operand->version) continue;
    const char *name = operand->kept->name ? operand->kept->name : operand->kept->block->holder;
    return hi_fail(HELIO_WRONG_STATE,
                   "%s was assigned after %s used it on the tape: take the gradient before the assignment", name,
                   node->row->info.label);
  }
  return HELIO_OK;
}

/* The places of a hi_backward: on the stack for all but sums and concatenations of very many. */
enum { FEW = 8 };

typedef struct frame {
  hi_gradient *results;
  helio_tensor **inputs;
  helio_shape *shapes;
  helio_type *types;
} frame;

static helio_status call_gradient(walk *w, const hi_tape_node *node, helio_tensor *const *output_gradients,
                                  const frame *f) {
  helio_tensor *outputs[HI_MAX_OUTPUTS] = {NULL};
  hi_backward call = {.row = node->row,
                      .attributes = &node->attributes,
                      .scalars = node->scalars,
                      .input_count = node->input_count,
                      .inputs = f->inputs,
                      .outputs = outputs,
                      .input_shapes = f->shapes,
                      .input_types = f->types,
                      .output_gradients = output_gradients,
                      .input_gradients = f->results};
  for (int i = 0; i < node->input_count; i++) {
    const hi_operand *operand = &node->operands[i];
    f->results[i] = (hi_gradient){0};
    f->inputs[i] = operand->kept;
    f->shapes[i] = operand->shape;
    f->types[i] = operand->type;
    if (i < 32 && operand->slot >= 0 && w->useful[operand->slot]) call.wanted |= 1u << i;
  }
  for (int i = 0; i < node->output_count; i++) outputs[i] = node->operands[node->input_count + i].kept;
  if (!node->row->gradient) {
    return hi_fail(HELIO_NOT_SUPPORTED, "%s has no gradient; helio_stop_gradient() would cut it off",
                   node->row->info.label);
  }
  helio_status status = node->row->gradient(&call);
  for (int i = 0; i < node->input_count && !status; i++) {
    int slot = node->operands[i].slot;
    if (slot >= 0 && w->useful[slot] && f->results[i].values) status = collect(w, slot, &f->results[i]);
  }
  return status;
}

static helio_status call_with_frame(walk *w, const hi_tape_node *node, helio_tensor *const *output_gradients) {
  hi_gradient results[FEW];
  helio_tensor *inputs[FEW];
  helio_shape shapes[FEW];
  helio_type types[FEW];
  if (node->input_count <= FEW) {
    return call_gradient(w, node, output_gradients, &(frame){results, inputs, shapes, types});
  }
  size_t count = (size_t)node->input_count;
  frame f = {calloc(count, sizeof *f.results), calloc(count, sizeof *f.inputs), calloc(count, sizeof *f.shapes),
             calloc(count, sizeof *f.types)};
  helio_status status = f.results && f.inputs && f.shapes && f.types
                            ? call_gradient(w, node, output_gradients, &f)
                            : hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the gradient of %s", node->row->info.label);
  free(f.results);
  free(f.inputs);
  free(f.shapes);
  free(f.types);
  return status;
}

static bool arrived_at(const walk *w, const hi_operand *output) {
  return output->slot >= 0 && w->useful[output->slot] && w->gradients[output->slot].values;
}

static helio_status carry_back(walk *w, const hi_tape_node *node) {
  helio_tensor *arrived[HI_MAX_OUTPUTS] = {NULL};
  helio_status status = check_versions(node);
  for (int i = 0; i < node->output_count && !status; i++) {
    const hi_operand *output = &node->operands[node->input_count + i];
    if (!arrived_at(w, output)) continue;
    arrived[i] = hi_gradient_dense(&w->gradients[output->slot]);
    if (!arrived[i]) status = helio_error_pending();
  }
  return status ? status : call_with_frame(w, node, arrived);
}

/* One call back, where it ran: from the gradients of its outputs, which are then no longer needed, to those of its
 * inputs. */
static helio_status step_back(walk *w, const hi_tape_node *node) {
  const hi_operand *outputs = &node->operands[node->input_count];
  bool any = false;
  for (int i = 0; i < node->output_count; i++) any = any || arrived_at(w, &outputs[i]);
  if (!any) return HELIO_OK;
  helio_scope device = hi_placement_enter(node->device);
  helio_status status = carry_back(w, node);
  helio_device_leave(&device);
  for (int i = 0; i < node->output_count; i++) {
    if (outputs[i].slot >= 0 && !w->asked[outputs[i].slot]) hi_gradient_drop(&w->gradients[outputs[i].slot]);
  }
  return status;
}

static int in_order_of_walk(const void *a, const void *b) {
  const due *first = a, *second = b;
  return first->node != second->node ? second->node - first->node : first->source - second->source;
}

/* Finds out when each gradient that somebody waits for will be complete. */
static helio_status make_timetable(walk *w, const sources *list) {
  int *first = malloc(((size_t)w->tape->slot_count + 1) * sizeof *first);
  w->due = calloc((size_t)list->count + 1, sizeof *w->due);
  if (!first || !w->due) {
    free(first);
    return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the gradients of %d tensors", list->count);
  }
  memset(first, -1, ((size_t)w->tape->slot_count + 1) * sizeof *first);
  for (int i = w->tape->node_count - 1; i >= 0; i--) {
    const hi_tape_node *node = w->tape->nodes[i];
    for (int j = 0; j < node->input_count; j++) {
      if (node->operands[j].slot >= 0) first[node->operands[j].slot] = i;
    }
  }
  for (int i = 0; i < list->count; i++) {
    int slot = hi_tape_slot(w->tape, list->tensors[i]->id);
    if (slot >= 0 && first[slot] >= 0) w->due[w->due_count++] = (due){first[slot], slot, i};
  }
  free(first);
  qsort(w->due, (size_t)w->due_count, sizeof *w->due, in_order_of_walk);
  return HELIO_OK;
}

static helio_status tell(walk *w, int node) {
  helio_status status = HELIO_OK;
  for (; w->due_next < w->due_count && w->due[w->due_next].node == node && !status; w->due_next++) {
    const due *d = &w->due[w->due_next];
    status = w->ready(w->user, d->source, &w->gradients[d->slot]);
  }
  return status;
}

/* What a call computed is freed as soon as the walk has passed it, unless the tape is to be walked again. */
static helio_status walk_back(walk *w) {
  helio_status status = HELIO_OK;
  for (int i = w->tape->node_count - 1; i >= 0 && !status; i--) {
    hi_tape_node *node = w->tape->nodes[i];
    helio_scope pool = helio_pool_enter();
    status = step_back(w, node);
    helio_pool_leave(&pool);
    if (!status && w->ready) status = tell(w, i);
    if (w->tape->persistent) continue;
    hi_tape_node_free(node);
    w->tape->node_count = i;
  }
  return status;
}

/* ---- the call ---- */

/* The variables' values and then the tensors, whose gradients are asked for. */
static helio_status list_sources(const helio_gradient_options *o, sources *list) {
  int variables = o->variables ? o->variables->count : 0;
  if (variables < 0 || o->tensor_count < 0 || (variables > 0 && !o->variables->at) ||
      (o->tensor_count > 0 && !o->tensors)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "the list of what gradients are asked for is not valid");
  }
  list->tensors = calloc((size_t)variables + (size_t)o->tensor_count + 1, sizeof *list->tensors);
  if (!list->tensors) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a list of %d variables", variables);
  list->count = variables + o->tensor_count;
  for (int i = 0; i < list->count; i++) {
    list->tensors[i] = i < variables ? helio_value(o->variables->at[i]) : o->tensors[i - variables];
    if (!hi_tensor_usable(list->tensors[i], "a tensor whose gradient is asked for")) return helio_error_pending();
  }
  return HELIO_OK;
}

static helio_status ask_for(walk *w, const sources *list) {
  for (int i = 0; i < list->count; i++) {
    const helio_tensor *tensor = list->tensors[i];
    int slot = hi_tape_slot(w->tape, tensor->id);
    if (slot < 0) continue;
    if (w->tape->slots[slot].version != tensor->block->version) {
      return hi_fail(HELIO_WRONG_STATE,
                     "%s was assigned after the tape saw it: take the gradient before the assignment",
                     tensor->name ? tensor->name : tensor->block->holder);
    }
    w->useful[slot] = w->asked[slot] = true;
  }
  mark_useful(w);
  return HELIO_OK;
}

/* The gradient of the sum of the target's elements, unless the caller says what flows in. */
static helio_status seed(walk *w, const helio_gradient_options *o) {
  int slot = hi_tape_slot(w->tape, o->target->id);
  if (slot < 0 || !w->useful[slot]) return HELIO_OK;
  helio_scope pool = helio_pool_enter(), device = hi_placement_enter(o->target->device);
  helio_tensor *ones = o->output_gradient;
  if (!ones) ones = helio_fill(o->target->shape, 1, .type = o->target->type);
  helio_status status =
      ones ? collect(w, slot, &(hi_gradient){.values = ones, .shape = o->target->shape}) : helio_error_pending();
  helio_device_leave(&device);
  helio_pool_leave(&pool);
  return status;
}

static helio_status check(const helio_gradient_options *o) {
  if (!o->tape) return hi_fail(HELIO_INVALID_ARGUMENT, "the tape is NULL");
  if (o->tape->busy) return hi_fail(HELIO_WRONG_STATE, "the tape is being walked back already");
  if (o->tape->used) {
    return hi_fail(HELIO_WRONG_STATE, "the tape has given its gradients; with .persistent = true it would do so again");
  }
  if (!hi_tensor_usable(o->target, "the target")) return helio_error_pending();
  const helio_tensor *given = o->output_gradient;
  if (!given) return HELIO_OK;
  if (!hi_tensor_usable(given, "the output gradient")) return helio_error_pending();
  if (given->type == o->target->type && hi_shape_equal(&given->shape, &o->target->shape)) return HELIO_OK;
  char a[HI_SHAPE_TEXT], b[HI_SHAPE_TEXT];
  return hi_fail(HELIO_INVALID_ARGUMENT, "the output gradient is %s %s, the target %s %s", helio_type_name(given->type),
                 hi_shape_text(&given->shape, a), helio_type_name(o->target->type),
                 hi_shape_text(&o->target->shape, b));
}

static helio_status run(const helio_gradient_options *o, const sources *list, hi_gradient_ready *ready, void *user,
                        helio_gradients *result) {
  walk w;
  helio_status status = walk_begin(&w, o->tape);
  w.ready = ready;
  w.user = user;
  if (!status) status = ask_for(&w, list);
  if (!status && ready) status = make_timetable(&w, list);
  if (!status) status = seed(&w, o);
  o->tape->busy = true;
  if (!status) status = walk_back(&w);
  o->tape->busy = false;
  for (int i = 0; i < list->count && !status; i++) {
    int slot = hi_tape_slot(o->tape, list->tensors[i]->id);
    if (slot < 0) continue;
    result->list[i] = w.gradients[slot];
    hi_gradient_hold(&result->list[i]);
  }
  walk_end(&w);
  if (o->tape->persistent) return status;
  hi_tape_clear(o->tape);
  o->tape->used = true;
  return status;
}

helio_gradients *hi_gradient_of(const helio_gradient_options *options, hi_gradient_ready *ready, void *user) {
  helio_gradient_options o = *options;
  sources list = {0};
  if (check(&o)) return NULL;
  hi_tape_pause(); /* asking for a variable's value is no use of it */
  helio_status status = list_sources(&o, &list);
  hi_tape_resume();
  helio_gradients *result = status ? NULL : hi_gradients_new(list.count);
  if (result) status = run(&o, &list, ready, user, result);
  free(list.tensors);
  return status ? NULL : result;
}

helio_gradients *helio_gradient_with(const helio_gradient_options *given) {
  helio_gradient_options o;
  return hi_options_enter("helio_gradient", &o, sizeof o, given) ? hi_gradient_of(&o, NULL, NULL) : NULL;
}

/* ---- looking at the result ---- */

static const hi_gradient *at(const char *function, const helio_gradients *gradients, int index) {
  if (hi_enter(function)) return NULL;
  if (gradients && index >= 0 && index < gradients->count) return &gradients->list[index];
  hi_fail(HELIO_INVALID_ARGUMENT, gradients ? "there is no gradient %d" : "the list of gradients is NULL", index);
  return NULL;
}

int helio_gradients_count(const helio_gradients *gradients) {
  return gradients ? gradients->count : 0;
}

bool helio_gradients_has(const helio_gradients *gradients, int index) {
  return gradients && index >= 0 && index < gradients->count && gradients->list[index].values;
}

helio_tensor *helio_gradients_at(const helio_gradients *gradients, int index) {
  const hi_gradient *gradient = at(__func__, gradients, index);
  return gradient && gradient->values ? hi_gradient_dense(gradient) : NULL;
}

helio_tensor *helio_gradients_rows(const helio_gradients *gradients, int index, helio_tensor **indices) {
  const hi_gradient *gradient = at(__func__, gradients, index);
  if (!gradient || !gradient->indices) return NULL;
  if (indices) *indices = gradient->indices;
  return gradient->values;
}
