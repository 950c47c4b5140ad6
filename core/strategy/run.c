/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: what each replica does in its own context, and where they meet inside. */
#include <stdlib.h>

#include "device/point.h"
#include "device/topology.h"
#include "ops/journal.h"
#include "ops/options.h"
#include "ops/placement.h"
#include "ops/tape.h"
#include "runtime/error.h"
#include "runtime/progress.h"
#include "strategy/values.h"
#include "tensor/pool.h"

/* ---- one replica ---- */

typedef struct job {
  helio_strategy *strategy;
  const helio_run_options *options;
  helio_element outputs[HELIO_MAX_REPLICAS]; /* references */
  hi_journal journals[HELIO_MAX_REPLICAS];
  bool abandoned; /* a thread that hangs may still look at it */
} job;

static helio_status call_step(const job *j, int replica, helio_element *outputs) {
  const helio_values *values = j->options->inputs;
  helio_element inputs = {0};
  if (values) inputs = hi_values_element(values, replica);
  helio_status status = j->options->step(j->options->argument, &inputs, outputs);
  hi_done(); /* an abandoned thread goes no further: the job may be gone */
  if (status && !helio_error_pending()) hi_fail(status, "the step returned %s", helio_status_name(status));
  if (outputs->count < 0 || outputs->count > HELIO_MAX_PARTS) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the step gave %d outputs; there may be %d", outputs->count, HELIO_MAX_PARTS);
  }
  return helio_error_pending();
}

/* Where the one replica that has no device of its own computes, as a rule; NULL: not yet, or not any more. */
static hi_device *usual_device(void) {
  hi_device *first = hi_device_first();
  return first && atomic_load(&first->open) && !hi_device_lost(first) ? first : NULL;
}

static helio_status run_replica(void *argument, int number) {
  job *j = argument;
  const helio_values *values = j->options->inputs;
  helio_element outputs = {0};
  hi_device *device = j->strategy->replicas.devices[number];
  helio_replica replica = {.strategy = j->strategy,
                           .id = number,
                           .count = j->strategy->replicas.count,
                           .device = helio_strategy_device(j->strategy, number),
                           .first_row = values ? values->first_row[number] : -1,
                           .global_rows = values ? values->global_rows : -1};
  hi_context before = hi_context_set((hi_context){&j->strategy->replicas, &replica, &j->journals[number]});
  helio_scope placement = device ? hi_placement_enter(device) : (helio_scope){0};
  hi_device *computes = device ? device : usual_device();
  helio_status status = computes ? hi_flight_begin(computes) : HELIO_OK;
  if (!status) status = call_step(j, number, &outputs);
  bool together = j->strategy->team && replica.count > 1;
  if (!status && together && !atomic_load(&j->strategy->committed)) status = hi_strategy_settle(j->strategy, number);
  if (!status && computes) status = hi_flight_end(computes);
  if (status && j->strategy->team) hi_strategy_break(j->strategy); /* others may wait for its part of a sum */
  if (device) helio_device_leave(&placement);
  hi_context_set(before);
  for (int i = 0; i < outputs.count && !status; i++) {
    if (outputs.part[i]) hi_hold(outputs.part[i]);
  }
  if (!status) j->outputs[number] = outputs;
  return status;
}

/* ---- all of them ---- */

static helio_values *take_outputs(const job *j, int count) {
  int parts = j->outputs[0].count;
  for (int i = 1; i < count; i++) {
    if (j->outputs[i].count == parts) continue;
    hi_fail(HELIO_INVALID_ARGUMENT, "replica 0 gave %d outputs and replica %d gave %d", parts, i, j->outputs[i].count);
    return NULL;
  }
  helio_values *values = hi_values_new(j->strategy, parts);
  for (int i = 0; values && i < count; i++) {
    for (int part = 0; part < parts; part++) hi_values_set(values, i, part, j->outputs[i].part[part]);
  }
  return values;
}

/* Whatever the replicas had written becomes what it was, but on devices that are lost. What goes wrong on the way comes
 * second to what went wrong before. */
static void undo_all(job *j) {
  helio_error cause;
  helio_error_take(&cause);
  hi_strategy_calm(j->strategy);
  for (int i = 0; i < j->strategy->replicas.count; i++) {
    hi_journal_undo(&j->journals[i]);
    helio_error_take(NULL);
  }
  hi_fail(cause.status, "%s", cause.message);
}

/* Did all replicas that are not lost come to the end of their step? */
static bool rest_has_ended(const helio_strategy *strategy) {
  bool ended = true;
  for (int i = 0; i < strategy->replicas.count && ended; i++) {
    ended = hi_device_lost(strategy->replicas.devices[i]) || !hi_team_has_failed(strategy->team, i);
  }
  return ended;
}

static helio_status run_together(job *j) {
  helio_strategy *strategy = j->strategy;
  if (atomic_exchange(&strategy->running, true)) {
    return hi_fail(
        HELIO_WRONG_STATE,
        "helio_run() is under way on this strategy: it cannot run inside itself, and threads need one strategy each");
  }
  atomic_store(&strategy->committed, false);
  helio_status status = hi_strategy_survey(strategy, NULL);
  if (!status && j->options->inputs && !hi_values_usable(strategy, j->options->inputs)) status = helio_error_pending();
  if (status) {
    atomic_store(&strategy->running, false);
    return status;
  }
  for (int i = 0; i < strategy->replicas.count; i++) {
    strategy->before[i] = hi_flight_last(strategy->replicas.devices[i]);
  }
  status = hi_strategy_join(strategy);
  if (!status) status = hi_team_run(strategy->team, run_replica, j);
  if (status) {
    for (int i = 0; i < strategy->replicas.count; i++) {
      j->abandoned = j->abandoned || hi_team_has_lost(strategy->team, i);
    }
    hi_strategy_find_culprit(strategy);
    for (int i = 0; i < strategy->replicas.count; i++)
      hi_communicator_trust(strategy->communicators[i]); /* it is told */
    hi_strategy_find_lost(strategy);
    strategy->half_taken = atomic_load(&strategy->committed) && !rest_has_ended(strategy);
    undo_all(j);
    status = hi_strategy_failed(strategy);
  }
  atomic_store(&strategy->running, false);
  return status;
}

static helio_values *run(const helio_run_options *o) {
  helio_strategy *strategy = o->strategy;
  int count = strategy->replicas.count;
  helio_status status = HELIO_OK;
  job *j = calloc(1, sizeof *j);
  if (!j) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a step");
    return NULL;
  }
  *j = (job){.strategy = strategy, .options = o};
  if (strategy->team) {
    status = run_together(j);
  } else {
    helio_scope pool = helio_pool_enter();
    status = run_replica(j, 0);
    helio_pool_leave(&pool);
    if (status) undo_all(j);
  }
  helio_values *values = status ? NULL : take_outputs(j, count);
  if (!status && !values) undo_all(j);
  for (int i = 0; i < count; i++) {
    for (int part = 0; part < j->outputs[i].count; part++) hi_drop(j->outputs[i].part[part]);
    if (values) hi_journal_keep(&j->journals[i]);
  }
  if (!j->abandoned) free(j);
  return values;
}

helio_values *helio_run_with(const helio_run_options *given) {
  helio_run_options o;
  if (!hi_options_enter("helio_run", &o, sizeof o, given) || !hi_strategy_usable(o.strategy)) return NULL;
  if (!o.step) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the step is NULL");
    return NULL;
  }
  if (!hi_require_cross_replica(o.strategy)) return NULL;
  if (o.inputs && !o.strategy->team && !hi_values_usable(o.strategy, o.inputs)) return NULL;
  hi_hold(o.strategy);
  helio_values *values = run(&o);
  hi_drop(o.strategy);
  return values;
}

/* Outside of steps nobody asked yet whose device it was that failed: now the strategy is told. */
static void lose_outside(helio_strategy *strategy) {
  helio_error cause;
  helio_error_take(&cause);
  hi_strategy_look_around(strategy, &cause);
  if (!helio_error_pending()) hi_fail(cause.status, "%s", cause.message);
}

bool hi_strategy_take_loss(helio_strategy *strategy, helio_error *lost) {
  if (helio_error_pending() == HELIO_DEVICE_FAILURE) lose_outside(strategy);
  if (helio_error_pending() != HELIO_REPLICA_LOST || strategy->half_taken) return false;
  helio_error_take(lost);
  return true;
}

/* Without inputs the answer is yes once for each loss: what else is as it was would fail again, for ever. */
static bool retry_without_inputs(helio_strategy *strategy, const helio_error *lost) {
  if (strategy->answered != strategy->losses) {
    strategy->answered = strategy->losses;
    return true;
  }
  hi_fail(lost->status, "%s. Make what it needs anew, for the replicas that are left", lost->message);
  return false;
}

/* Each time that splitting fails there is a replica less, so it comes to an end. */
bool helio_retry(helio_strategy *strategy, helio_values **inputs) {
  helio_error lost;
  if (!strategy || hi_context_now().replica) return false;
  if (!hi_strategy_take_loss(strategy, &lost) || atomic_load(&strategy->committed)) return false;
  if (!inputs || !*inputs) return retry_without_inputs(strategy, &lost);
  if (!(*inputs)->batch) {
    hi_fail(HELIO_NOT_SUPPORTED, "%s. These inputs cannot be split anew: only batches of helio_distribute() can",
            lost.message);
    return false;
  }
  helio_values *anew;
  do {
    anew = hi_values_cut(strategy, (*inputs)->split, (*inputs)->batch);
  } while (!anew && hi_strategy_take_loss(strategy, &lost));
  if (anew) *inputs = anew;
  return anew;
}

/* ---- meeting inside a step ---- */

typedef struct visit {
  helio_strategy *strategy;
  helio_merge function;
  void *argument;
  const helio_element *inputs; /* NULL: none */
  helio_element outputs;       /* references */
} visit;

static helio_values *gather_inputs(void *const *brought, int count) {
  const visit *first = brought[0];
  int parts = first->inputs ? first->inputs->count : 0;
  for (int i = 1; i < count; i++) {
    if (((const visit *)brought[i])->function == first->function) continue;
    hi_fail(HELIO_WRONG_STATE, "replica 0 and replica %d called helio_merge_call() with different functions", i);
    return NULL;
  }
  helio_values *values = hi_values_new(first->strategy, parts);
  for (int i = 0; values && i < count; i++) {
    const visit *v = brought[i];
    if ((v->inputs ? v->inputs->count : 0) != parts) {
      hi_fail(HELIO_INVALID_ARGUMENT, "replica 0 brought %d values to helio_merge_call() and replica %d another number",
              parts, i);
      return NULL;
    }
    for (int part = 0; part < parts; part++) hi_values_set(values, i, part, v->inputs->part[part]);
  }
  return values;
}

static void hand_out(const helio_values *values, void *const *brought, int count) {
  for (int i = 0; values && i < count; i++) {
    visit *v = brought[i];
    v->outputs = hi_values_element(values, i);
    for (int part = 0; part < v->outputs.count; part++) {
      if (v->outputs.part[part]) hi_hold(v->outputs.part[part]);
    }
  }
}

/* Whichever replica's thread it is on, its tapes have nothing to do with it. While the user's function runs nothing of
 * the others' is looked at: they leave without this thread if it is abandoned. */
static helio_status merge(void *const *brought, int count) {
  const visit first = *(const visit *)brought[0];
  hi_tapes tapes = hi_tapes_set((hi_tapes){0});
  hi_device *first_device = first.strategy->replicas.devices[0];
  helio_scope pool = helio_pool_enter(), device = {0};
  if (first_device) device = hi_placement_enter(first_device);
  helio_values *inputs = gather_inputs(brought, count);
  hi_doing("a function of helio_merge_call()", NULL);
  helio_values *result = inputs ? first.function(first.strategy, first.argument, inputs) : NULL;
  hi_done();
  if (!helio_error_pending() && result && hi_values_usable(first.strategy, result)) hand_out(result, brought, count);
  if (first_device) helio_device_leave(&device);
  helio_pool_leave(&pool);
  hi_tapes_set(tapes);
  return helio_error_pending();
}

/* Gives the tensors to the thread's pool; the references are the pool's then. */
static helio_status adopt(helio_element *outputs) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < outputs->count; i++) {
    if (!outputs->part[i] || hi_pool_add(&outputs->part[i]->object)) continue;
    status = helio_error_pending();
    hi_drop(outputs->part[i]);
    outputs->part[i] = NULL;
  }
  return status;
}

helio_status helio_merge_call(helio_merge function, void *argument, const helio_element *inputs,
                              helio_element *outputs) {
  helio_replica replica;
  helio_status status = hi_enter(__func__);
  if (status) return status;
  if (!function) return hi_fail(HELIO_INVALID_ARGUMENT, "the function is NULL");
  if (!hi_require_replica(&replica)) return helio_error_pending();
  visit mine = {.strategy = replica.strategy, .function = function, .argument = argument, .inputs = inputs};
  hi_replicas *together = hi_replicas_together();
  if (together) {
    status = together->services->meet(together, merge, &mine);
  } else {
    hi_context before = hi_context_now();
    hi_context_set((hi_context){.replicas = &replica.strategy->replicas, .journal = before.journal});
    status = merge((void *[]){&mine}, 1);
    hi_context_set(before);
  }
  if (!status) status = adopt(&mine.outputs);
  if (!status && outputs) *outputs = mine.outputs;
  return status;
}
