/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader and the writer of safetensors files share: numbers and names of the format, lists and pairs. For
 * those two files alone. */
#ifndef HI_SAFETENSORS_FORMAT_H
#define HI_SAFETENSORS_FORMAT_H

#include <helio/helio.h>
#include <stdbool.h>
#include <stdlib.h>

#include "runtime/error.h"

/* The header's limit is the format's own; data go through memory in pieces. */
enum { LENGTH_BYTES = 8, LARGEST_HEADER = 100000000, PIECE = 1 << 20 };

#define METADATA_KEY "__metadata__"

/* zlib's crc32() of the whole file, in which its own digits are taken for zeros: a pair of the metadata, because
 * readers refuse bytes that belong to no tensor. The pair stands first in what we write, so the digits have a fixed
 * place. They are small letters only: every other byte would be damage that the sum does not see. */
#define CHECKSUM_KEY  "helio_crc32"
#define CHECKSUM_ZERO "0x00000000"
enum { CHECKSUM_DIGITS = 8 };

/* "F32", in the words of the format. */
const char *hi_safetensors_type_name(helio_type type);

typedef struct pair {
  char *key, *value;
} pair;

/* The array with room for one more behind `count` items: twice as much whenever that is a power of two. NULL, and the
 * array is as it was, if memory is out. */
static inline void *grown(void *items, int count, size_t size) {
  return count & (count - 1) ? items : realloc(items, (count ? 2 * (size_t)count : 1) * size);
}

/* Takes the pair, whatever comes of it. False if memory is out, which a NULL in the pair says too. */
static inline bool append_pair(pair **pairs, int *count, pair added) {
  pair *larger = added.key && added.value ? grown(*pairs, *count, sizeof added) : NULL;
  if (larger) {
    *pairs = larger;
    larger[(*count)++] = added;
  } else {
    free(added.key);
    free(added.value);
  }
  return larger;
}

static inline void free_pairs(pair *pairs, int count) {
  for (int i = 0; i < count; i++) {
    free(pairs[i].key);
    free(pairs[i].value);
  }
  free(pairs);
}

static inline helio_status no_memory(const char *path) {
  return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for the list of its tensors", path);
}

#endif
