/* SPDX-License-Identifier: Apache-2.0 */
#include "data/folders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/replacement.h"

static bool is_folder(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static helio_status fail(hi_folders *folders, const char *format, const char *path, int cause) {
  int length = snprintf(folders->problem, sizeof folders->problem, format, path, strerror(cause));
  size_t used = (size_t)length < sizeof folders->problem ? (size_t)length : sizeof folders->problem - 1;
  snprintf(folders->problem + used, sizeof folders->problem - used, "%s", hi_write_advice(cause));
  return HELIO_IO_FAILURE;
}

static helio_status no_memory(hi_folders *folders, const char *path) {
  snprintf(folders->problem, sizeof folders->problem, "%s: no memory for the name of the folder", path);
  return HELIO_OUT_OF_MEMORY;
}

/* What is in a new folder is only safe if the folder's own name is on disk. */
static helio_status make_one(hi_folders *folders, const char *path, mode_t mode) {
  char *above = NULL;
  if (mkdir(path, mode) != 0) {
    int cause = errno;
    return is_folder(path) ? HELIO_OK : fail(folders, "the folder %s cannot be made: %s", path, cause);
  }
  folders->made++;
  if (asprintf(&above, "%s/..", path) < 0) return no_memory(folders, path);
  int descriptor = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  helio_status status = HELIO_OK;
  if (descriptor < 0 || hi_bring_folder_to_disk(descriptor) != 0) {
    status = fail(folders, "%s: bringing the new folder to disk failed: %s", path, errno);
  }
  if (descriptor >= 0) close(descriptor);
  free(above);
  return status;
}

/* Cuts the last part off, with the slashes before it. False if none is left. */
static bool go_up(char *path) {
  char *end = path + strlen(path);
  while (end > path && end[-1] == '/') end--;
  while (end > path && end[-1] != '/') end--;
  while (end > path && end[-1] == '/') end--;
  *end = 0;
  return end > path;
}

helio_status hi_folders_make(hi_folders *folders, const char *folder, mode_t mode) {
  *folders = (hi_folders){.made = 0};
  if (is_folder(folder)) return HELIO_OK;
  char *path = strdup(folder);
  if (!path) return no_memory(folders, folder);
  helio_status status = HELIO_OK;
  for (char *end = path + 1; !status && end[-1]; end++) {
    char separator = *end;
    if (separator && separator != '/') continue;
    *end = 0;
    int before = folders->made;
    status = make_one(folders, path, mode);
    if (!status) *end = separator;
    if (status && folders->made == before) go_up(path);
  }
  if (status) hi_folders_remove_empty(path, folders->made);
  free(path);
  return status;
}

void hi_folders_remove_empty(const char *folder, int made) {
  int before = errno;
  char *path = made > 0 ? strdup(folder) : NULL;
  while (path && made-- > 0 && rmdir(path) == 0 && go_up(path)) continue;
  free(path);
  errno = before;
}
