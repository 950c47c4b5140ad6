/* SPDX-License-Identifier: Apache-2.0 */
/* Text of somebody's file or keyboard may stand in a message, but must neither move the cursor of a terminal nor be cut
 * inside a character. */
#ifndef HI_PRINTABLE_H
#define HI_PRINTABLE_H

#include <stddef.h>

/* How many bytes of the text fit into a buffer of `size` bytes with the 0 behind them, no character being cut. */
size_t hi_text_fit(const char *text, size_t size);

/* Puts ? in the place of what a terminal obeys: controls, also the second set that UTF-8 writes in two bytes. */
void hi_make_printable(char *text);

#endif
