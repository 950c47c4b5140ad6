/* SPDX-License-Identifier: Apache-2.0 */
#include "data/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/error.h"

static void end(void *object) {
  hi_file *file = object;
  if (file->mapped) munmap((void *)(uintptr_t)file->bytes, file->mapped);
  hi_drop(file->whole);
  free(file->heap);
  free(file->name);
  free(file);
}

static void print_plainly(char *text) {
  for (; *text; text++) {
    if ((unsigned char)*text < 32 || *text == 127) *text = '?';
  }
}

/* A file without bytes, called "BASE" or "BASE, PART". */
static hi_file *name_file(const char *base, const char *part) {
  char *name = NULL;
  hi_file *file = calloc(1, sizeof *file);
  if (!file || asprintf(&name, "%s%s%.200s", base, part ? ", " : "", part ? part : "") < 0) {
    hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for reading it", base);
    free(file);
    return NULL;
  }
  hi_object_begin(file, end, "a file");
  file->name = name;
  file->bytes = (const unsigned char *)"";
  return file;
}

hi_file *hi_file_of_heap(const hi_file *whole, const char *part, void *heap, size_t size) {
  hi_file *file = name_file(whole->name, part);
  if (!file) {
    free(heap);
    return NULL;
  }
  if (heap) file->bytes = heap;
  file->heap = heap;
  file->size = size;
  return file;
}

hi_file *hi_file_copy(const char *name, const void *bytes, size_t size) {
  hi_file *file = name_file(name, NULL);
  if (!file || size == 0) return file;
  file->heap = malloc(size);
  if (!file->heap) {
    hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for its %zu bytes", name, size);
    hi_drop(file);
    return NULL;
  }
  memcpy(file->heap, bytes, size);
  file->bytes = file->heap;
  file->size = size;
  return file;
}

hi_file *hi_file_part(hi_file *whole, const char *part, size_t offset, size_t size) {
  hi_file *file = name_file(whole->name, part);
  if (!file) return NULL;
  hi_hold(whole);
  file->whole = whole;
  file->bytes = whole->bytes + offset;
  file->size = size;
  return file;
}

static helio_status map(hi_file *file, int descriptor) {
  struct stat about;
  if (descriptor < 0 || fstat(descriptor, &about) != 0) {
    return hi_fail(HELIO_IO_FAILURE, "%s cannot be opened: %s", file->name, strerror(errno));
  }
  if (!S_ISREG(about.st_mode)) return hi_fail(HELIO_INVALID_ARGUMENT, "%s is not a regular file", file->name);
  if (about.st_size == 0) return HELIO_OK;
  void *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (bytes == MAP_FAILED) return hi_fail(HELIO_IO_FAILURE, "%s cannot be mapped: %s", file->name, strerror(errno));
  file->bytes = bytes;
  file->size = file->mapped = (size_t)about.st_size;
  return HELIO_OK;
}

/* Without O_NONBLOCK a pipe would wait for somebody who writes to it. */
hi_file *hi_file_open(const char *path) {
  if (!path) {
    hi_fail(HELIO_INVALID_ARGUMENT, "path is NULL");
    return NULL;
  }
  hi_file *file = name_file(path, NULL);
  if (!file) return NULL;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  helio_status status = map(file, descriptor);
  if (descriptor >= 0) close(descriptor);
  if (!status) return file;
  hi_drop(file);
  return NULL;
}

helio_status hi_fail_plainly(helio_status status, const char *format, ...) {
  char cause[2000];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(cause, sizeof cause, format, arguments);
  va_end(arguments);
  print_plainly(cause);
  return hi_fail(status, "%s", cause);
}

helio_status hi_file_fail(const hi_file *file, helio_status status, uint64_t byte, const char *format, ...) {
  char cause[500];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(cause, sizeof cause, format, arguments);
  va_end(arguments);
  return hi_fail_plainly(status, "%s, byte %" PRIu64 ": %s", file->name, byte, cause);
}
