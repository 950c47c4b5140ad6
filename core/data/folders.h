/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that are made for what is to come into them, and removed again if nothing does. The command is linked with
 * this file as well, but not with the rest of the core: a failure is a text in the struct, not an error of the
 * thread. */
#ifndef HI_FOLDERS_H
#define HI_FOLDERS_H

#include <helio/helio.h>
#include <limits.h>
#include <sys/types.h>

typedef struct hi_folders {
  int made;                     /* so many of the path's last parts were not there before */
  char problem[PATH_MAX + 200]; /* why it has failed, with the path; "" before that */
} hi_folders;

/* Makes the folder and those that lead to it, as far as they are not there, and brings their names to disk. After an
 * error those that were made are gone again. */
helio_status hi_folders_make(hi_folders *folders, const char *folder, mode_t mode);

/* Removes so many of the path's last parts, as far as they are empty. errno stays as it is. */
void hi_folders_remove_empty(const char *folder, int made);

#endif
