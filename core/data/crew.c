/* SPDX-License-Identifier: Apache-2.0 */
#include "data/crew.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/environment.h"
#include "runtime/error.h"
#include "runtime/leaks.h"
#include "runtime/log.h"
#include "runtime/runtime.h"
#include "runtime/threads.h"
#include "tensor/pool.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* taken before a crew's own */
static pthread_cond_t list_changed = PTHREAD_COND_INITIALIZER;
static hi_crew *running;

helio_scope hi_scene_enter(const hi_scene *scene) {
  return helio_device_enter(scene->named ? scene->device->name : NULL);
}

/* ---- the list ---- */

static void enlist(hi_crew *crew) {
  pthread_mutex_lock(&list_lock);
  crew->listed = true;
  crew->previous = NULL;
  crew->next = running;
  if (running) running->previous = crew;
  running = crew;
  pthread_mutex_unlock(&list_lock);
}

/* The list's lock is held. */
static void unlink_crew(hi_crew *crew) {
  if (crew->previous) crew->previous->next = crew->next;
  if (crew->next) crew->next->previous = crew->previous;
  if (running == crew) running = crew->next;
  crew->listed = false;
}

static void tell(hi_crew *crew) {
  pthread_mutex_lock(&crew->lock);
  crew->stopping = true;
  pthread_cond_broadcast(&crew->changed);
  pthread_mutex_unlock(&crew->lock);
}

void hi_scene_stop(hi_scene *scene) {
  if (hi_runtime_forked()) return;
  atomic_store(&scene->stopping, true);
  pthread_mutex_lock(&list_lock);
  for (hi_crew *crew = running; crew; crew = crew->next) {
    if (crew->scene == scene) tell(crew);
  }
  pthread_mutex_unlock(&list_lock);
}

/* ---- threads that hang ---- */

/* In a device: functions of the user's may take as long as they like. */
static bool hangs(hi_worker *worker) {
  bool overdue = hi_progress_overdue(&worker->progress, hi_environment_number(HI_TIMEOUT));
  return overdue && atomic_load(&worker->progress.device) && hi_progress_abandon(&worker->progress);
}

/* Of a worker that is the caller's alone. What was waited for is said in `failure`. */
static void abandon(hi_worker *worker, helio_error *failure) {
  hi_device *device = (hi_device *)atomic_load(&worker->progress.device);
  const char *operation = atomic_load(&worker->progress.operation);
  failure->status = HELIO_TIMED_OUT;
  snprintf(failure->message, sizeof failure->message,
           "%s has not come back from %s within %.3g s (HELIO_TIMEOUT); its thread is abandoned",
           device ? device->name : "a thread that reads data", operation ? operation : "a call",
           (double)hi_environment_number(HI_TIMEOUT) / 1000);
  hi_log(HELIO_LOG_ERROR, "%s", failure->message);
  if (device) hi_device_lose(device, HI_HUNG);
  hi_thread_abandon(worker->thread);
  pthread_detach(worker->thread);
  hi_keep_for_ever(worker);
}

/* NULL: there are no more. */
static hi_worker *take_worker(hi_crew *crew) {
  pthread_mutex_lock(&crew->lock);
  hi_worker *worker = crew->count > 0 ? crew->workers[--crew->count] : NULL;
  pthread_mutex_unlock(&crew->lock);
  return worker;
}

static void join_worker(hi_worker *worker) {
  helio_error failure;
  for (;;) {
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 100000000;
    soon.tv_sec += soon.tv_nsec / 1000000000;
    soon.tv_nsec %= 1000000000;
    if (pthread_timedjoin_np(worker->thread, NULL, &soon) == 0) break;
    if (!hangs(worker)) continue;
    abandon(worker, &failure);
    return;
  }
  free(worker);
}

/* Waits for the threads of a crew that this thread has taken out of the list. Whoever drops the iterator meanwhile, in
 * a thread that ends just now, waits for `joined` and then frees the crew. */
static void join(hi_crew *crew) {
  tell(crew);
  for (hi_worker *worker; (worker = take_worker(crew));) join_worker(worker);
  pthread_mutex_lock(&list_lock);
  crew->joined = true;
  pthread_cond_broadcast(&list_changed);
  pthread_mutex_unlock(&list_lock);
}

void hi_crews_stop(void) {
  pthread_mutex_lock(&list_lock);
  for (hi_crew *crew = running; crew; crew = crew->next) {
    atomic_store(&crew->scene->stopping, true);
    tell(crew);
  }
  while (running) {
    hi_crew *crew = running;
    unlink_crew(crew);
    pthread_mutex_unlock(&list_lock);
    join(crew);
    pthread_mutex_lock(&list_lock);
  }
  pthread_mutex_unlock(&list_lock);
}

/* ---- threads ---- */

static void *run(void *argument) {
  hi_worker *worker = argument;
  hi_crew *crew = worker->crew;
  hi_progress_set(&worker->progress);
  helio_scope scope = hi_scene_enter(crew->scene);
  crew->body(crew->argument);
  helio_device_leave(&scope);
  helio_error_take(NULL);
  hi_pool_thread_end();
  return NULL;
}

/* 0, or the number of the error. */
static int worker_new(hi_crew *crew, hi_worker **made) {
  hi_worker *worker = calloc(1, sizeof *worker);
  if (!worker) return ENOMEM;
  worker->crew = crew;
  int failure = hi_thread_start(&worker->thread, "helio-data", run, worker);
  if (failure) {
    free(worker);
  } else {
    *made = worker;
  }
  return failure;
}

static int make_threads(hi_crew *crew, int count) {
  int failure = 0;
  while (crew->count < count && !failure) {
    failure = worker_new(crew, &crew->workers[crew->count]);
    if (!failure) crew->count++;
  }
  return failure;
}

/* Another takes its place if it can do the same again; what else is lost must not be left out in silence. */
static void lose_worker(hi_crew *crew, hi_worker *worker) {
  bool again = worker->progress.left == HI_LANDS;
  helio_error failure;
  abandon(worker, &failure);
  if (again && worker_new(crew, &crew->workers[crew->count]) == 0) {
    crew->count++;
    return;
  }
  crew->failure = failure;
  crew->stopping = true;
  pthread_cond_broadcast(&crew->changed);
}

void hi_crew_wait(hi_crew *crew) {
  struct timespec next = hi_progress_next_look(hi_environment_number(HI_TIMEOUT));
  if (pthread_cond_timedwait(&crew->changed, &crew->lock, &next) != ETIMEDOUT) return;
  for (int i = 0; i < crew->count && !crew->stopping; i++) {
    hi_worker *worker = crew->workers[i];
    if (!hangs(worker)) continue;
    crew->workers[i--] = crew->workers[--crew->count];
    lose_worker(crew, worker);
  }
}

helio_status hi_crew_stopped(const hi_crew *crew) {
  if (crew->failure.status) return hi_fail(crew->failure.status, "%s", crew->failure.message);
  return hi_fail(HELIO_ABORTED, "the iterator is being ended");
}

helio_status hi_crew_start(hi_crew *crew, hi_scene *scene, int count, void (*body)(void *argument), void *argument) {
  if (atomic_load(&scene->stopping)) return hi_fail(HELIO_ABORTED, "the iterator is being ended");
  crew->workers = calloc((size_t)count, sizeof *crew->workers);
  if (!crew->workers) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %d threads", count);
  pthread_mutex_init(&crew->lock, NULL);
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&crew->changed, &clock);
  pthread_condattr_destroy(&clock);
  crew->stopping = crew->joined = false;
  crew->failure.status = HELIO_OK;
  crew->scene = scene;
  crew->body = body;
  crew->argument = argument;
  enlist(crew);
  int failure = make_threads(crew, count);
  if (!failure) return HELIO_OK;
  hi_crew_end(crew);
  return hi_fail(HELIO_OUT_OF_MEMORY, "cannot start a thread for reading data: %s", strerror(failure));
}

void hi_crew_end(hi_crew *crew) {
  if (!crew->workers || hi_runtime_forked()) return;
  pthread_mutex_lock(&list_lock);
  bool mine = crew->listed;
  if (mine) unlink_crew(crew);
  while (!mine && !crew->joined) pthread_cond_wait(&list_changed, &list_lock);
  pthread_mutex_unlock(&list_lock);
  if (mine) join(crew);
  pthread_cond_destroy(&crew->changed);
  pthread_mutex_destroy(&crew->lock);
  free(crew->workers);
  crew->workers = NULL;
  crew->count = 0;
}
