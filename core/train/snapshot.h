/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that a training goes on from, to the bit: weights, the optimizer's slots and numbers, what was measured so
 * far, how often layers have drawn random numbers, where the data stand, the history and the states of callbacks. One
 * checkpoint of train/checkpoints.h holds it, whatever the number of replicas that wrote it or reads it. */
#ifndef HI_SNAPSHOT_H
#define HI_SNAPSHOT_H

#include "train/callback.h"
#include "train/compiled.h"
#include "train/history.h"
#include "train/logs.h"

/* What of a training is in none of the objects. */
typedef struct hi_snapshot_place {
  int epoch;           /* that is under way, or the next one */
  int64_t step;        /* taken in it */
  int64_t total_steps; /* taken in all */
  uint64_t shuffle;    /* the seed by which arrays were shuffled; 0: none */
  char *position;      /* of the data: malloc'ed, freed by who asked for it */
} hi_snapshot_place;

/* Goes to the place, with nothing changed yet; an error leaves everything as it was. */
typedef helio_status hi_snapshot_go(void *user, const hi_snapshot_place *place);

typedef struct hi_snapshot {
  helio_model *model; /* with all its variables */
  const hi_compiled *compiled;
  const hi_callbacks *callbacks;
  helio_history *history;
  hi_snapshot_place place;
} hi_snapshot;

/* Writes a checkpoint, of which `keep` stay. */
helio_status hi_snapshot_write(const hi_snapshot *snapshot, const char *folder, int keep);

/* Reads the last whole one, if there is one. What it has is looked at, and its place gone to, before anything is
 * changed; behind that only a device or a callback can fail, and leave things half done. */
helio_status hi_snapshot_read(hi_snapshot *snapshot, const char *folder, hi_snapshot_go *go, void *user);

/* An error if the folder has a checkpoint already. */
helio_status hi_snapshot_refuse_others(const char *folder);

#endif
