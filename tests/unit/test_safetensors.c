/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tensors: what Python's library writes is read and written to the byte, and what is wrong is refused.
 * HELIO_TEST_KEEP=FILE keeps the file that Python should be able to read (golden/safetensors/make_safetensors.py
 * --check FILE). */
#include "safetensors_file.h"

#include <fcntl.h>
#include <math.h>

#include "tensor/tensor.h"

/* A file with this header, whose length is claimed to be `claimed`, and `data` bytes that are 0 behind it. */
static void put_file(const char *header, size_t length, uint64_t claimed, size_t data) {
  char *bytes = calloc(1, 8 + length + data);
  memcpy(bytes, &claimed, 8);
  memcpy(bytes + 8, header, length);
  put_bytes(bytes, 8 + length + data);
  free(bytes);
}

static const char *golden(const char *name) {
  static char whole[PATH_MAX];
  const char *source = getenv("HELIO_TEST_SOURCE");
  const char *folders[] = {source, "tests", ".", "..", "../tests"};
  for (size_t i = source == NULL; i < COUNT_OF(folders); i++) {
    snprintf(whole, sizeof whole, "%s/golden/safetensors/%s", folders[i], name);
    if (access(whole, R_OK) == 0) return whole;
  }
  fail_msg("golden/safetensors/%s is not under HELIO_TEST_SOURCE, nor near", name);
  return NULL;
}

/* ---- what Python writes ---- */

static const int64_t ids[] = {INT64_MIN, -1, 0, INT64_MAX};
static const double doubles[] = {0.1, -INFINITY, 5e-324, 1.7976931348623157e308};
static const float kernel[] = {1, 2, 3, -0.0f, INFINITY, 1e-45f}, scale[] = {0.5f};
static const int32_t counts[] = {INT32_MIN, INT32_MAX};
static const uint16_t brains[] = {0x3F80, 0xC000, 0x7F80}, halves[] = {0x3C00, 0xC000, 0x7BFF, 1};
static const uint8_t greetings[] = {0, 1, 254, 255, 7}, flags[] = {1, 0, 1};

/* In the order of the file. */
static const struct {
  const char *name;
  helio_type type;
  helio_shape shape;
  const void *data;
  size_t bytes;
} python[] = {
    {"ids", HELIO_INT64, {1, {4}}, ids, sizeof ids},
    {"doubles", HELIO_FLOAT64, {2, {2, 2}}, doubles, sizeof doubles},
    {"dense/bias", HELIO_FLOAT32, {2, {0, 3}}, NULL, 0},
    {"dense/kernel", HELIO_FLOAT32, {2, {2, 3}}, kernel, sizeof kernel},
    {"scale", HELIO_FLOAT32, {0, {0}}, scale, sizeof scale},
    {"counts", HELIO_INT32, {3, {1, 2, 1}}, counts, sizeof counts},
    {"brains", HELIO_BFLOAT16, {1, {3}}, brains, sizeof brains},
    {"halves", HELIO_FLOAT16, {1, {4}}, halves, sizeof halves},
    {"Gr\303\274\303\237e \"\346\227\245\346\234\254\"\n", HELIO_UINT8, {1, {5}}, greetings, sizeof greetings},
    {"flags", HELIO_BOOL, {1, {3}}, flags, sizeof flags},
};

static void check_python_tensors(const hi_safetensors *file) {
  assert_int_equal(hi_safetensors_count(file), COUNT_OF(python));
  for (size_t i = 0; i < COUNT_OF(python); i++) {
    const hi_safetensors_entry *entry = hi_safetensors_find(file, python[i].name);
    assert_non_null(entry);
    assert_ptr_equal(entry, hi_safetensors_at(file, (int)i));
    assert_string_equal(entry->name, python[i].name);
    assert_int_equal(entry->type, python[i].type);
    assert_true(hi_shape_equal(&entry->shape, &python[i].shape));
    assert_int_equal(entry->bytes, python[i].bytes);
    char *data = malloc(entry->bytes + 1); /* to the byte, but for those without any */
    assert_ok(hi_safetensors_read(file, entry, data));
    if (entry->bytes) assert_memory_equal(data, python[i].data, entry->bytes);
    free(data);
  }
}

static void test_file_of_python_reads(void **state) {
  (void)state;
  hi_safetensors *file = hi_safetensors_open(golden("python.safetensors"));
  assert_made(file);
  check_python_tensors(file);
  assert_string_equal(hi_safetensors_metadata(file, "format"), "pt \\ \"\303\274\"");
  assert_null(hi_safetensors_metadata(file, "forma"));
  assert_null(hi_safetensors_find(file, "id"));
  assert_null(hi_safetensors_find(file, "__metadata__"));
  assert_null(hi_safetensors_at(file, -1));
  assert_null(hi_safetensors_at(file, COUNT_OF(python)));
  hi_safetensors_close(file);
  hi_safetensors_close(NULL);
}

static void test_written_as_python_does(void **state) {
  (void)state;
  size_t bytes;
  const char *kept = getenv("HELIO_TEST_KEEP");
  hi_safetensors_writer *writer = hi_safetensors_begin(kept ? kept : path);
  assert_made(writer);
  for (size_t i = 0; i < COUNT_OF(python); i++) {
    assert_ok(hi_safetensors_add(writer, python[i].name, python[i].type, &python[i].shape, python[i].data));
  }
  assert_ok(hi_safetensors_add_metadata(writer, "format", "pt \\ \"\303\274\""));
  assert_ok(hi_safetensors_finish(writer));
  if (kept) return;
  char *expected = read_all(golden("python.safetensors"), &bytes);
  assert_file_is(expected, bytes);
  free(expected);
}

static void test_unsupported_type_is_named(void **state) {
  (void)state;
  assert_null(hi_safetensors_open(golden("unsupported.safetensors")));
  expect_error(HELIO_NOT_SUPPORTED,
               "unsupported.safetensors, byte 17: tensor \"small\": the dtype I8 is not supported");
}

/* ---- what we write ---- */

static const helio_shape shapes[] = {
    {0, {0}}, {1, {0}}, {1, {1}}, {1, {7}}, {3, {2, 0, 5}}, {2, {3, 5}}, {8, {1, 2, 1, 3, 1, 1, 2, 1}}, {1, {70001}},
};

static void fill(unsigned char *data, size_t bytes, helio_type type, uint64_t seed) {
  for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)(next_random(&seed) & (type == HELIO_BOOL ? 1 : 255));
}

static void check_read_back(const hi_safetensors *file, const char *name, helio_type type, const helio_shape *shape) {
  const hi_safetensors_entry *entry = hi_safetensors_find(file, name);
  assert_non_null(entry);
  assert_int_equal(entry->type, type);
  assert_true(hi_shape_equal(&entry->shape, shape));
  assert_int_equal(entry->offset % helio_type_bytes(type), 0);
  unsigned char *found = malloc(entry->bytes + 1), *expected = malloc(entry->bytes + 1);
  fill(expected, entry->bytes, type, entry->bytes + type);
  assert_ok(hi_safetensors_read(file, entry, found));
  assert_memory_equal(found, expected, entry->bytes);
  free(expected);
  free(found);
}

/* Bools first: what is aligned must not be so by chance. */
static void test_round_trip(void **state) {
  (void)state;
  char name[100];
  unsigned char *data[HELIO_BOOL + 1][COUNT_OF(shapes)];
  hi_safetensors_writer *writer = hi_safetensors_begin(path);
  assert_made(writer);
  for (int type = HELIO_BOOL; type >= HELIO_FLOAT32; type--) {
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
      size_t bytes;
      assert_true(hi_shape_bytes(&shapes[i], (helio_type)type, &bytes));
      data[type][i] = malloc(bytes + 1);
      fill(data[type][i], bytes, (helio_type)type, bytes + (size_t)type);
      snprintf(name, sizeof name, "%s %zu", helio_type_name((helio_type)type), i);
      assert_ok(hi_safetensors_add(writer, name, (helio_type)type, &shapes[i], data[type][i]));
    }
  }
  assert_ok(hi_safetensors_finish(writer));
  hi_safetensors *file = hi_safetensors_open(path);
  assert_made(file);
  for (int type = HELIO_FLOAT32; type <= HELIO_BOOL; type++) {
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
      free(data[type][i]);
      snprintf(name, sizeof name, "%s %zu", helio_type_name((helio_type)type), i);
      check_read_back(file, name, (helio_type)type, &shapes[i]);
    }
  }
  hi_safetensors_close(file);
}

/* The checksum here, and that in the next test, are Python's zlib.crc32() of such bytes with zeros in its place. */
static void test_bytes_of_a_file(void **state) {
  (void)state;
  static const char expected[] = "\260\0\0\0\0\0\0\0"
                                 "{\"__metadata__\":{\"helio_crc32\":\"0x8d34fa7b\",\"b\":\"\\u0001\",\"a\":\"\"},"
                                 "\"wide\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                                 "\"\":{\"dtype\":\"U8\",\"shape\":[1,1],\"data_offsets\":[8,9]}}  "
                                 "\0\0\200\77\0\0\0\300\7";
  static const float wide[] = {1, -2};
  hi_safetensors_writer *writer = hi_safetensors_begin(path);
  assert_made(writer);
  assert_ok(hi_safetensors_add(writer, "", HELIO_UINT8, &HELIO_SHAPE(1, 1), "\7"));
  assert_ok(hi_safetensors_add(writer, "wide", HELIO_FLOAT32, &HELIO_SHAPE(2), wide));
  assert_ok(hi_safetensors_add_metadata(writer, "b", "\1"));
  assert_ok(hi_safetensors_add_metadata(writer, "a", ""));
  assert_ok(hi_safetensors_finish(writer));
  assert_file_is(expected, sizeof expected - 1);
}

static void test_file_without_tensors(void **state) {
  (void)state;
  hi_safetensors_writer *writer = hi_safetensors_begin(path);
  assert_made(writer);
  assert_ok(hi_safetensors_finish(writer));
  assert_file_is("\60\0\0\0\0\0\0\0{\"__metadata__\":{\"helio_crc32\":\"0xb3747085\"}}   ", 56);
  hi_safetensors *file = hi_safetensors_open(path);
  assert_made(file);
  assert_int_equal(hi_safetensors_count(file), 0);
  assert_null(hi_safetensors_find(file, "a"));
  assert_null(hi_safetensors_metadata(file, "a"));
  hi_safetensors_close(file);
}

static void test_many_tensors(void **state) {
  (void)state;
  enum { MANY = 20000 };
  static int32_t values[MANY];
  char name[40];
  hi_safetensors_writer *writer = hi_safetensors_begin(path);
  assert_made(writer);
  for (int i = 0; i < MANY; i++) {
    values[i] = i;
    snprintf(name, sizeof name, "layer/%d", i * 7919 % MANY);
    assert_ok(hi_safetensors_add(writer, name, HELIO_INT32, &HELIO_SCALAR, &values[i]));
  }
  assert_ok(hi_safetensors_finish(writer));
  hi_safetensors *file = hi_safetensors_open(path);
  assert_made(file);
  assert_int_equal(hi_safetensors_count(file), MANY);
  for (int i = 0; i < MANY; i++) {
    int32_t value;
    snprintf(name, sizeof name, "layer/%d", i * 7919 % MANY);
    const hi_safetensors_entry *entry = hi_safetensors_find(file, name);
    assert_ptr_equal(entry, hi_safetensors_at(file, i));
    assert_ok(hi_safetensors_read(file, entry, &value));
    assert_int_equal(value, i);
  }
  hi_safetensors_close(file);
}

/* ---- checksums ---- */

/* The polynomial of ISO 3309, as in gzip (RFC 1952, section 8), bit by bit. */
static uint32_t crc32_of(const void *data, size_t bytes) {
  uint32_t sum = UINT32_MAX;
  for (const unsigned char *byte = data; bytes-- > 0; byte++) {
    sum ^= *byte;
    for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320 : 0);
  }
  return ~sum;
}

static void test_file_of_python_is_whole(void **state) {
  (void)state;
  hi_safetensors *file = hi_safetensors_open_verified(golden("python.safetensors"));
  assert_made(file);
  assert_true(hi_safetensors_has_checksum(file));
  assert_string_equal(hi_safetensors_path(file), golden("python.safetensors"));
  assert_non_null(hi_safetensors_metadata(file, "helio_crc32"));
  check_python_tensors(file);
  hi_safetensors_close(file);
}

/* Files of others have none. */
static void test_no_checksum(void **state) {
  (void)state;
  put_file("{\"__metadata__\":{\"crc32\":\"?\"}}", 30, 30, 0);
  hi_safetensors *file = hi_safetensors_open_verified(path);
  assert_made(file);
  assert_false(hi_safetensors_has_checksum(file));
  hi_safetensors_close(file);
  assert_null(hi_safetensors_open_verified("/nowhere/x"));
  expect_error(HELIO_IO_FAILURE, "/nowhere/x cannot be opened");
}

/* Only where it makes the name of the checksum another does it make a file of others. */
static void check_flip(size_t at, int flip) {
  const size_t key = 8 + strlen("{\"__metadata__\":{\""), key_end = key + strlen("helio_crc32");
  hi_safetensors *file = hi_safetensors_open_verified(path);
  bool renamed = at >= key && at < key_end && file && !hi_safetensors_has_checksum(file);
  if (file && !renamed) fail_msg("byte %zu may be changed by %d", at, flip);
  hi_safetensors_close(file);
}

static void test_every_flip_is_seen(void **state) {
  (void)state;
  size_t bytes;
  int sums = 0;
  unsigned char *data = (unsigned char *)read_all(golden("python.safetensors"), &bytes);
  put_bytes(data, bytes);
  int file = open(path, O_WRONLY);
  for (size_t i = 0; i < bytes; i++) {
    for (int flip = 1; flip < 256; flip = flip == 128 ? 255 : 2 * flip) {
      assert_int_equal(pwrite(file, &(unsigned char){data[i] ^ (unsigned char)flip}, 1, (off_t)i), 1);
      check_flip(i, flip);
      sums += strstr(helio_error_message(), "x.safetensors, byte 42: the file is damaged: its checksum is 0x") != NULL;
      helio_error_take(NULL);
    }
    assert_int_equal(pwrite(file, &data[i], 1, (off_t)i), 1);
  }
  close(file);
  assert_true(opens_verified());
  assert_true(sums > 1000); /* else something else was seen first */
  free(data);
}

static void test_wrong_checksum_is_named(void **state) {
  (void)state;
  static const char header[] = "{\"__metadata__\":{\"helio_crc32\":\"0x12345678\"}} ";
  char zeros[8 + sizeof header], expected[200];
  put_file(header, sizeof header - 1, sizeof header - 1, 0);
  size_t bytes;
  char *data = read_all(path, &bytes);
  memcpy(zeros, data, bytes);
  memset(zeros + 42, '0', 8);
  snprintf(expected, sizeof expected,
           "x.safetensors, byte 42: the file is damaged: its checksum is 0x%08x and should be 0x12345678",
           crc32_of(zeros, bytes));
  assert_false(opens_verified());
  expect_error(HELIO_BAD_DATA, expected);
  free(data);
}

/* The file is read in pieces of 1 MiB. The checksum stands across the end of one. */
static void test_checksum_anywhere(void **state) {
  (void)state;
  enum { PIECE = 1 << 20, LENGTH = PIECE + 100 };
  static const char before[] = "{\"__metadata__\":{\"a\":\"", middle[] = "\",\"helio_crc32\" : \"0x";
  char *header = malloc(LENGTH + 1), *digits = NULL, text[9];
  for (int at = PIECE - 9; at <= PIECE + 1; at++) { /* of the first digit, in the file */
    memset(header, ' ', LENGTH);
    memset(header, 'x', (size_t)at);
    memcpy(header, before, sizeof before - 1);
    digits = header + at - 8;
    memcpy(digits - (sizeof middle - 1), middle, sizeof middle - 1);
    memcpy(digits, "00000000\"}}", 11);
    put_file(header, LENGTH, LENGTH, 0);
    size_t bytes = LENGTH + 8;
    char *file = malloc(bytes);
    memcpy(file, &(uint64_t){LENGTH}, 8);
    memcpy(file + 8, header, LENGTH);
    snprintf(text, sizeof text, "%08x", crc32_of(file, bytes));
    free(file);
    memcpy(digits, text, 8);
    put_file(header, LENGTH, LENGTH, 0);
    if (!opens_verified()) fail_msg("digits at byte %d: %s", at, helio_error_message());
    header[30] = 'y';
    put_file(header, LENGTH, LENGTH, 0);
    assert_false(opens_verified());
    expect_error(HELIO_BAD_DATA, "the file is damaged: its checksum is");
  }
  free(header);
}

/* ---- hostile files ---- */

/* A description of one float32 at the front, and one of any type, shape and place. */
#define ONE                       "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"
#define TENSOR(type, shape, from) "{\"t\":{\"dtype\":" type ",\"shape\":" shape ",\"data_offsets\":" from "}}"
#define TEXT(text)                text, sizeof(text) - 1
#define BAD                       HELIO_BAD_DATA

static const struct {
  const char *header;
  size_t length;
  size_t data;
  helio_status status;
  const char *part;
} hostile[] = {
    {TEXT(" {}"), 0, BAD, "byte 8: the header is not as it should be: something else stands where '{' is expected"},
    {TEXT("{"), 0, BAD, "byte 9: the header is not as it should be: the text ends"},
    {TEXT("[]"), 0, BAD, "'{' is expected"},
    {TEXT("null"), 0, BAD, "'{' is expected"},
    {TEXT("{}x"), 0, BAD, "byte 10: the header is not as it should be: something follows"},
    {TEXT("{}\0"), 0, BAD, "something follows"},
    {TEXT("{}{}"), 0, BAD, "something follows"},
    {TEXT("{,}"), 0, BAD, "'\"' is expected"},
    {TEXT("{a:{}}"), 0, BAD, "'\"' is expected"},
    {TEXT("{1:{}}"), 0, BAD, "'\"' is expected"},
    {TEXT("{" ONE ",}"), 4, BAD, "'\"' is expected"},
    {TEXT("{" ONE), 4, BAD, "',' is expected"},
    {TEXT("{" ONE " \"b\":{}}"), 4, BAD, "',' is expected"},
    {TEXT("{\"a\"}"), 0, BAD, "':' is expected"},
    {TEXT("{\"a\":"), 0, BAD, "the header is not"},
    {TEXT("{\"a"), 0, BAD, "the header is not"},
    {TEXT("{\"a\":}"), 0, BAD, "tensor \"a\": its description is not an object"},
    {TEXT("{\"a\":[]}"), 0, BAD, "tensor \"a\": its description is not an object"},
    {TEXT("{\"a\":{}}"), 0, BAD, "tensor \"a\": dtype is missing"},
    {TEXT("{\"a\":{\"dtype\":\"F32\""), 0, BAD, "the header is not"},
    /* names */
    {TEXT("{" ONE "," ONE "}"), 4, BAD, "begin here"},
    {TEXT("{\"\\u0061\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}," ONE "}"), 4, BAD,
     "byte 120: the data of a second tensor \"a\" begin here"},
    {TEXT("{\"a\\u0000b\":{}}"), 0, BAD, "\\u0000 is not allowed"},
    {TEXT("{\"a\0b\":{}}"), 0, BAD, "control character"},
    {TEXT("{\"a\nb\":{}}"), 0, BAD, "unexpected newline"},
    {TEXT("{\"\377\":{}}"), 0, BAD, "unable to decode byte 0xff"},
    {TEXT("{\"\300\200\":{}}"), 0, BAD, "unable to decode byte 0xc0"},
    {TEXT("{\"\355\240\200\":{}}"), 0, BAD, "unable to decode byte 0xed"},
    {TEXT("{\"\\ud800\":{}}"), 0, BAD, "invalid Unicode"},
    {TEXT("{\"\\x\":{}}"), 0, BAD, "invalid escape"},
    {TEXT("{\"\\u001b[2J\":{}}"), 0, BAD, "tensor \"?[2J\": dtype"},
    /* metadata */
    {TEXT("{\"__metadata__\":[]}"), 0, BAD, "'{' is expected"},
    {TEXT("{\"__metadata__\":null}"), 0, BAD, "'{' is expected"},
    {TEXT("{\"__metadata__\":{\"a\":1}}"), 0, BAD, "byte 29: a value of __metadata__ is not a string"},
    {TEXT("{\"__metadata__\":{\"a\":{}}}"), 0, BAD, "is not a string"},
    {TEXT("{\"__metadata__\":{\"a\":\"\\u0000\"}}"), 0, BAD, "\\u0000 is not allowed"},
    {TEXT("{\"__metadata__\":{\"a\":\"b\""), 0, BAD, "the text ends"},
    {TEXT("{\"__metadata__\":{\"a\":\"b\",\"a\":\"b\"}}"), 0, BAD, "the key \"a\" stands twice in __metadata__"},
#define CHECKSUM(value) "{\"__metadata__\":{\"helio_crc32\":" value "}}"
    {TEXT(CHECKSUM("\"\"")), 0, BAD, "byte 39: the value of helio_crc32 is not 0x and 8 digits (0 to 9, a to f)"},
    {TEXT(CHECKSUM("\"0x1234567\"")), 0, BAD, "is not 0x and 8 digits"},
    {TEXT(CHECKSUM("\"0x123456789\"")), 0, BAD, "is not 0x and 8 digits"},
    {TEXT(CHECKSUM("\"0x1234567A\"")), 0, BAD, "is not 0x and 8 digits"},
    {TEXT(CHECKSUM("\"0X12345678\"")), 0, BAD, "is not 0x and 8 digits"},
    {TEXT(CHECKSUM("\" x12345678\"")), 0, BAD, "is not 0x and 8 digits"},
    {TEXT(CHECKSUM("\"0x\\u0031234567\"")), 0, BAD, "is not 0x and 8 digits"},
    {TEXT(CHECKSUM("12345678")), 0, BAD, "a value of __metadata__ is not a string"},
    {TEXT(CHECKSUM("\"0x12345678\",\"helio_crc32\":\"0x12345678\"")), 0, BAD, "\"helio_crc32\" stands twice"},
    {TEXT("{\"__metadata__\":{},\"__metadata__\":{}}"), 0, BAD, "byte 42: __metadata__ stands twice"},
    /* types */
    {TEXT("{\"t\":{\"shape\":[],\"data_offsets\":[0,0]}}"), 0, BAD, "dtype is missing"},
    {TEXT(TENSOR("7", "[]", "[0,4]")), 4, BAD, "dtype is missing or not a string"},
    {TEXT(TENSOR("\"F31\"", "[]", "[0,4]")), 4, BAD, "\"F31\" is not a dtype"},
    {TEXT(TENSOR("\"f32\"", "[]", "[0,4]")), 4, BAD, "is not a dtype"},
    {TEXT(TENSOR("\"\"", "[]", "[0,4]")), 4, BAD, "is not a dtype"},
    {TEXT(TENSOR("\"U16\"", "[2]", "[0,4]")), 4, HELIO_NOT_SUPPORTED, "the dtype U16 is not supported"},
    {TEXT(TENSOR("\"F8_E4M3\"", "[4]", "[0,4]")), 4, HELIO_NOT_SUPPORTED, "the dtype F8_E4M3 is not supported"},
    /* shapes */
    {TEXT("{\"t\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}"), 4, BAD, "shape is missing"},
    {TEXT(TENSOR("\"F32\"", "1", "[0,4]")), 4, BAD, "shape is missing or not an array"},
    {TEXT(TENSOR("\"F32\"", "{}", "[0,4]")), 4, BAD, "shape is missing or not an array"},
    {TEXT(TENSOR("\"F32\"", "[1,-1]", "[0,4]")), 4, BAD, "extent 1 of the shape is not a whole number"},
    {TEXT(TENSOR("\"F32\"", "[1.0]", "[0,4]")), 4, BAD, "extent 0 of the shape is not a whole number"},
    {TEXT(TENSOR("\"F32\"", "[1e0]", "[0,4]")), 4, BAD, "extent 0 of the shape is not a whole number"},
    {TEXT(TENSOR("\"F32\"", "[\"1\"]", "[0,4]")), 4, BAD, "is not a whole number"},
    {TEXT(TENSOR("\"F32\"", "[[1]]", "[0,4]")), 4, BAD, "is not a whole number"},
    {TEXT(TENSOR("\"F32\"", "[true]", "[0,4]")), 4, BAD, "is not a whole number"},
    {TEXT(TENSOR("\"F32\"", "[01]", "[0,4]")), 4, BAD, "invalid token"},
    {TEXT(TENSOR("\"F32\"", "[9223372036854775808]", "[0,4]")), 4, BAD, "too big integer"},
    {TEXT(TENSOR("\"F32\"", "[1e999]", "[0,4]")), 4, BAD, "overflow"},
    {TEXT(TENSOR("\"F32\"", "[9223372036854775807]", "[0,4]")), 4, BAD, "more elements than fit into memory"},
    {TEXT(TENSOR("\"F32\"", "[4294967296,4294967296]", "[0,0]")), 0, BAD, "more elements than fit into memory"},
    {TEXT(TENSOR("\"F64\"", "[2147483648,1073741824]", "[0,0]")), 0, BAD, "more elements than fit into memory"},
    {TEXT(TENSOR("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]")), 4, HELIO_NOT_SUPPORTED, "it has 9 axes"},
    {TEXT(TENSOR("\"F32\"", "[1],\"shape\":[1]", "[0,4]")), 4, BAD, "duplicate object key"},
    /* places */
    {TEXT("{\"t\":{\"dtype\":\"F32\",\"shape\":[]}}"), 4, BAD, "data_offsets is not a pair"},
    {TEXT(TENSOR("\"F32\"", "[]", "4")), 4, BAD, "data_offsets is not a pair"},
    {TEXT(TENSOR("\"F32\"", "[]", "[4]")), 4, BAD, "data_offsets is not a pair"},
    {TEXT(TENSOR("\"F32\"", "[]", "[0,4,4]")), 4, BAD, "data_offsets is not a pair"},
    {TEXT(TENSOR("\"F32\"", "[]", "[0,4.0]")), 4, BAD, "data_offsets is not a pair"},
    {TEXT(TENSOR("\"F32\"", "[]", "[0,\"4\"]")), 4, BAD, "data_offsets is not a pair"},
    {TEXT(TENSOR("\"F32\"", "[]", "[-4,0]")), 4, BAD, "data_offsets is not a pair"},
    {TEXT(TENSOR("\"F32\"", "[]", "[4,0]")), 4, BAD, "data_offsets is not a pair of whole numbers in order"},
    {TEXT(TENSOR("\"F32\"", "[]", "[0,5]")), 5, BAD,
     "5 bytes of data for the type float32 and the shape (), which need 4"},
    {TEXT(TENSOR("\"F32\"", "[0]", "[0,4]")), 4, BAD, "4 bytes of data"},
    {TEXT(TENSOR("\"F32\"", "[]", "[0,4]")), 3, BAD, "its data would end at byte 65, the file ends at byte 64"},
    {TEXT(TENSOR("\"F32\"", "[]", "[0,4]")), 0, BAD, "its data would end"},
    {TEXT(TENSOR("\"F32\"", "[]", "[0,4]")), 5, BAD, "byte 65: what lies from here to the end belongs to no tensor"},
    {TEXT(TENSOR("\"F32\"", "[]", "[1,5]")), 5, BAD,
     "byte 62: the data of tensor \"t\" begin here instead of at byte 61"},
    {TEXT(TENSOR("\"F32\"", "[]", "[9223372036854775803,9223372036854775807]")), 4, BAD, "its data would end"},
    {TEXT("{" ONE ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[3,7]}}"), 7, BAD, "\"b\" begin here"},
    {TEXT("{" ONE ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"), 4, BAD, "\"b\" begin here"},
    {TEXT("{" ONE ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[5,9]}}"), 9, BAD, "\"b\" begin here"},
    {TEXT("{" ONE ",\"b\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[2,2]}}"), 4, BAD, "\"b\" begin here"},
    {TEXT("{}"), 1, BAD, "byte 10: what lies from here to the end belongs to no tensor"},
};

static void test_hostile_headers(void **state) {
  (void)state;
  int files = open_files(), wrong = 0;
  for (size_t i = 0; i < COUNT_OF(hostile); i++) {
    helio_error error;
    put_file(hostile[i].header, hostile[i].length, hostile[i].length, hostile[i].data);
    hi_safetensors *file = hi_safetensors_open(path);
    helio_status status = helio_error_take(&error);
    if (!file && status == hostile[i].status && strstr(error.message, hostile[i].part)) continue;
    print_error("%s\n  should say %s\n  but says   %s\n", hostile[i].header, hostile[i].part, error.message);
    hi_safetensors_close(file);
    wrong++;
  }
  assert_int_equal(wrong, 0);
  assert_int_equal(open_files(), files);
}

/* What looks odd but is legal. */
static void test_unusual_headers(void **state) {
  (void)state;
  static const struct {
    const char *header;
    size_t data;
  } unusual[] = {
      {"{}", 0},
      {"{ }\t\r\n ", 0},
      {"{\"__metadata__\":{}}", 0},
      {"{ \"a\" : { \"shape\" : [ ] , \"data_offsets\" : [ 0 , 4 ] , \"dtype\" : \"F32\" } }", 4},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4],\"more\":[{}]}}", 4},
      {"{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,5]}," ONE "}", 5},
      {"{\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]}," ONE "}", 4},
      {"{\"b\":{\"dtype\":\"U8\",\"shape\":[0,281474976710656,9],\"data_offsets\":[0,0]}," ONE "}", 4},
  };
  for (size_t i = 0; i < COUNT_OF(unusual); i++) {
    put_file(unusual[i].header, strlen(unusual[i].header), strlen(unusual[i].header), unusual[i].data);
    hi_safetensors *file = hi_safetensors_open(path);
    assert_made(file);
    assert_int_equal(hi_safetensors_count(file) > 0, unusual[i].data > 0);
    hi_safetensors_close(file);
  }
}

static void test_nested_too_deep(void **state) {
  (void)state;
  enum { DEEP = 1000000 };
  char *text = malloc(DEEP);
  for (int inside = 0; inside < 2; inside++) {
    memset(text, '[', DEEP);
    strcpy(text, inside ? "{\"a\":{\"dtype\":" : "{\"a\":");
    text[strlen(text)] = '[';
    put_file(text, DEEP, DEEP, 0);
    assert_null(hi_safetensors_open(path));
    expect_error(HELIO_BAD_DATA, inside ? "maximum parsing depth" : "is not an object");
  }
  free(text);
}

static void test_hostile_lengths(void **state) {
  (void)state;
  const uint64_t lengths[] = {0, 3, 9, 100000001, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX - 8, UINT64_MAX};
  for (size_t i = 0; i < COUNT_OF(lengths); i++) {
    put_file("{}", 2, lengths[i], 0);
    assert_null(hi_safetensors_open(path));
    expect_error(HELIO_BAD_DATA,
                 "x.safetensors, byte 0: this is not a .safetensors file, or it is damaged: a header of ");
  }
  put_bytes("\2\0\0\0\0\0\0", 7);
  assert_null(hi_safetensors_open(path));
  expect_error(HELIO_BAD_DATA,
               "byte 7: this is not a .safetensors file, or it is cut off: it ends inside its first eight bytes");
  put_file("{}", 2, 100000001, 0);
  assert_int_equal(truncate(path, 200000000), 0);
  assert_null(hi_safetensors_open(path));
  expect_error(HELIO_BAD_DATA, "the file has 200000000 in all, and no header has more than 100000000");
}

static void test_not_a_regular_file(void **state) {
  (void)state;
  const char *names[] = {folder, path, "/dev/zero", "/dev/null"};
  assert_int_equal(mkfifo(path, 0600), 0);
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    assert_null(hi_safetensors_open(names[i]));
    expect_error(HELIO_INVALID_ARGUMENT, "is not a regular file");
  }
  assert_null(hi_safetensors_open("/nowhere/x"));
  expect_error(HELIO_IO_FAILURE, "/nowhere/x cannot be opened: No such file or directory");
  assert_null(hi_safetensors_open(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "path is NULL");
}

static void test_bool_of_two(void **state) {
  (void)state;
  static const char header[] = "{\"b\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]}}";
  char data[3];
  put_file(header, sizeof header - 1, sizeof header - 1, 3);
  int file = open(path, O_WRONLY);
  assert_int_equal(pwrite(file, "\1\2", 2, 8 + sizeof header - 1), 2);
  close(file);
  hi_safetensors *tensors = hi_safetensors_open(path);
  assert_made(tensors);
  assert_int_equal(hi_safetensors_read(tensors, hi_safetensors_at(tensors, 0), data), HELIO_BAD_DATA);
  expect_error(HELIO_BAD_DATA, "byte 64: 2 in tensor \"b\" is not a bool");
  hi_safetensors_close(tensors);
}

static void test_file_that_shrinks(void **state) {
  (void)state;
  static const char header[] = "{" ONE "}";
  float value;
  put_file(header, sizeof header - 1, sizeof header - 1, 4);
  hi_safetensors *file = hi_safetensors_open(path);
  assert_made(file);
  assert_int_equal(truncate(path, 8 + sizeof header - 1 + 3), 0);
  assert_int_equal(hi_safetensors_read(file, hi_safetensors_at(file, 0), &value), HELIO_IO_FAILURE);
  expect_error(HELIO_IO_FAILURE, "has become shorter");
  hi_safetensors_close(file);
}

static void test_every_truncation(void **state) {
  (void)state;
  size_t bytes;
  char *data = read_all(golden("python.safetensors"), &bytes);
  for (size_t i = 0; i < bytes; i++) {
    put_bytes(data, i);
    assert_false(open_and_check());
  }
  put_bytes(data, bytes);
  assert_true(open_and_check());
  free(data);
}

static void test_every_wrong_byte(void **state) {
  (void)state;
  static const char header[] = "{\"__metadata__\":{\"k\":\"v\"},\"b\\n\":{\"dtype\":\"BOOL\",\"shape\":[2],"
                               "\"data_offsets\":[4,6]}," ONE "} ";
  const size_t bytes = 8 + sizeof header - 1;
  int right = 0;
  put_file(header, sizeof header - 1, sizeof header - 1, 6);
  assert_true(open_and_check());
  int file = open(path, O_RDWR);
  for (size_t i = 0; i < bytes; i++) {
    unsigned char byte, changed;
    assert_int_equal(pread(file, &byte, 1, (off_t)i), 1);
    for (int flip = 1; flip < 256; flip++) {
      changed = byte ^ (unsigned char)flip;
      assert_int_equal(pwrite(file, &changed, 1, (off_t)i), 1);
      right += open_and_check();
    }
    assert_int_equal(pwrite(file, &byte, 1, (off_t)i), 1);
  }
  close(file);
  assert_true(right > 300); /* other letters in names and values */
}

/* Headers that jansson would make many times as large. */
static void test_memory_stays_small(void **state) {
  (void)state;
  static const char *const parts[][3] = {
      {"{\"a\":[", "{},", "its description is not an object"},
      {"{\"a\":{\"dtype\":[", "{},", "a value has more than 4096 bytes"},
      {"{\"__metadata__\":{\"a\":\"\"},\"a\":{\"shape\":[", "1,", "a value has more than 4096 bytes"},
      {"{\"__metadata__\":{\"a\":[", "[],", "a value of __metadata__ is not a string"},
  };
  enum { LARGE = 20000000 };
  if (SANITIZED) SKIP("sanitizers need memory of their own");
  char *text = malloc(LARGE);
  for (size_t i = 0; i < COUNT_OF(parts); i++) {
    struct rusage before, after;
    size_t length = (size_t)sprintf(text, "%s", parts[i][0]);
    for (size_t j = length; j < LARGE; j++) text[j] = parts[i][1][(j - length) % strlen(parts[i][1])];
    put_file(text, LARGE, LARGE, 0);
    getrusage(RUSAGE_SELF, &before);
    assert_null(hi_safetensors_open(path));
    getrusage(RUSAGE_SELF, &after);
    expect_error(HELIO_BAD_DATA, parts[i][2]);
    assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 40000);
  }
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(test_file_of_python_reads),
      FILE_TEST(test_written_as_python_does),
      FILE_TEST(test_unsupported_type_is_named),
      FILE_TEST(test_round_trip),
      FILE_TEST(test_bytes_of_a_file),
      FILE_TEST(test_file_without_tensors),
      FILE_TEST(test_many_tensors),
      FILE_TEST(test_file_of_python_is_whole),
      FILE_TEST(test_no_checksum),
      FILE_TEST(test_every_flip_is_seen),
      FILE_TEST(test_wrong_checksum_is_named),
      FILE_TEST(test_checksum_anywhere),
      FILE_TEST(test_hostile_headers),
      FILE_TEST(test_unusual_headers),
      FILE_TEST(test_nested_too_deep),
      FILE_TEST(test_hostile_lengths),
      FILE_TEST(test_not_a_regular_file),
      FILE_TEST(test_bool_of_two),
      FILE_TEST(test_file_that_shrinks),
      FILE_TEST(test_every_truncation),
      FILE_TEST(test_every_wrong_byte),
      FILE_TEST(test_memory_stays_small),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
