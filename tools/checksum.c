/* SPDX-License-Identifier: Apache-2.0 */
#include "checksum.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "lazy_libraries.h"

enum { PIECE = 1 << 16 };

/* Reads up to PIECE bytes from wherever they come; 0: the end, −1: an error. */
typedef int (*read_function)(void *from, void *to);

static int read_plainly(void *from, void *to) {
  ssize_t got;
  do {
    got = read(*(int *)from, to, PIECE);
  } while (got < 0 && errno == EINTR);
  return (int)got;
}

/* What is inside a file that is packed with gzip. */
typedef struct packed {
  int descriptor;
  z_stream stream;
  bool ended; /* and the sum that gzip writes there is right */
  unsigned char piece[PIECE];
} packed;

static int read_unpacked(void *from, void *to) {
  packed *file = from;
  z_stream *stream = &file->stream;
  stream->next_out = to;
  stream->avail_out = PIECE;
  while (stream->avail_out > 0 && !file->ended) {
    if (stream->avail_in == 0) {
      int got = read_plainly(&file->descriptor, file->piece);
      if (got <= 0) return -1; /* it ends inside */
      stream->next_in = file->piece;
      stream->avail_in = (unsigned)got;
    }
    int answer = inflate(stream, Z_NO_FLUSH);
    file->ended = answer == Z_STREAM_END;
    if (answer != Z_OK && !file->ended) return -1;
  }
  return (int)(PIECE - stream->avail_out);
}

/* Ends at more than `most` bytes too: no sum that is known has so many. */
static bool compute(read_function read_piece, void *from, uint64_t most, uint64_t *bytes, char text[CHECKSUM_TEXT]) {
  unsigned char *piece = malloc(PIECE), digest[EVP_MAX_MD_SIZE];
  unsigned digest_bytes = 0;
  EVP_MD_CTX *context = lazy.EVP_MD_CTX_new();
  bool good = piece && context && lazy.EVP_DigestInit_ex(context, lazy.EVP_sha256(), NULL);
  int got = 0;
  if (!good) errno = ENOMEM;
  for (*bytes = 0; good && *bytes <= most && (got = read_piece(from, piece)) > 0; *bytes += (uint64_t)got) {
    good = lazy.EVP_DigestUpdate(context, piece, (size_t)got);
  }
  good = good && got >= 0 && lazy.EVP_DigestFinal_ex(context, digest, &digest_bytes);
  for (unsigned i = 0; good && i < digest_bytes; i++) snprintf(text + 2 * (size_t)i, 3, "%02x", digest[i]);
  lazy.EVP_MD_CTX_free(context);
  free(piece);
  return good;
}

static bool is_known(const data_file *expected, uint64_t bytes, const char *text) {
  if (bytes == expected->bytes && strcmp(text, expected->sha256) == 0) return true;
  return expected->other_sha256 && bytes == expected->other_bytes && strcmp(text, expected->other_sha256) == 0;
}

/* Is it packed with gzip, with known data inside and nothing behind them? What cannot be unpacked is not. */
static bool is_known_inside(int descriptor, const data_file *expected) {
  unsigned char mark[2];
  char text[CHECKSUM_TEXT];
  uint64_t bytes;
  if (!expected->other_sha256 || pread(descriptor, mark, sizeof mark, 0) != sizeof mark) return false;
  if (mark[0] != 0x1F || mark[1] != 0x8B || lseek(descriptor, 0, SEEK_SET) != 0) return false;
  packed *file = calloc(1, sizeof *file);
  if (!file || inflateInit2(&file->stream, MAX_WBITS + 16) != Z_OK) { /* + 16: gzip's header and end */
    free(file);
    return false;
  }
  file->descriptor = descriptor;
  bool known = compute(read_unpacked, file, expected->other_bytes, &bytes, text) && is_known(expected, bytes, text);
  known = known && file->ended && file->stream.avail_in == 0 && read_plainly(&descriptor, file->piece) == 0;
  inflateEnd(&file->stream);
  free(file);
  return known;
}

bool checksum_verify(int descriptor, const data_file *expected, checksum *result) {
  *result = (checksum){.good = false};
  if (lseek(descriptor, 0, SEEK_SET) != 0) return false;
  if (!compute(read_plainly, &descriptor, UINT64_MAX, &result->bytes, result->sha256)) return false;
  result->good = is_known(expected, result->bytes, result->sha256) || is_known_inside(descriptor, expected);
  return true;
}

bool checksum_is_good(const char *path, const data_file *expected, checksum *result) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return false;
  bool good = checksum_verify(descriptor, expected, result) && result->good;
  close(descriptor);
  return good;
}
