/* SPDX-License-Identifier: Apache-2.0 */
#include "library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The value of the variable "$NAME" that the folder begins with, and where the rest of the folder begins. NULL: it is
 * not set. */
static const char *value_of(const char *folder, const char **rest) {
  char name[64];
  *rest = folder + strcspn(folder, "/:");
  int length = (int)(*rest - folder) - 1;
  snprintf(name, sizeof name, "%.*s", length, folder + 1);
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0' ? value : NULL;
}

void gpu_library_folders(const char *given, const char *usual, char *folders, size_t size) {
  folders[0] = '\0';
  if (given != NULL && given[0] != '\0') {
    snprintf(folders, size, "%s", given);
    return;
  }
  for (const char *folder = usual; *folder != '\0'; folder += strspn(folder, ":")) {
    const char *rest = folder, *value = folder[0] == '$' ? value_of(folder, &rest) : "";
    size_t length = strlen(folders);
    if (value != NULL) snprintf(folders + length, size - length, "%s%.*s:", value, (int)strcspn(rest, ":"), rest);
    folder += strcspn(folder, ":");
  }
}

/* Most names and places that are tried have no file, and to say so of one of them is the least of reasons: that of the
 * first file which is there outweighs it. The loader's word begins with what it did not find or could not use, which is
 * the file itself or something that it needs. */
static void *open_file(const char *file, char *reason, size_t size) {
  static const char there[] = " is there, but cannot be opened: ";
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library != NULL) return library;
  const char *error = dlerror();
  if (error == NULL) error = file;
  bool names_file = strncmp(error, file, strlen(file)) == 0;
  bool is_there = !names_file || (strchr(file, '/') != NULL && access(file, F_OK) == 0);
  if (is_there && strstr(reason, there) == NULL) snprintf(reason, size, "%s%s%s", file, there, error);
  if (reason[0] == '\0') snprintf(reason, size, "%s", error);
  return NULL;
}

/* Any of the names in the folder that begins at `folder` and ends before ':'. */
static void *open_in_folder(const char *const *names, const char *folder, char *reason, size_t size) {
  size_t length = strcspn(folder, ":");
  if (length == 0) return NULL;
  for (; *names != NULL; names++) {
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, *names) >= sizeof path) continue;
    void *library = open_file(path, reason, size);
    if (library != NULL) return library;
  }
  return NULL;
}

void *gpu_library_open(const char *const *names, const char *folders, char *reason, size_t size) {
  for (const char *const *name = names; *name != NULL; name++) {
    void *library = open_file(*name, reason, size);
    if (library != NULL) return library;
  }
  for (const char *folder = folders; *folder != '\0'; folder += strspn(folder, ":")) {
    void *library = open_in_folder(names, folder, reason, size);
    if (library != NULL) return library;
    folder += strcspn(folder, ":");
  }
  return NULL;
}

/* Whether the library's own search path has its folder: what it opens by a plain name is found beside it then. */
static bool searches(void *library, const char *folder, size_t length) {
  Dl_serinfo size;
  if (dlinfo(library, RTLD_DI_SERINFOSIZE, &size) != 0) return false;
  Dl_serinfo *list = malloc(size.dls_size);
  bool found = false;
  if (list != NULL && dlinfo(library, RTLD_DI_SERINFOSIZE, list) == 0 && dlinfo(library, RTLD_DI_SERINFO, list) == 0) {
    for (unsigned i = 0; i < list->dls_cnt && !found; i++) {
      const char *path = list->dls_serpath[i].dls_name;
      found = strlen(path) == length && strncmp(path, folder, length) == 0;
    }
  }
  free(list);
  return found;
}

void gpu_library_open_parts(void *library, const char *const *parts) {
  char path[PATH_MAX], part[PATH_MAX], ignored[PATH_MAX];
  gpu_library_path(library, path, sizeof path);
  const char *slash = strrchr(path, '/');
  if (slash == NULL || searches(library, path, (size_t)(slash - path))) return;
  for (; *parts != NULL; parts++) {
    int length = snprintf(part, sizeof part, "%.*s/%s", (int)(slash - path), path, *parts);
    ignored[0] = '\0';
    if (length > 0 && (size_t)length < sizeof part) (void)open_file(part, ignored, sizeof ignored);
  }
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

bool gpu_library_shares(void *library, const char *name, const void *ours, char *reason, size_t size) {
  const void *theirs = dlsym(library, name);
  if (theirs == NULL || theirs == ours) return true;
  char path[PATH_MAX];
  Dl_info other = {0}, used = {0};
  (void)dladdr(theirs, &other);
  (void)dladdr(ours, &used);
  gpu_library_path(library, path, sizeof path);
  snprintf(reason, size, "%s was built for another runtime, %s, than the one in use, %s", path,
           other.dli_fname == NULL ? "of another version" : other.dli_fname,
           used.dli_fname == NULL ? "of this version" : used.dli_fname);
  return false;
}
