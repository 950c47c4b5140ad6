/* SPDX-License-Identifier: Apache-2.0 */
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct new_file {
  const char *path; /* as the caller knows it, for messages */
  char *target;     /* without symbolic links */
  char *temporary;  /* NULL: not made yet, or it has its place */
  int descriptor;
  bool replaces; /* a file that is there */
  mode_t mode;
} new_file;

static char failure[PATH_MAX + 200];

static bool fail(const new_file *self, const char *what) {
  snprintf(failure, sizeof failure, "%s: %s", self->path, what);
  return false;
}

static bool fail_doing(const new_file *self, const char *doing) {
  snprintf(failure, sizeof failure, "%s: %s failed: %s", self->path, doing, strerror(errno));
  return false;
}

/* ---- making ---- */

static bool find_target(new_file *self) {
  struct stat old;
  self->target = realpath(self->path, NULL);
  self->replaces = self->target != NULL;
  /* If it is not there yet; other causes come up again. */
  if (!self->target && errno != ENOMEM) self->target = strdup(self->path);
  if (!self->target) return fail(self, "no memory for its name");
  if (!self->replaces) return true;
  if (stat(self->target, &old) != 0) return fail_doing(self, "looking at the old file");
  self->mode = old.st_mode & 0777;
  return S_ISREG(old.st_mode) || fail(self, "there is something that is not a regular file");
}

static bool make_temporary(new_file *self) {
  const char *slash = strrchr(self->target, '/');
  int folder = slash ? (int)(slash + 1 - self->target) : 0;
  for (int number = 0; self->descriptor < 0; number++) {
    free(self->temporary);
    if (asprintf(&self->temporary, "%.*s.helio-%ld-%d.tmp", folder, self->target, (long)getpid(), number) < 0) {
      self->temporary = NULL;
      return fail(self, "no memory for its name");
    }
    self->descriptor = open(self->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (self->descriptor < 0 && errno != EEXIST) {
      free(self->temporary);
      self->temporary = NULL;
      return fail_doing(self, "making a file in the folder");
    }
  }
  if (!self->replaces || fchmod(self->descriptor, self->mode) == 0) return true;
  return fail_doing(self, "setting the permissions");
}

static bool begin(new_file *self, const char *path) {
  *self = (new_file){.path = path, .descriptor = -1};
  return find_target(self) && make_temporary(self);
}

/* ---- writing ---- */

static bool put(const new_file *self, const char *data, size_t bytes) {
  while (bytes > 0) {
    ssize_t done = write(self->descriptor, data, bytes < INT_MAX ? bytes : INT_MAX);
    if (done < 0 && errno == EINTR) continue;
    if (done == 0) errno = ENOSPC; /* nothing says that more would be written the next time */
    if (done <= 0) return fail_doing(self, "writing");
    data += done;
    bytes -= (size_t)done;
  }
  return true;
}

/* The data must be on disk before the name is: else a crash between the two would leave an empty file. */
static bool finish(new_file *self) {
  int result;
  do {
    result = fsync(self->descriptor);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return fail_doing(self, "bringing it to disk");
  result = close(self->descriptor); /* some file systems tell of a full disk only here */
  self->descriptor = -1;
  if (result != 0 && errno != EINTR) return fail_doing(self, "closing");
  if (rename(self->temporary, self->target) != 0) return fail_doing(self, "renaming");
  free(self->temporary);
  self->temporary = NULL;
  return true;
}

/* What was not finished is gone. */
static void end(new_file *self) {
  if (self->descriptor >= 0) close(self->descriptor);
  if (self->temporary) unlink(self->temporary);
  free(self->temporary);
  free(self->target);
}

const char *whole_file_write(const char *path, const char *data, size_t bytes) {
  new_file file;
  bool good = begin(&file, path) && put(&file, data, bytes) && finish(&file);
  end(&file);
  return good ? NULL : failure;
}

const char *whole_file_check(const char *path) {
  new_file file;
  bool good = begin(&file, path);
  end(&file);
  return good ? NULL : failure;
}
