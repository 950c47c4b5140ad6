/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT and SIGTERM while a training runs that can be stopped between two steps. */
#ifndef HI_SIGNALS_H
#define HI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

typedef struct hi_signals {
  struct sigaction before[2];
} hi_signals;

/* From here on both only ask; a second SIGINT ends the process as if nobody had caught it. One training of the process
 * at a time: others leave signals alone, which the return value says. One that is ignored, as in the background of a
 * shell, stays so. */
bool hi_signals_catch(hi_signals *signals);

/* Puts back what was there before; the number of the signal that has asked, 0: none has. */
int hi_signals_leave(const hi_signals *signals);

/* Likewise, meanwhile. */
int hi_signals_asked(void);

#endif
