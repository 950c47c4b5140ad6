/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end. The one file of this folder that knows the layers above, because it starts them. */
#include "runtime/runtime.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "data/crew.h"
#include "device/copy.h"
#include "device/topology.h"
#include "ops/accumulate.h"
#include "ops/placement.h"
#include "runtime/environment.h"
#include "runtime/error.h"
#include "runtime/leaks.h"
#include "runtime/log.h"
#include "runtime/plugins.h"
#include "runtime/threads.h"
#include "strategy/strategy.h"
#include "tensor/census.h"
#include "tensor/pool.h"
#include "tensor/seed.h"

typedef enum phase { STOPPED, RUNNING, FORKED } phase;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of starting and ending */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int current = STOPPED;
static atomic_uint ends; /* how often the library was ended */

static const hi_host_services services = {.copy = hi_host_copy, .accumulate = hi_host_accumulate};

/* Threads, streams and locks do not survive a fork: the child of a library that was running, or on its way there, can
 * only be told so. */
static void after_fork(void) {
  bool idle = pthread_mutex_trylock(&lock) == 0;
  if (idle) pthread_mutex_unlock(&lock);
  if (!idle || atomic_load(&current) == RUNNING) atomic_store(&current, FORKED);
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, after_fork);
}

/* The devices tell of their memory when they are closed. */
static void tell_what_is_held(void) {
  hi_leaks_begin();
  hi_leaks_in_memory(hi_census_tell());
  hi_threads_tell();
}

static void finish(void) {
  hi_strategies_stop();
  tell_what_is_held();
  hi_topology_finish();
  hi_leaks_in_memory(false);
  hi_plugins_finish();
  hi_environment_finish();
}

static helio_status start(void) {
  helio_status status = hi_environment_start();
  if (status) return status;
  hi_log_default_level((helio_log_level)(HELIO_LOG_DEBUG + (int)hi_environment_number(HI_LOG)));
  status = hi_plugins_start(&services);
  if (!status) {
    status = hi_topology_start();
    if (status) hi_plugins_finish();
  }
  if (status) {
    hi_environment_finish();
    return status;
  }
  hi_placement_start();
  hi_seed_start();
  return HELIO_OK;
}

static helio_status forked(void) {
  return hi_fail(HELIO_WRONG_STATE, "this process was forked from one that had started helio; "
                                    "start helio in the child only, or use exec after fork");
}

helio_status hi_runtime_ensure(void) {
  int seen = atomic_load_explicit(&current, memory_order_acquire);
  if (seen == RUNNING) return HELIO_OK;
  if (seen == FORKED) return forked();
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&lock);
  helio_status status = HELIO_OK;
  if (atomic_load(&current) == STOPPED) {
    status = start();
    if (!status) atomic_store_explicit(&current, RUNNING, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

bool hi_runtime_forked(void) {
  return atomic_load_explicit(&current, memory_order_relaxed) == FORKED;
}

unsigned hi_runtime_ends(void) {
  return atomic_load_explicit(&ends, memory_order_relaxed);
}

bool hi_runtime_hold(void) {
  if (hi_runtime_forked()) return false;
  pthread_mutex_lock(&lock);
  return true;
}

void hi_runtime_let_go(void) {
  pthread_mutex_unlock(&lock);
}

const char *helio_version(void) {
#define TEXT_OF(x)  TEXT_OF_(x)
#define TEXT_OF_(x) #x
  return TEXT_OF(HELIO_VERSION_MAJOR) "." TEXT_OF(HELIO_VERSION_MINOR) "." TEXT_OF(HELIO_VERSION_PATCH);
}

helio_status helio_init(void) {
  return hi_enter(__func__);
}

helio_status helio_shutdown(void) {
  hi_enter_release(__func__);
  if (atomic_load(&current) == FORKED) {
    forked();
    return helio_error_pending();
  }
  if (hi_replicas_together()) { /* its thread would wait for itself to end */
    return hi_fail(HELIO_WRONG_STATE, "a step is under way, and this is called inside it");
  }
  if (hi_strategies_run()) { /* its caller waits for threads that would be gone */
    return hi_fail(HELIO_WRONG_STATE, "a step is under way in another thread, whose helio_run() must return first");
  }
  hi_crews_stop(); /* threads of the library use devices, and none of them is there to be waited for afterwards */
  pthread_mutex_lock(&lock);
  hi_pool_drain(); /* under the lock, because another thread may be ending the library too */
  if (atomic_load(&current) == RUNNING) {
    finish();
    atomic_fetch_add(&ends, 1);
    atomic_store(&current, STOPPED);
  }
  pthread_mutex_unlock(&lock);
  return helio_error_pending(); /* an earlier one, or damage that was noticed only now */
}

char **helio_plugin_files(int *count) {
  if (hi_enter_unstarted(__func__)) return NULL;
  if (!count) {
    hi_fail(HELIO_INVALID_ARGUMENT, "count is NULL");
    return NULL;
  }
  if (atomic_load(&current) == FORKED) {
    forked();
    return NULL;
  }
  char **files = NULL;
  pthread_mutex_lock(&lock);
  bool running = atomic_load(&current) == RUNNING;
  if (running || !hi_environment_start()) {
    files = hi_plugin_search(hi_environment_text(HI_PLUGIN_PATH), count);
    if (!files) hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the list of plugins");
  }
  if (!running) hi_environment_finish();
  pthread_mutex_unlock(&lock);
  return files;
}

helio_status helio_plugin_inspect(const char *path, helio_plugin_report *report) {
  helio_status status = hi_enter_unstarted(__func__);
  if (status) return status;
  if (!path || !report) return hi_fail(HELIO_INVALID_ARGUMENT, "%s is NULL", path ? "report" : "path");
  if (atomic_load(&current) == FORKED) return forked();
  pthread_mutex_lock(&lock);
  if (atomic_load(&current) == STOPPED) {
    status = hi_environment_start();
    if (!status) status = hi_plugin_inspect(path, &services, report);
    hi_environment_finish();
  } else {
    status = hi_fail(HELIO_WRONG_STATE, "a plugin is inspected before the library is started");
  }
  pthread_mutex_unlock(&lock);
  return status;
}
