/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT, SIGTERM and SIGHUP while trainings run that can be stopped between two steps. */
#ifndef HI_SIGNALS_H
#define HI_SIGNALS_H

/* From here on they only ask, all trainings that are under way; a second SIGINT ends the process as if nobody had
 * caught it. One that is ignored, as in the background of a shell or behind nohup, stays so. */
void hi_signals_catch(void);

/* The number of the signal that has asked; 0: none has. */
int hi_signals_asked(void);

/* The same. The last training to leave puts back what was there before the first one. */
int hi_signals_leave(void);

/* "SIGINT", of one of these. */
const char *hi_signal_name(int number);

#endif
