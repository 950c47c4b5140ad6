/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread is doing, for those who wait for it. A replica's thread tells of every call that could hang: an
 * operation, a copy, a sum. Who waits for it in vain may abandon it; such a thread never goes on, because all that it
 * would touch may be gone: when it comes back from where it hung it sleeps for ever. */
#ifndef HI_PROGRESS_H
#define HI_PROGRESS_H

#include <helio/helio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

typedef enum hi_activity {
  HI_INSIDE,    /* in what those who wait for it share: it cannot be abandoned there */
  HI_WORKS,     /* in a device, or in code of the user's */
  HI_LANDS,     /* the same, on what another thread can do again */
  HI_WAITS,     /* for other ranks, in a collective that has a deadline of its own */
  HI_ABANDONED, /* for good */
} hi_activity;

typedef struct hi_progress {
  atomic_int activity;             /* hi_activity */
  atomic_ulong sequence;           /* calls begun so far */
  _Atomic(const char *) operation; /* that is under way: a constant; NULL: none */
  _Atomic(const void *) device;    /* the hi_device that it is for; NULL: none */
  unsigned long seen;              /* calls when it was last looked at: for the one who waits */
  int seen_at;                     /* its activity then */
  double life;                     /* when it was first seen there */
  double looked;                   /* when it was last looked at */
  hi_activity left;                /* of one that was abandoned: what it had been at */
} hi_progress;

/* The thread's own from now on; NULL: nobody waits for this thread. */
void hi_progress_set(hi_progress *progress);

/* Around a call that could hang; hi_done() also behind the user's functions, behind which an abandoned thread must not
 * go on. */
void hi_doing(const char *operation, const void *device);
void hi_done(void);

/* Does not return if the thread was abandoned: before it looks at what may be gone. */
void hi_go_no_further(void);

/* To another activity, and back to what it was before, which is returned. */
hi_activity hi_progress_change(hi_activity activity);

/* From HI_INSIDE to HI_WORKS, around what may hang and holds nothing that others wait for. Returns what was. */
hi_activity hi_progress_expose(void);

/* The thread's own, NULL if it has none; and whether one's thread was given up. */
hi_progress *hi_progress_own(void);
bool hi_progress_abandoned(const hi_progress *progress);

/* Takes a lock that may be held by a thread which hangs; false, without it: the state has come to `end`, by which
 * others know that nobody gives it back, or the time is up (0: there is none). */
bool hi_lock_until(pthread_mutex_t *lock, const atomic_int *state, int end, uint64_t timeout_ms);

/* For who waits: begins to look; has there been no sign of life for so long, where there should be; for how many
 * seconds.
 */
void hi_progress_watch(hi_progress *progress);
bool hi_progress_overdue(hi_progress *progress, uint64_t timeout_ms);
double hi_progress_silence(const hi_progress *progress);

/* How long who waits sleeps before it looks again, at most; and when that is. */
struct timespec hi_progress_next_look(uint64_t timeout_ms);

/* Gives a thread up; false: it has just come back. */
bool hi_progress_abandon(hi_progress *progress);

#endif
