/* SPDX-License-Identifier: Apache-2.0 */
#include "data/folder.h"

#include "data/folders.h"
#include "runtime/error.h"

helio_status hi_folder_make(const char *folder, int *made) {
  hi_folders folders;
  helio_status status = hi_folders_make(&folders, folder, 0777);
  *made = status ? 0 : folders.made;
  return status ? hi_fail(status, "%s", folders.problem) : HELIO_OK;
}
