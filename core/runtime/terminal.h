/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal that standard output may be. */
#ifndef HI_TERMINAL_H
#define HI_TERMINAL_H

#include <stdbool.h>

/* How wide it is, 80 if it does not say; 0: standard output is none. Asked each time: windows change. */
int hi_terminal_columns(void);

/* By the environment: a program that never called setlocale() still has a terminal. */
bool hi_terminal_is_utf8(void);

#endif
