/* SPDX-License-Identifier: Apache-2.0 */
#include "data/inflate.h"

#include <stdlib.h>
#include <zlib.h>

#include "runtime/error.h"

enum { FIRST_ROOM = 1 << 16, PIECE = 1 << 30 /* zlib counts in unsigned int */, DEFLATE_WINDOW = 15, GZIP = 16 };

typedef struct unpacking {
  const hi_file *file;
  const hi_packed *packed;
  z_stream stream;
  uint64_t taken; /* of the compressed data */
  unsigned char *data;
  size_t size, room, most;
} unpacking;

static helio_status fail(const unpacking *u, helio_status status, const char *cause) {
  return hi_file_fail(u->file, status, u->packed->offset + u->taken, "%s", cause);
}

static helio_status grow(unpacking *u) {
  size_t room = u->room ? u->room * 2 : FIRST_ROOM;
  if (room > u->most) room = u->most;
  unsigned char *larger = realloc(u->data, room);
  if (!larger) return fail(u, HELIO_OUT_OF_MEMORY, "no memory for the unpacked data");
  u->data = larger;
  u->room = room;
  return HELIO_OK;
}

/* One call of inflate(), with as much on both sides as it takes. */
static int step(unpacking *u) {
  uint64_t left = u->packed->bytes - u->taken;
  size_t room = u->room - u->size;
  unsigned given = left < PIECE ? (unsigned)left : PIECE, space = room < PIECE ? (unsigned)room : PIECE;
  u->stream.next_in = (unsigned char *)(uintptr_t)(u->file->bytes + u->packed->offset + u->taken);
  u->stream.avail_in = given;
  u->stream.next_out = u->data + u->size;
  u->stream.avail_out = space;
  int result = inflate(&u->stream, Z_NO_FLUSH);
  u->taken += given - u->stream.avail_in;
  u->size += space - u->stream.avail_out;
  return result;
}

/* A file of gzip may be several, one behind the other, and be filled up with zeros. */
static helio_status end_stream(unpacking *u, bool *done) {
  const unsigned char *rest = u->file->bytes + u->packed->offset + u->taken;
  uint64_t left = u->packed->bytes - u->taken, zeros = 0;
  while (u->packed->gzip && zeros < left && rest[zeros] == 0) zeros++;
  *done = zeros == left;
  if (*done) return HELIO_OK;
  if (!u->packed->gzip || left < 2 || rest[0] != 0x1F || rest[1] != 0x8B) {
    return fail(u, HELIO_BAD_DATA, "the compressed data end here, but more follows");
  }
  inflateReset(&u->stream);
  return HELIO_OK;
}

static helio_status unpack(unpacking *u) {
  helio_status status = HELIO_OK;
  for (bool done = false; !status && !done && u->size < u->most;) {
    if (u->size == u->room && (status = grow(u))) break;
    switch (step(u)) {
    case Z_STREAM_END:
      status = end_stream(u, &done);
      break;
    case Z_OK:
      break;
    case Z_BUF_ERROR: /* there is room, so input is lacking */
      status = fail(u, HELIO_BAD_DATA, "the compressed data end too early");
      break;
    case Z_MEM_ERROR:
      status = fail(u, HELIO_OUT_OF_MEMORY, "no memory for unpacking");
      break;
    default:
      status = fail(u, HELIO_BAD_DATA, u->stream.msg ? u->stream.msg : "the compressed data are damaged");
    }
  }
  return status;
}

hi_file *hi_inflate(const hi_file *file, const hi_packed *packed, uint64_t limit, const char *name) {
  unpacking u = {.file = file, .packed = packed};
  u.most = limit < PTRDIFF_MAX ? (size_t)limit + 1 : PTRDIFF_MAX;
  if (inflateInit2(&u.stream, packed->gzip ? DEFLATE_WINDOW + GZIP : -DEFLATE_WINDOW) != Z_OK) {
    fail(&u, HELIO_OUT_OF_MEMORY, "no memory for unpacking");
    return NULL;
  }
  helio_status status = unpack(&u);
  inflateEnd(&u.stream);
  if (status) {
    free(u.data);
    return NULL;
  }
  void *fitting = realloc(u.data, u.size ? u.size : 1);
  return hi_file_of_heap(file, name, fitting ? fitting : u.data, u.size);
}
