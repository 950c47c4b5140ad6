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

void gpu_library_places(const char *named, const char *usual, gpu_places *places) {
  *places = (gpu_places){.named = ""};
  if (named != NULL && named[0] != '\0') {
    snprintf(places->named, sizeof places->named, "%s", named);
    return;
  }
  for (const char *folder = usual; *folder != '\0'; folder += strspn(folder, ":")) {
    const char *rest = folder, *value = folder[0] == '$' ? value_of(folder, &rest) : "";
    size_t length = strlen(places->usual), room = sizeof places->usual - length;
    if (value != NULL) snprintf(places->usual + length, room, "%s%.*s:", value, (int)strcspn(rest, ":"), rest);
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

/* In any of the folders, which are separated by ':'. */
static void *open_in(const char *folders, const char *name, char *reason, size_t size) {
  void *library = NULL;
  for (const char *folder = folders; library == NULL && *folder != '\0'; folder += strspn(folder, ":")) {
    char path[PATH_MAX];
    int span = (int)strcspn(folder, ":"), length = snprintf(path, sizeof path, "%.*s/%s", span, folder, name);
    if (span > 0 && (size_t)length < sizeof path) library = open_file(path, reason, size);
    folder += span;
  }
  return library;
}

void *gpu_library_open(const char *const *names, const gpu_places *places, char *reason, size_t size) {
  static const gpu_places none;
  void *library = NULL;
  if (places == NULL) places = &none;
  for (const char *const *name = names; library == NULL && *name != NULL; name++) {
    library = open_in(places->named, *name, reason, size);
  }
  for (const char *const *name = names; library == NULL && *name != NULL; name++) {
    library = open_file(*name, reason, size);
    if (library == NULL) library = open_in(places->usual, *name, reason, size);
  }
  return library;
}

void *gpu_library_opened(const char *const *names) {
  void *library = NULL;
  for (; library == NULL && *names != NULL; names++) library = dlopen(*names, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  return library;
}

/* Whether the library's own search path has its folder: what it opens by a plain name is found beside it then. */
static bool searches(void *library, const char *folder) {
  Dl_serinfo size;
  if (dlinfo(library, RTLD_DI_SERINFOSIZE, &size) != 0) return false;
  Dl_serinfo *list = malloc(size.dls_size);
  bool found = false;
  if (list != NULL && dlinfo(library, RTLD_DI_SERINFOSIZE, list) == 0 && dlinfo(library, RTLD_DI_SERINFO, list) == 0) {
    for (unsigned i = 0; i < list->dls_cnt && !found; i++) {
      found = strcmp(list->dls_serpath[i].dls_name, folder) == 0;
    }
  }
  free(list);
  return found;
}

/* The folder that the library lies in. False: it is not known. */
static bool find_folder(void *library, char *folder, size_t size) {
  gpu_library_path(library, folder, size);
  char *slash = strrchr(folder, '/');
  if (slash != NULL) *slash = '\0';
  return slash != NULL;
}

bool gpu_library_open_parts(void *library, const char *const *parts, char *reason, size_t size) {
  char folder[PATH_MAX];
  bool known = find_folder(library, folder, sizeof folder), all = true;
  for (; *parts != NULL; parts++) {
    void *part = known ? open_in(folder, *parts, reason, size) : NULL;
    if (part == NULL) part = open_file(*parts, reason, size);
    all = all && part != NULL;
  }
  return all;
}

void gpu_library_open_beside(void *library, const char *const *parts) {
  char folder[PATH_MAX], ignored[PATH_MAX];
  if (!find_folder(library, folder, sizeof folder) || searches(library, folder)) return;
  for (; *parts != NULL; parts++) {
    ignored[0] = '\0';
    (void)open_in(folder, *parts, ignored, sizeof ignored);
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
