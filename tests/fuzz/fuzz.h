/* SPDX-License-Identifier: Apache-2.0 */
/* What the libFuzzer targets share. tests/long/fuzz.sh builds and runs them. */
#ifndef HELIO_FUZZ_H
#define HELIO_FUZZ_H

#include <stdlib.h>
#include <string.h>

#include "data/readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A reader returns something or sets an error that says where the problem is; never both, never neither. */
static inline void check_outcome(const void *result, const char *name) {
  helio_error error;
  helio_status status = helio_error_take(&error);
  if ((result != NULL) == (status != HELIO_OK)) abort();
  if (status && !strstr(error.message, name)) abort();
}

/* The input as a file in memory of exactly its size. */
static inline int fuzz_reader(const uint8_t *data, size_t size, const void *(*read)(hi_file *file)) {
  hi_file *file = hi_file_copy("input", data, size);
  if (!file) abort();
  HELIO_POOL check_outcome(read(file), "input");
  hi_drop(file);
  return 0;
}

/* Every byte of an array can be read: a sanitizer sees it where one cannot. */
static inline const void *touch(const helio_array *array) {
  static volatile unsigned char sum;
  const unsigned char *bytes = helio_array_data(array);
  for (size_t i = 0; array && i < hi_array_bytes(array); i++) sum ^= bytes[i];
  return array;
}

#endif
