/* SPDX-License-Identifier: Apache-2.0 */
#include "data/pickle.h"
#include "data/sequences.h"
#include "fuzz.h"

static const void *read(hi_file *file) {
  helio_sequences *sequences = hi_unpickle(file, 0, 3);
  if (sequences) helio_sequences_largest(sequences);
  return sequences;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return fuzz_reader(data, size, read);
}
