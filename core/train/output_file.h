/* SPDX-License-Identifier: Apache-2.0 */
/* A file that grows while a program runs and that others read meanwhile: records are gathered in memory and go out
 * whole. The first failure to write is kept: a record that was cut short is taken back, nothing is written after it,
 * and every later call reports it. A new file into which nothing was written is removed when it is closed. Threads may
 * call all but open and close at once. */
#ifndef HI_OUTPUT_FILE_H
#define HI_OUTPUT_FILE_H

#include <helio/helio.h>
#include <pthread.h>

typedef struct hi_output_file {
  char *path;
  int descriptor;
  bool made;     /* by us: it was not there before */
  bool replaces; /* what the file has, which goes when the first record comes */

  /* What makes a document of the records, "" unless the caller sets it before the first one. It stands behind those
   * that were written, and what comes next takes its place: so what a program leaves that dies, or finds the disk full,
   * is whole. */
  const char *ending;

  pthread_mutex_t lock; /* over what follows */
  const char *failed;   /* what could not be done, NULL: all is well */
  int cause;            /* errno of that */
  size_t used;
  unsigned char gathered[1 << 16];
  unsigned char ends[(1 << 16) / 8]; /* a bit for each byte of them: a record ends with it */
} hi_output_file;

/* Takes over `path`, which the caller allocated, and `descriptor`, which came of opening it, also on failure; a
 * negative one is a failure that errno explains. `made`: opening it made it. */
helio_status hi_output_file_open(hi_output_file *file, char *path, int descriptor, bool made);

/* The same with a file at that path: in the place of what it has, which stays until there is something to write, or
 * behind it; then it may be read. */
helio_status hi_output_file_create(hi_output_file *file, const char *path, bool append);

/* Could that be written to? Leaves what there is, or nothing. */
helio_status hi_output_file_check(const char *path);

/* Adds one record. */
helio_status hi_output_file_put(hi_output_file *file, const void *record, size_t bytes);

/* Other programs see all that was put before. */
helio_status hi_output_file_flush(hi_output_file *file);

/* Flushes, and frees what the file holds, also on failure. */
helio_status hi_output_file_close(hi_output_file *file);

#endif
