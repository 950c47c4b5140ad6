/* SPDX-License-Identifier: Apache-2.0 */
/* Files of numpy, IDX and safetensors: what numpy wrote is read to the byte, mapped where that can be; what helio has
 * no type for is refused by name. */
#include "data/safetensors.h"
#include "data_files.h"

/* ---- .npy and .npz ---- */

static const hi_file *owner_of(const helio_array *array) {
  return array->owner;
}

static void check_array(const helio_array *array, const hi_safetensors *expected, const char *name) {
  const hi_safetensors_entry *entry = hi_safetensors_find(expected, name);
  assert_non_null(entry);
  assert_int_equal(helio_array_type(array), entry->type);
  assert_true(hi_shape_equal(&array->shape, &entry->shape));
  assert_int_equal((uintptr_t)array->data % helio_type_bytes(array->type), 0);
  char *data = malloc(entry->bytes + 1);
  assert_ok(hi_safetensors_read(expected, entry, data));
  if (memcmp(array->data, data, entry->bytes) != 0) fail_msg("%s: other values than numpy's", name);
  free(data);
}

static void check_npz(const char *path) {
  hi_safetensors *expected = hi_safetensors_open(golden_data("expected.safetensors"));
  assert_made(expected);
  char **names = helio_npz_names(path);
  assert_made(names);
  int count = 0;
  for (; names[count]; count++) {
    helio_array *array = helio_read_npz(path, names[count]);
    assert_made(array);
    check_array(array, expected, names[count]);
  }
  assert_int_equal(count, hi_safetensors_count(expected));
  assert_true(count > 80);
  free(names);
  hi_safetensors_close(expected);
}

static void test_npz_of_numpy(void **state) {
  (void)state;
  check_npz(golden_data("stored.npz"));
  check_npz(golden_data("deflated.npz"));
}

static void test_npy_of_numpy(void **state) {
  (void)state;
  static const struct {
    const char *file, *name;
    bool mapped;
  } cases[] = {{"float32.npy", "float32 3", true}, {"fortran.npy", "float32 3", false},
               {"uint8.npy", "uint8 3", true},     {"version1.npy", "int64 1", true},
               {"version2.npy", "int64 1", true},  {"version3.npy", "int64 1", true}};
  hi_safetensors *expected = hi_safetensors_open(golden_data("expected.safetensors"));
  assert_made(expected);
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    helio_array *array = helio_read_npy(golden_data(cases[i].file));
    assert_made(array);
    check_array(array, expected, cases[i].name);
    assert_int_equal(array->owner && owner_of(array)->mapped > 0, cases[i].mapped);
  }
  hi_safetensors_close(expected);
}

static void test_zip64(void **state) {
  (void)state;
  helio_array *array = helio_read_npz(golden_data("zip64.npz"), "x");
  assert_made(array);
  assert_int_equal(array->elements, 7);
  assert_ptr_equal(owner_of(array)->whole->bytes + 183, array->data); /* of the archive's own bytes */
}

static void test_unsupported_types_of_numpy(void **state) {
  (void)state;
  static const char *const cases[][2] = {{"int16", "the type '<i2' is not supported"},
                                         {"complex", "the type '<c8' is not supported"},
                                         {"text", "the type '<U1' is not supported"},
                                         {"records", "elements that are records are not supported"}};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    assert_null(helio_read_npz(golden_data("unsupported.npz"), cases[i][0]));
    expect_error(HELIO_NOT_SUPPORTED, cases[i][1]);
  }
  assert_null(helio_read_npz(golden_data("pickles.npz"), "few 4"));
  expect_error(HELIO_NOT_SUPPORTED, "pickles.npz, member few 4.npy, byte 128: the elements are Python's objects");
}

static void test_members_that_are_not_there(void **state) {
  (void)state;
  assert_null(helio_read_npz(golden_data("mnist.npz"), "x"));
  expect_error(HELIO_INVALID_ARGUMENT, "there is no array \"x\"; there are: x_train, y_train, x_test, y_test");
  assert_null(helio_read_npz(golden_data("mnist.npz"), "x_train.npy"));
  expect_error(HELIO_INVALID_ARGUMENT, "there is no array \"x_train.npy\"");
  assert_null(helio_read_npz(golden_data("mnist.npz"), NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "name is NULL");
  assert_null(helio_read_npz_sequences(golden_data("mnist.npz"), "y_train"));
  expect_error(HELIO_BAD_DATA, "this is an array of type uint8 and shape (3,), not of lists in one axis");
}

/* ---- headers of .npy, as others than numpy may write them ---- */

static helio_array *read_header(const char *header) {
  static const unsigned char numbers[48] = {1, 2, 3};
  unsigned char bytes[600] = "\x93NUMPY\1";
  size_t length = strlen(header);
  bytes[8] = (unsigned char)length;
  bytes[9] = (unsigned char)(length >> 8);
  memcpy(bytes + 10, header, length);
  memcpy(bytes + 10 + length, numbers, sizeof numbers);
  hi_file *file = hi_file_copy("x.npy", bytes, 10 + length + sizeof numbers);
  assert_made(file);
  helio_array *array = hi_read_npy(file);
  hi_drop(file);
  return array;
}

static void test_headers_of_npy(void **state) {
  (void)state;
  static const char *const good[] = {
      "{'descr': '<f4', 'fortran_order': False, 'shape': (12,), }  \n",
      "{\"shape\":(3,4),\"descr\":\"<f4\",\"fortran_order\":False}",
      "{ 'shape' : ( 3L , 4L , ) , 'fortran_order' : True , 'descr' : '<i4' }",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (48,)}",
      "{'descr': '<u1', 'fortran_order': False, 'shape': (1, 1, 1, 2, 2, 3, 4, 1)}",
      "{'descr': '|V2', 'fortran_order': False, 'shape': (24,)}",
  };
  for (size_t i = 0; i < COUNT_OF(good); i++) assert_made(read_header(good[i]));
}

#define DICT(shape) "{'descr': '|u1', 'fortran_order': False, 'shape': " shape "}"

static void test_wrong_headers_of_npy(void **state) {
  (void)state;
  static const struct {
    const char *header;
    helio_status status;
    const char *part;
  } bad[] = {
      {"", HELIO_BAD_DATA, "x.npy, byte 10: the header is not as it should be: '{' is expected here"},
      {"{", HELIO_BAD_DATA, "byte 11: the header is not as it should be: a key in quotes is expected"},
      {DICT("(48,)") " x", HELIO_BAD_DATA, "nothing but blanks is expected"},
      {DICT("(48)"), HELIO_BAD_DATA, "a comma is expected"},
      {DICT("48"), HELIO_BAD_DATA, "a shape in round brackets is expected"},
      {DICT("(-48,)"), HELIO_BAD_DATA, "byte 61: the header is not as it should be: an extent from 0 on"},
      {DICT("(99999999999999999999,)"), HELIO_BAD_DATA, "an extent from 0 on, and not too large,"},
      {DICT("(999999999999999999,)"), HELIO_BAD_DATA, "the shape (999999999999999999,) is negative or has more"},
      {DICT("(4294967296, 4294967296)"), HELIO_BAD_DATA, "has more elements than fit into memory"},
      {DICT("(0, 900000000000000000)"), HELIO_BAD_DATA, "has more elements than fit into memory"},
      {DICT("(49,)"), HELIO_BAD_DATA, "byte 114: the file ends here; the data of type uint8 and shape (49,) need 49"},
      {DICT("(47,)"), HELIO_BAD_DATA, "byte 113: the data of type uint8 and shape (47,) end here, but 1 bytes follow"},
      {DICT("(1,1,1,1,1,1,1,1,48)"), HELIO_NOT_SUPPORTED, "more than 8 axes are not supported"},
      {"{'descr': '|u1', 'shape': (48,)}", HELIO_BAD_DATA, "what is missing of 'descr', 'fortran_order' and 'shape'"},
      {"{'descr': '|u1', 'descr': '|u1'}", HELIO_BAD_DATA,
       "byte 27: the header is not as it should be: 'descr', 'fort"},
      {"{'descr': '|u1', 'other': '|u1'}", HELIO_BAD_DATA, "'descr', 'fortran_order' or 'shape', each once, is exp"},
      {"{'descr': '=f4', ", HELIO_NOT_SUPPORTED, "the type '=f4' is not supported"},
      {"{'descr': '|f4', ", HELIO_NOT_SUPPORTED, "the type '|f4' is not supported"},
      {"{'descr': '\\x3cf4', ", HELIO_BAD_DATA, "a type such as '<f4' is expected"},
      {"{'descr': __import__('os').system('true'), ", HELIO_BAD_DATA, "a type such as '<f4' is expected"},
      {"{'fortran_order': 1", HELIO_BAD_DATA, "True or False is expected"},
      {"{'fortran_order' True", HELIO_BAD_DATA, "a colon is expected"},
  };
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    assert_null(read_header(bad[i].header));
    expect_error(bad[i].status, bad[i].part);
  }
}

static void test_bool_of_two(void **state) {
  (void)state;
  assert_null(read_header("{'descr': '|b1', 'fortran_order': False, 'shape': (48,)}"));
  expect_error(HELIO_BAD_DATA, "x.npy, byte 67: 2 is not a bool");
}

/* ---- IDX ---- */

static void test_idx(void **state) {
  (void)state;
  static const struct {
    const char *file;
    helio_type type;
    bool mapped;
  } cases[] = {{"type08.idx", HELIO_UINT8, true},    {"type08.idx.gz", HELIO_UINT8, false},
               {"type0C.idx", HELIO_INT32, false},   {"type0D.idx", HELIO_FLOAT32, false},
               {"type0E.idx", HELIO_FLOAT64, false}, {"type0E.idx.gz", HELIO_FLOAT64, false}};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    helio_array *array = helio_read_idx(golden_data(cases[i].file));
    assert_made(array);
    assert_int_equal(array->type, cases[i].type);
    assert_true(hi_shape_equal(&array->shape, &HELIO_SHAPE(2, 3)));
    assert_int_equal(array->owner && owner_of(array)->mapped > 0, cases[i].mapped);
    for (int j = 0; j < 6; j++) {
      const char *at = (const char *)array->data + (size_t)j * helio_type_bytes(array->type);
      assert_true(hi_type_decode(array->type, at) == j * 7 - (cases[i].type == HELIO_UINT8 ? 0 : 9));
    }
  }
  assert_null(helio_read_idx(golden_data("type09.idx")));
  expect_error(HELIO_NOT_SUPPORTED, "type09.idx, byte 2: the type signed byte is not supported");
  assert_null(helio_read_idx(golden_data("type0B.idx")));
  expect_error(HELIO_NOT_SUPPORTED, "the type short is not supported");
}

/* As gzip has it: zeros behind the end are nothing, and anything else is no part of the data. */
static void test_behind_gzip(void **state) {
  (void)state;
  static const struct {
    const char *more;
    size_t bytes;
    bool good;
  } cases[] = {{"\0\0\0", 3, true}, {"x", 1, false}, {"\0\0x", 3, false}, {"\x1F", 1, false}, {"hello", 5, false}};
  hi_file *whole = hi_file_open(golden_data("type08.idx.gz"));
  assert_made(whole);
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    unsigned char bytes[200];
    assert_true(whole->size + cases[i].bytes <= sizeof bytes);
    memcpy(bytes, whole->bytes, whole->size);
    memcpy(bytes + whole->size, cases[i].more, cases[i].bytes);
    hi_file *file = hi_file_copy("x.gz", (const char *)bytes, whole->size + cases[i].bytes);
    assert_made(file);
    helio_array *array = hi_read_idx(file);
    if (cases[i].good) assert_made(array);
    if (!cases[i].good) expect_error(HELIO_BAD_DATA, "the compressed data end here, but more follows");
    hi_drop(file);
  }
  hi_drop(whole);
}

static void test_wrong_idx(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t size;
    const char *part;
  } cases[] = {
      {"", 0, "x, byte 0: this is not an IDX file"},
      {"\0\0\10", 3, "x, byte 0: this is not an IDX file"},
      {"\0\1\10\0", 4, "x, byte 0: this is not an IDX file"},
      {"\0\0\7\0", 4, "x, byte 2: 0x07 is not a type"},
      {"\0\0\10\1\0\0", 6, "x, byte 6: the file ends inside its header of 8 bytes"},
      {"\0\0\10\1\200\0\0\0", 8, "x, byte 4: extent 0 of the shape is negative"},
      {"\0\0\10\1\0\0\0\1", 8, "x, byte 8: the file ends here; the data of type uint8 and shape (1,) need 1 bytes"},
      {"\0\0\10\1\0\0\0\1ab", 10, "x, byte 9: the data of type uint8 and shape (1,) end here, but 1 bytes follow"},
      {"\0\0\16\3\177\377\377\377\177\377\377\377\177\377\377\377", 16, "has more elements than fit into memory"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    hi_file *file = hi_file_copy("x", cases[i].bytes, cases[i].size);
    assert_null(hi_read_idx(file));
    expect_error(HELIO_BAD_DATA, cases[i].part);
    hi_drop(file);
  }
  hi_file *file = hi_file_copy("x", "\0\0\10\11", 4);
  assert_null(hi_read_idx(file));
  expect_error(HELIO_NOT_SUPPORTED, "x, byte 3: 9 axes, of which at most 8 are supported");
  hi_drop(file);
}

/* ---- safetensors ---- */

static void test_safetensors(void **state) {
  (void)state;
  const char *path = golden_data("safetensors/python.safetensors");
  char **names = helio_safetensors_names(path);
  assert_made(names);
  assert_string_equal(names[0], "ids");
  for (int i = 0; names[i]; i++) assert_made(helio_read_safetensors(path, names[i]));
  helio_array *ids = helio_read_safetensors(path, names[0]);
  assert_int_equal(((const int64_t *)helio_array_data(ids))[3], INT64_MAX);
  assert_true(owner_of(ids)->mapped > 0);
  assert_null(helio_read_safetensors(path, "kernel"));
  expect_error(HELIO_INVALID_ARGUMENT, "there is no tensor \"kernel\" among its 10");
  free(names);
}

/* ---- paths ---- */

static void test_paths(void **state) {
  (void)state;
  char folder[64], pipe[100];
  make_folder(folder);
  snprintf(pipe, sizeof pipe, "%s/pipe", folder);
  assert_int_equal(mkfifo(pipe, 0600), 0);
  const struct {
    const char *path;
    helio_status status;
    const char *part;
  } cases[] = {{NULL, HELIO_INVALID_ARGUMENT, "path is NULL"},
               {"/no/such/file", HELIO_IO_FAILURE, "/no/such/file cannot be opened: No such file or directory"},
               {folder, HELIO_INVALID_ARGUMENT, "is not a regular file"},
               {pipe, HELIO_INVALID_ARGUMENT, "pipe is not a regular file"}};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    assert_null(helio_read_idx(cases[i].path));
    expect_error(cases[i].status, cases[i].part);
    assert_null(helio_read_npy(cases[i].path));
    expect_error(cases[i].status, cases[i].part);
    assert_null(helio_read_npz(cases[i].path, "x"));
    expect_error(cases[i].status, cases[i].part);
    assert_null(helio_npz_names(cases[i].path));
    expect_error(cases[i].status, cases[i].part);
    assert_null(helio_read_safetensors(cases[i].path, "x"));
    expect_error(cases[i].status, cases[i].part);
    assert_null(helio_read_csv(cases[i].path));
    expect_error(cases[i].status, cases[i].part);
  }
  remove_folder(folder);
}

/* The file stays mapped as long as an array shows it, and no longer. */
static void test_mapping_ends_with_the_array(void **state) {
  (void)state;
  const char *path = golden_data("float32.npy");
  HELIO_POOL assert_made(helio_read_npy(path));
  int before = mapping_count();
  helio_array *part = NULL;
  HELIO_POOL {
    helio_array *array = helio_read_npy(path);
    assert_made(array);
    part = helio_keep(helio_array_part(array, 1, 1));
    assert_made(part);
  }
  assert_int_equal(mapping_count(), before + 1);
  assert_true(((const float *)helio_array_data(part))[0] == (15 * 7 % 23 - 9) / 4.0f + 0.125f);
  helio_release(part);
  assert_int_equal(mapping_count(), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      POOL_TEST(test_npz_of_numpy),
      POOL_TEST(test_npy_of_numpy),
      POOL_TEST(test_zip64),
      POOL_TEST(test_unsupported_types_of_numpy),
      POOL_TEST(test_members_that_are_not_there),
      POOL_TEST(test_headers_of_npy),
      POOL_TEST(test_wrong_headers_of_npy),
      POOL_TEST(test_bool_of_two),
      POOL_TEST(test_idx),
      POOL_TEST(test_behind_gzip),
      POOL_TEST(test_wrong_idx),
      POOL_TEST(test_safetensors),
      POOL_TEST(test_paths),
      POOL_TEST(test_mapping_ends_with_the_array),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
