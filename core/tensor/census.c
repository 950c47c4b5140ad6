/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/census.h"

#ifdef HELIO_DEBUG

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/leaks.h"
#include "runtime/runtime.h"
#include "tensor/object.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hi_object *all;

/* ---- who lives: in a forked child somebody who is no more may hold the lock, and nobody asks ---- */

void hi_census_enter(hi_object *object, const char *what) {
  object->census = (hi_census){.what = what};
  if (hi_runtime_forked()) return;
  pthread_mutex_lock(&lock);
  object->census.next = all;
  if (all) all->census.previous = object;
  all = object;
  pthread_mutex_unlock(&lock);
}

void hi_census_leave(hi_object *object) {
  if (hi_runtime_forked()) return;
  hi_census *own = &object->census;
  pthread_mutex_lock(&lock);
  if (own->previous) own->previous->census.next = own->next;
  if (own->next) own->next->census.previous = own->previous;
  if (all == object) all = own->next;
  pthread_mutex_unlock(&lock);
}

void hi_census_pool(hi_object *object, int change) {
  atomic_fetch_add_explicit(&object->census.pools, change, memory_order_relaxed);
}

void hi_census_name(hi_object *object, const void *place) {
  object->census.name = place;
}

void hi_census_describe(hi_object *object, hi_describe describe) {
  object->census.describe = describe;
}

void hi_census_rename(hi_object *object, const char *what) {
  object->census.what = what;
}

/* ---- the report ---- */

enum { MOST_KINDS = 40, MOST_TEXTS = 6, TEXT = 120 };

typedef struct kind {
  const char *what;
  int count;
  struct {
    char text[TEXT];
    int count;
  } texts[MOST_TEXTS]; /* the first that were met */
  int text_count;
} kind;

static const char *without_article(const char *what) {
  if (strncmp(what, "a ", 2) == 0) return what + 2;
  return strncmp(what, "an ", 3) == 0 ? what + 3 : what;
}

static void count_text(kind *k, const hi_object *object) {
  char text[TEXT] = "";
  const char *const *name = object->census.name;
  if (object->census.describe) object->census.describe(object, text, sizeof text);
  if (name && *name) snprintf(text, sizeof text, "%s", *name);
  if (!*text) return;
  int at = 0;
  while (at < k->text_count && strcmp(k->texts[at].text, text) != 0) at++;
  if (at == MOST_TEXTS) return;
  if (at == k->text_count) snprintf(k->texts[k->text_count++].text, TEXT, "%s", text);
  k->texts[at].count++;
}

static int count_object(kind *kinds, int count, const hi_object *object) {
  int at = 0;
  while (at < count && strcmp(kinds[at].what, object->census.what) != 0) at++;
  if (at == MOST_KINDS) return count;
  if (at == count) kinds[count++] = (kind){.what = object->census.what};
  kinds[at].count++;
  count_text(&kinds[at], object);
  return count;
}

static void tell_kind(const kind *k) {
  char text[900] = "";
  size_t length = 0;
  int described = 0;
  for (int i = 0; i < k->text_count && length < sizeof text; i++) {
    length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i ? ", " : ": ", k->texts[i].text);
    if (k->texts[i].count > 1 && length < sizeof text) {
      length += (size_t)snprintf(text + length, sizeof text - length, " (%d times)", k->texts[i].count);
    }
    described += k->texts[i].count;
  }
  bool more = k->text_count == MOST_TEXTS && described < k->count;
  hi_leak_say("%d × %s%s%s", k->count, without_article(k->what), text, more ? ", …" : "");
}

static bool pools_are_empty(void) {
  const hi_object *object = all;
  while (object && atomic_load(&object->census.pools) == 0) object = object->census.next;
  return !object;
}

bool hi_census_tell(void) {
  static kind kinds[MOST_KINDS]; /* under the lock */
  int count = 0;
  pthread_mutex_lock(&lock);
  bool sure = pools_are_empty();
  for (hi_object *object = all; object; object = object->census.next) {
    if (object->census.told || (!sure && atomic_load(&object->kept) == 0)) continue;
    object->census.told = true;
    count = count_object(kinds, count, object);
  }
  for (int i = 0; i < count; i++) tell_kind(&kinds[i]);
  pthread_mutex_unlock(&lock);
  return sure;
}

#endif
