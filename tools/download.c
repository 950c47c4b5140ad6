/* SPDX-License-Identifier: Apache-2.0 */
#include "download.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/replacement.h"
#include "lazy_libraries.h"
#include "output.h"
#include "progress.h"

/* One attempt to get the rest of a file. */
typedef struct transfer {
  download *job;
  CURL *handle;
  const char *part; /* path of what came so far */
  int descriptor;
  uint64_t first;    /* bytes that were there */
  uint64_t received; /* behind them */
  progress line;
  int write_error;     /* errno */
  bool too_large;      /* more came than any good file has */
  bool resume_refused; /* the source cannot go on from `first` */
  char error[CURL_ERROR_SIZE];
} transfer;

static download_status fail(download *self, download_status status, const char *format, ...) HELIO_PRINTF(3, 4);

static download_status fail(download *self, download_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(self->message, sizeof self->message, format, arguments);
  va_end(arguments);
  return status;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * What curl calls
 */

static uint64_t most_bytes(const data_file *file) {
  return file->bytes > file->other_bytes ? file->bytes : file->other_bytes;
}

/* Before the first byte: has the server understood from where to go on? One that has not sends the whole file. */
static bool accept_begin(transfer *t) {
  struct curl_header *range;
  unsigned long long from = t->first;
  long code = 0;
  lazy.curl_easy_getinfo(t->handle, CURLINFO_RESPONSE_CODE, &code);
  if (t->first == 0 || code == 0) return true; /* code 0: not HTTP but a file, where curl itself seeks */
  if (code == 206) {
    if (lazy.curl_easy_header(t->handle, "Content-Range", 0, CURLH_HEADER, -1, &range) == CURLHE_OK) {
      if (sscanf(range->value, "bytes %llu-", &from) != 1) from = t->first + 1;
    }
    t->resume_refused = from != t->first;
    return !t->resume_refused;
  }
  t->first = 0;
  progress_start(&t->line, 0);
  if (ftruncate(t->descriptor, 0) == 0 && lseek(t->descriptor, 0, SEEK_SET) == 0) return true;
  t->write_error = errno;
  return false;
}

static size_t take_bytes(char *data, size_t size, size_t count, void *user) {
  transfer *t = user;
  size_t bytes = size * count;
  if (t->received == 0 && !accept_begin(t)) return 0;
  t->too_large = t->first + t->received + bytes > most_bytes(t->job->expected);
  for (size_t done = 0; done < bytes && !t->too_large;) {
    ssize_t written = write(t->descriptor, data + done, bytes - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      t->write_error = errno;
      return 0;
    }
    done += (size_t)written;
    t->received += (uint64_t)written;
  }
  return t->too_large ? 0 : bytes;
}

static int show_progress(void *user, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now) {
  transfer *t = user;
  (void)up_total, (void)up_now, (void)now;
  uint64_t whole = total > 0 ? t->first + (uint64_t)total : t->job->expected->bytes;
  if (t->received) progress_show(&t->line, t->first + t->received, whole);
  return 0;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * A transfer
 */

static void set_options(transfer *t) {
  CURL *handle = t->handle;
  char range[32], agent[64];
  snprintf(agent, sizeof agent, "helio/%s", helio_version());
  lazy.curl_easy_setopt(handle, CURLOPT_URL, t->job->url);
  lazy.curl_easy_setopt(handle, CURLOPT_USERAGENT, agent);
  lazy.curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https,file");
  lazy.curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  lazy.curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  lazy.curl_easy_setopt(handle, CURLOPT_MAXREDIRS, 10L);
  lazy.curl_easy_setopt(handle, CURLOPT_FAILONERROR, 1L);
  lazy.curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, t->job->timeout);
  lazy.curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  lazy.curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, t->job->timeout);
  lazy.curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_bytes);
  lazy.curl_easy_setopt(handle, CURLOPT_WRITEDATA, t);
  lazy.curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, show_progress);
  lazy.curl_easy_setopt(handle, CURLOPT_XFERINFODATA, t);
  lazy.curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  lazy.curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, t->error);
  if (t->first == 0) return;
  snprintf(range, sizeof range, "%" PRIu64 "-", t->first);
  lazy.curl_easy_setopt(handle, CURLOPT_RANGE, range);
}

static download_status cannot_write(download *job, const char *part, int cause) {
  return fail(job, DOWNLOAD_FAILED, "cannot write %s: %s%s", part, strerror(cause), hi_write_advice(cause));
}

/* " N bytes so far are kept …" */
static void explain_part(transfer *t) {
  struct stat about;
  size_t length = strlen(t->job->message);
  if (fstat(t->descriptor, &about) != 0 || about.st_size == 0) return;
  snprintf(t->job->message + length, sizeof t->job->message - length,
           ". The %lld bytes that have come are in %s; the same command goes on from there", (long long)about.st_size,
           t->part);
}

static download_status explain_http(transfer *t) {
  long code = 0;
  lazy.curl_easy_getinfo(t->handle, CURLINFO_RESPONSE_CODE, &code);
  t->resume_refused = code == 416;
  /* Stores that do not tell strangers what they have say 403 for 404. */
  bool absent = code == 403 || code == 404 || code == 410;
  return fail(t->job, absent ? DOWNLOAD_ABSENT : DOWNLOAD_FAILED, "%s: the server answers with HTTP status %ld%s",
              t->job->url, code, absent ? ": it has no such file, or not for everybody" : "");
}

/* What curl's answer means to the user. */
static download_status explain(transfer *t, CURLcode code) {
  download *job = t->job;
  const char *why = t->error[0] ? t->error : lazy.curl_easy_strerror(code);
  switch (code) {
  case CURLE_HTTP_RETURNED_ERROR:
    return explain_http(t);
  case CURLE_FILE_COULDNT_READ_FILE:
  case CURLE_REMOTE_FILE_NOT_FOUND:
    return fail(job, DOWNLOAD_ABSENT, "%s: %s", job->url, why);
  case CURLE_COULDNT_RESOLVE_HOST:
  case CURLE_COULDNT_RESOLVE_PROXY:
  case CURLE_COULDNT_CONNECT:
    return fail(
        job, DOWNLOAD_FAILED,
        "%s: no connection: %s. Is there a network? Files that this machine has already are taken by --from DIR",
        job->url, why);
  case CURLE_OPERATION_TIMEDOUT:
    return fail(job, DOWNLOAD_FAILED, "%s: timed out, nothing came for %ld seconds: %s", job->url, job->timeout, why);
  case CURLE_BAD_DOWNLOAD_RESUME:
  case CURLE_RANGE_ERROR:
    t->resume_refused = true;
    break;
  case CURLE_WRITE_ERROR:
    if (t->write_error) return cannot_write(job, t->part, t->write_error);
    if (t->too_large) {
      return fail(job, DOWNLOAD_FAILED, "%s: refused, because more than %" PRIu64 " bytes came", job->url,
                  most_bytes(job->expected));
    }
    break;
  default:
    break;
  }
  return fail(job, DOWNLOAD_FAILED, "%s: %s", job->url, why);
}

/* Gets what is behind the `first` bytes that the file has. */
static download_status run_transfer(transfer *t) {
  t->received = 0;
  t->resume_refused = t->too_large = false;
  t->error[0] = '\0';
  if (ftruncate(t->descriptor, (off_t)t->first) != 0 || lseek(t->descriptor, (off_t)t->first, SEEK_SET) < 0) {
    return cannot_write(t->job, t->part, errno);
  }
  t->handle = lazy.curl_easy_init();
  if (!t->handle) return fail(t->job, DOWNLOAD_FAILED, "libcurl cannot be started");
  set_options(t);
  progress_begin(&t->line, data_base_name(t->job->path), t->job->show_progress);
  progress_start(&t->line, t->first);
  CURLcode code = lazy.curl_easy_perform(t->handle);
  progress_end(&t->line);
  t->job->resumed = t->first;
  download_status status = code == CURLE_OK ? DOWNLOAD_DONE : explain(t, code);
  lazy.curl_easy_cleanup(t->handle);
  return status;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * A file
 */

/* Opens the part and makes sure that nobody else writes to it. Another process that has just finished may have renamed
 * the file that was opened: then it is opened anew. −1: the message is set. */
static int open_part(download *self, const char *part) {
  struct stat opened, named;
  for (;;) {
    int descriptor = open(part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0) {
      cannot_write(self, part, errno);
      return -1;
    }
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      fail(self, DOWNLOAD_FAILED, "%s is being written by another process", part);
      close(descriptor);
      return -1;
    }
    bool same = fstat(descriptor, &opened) == 0 && stat(part, &named) == 0 && opened.st_ino == named.st_ino &&
                opened.st_dev == named.st_dev;
    if (same) return descriptor;
    close(descriptor);
  }
}

static download_status refuse(transfer *t) {
  const data_file *expected = t->job->expected;
  const checksum *sum = &t->job->sum;
  unlink(t->part);
  return fail(t->job, DOWNLOAD_FAILED,
              "%s: refused and removed, because it is not the file that is known: it has %" PRIu64
              " bytes and SHA-256 %s, but should have %" PRIu64 " bytes and SHA-256 %s",
              t->job->url, sum->bytes, sum->sha256, expected->bytes, expected->sha256);
}

/* Gets the file into the part and verifies it. What an earlier attempt left may be of another file: if nothing good
 * comes of it, all is got anew. */
static download_status fill_part(transfer *t) {
  struct stat about;
  download_status status = DOWNLOAD_DONE;
  if (fstat(t->descriptor, &about) != 0) about.st_size = 0;
  t->first = (uint64_t)about.st_size;
  if (t->first > most_bytes(t->job->expected)) t->first = 0;
  for (;;) {
    uint64_t first = t->first;
    t->job->resumed = first;
    if (first < t->job->expected->bytes || first == 0) status = run_transfer(t);
    bool whole = status == DOWNLOAD_DONE;
    if (whole && !checksum_verify(t->descriptor, t->job->expected, &t->job->sum)) {
      return fail(t->job, DOWNLOAD_FAILED, "cannot read %s: %s", t->part, strerror(errno));
    }
    if (whole && t->job->sum.good) return DOWNLOAD_DONE;
    bool again = t->first > 0 && (whole || t->resume_refused || t->too_large);
    if (!again && whole) return refuse(t);
    if (!again) break;
    t->first = 0;
  }
  if (t->too_large) unlink(t->part);
  if (!t->too_large && status == DOWNLOAD_FAILED) explain_part(t);
  return status;
}

/* The folder's own entry must be on the disk too. Where that cannot be had the file is there all the same. */
static void sync_folder(const char *path) {
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%.*s", (int)(data_base_name(path) - path), path);
  int descriptor = open(*folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

static download_status put_in_place(transfer *t) {
  if (fsync(t->descriptor) != 0) {
    return cannot_write(t->job, t->part, errno);
  }
  if (rename(t->part, t->job->path) != 0) {
    return fail(t->job, DOWNLOAD_FAILED, "cannot rename %s to %s: %s", t->part, t->job->path, strerror(errno));
  }
  sync_folder(t->job->path);
  return DOWNLOAD_DONE;
}

download_status download_run(download *self) {
  char part[PATH_MAX];
  struct timespec begin, end;
  struct stat about;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  if (checksum_is_good(self->path, self->expected, &self->sum)) return DOWNLOAD_ALREADY_THERE;
  if (snprintf(part, sizeof part, "%s.part", self->path) >= (int)sizeof part) {
    return fail(self, DOWNLOAD_FAILED, "%s: the path is too long", self->path);
  }
  if (lazy.curl_global_init(CURL_GLOBAL_DEFAULT)) return fail(self, DOWNLOAD_FAILED, "libcurl cannot be started");
  transfer t = {.job = self, .part = part, .descriptor = open_part(self, part)};
  if (t.descriptor < 0) return DOWNLOAD_FAILED;
  download_status status = fill_part(&t);
  if (status == DOWNLOAD_DONE) status = put_in_place(&t);
  if (status != DOWNLOAD_DONE && fstat(t.descriptor, &about) == 0 && about.st_size == 0) unlink(part);
  close(t.descriptor);
  clock_gettime(CLOCK_MONOTONIC, &end);
  self->seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
  return status;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Folders
 */

char *download_folder_url(const char *folder) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  char *url = malloc(sizeof "file://" + 3 * strlen(folder)), *to = url;
  if (!url) return NULL;
  to = stpcpy(to, "file://");
  for (; *folder; folder++) {
    to += strchr(plain, *folder) ? snprintf(to, 2, "%c", *folder) : snprintf(to, 4, "%%%02X", (unsigned char)*folder);
  }
  *to = '\0';
  return url;
}
