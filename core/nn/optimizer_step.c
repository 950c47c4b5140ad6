/* SPDX-License-Identifier: Apache-2.0 */
/* One step of an optimizer: gradients are checked, then prepared (averaged, clipped), then every update is, which takes
 * all memory that it needs; nothing is written so far. Then the step counts, and every variable is updated in place:
 * only a device can fail in that. Nothing is read back from a device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/copy.h"
#include "nn/optimizer.h"
#include "ops/journal.h"
#include "ops/options.h"
#include "ops/placement.h"
#include "ops/tape.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "tensor/tensor.h"

/* ---- checking ---- */

static helio_status check_gradient(const hi_gradient *gradient, const helio_variable *variable) {
  const helio_tensor *own = hi_variable_tensor(variable), *values = gradient->values;
  if (!hi_tensor_usable(values, "a gradient")) return helio_error_pending();
  const helio_shape *shape = gradient->indices ? &gradient->shape : &values->shape;
  if (values->type == own->type && hi_shape_equal(shape, &own->shape)) return HELIO_OK;
  char a[HI_SHAPE_TEXT], b[HI_SHAPE_TEXT];
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s is %s %s: a gradient of %s %s is not its own", variable->name,
                 helio_type_name(own->type), hi_shape_text(&own->shape, a), helio_type_name(values->type),
                 hi_shape_text(shape, b));
}

static helio_status check(helio_optimizer *optimizer, const helio_gradients *gradients,
                          const helio_variables *variables) {
  helio_status status = hi_optimizer_check(optimizer, variables);
  if (status) return status;
  if (!gradients) return hi_fail(HELIO_INVALID_ARGUMENT, "the list of gradients is NULL");
  if (gradients->count != variables->count) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "there are %d gradients and %d variables", gradients->count,
                   variables->count);
  }
  for (int i = 0; i < variables->count && !status; i++) {
    if (gradients->list[i].values) status = check_gradient(&gradients->list[i], variables->at[i]);
  }
  return status;
}

/* The names of the variables asked for that have no gradient, as many as fit, and how many they are. */
static int names_without(const helio_optimizer *optimizer, const hi_gradient *gradients,
                         const helio_variables *variables, char *text, size_t room) {
  int missing = 0;
  size_t length = 0;
  text[0] = 0;
  for (int i = 0; i < variables->count; i++) {
    if (gradients[hi_optimizer_find(optimizer, variables->at[i], i)].values) continue;
    missing++;
    if (length >= room) continue;
    length += (size_t)snprintf(text + length, room - length, "%s%s", length ? ", " : "", variables->at[i]->name);
  }
  return missing;
}

/* Keras' words, each time for none at all and once for some. */
static helio_status check_missing(helio_optimizer *optimizer, const hi_gradient *gradients,
                                  const helio_variables *variables) {
  char names[1500];
  int missing = names_without(optimizer, gradients, variables, names, sizeof names);
  if (missing == 0) return HELIO_OK;
  if (missing == variables->count) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "No gradients provided for any variable. There are: %s", names);
  }
  if (!atomic_exchange(&optimizer->warned, true)) {
    hi_log(HELIO_LOG_WARNING, "Gradients do not exist for variables %s when minimizing the loss.", names);
  }
  return HELIO_OK;
}

/* ---- preparing ---- */

/* Does something with the gradient of one variable, on the variable's device. `user` is what all have in common. */
typedef helio_status gradient_function(const helio_optimizer *optimizer, int variable, hi_gradient *gradient,
                                       void *user);

static helio_status for_each(const helio_optimizer *optimizer, hi_gradient *gradients, gradient_function *function,
                             void *user) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < optimizer->tracked.count && !status; i++) {
    if (!gradients[i].values) continue;
    helio_scope device = hi_placement_enter(hi_variable_tensor(optimizer->tracked.variables[i])->device);
    status = function(optimizer, i, &gradients[i], user);
    helio_device_leave(&device);
  }
  return status;
}

/* Replaces the values, unless making them failed. */
static helio_status replace(hi_gradient *gradient, helio_tensor *values) {
  if (!values) return helio_error_pending();
  gradient->values = values;
  return HELIO_OK;
}

/* One gradient of all that have come since the last step. */
static helio_status gather(const helio_optimizer *optimizer, int variable, hi_gradient *gradient, void *unused) {
  (void)unused;
  const helio_variable *waiting = hi_optimizer_accumulator(optimizer, variable);
  if (!waiting) return HELIO_OK;
  helio_tensor *sum = helio_add(hi_gradient_dense(gradient), hi_variable_tensor(waiting));
  gradient->indices = NULL;
  return replace(gradient, helio_div(sum, hi_scalar_like(sum, optimizer->options.accumulate_steps)));
}

static helio_tensor *sum_of_squares(const hi_gradient *gradient) {
  return helio_sum(helio_square(gradient->values));
}

/* What brings a norm down to the limit: 1 if it is lower. */
static helio_tensor *factor_for(helio_tensor *norm, double limit) {
  helio_tensor *most = hi_scalar_like(norm, limit);
  return helio_div(most, helio_maximum(norm, most));
}

static helio_status clip_value(const helio_optimizer *optimizer, int variable, hi_gradient *gradient, void *unused) {
  (void)variable, (void)unused;
  double limit = optimizer->options.clip_value;
  return replace(gradient, helio_clip(gradient->values, -limit, limit));
}

static helio_status clip_norm(const helio_optimizer *optimizer, int variable, hi_gradient *gradient, void *unused) {
  (void)variable, (void)unused;
  helio_tensor *factor = factor_for(helio_sqrt(sum_of_squares(gradient)), optimizer->options.clip_norm);
  return replace(gradient, helio_mul(gradient->values, factor));
}

static helio_tensor *as_type(helio_tensor *x, helio_type type) {
  return helio_tensor_type(x) == type ? x : helio_cast(x, type);
}

/* The sum over all variables, in the type of the widest. */
static helio_status add_squares(const helio_optimizer *optimizer, int variable, hi_gradient *gradient, void *user) {
  (void)optimizer, (void)variable;
  helio_tensor **sum = user, *squares = sum_of_squares(gradient);
  if (*sum) {
    helio_type type = (*sum)->type == HELIO_FLOAT64 ? HELIO_FLOAT64 : helio_tensor_type(squares);
    squares = helio_add(as_type(*sum, type), as_type(squares, type));
  }
  *sum = squares;
  return squares ? HELIO_OK : helio_error_pending();
}

static helio_status multiply(const helio_optimizer *optimizer, int variable, hi_gradient *gradient, void *user) {
  (void)optimizer, (void)variable;
  helio_tensor *factor = *(helio_tensor **)user;
  return replace(gradient, helio_mul(gradient->values, as_type(factor, gradient->values->type)));
}

static helio_status clip_global_norm(const helio_optimizer *optimizer, hi_gradient *gradients) {
  helio_tensor *squares = NULL;
  helio_status status = for_each(optimizer, gradients, add_squares, &squares);
  if (status) return status;
  helio_scope device = hi_placement_enter(squares->device);
  helio_tensor *norm = helio_sqrt(squares);
  helio_tensor *factor = factor_for(norm, optimizer->options.global_clip_norm);
  factor = helio_add(factor, helio_sub(norm, norm)); /* as in Keras: NaN for all if the norm is not finite */
  helio_device_leave(&device);
  return factor ? for_each(optimizer, gradients, multiply, &factor) : helio_error_pending();
}

static helio_status prepare(const helio_optimizer *optimizer, hi_gradient *gradients) {
  const helio_optimizer_options *o = &optimizer->options;
  helio_status status = for_each(optimizer, gradients, gather, NULL);
  if (status) return status;
  if (o->clip_norm > 0) return for_each(optimizer, gradients, clip_norm, NULL);
  if (o->clip_value > 0) return for_each(optimizer, gradients, clip_value, NULL);
  return o->global_clip_norm > 0 ? clip_global_norm(optimizer, gradients) : HELIO_OK;
}

/* ---- updating ---- */

/* What a replica does in one step. */
typedef struct turn {
  helio_optimizer *optimizer;
  bool waits; /* gradients are added up, and the variables stay as they are */
  hi_update_step step;
  hi_prepared *updates; /* by variable; without a plan where there is no gradient */
} turn;

/* Fills in the gradient. Of rows, those of one index become one; where the row squares, the squares are of each by
 * itself, as Keras has it. */
static helio_status give_gradient(const hi_row *row, const hi_gradient *gradient, helio_tensor **inputs) {
  int place = hi_update_gradient_place(row);
  inputs[place] = gradient->values;
  if (!gradient->indices) return HELIO_OK;
  bool squares = row->inputs[place + 2];
  hi_call call = {.row = hi_row_of(HELIO_OP_COMBINE_ROWS),
                  .inputs = (helio_tensor *[]){gradient->values, gradient->indices},
                  .input_count = 2,
                  .no_outputs = squares ? 0 : 4};
  helio_tensor *combined[HI_MAX_OUTPUTS];
  helio_status status = hi_dispatch(&call, combined);
  for (int i = 0; i < (squares ? 3 : 2) && !status; i++) inputs[place + i] = combined[i];
  return status;
}

/* Prepares an update's row. Weights and slots stand in their places of the inputs. */
static helio_status prepare_update(hi_prepared *update, helio_operation operation, const hi_gradient *gradient,
                                   const helio_scalar *scalars, bool nesterov) {
  const hi_row *row = hi_row_of(operation);
  hi_call *call = &update->call;
  helio_status status = give_gradient(row, gradient, update->inputs);
  if (status) return status;
  call->row = row;
  call->input_count = (int)strlen(row->inputs);
  memcpy(call->scalars, scalars, sizeof call->scalars);
  if (row->attributes_size) call->attributes.sgd = (helio_sgd_attributes){sizeof(helio_sgd_attributes), nesterov, 0};
  return hi_dispatch_prepare(update);
}

static helio_status prepare_change(const helio_optimizer *optimizer, int variable, hi_gradient *gradient, void *user) {
  const turn *t = user;
  hi_prepared *update = &t->updates[variable];
  update->inputs[0] = hi_variable_tensor(optimizer->tracked.variables[variable]);
  for (int i = 0; i < optimizer->slot_count; i++) {
    update->inputs[optimizer->slots[i].place] = hi_variable_tensor(hi_optimizer_slot(optimizer, variable, i));
  }
  return prepare_update(update, optimizer->kind->update, gradient, t->step.scalars, optimizer->options.nesterov);
}

/* A step of gradient descent by −1 adds, and knows rows. */
static helio_status prepare_waiting(const helio_optimizer *optimizer, int variable, hi_gradient *gradient, void *user) {
  static const helio_scalar add[HI_MAX_SCALARS] = {{.real = -1}};
  const turn *t = user;
  hi_prepared *update = &t->updates[variable];
  update->inputs[0] = hi_variable_tensor(hi_optimizer_accumulator(optimizer, variable));
  return prepare_update(update, HELIO_OP_SGD_UPDATE, gradient, add, false);
}

static helio_status clear_accumulators(const helio_optimizer *optimizer) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < optimizer->tracked.count && !status; i++) {
    const helio_variable *waiting = hi_optimizer_accumulator(optimizer, i);
    if (!waiting) break;
    const helio_tensor *own = hi_variable_tensor(waiting);
    atomic_fetch_add(&own->block->version, 1);
    status = hi_clear(own->device, hi_tensor_place(own), hi_tensor_bytes(own));
  }
  return status;
}

/* ---- the step ---- */

static turn next_turn(helio_optimizer *optimizer) {
  int every = optimizer->options.accumulate_steps;
  double rate = hi_optimizer_rate(optimizer);
  turn t = {.optimizer = optimizer,
            .waits = every && (optimizer->numbers.calls + 1) % every,
            .step = {.rate = rate,
                     .decay = rate * optimizer->options.weight_decay,
                     .number = hi_optimizer_updates(optimizer) + 1,
                     .momentum_product = optimizer->numbers.momentum_product}};
  optimizer->kind->scalars(&optimizer->options, &t.step);
  return t;
}

/* Once for all replicas. */
static helio_status count_turn(void *const *brought, int count) {
  const turn *t = brought[0];
  (void)count;
  t->optimizer->numbers.calls++;
  if (!t->waits) t->optimizer->numbers.momentum_product = t->step.momentum_product;
  return HELIO_OK;
}

static helio_status prepare_all(turn *t, hi_gradient *gradients) {
  if (t->waits) return for_each(t->optimizer, gradients, prepare_waiting, t);
  helio_status status = prepare(t->optimizer, gradients);
  return status ? status : for_each(t->optimizer, gradients, prepare_change, t);
}

static helio_status write_all(const turn *t) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < t->optimizer->tracked.count && !status; i++) {
    if (t->updates[i].plan) status = hi_dispatch_prepared(&t->updates[i]);
  }
  return status || t->waits ? status : clear_accumulators(t->optimizer);
}

/* All variables and slots, if they are to be compared between replicas. */
static helio_status compare_written(const turn *t, hi_replicas *together) {
  const helio_optimizer *o = t->optimizer;
  int each = 1 + o->slot_count, count = o->tracked.count * each;
  helio_tensor **tensors = calloc((size_t)count + 1, sizeof(helio_tensor *));
  const char **names = calloc((size_t)count + 1, sizeof(char *));
  helio_status status = tensors && names ? HELIO_OK : hi_fail(HELIO_OUT_OF_MEMORY, "no memory to compare replicas");
  for (int i = 0; i < count && !status; i++) {
    const helio_variable *own = o->tracked.variables[i / each];
    const helio_variable *written = i % each ? hi_optimizer_slot(o, i / each, i % each - 1) : own;
    tensors[i] = hi_variable_tensor(written);
    names[i] = written->name;
  }
  if (!status) status = together->services->compare(together, tensors, names, count);
  free(tensors);
  free(names);
  return status;
}

/* The step counts where every replica has come to it: behind that there are only writes, the same on each. The
 * gradients are the sums of all replicas'. A replica that cannot write is not like the others any more, whatever the
 * reason, and is lost with its device. */
static helio_status take_step(turn *t, hi_replicas *together, hi_gradient *gradients, const helio_variables *variables,
                              hi_riders *riders) {
  helio_status status = check_missing(t->optimizer, gradients, variables);
  if (!status) status = prepare_all(t, gradients);
  if (!status && together) status = together->services->commit(together, count_turn, t);
  if (status) return status;
  hi_step_keep();
  status = write_all(t);
  if (!status && riders) status = riders->counted(riders);
  if (!together) return status ? status : count_turn((void *[]){t}, 1);
  if (status) hi_device_suspect(together->devices[hi_replica_of(together)], HELIO_DEVICE_FAILURE);
  return status || !together->compared ? status : compare_written(t, together);
}

/* From gradients that come one by one to the step. */
typedef struct step {
  helio_optimizer *optimizer;
  const helio_variables *variables;
  hi_replicas *together;
  hi_summing *summing; /* NULL: there is one replica */
  turn turn;
  hi_riders *riders; /* NULL: none */
  hi_gradient *sums; /* the riders, then the gradients, tensors of the step's pool */
  hi_gradient *list; /* the gradients, by the place of the variable among the optimizer's */
} step;

/* Outside of replicas a step would change the first of a variable's copies alone. */
static helio_status check_context(const helio_variables *variables) {
  for (int i = 0; i < variables->count; i++) {
    const helio_variable *variable = variables->at[i];
    if (variable->copy_count == 1 || hi_replica_of(variable->replicas) >= 0) continue;
    return hi_fail(HELIO_WRONG_STATE,
                   "a step cannot be taken in cross-replica context: every replica has a copy of %s. Use helio_run() "
                   "to enter replica context",
                   variable->name);
  }
  return HELIO_OK;
}

/* Riders stand before the gradients: buckets are filled from the end, so they leave with the last one. */
static void put_riders(const hi_riders *riders, hi_gradient *sums) {
  for (int i = 0; riders && i < riders->count; i++) {
    sums[i] = (hi_gradient){.values = riders->tensors[i], .shape = riders->tensors[i]->shape};
  }
}

static helio_status take_riders(hi_riders *riders, const hi_gradient *sums) {
  for (int i = 0; sums && i < riders->count; i++) riders->tensors[i] = sums[i].values;
  return riders->arrived(riders);
}

/* Both numbers are of one count, which does not come to 2³². */
static uint64_t key_of(const helio_optimizer *optimizer, const hi_riders *riders) {
  return riders ? optimizer->number << 32 | riders->number : optimizer->number;
}

/* The variables were checked. */
static helio_status step_begin(step *s, helio_optimizer *optimizer, const helio_variables *variables,
                               hi_riders *riders) {
  *s = (step){.optimizer = optimizer, .variables = variables, .together = hi_replicas_together(), .riders = riders};
  helio_status status = check_context(variables);
  if (!status) status = hi_optimizer_track(optimizer, variables);
  if (status) return status;
  int count = optimizer->tracked.count, first = riders ? riders->count : 0;
  if (riders) riders->commits = true;
  s->turn = next_turn(optimizer);
  s->sums = calloc((size_t)(first + count) + 1, sizeof *s->sums);
  s->turn.updates = calloc((size_t)count + 1, sizeof *s->turn.updates);
  if (!s->sums || !s->turn.updates) {
    return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a list of %d gradients", count);
  }
  s->list = s->sums + first;
  if (!s->together) return HELIO_OK;
  put_riders(riders, s->sums);
  s->summing = s->together->services->sums_begin(s->together, key_of(optimizer, riders), s->sums, first + count);
  return s->summing ? HELIO_OK : helio_error_pending();
}

/* The place of a variable's gradient, where none stands yet. */
static hi_gradient *place_of(const step *s, int index) {
  const helio_variable *variable = s->variables->at[index];
  hi_gradient *place = &s->list[hi_optimizer_find(s->optimizer, variable, index)];
  if (!place->values) return place;
  hi_fail(HELIO_INVALID_ARGUMENT, "%s stands twice in the list of variables", variable->name);
  return NULL;
}

static helio_status step_ready(void *user, int index, const hi_gradient *gradient) {
  step *s = user;
  hi_gradient *place = place_of(s, index);
  if (!place) return helio_error_pending();
  hi_tape_pause();
  *place = *gradient;
  helio_status status = s->together->services->sums_ready(s->summing, (int)(place - s->sums));
  hi_tape_resume();
  return status;
}

/* An error that is pending ends the step, here and for the other replicas. */
static helio_status step_end(step *s) {
  helio_status status = helio_error_pending();
  hi_tape_pause();
  if (s->summing) status = s->together->services->sums_end(s->summing);
  if (!status && s->riders) status = take_riders(s->riders, s->together ? s->sums : NULL);
  if (!status) status = take_step(&s->turn, s->together, s->list, s->variables, s->riders);
  hi_tape_resume();
  for (int i = 0; s->turn.updates && i < s->optimizer->tracked.count; i++) hi_prepared_end(&s->turn.updates[i]);
  free(s->turn.updates);
  free(s->sums);
  return status;
}

static void take_gradients(step *s, const helio_gradients *gradients) {
  for (int i = 0; i < s->variables->count; i++) {
    hi_gradient *place = place_of(s, i);
    if (!place) return;
    *place = gradients->list[i];
  }
}

helio_status hi_apply_gradients(helio_optimizer *optimizer, const helio_gradients *gradients,
                                const helio_variables *variables, hi_riders *riders) {
  step s;
  helio_status status = check(optimizer, gradients, variables);
  if (status) return status;
  if (variables->count == 0) return riders ? hi_ride(riders) : HELIO_OK; /* no step, as in Keras */
  helio_scope pool = helio_pool_enter();
  if (!step_begin(&s, optimizer, variables, riders)) take_gradients(&s, gradients);
  status = step_end(&s);
  helio_pool_leave(&pool);
  return status;
}

helio_status helio_apply_gradients(helio_optimizer *optimizer, const helio_gradients *gradients,
                                   const helio_variables *variables) {
  helio_status status = hi_enter(__func__);
  return status ? status : hi_apply_gradients(optimizer, gradients, variables, NULL);
}

/* What was told of stands in the list, or its sum does; the rest is put in now. */
static void take_rest(step *s, const helio_gradients *gradients) {
  for (int i = 0; i < s->variables->count; i++) {
    hi_gradient *place = &s->list[hi_optimizer_find(s->optimizer, s->variables->at[i], i)];
    if (!place->values) *place = gradients->list[i];
  }
}

helio_status hi_minimize(helio_optimizer *optimizer, helio_tape *tape, helio_tensor *loss,
                         const helio_variables *variables, hi_riders *riders) {
  step s;
  helio_status status = hi_optimizer_check(optimizer, variables);
  if (status) return status;
  if (variables->count == 0) return riders ? hi_ride(riders) : HELIO_OK;
  helio_scope pool = helio_pool_enter();
  if (!step_begin(&s, optimizer, variables, riders)) {
    helio_gradient_options o = {.size = sizeof o, .tape = tape, .target = loss, .variables = variables};
    helio_gradients *gradients = hi_gradient_of(&o, s.together ? step_ready : NULL, &s);
    if (gradients && s.together) take_rest(&s, gradients);
    if (gradients && !s.together) take_gradients(&s, gradients);
  }
  status = step_end(&s);
  helio_pool_leave(&pool);
  return status;
}

helio_status helio_minimize(helio_optimizer *optimizer, helio_tape *tape, helio_tensor *loss,
                            const helio_variables *variables) {
  helio_status status = hi_enter(__func__);
  return status ? status : hi_minimize(optimizer, tape, loss, variables, NULL);
}

/* ---- riders alone ---- */

static helio_status sum_riders(hi_riders *riders, hi_replicas *together, hi_gradient *sums) {
  put_riders(riders, sums);
  hi_summing *summing = together->services->sums_begin(together, riders->number, sums, riders->count);
  helio_status status = summing ? together->services->sums_end(summing) : helio_error_pending();
  return status ? status : take_riders(riders, sums);
}

helio_status hi_ride(hi_riders *riders) {
  hi_replicas *together = hi_replicas_together();
  helio_status status;
  hi_tape_pause();
  if (together) {
    hi_gradient *sums = calloc((size_t)riders->count + 1, sizeof *sums);
    status = sums ? sum_riders(riders, together, sums) : hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a step's sums");
    free(sums);
  } else {
    status = take_riders(riders, NULL);
  }
  hi_tape_resume();
  return status;
}
