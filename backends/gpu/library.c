/* SPDX-License-Identifier: Apache-2.0 */
#include "library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void *open_file(const char *name, char *reason, size_t size) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL && reason[0] == '\0') {
    const char *error = dlerror();
    snprintf(reason, size, "%s", error == NULL ? "it cannot be opened" : error);
  }
  return library;
}

/* Any of the names in the folder that begins at `folder` and ends before ':'. */
static void *open_in_folder(const char *const *names, const char *folder) {
  size_t length = strcspn(folder, ":");
  if (length == 0) return NULL;
  for (; *names != NULL; names++) {
    char path[PATH_MAX], ignored[PATH_MAX] = "";
    if ((size_t)snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, *names) >= sizeof path) continue;
    void *library = open_file(path, ignored, sizeof ignored);
    if (library != NULL) return library;
  }
  return NULL;
}

void *gpu_library_open(const char *const *names, const char *folders, char *reason, size_t size) {
  char first[512] = "";
  for (const char *const *name = names; *name != NULL; name++) {
    void *library = open_file(*name, first, sizeof first);
    if (library != NULL) return library;
  }
  for (const char *folder = folders; *folder != '\0'; folder += strspn(folder, ":")) {
    void *library = open_in_folder(names, folder);
    if (library != NULL) return library;
    folder += strcspn(folder, ":");
  }
  snprintf(reason, size, "%s", first);
  return NULL;
}

const char *gpu_library_bind(void *library, const gpu_symbol *symbols, size_t count, void *table) {
  for (size_t i = 0; i < count; i++) {
    void *function = dlsym(library, symbols[i].name);
    if (function == NULL) return symbols[i].name;
    memcpy((char *)table + symbols[i].offset, &function, sizeof function);
  }
  return NULL;
}

void gpu_library_path(void *library, char *path, size_t size) {
  struct link_map *map = NULL;
  bool known = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != NULL && map->l_name != NULL;
  snprintf(path, size, "%s", known ? map->l_name : "");
}
