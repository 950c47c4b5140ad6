/* SPDX-License-Identifier: Apache-2.0 */
/* Values that were measured: names, and numbers that are waited for when they are read. */
#ifndef HI_LOGS_H
#define HI_LOGS_H

#include "train/compiled.h"

typedef struct hi_log_entry {
  char *name;
  helio_metric
      *metric; /* a reference, whose result it is when first read; NULL: `value` is known, or `tensor` holds it */
  helio_tensor *tensor; /* a reference */
  double divisor;       /* of it; 0: none */
  double value;
  bool known;
} hi_log_entry;

struct helio_logs {
  hi_object object;
  helio_strategy *strategy; /* a reference; NULL: none */
  int count, room;
  hi_log_entry *entries;
};

/* Without values, owned by the innermost pool; NULL with the error set. */
helio_logs *hi_logs_new(helio_strategy *strategy);

/* Entries of all that is measured, to be read as long as it has not changed. */
helio_status hi_logs_add_metrics(helio_logs *logs, const hi_compiled *compiled);

/* A number, or a scalar that is still being computed and is to be divided when it is read. */
helio_status hi_logs_add_value(helio_logs *logs, const char *prefix, const char *name, double value);
helio_status hi_logs_add_tensor(helio_logs *logs, const char *name, helio_tensor *tensor, double divisor);

/* Nothing in it is known any more: the metrics have changed. */
void hi_logs_forget(helio_logs *logs);

/* What metrics say now is computed, and does not change with them any more; it is not waited for. */
helio_status hi_logs_settle(helio_logs *logs);

/* It is waited for: what went wrong on a device is said now. */
helio_status hi_logs_wait(helio_logs *logs);

/* A number in the place of the one that has this name, behind all others if there is none. */
helio_status hi_logs_set(helio_logs *logs, const char *name, double value);

/* The value of a name. *found is false, without an error, if there is none, and if it is there no more: the device that
 * had it was lost, and the training goes on without. */
helio_status hi_logs_find(helio_logs *logs, const char *name, double *value, bool *found);

/* All of it as numbers, behind those of `logs`, with a prefix before the names. */
helio_status hi_logs_add_all(helio_logs *logs, const char *prefix, helio_logs *from);

#endif
