/* SPDX-License-Identifier: Apache-2.0 */
/* What is still held when the library ends, told by the log in debug builds (configure --enable-debug): objects
 * (tensor/census.h), memory of devices and threads. In other builds nothing of it is there. */
#ifndef HI_LEAKS_H
#define HI_LEAKS_H

#include <helio/helio.h>
#include <stdio.h>

/* What is left alone until the process ends, because a thread hangs that may look at it. It is not lost: leak checkers
 * find it here. */
void hi_keep_for_ever(void *memory);

#ifdef HELIO_DEBUG

/* Begins a report, which has about 20 lines at most. */
void hi_leaks_begin(void);

/* A line of it, "WARNING:helio:still held at helio_shutdown(): …". */
void hi_leak_say(const char *format, ...) HELIO_PRINTF(1, 2);

/* Is what lies in the memory of a device, while it is being closed, there by mistake? */
void hi_leaks_in_memory(bool are);
bool hi_leaks_are_in_memory(void);

#else

static inline void hi_leaks_begin(void) {}
#define hi_leak_say(...) ((void)sizeof snprintf(NULL, 0, __VA_ARGS__)) /* checked, never done */
static inline void hi_leaks_in_memory(bool are) {
  (void)are;
}
static inline bool hi_leaks_are_in_memory(void) {
  return false;
}

#endif

#endif
