/* SPDX-License-Identifier: Apache-2.0 */
/* A logical device: opened at its first use, with streams, an arena and room for prepared kernel calls. */
#ifndef HI_DEVICE_H
#define HI_DEVICE_H

#include <helio/helio.h>
#include <helio/plugin.h>
#include <pthread.h>
#include <stdatomic.h>

#include "device/arena.h"
#include "device/name.h"
#include "runtime/plugins.h"

typedef struct hi_physical {
  hi_plugin *plugin;
  uint32_t plugin_index;
  helio_device_description description;
  helio_device info;
  char name[HI_NAME_LENGTH];
  uint64_t id;
  /* settings, under topology.c's lock */
  bool growth;
  uint64_t limit;   /* for each of its logical devices, 0: none */
  uint64_t *limits; /* of each logical device, 0: none; NULL: none for any */
  int logical_count;
  int opened; /* logical devices that were opened */
} hi_physical;

enum { HI_ORDER_EVENTS = 8, HI_STEPS_IN_FLIGHT = 2 };

typedef struct hi_device {
  helio_member member;          /* first: what a collective hands back is the device */
  helio_backend_device *handle; /* the plugin's; that of the member is this struct itself, as long as it is open */
  helio_device info;
  char name[HI_NAME_LENGTH];
  hi_physical *physical;
  int logical_index;
  bool synchronous, host_memory;
  atomic_bool open;
  atomic_int loss;       /* hi_loss */
  _Atomic(char *) cause; /* of the first failure, as its backend said it; NULL: none */
  uint64_t timeout_ms;   /* HELIO_TIMEOUT: a device that hangs outlives the environment */
  bool retired;          /* the settings were changed before it was used; under topology.c's lock */
  bool used;             /* open or being opened: its settings stay; under topology.c's lock */
  pthread_mutex_t lock;  /* of opening and of making streams */
  _Atomic(helio_stream *) streams[HI_STREAM_COUNT]; /* written under the lock, read without */
  hi_arena *arena;
  hi_block *status;                                      /* of HI_STATUS_WORDS helio_status_words */
  struct hi_callers *callers;                            /* whose they are, kept by status.c */
  struct hi_staging *staging;                            /* kept by copy.c */
  size_t staged;                                         /* bytes of it */
  _Atomic(helio_event *) order[HI_ORDER_EVENTS];         /* likewise */
  struct hi_point *points;                               /* kept by point.c */
  _Atomic(struct hi_point *) flight[HI_STEPS_IN_FLIGHT]; /* ends of the latest steps, the last one first */
  _Atomic(struct hi_doubt *) doubts;                     /* kept by doubt.c */
  void *plans;                                           /* kept by ops/plans.c */
  void (*plans_free)(void *plans);
  atomic_int reductions_said; /* how often the log has told of a reduction to it (strategy/reduce.c) */
  struct hi_device *next;     /* in topology.c's list of all */
} hi_device;

hi_device *hi_device_new(hi_physical *physical, int logical_index);

/* The device has come to rest. */
void hi_device_free(hi_device *device);

/* Waits for all work of a device that may be open. A failure can only be logged now. */
void hi_device_rest(hi_device *device);

/* The first use: opens the device if that was not done. */
helio_status hi_device_use(hi_device *device);

/* Takes a lock of the device's. False, without it: a thread that hangs in the device has it; the device is lost then.
 */
bool hi_device_take(hi_device *device, pthread_mutex_t *lock, const char *what);

/* Takes the device's lock; else the status, with the reason, of one that hangs. */
helio_status hi_device_lock(hi_device *device);

/* The stream, made when it is first asked for; NULL with the error set. The device is in use. */
helio_stream *hi_device_stream(hi_device *device, int index);

/* Reports a failure of a plugin's call on the device as the thread's error. */
helio_status hi_device_failed(const hi_device *device, helio_status status, const char *what);

/* The status of a plugin's call on the device; HELIO_DEVICE_FAILURE makes it suspect. */
helio_status hi_device_suspect(hi_device *device, helio_status status);

/* How often this thread has made a device suspect: who sees it unchanged behind a failure must find the device itself.
 */
unsigned hi_device_suspicions(void);

/* Gives a device up, and with it all logical devices of the same physical one unless that is the machine itself.
 * HI_LOST or HI_HUNG. */
void hi_device_lose(hi_device *device, hi_loss loss);
bool hi_device_lost(const hi_device *device);
bool hi_device_hung(const hi_device *device);

/* The reason, as a plugin would say it, and HELIO_DEVICE_FAILURE if the device is lost. */
helio_status hi_device_refuses(const hi_device *device);

/* Waits for all streams and reads the status words: bad data that a kernel found is an error. */
helio_status hi_device_synchronize(hi_device *device);

#endif
