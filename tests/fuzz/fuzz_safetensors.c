/* SPDX-License-Identifier: Apache-2.0 */
/* By path, because this reader takes no other: the input is a file in memory. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/safetensors.h"
#include "fuzz.h"

/* Where it may be opened at all, a checksum decides; one without a checksum opens either way. */
static void check_verified(const char *path, bool opens) {
  hi_safetensors *file = hi_safetensors_open_verified(path);
  if (file && !opens) abort();
  if (!file && opens && !strstr(helio_error_message(), "the file is damaged: its checksum is 0x")) abort();
  check_outcome(file, path);
  hi_safetensors_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char path[40];
  static int descriptor = -1;
  if (descriptor < 0) descriptor = memfd_create("input", 0);
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  if (ftruncate(descriptor, 0) || pwrite(descriptor, data, size, 0) != (ssize_t)size) abort();
  HELIO_POOL {
    char **names = helio_safetensors_names(path);
    check_outcome(names, path);
    check_verified(path, names);
    for (int i = 0; names && names[i] && i < 20; i++) {
      const helio_array *array = helio_read_safetensors(path, names[i]);
      check_outcome(touch(array), path);
    }
    free(names);
  }
  return 0;
}
