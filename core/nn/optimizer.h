/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers from the inside. What all have in common: optimizer.c (life, slots), optimizer_step.c (a step) and
 * optimizer_file.c (saving and loading). What differs is one hi_optimizer_kind each, in optimizer_kinds.c. */
#ifndef HI_OPTIMIZER_H
#define HI_OPTIMIZER_H

#include "nn/schedule.h"
#include "ops/table.h"
#include "ops/variable.h"

enum { HI_MOST_SLOTS = 3 };

/* What is kept for each variable besides its value. */
typedef struct hi_slot {
  const char *name; /* behind the variable's: "momentum" */
  double start;     /* its first value */
  int place;        /* among the inputs of the update's row */
} hi_slot;

/* What a step needs besides variables, slots and gradients: the same for all variables. */
typedef struct hi_update_step {
  double rate;                          /* learning rate */
  double decay;                         /* what weights lose before the update, as a part of them */
  int64_t number;                       /* of the update: 1, 2, … */
  double momentum_product;              /* Nadam's: of all momenta so far; brought up to date by `scalars` */
  helio_scalar scalars[HI_MAX_SCALARS]; /* of the row, filled by `scalars` */
} hi_update_step;

typedef struct hi_optimizer_kind {
  const char *class_name; /* "RMSprop", as Keras has it */
  const char *name;       /* "rm_sprop": what one is called that was given no name */
  const char *function;   /* the public one that makes it */
  helio_operation update; /* the row that updates a variable in place */
  unsigned knows;         /* its options besides those that all have, a bit each */
  double learning_rate;   /* defaults, where they differ */
  double weight_decay;
  bool by_variable;      /* slots are listed variable by variable, else slot by slot, as Keras does */
  bool momentum_product; /* it is part of what is saved */

  /* Writes the slots that it has under these options and says how many. */
  int (*slots)(const helio_optimizer_options *o, hi_slot slots[HI_MOST_SLOTS]);

  void (*scalars)(const helio_optimizer_options *o, hi_update_step *step);
} hi_optimizer_kind;

/* The variables that are the optimizer's, and their slots. */
typedef struct hi_tracked {
  int count, list_count;
  helio_variable **variables; /* NULL: not decided yet. A reference to each */
  helio_variable **list;      /* the accumulators if there are any, then the slots: see hi_optimizer_slot() */
} hi_tracked;

/* What changes with every step, apart from slots. */
typedef struct hi_optimizer_numbers {
  int64_t calls;           /* of helio_apply_gradients(): Keras' "iteration" */
  double learning_rate;    /* unless there is a schedule */
  double momentum_product; /* Nadam's */
} hi_optimizer_numbers;

struct helio_optimizer {
  hi_object object;
  const hi_optimizer_kind *kind;
  uint64_t number; /* no other optimizer of the process has it, or had it; not 0 */
  char *name;
  helio_optimizer_options options; /* complete: zeros stand for themselves */
  helio_schedule *schedule;        /* a reference, or NULL */
  hi_slot slots[HI_MOST_SLOTS];
  int slot_count;
  hi_tracked tracked;
  atomic_bool ready;      /* set under the lock of building, when they are decided */
  helio_variables listed; /* tracked.list, for the user */
  hi_optimizer_numbers numbers;
  atomic_bool warned; /* of variables without gradients */
};

/* A new optimizer by options that are checked and complete, owned by the innermost pool. NULL with the error set. */
helio_optimizer *hi_optimizer_new(const hi_optimizer_kind *kind, const helio_optimizer_options *options);

/* Can these variables be updated, and are they the optimizer's if that is decided? Takes NULL for an error. */
helio_status hi_optimizer_check(const helio_optimizer *optimizer, const helio_variables *variables);

/* Decides, unless that was done, that these variables, which were checked, are the optimizer's, and makes their slots.
 * All or nothing. */
helio_status hi_optimizer_track(helio_optimizer *optimizer, const helio_variables *variables);

/* The place of a variable among the optimizer's, −1 with the error set if it is unknown. `guess` is looked at first. */
int hi_optimizer_find(const helio_optimizer *optimizer, const helio_variable *variable, int guess);

/* A slot of a variable; the sum of its gradients that wait for their step, NULL where each is applied at once. */
helio_variable *hi_optimizer_slot(const helio_optimizer *optimizer, int variable, int slot);
helio_variable *hi_optimizer_accumulator(const helio_optimizer *optimizer, int variable);

/* Tensors that travel with the gradients: what a step measures, summed over replicas like them. They need no message of
 * their own, and every replica has the whole before the step counts. */
typedef struct hi_riders {
  uint64_t number;        /* of the list, by hi_list_number() */
  helio_tensor **tensors; /* of the step's pool; the sums stand in their places behind */
  int count;

  /* Called when the sums are there, before the step counts: what it writes is undone if the step fails. */
  helio_status (*arrived)(struct hi_riders *riders);

  /* Where a step is taken, `commits`, what is to be written waits for it: called when the step counts, behind which
   * only a device may fail, and nothing is undone. */
  bool commits;
  helio_status (*counted)(struct hi_riders *riders);
  void *user;
} hi_riders;

/* A number that no other list of tensors of the process has. */
uint64_t hi_list_number(void);

/* helio_apply_gradients() and helio_minimize() with riders, NULL: none; and riders without gradients. */
helio_status hi_apply_gradients(helio_optimizer *optimizer, const helio_gradients *gradients,
                                const helio_variables *variables, hi_riders *riders);
helio_status hi_minimize(helio_optimizer *optimizer, helio_tape *tape, helio_tensor *loss,
                         const helio_variables *variables, hi_riders *riders);
helio_status hi_ride(hi_riders *riders);

/* Lets the optimizer apply the mean of so many gradients, if it has not begun otherwise. */
helio_status hi_optimizer_accumulate(helio_optimizer *optimizer, int steps);

/* Updates so far: every call, or every k-th where gradients are accumulated. And the learning rate of the next call. */
int64_t hi_optimizer_updates(const helio_optimizer *optimizer);
double hi_optimizer_rate(const helio_optimizer *optimizer);

#endif
