/* SPDX-License-Identifier: Apache-2.0 */
#include "train/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/replacement.h"
#include "runtime/error.h"

static helio_status check_regular(const char *path, int descriptor) {
  struct stat about;
  if (descriptor < 0 || fstat(descriptor, &about) != 0) {
    int cause = errno;
    return hi_fail(HELIO_IO_FAILURE, "%s cannot be made: %s%s", path, strerror(cause), hi_write_advice(cause));
  }
  return S_ISREG(about.st_mode) ? HELIO_OK : hi_fail(HELIO_INVALID_ARGUMENT, "%s is not a regular file", path);
}

/* Whoever started the program with a standard stream closed gets no file in its place, into which others would print.
 */
static int above_standard_streams(int descriptor) {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  int above = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), cause = errno;
  close(descriptor);
  errno = cause;
  return above;
}

helio_status hi_output_file_open(hi_output_file *file, char *path, int descriptor, bool made) {
  descriptor = above_standard_streams(descriptor);
  helio_status status = check_regular(path, descriptor);
  if (!status && pthread_mutex_init(&file->lock, NULL) != 0) {
    status = hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for writing it", path);
  }
  if (status) {
    if (descriptor >= 0) close(descriptor);
    free(path);
    return status;
  }
  file->path = path;
  file->descriptor = descriptor;
  file->made = made;
  file->replaces = false;
  file->ending = "";
  file->failed = NULL;
  file->used = 0;
  memset(file->ends, 0, sizeof file->ends);
  return HELIO_OK;
}

/* Without O_NONBLOCK a pipe would wait for somebody who reads from it. A link that leads nowhere is no new file. */
helio_status hi_output_file_create(hi_output_file *file, const char *path, bool append) {
  int how = append ? O_RDWR | O_APPEND : O_WRONLY;
  char *copy = strdup(path);
  if (!copy) return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for writing it", path);
  how |= O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  int descriptor = open(path, how | O_EXCL, 0666);
  bool made = descriptor >= 0;
  if (!made && errno == EEXIST) descriptor = open(path, how, 0666);
  helio_status status = hi_output_file_open(file, copy, descriptor, made);
  file->replaces = !append && !made;
  return status;
}

helio_status hi_output_file_check(const char *path) {
  hi_output_file *file = malloc(sizeof *file); /* more than a stack should hold */
  if (!file) return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for writing it", path);
  helio_status status = hi_output_file_create(file, path, false);
  if (!status) status = hi_output_file_close(file);
  free(file);
  return status;
}

static void keep_failure(hi_output_file *file, const char *doing) {
  if (file->failed) return;
  file->cause = errno;
  file->failed = doing;
}

static helio_status report(const hi_output_file *file) {
  if (!file->failed) return HELIO_OK;
  return hi_fail(HELIO_IO_FAILURE, "%s: %s failed: %s%s", file->path, file->failed, strerror(file->cause),
                 hi_write_advice(file->cause));
}

/* How many of the bytes were written: all, or fewer with the failure kept. */
static size_t write_bytes(hi_output_file *file, const unsigned char *data, size_t bytes) {
  size_t written = 0;
  while (written < bytes && !file->failed) {
    size_t left = bytes - written;
    ssize_t put = write(file->descriptor, data + written, left < INT_MAX ? left : INT_MAX);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      keep_failure(file, "writing");
    } else {
      written += (size_t)put;
    }
  }
  return written;
}

/* Not through the descriptor's own place, where the next record goes. False with errno if there is no room for it. */
static bool put_ending(const hi_output_file *file, off_t at) {
  for (const char *rest = file->ending; *rest;) {
    ssize_t put = pwrite(file->descriptor, rest, strlen(rest), at + (rest - file->ending));
    if (put < 0 && errno == EINTR) continue;
    if (put == 0) errno = ENOSPC; /* nothing says that more would be written the next time */
    if (put <= 0) return false;
    rest += put;
  }
  return true;
}

static void mark_end(hi_output_file *file) {
  if (file->used > 0) file->ends[(file->used - 1) / 8] |= (unsigned char)(1u << (file->used - 1) % 8);
}

/* The bytes of the gathered records that lie within the first so many bytes as a whole. */
static size_t whole_within(const hi_output_file *file, size_t bytes) {
  while (bytes > 0 && !(file->ends[(bytes - 1) / 8] >> (bytes - 1) % 8 & 1)) bytes--;
  return bytes;
}

/* Behind a record that was cut short no other would be found, and nobody could read it. What is kept leaves room among
 * the bytes that were written for the ending, and where nothing is, that has its old place again: a full disk has none
 * for more. If it cannot be done, it stays as it is. */
static void take_back(const hi_output_file *file, size_t written, bool gathered) {
  if (written == 0) return; /* all is as it was; where a file that is gone on with ends is not known before the first */
  size_t ending = strlen(file->ending);
  size_t kept = gathered && written > ending ? whole_within(file, written - ending) : 0;
  off_t end = lseek(file->descriptor, 0, SEEK_CUR) - (off_t)(written - kept);
  if (end > 0 && put_ending(file, end)) end += (off_t)ending;
  if (end >= 0 && ftruncate(file->descriptor, end) != 0) return;
}

static void write_records(hi_output_file *file, const unsigned char *records, size_t bytes) {
  if (bytes == 0 || file->failed) return;
  if (file->replaces && ftruncate(file->descriptor, 0) != 0) keep_failure(file, "emptying it");
  file->replaces = false;
  size_t written = write_bytes(file, records, bytes);
  if (!file->failed && !put_ending(file, lseek(file->descriptor, 0, SEEK_CUR))) keep_failure(file, "writing");
  if (file->failed) take_back(file, written, records == file->gathered);
}

static void write_gathered(hi_output_file *file) {
  write_records(file, file->gathered, file->used);
  memset(file->ends, 0, (file->used + 7) / 8);
  file->used = 0;
}

static void put(hi_output_file *file, const void *record, size_t bytes) {
  if (bytes > sizeof file->gathered - file->used) write_gathered(file);
  if (bytes > sizeof file->gathered) {
    write_records(file, record, bytes);
  } else {
    memcpy(file->gathered + file->used, record, bytes);
    file->used += bytes;
    mark_end(file);
  }
}

helio_status hi_output_file_put(hi_output_file *file, const void *record, size_t bytes) {
  pthread_mutex_lock(&file->lock);
  put(file, record, bytes);
  helio_status status = report(file);
  pthread_mutex_unlock(&file->lock);
  return status;
}

helio_status hi_output_file_flush(hi_output_file *file) {
  pthread_mutex_lock(&file->lock);
  write_gathered(file);
  helio_status status = report(file);
  pthread_mutex_unlock(&file->lock);
  return status;
}

/* Unless another has its name meanwhile. */
static void remove_if_empty(const hi_output_file *file) {
  struct stat ours, named;
  if (fstat(file->descriptor, &ours) != 0 || ours.st_size > 0 || lstat(file->path, &named) != 0) return;
  if (named.st_dev == ours.st_dev && named.st_ino == ours.st_ino) unlink(file->path);
}

helio_status hi_output_file_close(hi_output_file *file) {
  write_gathered(file);
  if (file->made) remove_if_empty(file);
  /* Some file systems tell of a full disk only here. */
  if (close(file->descriptor) != 0 && errno != EINTR) keep_failure(file, "closing");
  helio_status status = report(file);
  pthread_mutex_destroy(&file->lock);
  free(file->path);
  return status;
}
