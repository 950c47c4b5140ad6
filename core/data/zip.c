/* SPDX-License-Identifier: Apache-2.0 */
#include "data/zip.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data/inflate.h"
#include "runtime/error.h"

/* Bytes of each record up to what is of varying length, and what they begin with. */
enum { END = 22, END64_PLACE = 20, END64 = 56, ENTRY = 46, HEADER = 30 };
enum { ENCRYPTED = 1, STORED = 0, DEFLATED = 8, EXTRA_64 = 1 };
static const char end_mark[] = "PK\5\6", end64_place_mark[] = "PK\6\7", end64_mark[] = "PK\6\6",
                  entry_mark[] = "PK\1\2", header_mark[] = "PK\3\4";

static bool has_mark(const hi_file *file, uint64_t offset, uint64_t bytes, const char *mark) {
  return hi_file_has(file, offset, bytes) && memcmp(file->bytes + offset, mark, 4) == 0;
}

/* ---- the end, which says where the list is ---- */

typedef struct ending {
  uint64_t place; /* where the list must end */
  uint64_t entries, bytes, begin;
  bool disks;
} ending;

/* The end has a comment behind it, which must reach the end of the file. */
static helio_status find_end(const hi_file *file, uint64_t *place) {
  uint64_t least = file->size > END + UINT16_MAX ? file->size - END - UINT16_MAX : 0;
  for (uint64_t at = file->size < END ? 0 : file->size - END + 1; at-- > least;) {
    if (!has_mark(file, at, END, end_mark)) continue;
    *place = at;
    if (hi_le16(file->bytes + at + 20) == file->size - at - END) return HELIO_OK;
  }
  return hi_file_fail(file, HELIO_BAD_DATA, file->size, "the file does not end as a ZIP archive, or is cut off");
}

/* Where a number does not fit, all are in a larger record before this one. */
static helio_status read_end64(const hi_file *file, ending *e) {
  if (e->place < END64_PLACE || !has_mark(file, e->place - END64_PLACE, END64_PLACE, end64_place_mark)) {
    return hi_file_fail(file, HELIO_BAD_DATA, e->place, "the ZIP64 record that this end needs is missing");
  }
  const unsigned char *locator = file->bytes + e->place - END64_PLACE;
  uint64_t at = hi_le64(locator + 8);
  if (!has_mark(file, at, END64, end64_mark)) {
    return hi_file_fail(file, HELIO_BAD_DATA, e->place - END64_PLACE, "no ZIP64 record lies at byte %" PRIu64, at);
  }
  const unsigned char *record = file->bytes + at;
  e->disks = hi_le32(locator + 16) > 1 || hi_le32(record + 16) || hi_le32(record + 20);
  e->entries = hi_le64(record + 32);
  e->bytes = hi_le64(record + 40);
  e->begin = hi_le64(record + 48);
  e->place = at;
  return HELIO_OK;
}

static helio_status read_end(const hi_file *file, ending *e) {
  helio_status status = find_end(file, &e->place);
  if (status) return status;
  const unsigned char *record = file->bytes + e->place;
  e->disks = hi_le16(record + 4) || hi_le16(record + 6);
  e->entries = hi_le16(record + 10);
  e->bytes = hi_le32(record + 12);
  e->begin = hi_le32(record + 16);
  if (e->entries == UINT16_MAX || e->bytes == UINT32_MAX || e->begin == UINT32_MAX) status = read_end64(file, e);
  if (status) return status;
  if (e->disks) return hi_file_fail(file, HELIO_NOT_SUPPORTED, e->place, "the archive is split over several disks");
  if (e->begin > e->place || e->bytes != e->place - e->begin) {
    return hi_file_fail(file, HELIO_BAD_DATA, e->place,
                        "the list of members, %" PRIu64 " bytes from byte %" PRIu64 " on, does not end here", e->bytes,
                        e->begin);
  }
  return HELIO_OK;
}

/* ---- the list ---- */

/* Numbers that did not fit, in this order, those that did left out. */
static helio_status read_extra64(const hi_file *file, hi_zip_member *m, uint64_t at, uint64_t end) {
  uint64_t *numbers[] = {&m->size, &m->packed, &m->header};
  while (end - at >= 4) {
    uint32_t id = hi_le16(file->bytes + at);
    uint64_t next = at + 4 + hi_le16(file->bytes + at + 2);
    if (next > end) break;
    at += 4;
    for (int i = 0; i < 3 && id == EXTRA_64; i++) {
      if (*numbers[i] != UINT32_MAX) continue;
      if (next - at < 8) return hi_file_fail(file, HELIO_BAD_DATA, at, "a ZIP64 number is missing here");
      *numbers[i] = hi_le64(file->bytes + at);
      at += 8;
    }
    if (id == EXTRA_64) return HELIO_OK;
    at = next;
  }
  bool missing = m->size == UINT32_MAX || m->packed == UINT32_MAX || m->header == UINT32_MAX;
  return missing ? hi_file_fail(file, HELIO_BAD_DATA, m->entry, "a member lacks its ZIP64 numbers") : HELIO_OK;
}

static helio_status read_name(const hi_file *file, hi_zip_member *m, size_t length) {
  const char *name = (const char *)file->bytes + m->entry + ENTRY;
  if (memchr(name, 0, length)) return hi_file_fail(file, HELIO_BAD_DATA, m->entry + ENTRY, "a name has a 0 in it");
  m->name = strndup(name, length);
  return m->name ? HELIO_OK : hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for the names of its members", file->name);
}

/* The member's entry, whose place is set; and where the next one begins. */
static helio_status read_entry(const hi_file *file, hi_zip_member *m, uint64_t end, uint64_t *next) {
  if (end - m->entry < ENTRY || !has_mark(file, m->entry, ENTRY, entry_mark)) {
    return hi_file_fail(file, HELIO_BAD_DATA, m->entry, "no member of the archive is described here");
  }
  const unsigned char *entry = file->bytes + m->entry;
  uint32_t length = hi_le16(entry + 28), extra = hi_le16(entry + 30), comment = hi_le16(entry + 32);
  *next = m->entry + ENTRY + length + extra + comment;
  if (*next > end) return hi_file_fail(file, HELIO_BAD_DATA, m->entry, "a member's entry goes beyond the list");
  m->flags = hi_le16(entry + 8);
  m->method = hi_le16(entry + 10);
  m->crc = hi_le32(entry + 16);
  m->packed = hi_le32(entry + 20);
  m->size = hi_le32(entry + 24);
  m->header = hi_le32(entry + 42);
  uint64_t extra_at = m->entry + ENTRY + length;
  helio_status status = read_extra64(file, m, extra_at, extra_at + extra);
  return status ? status : read_name(file, m, length);
}

static helio_status read_entries(hi_zip *zip, const ending *e) {
  helio_status status = HELIO_OK;
  uint64_t end = e->begin + e->bytes;
  for (uint64_t at = e->begin, next = at; at < end && !status; at = next) {
    int count = zip->count;
    if (!(count & (count - 1))) {
      hi_zip_member *larger = realloc(zip->members, (count ? 2 * (size_t)count : 1) * sizeof *larger);
      if (!larger) return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for its list of members", zip->file->name);
      zip->members = larger;
    }
    zip->members[count] = (hi_zip_member){.entry = at};
    zip->count++;
    status = read_entry(zip->file, &zip->members[count], end, &next);
  }
  if (status || (uint64_t)zip->count == e->entries) return status;
  return hi_file_fail(zip->file, HELIO_BAD_DATA, e->begin, "%d members are listed, %" PRIu64 " are promised",
                      zip->count, e->entries);
}

helio_status hi_zip_open(hi_zip *zip, hi_file *file) {
  ending e = {.place = 0};
  hi_hold(file);
  zip->file = file;
  helio_status status = read_end(file, &e);
  if (status) return status;
  zip->directory = e.begin;
  return read_entries(zip, &e);
}

void hi_zip_close(hi_zip *zip) {
  for (int i = 0; i < zip->count; i++) free(zip->members[i].name);
  free(zip->members);
  hi_drop(zip->file);
}

const hi_zip_member *hi_zip_find(const hi_zip *zip, const char *name) {
  const hi_zip_member *found = NULL;
  for (int i = 0; i < zip->count; i++) {
    if (strcmp(zip->members[i].name, name) != 0) continue;
    if (found) {
      hi_file_fail(zip->file, HELIO_BAD_DATA, zip->members[i].entry, "a second member is called \"%.100s\"", name);
      return NULL;
    }
    found = &zip->members[i];
  }
  return found;
}

/* ---- a member ---- */

#define fail_member(zip, m, status, format, ...)                                                                       \
  hi_file_fail((zip)->file, status, (m)->entry, "member \"%.100s\": " format, (m)->name, __VA_ARGS__)

static helio_status check_kind(const hi_zip *zip, const hi_zip_member *m) {
  if (m->flags & ENCRYPTED) return fail_member(zip, m, HELIO_NOT_SUPPORTED, "%s", "it is encrypted");
  if (m->method != STORED && m->method != DEFLATED) {
    return fail_member(zip, m, HELIO_NOT_SUPPORTED, "it is compressed by method %u, not by deflate", m->method);
  }
  if (m->method == STORED && m->size != m->packed) {
    return fail_member(zip, m, HELIO_BAD_DATA,
                       "%" PRIu64 " bytes that are only stored cannot be a file of %" PRIu64 " bytes", m->packed,
                       m->size);
  }
  if (!hi_can_inflate(m->packed, m->size)) {
    return fail_member(zip, m, HELIO_BAD_DATA, "%" PRIu64 " bytes are promised, which cannot be in %" PRIu64, m->size,
                       m->packed);
  }
  return HELIO_OK;
}

/* Where the data begin: behind a header of their own, which must be of the same member. */
static helio_status find_data(const hi_zip *zip, const hi_zip_member *m, uint64_t *data) {
  const hi_file *file = zip->file;
  size_t length = strlen(m->name);
  if (m->header > zip->directory || zip->directory - m->header < HEADER ||
      !has_mark(file, m->header, HEADER, header_mark)) {
    return fail_member(zip, m, HELIO_BAD_DATA, "its header is not at byte %" PRIu64, m->header);
  }
  const unsigned char *header = file->bytes + m->header;
  *data = m->header + HEADER + hi_le16(header + 26) + hi_le16(header + 28);
  if (*data > zip->directory || m->packed > zip->directory - *data) {
    return fail_member(zip, m, HELIO_BAD_DATA, "its %" PRIu64 " bytes from byte %" PRIu64 " on go beyond byte %" PRIu64,
                       m->packed, *data, zip->directory);
  }
  bool same = hi_le16(header + 8) == m->method && hi_le16(header + 26) == length &&
              memcmp(header + HEADER, m->name, length) == 0;
  return same ? HELIO_OK
              : hi_file_fail(file, HELIO_BAD_DATA, m->header, "this is not the header of \"%.100s\"", m->name);
}

static helio_status check_contents(const hi_zip *zip, const hi_zip_member *m, const hi_file *unpacked) {
  if (unpacked->size != m->size) {
    return fail_member(zip, m, HELIO_BAD_DATA, "it unpacks to %s than the %" PRIu64 " bytes that are promised",
                       unpacked->size < m->size ? "less" : "more", m->size);
  }
  uint32_t crc = (uint32_t)crc32_z(0, unpacked->bytes, unpacked->size);
  if (crc == m->crc) return HELIO_OK;
  return fail_member(zip, m, HELIO_BAD_DATA, "its sum (CRC-32) is %08" PRIX32 ", not %08" PRIX32, crc, m->crc);
}

hi_file *hi_zip_unpack(const hi_zip *zip, const hi_zip_member *m) {
  char name[120];
  uint64_t data = 0;
  if (check_kind(zip, m) || find_data(zip, m, &data)) return NULL;
  snprintf(name, sizeof name, "member %.100s", m->name);
  hi_file *file = m->method == STORED
                      ? hi_file_part(zip->file, name, data, m->size)
                      : hi_inflate(zip->file, &(hi_packed){.offset = data, .bytes = m->packed}, m->size, name);
  if (!file || !check_contents(zip, m, file)) return file;
  hi_drop(file);
  return NULL;
}
