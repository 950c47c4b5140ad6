/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that the library starts. They take none of the program's signals: its handlers run on threads of its own,
 * and nothing that ours wait for is interrupted. */
#ifndef HI_THREADS_H
#define HI_THREADS_H

#include <pthread.h>

/* As pthread_create(), whose number of the error it returns. The system shows the first 15 bytes of the name. */
int hi_thread_start(pthread_t *thread, const char *name, void *(*body)(void *argument), void *argument);

/* For debug builds: the thread hangs in a plugin and is left to itself; and a line of those that still run. */
#ifdef HELIO_DEBUG
void hi_thread_abandon(pthread_t thread);
void hi_threads_tell(void);
#else
static inline void hi_thread_abandon(pthread_t thread) {
  (void)thread;
}
static inline void hi_threads_tell(void) {}
#endif

#endif
