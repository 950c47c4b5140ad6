/* SPDX-License-Identifier: Apache-2.0 */
#include "device/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "runtime/error.h"
#include "runtime/printable.h"

static _Thread_local const char *blamed;

const char *hi_blame_enter(const char *name) {
  const char *previous = blamed;
  blamed = name;
  return previous;
}

void hi_blame_leave(const char *previous) {
  blamed = previous;
}

/* Whose word it is, and when what happened to it. Word 0 has only users. */
typedef struct caller {
  hi_range range;
  char name[HI_BLAME_LENGTH]; /* empty: nobody's */
  int users;                  /* calls between take and return */
  uint64_t named, returned, cleared;
} caller;

/* Times are counted: each event has its own. */
typedef struct hi_callers {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int users, waiting; /* calls between take and return, and those who wait for there to be none */
  uint64_t time;
  atomic_uint_fast64_t clean; /* when a reading began that found no bad data */
  int count;                  /* words that are somebody's, with word 0 */
  caller of[HI_STATUS_WORDS];
} hi_callers;

_Static_assert(HI_STATUS_WORDS <= 32, "sets of words are bits of a uint32_t");

/* ---- the words of a device ---- */

static helio_place place_of(const hi_device *device, int word) {
  helio_place place = device->status->place;
  place.offset += (size_t)word * sizeof(helio_status_word);
  return place;
}

static helio_status clear_words(hi_device *device, int first, int count) {
  static const unsigned char zero = 0;
  return device->member.memory->fill(device->member.device, device->streams[HI_STREAM_COMPUTE], place_of(device, first),
                                     &zero, 1, (size_t)count * sizeof(helio_status_word));
}

helio_status hi_status_open(hi_device *device) {
  hi_callers *callers = calloc(1, sizeof *callers);
  if (!callers) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the status words of %s", device->name);
  pthread_mutex_init(&callers->lock, NULL);
  pthread_cond_init(&callers->changed, NULL);
  callers->count = 1;
  device->callers = callers;
  size_t bytes = HI_STATUS_WORDS * sizeof(helio_status_word);
  device->status = hi_arena_allocate(device->arena, bytes, HI_STREAM_COMPUTE, "status words");
  if (!device->status) return helio_error_pending();
  hi_reason_clear();
  helio_status status = clear_words(device, 0, HI_STATUS_WORDS);
  return status ? hi_device_failed(device, status, "clearing the status words") : HELIO_OK;
}

void hi_status_close(hi_device *device) {
  hi_block_release(device->status);
  device->status = NULL;
  if (!device->callers) return;
  pthread_cond_destroy(&device->callers->changed);
  pthread_mutex_destroy(&device->callers->lock);
  free(device->callers);
  device->callers = NULL;
}

/* ---- a caller's word ---- */

static bool is_of(const caller *c, const hi_range *range, const char *name, size_t length) {
  return c->range.operation == range->operation && c->range.limit == range->limit &&
         strncmp(c->name, name, length) == 0 && !c->name[length];
}

/* A word that nobody has, else the one that was used longest ago of those that can say nothing any more: a reading was
 * clean that came behind the last call. 0 if there is none. */
static int find_room(hi_callers *callers) {
  if (callers->count < HI_STATUS_WORDS) return callers->count++;
  uint64_t clean = atomic_load_explicit(&callers->clean, memory_order_relaxed);
  int oldest = 0;
  for (int i = 1; i < HI_STATUS_WORDS; i++) {
    const caller *c = &callers->of[i];
    if (c->users > 0 || c->returned > clean) continue;
    if (!oldest || c->returned < callers->of[oldest].returned) oldest = i;
  }
  return oldest;
}

static int find_word(hi_callers *callers, const hi_range *range, const char *name, size_t length) {
  for (int i = 1; i < callers->count; i++) {
    if (is_of(&callers->of[i], range, name, length)) return i;
  }
  int word = find_room(callers);
  if (!word) return 0;
  caller *c = &callers->of[word];
  *c = (caller){.range = *range, .named = ++callers->time, .cleared = c->cleared};
  memcpy(c->name, name, length);
  return word;
}

int hi_status_take(hi_device *device, int stream, const hi_range *range) {
  hi_callers *callers = device->callers;
  const char *name = blamed ? blamed : "";
  size_t length = hi_text_fit(name, HI_BLAME_LENGTH);
  pthread_mutex_lock(&callers->lock);
  while (callers->waiting > 0) pthread_cond_wait(&callers->changed, &callers->lock);
  /* Readings come behind the calls of the compute stream only. */
  int word = stream == HI_STREAM_COMPUTE ? find_word(callers, range, name, length) : 0;
  callers->of[word].users++;
  callers->users++;
  pthread_mutex_unlock(&callers->lock);
  return word;
}

void hi_status_return(hi_device *device, int word) {
  hi_callers *callers = device->callers;
  pthread_mutex_lock(&callers->lock);
  callers->of[word].users--;
  callers->of[word].returned = ++callers->time;
  if (--callers->users == 0 && callers->waiting > 0) pthread_cond_broadcast(&callers->changed);
  pthread_mutex_unlock(&callers->lock);
}

/* ---- reading ---- */

/* Locks the callers. A synchronous device has no stream that puts what this thread does to the words behind what a
 * kernel of another thread does just now, so the calls under way are waited for, unless one never comes back. */
static void lock_words(hi_device *device) {
  hi_callers *callers = device->callers;
  pthread_mutex_lock(&callers->lock);
  if (!device->synchronous || callers->users == 0) return;
  callers->waiting++;
  while (callers->users > 0 && !hi_device_hung(device)) {
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec++;
    pthread_cond_timedwait(&callers->changed, &callers->lock, &soon);
  }
  if (--callers->waiting == 0) pthread_cond_broadcast(&callers->changed);
}

helio_status hi_status_read(hi_device *device, hi_status_reading *reading, helio_status_word *words) {
  hi_callers *callers = device->callers;
  lock_words(device);
  reading->time = ++callers->time;
  reading->count = callers->count;
  if (!device->synchronous) pthread_mutex_unlock(&callers->lock); /* the copy may wait for the stream */
  size_t bytes = (size_t)reading->count * sizeof(helio_status_word);
  helio_status status = device->member.memory->copy_out(device->member.device, device->streams[HI_STREAM_COMPUTE],
                                                        words, device->status->place, bytes);
  if (device->synchronous) pthread_mutex_unlock(&callers->lock);
  return status;
}

/* Only the words that told of something, and only if no other thread has cleared them since: what kernels have written
 * after the reading stays for the next one. */
static helio_status clear_told(hi_device *device, const hi_status_reading *reading) {
  hi_callers *callers = device->callers;
  helio_status status = HELIO_OK;
  lock_words(device);
  for (int i = 0; i < reading->count && !status; i++) {
    if (!reading->words[i].code || callers->of[i].cleared > reading->time) continue;
    status = clear_words(device, i, 1);
    if (!status) callers->of[i].cleared = ++callers->time;
  }
  pthread_mutex_unlock(&callers->lock);
  return status;
}

/* ---- what is told ---- */

static const char *operation_name(uint32_t operation) {
  switch (operation) {
#define NAME(name, value)                                                                                              \
  case HELIO_OP_##name:                                                                                                \
    return #name;
    HELIO_OPERATION_LIST(NAME)
#undef NAME
  }
  return "an operation";
}

/* A value that goes on to other operations, as an index does to those of the gradient and of the update, is out of
 * range there as well: that is told once, of the first caller. */
static bool is_told(const hi_callers *callers, const hi_status_reading *reading, uint32_t told, int word) {
  const caller *c = &callers->of[word];
  for (int i = 1; i < reading->count; i++) {
    const caller *other = &callers->of[i];
    if (told >> i & 1 && reading->words[i].value == reading->words[word].value &&
        other->range.limit == c->range.limit && (!c->name[0] || strcmp(c->name, other->name) == 0))
      return true;
  }
  return false;
}

/* The caller is NULL where nobody knows it. Returns the length, as snprintf does. */
static int describe(char *text, size_t size, const hi_device *device, const caller *c, const helio_status_word *word) {
  long long value = word->value;
  if (!c) {
    return snprintf(text, size, "%s on %s met the value %lld, which is out of range", operation_name(word->operation),
                    device->name, value);
  }
  const hi_range *range = &c->range;
  long long limit = range->limit;
  if (!c->name[0]) {
    return snprintf(text, size, "%s on %s: %s %lld is out of range: %s %lld %s", range->operation, device->name,
                    range->value, value, range->has, limit, range->units);
  }
  return snprintf(text, size, "%s: %s %lld is out of range: %s %lld %s (%s on %s)", c->name, range->value, value,
                  range->has, limit, range->units, range->operation, device->name);
}

enum { WITH_NAME, WITHOUT_NAME, NOBODYS, TURNS };

/* The word may have got another caller since it was read: then nobody knows any more whose it was. */
static int turn_of(const hi_callers *callers, const hi_status_reading *reading, int word) {
  if (word == 0 || callers->of[word].named > reading->time) return NOBODYS;
  return callers->of[word].name[0] ? WITH_NAME : WITHOUT_NAME;
}

enum { LONGEST = 600, ROOM = 2000 + LONGEST }; /* of one description, and of all: hi_fail() cuts what is too long */

/* All that was read in one text, callers with a name first. */
static void describe_all(char text[ROOM], const hi_device *device, const hi_status_reading *reading) {
  hi_callers *callers = device->callers;
  size_t length = 0;
  uint32_t told = 0;
  pthread_mutex_lock(&callers->lock);
  for (int turn = 0; turn < TURNS; turn++) {
    for (int i = 0; i < reading->count && length < ROOM - LONGEST; i++) {
      const caller *c = turn == NOBODYS ? NULL : &callers->of[i];
      if (!reading->words[i].code || turn_of(callers, reading, i) != turn) continue;
      if (c && is_told(callers, reading, told, i)) continue;
      if (told) length += (size_t)snprintf(text + length, ROOM - length, "; ");
      length += (size_t)describe(text + length, ROOM - length, device, c, &reading->words[i]);
      told |= UINT32_C(1) << i;
    }
  }
  pthread_mutex_unlock(&callers->lock);
}

helio_status hi_status_judge(hi_device *device, const hi_status_reading *reading) {
  char text[ROOM];
  bool bad = false;
  for (int i = 0; i < reading->count; i++) bad |= reading->words[i].code != 0;
  if (!bad) {
    atomic_store_explicit(&device->callers->clean, reading->time, memory_order_relaxed);
    return HELIO_OK;
  }
  describe_all(text, device, reading); /* before clearing, after which the words may get other callers */
  hi_reason_clear();
  helio_status status = clear_told(device, reading);
  return status ? hi_device_failed(device, status, "clearing the status words") : hi_fail(HELIO_BAD_DATA, "%s", text);
}
