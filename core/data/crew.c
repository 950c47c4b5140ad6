/* SPDX-License-Identifier: Apache-2.0 */
#include "data/crew.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
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

/* Waits for the threads of a crew that this thread has taken out of the list. Whoever drops the iterator meanwhile, in
 * a thread that ends just now, waits for `joined` and then frees the crew. */
static void join(hi_crew *crew) {
  tell(crew);
  for (int i = 0; i < crew->count; i++) pthread_join(crew->threads[i], NULL);
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
  hi_crew *crew = argument;
  helio_scope scope = hi_scene_enter(crew->scene);
  crew->body(crew->argument);
  helio_device_leave(&scope);
  helio_error_take(NULL);
  hi_pool_thread_end();
  return NULL;
}

static int make_threads(hi_crew *crew, int count) {
  int failure = 0;
  while (crew->count < count && !failure) {
    failure = hi_thread_start(&crew->threads[crew->count], "helio-data", run, crew);
    if (!failure) crew->count++;
  }
  return failure;
}

helio_status hi_crew_start(hi_crew *crew, hi_scene *scene, int count, void (*body)(void *argument), void *argument) {
  if (atomic_load(&scene->stopping)) return hi_fail(HELIO_ABORTED, "the iterator is being ended");
  crew->threads = calloc((size_t)count, sizeof *crew->threads);
  if (!crew->threads) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %d threads", count);
  pthread_mutex_init(&crew->lock, NULL);
  pthread_cond_init(&crew->changed, NULL);
  crew->stopping = crew->joined = false;
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
  if (!crew->threads || hi_runtime_forked()) return;
  pthread_mutex_lock(&list_lock);
  bool mine = crew->listed;
  if (mine) unlink_crew(crew);
  while (!mine && !crew->joined) pthread_cond_wait(&list_changed, &list_lock);
  pthread_mutex_unlock(&list_lock);
  if (mine) join(crew);
  pthread_cond_destroy(&crew->changed);
  pthread_mutex_destroy(&crew->lock);
  free(crew->threads);
  crew->threads = NULL;
  crew->count = 0;
}
