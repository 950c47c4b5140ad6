/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a pipeline. Those of an iterator can be told to stop together, and all of the library's end before its
 * devices do. */
#ifndef HI_CREW_H
#define HI_CREW_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/device.h"
#include "runtime/progress.h"

/* What the threads of one iterator share. */
typedef struct hi_scene {
  hi_device *device;    /* where functions of the dataset run */
  bool named;           /* it, and no other */
  hi_device *landing;   /* where elements land in the end */
  atomic_bool stopping; /* nobody wants elements any more */
} hi_scene;

/* The scope in which cursors are called, as it was around helio_iterate(). Ends with helio_device_leave(). */
helio_scope hi_scene_enter(const hi_scene *scene);

/* A thread of a crew. It may be abandoned in a call of a device. */
typedef struct hi_worker {
  pthread_t thread;
  hi_progress progress;
  struct hi_crew *crew;
} hi_worker;

/* Threads that share a lock. One that waits for `changed` must look at `stopping` before and after. */
typedef struct hi_crew {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool stopping;       /* under the lock, as are the failure and the workers */
  helio_error failure; /* for which it stops; status 0: none */
  hi_scene *scene;
  void (*body)(void *argument);
  void *argument;
  int count;
  hi_worker **workers;
  bool listed, joined;             /* under the list's lock */
  struct hi_crew *next, *previous; /* among all that run */
} hi_crew;

/* Starts `count` threads, each of which calls `body`, in the scope of the scene. If no thread can be had, none runs. */
helio_status hi_crew_start(hi_crew *crew, hi_scene *scene, int count, void (*body)(void *argument), void *argument);

/* Waits for `changed`, with the lock held. A thread of the crew that does not come back from a device for HELIO_TIMEOUT
 * is abandoned and the device lost. Where what it did can be done again (HI_LANDS) another thread goes on in its place,
 * else the crew stops. */
void hi_crew_wait(hi_crew *crew);

/* Sets the error for which a crew stops, with the lock held. */
helio_status hi_crew_stopped(const hi_crew *crew);

/* Tells the threads to stop, waits for them and frees what the crew has. Does nothing if it was never started. */
void hi_crew_end(hi_crew *crew);

/* Tells all threads of a scene to stop, without waiting: no thread waits for one that is not told yet. */
void hi_scene_stop(hi_scene *scene);

/* Stops all threads of all iterators and waits for them. Their crews end later, with the iterators. */
void hi_crews_stop(void);

#endif
