/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 of files, and whether they are what they should be. */
#ifndef CHECKSUM_H
#define CHECKSUM_H

#include <stdbool.h>
#include <stdint.h>

#include "data_sources.h"

enum { CHECKSUM_TEXT = 65 };

typedef struct checksum {
  bool good; /* one of the two files that are known: as the source has it, or packed in another way */
  uint64_t bytes;
  char sha256[CHECKSUM_TEXT]; /* of the whole file as it is */
} checksum;

/* Reads a file from its begin. False, with errno, if it could not be read. The place in the file changes. The libraries
 * of lazy_libraries.h must be open. */
bool checksum_verify(int descriptor, const data_file *expected, checksum *result);

/* The same for a file by its path: is it there, and what it should be? */
bool checksum_is_good(const char *path, const data_file *expected, checksum *result);

#endif
