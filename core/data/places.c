/* SPDX-License-Identifier: Apache-2.0 */
#include "data/places.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/readers.h"
#include "runtime/environment.h"
#include "runtime/error.h"

static const hi_known_set sets[] = {
    {.name = "mnist", .archive = "mnist.npz"},
    {.name = "fashion-mnist", .archive = "fashion_mnist.npz", .package = "dataset-fashion-mnist"},
    {.name = "reuters", .archive = "reuters.npz", .texts = true, .one_part = true},
    {.name = "imdb", .archive = "imdb.npz", .texts = true},
};

static const char *const idx_names[HI_IDX_FILES] = {
    [HI_TRAIN_IMAGES] = "train-images-idx3-ubyte",
    [HI_TRAIN_LABELS] = "train-labels-idx1-ubyte",
    [HI_TEST_IMAGES] = "t10k-images-idx3-ubyte",
    [HI_TEST_LABELS] = "t10k-labels-idx1-ubyte",
};

static const char debian_folder[] = "/usr/share/datasets";

const hi_known_set *hi_known_set_named(const char *name) {
  for (size_t i = 0; name && i < sizeof sets / sizeof sets[0]; i++) {
    if (strcmp(sets[i].name, name) == 0) return &sets[i];
  }
  hi_fail(HELIO_INVALID_ARGUMENT,
          "\"%.100s\" is not a known set of data; there are mnist, fashion-mnist, reuters, imdb", name ? name : "");
  return NULL;
}

char **helio_data_names(void) {
  const char *list[sizeof sets / sizeof sets[0]];
  int count = 0;
  for (; count < (int)(sizeof sets / sizeof sets[0]); count++) list[count] = sets[count].name;
  return hi_enter_unstarted(__func__) ? NULL : hi_list_of(list, count);
}

/* ---- folders ---- */

/* Where files that can be had again lie, by the rules of XDG, whose variables are no settings of ours; "" if the user
 * has no home. */
static void cache_folder(char folder[PATH_MAX]) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  bool given = cache && *cache == '/', homeless = !home || *home != '/';
  snprintf(folder, PATH_MAX, "%s%s%s",
           given      ? cache
           : homeless ? ""
                      : home,
           given || homeless ? "" : "/.cache", given || !homeless ? "/helio" : "");
}

static char **list_folders(const char *folder) {
  char cache[PATH_MAX];
  const char *list[4];
  int count = 0;
  const char *set = hi_environment_text(HI_DATA_DIR);
  cache_folder(cache);
  if (folder && *folder) list[count++] = folder;
  if (*set) list[count++] = set;
  if (*cache) list[count++] = cache;
  list[count++] = debian_folder;
  return hi_list_of(list, count);
}

char **helio_data_folders(const char *folder) {
  return hi_enter(__func__) ? NULL : list_folders(folder);
}

char *helio_data_cache(void) {
  char folder[PATH_MAX];
  if (hi_enter_unstarted(__func__)) return NULL;
  cache_folder(folder);
  char *copy = strdup(folder);
  if (!copy) hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of the cache folder");
  return copy;
}

/* ---- files ---- */

typedef struct paths {
  char at[HI_IDX_FILES][PATH_MAX];
  char missing[PATH_MAX]; /* the file that a set lacks of which others are there; "": there is no such set */
} paths;

static bool exists(char *path, const char *folder, const char *inner, const char *name, const char *ending) {
  int length = snprintf(path, PATH_MAX, "%s/%s%s%s%s", folder, inner, *inner ? "/" : "", name, ending);
  return length < PATH_MAX && access(path, R_OK) == 0;
}

/* How many files the set has in a folder, 0: it is not there, or not whole. `inner` is "" for the folder itself, where
 * IDX files count only if somebody asked for just that folder: all sets of images have files of these names. */
static int look_in(const hi_known_set *set, const char *folder, const char *inner, bool asked_for, paths *found) {
  int there = 0, absent = 0;
  for (int i = 0; i < HI_IDX_FILES && !set->texts && (*inner || asked_for); i++) {
    bool has = exists(found->at[i], folder, inner, idx_names[i], "") ||
               exists(found->at[i], folder, inner, idx_names[i], ".gz");
    there += has;
    if (!has) absent = i;
  }
  if (there == HI_IDX_FILES) return there;
  if (there > 0 && !*found->missing) exists(found->missing, folder, inner, idx_names[absent], "");
  return exists(found->at[0], folder, inner, set->archive, "");
}

/* Who has most of a set looks for what is wrong with the rest, and not for the set. */
static void fail_absent(const hi_known_set *set, char *const *folders, const char *missing) {
  char places[1200] = "", install[200];
  size_t length = 0;
  for (; *folders && length < sizeof places; folders++) {
    length += (size_t)snprintf(places + length, sizeof places - length, "%s%s", length ? ", " : "", *folders);
  }
  if (set->package) {
    snprintf(install, sizeof install, "apt-get install %s, or helio data get %s", set->package, set->name);
  } else {
    snprintf(install, sizeof install,
             "helio data get %s or, where it is in a folder already, helio data get %s --from DIR", set->name,
             set->name);
  }
  if (*missing) {
    hi_fail(HELIO_BAD_DATA,
            "%s is not whole: %.1000s is missing or cannot be read, with .gz as well. To have it: helio data get %s",
            set->name, missing, set->name);
    return;
  }
  hi_fail(HELIO_IO_FAILURE, "%s was not found in %s, nor in a folder %s of these. To have it: %s", set->name, places,
          set->name, install);
}

static char **find(const hi_known_set *set, char *const *folders, bool first_asked_for, paths *found) {
  const char *list[HI_IDX_FILES];
  int count = 0;
  *found->missing = '\0';
  for (int i = 0; folders[i] && count == 0; i++) {
    count = look_in(set, folders[i], set->name, false, found);
    if (count == 0) count = look_in(set, folders[i], "", i == 0 && first_asked_for, found);
  }
  for (int i = 0; i < count; i++) list[i] = found->at[i];
  if (count) return hi_list_of(list, count);
  fail_absent(set, folders, found->missing);
  return NULL;
}

static bool is_file(const char *path) {
  struct stat about;
  return path && *path && stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

char **hi_known_set_files(const hi_known_set *set, const char *folder) {
  if (is_file(folder)) return hi_list_of(&folder, 1);
  char **files = NULL, **folders = list_folders(folder);
  paths *found = malloc(sizeof *found);
  if (!found) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for paths");
  } else if (folders) {
    files = find(set, folders, folder && *folder, found);
  }
  free(found);
  free(folders);
  return files;
}

char **helio_data_files(const char *name, const char *folder) {
  const hi_known_set *set = hi_enter(__func__) ? NULL : hi_known_set_named(name);
  return set ? hi_known_set_files(set, folder) : NULL;
}
