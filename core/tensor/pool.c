/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/pool.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/error.h"
#include "runtime/runtime.h"

/* All objects of the thread in one array; a pool is the part of it from where it was entered. The outermost pool ends
 * with the thread. */
typedef struct pools {
  hi_object **objects;
  int count, room;
  bool registered; /* for the thread's end */
} pools;

static _Thread_local pools mine;
static pthread_key_t key;
static bool have_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void drop_from(int count) {
  while (mine.count > count) {
    hi_object *object = mine.objects[--mine.count];
    hi_census_pool(object, -1);
    hi_drop(object);
  }
}

void hi_pool_drain(void) {
  drop_from(0);
  free(mine.objects);
  mine.objects = NULL;
  mine.room = 0;
}

void hi_pool_thread_end(void) {
  hi_pool_drain();
  if (mine.registered) pthread_setspecific(key, NULL);
  mine.registered = false;
}

/* Another thread may be shutting the library down just now: it does not wait for threads that are inside no call. */
static void at_thread_end(void *unused) {
  (void)unused;
  mine.registered = false; /* a destructor that runs later and makes objects has them dropped too */
  bool held = hi_runtime_hold();
  hi_pool_drain();
  if (held) hi_runtime_let_go();
}

/* Where a process has used up its keys, what is left in a thread's pool when it ends leaks. */
static void make_key(void) {
  have_key = pthread_key_create(&key, at_thread_end) == 0;
}

static bool grow(void) {
  int room = mine.room ? mine.room * 2 : 64;
  hi_object **objects = realloc(mine.objects, (size_t)room * sizeof *objects);
  if (!objects) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a pool of %d objects", room);
    return false;
  }
  mine.objects = objects;
  mine.room = room;
  if (!mine.registered) {
    pthread_once(&once, make_key);
    mine.registered = have_key && pthread_setspecific(key, &mine) == 0; /* not NULL, so that the destructor runs */
  }
  return true;
}

bool hi_pool_add(hi_object *object) {
  if (mine.count == mine.room && !grow()) return false;
  mine.objects[mine.count++] = object;
  hi_census_pool(object, 1);
  return true;
}

helio_scope helio_pool_enter(void) {
  return (helio_scope){.open = 1, .depth = mine.count};
}

void helio_pool_leave(helio_scope *scope) {
  if (scope) drop_from(scope->depth);
}

void *hi_pool_leave_with(helio_scope *pool, void *object) {
  if (object) hi_hold(object);
  helio_pool_leave(pool);
  if (!object || hi_pool_add(object)) return object;
  hi_drop(object);
  return NULL;
}
