/* SPDX-License-Identifier: Apache-2.0 */
/* Where the ranks of a group meet that are threads of this process: each brings its part of a call, and whoever comes
 * last does the work for all while the others wait. */
#ifndef HI_MEETING_H
#define HI_MEETING_H

#include <helio/plugin.h>
#include <pthread.h>

typedef enum hi_meeting_kind {
  HI_MEETING_ALL_REDUCE = 1,
  HI_MEETING_REDUCE = 2,
  HI_MEETING_BROADCAST = 3,
  HI_MEETING_ALL_GATHER = 4,
  HI_MEETING_REDUCE_SCATTER = 5,
} hi_meeting_kind;

typedef struct hi_meeting_rank {
  const helio_member *member; /* NULL: has not joined, or has left */
  helio_event *event;         /* for whoever does the work */
  bool arrived;               /* at the call under way */
  hi_meeting_kind kind;
  helio_collective_call call; /* of the latest call; its counts are a copy */
  size_t *counts;
} hi_meeting_rank;

typedef struct hi_meeting {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  unsigned char id[HELIO_COLLECTIVE_ID_SIZE];
  uint32_t rank_count, joined, arrived;
  uint32_t references; /* ranks that joined and have not left; under the lock of all meetings */
  uint32_t timeout_ms;
  unsigned calls; /* that are done */
  bool running;   /* the work of a call is under way */
  helio_status status;
  char message[600];
  struct hi_meeting *next;
  hi_meeting_rank ranks[];
} hi_meeting;

/* An id that no other group of this process has. */
void hi_meeting_new_id(void *id);

/* Joins, and waits for all others. Like all functions here it tells the reason of a failure by hi_reason_say() and sets
 * no error. `event` is the rank's own and stays with it. */
helio_status hi_meeting_join(const helio_communicator_options *options, helio_event *event, hi_meeting **meeting);

/* This rank has failed before it could join, which the others need not wait for. Returns the status. */
helio_status hi_meeting_refuse(const helio_communicator_options *options, helio_status status);

/* Waits for the commands of all ranks that are still there: then nothing waits for this rank's event any more. */
void hi_meeting_leave(hi_meeting *meeting, uint32_t rank);

void hi_meeting_abort(hi_meeting *meeting, uint32_t rank);
helio_status hi_meeting_poll(hi_meeting *meeting);

/* One rank's part in a call. `work` is done once, for all, when all have come and ask for the same. */
helio_status hi_meeting_call(hi_meeting *meeting, uint32_t rank, hi_meeting_kind kind,
                             const helio_collective_call *call, helio_status (*work)(hi_meeting *meeting));

#endif
