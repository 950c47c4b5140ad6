/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread is doing, for those who wait for it. A replica's thread tells of every call that could hang: an
 * operation, a copy, a sum. Who waits for it in vain may abandon it; such a thread never goes on, because all that it
 * would touch may be gone: when it comes back from where it hung it sleeps for ever. */
#ifndef HI_PROGRESS_H
#define HI_PROGRESS_H

#include <helio/helio.h>
#include <stdatomic.h>

typedef enum hi_activity {
  HI_WORKS,
  HI_WAITS,     /* for other ranks, in a collective that has a deadline of its own */
  HI_INSIDE,    /* in what those who wait for it share: it cannot be abandoned there */
  HI_ABANDONED, /* for good */
} hi_activity;

typedef struct hi_progress {
  atomic_int activity;             /* hi_activity */
  atomic_ulong sequence;           /* calls begun so far */
  _Atomic(const char *) operation; /* the latest: a constant */
  _Atomic(const void *) device;    /* the hi_device that it is for; NULL: none */
} hi_progress;

/* The thread's own from now on; NULL: nobody waits for this thread. */
void hi_progress_set(hi_progress *progress);

/* Around a call that could hang. */
void hi_doing(const char *operation, const void *device);
void hi_done(void);

/* HI_WAITS or HI_INSIDE, and HI_WORKS again. */
void hi_progress_change(hi_activity activity);

/* Gives a thread up; false: it has just come back. */
bool hi_progress_abandon(hi_progress *progress);

#endif
