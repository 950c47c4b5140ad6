/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of the library. */
#ifndef HI_RUNTIME_H
#define HI_RUNTIME_H

#include <helio/helio.h>

/* Starts the library if it is not running. Cheap if it is. */
helio_status hi_runtime_ensure(void);

/* Is this the child of a process that had started the library? Then locks may be held by threads that are no more. */
bool hi_runtime_forked(void);

/* How often the library was ended: what was made at another count has lost its devices. */
unsigned hi_runtime_ends(void);

/* Between these two the library neither starts nor ends. For what a thread does outside any call, which an end in
 * another thread need not wait for. False, and nothing to let go: a forked child. */
bool hi_runtime_hold(void);
void hi_runtime_let_go(void);

#endif
