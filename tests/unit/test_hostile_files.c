/* SPDX-License-Identifier: Apache-2.0 */
/* Every reader against damaged files: each truncation, each wrong bit, and files changed at random. Whatever is in them
 * is read or refused with a message that names the file, without a crash and without much memory. */
#include <sys/mman.h>
#include <zlib.h>

#include "data/pickle.h"
#include "data_files.h"

typedef const void *reader(hi_file *file);

static const void *read_idx(hi_file *file) {
  return hi_read_idx(file);
}

static const void *read_npy(hi_file *file) {
  return hi_read_npy(file);
}

static const void *read_npz(hi_file *file) {
  return hi_read_npz(file, "x");
}

static const void *read_lists(hi_file *file) {
  return hi_read_npz_sequences(file, "x_train");
}

static const void *read_pickle(hi_file *file) {
  return hi_unpickle(file, 0, 3);
}

static const void *read_csv(hi_file *file) {
  return hi_read_csv(file, &(helio_read_csv_options){.size = sizeof(helio_read_csv_options)});
}

static const void *read_safetensors(hi_file *file) {
  static char path[40];
  static int descriptor = -1;
  if (descriptor < 0) descriptor = memfd_create("x", 0);
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  if (ftruncate(descriptor, 0) || pwrite(descriptor, file->bytes, file->size, 0) != (ssize_t)file->size) return NULL;
  char **names = helio_safetensors_names(path);
  const void *last = NULL;
  for (int i = 0; names && names[i]; i++) last = helio_read_safetensors(path, names[i]);
  free(names);
  return last;
}

/* `whole`: no part of it is a file. */
static const struct {
  const char *name;
  reader *read;
  bool whole;
} files[] = {
    {"type08.idx", read_idx, true},       {"type08.idx.gz", read_idx, true},
    {"type0E.idx", read_idx, true},       {"type0E.idx.gz", read_idx, true},
    {"uint8.npy", read_npy, true},        {"fortran.npy", read_npy, true},
    {"version3.npy", read_npy, true},     {"zip64.npz", read_npz, true},
    {"unsupported.npz", read_npz, false}, {"imdb.npz", read_lists, true},
    {"lists2.pickle", read_pickle, true}, {"lists4.pickle", read_pickle, true},
    {"table.csv", read_csv, false},       {"safetensors/python.safetensors", read_safetensors, true},
};

/* Reads it in memory of exactly its size, so that a sanitizer sees each byte too many. Whether it was a good file. */
static bool try_bytes(reader *read, const unsigned char *bytes, size_t size) {
  bool good = false;
  hi_file *file = hi_file_copy("damaged", bytes, size);
  assert_made(file);
  HELIO_POOL good = read(file) != NULL;
  hi_drop(file);
  helio_error error;
  helio_status status = helio_error_take(&error);
  assert_int_equal(good, status == HELIO_OK);
  if (good) return true;
  bool named = strstr(error.message, "damaged") == error.message || strstr(error.message, "/proc/self/fd/");
  if (!named) fail_msg("%s: the file is not named", error.message);
  bool expected = status == HELIO_BAD_DATA || status == HELIO_NOT_SUPPORTED || status == HELIO_INVALID_ARGUMENT;
  if (!expected) fail_msg("%s: %s", helio_status_name(status), error.message);
  return false;
}

static void test_every_truncation(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(files); i++) {
    size_t size;
    unsigned char *bytes = read_all(golden_data(files[i].name), &size);
    for (size_t part = 0; part < size; part++) {
      bool good = try_bytes(files[i].read, bytes, part);
      if (good && files[i].whole) fail_msg("%s: %zu of %zu bytes were taken for a file", files[i].name, part, size);
    }
    free(bytes);
  }
}

static void test_every_wrong_bit(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(files); i++) {
    size_t size;
    unsigned char *bytes = read_all(golden_data(files[i].name), &size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
      bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
      try_bytes(files[i].read, bytes, size);
      bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    free(bytes);
  }
}

static void test_every_byte_at_its_ends(void **state) {
  (void)state;
  static const unsigned char ends[] = {0, 0x7F, 0x80, 0xFF};
  for (size_t i = 0; i < COUNT_OF(files); i++) {
    size_t size;
    unsigned char *bytes = read_all(golden_data(files[i].name), &size);
    for (size_t at = 0; at < size; at++) {
      unsigned char old = bytes[at];
      for (size_t j = 0; j < COUNT_OF(ends); j++) {
        bytes[at] = ends[j];
        try_bytes(files[i].read, bytes, size);
      }
      bytes[at] = old;
    }
    free(bytes);
  }
}

/* Up to eight changes: a byte, four bytes of ones, a part left out, a part twice. */
static size_t change(unsigned char *bytes, size_t size, size_t room, uint64_t *seed) {
  for (uint32_t i = next_random(seed) % 8 + 1; i > 0 && size > 8; i--) {
    size_t at = next_random(seed) % (size - 4), length = next_random(seed) % (size - at) % 64;
    switch (next_random(seed) % 4) {
    case 0:
      bytes[at] = (unsigned char)next_random(seed);
      break;
    case 1:
      memset(bytes + at, 0xFF, 4);
      break;
    case 2:
      memmove(bytes + at, bytes + at + length, size - at - length);
      size -= length;
      break;
    default:
      if (size + length > room) break;
      memmove(bytes + at + length, bytes + at, size - at);
      size += length;
    }
  }
  return size;
}

static void test_files_changed_at_random(void **state) {
  (void)state;
  uint64_t seed = 6;
  for (size_t i = 0; i < COUNT_OF(files); i++) {
    size_t size;
    unsigned char *bytes = read_all(golden_data(files[i].name), &size), *changed = malloc(size + 1000);
    for (int j = 0; j < 2000; j++) {
      memcpy(changed, bytes, size);
      size_t now = change(changed, size, size + 1000, &seed);
      try_bytes(files[i].read, changed, now);
    }
    free(changed);
    free(bytes);
  }
}

/* ---- archives ---- */

static void put_le(unsigned char *at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * i);
}

/* An archive with one member "x.npy", whose entry says what the caller likes. */
typedef struct archive {
  unsigned char bytes[1 << 17];
  size_t size, data, entry, end;
} archive;

static void make_archive(archive *a, int method, const void *data, size_t packed, uint64_t size, uint32_t crc) {
  *a = (archive){.data = 35, .entry = 35 + packed};
  memcpy(a->bytes, "PK\3\4", 4);
  put_le(a->bytes + 8, (uint64_t)method, 2);
  put_le(a->bytes + 26, 5, 2);
  memcpy(a->bytes + 30, "x.npy", 5);
  memcpy(a->bytes + a->data, data, packed);
  unsigned char *entry = a->bytes + a->entry;
  memcpy(entry, "PK\1\2", 4);
  put_le(entry + 10, (uint64_t)method, 2);
  put_le(entry + 16, crc, 4);
  put_le(entry + 20, packed, 4);
  put_le(entry + 24, size, 4);
  put_le(entry + 28, 5, 2);
  memcpy(entry + 46, "x.npy", 5);
  a->end = a->entry + 51;
  memcpy(a->bytes + a->end, "PK\5\6", 4);
  put_le(a->bytes + a->end + 10, 1, 2);
  put_le(a->bytes + a->end + 12, 51, 4);
  put_le(a->bytes + a->end + 16, a->entry, 4);
  a->size = a->end + 22;
}

static void expect_refused(const archive *a, helio_status status, const char *part) {
  hi_file *file = hi_file_copy("a.npz", a->bytes, a->size);
  assert_made(file);
  assert_null(hi_read_npz(file, "x"));
  expect_error(status, part);
  hi_drop(file);
}

/* `size` zeros, compressed as raw deflate. */
static size_t deflate_zeros(unsigned char *to, size_t room, size_t size) {
  z_stream stream = {.next_out = to, .avail_out = (unsigned)room};
  unsigned char *zeros = calloc(1, size);
  assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = zeros;
  stream.avail_in = (unsigned)size;
  assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
  deflateEnd(&stream);
  free(zeros);
  return room - stream.avail_out;
}

static void test_bombs_in_archives(void **state) {
  (void)state;
  static archive a;
  static unsigned char packed[1 << 16];
  size_t bytes = deflate_zeros(packed, sizeof packed, 50000000);
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  make_archive(&a, 8, packed, bytes, 0xFFFFFFFE, 0);
  expect_refused(&a, HELIO_BAD_DATA, "member \"x.npy\": 4294967294 bytes are promised, which cannot be in");
  make_archive(&a, 8, packed, bytes, 1032 * bytes + 1, 0);
  expect_refused(&a, HELIO_BAD_DATA, "bytes are promised, which cannot be in");
  make_archive(&a, 8, packed, bytes, 1000, 0); /* it unpacks to fifty million */
  expect_refused(&a, HELIO_BAD_DATA, "member \"x.npy\": it unpacks to more than the 1000 bytes that are promised");
  getrusage(RUSAGE_SELF, &after);
  if (!SANITIZED) assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 2000);
  make_archive(&a, 8, packed, bytes, 50000001, 0);
  expect_refused(&a, HELIO_BAD_DATA, "it unpacks to less than the 50000001 bytes that are promised");
}

static void test_bomb_in_gzip(void **state) {
  (void)state;
  static const unsigned char begin[] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 2, 3};
  static unsigned char packed[1 << 16];
  memcpy(packed, begin, sizeof begin);
  /* Zeros are no IDX header; what is promised is checked before the rest is unpacked. */
  size_t bytes = deflate_zeros(packed + 10, sizeof packed - 10, 50000000) + 10;
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  hi_file *file = hi_file_copy("bomb.gz", packed, bytes);
  assert_null(hi_read_idx(file));
  expect_error(HELIO_BAD_DATA, "bomb.gz, unpacked, byte 2: 0x00 is not a type");
  hi_drop(file);
  getrusage(RUSAGE_SELF, &after);
  if (!SANITIZED) assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 2000);
}

static void test_promises_of_gzip(void **state) {
  (void)state;
  static const unsigned char header[] = {0, 0, 8, 1, 0x7F, 0xFF, 0xFF, 0xFF};
  unsigned char packed[100];
  z_stream stream = {
      .next_in = (unsigned char *)(uintptr_t)header, .avail_in = 8, .next_out = packed, .avail_out = 100};
  assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
  assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
  deflateEnd(&stream);
  hi_file *file = hi_file_copy("x.gz", packed, 100 - stream.avail_out);
  assert_null(hi_read_idx(file));
  expect_error(HELIO_BAD_DATA, "x.gz, unpacked, byte 0: 2147483647 bytes of data are promised, which cannot be in");
  hi_drop(file);
}

/* What is changed in an archive that is well but for its member, which has no header to speak of. */
static const struct {
  int of; /* 0: the beginning, 1: the entry, 2: the end */
  size_t at;
  int bytes;
  uint64_t value;
  helio_status status;
  const char *part;
} wrong_archives[] = {
    {1, 16, 4, 1, HELIO_BAD_DATA, "a.npz, byte 46: member \"x.npy\": its sum (CRC-32) is "},
    {1, 8, 2, 1, HELIO_NOT_SUPPORTED, "member \"x.npy\": it is encrypted"},
    {1, 10, 2, 14, HELIO_NOT_SUPPORTED, "it is compressed by method 14, not by deflate"},
    {1, 20, 4, 12, HELIO_BAD_DATA, "12 bytes that are only stored cannot be a file of 11 bytes"},
    {1, 42, 4, 1, HELIO_BAD_DATA, "its header is not at byte 1"},
    {1, 42, 4, 0xFFFFFFF0, HELIO_BAD_DATA, "its header is not at byte 4294967280"},
    {1, 42, 4, 0xFFFFFFFF, HELIO_BAD_DATA, "a member lacks its ZIP64 numbers"},
    {1, 0, 4, 0, HELIO_BAD_DATA, "no member of the archive is described here"},
    {1, 28, 2, 6, HELIO_BAD_DATA, "a member's entry goes beyond the list"},
    {1, 46, 1, 0, HELIO_BAD_DATA, "a name has a 0 in it"},
    {1, 46, 1, 'y', HELIO_INVALID_ARGUMENT, "there is no array \"x\"; there are: y"},
    {0, 26, 2, 50, HELIO_BAD_DATA, "its 11 bytes from byte 80 on go beyond byte 46"},
    {0, 30, 1, 'y', HELIO_BAD_DATA, "a.npz, byte 0: this is not the header of \"x.npy\""},
    {0, 8, 2, 8, HELIO_BAD_DATA, "this is not the header of \"x.npy\""},
    {2, 0, 1, 0, HELIO_BAD_DATA, "the file does not end as a ZIP archive, or is cut off"},
    {2, 20, 2, 1, HELIO_BAD_DATA, "the file does not end as a ZIP archive, or is cut off"},
    {2, 4, 2, 1, HELIO_NOT_SUPPORTED, "the archive is split over several disks"},
    {2, 10, 2, 2, HELIO_BAD_DATA, "1 members are listed, 2 are promised"},
    {2, 12, 4, 50, HELIO_BAD_DATA, "the list of members, 50 bytes from byte 46 on, does not end here"},
    {2, 16, 4, 1, HELIO_BAD_DATA, "does not end here"},
    {2, 10, 2, 0xFFFF, HELIO_BAD_DATA, "the ZIP64 record that this end needs is missing"},
};

static void test_wrong_archives(void **state) {
  (void)state;
  static archive a;
  static const char npy[] = "\x93NUMPY\1\0\1\0 ";
  uint32_t crc = (uint32_t)crc32(0, (const unsigned char *)npy, 11);
  for (size_t i = 0; i < COUNT_OF(wrong_archives); i++) {
    make_archive(&a, 0, npy, 11, 11, crc);
    put_le(a.bytes +
               (wrong_archives[i].of == 0   ? 0
                : wrong_archives[i].of == 1 ? a.entry
                                            : a.end) +
               wrong_archives[i].at,
           wrong_archives[i].value, wrong_archives[i].bytes);
    expect_refused(&a, wrong_archives[i].status, wrong_archives[i].part);
  }
  make_archive(&a, 0, npy, 11, 11, crc);
  expect_refused(&a, HELIO_BAD_DATA,
                 "a.npz, member x.npy, byte 11: the header is not as it should be: '{' is expected");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      POOL_TEST(test_every_truncation),       POOL_TEST(test_every_wrong_bit),
      POOL_TEST(test_every_byte_at_its_ends), POOL_TEST(test_files_changed_at_random),
      POOL_TEST(test_bombs_in_archives),      POOL_TEST(test_bomb_in_gzip),
      POOL_TEST(test_promises_of_gzip),       POOL_TEST(test_wrong_archives),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
