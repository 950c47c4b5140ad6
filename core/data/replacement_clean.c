/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "data/replacement.h"
#include "runtime/error.h"

enum { ABANDONED_SECONDS = 600 };

/* Cuts the last part off, which begins with `before` and has a digit or more behind it. */
static bool cut_number(char *text, char before) {
  char *mark = strrchr(text, before);
  if (!mark || !mark[1] || mark[1 + strspn(mark + 1, "0123456789")]) return false;
  *mark = 0;
  return true;
}

/* Whether the name is .NAME.PID-NUMBER.tmp of a NAME that is `ours`. */
static bool is_temporary(const char *name, bool (*ours)(const char *name)) {
  static const char ending[] = ".tmp";
  char copy[NAME_MAX + 1];
  size_t length = strlen(name);
  if (name[0] != '.' || length < sizeof ending || length >= sizeof copy) return false;
  length -= sizeof ending - 1;
  if (strcmp(name + length, ending) != 0) return false;
  memcpy(copy, name, length);
  copy[length] = 0;
  return cut_number(copy, '-') && cut_number(copy, '.') && ours(copy + 1);
}

/* A shared lock, because some file systems give no other to those who only read. */
static bool is_abandoned(int descriptor) {
  struct stat about;
  if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) return false;
  if (time(NULL) - about.st_mtime <= ABANDONED_SECONDS) return false;
  return flock(descriptor, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/* The lock is held meanwhile. Another process may be removing it too. */
static helio_status remove_if_abandoned(const char *folder, int place, const char *name) {
  int descriptor = openat(place, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) return HELIO_OK; /* somebody else's, and for them to remove */
  bool left = is_abandoned(descriptor) && unlinkat(place, name, 0) != 0 && errno != ENOENT;
  helio_status status = HELIO_OK;
  if (left) status = hi_fail(HELIO_IO_FAILURE, "%s/%s cannot be removed: %s", folder, name, strerror(errno));
  close(descriptor);
  return status;
}

helio_status hi_replacement_clean(const char *folder, bool (*ours)(const char *name)) {
  const struct dirent *entry;
  helio_status first = HELIO_OK;
  DIR *list = opendir(folder);
  while (list && (errno = 0, entry = readdir(list))) {
    if (!is_temporary(entry->d_name, ours)) continue;
    helio_status status = remove_if_abandoned(folder, dirfd(list), entry->d_name);
    if (!first) first = status;
  }
  if (errno) first = hi_fail(HELIO_IO_FAILURE, "%s cannot be looked at: %s", folder, strerror(errno));
  if (list) closedir(list);
  return first;
}
