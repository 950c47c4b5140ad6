/* SPDX-License-Identifier: Apache-2.0 */
/* Brings a file whose sum is known from a URL to its place. What has come so far lies in PATH.part; PATH itself appears
 * at once, whole and verified, or not at all. */
#ifndef DOWNLOAD_H
#define DOWNLOAD_H

#include "checksum.h"

enum { DOWNLOAD_MESSAGE = 2048 };

typedef enum download_status {
  DOWNLOAD_DONE,
  DOWNLOAD_ALREADY_THERE, /* and verified; nothing was asked of the source */
  DOWNLOAD_ABSENT,        /* the source has no such file */
  DOWNLOAD_FAILED,
} download_status;

typedef struct download {
  const char *url;
  const char *path;          /* its folder exists */
  const data_file *expected; /* for this name, but the file may be packed in another way */
  long timeout;              /* seconds without a byte after which to give up */
  bool show_progress;

  /* Results */
  checksum sum;     /* of what is at PATH now */
  uint64_t resumed; /* bytes that were there from an earlier attempt */
  double seconds;
  char message[DOWNLOAD_MESSAGE]; /* why it failed */
} download;

/* A message belongs to the two statuses that are failures. What has come is kept for another attempt, except for a file
 * that came whole and is wrong: that one is removed. The libraries of lazy_libraries.h must be open. */
download_status download_run(download *self);

/* The form of a folder's absolute path that download_run() takes; to be freed with free(). NULL: no memory. */
char *download_folder_url(const char *folder);

#endif
