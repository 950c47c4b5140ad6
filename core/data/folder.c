/* SPDX-License-Identifier: Apache-2.0 */
#include "data/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/replacement.h"
#include "runtime/error.h"

static bool is_folder(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static helio_status no_memory(const char *path) {
  return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for the name of the folder", path);
}

/* What is in a new folder is only safe if the folder's own name is on disk. */
static helio_status make_one(const char *path) {
  char *above = NULL;
  if (mkdir(path, 0777) != 0) {
    int cause = errno;
    if (is_folder(path)) return HELIO_OK;
    return hi_fail(HELIO_IO_FAILURE, "the folder %s cannot be made: %s", path, strerror(cause));
  }
  if (asprintf(&above, "%s/..", path) < 0) return no_memory(path);
  int descriptor = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  helio_status status = HELIO_OK;
  if (descriptor < 0 || hi_bring_folder_to_disk(descriptor) != 0) {
    status = hi_fail(HELIO_IO_FAILURE, "%s: bringing the new folder to disk failed: %s", path, strerror(errno));
  }
  if (descriptor >= 0) close(descriptor);
  free(above);
  return status;
}

helio_status hi_folder_make(const char *folder) {
  if (is_folder(folder)) return HELIO_OK;
  char *path = strdup(folder);
  if (!path) return no_memory(folder);
  helio_status status = HELIO_OK;
  for (char *end = path + 1; !status && end[-1]; end++) {
    char separator = *end;
    if (separator && separator != '/') continue;
    *end = 0;
    status = make_one(path);
    *end = separator;
  }
  free(path);
  return status;
}
