/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of a training as text, to the byte as Progbar of Keras 3.15 draws it but for these: a line never wraps,
 * what a name holds cannot reach the terminal as a command, and a bar without colours still shows how far it is. State
 * in, bytes out: when to draw, and where, is the caller's. The locale plays no part.
 *
 * All functions return text that is to be written as it is and then freed; NULL, with an error pending, if there is no
 * memory. */
#ifndef HI_BAR_H
#define HI_BAR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hi_bar_state {
  int64_t step;      /* how many were taken */
  int64_t resumed;   /* of these before the epoch was gone on with, in other seconds */
  int64_t target;    /* how many the epoch has; -1: not known yet */
  double seconds;    /* since the epoch began */
  double first_step; /* of these until the first step was taken. On a terminal the time per step leaves it out, since
                        the first is the slowest. 0: not known */
  const char *const *names;
  const double *values; /* shown as they are */
  int value_count;
  int columns;   /* of the terminal; 0: there is none, or one that cannot erase, such as TERM=dumb */
  bool utf8;     /* the locale's characters are UTF-8 */
  bool color;    /* NO_COLOR is not set */
  bool finished; /* nothing more is drawn in this epoch */
} hi_bar_state;

/* "Epoch 1/10" and a newline; like Keras nothing for the only epoch. Epochs count from 0 here. */
char *hi_bar_epoch(int64_t epoch, int64_t epochs);

/* On a terminal the line that replaces the one before it, and takes fewer than `columns` columns: at its end values are
 * left out, then the bar becomes shorter. What was left out of a finished one follows on lines of its own. Elsewhere a
 * line when the epoch is finished, and nothing before. */
char *hi_bar_line(const hi_bar_state *state);

typedef struct hi_bar_totals {
  int64_t epochs;                /* how many were finished */
  int64_t samples;               /* that were trained on, by all replicas */
  double seconds;                /* all in all */
  double validation;             /* seconds of these that no sample was trained on in: they slow no training down */
  int replicas;                  /* what follows is shown for several only */
  double compute, reduce, input; /* seconds that replicas spent with each, added up over them; all 0: not known */
  double efficiency;             /* 1: as many times as fast as one replica alone; 0: not known */
} hi_bar_totals;

/* "10 epochs in 12.3 s, 48,800 samples/s; 2 replicas: compute 81 %, reduce 12 %, input 7 %, efficiency 0.88" and a
 * newline, without what is not known. */
char *hi_bar_summary(const hi_bar_totals *totals);

#endif
