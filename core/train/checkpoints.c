/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoints.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/folder.h"
#include "data/replacement.h"
#include "runtime/error.h"
#include "runtime/log.h"

/* ---- names ---- */

enum { NAME_BYTES = 64 };

static const char prefix[] = "checkpoint-";

static void print_name(char name[NAME_BYTES], int64_t step) {
  snprintf(name, NAME_BYTES, "%s%012" PRId64 ".safetensors", prefix, step);
}

/* −1 if it is not the name of a checkpoint: each step has exactly one. */
static int64_t step_of(const char *name) {
  char expected[NAME_BYTES];
  if (strncmp(name, prefix, sizeof prefix - 1) != 0) return -1;
  long long step = strtoll(name + sizeof prefix - 1, NULL, 10);
  if (step < 0) return -1;
  print_name(expected, step);
  return strcmp(name, expected) == 0 ? step : -1;
}

static bool is_checkpoint(const char *name) {
  return step_of(name) >= 0;
}

/* To be freed; NULL with the error set. */
static char *path_of(const char *folder, int64_t step) {
  char name[NAME_BYTES], *path = NULL;
  print_name(name, step);
  if (asprintf(&path, "%s/%s", folder, name) >= 0) return path;
  hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for the name of a checkpoint", folder);
  return NULL;
}

/* ---- what is in the folder ---- */

typedef struct steps {
  int64_t *at; /* the highest first */
  size_t count, room;
} steps;

static bool append(steps *found, int64_t step) {
  if (found->count == found->room) {
    size_t room = found->room ? 2 * found->room : 16;
    int64_t *at = realloc(found->at, room * sizeof *at);
    if (!at) return false;
    found->at = at;
    found->room = room;
  }
  found->at[found->count++] = step;
  return true;
}

static int descending(const void *left, const void *right) {
  const int64_t *a = left, *b = right;
  return (*a < *b) - (*a > *b);
}

static helio_status fail_list(const char *folder, int cause) {
  return hi_fail(cause == ENOMEM ? HELIO_OUT_OF_MEMORY : HELIO_IO_FAILURE,
                 "%s: the folder of checkpoints cannot be looked at: %s", folder, strerror(cause));
}

/* None if the folder is not there. What was found is to be freed in any case. */
static helio_status list_steps(const char *folder, steps *found) {
  *found = (steps){0};
  DIR *list = opendir(folder);
  if (!list) return errno == ENOENT ? HELIO_OK : fail_list(folder, errno);
  const struct dirent *entry;
  bool enough = true; /* memory */
  while (enough && (errno = 0, entry = readdir(list))) {
    int64_t step = step_of(entry->d_name);
    enough = step < 0 || append(found, step);
  }
  int cause = enough ? errno : ENOMEM;
  closedir(list);
  helio_status status = cause ? fail_list(folder, cause) : HELIO_OK;
  if (!status && found->count) qsort(found->at, found->count, sizeof *found->at, descending);
  return status;
}

/* Only a regular file is a checkpoint: a link might lead anywhere. */
static hi_safetensors *open_whole(const char *path, bool *there) {
  struct stat about;
  *there = true;
  if (lstat(path, &about) == 0 && !S_ISREG(about.st_mode)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%s is not a regular file", path);
    return NULL;
  }
  hi_safetensors *file = hi_safetensors_verified(hi_safetensors_open_if_there(path, there));
  if (!file || hi_safetensors_has_checksum(file)) return file;
  hi_safetensors_close(file);
  hi_fail(HELIO_BAD_DATA, "%s has no checksum, without which a checkpoint is not trusted", path);
  return NULL;
}

/* Damaged ones that the log knows of: each checkpoint that is written meets them again. The oldest are forgotten. */
enum { MOST_TOLD = 32 };
static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;
static char *told[MOST_TOLD];
static unsigned told_next;

static bool was_told(const char *path) {
  bool found = false;
  pthread_mutex_lock(&told_lock);
  for (int i = 0; i < MOST_TOLD && !found; i++) found = told[i] && strcmp(told[i], path) == 0;
  pthread_mutex_unlock(&told_lock);
  return found;
}

/* Without memory it is told again. */
static void note_told(const char *path) {
  pthread_mutex_lock(&told_lock);
  free(told[told_next]);
  told[told_next] = strdup(path);
  told_next = (told_next + 1) % MOST_TOLD;
  pthread_mutex_unlock(&told_lock);
}

typedef enum verdict {
  WHOLE,
  DAMAGED, /* and the log says how, once */
  GONE,    /* another process has removed it meanwhile */
  UNKNOWN, /* an error is pending, for which the file is not to blame */
} verdict;

/* Whoever begins to read is told of all damaged ones, whoever writes of those that nobody was told of yet. */
static void tell_damage(const char *path, const char *cause, bool reading) {
  bool known = was_told(path);
  if (reading || !known) hi_log(HELIO_LOG_WARNING, "a damaged checkpoint is passed over: %s", cause);
  if (!known) note_told(path);
}

/* A whole one is opened, for the caller to close, if `file` is not NULL: for those who read. */
static verdict examine(const char *folder, int64_t step, hi_safetensors **file) {
  bool there = true;
  helio_error error;
  char *path = path_of(folder, step);
  hi_safetensors *opened = path ? open_whole(path, &there) : NULL;
  verdict result = opened ? WHOLE : helio_error_pending() == HELIO_OUT_OF_MEMORY ? UNKNOWN : there ? DAMAGED : GONE;
  if (opened && file) *file = opened;
  if (opened && !file) hi_safetensors_close(opened);
  if (result == GONE || result == DAMAGED) helio_error_take(&error);
  if (result == DAMAGED) tell_damage(path, error.message, file);
  free(path);
  return result;
}

/* ---- reading ---- */

enum { MOST_TRIES = 1000 };

/* GONE: the list is out of date. */
static verdict open_first_whole(const char *folder, const steps *found, hi_safetensors **file, int64_t *step) {
  for (size_t i = 0; i < found->count; i++) {
    verdict result = examine(folder, found->at[i], file);
    if (result == WHOLE) *step = found->at[i];
    if (result != DAMAGED) return result;
  }
  if (found->count) {
    hi_fail(HELIO_BAD_DATA,
            "%s: none of its %zu checkpoints is whole, as the log says; move them elsewhere to begin from the start",
            folder, found->count);
  }
  return UNKNOWN;
}

hi_safetensors *hi_checkpoint_open_last(const char *folder, int64_t *step) {
  hi_safetensors *file = NULL;
  verdict result = GONE;
  if (!folder || !*folder) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the folder of checkpoints is %s", folder ? "empty" : "NULL");
    return NULL;
  }
  for (int i = 0; i < MOST_TRIES && result == GONE; i++) {
    steps found;
    result = list_steps(folder, &found) ? UNKNOWN : open_first_whole(folder, &found, &file, step);
    free(found.at);
  }
  if (result == GONE) hi_fail(HELIO_IO_FAILURE, "%s: its checkpoints are gone whenever they are opened", folder);
  return file;
}

/* ---- writing ---- */

static bool same_file(const char *one, const char *other) {
  struct stat a, b;
  return lstat(one, &a) == 0 && lstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Gives a damaged file a second name, because its first will be the new one's. Whoever did so before and then failed to
 * write has left that name. */
static helio_status set_aside(const char *path) {
  for (int number = 1;; number++) {
    char *aside = NULL, ending[16] = "";
    if (number > 1) snprintf(ending, sizeof ending, "-%d", number);
    if (asprintf(&aside, "%s.damaged%s", path, ending) < 0) {
      return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for another name", path);
    }
    int cause = link(path, aside) == 0 ? 0 : errno;
    bool done = cause == 0 || (cause == EEXIST && same_file(path, aside));
    if (done) hi_log(HELIO_LOG_WARNING, "the damaged checkpoint %s is kept as %s", path, aside);
    free(aside);
    if (done) return HELIO_OK;
    if (cause == EEXIST) continue;
    return hi_fail(HELIO_IO_FAILURE, "%s is damaged, and cannot be kept under another name: %s; move it elsewhere",
                   path, strerror(cause));
  }
}

/* For what stands in the new checkpoint's place. */
static helio_status make_way(const char *folder, int64_t step, const char *path) {
  struct stat about;
  if (lstat(path, &about) != 0) return HELIO_OK; /* not there; other causes will come up again */
  if (!S_ISREG(about.st_mode)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s is not a regular file; move it elsewhere", path);
  }
  switch (examine(folder, step, NULL)) {
  case DAMAGED:
    return set_aside(path);
  case UNKNOWN:
    return helio_error_pending();
  default:
    return HELIO_OK;
  }
}

static helio_status write_file(const char *path, hi_checkpoint_fill *fill, void *user) {
  hi_safetensors_writer *writer = hi_safetensors_begin(path);
  if (!writer) return helio_error_pending();
  helio_status status = fill(user, writer);
  if (!status) return hi_safetensors_finish(writer);
  hi_safetensors_abandon(writer);
  return hi_fail(status, "%s: what belongs into it could not be had", path); /* unless an error is pending */
}

static helio_status remove_one(const char *folder, int64_t step) {
  char *path = path_of(folder, step);
  if (!path) return helio_error_pending();
  helio_status status = HELIO_OK;
  if (unlink(path) != 0 && errno != ENOENT) {
    status = hi_fail(HELIO_IO_FAILURE, "%s cannot be removed: %s", path, strerror(errno));
  }
  free(path);
  return status;
}

/* Whatever other processes do at the same time, the `keep` highest whole ones of all stay: nobody removes one without
 * having seen so many above it. */
static helio_status remove_old(const char *folder, int keep, int64_t written) {
  steps found;
  int whole = 0;
  helio_status status = list_steps(folder, &found);
  for (size_t i = 0; i < found.count && !status; i++) {
    verdict result = found.at[i] == written ? WHOLE : examine(folder, found.at[i], NULL);
    if (result == UNKNOWN) status = helio_error_pending();
    if (result != WHOLE) continue;
    if (whole < keep || found.at[i] == written) {
      whole++;
    } else {
      status = remove_one(folder, found.at[i]);
    }
  }
  free(found.at);
  return status;
}

/* The checkpoint is what counts; a folder that is not in order is no reason to stop. */
static void warn_if(helio_status failed, const char *what) {
  helio_error error;
  if (!failed) return;
  helio_error_take(&error);
  hi_log(HELIO_LOG_WARNING, "%s: %s", what, error.message);
}

static helio_status write_step(const char *folder, int64_t step, hi_checkpoint_fill *fill, void *user) {
  int made = 0;
  char *path = path_of(folder, step);
  helio_status status = path ? hi_folder_make(folder, &made) : helio_error_pending();
  if (!status) {
    warn_if(hi_replacement_clean(folder, is_checkpoint), "what a process has left could not be removed");
    status = make_way(folder, step, path);
  }
  if (!status) status = write_file(path, fill, user);
  if (status) hi_folders_remove_empty(folder, made);
  free(path);
  return status;
}

helio_status hi_checkpoint_write(const char *folder, int64_t step, int keep, hi_checkpoint_fill *fill, void *user) {
  if (!folder || !*folder) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "the folder of checkpoints is %s", folder ? "empty" : "NULL");
  }
  if (step < 0 || keep < 0) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: a checkpoint of step %" PRId64 ", of which %d are kept", folder, step,
                   keep);
  }
  helio_status status = write_step(folder, step, fill, user);
  if (!status && keep) warn_if(remove_old(folder, keep, step), "an old checkpoint could not be removed");
  return status;
}
