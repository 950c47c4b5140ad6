/* SPDX-License-Identifier: Apache-2.0 */
/* What every object of the library begins with: its references, and how it ends. An object that a call makes belongs to
 * the thread's innermost pool; helio_keep() lets it out. */
#ifndef HI_OBJECT_H
#define HI_OBJECT_H

#include <helio/helio.h>
#include <stdatomic.h>

#include "tensor/census.h"

typedef struct hi_object {
  atomic_int references; /* the pool's, those of helio_keep() and those of other objects */
  atomic_int kept;       /* by helio_keep() */
  void (*end)(void *object);
#ifdef HELIO_DEBUG
  hi_census census;
#endif
} hi_object;

/* One reference, the caller's. `end` frees the object when the last one is dropped; `what` it is, "a tensor", is said
 * of one that never was. */
void hi_object_begin(void *object, void (*end)(void *object), const char *what);

void hi_hold(void *object);
void hi_drop(void *object); /* NULL: nothing */

/* `bytes` of zeros that begin with a hi_object, owned by the innermost pool. NULL with the error set; `what` is named.
 */
void *hi_object_new(size_t bytes, void (*end)(void *object), const char *what);

#endif
