/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies from the inside. */
#ifndef HI_STRATEGY_H
#define HI_STRATEGY_H

#include "ops/replica.h"
#include "strategy/collective.h"
#include "strategy/team.h"

struct hi_gradient_plan;

struct helio_strategy {
  hi_replicas replicas; /* first: those who know nothing of strategies know these */
  const char *name;
  double weights[HELIO_MAX_REPLICAS]; /* by which batches are split */
  hi_team *team;                      /* NULL: a single replica, which runs on the caller's thread */
  hi_collective_choice collective;    /* of several replicas */
  hi_communicator *communicators[HELIO_MAX_REPLICAS];
  atomic_bool running; /* a step is under way */
  atomic_bool broken;  /* a collective failed: the communicators are to be made anew */
  bool ordered;
  size_t bucket_bytes;
  struct hi_gradient_plan *plan; /* kept by gradients.c */
  helio_strategy *next;          /* in the list of all */
};

/* Sets the error and returns false if the strategy is NULL or has outlived helio_shutdown(). */
bool hi_strategy_usable(const helio_strategy *strategy);

/* Sets the error, in TensorFlow's words, and returns false if the thread is in a replica or in another strategy's
 * scope. */
bool hi_require_cross_replica(const helio_strategy *strategy);

/* Likewise, unless it is in one; `replica` is written. */
bool hi_require_replica(helio_replica *replica);

/* The services of several replicas (ops/replica.h). */
extern const hi_replica_services hi_mirrored_services;

hi_summing *hi_sums_begin(hi_replicas *replicas, uint64_t key, hi_gradient *gradients, int count);
helio_status hi_sums_ready(hi_summing *summing, int index);
helio_status hi_sums_end(hi_summing *summing);
void hi_gradient_plan_free(struct hi_gradient_plan *plan);

/* Every replica's thread joins the group, anew if a collective failed before. No step is under way. */
helio_status hi_strategy_join(helio_strategy *strategy);

/* This replica cannot go on with its part of a sum: the others' waits are ended, and the group is made anew for the
 * next step. */
helio_status hi_strategy_break(helio_strategy *strategy);

/* Ends the threads of all strategies, before the devices are closed. */
void hi_strategies_stop(void);

#endif
