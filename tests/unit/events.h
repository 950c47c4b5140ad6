/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of event files that shares nothing with their writer. */
#ifndef HELIO_TEST_EVENTS_H
#define HELIO_TEST_EVENTS_H

#include <dirent.h>

#include "data_files.h"

/* Another way to the same sum than the library's: the polynomial as it is written, the highest bit first, so all bits
 * are turned round. */
static inline uint32_t reversed(uint32_t bits, int count) {
  uint32_t result = 0;
  for (int i = 0; i < count; i++) result |= (bits >> i & 1) << (count - 1 - i);
  return result;
}

static inline uint32_t crc_of(const unsigned char *data, size_t bytes) {
  uint32_t sum = UINT32_MAX;
  for (size_t i = 0; i < bytes; i++) {
    sum ^= reversed(data[i], 8) << 24;
    for (int bit = 0; bit < 8; bit++) sum = sum & 0x80000000 ? sum << 1 ^ 0x1EDC6F41 : sum << 1;
  }
  return ~reversed(sum, 32);
}

static inline uint32_t unmasked(uint32_t masked) {
  uint32_t turned = masked - 0xa282ead8;
  return turned >> 17 | turned << 15;
}

typedef struct event {
  double wall_time;
  int64_t step;
  const unsigned char *version, *tag; /* NULL: none */
  size_t version_length, tag_length;
  bool has_value;
  float value;
} event;

enum { EVENT, SUMMARY, VALUE };

/* Of a message; what it does not know fails the test. */
static inline void parse_message(int kind, const unsigned char *at, const unsigned char *end, event *e);

static inline uint64_t parse_varint(const unsigned char **at, const unsigned char *end) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    assert_true(*at < end && shift < 70);
    unsigned char byte = *(*at)++;
    value |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return value;
  }
}

static inline const unsigned char *parse_counted(const unsigned char **at, const unsigned char *end, size_t *length) {
  *length = parse_varint(at, end);
  assert_true(*length <= (size_t)(end - *at));
  *at += *length;
  return *at - *length;
}

static inline void parse_inner(int kind, const unsigned char **at, const unsigned char *end, event *e) {
  size_t length;
  const unsigned char *inner = parse_counted(at, end, &length);
  parse_message(kind, inner, inner + length, e);
}

static inline void parse_plain(const unsigned char **at, const unsigned char *end, void *value, size_t bytes) {
  assert_true((size_t)(end - *at) >= bytes);
  memcpy(value, *at, bytes);
  *at += bytes;
}

static inline void parse_message(int kind, const unsigned char *at, const unsigned char *end, event *e) {
  while (at < end) {
    switch (kind << 8 | (int)parse_varint(&at, end)) {
    case EVENT << 8 | (1 << 3 | 1):
      parse_plain(&at, end, &e->wall_time, 8);
      break;
    case EVENT << 8 | (2 << 3 | 0):
      e->step = (int64_t)parse_varint(&at, end);
      break;
    case EVENT << 8 | (3 << 3 | 2):
      e->version = parse_counted(&at, end, &e->version_length);
      break;
    case EVENT << 8 | (5 << 3 | 2):
      parse_inner(SUMMARY, &at, end, e);
      break;
    case SUMMARY << 8 | (1 << 3 | 2):
      parse_inner(VALUE, &at, end, e);
      break;
    case VALUE << 8 | (1 << 3 | 2):
      e->tag = parse_counted(&at, end, &e->tag_length);
      break;
    case VALUE << 8 | (2 << 3 | 5):
      parse_plain(&at, end, &e->value, 4);
      e->has_value = true;
      break;
    default:
      fail_msg("a field of an event is unknown");
    }
  }
}

typedef struct file_bytes {
  unsigned char *data;
  size_t size, at;
} file_bytes;

/* False if no whole record is left. */
static inline bool next_record(file_bytes *file, const unsigned char **data, size_t *length) {
  const unsigned char *frame = file->data + file->at;
  size_t left = file->size - file->at;
  if (left < 12) return false;
  assert_int_equal(unmasked(hi_le32(frame + 8)), crc_of(frame, 8));
  *length = hi_le64(frame);
  if (left < 16 || *length > left - 16) return false;
  assert_int_equal(unmasked(hi_le32(frame + 12 + *length)), crc_of(frame + 12, *length));
  *data = frame + 12;
  file->at += *length + 16;
  return true;
}

static inline bool next_event(file_bytes *file, event *e) {
  const unsigned char *data;
  size_t length;
  *e = (event){0};
  if (!next_record(file, &data, &length)) return false;
  parse_message(EVENT, data, data + length, e);
  return true;
}

/* The one event file of a folder. */
static inline void find_file(const char *where, char path[PATH_MAX]) {
  DIR *open = opendir(where);
  assert_non_null(open);
  path[0] = 0;
  for (struct dirent *entry; (entry = readdir(open));) {
    if (entry->d_name[0] == '.') continue;
    assert_int_equal(path[0], 0);
    snprintf(path, PATH_MAX, "%s/%s", where, entry->d_name);
  }
  closedir(open);
  assert_int_not_equal(path[0], 0);
}

/* The caller frees the data. Its first record, which tells the version, has been read. */
static inline file_bytes read_file_in(const char *where) {
  char path[PATH_MAX];
  event first;
  file_bytes file = {0};
  find_file(where, path);
  file.data = read_all(path, &file.size);
  assert_true(next_event(&file, &first));
  assert_int_equal(first.version_length, 13);
  assert_memory_equal(first.version, "brain.Event:2", 13);
  assert_false(first.has_value);
  assert_int_equal(first.step, 0);
  return file;
}

#endif
