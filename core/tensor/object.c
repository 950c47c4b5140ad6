/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/object.h"

#include <stdlib.h>

#include "runtime/error.h"
#include "tensor/pool.h"

void hi_object_begin(void *object, void (*end)(void *object), const char *what) {
  hi_object *self = object;
  atomic_init(&self->references, 1);
  atomic_init(&self->kept, 0);
  self->end = end;
  hi_census_enter(self, what);
}

void hi_hold(void *object) {
  atomic_fetch_add_explicit(&((hi_object *)object)->references, 1, memory_order_relaxed);
}

void hi_drop(void *object) {
  hi_object *self = object;
  if (!self || atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) > 1) return;
  hi_census_leave(self);
  self->end(self);
}

void *hi_object_new(size_t bytes, void (*end)(void *object), const char *what) {
  hi_object *object = calloc(1, bytes);
  if (!object) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %s", what);
    return NULL;
  }
  hi_object_begin(object, end, what);
  if (hi_pool_add(object)) return object;
  hi_drop(object);
  return NULL;
}

void *(helio_keep)(void *object) {
  if (!object) return NULL;
  atomic_fetch_add_explicit(&((hi_object *)object)->kept, 1, memory_order_relaxed);
  hi_hold(object);
  return object;
}

void helio_release(void *object) {
  hi_object *self = object;
  if (!self) return;
  if (atomic_fetch_sub_explicit(&self->kept, 1, memory_order_relaxed) <= 0) {
    atomic_fetch_add_explicit(&self->kept, 1, memory_order_relaxed);
    hi_enter_unstarted(__func__);
    hi_fail(HELIO_WRONG_STATE, "helio_release of what was not kept: it belongs to its pool");
    return;
  }
  hi_drop(self);
}
