/* SPDX-License-Identifier: Apache-2.0 */
/* Where plugins are looked for: the folders of HELIO_PLUGIN_PATH, then the installed folder or, when the library runs
 * from its build tree, the folders of that tree. Never the working directory. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/log.h"
#include "runtime/plugins.h"

typedef struct list {
  char **paths;
  size_t count, bytes; /* of all strings with their ends */
  bool failed;
} list;

static void append(list *found, const char *path) {
  for (size_t i = 0; i < found->count; i++) {
    if (strcmp(found->paths[i], path) == 0) return;
  }
  char **paths = realloc(found->paths, (found->count + 1) * sizeof *paths);
  if (paths) found->paths = paths;
  char *copy = paths ? strdup(path) : NULL;
  if (!copy) {
    found->failed = true;
    return;
  }
  found->paths[found->count++] = copy;
  found->bytes += strlen(path) + 1;
}

/* ---- folders: not by glob(), which frees memory twice when there is no more ---- */

static int is_visible(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

static int is_plugin(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return is_visible(entry) && length > 3 && strcmp(entry->d_name + length - 3, ".so") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

/* Does something with every entry of a folder that passes the filter, in the same order on every machine. A folder that
 * cannot be read has none, but one that is there must not be missed for want of memory. */
static void for_each(list *found, const char *folder, int (*filter)(const struct dirent *entry),
                     void (*function)(list *found, const char *path)) {
  struct dirent **entries;
  int count = scandir(folder, &entries, filter, by_name);
  if (count < 0) {
    if (errno == ENOMEM) found->failed = true;
    return;
  }
  for (int i = 0; i < count; i++) {
    char path[2200];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < sizeof path) function(found, path);
    free(entries[i]);
  }
  free(entries);
}

static void append_folder(list *found, const char *folder) {
  for_each(found, folder, is_plugin, append);
}

/* Where libtool puts what is built in a folder. */
static void append_built(list *found, const char *folder) {
  char libs[2300];
  snprintf(libs, sizeof libs, "%s/.libs", folder);
  append_folder(found, libs);
}

/* for_each() passes in silence over a folder that cannot be read. */
static bool readable(const char *place, const struct stat *about) {
  if (!S_ISDIR(about->st_mode)) return true; /* dlopen() will tell */
  DIR *folder = opendir(place);
  if (folder) closedir(folder);
  return folder;
}

static void append_place(list *found, const char *place) {
  struct stat about;
  if (stat(place, &about) != 0 || !readable(place, &about)) {
    if (errno == ENOMEM) found->failed = true;
    hi_log(HELIO_LOG_WARNING, "HELIO_PLUGIN_PATH names %s, which cannot be looked at: %s", place, strerror(errno));
  } else if (S_ISDIR(about.st_mode)) {
    if (about.st_mode & S_IWOTH && !(about.st_mode & S_ISVTX)) {
      hi_log(HELIO_LOG_WARNING, "everybody may write to the plugin folder %s", place);
    }
    append_folder(found, place);
  } else {
    char relative[1100];
    snprintf(relative, sizeof relative, "./%s", place);
    append(found, strchr(place, '/') ? place : relative); /* dlopen() would look for a bare name in the system */
  }
}

/* Fills the top of the build tree if this library lies in its core/.libs. */
static bool build_tree(char *top, size_t size) {
  Dl_info about;
  if (!dladdr((const void *)(uintptr_t)&helio_version, &about) || !about.dli_fname) return false;
  const char *tail = strstr(about.dli_fname, "/core/.libs/libhelio.so");
  if (!tail || (size_t)(tail - about.dli_fname) >= size) return false;
  memcpy(top, about.dli_fname, (size_t)(tail - about.dli_fname));
  top[tail - about.dli_fname] = 0;
  return true;
}

static char **in_one_piece(list *found, int *count) {
  char **result = NULL;
  if (!found->failed) result = malloc((found->count + 1) * sizeof *result + found->bytes);
  char *text = result ? (char *)(result + found->count + 1) : NULL;
  for (size_t i = 0; i < found->count; i++) {
    if (result) {
      result[i] = text;
      text = stpcpy(text, found->paths[i]) + 1;
    }
    free(found->paths[i]);
  }
  if (result) {
    result[found->count] = NULL;
    *count = (int)found->count;
  }
  free(found->paths);
  return result;
}

char **hi_plugin_search(const char *plugin_path, int *count) {
  list found = {0};
  while (*plugin_path) {
    char place[1024];
    size_t span = strcspn(plugin_path, ":");
    if (span >= sizeof place) {
      hi_log(HELIO_LOG_WARNING, "HELIO_PLUGIN_PATH names %.100s…, which is too long", plugin_path);
    } else if (span > 0) {
      memcpy(place, plugin_path, span);
      place[span] = 0;
      append_place(&found, place);
    }
    plugin_path += span + (plugin_path[span] == ':');
  }
  char top[1024], folder[1100];
  if (build_tree(top, sizeof top)) {
    snprintf(folder, sizeof folder, "%s/backends", top);
    for_each(&found, folder, is_visible, append_built);
    snprintf(folder, sizeof folder, "%s/collectives", top);
    for_each(&found, folder, is_visible, append_built);
  } else {
    append_folder(&found, HELIO_PLUGIN_DIR);
  }
  return in_one_piece(&found, count);
}
