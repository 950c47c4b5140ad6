/* SPDX-License-Identifier: Apache-2.0 */
/* One line on the terminal that shows how far a file has come. Nothing is written where standard error is no terminal.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct progress {
  const char *name; /* of what comes */
  bool shown, colored;
  int width;              /* of the line that stands there, 0: none does */
  uint64_t first;         /* bytes that were there before */
  struct timespec begin;  /* when the others began to come */
  struct timespec latest; /* when the line was last drawn */
} progress;

/* Bytes that are there already count for the bar, not for the speed. */
void progress_begin(progress *self, const char *name, bool wanted);
void progress_start(progress *self, uint64_t first);

/* Draws the line, if it is time. A total of 0 is not known. */
void progress_show(progress *self, uint64_t done, uint64_t total);

/* Wipes the line, so that another text can stand there. */
void progress_end(progress *self);

#endif
