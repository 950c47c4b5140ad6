/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: in which strategy, and in which of its replicas, a thread is. */
#include "ops/placement.h"
#include "runtime/error.h"
#include "strategy/strategy.h"

/* The default strategy, in whose one replica every thread is that is in no other. */
static helio_strategy plain = {.replicas = {.object = {.references = 1, .kept = 1}, .count = 1},
                               .name = "DefaultStrategy",
                               .weights = {1},
                               .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- scopes ---- */

enum { DEEPEST = 64 };

static _Thread_local struct {
  struct {
    hi_context before;
    helio_scope device; /* of a strategy of one device */
    bool placed;
  } scopes[DEEPEST];
  int depth;
} mine;

static helio_status may_enter(const helio_strategy *strategy) {
  if (strategy == &plain && hi_context_now().replicas) {
    return hi_fail(HELIO_WRONG_STATE, "Must not nest helio_strategy scopes: the default strategy is outside of all");
  }
  if (!hi_strategy_usable(strategy) || !hi_require_cross_replica(strategy)) return helio_error_pending();
  if (mine.depth < DEEPEST) return HELIO_OK;
  return hi_fail(HELIO_WRONG_STATE, "more than %d scopes of strategies inside each other", DEEPEST);
}

helio_scope helio_strategy_enter(helio_strategy *strategy) {
  helio_scope outer = {.open = 1, .depth = mine.depth};
  if (hi_enter(__func__) || may_enter(strategy) || strategy == &plain) return outer;
  bool placed = strategy->replicas.count == 1 && strategy->replicas.devices[0];
  mine.scopes[mine.depth].before = hi_context_set((hi_context){.replicas = &strategy->replicas});
  mine.scopes[mine.depth].placed = placed;
  if (placed) mine.scopes[mine.depth].device = hi_placement_enter(strategy->replicas.devices[0]);
  hi_hold(strategy);
  mine.depth++;
  return outer;
}

void helio_strategy_leave(helio_scope *scope) {
  while (scope && mine.depth > scope->depth) {
    mine.depth--;
    if (mine.scopes[mine.depth].placed) helio_device_leave(&mine.scopes[mine.depth].device);
    hi_replicas *left = hi_context_now().replicas;
    hi_context_set(mine.scopes[mine.depth].before);
    hi_drop(left);
  }
}

/* ---- where the thread is ---- */

helio_strategy *helio_strategy_current(void) {
  hi_context now = hi_context_now();
  return now.replicas ? (helio_strategy *)now.replicas : &plain;
}

/* Outside of all scopes a thread is in the default strategy's replica. */
const helio_replica *helio_replica_context(void) {
  static _Thread_local helio_replica outside;
  hi_context now = hi_context_now();
  if (now.replica || now.replicas) return now.replica;
  outside = (helio_replica){
      .strategy = &plain, .count = 1, .device = helio_strategy_device(&plain, 0), .first_row = -1, .global_rows = -1};
  return &outside;
}

bool helio_in_cross_replica_context(void) {
  hi_context now = hi_context_now();
  return now.replicas && !now.replica;
}

bool hi_require_cross_replica(const helio_strategy *strategy) {
  hi_context now = hi_context_now();
  const helio_strategy *current = (const helio_strategy *)now.replicas;
  if (current && current != strategy) {
    hi_fail(HELIO_WRONG_STATE, "Mixing different helio_strategy objects: <%s at %p> is not <%s at %p>", current->name,
            (const void *)current, strategy->name, (const void *)strategy);
    return false;
  }
  if (!now.replica) return true;
  hi_fail(HELIO_WRONG_STATE, "Method requires being in cross-replica context, use helio_merge_call()");
  return false;
}

bool hi_require_replica(helio_replica *replica) {
  const helio_replica *here = helio_replica_context();
  if (here) {
    *replica = *here;
    return true;
  }
  hi_fail(HELIO_WRONG_STATE, "Need to be inside `helio_run()`: this is called in a step, in replica context");
  return false;
}

int helio_replica_id(void) {
  helio_replica replica;
  return !hi_enter(__func__) && hi_require_replica(&replica) ? replica.id : -1;
}
