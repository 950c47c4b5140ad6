/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that the library starts. They take none of the program's signals: its handlers run on threads of its own,
 * and nothing that ours wait for is interrupted. */
#ifndef HI_THREADS_H
#define HI_THREADS_H

#include <pthread.h>

/* As pthread_create(), whose number of the error it returns. The system shows the first 15 bytes of the name. */
int hi_thread_start(pthread_t *thread, const char *name, void *(*body)(void *argument), void *argument);

#endif
