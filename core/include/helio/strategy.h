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
 * batch, to rounding, if the step's loss is a sum over its samples divided by their global number
 * (helio_compute_average_loss, or a loss of this library, which knows that number).
 *
 * Contexts. Inside HELIO_SCOPE a thread is in the cross-replica context: it makes variables, iterates, reduces. Inside
 * a step that helio_run() calls it is in a replica: it computes on that replica's device with that replica's copies.
 * Outside of all scopes every thread is in the one replica of the default strategy. Scopes belong to their thread.
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

/* What happens when one of several devices fails, or does not answer within HELIO_TIMEOUT seconds. */
typedef enum helio_on_failure {
  HELIO_DROP = 1, /* the strategy goes on without it, with a warning. Each step waits for its sums */
  HELIO_STOP = 2, /* the strategy ends; a new one can be made on the devices that are left. Steps do not wait for an
                     asynchronous collective, so a step may return success although its sums fail later: then the next
                     step, or the next read of a value or variable, reports that, and variables are undefined */
} helio_on_failure;

/* A copy of every variable on each device. */
typedef struct helio_mirrored_options {
  size_t size;
  const char *devices[HELIO_MAX_REPLICAS]; /* none: every visible accelerator (parts of processors only
                                              if there is no other), else every logical CPU */
  double weights[HELIO_MAX_REPLICAS];      /* by which batches are split: {3, 1}; none: all equal */
  const char *collective;                  /* a collective that `helio plugins` lists, or "reduce-to-one"; NULL: that of
                                              HELIO_COLLECTIVE, else the one that suits the devices best */
  helio_on_failure on_failure;             /* 0: HELIO_DROP */
} helio_mirrored_options;

HELIO_EXPORT helio_strategy *helio_mirrored_with(const helio_mirrored_options *options);
#define helio_mirrored(...) HELIO_MAKE(helio_mirrored_with, helio_mirrored_options, __VA_ARGS__)

HELIO_EXPORT int helio_num_replicas(const helio_strategy *strategy);
HELIO_EXPORT const char *helio_strategy_device(const helio_strategy *strategy, int replica); /* full name */
HELIO_EXPORT const char *helio_strategy_name(const helio_strategy *strategy);                /* "MirroredStrategy" */
HELIO_EXPORT const char *helio_strategy_collective(const helio_strategy *strategy);          /* "local"; "": none */

/* One line "NAME: reason\n" for each collective that could not serve these devices, which the log has told as well; ""
 * if there is none, or if the collective that serves them was made for such devices. */
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

/* ---- values: one for each replica ---- */

/* Each replica's tuple of tensors: what a step returns, and an element of a distributed dataset. */
typedef struct helio_values helio_values;

/* One tensor for each replica; the same for all; and a tuple of other values' parts, one after the other. */
HELIO_EXPORT helio_values *helio_values_of(helio_strategy *strategy, helio_tensor *const *tensors, int count);
HELIO_EXPORT helio_values *helio_values_same(helio_strategy *strategy, helio_tensor *tensor);
HELIO_EXPORT helio_values *helio_values_join(helio_values *const *values, int count);

HELIO_EXPORT int helio_values_parts(const helio_values *values);              /* of each replica's tuple */
HELIO_EXPORT helio_values *helio_values_part(helio_values *values, int part); /* by itself */
HELIO_EXPORT helio_tensor *helio_values_at(const helio_values *values, int replica, int part);

/* The tensors of this process' replicas, of values with a single part: one for each replica, or only one if it is the
 * same for all. The list is valid as long as the values. */
HELIO_EXPORT helio_tensor *const *helio_local_results(helio_strategy *strategy, helio_values *values, int *count);

/* ---- data ---- */

typedef enum helio_batch_split {
  HELIO_SPLIT_BALANCED = 1,   /* sizes differ by one at most, the larger first; or by the strategy's weights */
  HELIO_SPLIT_TENSORFLOW = 2, /* pieces of ⌈rows ÷ replicas⌉ until nothing is left */
} helio_batch_split;

/* A dataset of global batches, each of which is cut among the replicas: rows go straight to the replicas' devices,
 * as many batches ahead as there are replicas. A replica for which no rows are left gets a batch without rows. */
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

/* Each replica has a dataset of its own, made by a function; its batches are not cut. Rows are counted in the order of
 * replicas. */
typedef helio_dataset *(*helio_dataset_function)(void *argument, int replica, int replicas);
HELIO_EXPORT helio_distributed *helio_distribute_from_function(helio_strategy *strategy,
                                                               helio_dataset_function function, void *argument);

/* An iteration, from the first batch; the next batch as values, owned by the caller's pool: NULL at the end and on
 * error. Both are for the cross-replica context: steps are given their batch. */
typedef struct helio_distributed_iterator helio_distributed_iterator;
HELIO_EXPORT helio_distributed_iterator *helio_iterate_distributed(helio_distributed *distributed);
HELIO_EXPORT helio_values *helio_next_values(helio_distributed_iterator *iterator);

/* How many batches an iteration brings, as helio_dataset_cardinality() says it. */
HELIO_EXPORT int64_t helio_distributed_cardinality(const helio_distributed *distributed);

/* As helio_iterator_position() and helio_iterator_restore(). */
HELIO_EXPORT char *helio_distributed_position(helio_distributed_iterator *iterator);
HELIO_EXPORT helio_status helio_distributed_restore(helio_distributed_iterator *iterator, const char *position);

/* ---- steps ---- */

/* A replica's part of a step: gets its own part of the inputs (count 0 if there are none) and may write outputs, of
 * which all replicas must have the same number. */
typedef helio_status (*helio_step)(void *argument, const helio_element *inputs, helio_element *outputs);

/* Calls the step in every replica at the same time, each in a thread of its own, and waits for all. NULL if one failed:
 * the error is that of the lowest replica. Results are as if one replica ran after another.
 *
 * A step that fails is not taken: what assignments, metrics and layers wrote is undone. The update by an optimizer,
 * which either all replicas take or none, makes everything written before it final.
 *
 * HELIO_REPLICA_LOST: a device failed, or its replica showed no sign of life for HELIO_TIMEOUT seconds, and the
 * strategy has one replica less now; see helio_retry(). A thread that hangs in a device's driver cannot be ended: it is
 * abandoned, and what it was given (the step's argument, host memory that it copies from) should stay valid until the
 * program ends. */
typedef struct helio_run_options {
  size_t size;
  helio_strategy *strategy;
  helio_step step;
  void *argument;       /* the same for all */
  helio_values *inputs; /* each replica gets its own part; NULL: none */
} helio_run_options;

HELIO_EXPORT helio_values *helio_run_with(const helio_run_options *options);
#define helio_run(...) HELIO_MAKE(helio_run_with, helio_run_options, __VA_ARGS__)

/* After a call that failed: should it be called again? True after a helio_run() if replicas were lost before the step's
 * update: the error is cleared, and *inputs, a batch of helio_next_values(), is split anew among those that are left.
 * If they were lost after the update, the error is cleared too, but the answer is false: the step counts. Any other
 * error is left pending, with the answer false; so it is if the inputs cannot be split, if a call without inputs failed
 * again for the same lost replica, and if a step of several updates took only some of them.
 *
 * After any other call that failed because a device of the strategy did (reading a weight, for example), replicas are
 * lost and the answer is the same; `inputs` may be NULL. Values that replicas do not share are lost with a replica: its
 * loss, its part of a metric.
 *
 *   do {
 *     losses = helio_run(strategy, step, &trainer, batch);
 *   } while (!losses && helio_retry(strategy, &batch)); */
HELIO_EXPORT bool helio_retry(helio_strategy *strategy, helio_values **inputs);

/* Inside a step: waits until all replicas have come here, calls the function once with the inputs of all, in the
 * cross-replica context, and gives each its own part of the result (which may be NULL, without an error). */
typedef helio_values *(*helio_merge)(helio_strategy *strategy, void *argument, helio_values *inputs);
HELIO_EXPORT helio_status helio_merge_call(helio_merge function, void *argument, const helio_element *inputs,
                                           helio_element *outputs);

/* ---- reductions ---- */

typedef enum helio_reduce_op {
  HELIO_SUM = 1,
  HELIO_MEAN = 2,
} helio_reduce_op;

/* Inside a step: the sum or mean of all replicas' tensors, on each. It has a gradient. */
HELIO_EXPORT helio_tensor *helio_all_reduce(helio_reduce_op op, helio_tensor *tensor);

/* Across replicas: element by element or, with .axes, over those axes as well: then replicas may have different numbers
 * of rows, and a mean is over all elements. The result is on the device where operations run. */
typedef struct helio_strategy_reduce_options {
  size_t size;
  helio_strategy *strategy;
  helio_reduce_op op;
  helio_values *values;
  helio_axes axes; /* HELIO_AXES(0); none: only across replicas */
} helio_strategy_reduce_options;

HELIO_EXPORT helio_tensor *helio_reduce_with(const helio_strategy_reduce_options *options);
#define helio_reduce(...) HELIO_MAKE(helio_reduce_with, helio_strategy_reduce_options, __VA_ARGS__)

/* One after the other along an axis, in the order of replicas. */
HELIO_EXPORT helio_tensor *helio_gather(helio_strategy *strategy, helio_values *values, int axis);

/* ---- losses and gradients ---- */

/* Inside a step: Σ loss × weight ÷ global batch size. The size is the one given or, if there is none, the one that the
 * replica knows, else this replica's rows × replicas. The result is 0 for a global batch without rows. */
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
 * helio_apply_gradients(), but sums may be formed while other gradients are still computed. */
HELIO_EXPORT helio_status helio_minimize(helio_optimizer *optimizer, helio_tape *tape, helio_tensor *loss,
                                         const helio_variables *variables);

#ifdef __cplusplus
}
#endif
#endif
