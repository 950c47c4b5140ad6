/* SPDX-License-Identifier: Apache-2.0 */
#include "data/folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/error.h"

helio_status hi_folder_make(const char *folder) {
  char *path = strdup(folder);
  if (!path) return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for making the folder", folder);
  helio_status status = HELIO_OK;
  for (char *at = path + 1; !status && at[-1]; at++) {
    if (*at && *at != '/') continue;
    char separator = *at;
    *at = 0;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
      status = hi_fail(HELIO_IO_FAILURE, "the folder %s cannot be made: %s", path, strerror(errno));
    }
    *at = separator;
  }
  free(path);
  return status;
}
