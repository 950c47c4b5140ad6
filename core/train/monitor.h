/* SPDX-License-Identifier: Apache-2.0 */
/* What a callback watches, and whether it has become better. */
#ifndef HI_MONITOR_H
#define HI_MONITOR_H

#include <helio/helio.h>

typedef struct hi_monitor {
  char *name;              /* of what is watched */
  helio_monitor_mode mode; /* as it was given */
  double min_delta;        /* by which a value must be better to count as such */
  bool larger;             /* is better: decided when a training begins */
  bool warned;             /* that there is nothing of that name */
  bool has_best;
  double best;
} hi_monitor;

/* `monitor` is zero. The name NULL is "val_loss"; the sign of min_delta does not matter, as in Keras. */
helio_status hi_monitor_make(hi_monitor *monitor, const char *name, helio_monitor_mode mode, double min_delta);
void hi_monitor_free(hi_monitor *monitor);

/* Decides what is better, by the metric of that name unless a mode was given. An error if nobody can tell. */
helio_status hi_monitor_begin(hi_monitor *monitor, const helio_training *training);

/* The value at this moment. *found is false if there is none, of which the log is told once: "`what` is conditioned on
 * …". */
helio_status hi_monitor_read(hi_monitor *monitor, const helio_training *training, const char *what, double *value,
                             bool *found);

bool hi_monitor_better(const hi_monitor *monitor, double value, double than);

/* Is the value better than the best so far? Then it is the best; so is the first, whatever it is. */
bool hi_monitor_take(hi_monitor *monitor, double value);

/* A number from 0 on that is kept with the best value. */
typedef struct hi_kept_number {
  const char *name;
  int64_t *number;
} hi_kept_number;

/* {"best": 0.25, "wait": 2}, of malloc(); NULL with the error set. */
char *hi_monitor_save(const hi_monitor *monitor, const hi_kept_number *numbers, int count);

/* All or nothing; `what` names the callback in errors. */
helio_status hi_monitor_restore(hi_monitor *monitor, const char *what, const char *state, const hi_kept_number *numbers,
                                int count);

#endif
