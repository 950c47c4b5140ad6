/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what is queued is ordered behind what it depends on: by its stream, by an event, or because the host has
 * waited in between. That is known when something is queued, whatever the seed and the pace make of it, so that a wait
 * that is missing is told each time. Only memory that is known to the byte is judged: that of copies, fills, libraries
 * and collectives. What a kernel touches is not known, because it may be given parts of one large allocation. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

void sim_past_join(sim_past *past, const sim_past *other) {
  for (int i = 0; i < SIM_LINES; i++)
    if (other->last[i] > past->last[i]) past->last[i] = other->last[i];
}

bool sim_past_has(const sim_past *past, int line, uint64_t sequence) {
  return past->last[line] >= sequence;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Lines
 */

static int line_users[SIM_LINES], last_line;

int sim_line_take(void) {
  int best = -1;
  for (int i = 1; i <= SIM_LINES; i++) {
    int line = (last_line + i) % SIM_LINES;
    if (best < 0 || line_users[line] < line_users[best]) best = line;
  }
  line_users[best]++;
  return last_line = best;
}

void sim_line_return(int line) {
  line_users[line]--;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Who used which memory last
 */

enum { MOST_READERS = 8, FIRST_SWEEP = 1024 };

/* Which item of which stream. */
typedef struct use {
  sim_stream *stream;
  uint64_t sequence;
  const char *call;
  bool is_scratch;
} use;

/* Bytes that were used alike: who wrote them, and who read them since. */
typedef struct stretch {
  const char *begin, *end;
  use writer; /* without a stream: nobody */
  use readers[MOST_READERS];
  int reader_count;
} stretch;

static stretch **all; /* in the order of their addresses, none overlaps another */
static size_t count, room, next_sweep = FIRST_SWEEP;

static void *need(void *memory) {
  if (!memory) abort(); /* the emulator itself has no memory: nothing can be shown any more */
  return memory;
}

/* The first stretch that ends behind an address. */
static size_t find(const char *address) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (all[middle]->end <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static stretch *insert(size_t at, const stretch *made) {
  if (count == room) {
    room = room ? 2 * room : 64;
    all = need(realloc(all, room * sizeof *all));
  }
  memmove(all + at + 1, all + at, (count - at) * sizeof *all);
  count++;
  all[at] = need(malloc(sizeof *made));
  *all[at] = *made;
  return all[at];
}

static void remove_some(size_t first, size_t behind) {
  if (first == behind) return;
  for (size_t i = first; i < behind; i++) free(all[i]);
  memmove(all + first, all + behind, (count - behind) * sizeof *all);
  count -= behind - first;
}

/* Makes a border at an address, if it is in the midst of a stretch. */
static void split(const char *address) {
  size_t at = find(address);
  if (at == count || all[at]->begin >= address) return;
  stretch rest = *all[at];
  rest.begin = address;
  all[at]->end = address;
  insert(at + 1, &rest);
}

/* By nobody, or ordered before; a lost device uses nothing. */
static bool is_over(const use *one, const sim_past *past) {
  return !one->stream || sim_past_has(past, sim_stream_line(one->stream), one->sequence) ||
         sim_stream_device(one->stream)->health != SIM_OK;
}

/* Ranks of a collective wait for each other, which is no event that we could see. */
static bool is_before(const use *one, const sim_stream *stream, const sim_past *past) {
  if (is_over(one, past)) return true;
  return sim_stream_meets(one->stream) && sim_stream_meets(stream) &&
         sim_stream_device(one->stream) != sim_stream_device(stream);
}

/* Whom an access comes too early for; NULL: nobody. */
static const use *find_conflict(const stretch *s, const sim_access *access, const sim_stream *stream,
                                const sim_past *past) {
  if (!is_before(&s->writer, stream, past)) return &s->writer;
  for (int i = 0; access->written && i < s->reader_count; i++)
    if (!is_before(&s->readers[i], stream, past)) return &s->readers[i];
  return NULL;
}

static void tell(const sim_access *access, const stretch *s, const use *other) {
  char text[256];
  const char *begin = s->begin > (const char *)access->address ? s->begin : access->address;
  sim_describe(begin, text, sizeof text);
  if (access->is_scratch && other->is_scratch)
    sim_violation("workspace of two streams", "%s, %s, is in use by %s on another stream: nothing orders the two",
                  access->what, text, other->call);
  else
    sim_violation("missing wait", "%s, %s, is %s, but %s on another stream %s: no event and no wait orders the two",
                  access->what, text, access->written ? "written" : "read", other->call,
                  other == &s->writer ? "writes it" : "reads it");
}

/* A reader that comes behind another in the order of things stands for both. */
static void add_reader(stretch *s, const use *reader, const sim_past *past) {
  int kept = 0;
  for (int i = 0; i < s->reader_count; i++)
    if (!sim_past_has(past, sim_stream_line(s->readers[i].stream), s->readers[i].sequence))
      s->readers[kept++] = s->readers[i];
  if (kept == MOST_READERS) memmove(s->readers, s->readers + 1, --kept * sizeof *s->readers);
  s->readers[kept] = *reader;
  s->reader_count = kept + 1;
}

static void note_write(const char *begin, const char *end, const use *writer) {
  size_t first = find(begin), behind = first;
  while (behind < count && all[behind]->begin < end) behind++;
  remove_some(first, behind);
  insert(first, &(stretch){.begin = begin, .end = end, .writer = *writer});
}

static void note_read(const char *begin, const char *end, const use *reader, const sim_past *past) {
  for (size_t at = find(begin); begin < end; at++) {
    if (at == count || all[at]->begin > begin) {
      const char *border = at < count && all[at]->begin < end ? all[at]->begin : end;
      insert(at, &(stretch){.begin = begin, .end = border});
    }
    add_reader(all[at], reader, past);
    begin = all[at]->end;
  }
}

/* Who may still use it for all that the host knows; NULL: nobody. */
static const use *find_unknown(const stretch *s, const sim_past *host) {
  const use *uses[MOST_READERS + 1] = {&s->writer};
  for (int i = 0; i < s->reader_count; i++) uses[i + 1] = &s->readers[i];
  for (int i = 0; i <= s->reader_count; i++)
    if (!is_over(uses[i], host)) return uses[i];
  return NULL;
}

/* Forgets what the host knows to be done: all that is queued from now on comes behind it. */
static void sweep(void) {
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    if (!find_unknown(all[i], sim_host_past()))
      free(all[i]);
    else
      all[kept++] = all[i];
  }
  count = kept;
  next_sweep = 2 * count > FIRST_SWEEP ? 2 * count : FIRST_SWEEP;
}

void sim_order_note(const sim_access *access, sim_stream *stream, uint64_t sequence, const sim_past *past) {
  const char *begin = access->address, *end = begin + access->bytes;
  if (!access->bytes) return;
  if (count >= next_sweep) sweep();
  for (size_t i = find(begin); i < count && all[i]->begin < end; i++) {
    const use *other = find_conflict(all[i], access, stream, past);
    if (!other) continue;
    tell(access, all[i], other);
    break;
  }
  split(begin);
  split(end);
  use own = {stream, sequence, sim_current_call(), access->is_scratch};
  if (access->written)
    note_write(begin, end, &own);
  else
    note_read(begin, end, &own, past);
}

bool sim_is_pending(const void *address) {
  sim_lock();
  size_t at = find(address);
  bool pending = at < count && all[at]->begin <= (const char *)address && find_unknown(all[at], sim_host_past());
  sim_unlock();
  return pending;
}

void sim_order_forget(const char *begin, const char *end) {
  split(begin);
  split(end);
  size_t first = find(begin), behind = first;
  const use *used = NULL;
  for (; behind < count && all[behind]->begin < end; behind++)
    if (!used) used = find_unknown(all[behind], sim_host_past());
  if (used) {
    char text[256];
    const sim_device *device = sim_stream_device(used->stream);
    sim_violation("missing wait", "%s is freed, but %s on a stream of %s %d uses it, and nobody has waited for that",
                  sim_describe(begin, text, sizeof text), used->call, device->name, device->index);
  }
  remove_some(first, behind);
}
