/* SPDX-License-Identifier: Apache-2.0 */
/* A new file that takes the place of another in one step, once it is safely on disk: whoever reads, and whatever
 * crashes, finds the old one or the new one and never a part. The command is linked with this file as well, but
 * not with the rest of the core: a failure is a text in the struct, not an error of the thread. */
#ifndef HI_REPLACEMENT_H
#define HI_REPLACEMENT_H

#include <helio/helio.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct hi_replacement {
  const char *path;             /* as the caller knows it, for messages */
  char *target;                 /* without symbolic links; the folder's part ends with a 0 */
  const char *name;             /* in its folder */
  char temporary[NAME_MAX + 1]; /* there too; "" before it is made and after it has its place */
  int folder, descriptor, lock;
  mode_t mode;
  bool replaces;                /* a file that is there */
  char problem[PATH_MAX + 200]; /* why a call has failed, with the path; "" before that */
} hi_replacement;

/* Makes .NAME.PID-NUMBER.tmp in the folder of `path`, which must live as long as the replacement; through a symbolic
 * link the file that it leads to will be replaced, if it leads to one. The new file is for those who might read the old
 * one; the umask decides if there is none. hi_replacement_end() must follow, whatever comes of it. */
helio_status hi_replacement_begin(hi_replacement *new, const char *path);

helio_status hi_replacement_write(hi_replacement *new, uint64_t offset, const void *data, uint64_t bytes);

/* After an error the old file is as it was. (If only the folder could not be brought to disk after the new one had its
 * place, the error says so.) */
helio_status hi_replacement_finish(hi_replacement *new);

/* Frees all; what was not finished is gone. */
void hi_replacement_end(hi_replacement *new);

/* (The library's only, with the error set.) Removes from the folder what processes that were killed have left of files
 * whose names are `ours`. Nothing that somebody may still be writing: whoever writes holds a lock, and as locks do not
 * reach everywhere (another machine that shares the folder, a file system without any), what was written to in the last
 * ten minutes stays too. An error, such as a file that may not be removed, does not keep the others. */
helio_status hi_replacement_clean(const char *folder, bool (*ours)(const char *name));

/* What to do about a file or folder that could not be written, for the end of a message that names it: "; make room …"
 * of a disk that is full, else "". */
const char *hi_write_advice(int cause);

/* fsync() of a folder, which some file systems do not know. Not 0: it failed, errno says why. */
int hi_bring_folder_to_disk(int descriptor);

#endif
