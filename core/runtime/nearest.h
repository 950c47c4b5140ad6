/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean …?" for names that people type. */
#ifndef HI_NEAREST_H
#define HI_NEAREST_H

/* The name that differs least from `word`, NULL if none is near enough to be what was meant. Case does not matter.
 * What a name begins with, up to a - or _ in it, is nearest. */
const char *hi_nearest(const char *word, const char *const *names, int count);

#endif
