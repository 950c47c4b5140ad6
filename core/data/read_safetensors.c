/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of safetensors files. */
#include <inttypes.h>
#include <stdlib.h>

#include "data/readers.h"
#include "data/safetensors.h"
#include "runtime/error.h"

static helio_status find_layout(const char *path, const char *name, hi_layout *layout) {
  if (!name) return hi_fail(HELIO_INVALID_ARGUMENT, "name is NULL");
  hi_safetensors *file = hi_safetensors_open(path);
  if (!file) return helio_error_pending();
  const hi_safetensors_entry *entry = hi_safetensors_find(file, name);
  if (entry) {
    *layout = (hi_layout){.type = entry->type, .shape = entry->shape, .offset = entry->offset, .followed = true};
  } else {
    hi_fail_plainly(HELIO_INVALID_ARGUMENT, "%s: there is no tensor \"%.100s\" among its %d", path, name,
                    hi_safetensors_count(file));
  }
  hi_safetensors_close(file);
  return helio_error_pending();
}

/* The header is read and checked by one opening of the file, the data are mapped by another; should somebody put
 * another file in its place meanwhile, its bytes are taken for the data, if there are enough. */
helio_array *helio_read_safetensors(const char *path, const char *name) {
  hi_layout layout;
  if (hi_enter_unstarted(__func__) || find_layout(path, name, &layout)) return NULL;
  hi_file *file = hi_file_open(path);
  helio_array *array = file ? hi_layout_read(file, &layout) : NULL;
  hi_drop(file);
  return array;
}

char **helio_safetensors_names(const char *path) {
  hi_safetensors *file = hi_enter_unstarted(__func__) ? NULL : hi_safetensors_open(path);
  if (!file) return NULL;
  int count = hi_safetensors_count(file);
  const char **names = malloc(((size_t)count + 1) * sizeof *names);
  char **list = NULL;
  if (names) {
    for (int i = 0; i < count; i++) names[i] = hi_safetensors_at(file, i)->name;
    list = hi_list_of(names, count);
  } else {
    hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for the names of its tensors", path);
  }
  free(names);
  hi_safetensors_close(file);
  return list;
}
