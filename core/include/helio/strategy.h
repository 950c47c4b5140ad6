/* SPDX-License-Identifier: Apache-2.0 */
/* Heliostat: strategies. Included by helio.h; there is no need to include it by itself.
 *
 *   helio_strategy *strategy = helio_mirrored();
 *   HELIO_SCOPE(strategy) { model, optimizer and metrics are made here: their variables have a copy on every device }
 *   helio_distributed_iterator *batches = helio_iterate_distributed(helio_distribute(strategy, dataset));
 *   for (helio_values *batch; (batch = helio_next_values(batches));) {
 *     helio_values *losses = helio_run(strategy, train_step, &trainer, batch);
 *     total += helio_item(helio_reduce(strategy, HELIO_SUM, losses));
 *   }
 *
 * The law: with any number of replicas and any split of the batch a step gives what one device gives on the whole
 * batch, to rounding, if the step's loss is a sum over its samples divided by the global number of them
 * (helio_compute_average_loss, or a loss of this library, which knows that number).
 *
 * Contexts. Inside HELIO_SCOPE a thread is in the cross-replica context: it makes variables, iterates, reduces. Inside
 * a step that helio_run() calls it is in a replica: it computes on that replica's device with that replica's copies.
 * Outside any scope there is the default strategy with one replica, in which every thread is. Scopes belong to their
 * thread.
 */
#ifndef HELIO_STRATEGY_H
#define HELIO_STRATEGY_H

#include <helio/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct helio_strategy helio_strategy;

#define HELIO_MAX_REPLICAS 64

/* All variables and steps on one device. */
HELIO_EXPORT helio_strategy *helio_one_device(const char *device);

/* What happens when a device fails, or does not come back within HELIO_TIMEOUT seconds, in a strategy of several. */
typedef enum helio_on_failure {
  HELIO_DROP = 1, /* the strategy goes on without it, with a warning. Costs each step a wait for its sums */
  HELIO_STOP = 2, /* the strategy ends; a new one can be made on the devices that are left. A step may have ended well
                     whose sums fail behind it, with a collective that nobody waits for: then the next step, or whoever
                     reads a value or a variable from its devices, is told, and variables are undefined */
} helio_on_failure;

/* A copy of every variable on each device. */
typedef struct helio_mirrored_options {
  size_t size;
  const char *devices[HELIO_MAX_REPLICAS]; /* none: every visible accelerator, else every logical CPU */
  double weights[HELIO_MAX_REPLICAS];      /* by which batches are split: {3, 1}; none: all equal */
  const char *collective;      /* what sums between devices, as `helio plugins` lists it, or "reduce-to-one"; NULL: of
                                  HELIO_COLLECTIVE, else what suits the devices best */
  helio_on_failure on_failure; /* 0: HELIO_DROP */
} helio_mirrored_options;

HELIO_EXPORT helio_strategy *helio_mirrored_with(const helio_mirrored_options *options);
#define helio_mirrored(...) HELIO_MAKE(helio_mirrored_with, helio_mirrored_options, __VA_ARGS__)

HELIO_EXPORT int helio_num_replicas(const helio_strategy *strategy);
HELIO_EXPORT const char *helio_strategy_device(const helio_strategy *strategy, int replica); /* full name */
HELIO_EXPORT const char *helio_strategy_name(const helio_strategy *strategy);                /* "MirroredStrategy" */
HELIO_EXPORT const char *helio_strategy_collective(const helio_strategy *strategy);          /* "local"; "": none */

/* What could not serve where the collective was not made for the devices: a line for each, "NAME: why\n"; "": nothing
 * was replaced. The log has said it. */
HELIO_EXPORT const char *helio_strategy_fallbacks(const helio_strategy *strategy);

/* ---- contexts ---- */

/* HELIO_SCOPE(strategy) { … }: a scope inside itself is allowed, inside another strategy's it is an error. */
HELIO_EXPORT helio_scope helio_strategy_enter(helio_strategy *strategy);
HELIO_EXPORT void helio_strategy_leave(helio_scope *scope);
#define HELIO_SCOPE(strategy) HELIO_BLOCK(helio_strategy_enter(strategy), helio_strategy_leave)

/* The strategy of the innermost scope or of the step that the thread runs; the default one outside. */
HELIO_EXPORT helio_strategy *helio_strategy_current(void);

typedef struct helio_replica {
  helio_strategy *strategy;
  int id, count;       /* which of how many */
  const char *device;  /* its full name */
  int64_t first_row;   /* of the replica's part in the global batch; −1: not known */
  int64_t global_rows; /* of the global batch; −1: not known */
} helio_replica;

/* The replica that the thread runs; NULL, which is no error, in the cross-replica context. */
HELIO_EXPORT const helio_replica *helio_replica_context(void);
HELIO_EXPORT bool helio_in_cross_replica_context(void);
HELIO_EXPORT int helio_replica_id(void); /* −1 with the error set in the cross-replica context */

/* ---- values of which each replica has its own ---- */

/* Each replica's tuple of tensors: what a step returns, and an element of a distributed dataset. */
typedef struct helio_values helio_values;

/* One tensor for each replica; the same for all; and a tuple of other values' parts, one behind the other. */
HELIO_EXPORT helio_values *helio_values_of(helio_strategy *strategy, helio_tensor *const *tensors, int count);
HELIO_EXPORT helio_values *helio_values_same(helio_strategy *strategy, helio_tensor *tensor);
HELIO_EXPORT helio_values *helio_values_join(helio_values *const *values, int count);

HELIO_EXPORT int helio_values_parts(const helio_values *values);              /* of each replica's tuple */
HELIO_EXPORT helio_values *helio_values_part(helio_values *values, int part); /* by itself */
HELIO_EXPORT helio_tensor *helio_values_at(const helio_values *values, int replica, int part);

/* The values of this process' replicas: of a single part, as many as there are replicas, or one if it is the same for
 * all. The list is valid as long as the values. */
HELIO_EXPORT helio_tensor *const *helio_local_results(helio_strategy *strategy, helio_values *values, int *count);

/* ---- data ---- */

typedef enum helio_batch_split {
  HELIO_SPLIT_BALANCED = 1,   /* sizes differ by one at most, the larger first; or by the strategy's weights */
  HELIO_SPLIT_TENSORFLOW = 2, /* pieces of ⌈rows ÷ replicas⌉ until nothing is left */
} helio_batch_split;

/* A dataset of global batches, each of which is cut among the replicas: rows go straight to the replicas' devices,
 * ahead of their use by as many batches as there are replicas. A replica for which nothing is left gets a batch of no
 * rows. */
typedef struct helio_distribute_options {
  size_t size;
  helio_strategy *strategy;
  helio_dataset *dataset;
  helio_batch_split split; /* 0: balanced */
  int prefetch;            /* batches made ahead; 0: as many as replicas, HELIO_NONE: none */
} helio_distribute_options;

typedef struct helio_distributed helio_distributed;

HELIO_EXPORT helio_distributed *helio_distribute_with(const helio_distribute_options *options);
#define helio_distribute(...) HELIO_MAKE(helio_distribute_with, helio_distribute_options, __VA_ARGS__)

/* Each replica has a dataset of its own, made by a function, whose batches are as they are. Rows are counted in the
 * order of replicas. */
typedef helio_dataset *(*helio_dataset_function)(void *argument, int replica, int replicas);
HELIO_EXPORT helio_distributed *helio_distribute_from_function(helio_strategy *strategy,
                                                               helio_dataset_function function, void *argument);

/* One iteration, from the first batch; the next batch as values, owned by the caller's pool: NULL at the end and on
 * error. Both are for the cross-replica context: a step is given its batch, it does not take it. */
typedef struct helio_distributed_iterator helio_distributed_iterator;
HELIO_EXPORT helio_distributed_iterator *helio_iterate_distributed(helio_distributed *distributed);
HELIO_EXPORT helio_values *helio_next_values(helio_distributed_iterator *iterator);

/* How many batches an iteration brings, as helio_dataset_cardinality() says it. */
HELIO_EXPORT int64_t helio_distributed_cardinality(const helio_distributed *distributed);

/* As helio_iterator_position() and helio_iterator_restore(). */
HELIO_EXPORT char *helio_distributed_position(helio_distributed_iterator *iterator);
HELIO_EXPORT helio_status helio_distributed_restore(helio_distributed_iterator *iterator, const char *position);

/* ---- steps ---- */

/* A replica's part of a step: gets its own part of the inputs (count 0 if there are none) and may write outputs, which
 * all replicas must give alike in number. */
typedef helio_status (*helio_step)(void *argument, const helio_element *inputs, helio_element *outputs);

/* Calls the step in every replica at the same time, each in a thread of its own, and waits for all. NULL if one failed:
 * the error is that of the lowest replica. Results as if one replica ran after another.
 *
 * A step that fails is not taken: what it wrote by assignments, metrics and layers becomes what it was before. The
 * update by an optimizer, which all replicas take or none, makes what was written before it final.
 *
 * HELIO_REPLICA_LOST: a device failed, or its replica showed no sign of life for HELIO_TIMEOUT seconds, and the
 * strategy has a replica less now; see helio_retry(). A thread that hangs in a device's driver cannot be ended: it is
 * abandoned, and what it was given (the step's argument, host memory that it copies from) should stay valid until the
 * program ends. */
typedef struct helio_run_options {
  size_t size;
  helio_strategy *strategy;
  helio_step step;
  void *argument;       /* reaches all alike */
  helio_values *inputs; /* of which each gets its own; NULL: none */
} helio_run_options;

HELIO_EXPORT helio_values *helio_run_with(const helio_run_options *options);
#define helio_run(...) HELIO_MAKE(helio_run_with, helio_run_options, __VA_ARGS__)

/* Behind a call that failed: is it to be called again? So it is behind a helio_run() if replicas were lost before the
 * step's update: the error is taken then, and *inputs, a batch of helio_next_values(), is split anew among those that
 * are left. If they were lost behind the update the error is taken too, and the step is not to be repeated. Any other
 * error is left pending; so is that of inputs that cannot be split, of a call without inputs that failed before for the
 * same loss, and of a step that was to take several updates and took some of them.
 *
 * Behind any other call that failed because a device of the strategy did (reading a weight, say), replicas are lost and
 * the answer is the same; `inputs` may be NULL. What replicas do not share is lost with one: its loss, its part of a
 * metric.
 *
 *   do {
 *     losses = helio_run(strategy, step, &trainer, batch);
 *   } while (!losses && helio_retry(strategy, &batch)); */
HELIO_EXPORT bool helio_retry(helio_strategy *strategy, helio_values **inputs);

/* Inside a step: waits until all replicas have come here, calls the function once with what they brought, in the
 * cross-replica context, and gives each its own of the result (NULL, without an error, for nothing). */
typedef helio_values *(*helio_merge)(helio_strategy *strategy, void *argument, helio_values *inputs);
HELIO_EXPORT helio_status helio_merge_call(helio_merge function, void *argument, const helio_element *inputs,
                                           helio_element *outputs);

/* ---- joining ---- */

typedef enum helio_reduce_op {
  HELIO_SUM = 1,
  HELIO_MEAN = 2,
} helio_reduce_op;

/* Inside a step: the sum or mean of all replicas' tensors, on each. It has a gradient. */
HELIO_EXPORT helio_tensor *helio_all_reduce(helio_reduce_op op, helio_tensor *tensor);

/* Across replicas: element by element or, with .axes, also over those: then replicas may have unequal numbers, and a
 * mean is over all elements. The result is where operations run. */
typedef struct helio_strategy_reduce_options {
  size_t size;
  helio_strategy *strategy;
  helio_reduce_op op;
  helio_values *values;
  helio_axes axes; /* HELIO_AXES(0); none: across replicas alone */
} helio_strategy_reduce_options;

HELIO_EXPORT helio_tensor *helio_reduce_with(const helio_strategy_reduce_options *options);
#define helio_reduce(...) HELIO_MAKE(helio_reduce_with, helio_strategy_reduce_options, __VA_ARGS__)

/* One behind the other along an axis, in the order of replicas. */
HELIO_EXPORT helio_tensor *helio_gather(helio_strategy *strategy, helio_values *values, int axis);

/* ---- losses and gradients ---- */

/* Inside a step: Σ loss × weight ÷ global batch size. The size is the one given or, if there is none, the one that the
 * replica knows, else this replica's rows × replicas. Of a global batch without rows it is 0. */
typedef struct helio_average_loss_options {
  size_t size;
  helio_tensor *losses;      /* one for each sample */
  int64_t global_batch_size; /* 0: not given; HELIO_INTEGER_ZERO: 0 */
  helio_tensor *sample_weights;
} helio_average_loss_options;

HELIO_EXPORT helio_tensor *helio_compute_average_loss_with(const helio_average_loss_options *options);
#define helio_compute_average_loss(...)                                                                                \
  HELIO_MAKE(helio_compute_average_loss_with, helio_average_loss_options, __VA_ARGS__)

/* Inside a step: the loss ÷ replicas, so that the replicas' sum counts it once. */
HELIO_EXPORT helio_tensor *helio_scale_regularization_loss(helio_tensor *loss);

/* Gradients of the loss, summed over replicas, and a step of the optimizer: as helio_gradient() and
 * helio_apply_gradients(), but sums may travel while the rest is still computed. */
HELIO_EXPORT helio_status helio_minimize(helio_optimizer *optimizer, helio_tape *tape, helio_tensor *loss,
                                         const helio_variables *variables);

#ifdef __cplusplus
}
#endif
#endif
