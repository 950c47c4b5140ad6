/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

static const void *read(hi_file *file) {
  return touch(hi_read_idx(file));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return fuzz_reader(data, size, read);
}
