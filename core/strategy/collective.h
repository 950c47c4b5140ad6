/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and copies between the devices of a group.
 *
 *     hi_collective_choice choice;
 *     unsigned char id[HELIO_COLLECTIVE_ID_SIZE];
 *     hi_collective_choose(devices, count, NULL, &choice);          once, on any thread
 *     hi_collective_new_id(&choice, id);                            once; the id goes to all ranks
 *     hi_communicator *c = hi_communicator_new(&choice, &(hi_communicator_settings){…});   each rank, on its own thread
 *     hi_communicator_all_reduce(c, &(hi_exchange){…});             each rank, in the same order
 *     hi_communicator_free(c);
 *
 * Failures are the thread's pending error, as everywhere; while one is pending calls do nothing and return its status.
 * A rank that cannot make its call must hi_communicator_abort(), else the others wait for it until their time is up. */
#ifndef HI_COLLECTIVE_H
#define HI_COLLECTIVE_H

#include <helio/plugin.h>

#include "device/device.h"

/* A collective, of a plugin or the core's own. Valid until the library ends. */
typedef struct hi_collective {
  const char *name;
  const helio_collective_table *table; /* optional entries may be NULL: a communicator knows what stands for them */
  helio_plugin_state *state;
  struct hi_plugin *plugin; /* NULL: the core's own */
} hi_collective;

typedef struct hi_collective_choice {
  hi_collective collective;
  uint32_t score;
  uint32_t types;      /* HELIO_TYPE_BIT of what it sums itself */
  uint32_t flags;      /* HELIO_COLLECTIVE_… */
  bool automatic;      /* nobody has named it */
  bool stands_in;      /* for one that could not make its group */
  char refusals[1024]; /* a line for each that cannot serve the devices: "ring: its reason\n"; "" */
} hi_collective_choice;

/* Chooses the collective for the devices, which are opened if they were not. `name` NULL or "auto": what
 * HELIO_COLLECTIVE says, by default the one that serves these devices and scores highest (of equals the first by name);
 * those that refuse stand in choice->refusals. Any other name: that one, and an error with its reason if it cannot, or
 * with a list of what there is if it is unknown. */
helio_status hi_collective_choose(hi_device *const *devices, int count, const char *name, hi_collective_choice *choice);

/* In place of one that was chosen automatically, but could not make its group for that reason: the next best, with a
 * line more in choice->refusals. HELIO_NOT_SUPPORTED: none is left. */
helio_status hi_collective_choose_another(hi_device *const *devices, int count, const char *reason,
                                          hi_collective_choice *choice);

/* Whether there is such a one, for who needs none: a wrong name is an error on one device as well. */
helio_status hi_collective_check_name(const char *name);

/* The id of a new group, HELIO_COLLECTIVE_ID_SIZE bytes. */
helio_status hi_collective_new_id(const hi_collective_choice *choice, void *id);

/* One rank of a group. */
typedef struct hi_communicator hi_communicator;

typedef struct hi_communicator_settings {
  hi_device *device;         /* as given to hi_collective_choose(); in use until the communicator is freed */
  uint32_t rank, rank_count; /* the device's place among those, and their number */
  const void *id;
  bool ordered;        /* sums are formed in the order of ranks whatever the collective does: where it does otherwise,
                          all values are gathered and added. Equal to the bit for all collectives */
  uint32_t timeout_ms; /* for each wait between ranks; 0: HELIO_TIMEOUT */
} hi_communicator_settings;

/* Joins the group: waits until all ranks have. Copies what it is given. NULL with the error set. */
hi_communicator *hi_communicator_new(const hi_collective_choice *choice, const hi_communicator_settings *settings);

/* The same in two parts: one who does the first for all ranks knows that none fails before it joins, which the others
 * would wait for. Until it has joined, a communicator can only be freed. */
hi_communicator *hi_communicator_make(const hi_collective_choice *choice, const hi_communicator_settings *settings);
helio_status hi_communicator_join(hi_communicator *communicator);

/* Waits until the devices have done what the group's calls handed to them. Works while an error is pending; NULL:
 * nothing. No call of this rank is under way. */
void hi_communicator_free(hi_communicator *communicator);

/* Ends every wait of the whole group, from any thread: calls that wait fail with HELIO_ABORTED. Buffers of calls that
 * were under way are undefined, and every communicator of the group can only be freed. */
void hi_communicator_abort(hi_communicator *communicator);

/* HELIO_OK, or what has gone wrong with the group, which every later call would say too. Never blocks. */
helio_status hi_communicator_poll(hi_communicator *communicator);

/* Something is computed with results of calls that nobody has waited for. If they fail, whoever reads from the device
 * is told, or the log when the communicator is freed; until somebody trusts it again, because the failure is known or
 * what was computed is gone. */
void hi_communicator_doubt(hi_communicator *communicator);
void hi_communicator_trust(hi_communicator *communicator);

/* One rank's part in a call. Counts are of elements. Everything happens in the order of the rank's own stream: what was
 * handed to it before is seen, and what is handed to it behind the call finds the result and may write to the source.
 * Blocks must be known to their arena as used on that stream (hi_block_used). Without elements places are { NULL, 0 }.
 *
 * Source and target may be the same place (of all_gather: the source is this rank's part of the target; of
 * reduce_scatter: the target is this rank's part of the source); otherwise they do not overlap. */
typedef struct hi_exchange {
  int stream; /* HI_STREAM_… of the rank's device */
  helio_place source, target;
  helio_type type;
  helio_reduction reduction; /* 0: HELIO_REDUCTION_SUM */
  uint32_t root;             /* of reduce and broadcast */
  size_t count;              /* of all_reduce, reduce and broadcast */
  const size_t *counts;      /* of all_gather and reduce_scatter: each rank's, in order of ranks */
} hi_exchange;

/* Every rank's target gets the sum (or the largest, or the smallest) of all sources. Types without arithmetic (uint8,
 * bool) cannot be summed. */
helio_status hi_communicator_all_reduce(hi_communicator *communicator, const hi_exchange *exchange);

/* The same for the root's target alone; other ranks need none. */
helio_status hi_communicator_reduce(hi_communicator *communicator, const hi_exchange *exchange);

/* Every rank's target, the root's too, gets the root's source; other ranks need none. Any type. */
helio_status hi_communicator_broadcast(hi_communicator *communicator, const hi_exchange *exchange);

/* Every rank's target gets all sources, one behind the other in the order of ranks. Any type. */
helio_status hi_communicator_all_gather(hi_communicator *communicator, const hi_exchange *exchange);

/* Each rank's target gets its part of the sum of all sources, which are as long as all parts together. */
helio_status hi_communicator_reduce_scatter(hi_communicator *communicator, const hi_exchange *exchange);

#endif
