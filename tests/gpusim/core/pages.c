/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of device memory. Fresh ones are full of 0xFF without anybody having written them: they are private views of
 * one small file that is, repeated as often as needed, so that a large allocation costs neither time nor memory before
 * something is written into it. */
#define _GNU_SOURCE
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILE_BYTES = 4 << 20, PIECE = 64 << 10 };

static int file = -1;

static void make_file(void) {
  static unsigned char piece[PIECE];
  memset(piece, SIM_FRESH, sizeof piece);
  file = memfd_create("gpusim fresh memory", MFD_CLOEXEC);
  for (size_t i = 0; file >= 0 && i < FILE_BYTES / PIECE; i++)
    if (write(file, piece, sizeof piece) != (ssize_t)sizeof piece) file = -1;
}

/* All that is reserved has the same advice, else the kernel keeps each piece that was used apart, and it has a limit of
 * these. */
void sim_pages_close(char *begin, size_t bytes) {
  mmap(begin, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  madvise(begin, bytes, MADV_DONTDUMP);
}

bool sim_pages_open(char *begin, size_t bytes) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_file);
  if (file < 0) return false;
  for (size_t at = 0; at < bytes; at += FILE_BYTES) {
    size_t piece = bytes - at < FILE_BYTES ? bytes - at : FILE_BYTES;
    if (mmap(begin + at, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) != MAP_FAILED) continue;
    sim_pages_close(begin, bytes);
    return false;
  }
  madvise(begin, bytes, MADV_DONTDUMP);
  return true;
}

/* The sanitizers keep records of all addresses, and have no room for so many. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define IS_WATCHED true
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_WATCHED true
#endif
#endif
#ifndef IS_WATCHED
#define IS_WATCHED false
#endif

char *sim_pages_reserve(size_t *bytes) {
  for (*bytes = (size_t)(IS_WATCHED ? 64 : 1024) << 30; *bytes >= SIM_PAGE; *bytes /= 2) {
    void *both = mmap(NULL, 2 * *bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (both == MAP_FAILED) continue;
    madvise(both, 2 * *bytes, MADV_DONTDUMP);
    return both;
  }
  return NULL;
}

bool sim_is_filled(const char *begin, const char *end, int value) {
  while (begin < end && *begin == (char)value) begin++;
  return begin == end;
}

bool sim_overlap(const void *one, size_t one_bytes, const void *other, size_t other_bytes) {
  uintptr_t first = (uintptr_t)one, second = (uintptr_t)other;
  return one_bytes && other_bytes && first < second + other_bytes && second < first + one_bytes;
}
