/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas as variables, layers and optimizers see them: which one the thread runs, and what all of them do together.
 * Strategies, which stand above, fill this in. */
#ifndef HI_REPLICA_H
#define HI_REPLICA_H

#include "device/device.h"
#include "ops/dispatch.h"
#include "tensor/object.h"

typedef struct hi_replicas hi_replicas;
typedef struct hi_summing hi_summing;

/* Called once with what each replica brought, in the order of replicas. */
typedef helio_status (*hi_merge)(void *const *brought, int count);

/* Each is called by a replica's own thread; all replicas make the same calls in the same order, and a failure of one is
 * an error of all. */
typedef struct hi_replica_services {
  /* Waits until all replicas have come, calls the function (NULL: none) on one of their threads in the cross-replica
   * context, and lets all go on. */
  helio_status (*meet)(hi_replicas *replicas, hi_merge function, void *mine);

  /* The same for the meeting behind which every replica writes what it cannot take back, or none does: before it, each
   * has seen that its sums are there, unless replicas that fail end the strategy anyway. */
  helio_status (*commit)(hi_replicas *replicas, hi_merge function, void *mine);

  /* That the tensors, which have these names, are the same on all replicas; else an error of all names the one whose
   * are not. */
  helio_status (*compare)(hi_replicas *replicas, helio_tensor *const *tensors, const char *const *names, int count);

  /* The sum over replicas of tensors of one type and shape, on each replica; a new tensor. */
  helio_tensor *(*sum)(hi_replicas *replicas, helio_tensor *tensor);

  /* Replica 0's tensor on each replica; a new tensor on all others. */
  helio_tensor *(*broadcast)(hi_replicas *replicas, helio_tensor *tensor);

  /* Replaces gradients, of which every replica has as many, by their sums over replicas: those of rows by the rows of
   * all. What one replica lacks counts as zeros there; what all lack stays so. The new tensors belong to the innermost
   * pool.
   * Begin: the list, which may be empty yet; `key`, which is not 0, tells it from all other lists that there ever are.
   * NULL with the error set.
   * Ready: this gradient stands in the list now, and may travel while others are computed. Need not be called.
   * End: all gradients stand in the list; or, if an error is pending, it will never be whole. Frees the summing. */
  hi_summing *(*sums_begin)(hi_replicas *replicas, uint64_t key, hi_gradient *gradients, int count);
  helio_status (*sums_ready)(hi_summing *summing, int index);
  helio_status (*sums_end)(hi_summing *summing);
} hi_replica_services;

struct hi_replicas {
  hi_object object;
  const hi_replica_services *services;
  int count;
  hi_device *devices[HELIO_MAX_REPLICAS]; /* the default strategy's one replica has none: it is wherever things run */
  bool compared;                          /* HELIO_CHECK_REPLICAS */
  int copy[HELIO_MAX_REPLICAS]; /* which of a variable's copies is the replica's: replicas that are lost leave gaps */
};

/* Where a thread is. */
typedef struct hi_context {
  hi_replicas *replicas;        /* of the innermost scope or step; NULL: outside all, in the default replica */
  const helio_replica *replica; /* the one that the thread runs; NULL: the cross-replica context, or outside all */
  struct hi_journal *journal;   /* of the step's writes; NULL: outside of steps */
} hi_context;

hi_context hi_context_now(void);

/* Returns what was, to be set again. */
hi_context hi_context_set(hi_context context);

/* The replica's number if the thread runs one of these replicas, else −1. */
int hi_replica_of(const hi_replicas *replicas);

/* The replicas of the thread's step if there are several, else NULL: who computes alone need not meet anyone. */
hi_replicas *hi_replicas_together(void);

/* The sum over the replicas of the thread's step, on each; the tensor itself where there is one. Its gradient is the
 * sum of all replicas' gradients. NULL with the error set. */
helio_tensor *hi_all_reduce(helio_tensor *tensor);

/* For what one replica's thread does for all, such as making variables under a lock: until the context that it returns
 * is set again, the thread is in the cross-replica context. */
hi_context hi_context_alone(void);

#endif
