/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file, mapped and read-only; or of a file inside a file. Whoever cuts a mapped file short ends the
 * process (SIGBUS), as with every program that maps files. */
#ifndef HI_FILE_H
#define HI_FILE_H

#include "tensor/object.h"

typedef struct hi_file {
  hi_object object; /* ended with hi_drop(); arrays hold the file whose bytes they show */
  char *name;       /* for messages: "set.npz", "set.npz, member x.npy" */
  const unsigned char *bytes;
  size_t size;
  void *heap;            /* what is freed in the end, NULL: nothing */
  size_t mapped;         /* bytes that are unmapped in the end, 0: none */
  struct hi_file *whole; /* in which the bytes lie, NULL: in no other */
} hi_file;

/* Each returns a file whose one reference is the caller's, NULL with the error set. */
hi_file *hi_file_open(const char *path);
hi_file *hi_file_copy(const char *name, const void *bytes, size_t size);

/* Takes over `heap`, also on failure. The name is `whole`'s and `part`, which may be NULL. */
hi_file *hi_file_of_heap(const hi_file *whole, const char *part, void *heap, size_t size);
hi_file *hi_file_part(hi_file *whole, const char *part, size_t offset, size_t size);

/* "NAME, byte N: CAUSE". Returns the status. */
helio_status hi_file_fail(const hi_file *file, helio_status status, uint64_t byte, const char *format, ...)
    HELIO_PRINTF(4, 5);

/* hi_fail() with what stands in a file, which must not move the cursor of somebody's terminal. */
helio_status hi_fail_plainly(helio_status status, const char *format, ...) HELIO_PRINTF(2, 3);

/* Whether `count` bytes lie there. */
static inline bool hi_file_has(const hi_file *file, uint64_t offset, uint64_t count) {
  return offset <= file->size && count <= file->size - offset;
}

/* Numbers, little-endian and big-endian. */
static inline uint32_t hi_le16(const unsigned char *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static inline uint32_t hi_le32(const unsigned char *at) {
  return hi_le16(at) | hi_le16(at + 2) << 16;
}

static inline uint64_t hi_le64(const unsigned char *at) {
  return (uint64_t)hi_le32(at) | (uint64_t)hi_le32(at + 4) << 32;
}

static inline uint32_t hi_be32(const unsigned char *at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | (uint32_t)at[3];
}

#endif
