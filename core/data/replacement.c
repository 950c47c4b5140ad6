/* SPDX-License-Identifier: Apache-2.0 */
#include "data/replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST_NAME = 200 /* in a temporary one */ };

static helio_status fail(hi_replacement *new, helio_status status, const char *what) {
  snprintf(new->problem, sizeof new->problem, "%s%s", new->path, what);
  return status;
}

const char *hi_write_advice(int cause) {
  bool full = cause == ENOSPC || cause == EDQUOT || cause == EFBIG;
  return full ? "; make room there, or name another place" : "";
}

static helio_status fail_file(hi_replacement *new, const char *doing) {
  int cause = errno;
  snprintf(new->problem, sizeof new->problem, "%s: %s failed: %s%s", new->path, doing, strerror(cause),
           hi_write_advice(cause));
  return HELIO_IO_FAILURE;
}

/* A signal of the program is no failure. */
static int bring_to_disk(int descriptor) {
  int result;
  do {
    result = fsync(descriptor);
  } while (result != 0 && errno == EINTR);
  return result;
}

int hi_bring_folder_to_disk(int descriptor) {
  int result = bring_to_disk(descriptor);
  return result != 0 && errno == EINVAL ? 0 : result;
}

/* ---- making ---- */

static helio_status open_folder(hi_replacement *new) {
  new->target = realpath(new->path, NULL);
  /* If it is not there yet; other causes will come up again. */
  if (!new->target && errno != ENOMEM) new->target = strdup(new->path);
  if (!new->target) return fail(new, HELIO_OUT_OF_MEMORY, ": no memory for its name");
  char *slash = strrchr(new->target, '/');
  new->name = slash ? slash + 1 : new->target;
  const char *folder = !slash ? "." : slash == new->target ? "/" : new->target;
  if (slash) *slash = 0;
  new->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return new->folder < 0 ? fail_file(new, "opening the folder") : HELIO_OK;
}

/* Who may read the old file may read the new one, and nobody else. Whoever protected it against writing did not mean it
 * to make way for another. */
static helio_status look_at_old(hi_replacement *new) {
  struct stat old;
  new->mode = 0666;
  if (!*new->name) return fail(new, HELIO_INVALID_ARGUMENT, " is not the name of a file");
  if (fstatat(new->folder, new->name, &old, AT_SYMLINK_NOFOLLOW) != 0 || S_ISLNK(old.st_mode)) return HELIO_OK;
  if (!S_ISREG(old.st_mode)) return fail(new, HELIO_INVALID_ARGUMENT, " is not a regular file");
  if (faccessat(new->folder, new->name, W_OK, AT_EACCESS) != 0) return fail_file(new, "replacing it");
  new->mode = old.st_mode & 0777;
  new->replaces = true;
  return HELIO_OK;
}

/* The lock lives until both descriptors are closed: one of them is, to hear of errors, before the file has its place.
 * Where there are no locks, hi_replacement_clean() goes by the time alone. */
static void lock_temporary(hi_replacement *new) {
  new->lock = fcntl(new->descriptor, F_DUPFD_CLOEXEC, 0);
  if (new->lock >= 0) flock(new->lock, LOCK_EX | LOCK_NB);
}

/* Not mkstemp(), which would take a new file from all but its owner. */
static helio_status make_temporary(hi_replacement *new) {
  static atomic_uint counter;
  do {
    snprintf(new->temporary, sizeof new->temporary, ".%.*s.%ld-%u.tmp", LONGEST_NAME, new->name, (long)getpid(),
             atomic_fetch_add(&counter, 1));
    new->descriptor = openat(new->folder, new->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, new->mode);
  } while (new->descriptor < 0 && errno == EEXIST);
  if (new->descriptor < 0) {
    new->temporary[0] = 0;
    return fail_file(new, "making a file in the folder");
  }
  lock_temporary(new);
  if (!new->replaces || fchmod(new->descriptor, new->mode) == 0) return HELIO_OK;
  return fail_file(new, "setting the permissions");
}

helio_status hi_replacement_begin(hi_replacement *new, const char *path) {
  *new = (hi_replacement){.path = path, .folder = -1, .descriptor = -1, .lock = -1};
  helio_status status = open_folder(new);
  if (!status) status = look_at_old(new);
  return status ? status : make_temporary(new);
}

/* ---- writing ---- */

helio_status hi_replacement_write(hi_replacement *new, uint64_t offset, const void *data, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    uint64_t left = bytes - done;
    ssize_t put =
        pwrite(new->descriptor, (const char *)data + done, left < INT_MAX ? left : INT_MAX, (off_t)(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put == 0) errno = ENOSPC; /* nothing says that more would be written the next time */
    if (put <= 0) return fail_file(new, "writing");
    done += (uint64_t)put;
  }
  return HELIO_OK;
}

/* The data must be on disk before the name is: else a crash between the two would leave an empty file. */
helio_status hi_replacement_finish(hi_replacement *new) {
  if (bring_to_disk(new->descriptor) != 0) return fail_file(new, "bringing it to disk");
  int closed = close(new->descriptor); /* some file systems tell of a full disk only here */
  new->descriptor = -1;
  if (closed != 0 && errno != EINTR) return fail_file(new, "closing");
  if (renameat(new->folder, new->temporary, new->folder, new->name) != 0) return fail_file(new, "renaming");
  new->temporary[0] = 0;
  if (hi_bring_folder_to_disk(new->folder) == 0) return HELIO_OK;
  return fail_file(new, "the file was replaced, but bringing its folder to disk");
}

void hi_replacement_end(hi_replacement *new) {
  if (new->temporary[0]) unlinkat(new->folder, new->temporary, 0);
  if (new->descriptor >= 0) close(new->descriptor);
  if (new->lock >= 0) close(new->lock);
  if (new->folder >= 0) close(new->folder);
  free(new->target);
}
