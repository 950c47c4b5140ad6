/* SPDX-License-Identifier: Apache-2.0 */
/* Variables: values that stay and are assigned. Under a strategy with several replicas each of them has a copy. */
#ifndef HI_VARIABLE_H
#define HI_VARIABLE_H

#include "ops/replica.h"
#include "tensor/object.h"

typedef struct hi_variable_traits {
  bool trainable;
  helio_synchronization synchronization; /* 0: on write */
  helio_aggregation aggregation;         /* 0: none */
} hi_variable_traits;

struct helio_variable {
  hi_object object;
  char *name;
  bool trainable;
  helio_synchronization synchronization;
  helio_aggregation aggregation;
  hi_replicas *replicas; /* each of which has a copy, a reference; NULL: there is one value */
  int copy_count;
  helio_tensor *copies[]; /* always these tensors: assignments write into their memory. Of replica i: copies[
                             replicas->copy[i]]; NULL: that replica was lost before */
};

/* A variable that takes over a value, which nothing else may use; owned by the innermost pool. Under a strategy it has
 * a copy for each replica, all of this value: one thread makes it for all (hi_context_alone). */
helio_variable *hi_variable_new(const char *name, helio_tensor *value, const hi_variable_traits *traits);

/* The value as the thread's replica has it, without tapes being told; outside of replicas the first copy. */
helio_tensor *hi_variable_tensor(const helio_variable *variable);

/* The same, but outside of replicas that of all copies of a variable that is synchronised on read: a new tensor then.
 * NULL with the error set. */
helio_tensor *hi_variable_read(const helio_variable *variable);

/* Outside of replicas: is its value made of copies that each replica has its own part in? */
bool hi_variable_has_parts(const helio_variable *variable);

/* Writes host data of the variable's size into it, outside of replicas; or into one of its copies. */
helio_status hi_variable_write(helio_variable *variable, const void *data);
helio_status hi_variable_write_copy(helio_variable *variable, int copy, const void *data);

/* Adds to variables that are synchronised on read, or were made outside of strategies, as helio_assign_add() does: to
 * all of them or, unless a device fails, to none. At most HI_MOST_ADDED. */
enum { HI_MOST_ADDED = 8 };
helio_status hi_variables_add(const helio_variables *variables, helio_tensor *const *additions);

/* The same for one of them in two parts, in place: behind the first only the device can fail. */
helio_status hi_variable_prepare_add(const helio_variable *variable, helio_tensor *addition, hi_prepared *prepared);

/* Makes it zeros: the thread's copy in a replica, all outside of replicas. Needs memory only inside of steps. */
helio_status hi_variable_clear(helio_variable *variable);

/* Counts changes of which variables there are and which of them are trainable: lists made before are to be made anew.
 */
unsigned hi_variables_generation(void);
void hi_variables_changed(void);

/* Sets the error and returns false if the variable is NULL, has outlived helio_shutdown(), or belongs to another
 * strategy than the replica that the thread runs. */
bool hi_variable_usable(const helio_variable *variable);

/* Likewise, if replicas would write to a variable that has no copies for them. It is usable. */
bool hi_variable_assignable(const helio_variable *variable);

#endif
