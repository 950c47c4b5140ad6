/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/leaks.h"

#include <stdatomic.h>
#include <stdlib.h>

typedef struct kept {
  void *memory;
  struct kept *next;
} kept;

static _Atomic(kept *) all_kept;

/* Without memory for a link it stays all the same. */
void hi_keep_for_ever(void *memory) {
  kept *link = malloc(sizeof *link);
  if (!link) return;
  *link = (kept){.memory = memory, .next = atomic_load(&all_kept)};
  while (!atomic_compare_exchange_weak(&all_kept, &link->next, link)) continue;
}

#ifdef HELIO_DEBUG

#include <stdio.h>

#include "runtime/log.h"

enum { MOST_LINES = 20 };

/* One thread at a time ends the library. */
static int lines;
static bool in_memory;

void hi_leaks_begin(void) {
  lines = 0;
}

void hi_leak_say(const char *format, ...) {
  char text[1000];
  va_list arguments;
  if (lines > MOST_LINES) return;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  hi_log(HELIO_LOG_WARNING, "still held at helio_shutdown(): %s", lines == MOST_LINES ? "and more" : text);
  lines++;
}

void hi_leaks_in_memory(bool are) {
  in_memory = are;
}

bool hi_leaks_are_in_memory(void) {
  return in_memory;
}

#endif
