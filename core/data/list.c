/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "data/readers.h"
#include "runtime/error.h"

char **hi_list_of(const char *const *texts, int count) {
  size_t bytes = ((size_t)count + 1) * sizeof(char *);
  for (int i = 0; i < count; i++) bytes += strlen(texts[i]) + 1;
  char **list = malloc(bytes);
  if (!list) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a list of %d names", count);
    return NULL;
  }
  char *at = (char *)(list + count + 1);
  for (int i = 0; i < count; i++) {
    list[i] = at;
    at = stpcpy(at, texts[i]) + 1;
  }
  list[count] = NULL;
  return list;
}
