/* SPDX-License-Identifier: Apache-2.0 */
#include "cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An entry is this, then the key, then the image. */
typedef struct head {
  char magic[8];
  uint64_t key_bytes, image_bytes;
  uint64_t checksum; /* of key and image */
} head;

static const char magic[8] = "HLIOGPU1";

/* No text of ours comes near: such a file is none of ours. */
#define IMAGE_MOST ((uint64_t)256 << 20)

/* FNV-1a, with a last step that spreads what the last bytes changed. Chance is kept out, malice is not: the folder is
 * the user's own. */
static uint64_t mix(uint64_t hash, const void *data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
  return hash;
}

static uint64_t mix_end(uint64_t hash) {
  hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

#define MIX_BEGIN UINT64_C(0xcbf29ce484222325)

uint64_t gpu_cache_hash(const void *data, size_t bytes) {
  return mix_end(mix(MIX_BEGIN, data, bytes));
}

static uint64_t checksum(const char *key, size_t key_bytes, const void *image, size_t image_bytes) {
  return mix_end(mix(mix(MIX_BEGIN, key, key_bytes), image, image_bytes));
}

void gpu_cache_folder(const helio_host *host, char *folder, size_t size) {
  const char *given = host->parameter(host, vendor.parameter_cache);
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int length = 0;
  if (given != NULL && strcmp(given, "none") == 0) {
    folder[0] = '\0';
  } else if (given != NULL && given[0] != '\0') {
    length = snprintf(folder, size, "%s", given);
  } else if (cache != NULL && cache[0] == '/') {
    length = snprintf(folder, size, "%s/helio/kernels", cache);
  } else if (home != NULL && home[0] == '/') {
    length = snprintf(folder, size, "%s/.cache/helio/kernels", home);
  } else {
    folder[0] = '\0';
  }
  if (length < 0 || (size_t)length >= size) folder[0] = '\0';
}

/* false if nothing is to be kept. */
static bool entry_path(const helio_host *host, const char *name, const char *key, char *path, size_t size) {
  char folder[PATH_MAX];
  gpu_cache_folder(host, folder, sizeof folder);
  if (folder[0] == '\0') return false;
  int length =
      snprintf(path, size, "%s/%s-%016llx.bin", folder, name, (unsigned long long)gpu_cache_hash(key, strlen(key)));
  return length > 0 && (size_t)length < size;
}

static bool read_all(int file, void *data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t got = read(file, (char *)data + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

static bool write_all(int file, const void *data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t put = write(file, (const char *)data + done, bytes - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += (size_t)put;
  }
  return true;
}

static bool head_fits(int file, const head *begin, const char *key) {
  struct stat facts;
  return memcmp(begin->magic, magic, sizeof magic) == 0 && begin->key_bytes == strlen(key) && begin->image_bytes > 0 &&
         begin->image_bytes <= IMAGE_MOST && fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) &&
         (uint64_t)facts.st_size == sizeof *begin + begin->key_bytes + begin->image_bytes;
}

/* The entry's content, whole and unchanged, from host->allocate; NULL if it is not. */
static void *read_entry(const helio_host *host, int file, const char *key, size_t *bytes) {
  head begin;
  if (!read_all(file, &begin, sizeof begin) || !head_fits(file, &begin, key)) return NULL;
  size_t key_bytes = (size_t)begin.key_bytes, image_bytes = (size_t)begin.image_bytes;
  char *found = host->allocate(host, key_bytes);
  void *image = host->allocate(host, image_bytes);
  bool good = found != NULL && image != NULL && read_all(file, found, key_bytes) &&
              memcmp(found, key, key_bytes) == 0 && read_all(file, image, image_bytes) &&
              checksum(key, key_bytes, image, image_bytes) == begin.checksum;
  if (found != NULL) host->release(host, found);
  if (!good && image != NULL) host->release(host, image);
  *bytes = image_bytes;
  return good ? image : NULL;
}

bool gpu_cache_read(const helio_host *host, const char *name, const char *key, vendor_image *image) {
  char path[PATH_MAX];
  if (!entry_path(host, name, key, path, sizeof path)) return false;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would be waited for */
  if (file < 0) return false;
  image->data = read_entry(host, file, key, &image->bytes);
  close(file);
  if (image->data == NULL) host->log(host, HELIO_LOG_DEBUG, "%s is damaged: its kernels are compiled again", path);
  return image->data != NULL;
}

/* Makes the folder of `path` and those above it. */
static bool make_folders(const char *path) {
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%s", path);
  for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) return false;
    *slash = '/';
  }
  return true;
}

static bool write_entry(int file, const char *key, const vendor_image *image) {
  head begin = {.key_bytes = strlen(key), .image_bytes = image->bytes};
  memcpy(begin.magic, magic, sizeof magic);
  begin.checksum = checksum(key, strlen(key), image->data, image->bytes);
  return write_all(file, &begin, sizeof begin) && write_all(file, key, strlen(key)) &&
         write_all(file, image->data, image->bytes);
}

/* Under another name first: who reads sees all of an entry or nothing, and of several who write one wins. */
void gpu_cache_write(const helio_host *host, const char *name, const char *key, const vendor_image *image) {
  char path[PATH_MAX], temporary[PATH_MAX + 16];
  if (!entry_path(host, name, key, path, sizeof path)) return;
  snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
  errno = 0;
  int file = make_folders(path) ? mkostemp(temporary, O_CLOEXEC) : -1;
  bool good = file >= 0 && write_entry(file, key, image);
  if (file >= 0) good = close(file) == 0 && good;
  if (good && rename(temporary, path) == 0) return;
  int error = errno;
  if (file >= 0) unlink(temporary);
  host->log(host, HELIO_LOG_DEBUG, "compiled kernels are not kept: %s: %s", path, strerror(error));
}
