/* SPDX-License-Identifier: Apache-2.0 */
/* Debug builds know all objects that live, to tell at the end of the library which are still held. In other builds
 * these calls are nothing. */
#ifndef HI_CENSUS_H
#define HI_CENSUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Writes what tells an object from others of its kind, such as its shape. */
typedef void (*hi_describe)(const void *object, char *text, size_t size);

struct hi_object;

#ifdef HELIO_DEBUG

typedef struct hi_census {
  const char *what;     /* with an article: "a tensor" */
  hi_describe describe; /* NULL: none */
  const void *name;     /* the place of a pointer to it; NULL: none */
  atomic_int pools;     /* that hold it, of whatever threads */
  bool told;            /* by an earlier report */
  struct hi_object *next, *previous;
} hi_census;

void hi_census_enter(struct hi_object *object, const char *what);
void hi_census_leave(struct hi_object *object);
void hi_census_pool(struct hi_object *object, int change);
void hi_census_rename(struct hi_object *object, const char *what);

/* How one is told from others of its kind: by the name that a pointer at this place, which may be NULL, points to when
 * it is asked for; or by a function. */
void hi_census_name(struct hi_object *object, const void *place);
void hi_census_describe(struct hi_object *object, hi_describe describe);

/* A line for each kind of objects that is still held. What is in pools of other threads goes with them and is not told;
 * nor can it be known then what those objects hold, so that only what the program itself has kept is told. False: so it
 * is. */
bool hi_census_tell(void);

#else

static inline void hi_census_enter(struct hi_object *object, const char *what) {
  (void)object, (void)what;
}
static inline void hi_census_leave(struct hi_object *object) {
  (void)object;
}
static inline void hi_census_pool(struct hi_object *object, int change) {
  (void)object, (void)change;
}
static inline void hi_census_describe(struct hi_object *object, hi_describe describe) {
  (void)object, (void)describe;
}
static inline void hi_census_name(struct hi_object *object, const void *place) {
  (void)object, (void)place;
}
static inline void hi_census_rename(struct hi_object *object, const char *what) {
  (void)object, (void)what;
}
static inline bool hi_census_tell(void) {
  return true;
}

#endif

#endif
