/* SPDX-License-Identifier: Apache-2.0 */
/* Each member of the archive as an array, then as lists. */
#include "fuzz.h"

static const void *read_names(hi_file *file) {
  char **names = hi_npz_names(file);
  for (int i = 0; names && names[i] && i < 8; i++) {
    check_outcome(touch(hi_read_npz(file, names[i])), "input");
    check_outcome(hi_read_npz_sequences(file, names[i]), "input");
  }
  free(names);
  return names ? file : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return fuzz_reader(data, size, read_names);
}
