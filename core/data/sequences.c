/* SPDX-License-Identifier: Apache-2.0 */
#include "data/sequences.h"

#include <stdlib.h>
#include <string.h>

#include "data/array.h"
#include "ops/options.h"
#include "runtime/error.h"

/* ---- writing ---- */

static void end(void *object) {
  helio_sequences *sequences = object;
  free(sequences->starts);
  free(sequences->values);
  free(sequences);
}

/* Room for one more of `size` bytes behind `count`. */
static bool make_room(void **items, int64_t *room, int64_t count, size_t size) {
  if (count < *room) return true;
  int64_t more = *room ? *room * 2 : 256;
  void *larger = realloc(*items, (size_t)more * size);
  if (!larger) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for sequences with %lld elements", (long long)count);
    return false;
  }
  *items = larger;
  *room = more;
  return true;
}

bool hi_sequences_begin(hi_sequences_writer *writer) {
  void *starts = writer->starts;
  bool made = make_room(&starts, &writer->starts_room, writer->count, sizeof *writer->starts);
  writer->starts = starts;
  if (made) writer->starts[writer->count++] = writer->total;
  return made;
}

bool hi_sequences_add(hi_sequences_writer *writer, int32_t value) {
  void *values = writer->values;
  bool made = make_room(&values, &writer->values_room, writer->total, sizeof value);
  writer->values = values;
  if (made) writer->values[writer->total++] = value;
  return made;
}

void hi_sequences_abandon(hi_sequences_writer *writer) {
  free(writer->starts);
  free(writer->values);
  *writer = (hi_sequences_writer){.starts = NULL};
}

helio_sequences *hi_sequences_finish(hi_sequences_writer *writer) {
  helio_sequences *sequences = NULL;
  if (hi_sequences_begin(writer)) sequences = hi_object_new(sizeof *sequences, end, "sequences"); /* the last end */
  if (sequences) {
    sequences->count = writer->count - 1;
    sequences->starts = writer->starts;
    sequences->values = writer->values;
    writer->starts = NULL;
    writer->values = NULL;
  }
  hi_sequences_abandon(writer);
  return sequences;
}

/* A sum that no memory could hold is none that somebody has counted. */
static void check_lengths(const int32_t *values, const int64_t *lengths, int64_t count) {
  int64_t total = 0;
  if (count < 0 || (count && !lengths)) hi_fail(HELIO_INVALID_ARGUMENT, "lengths is NULL, or count negative");
  for (int64_t i = 0; i < count && !helio_error_pending(); i++) {
    if (lengths[i] < 0 || (lengths[i] && !values)) {
      hi_fail(HELIO_INVALID_ARGUMENT, "sequence %lld has the length %lld%s", (long long)i, (long long)lengths[i],
              values ? "" : ", and values is NULL");
    } else if (__builtin_add_overflow(total, lengths[i], &total) || total > PTRDIFF_MAX / (int64_t)sizeof *values) {
      hi_fail(HELIO_INVALID_ARGUMENT, "sequence %lld has the length %lld, which is not valid or too large",
              (long long)i, (long long)lengths[i]);
    }
  }
}

helio_sequences *helio_sequences_of(const int32_t *values, const int64_t *lengths, int64_t count) {
  hi_sequences_writer writer = {.starts = NULL};
  if (hi_enter_unstarted(__func__)) return NULL;
  check_lengths(values, lengths, count);
  for (int64_t i = 0; i < count && !helio_error_pending(); i++) {
    bool good = hi_sequences_begin(&writer);
    for (int64_t j = 0; good && j < lengths[i]; j++) good = hi_sequences_add(&writer, *values++);
  }
  if (!helio_error_pending()) return hi_sequences_finish(&writer);
  hi_sequences_abandon(&writer);
  return NULL;
}

helio_sequences *helio_sequences_part(const helio_sequences *sequences, int64_t begin, int64_t count) {
  hi_sequences_writer writer = {.starts = NULL};
  if (hi_enter_unstarted(__func__)) return NULL;
  int64_t all = helio_sequences_count(sequences);
  if (!sequences || begin < 0 || begin > all || count < -1 || count > all - begin) {
    hi_fail(HELIO_INVALID_ARGUMENT, sequences ? "%lld from %lld on are not among %lld sequences" : "sequences is NULL",
            (long long)count, (long long)begin, (long long)all);
    return NULL;
  }
  if (count < 0) count = all - begin;
  for (int64_t i = begin; i < begin + count; i++) {
    bool good = hi_sequences_begin(&writer);
    for (int64_t j = sequences->starts[i]; good && j < sequences->starts[i + 1]; j++) {
      good = hi_sequences_add(&writer, sequences->values[j]);
    }
    if (good) continue;
    hi_sequences_abandon(&writer);
    return NULL;
  }
  return hi_sequences_finish(&writer);
}

/* ---- facts ---- */

int64_t helio_sequences_count(const helio_sequences *sequences) {
  return sequences ? sequences->count : 0;
}

const int32_t *helio_sequences_at(const helio_sequences *sequences, int64_t index, int64_t *length) {
  bool there = sequences && index >= 0 && index < sequences->count;
  if (length) *length = there ? sequences->starts[index + 1] - sequences->starts[index] : 0;
  if (!there) return NULL;
  static const int32_t none;
  return sequences->values ? sequences->values + sequences->starts[index] : &none;
}

int32_t helio_sequences_largest(const helio_sequences *sequences) {
  int64_t total = sequences ? sequences->starts[sequences->count] : 0;
  int32_t largest = total ? sequences->values[0] : -1;
  for (int64_t i = 1; i < total; i++) {
    if (sequences->values[i] > largest) largest = sequences->values[i];
  }
  return largest;
}

/* ---- padding ---- */

typedef struct padding {
  helio_pad_sequences_options o;
  char *row;
  size_t width;
  char fill[8];
} padding;

static void put_fill(const padding *p, int64_t at, int64_t count) {
  char *to = p->row + (size_t)at * p->width;
  for (int64_t i = 0; i < count; i++) memcpy(to + (size_t)i * p->width, p->fill, p->width);
}

static void pad_row(const padding *p, const int32_t *values, int64_t length) {
  const hi_conversion conversion = {.from = HELIO_INT32, .to = p->o.type};
  int64_t kept = length < p->o.maxlen ? length : p->o.maxlen, rest = p->o.maxlen - kept;
  if (!p->o.cut_behind) values += length - kept;
  put_fill(p, p->o.pad_behind ? kept : 0, rest);
  char *to = p->row + (size_t)(p->o.pad_behind ? 0 : rest) * p->width;
  hi_convert(&conversion, values, to, (size_t)kept);
}

static int64_t longest(const helio_sequences *sequences) {
  int64_t most = 0;
  for (int64_t i = 0; i < sequences->count; i++) {
    int64_t length = sequences->starts[i + 1] - sequences->starts[i];
    if (length > most) most = length;
  }
  return most;
}

/* numpy refuses numbers that a byte cannot hold; other types hold all of int32, if not exactly. */
static bool check_padding(const helio_pad_sequences_options *o) {
  if (!o->sequences) {
    hi_fail(HELIO_INVALID_ARGUMENT, "sequences is NULL");
  } else if (o->maxlen < 0 || !hi_type_valid(o->type)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "maxlen is %lld, type %d", (long long)o->maxlen, (int)o->type);
  } else if (o->type == HELIO_UINT8) {
    int64_t total = o->sequences->starts[o->sequences->count];
    for (int64_t i = 0; i < total && !helio_error_pending(); i++) {
      int32_t value = o->sequences->values[i];
      if (value < 0 || value > UINT8_MAX) hi_fail(HELIO_INVALID_ARGUMENT, "%d does not fit into uint8", (int)value);
    }
  }
  return !helio_error_pending();
}

helio_array *helio_pad_sequences_with(const helio_pad_sequences_options *given) {
  padding p;
  void *data;
  if (!hi_options_enter("helio_pad_sequences", &p.o, sizeof p.o, given)) return NULL;
  if (!p.o.type) p.o.type = HELIO_INT32;
  if (!check_padding(&p.o)) return NULL;
  if (p.o.maxlen == 0) p.o.maxlen = longest(p.o.sequences);
  helio_shape shape = {2, {p.o.sequences->count, p.o.maxlen}};
  helio_array *array = hi_array_new(p.o.type, &shape, &data);
  if (!array) return NULL;
  p.row = data;
  p.width = helio_type_bytes(p.o.type);
  hi_type_encode(p.o.type, p.o.value, p.fill);
  for (int64_t i = 0; i < p.o.sequences->count; i++) {
    int64_t length;
    const int32_t *values = helio_sequences_at(p.o.sequences, i, &length);
    pad_row(&p, values, length);
    p.row += (size_t)p.o.maxlen * p.width;
  }
  return array;
}
