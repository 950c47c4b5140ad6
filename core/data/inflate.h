/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed data from files that may be hostile, unpacked by zlib. */
#ifndef HI_INFLATE_H
#define HI_INFLATE_H

#include "data/file.h"

/* Whether so many bytes can come out of so many compressed ones: none becomes more than 1032. */
static inline bool hi_can_inflate(uint64_t packed, uint64_t size) {
  enum { MOST_OF_A_BYTE = 1032 };
  return size / MOST_OF_A_BYTE + (size % MOST_OF_A_BYTE != 0) <= packed;
}

typedef struct hi_packed {
  uint64_t offset, bytes; /* where the compressed data lie in the file */
  bool gzip;              /* else deflate without a frame */
} hi_packed;

/* The data as a file of their own in memory, which grows with what comes out. Stops behind `limit` bytes: a result
 * longer than that, by one byte, says that there is more. Checks that nothing of the compressed data is left over,
 * unless stopped. NULL with the error set. */
hi_file *hi_inflate(const hi_file *file, const hi_packed *packed, uint64_t limit, const char *name);

#endif
