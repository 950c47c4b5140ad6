/* SPDX-License-Identifier: Apache-2.0 */
/* Where plugins are looked for: the folders of HELIO_PLUGIN_PATH, then the installed folder or, when the library runs
 * from its build tree, the folders of that tree. Never the working directory. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
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

static void append_matches(list *found, const char *pattern) {
  glob_t matches;
  if (glob(pattern, 0, NULL, &matches) != 0) return; /* sorted by name: the same order on every machine */
  for (size_t i = 0; i < matches.gl_pathc; i++) append(found, matches.gl_pathv[i]);
  globfree(&matches);
}

/* A folder's name is not a pattern, even if it has brackets in it. */
static void append_folder(list *found, const char *folder) {
  char pattern[2200];
  size_t length = 0;
  for (const char *at = folder; *at && length < sizeof pattern - 8; at++) {
    if (strchr("*?[]\\", *at)) pattern[length++] = '\\';
    pattern[length++] = *at;
  }
  snprintf(pattern + length, sizeof pattern - length, "/*.so");
  append_matches(found, pattern);
}

/* glob() finds nothing in a folder that cannot be read, and does not say so. */
static bool readable(const char *place, const struct stat *about) {
  if (!S_ISDIR(about->st_mode)) return true; /* dlopen() will tell */
  DIR *folder = opendir(place);
  if (folder) closedir(folder);
  return folder;
}

static void append_place(list *found, const char *place) {
  struct stat about;
  if (stat(place, &about) != 0 || !readable(place, &about)) {
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
  char top[1024], pattern[1100];
  if (build_tree(top, sizeof top)) {
    snprintf(pattern, sizeof pattern, "%s/backends/*/.libs/*.so", top);
    append_matches(&found, pattern);
    snprintf(pattern, sizeof pattern, "%s/collectives/*/.libs/*.so", top);
    append_matches(&found, pattern);
  } else {
    append_folder(&found, HELIO_PLUGIN_DIR);
  }
  return in_one_piece(&found, count);
}
