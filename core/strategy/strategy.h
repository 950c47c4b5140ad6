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
  helio_on_failure on_failure;
  pthread_mutex_t lock;  /* of the replicas' number, devices and weights for threads that read ahead */
  unsigned losses;       /* how often replicas were lost, under the lock */
  atomic_bool running;   /* a step is under way */
  atomic_bool broken;    /* a collective failed: the communicators are to be made anew */
  atomic_bool committed; /* the latest step's update has taken place */
  atomic_bool has_ended; /* by a failure */
  const struct hi_point *before[HELIO_MAX_REPLICAS]; /* how far each device has to come to have done the steps before */
  bool half_taken; /* the latest step was to take more updates than it did before replicas were lost */
  double reduce_seconds[HELIO_MAX_REPLICAS]; /* that each has spent on sums, waiting for the others among it */
  double reduce_begin[HELIO_MAX_REPLICAS];   /* of its latest sums, by hi_seconds(): when all of its own were there, */
  double reduce_end[HELIO_MAX_REPLICAS];     /* and when its thread went on with those of all */
  unsigned answered;                         /* up to which loss helio_retry() has said yes to calls without inputs */
  atomic_bool sums_said, reads_said;         /* where they go */
  bool ordered;
  size_t bucket_bytes;
  struct hi_gradient_plan *plan; /* kept by gradients.c */
  helio_strategy *next;          /* in the list of all */
};

/* Sets the error and returns false if the strategy is NULL, has ended by a failure or has outlived helio_shutdown(). */
bool hi_strategy_usable(const helio_strategy *strategy);

/* Sets the error, in TensorFlow's words, and returns false if the thread is in a replica or in another strategy's
 * scope. */
bool hi_require_cross_replica(const helio_strategy *strategy);

/* Likewise, unless it is in one; `replica` is written. */
bool hi_require_replica(helio_replica *replica);

/* "('/job:…CPU:0', '/job:…CPU:1')", as Python prints a tuple; to be freed. NULL without memory. */
char *hi_strategy_tuple(const helio_strategy *strategy);

/* Says once, in TensorFlow's words, on which device a strategy adds up what its replicas have computed, and that the
 * host reads the results, if it does so on one device: what was made for the devices goes without saying. */
void hi_strategy_say_sums(helio_strategy *strategy);
void hi_strategy_say_reads(helio_strategy *strategy);

/* The services of several replicas (ops/replica.h). */
extern const hi_replica_services hi_mirrored_services;

hi_summing *hi_sums_begin(hi_replicas *replicas, uint64_t key, hi_gradient *gradients, int count);
helio_status hi_sums_ready(hi_summing *summing, int index);
helio_status hi_sums_end(hi_summing *summing);
void hi_gradient_plan_free(struct hi_gradient_plan *plan);

/* That what this replica has been handed so far is done and well; where nobody goes on without another there is no need
 * to wait for it. */
helio_status hi_strategy_settle(helio_strategy *strategy, int replica);

/* What no step has waited for is waited for now, on all devices: whoever reads results reads those of one, while
 * another may have met bad data. Outside of steps. */
helio_status hi_strategy_judge(helio_strategy *strategy);

/* Behind an error outside of steps: takes it if replicas were lost, which are then the strategy's no more; `lost` says
 * how. Where it is true there are replicas left, fewer than before. */
bool hi_strategy_take_loss(helio_strategy *strategy, helio_error *lost);

/* Every replica's thread joins the group, anew if a collective failed before. No step is under way. */
helio_status hi_strategy_join(helio_strategy *strategy);

/* Frees the communicators, or leaves them alone where a thread hangs that may look at any of them. */
void hi_strategy_leave_group(helio_strategy *strategy);

/* This replica cannot go on with its part of a sum: the others' waits are ended, and the group is made anew for the
 * next step. */
helio_status hi_strategy_break(helio_strategy *strategy);

/* Behind a failed step, when all replicas that failed gave up because of another: asks the group whose device it was,
 * which then counts as suspect and is what the pending error is about. */
void hi_strategy_find_culprit(helio_strategy *strategy);

/* What a failure has left under way on devices that are not lost comes to its end, and what it found is forgotten: bad
 * data of the next step is that one's own. No error is pending, before and behind it. */
void hi_strategy_calm(helio_strategy *strategy);

/* Marks devices that failed, or in which threads hang, as lost. No job is under way. */
void hi_strategy_find_lost(helio_strategy *strategy);

/* Behind a job that failed, whose error is pending: replicas whose devices failed or whose threads hang are lost. With
 * HELIO_DROP the error is HELIO_REPLICA_LOST then and the strategy has fewer replicas, else it has ended. */
helio_status hi_strategy_failed(helio_strategy *strategy);

/* The same before a step, for devices that have failed since the last one; `cause`, if it is known, was taken. */
helio_status hi_strategy_survey(helio_strategy *strategy, const helio_error *cause);

/* The same outside of steps; does nothing while one is under way, which will look by itself. */
helio_status hi_strategy_look_around(helio_strategy *strategy, const helio_error *cause);

/* The replicas at this moment, from any thread. */
typedef struct hi_replicas_now {
  int count;
  unsigned losses;
  hi_device *devices[HELIO_MAX_REPLICAS];
  double weights[HELIO_MAX_REPLICAS];
} hi_replicas_now;

hi_replicas_now hi_strategy_replicas(helio_strategy *strategy);

/* Is a step of several replicas under way? */
bool hi_strategies_run(void);

/* Ends the threads of all strategies, before the devices are closed. */
void hi_strategies_stop(void);

#endif
