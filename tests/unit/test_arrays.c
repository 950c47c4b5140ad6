/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays on the host: made, looked at in parts, cast, and carried to a device and back. */
#include <math.h>

#include "data_files.h"

static void test_made_of_data(void **state) {
  (void)state;
  float values[] = {1, 2, 3, 4, 5, 6};
  helio_array *copy = helio_array_of(values, HELIO_SHAPE(2, 3));
  helio_array *borrowed = helio_array_of(values, HELIO_SHAPE(6), .borrow = true);
  helio_array *empty = helio_array_of(NULL, HELIO_SHAPE(0, 3), HELIO_INT64);
  assert_made(copy && borrowed ? empty : NULL);
  assert_int_equal(helio_array_type(copy), HELIO_FLOAT32);
  assert_int_equal(helio_array_type(empty), HELIO_INT64);
  assert_int_equal(helio_array_elements(copy), 6);
  assert_int_equal(helio_array_shape(copy).extent[1], 3);
  assert_ptr_equal(helio_array_data(borrowed), values);
  values[0] = 7;
  assert_true(*(const float *)helio_array_data(copy) == 1);
  assert_true(*(const float *)helio_array_data(borrowed) == 7);
  assert_int_equal(helio_array_type(NULL), 0);
  assert_int_equal(helio_array_elements(NULL), 0);
  assert_null(helio_array_data(NULL));
}

static void test_made_wrongly(void **state) {
  (void)state;
  static const float values[4] = {0};
  assert_null(helio_array_of(NULL, HELIO_SHAPE(1)));
  expect_error(HELIO_INVALID_ARGUMENT, "data is NULL");
  assert_null(helio_array_of(values, HELIO_SHAPE(-1)));
  expect_error(HELIO_INVALID_ARGUMENT, "the shape (-1,) is not valid or too large");
  assert_null(helio_array_of(values, HELIO_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40)));
  expect_error(HELIO_INVALID_ARGUMENT, "is not valid or too large");
  assert_null(helio_array_of(values, HELIO_SHAPE(1), (helio_type)9));
  expect_error(HELIO_INVALID_ARGUMENT, "9 is not a type");
  assert_null(helio_array_of((const char *)values + 1, HELIO_SHAPE(1), .borrow = true));
  expect_error(HELIO_INVALID_ARGUMENT, "data to be borrowed are not aligned for float32");
  assert_null(helio_array_part(NULL, 0, 1));
  expect_error(HELIO_INVALID_ARGUMENT, "the array is NULL");
}

/* ---- views ---- */

static void test_parts(void **state) {
  (void)state;
  static const int32_t values[] = {0, 1, 10, 11, 20, 21};
  helio_array *array = helio_array_of(values, HELIO_SHAPE(3, 2), HELIO_INT32);
  helio_array *middle = helio_array_part(array, 1, 1), *rest = helio_array_part(array, 1, -1);
  helio_array *none = helio_array_part(array, 3, -1);
  assert_made(middle && rest ? none : NULL);
  assert_int_equal(*(const int32_t *)helio_array_data(middle), 10);
  assert_int_equal(helio_array_shape(rest).extent[0], 2);
  assert_int_equal(helio_array_shape(none).extent[0], 0);
  assert_ptr_equal(helio_array_data(rest), helio_array_data(middle));
  static const int64_t wrong[][2] = {{-1, 1}, {0, 4}, {4, 0}, {4, -1}, {1, -2}, {1, INT64_MAX}, {INT64_MAX, 1}};
  for (size_t i = 0; i < COUNT_OF(wrong); i++) {
    assert_null(helio_array_part(array, wrong[i][0], wrong[i][1]));
    expect_error(HELIO_INVALID_ARGUMENT, "an array of shape (3, 2) has no ");
  }
  assert_null(helio_array_part(helio_array_of(values, HELIO_SCALAR), 0, 1));
  expect_error(HELIO_INVALID_ARGUMENT, "an array of shape () has no 1 rows from row 0 on");
}

static void test_views_keep_what_they_show(void **state) {
  (void)state;
  helio_array *view = NULL;
  HELIO_POOL {
    helio_array *array = helio_array_of((float[]){1, 2, 3, 4}, HELIO_SHAPE(4));
    view = helio_keep(helio_array_reshape(helio_array_part(array, 2, 2), HELIO_SHAPE(1, -1)));
    assert_made(view);
  }
  assert_true(((const float *)helio_array_data(view))[1] == 4);
  helio_release(view);
}

static void test_other_shapes(void **state) {
  (void)state;
  helio_array *array = helio_array_of((float[]){1, 2, 3, 4, 5, 6}, HELIO_SHAPE(2, 3));
  char *text = helio_shape_text(helio_array_shape(helio_array_reshape(array, HELIO_SHAPE(3, -1, 1))));
  assert_made(text);
  assert_string_equal(text, "(3, 2, 1)");
  free(text);
  static const helio_shape wrong[] = {{2, {4, -1}}, {2, {-1, -1}}, {1, {5}}, {9, {0}}, {2, {0, -1}}, {1, {-6}}};
  for (size_t i = 0; i < COUNT_OF(wrong); i++) {
    assert_null(helio_array_reshape(array, wrong[i]));
    expect_error(HELIO_INVALID_ARGUMENT, "the shape (2, 3) cannot become ");
  }
}

/* ---- casts ---- */

static void test_bytes_scaled_to_one(void **state) {
  (void)state;
  uint8_t bytes[1000];
  for (int i = 0; i < 1000; i++) bytes[i] = (uint8_t)i;
  helio_array *images = helio_array_of(bytes, HELIO_SHAPE(10, 100), HELIO_UINT8);
  helio_array *scaled = helio_array_cast(images, HELIO_FLOAT32, .scale = 1.0 / 255);
  helio_array *shifted = helio_array_cast(images, HELIO_FLOAT64, .scale = 2.0 / 255, .offset = -1);
  assert_made(scaled ? shifted : NULL);
  for (int i = 0; i < 1000; i++) {
    assert_true(((const float *)helio_array_data(scaled))[i] == (float)bytes[i] / 255.0f);
    assert_true(((const double *)helio_array_data(shifted))[i] == bytes[i] * (2.0 / 255) - 1);
  }
}

/* Arrays are cast as tensors are. */
static void check_cast(helio_type from, helio_type to) {
  static const double values[] = {0,     1,      -1,     2.5,     -2.5, 255,  256, -300,
                                  70000, 0x1p31, 0x1p53, -0x1p63, 1e20, -0.0, 1e-7};
  unsigned char data[COUNT_OF(values) * 8], found[COUNT_OF(values) * 8];
  for (size_t i = 0; i < COUNT_OF(values); i++) {
    hi_type_encode(from, values[i], data + i * helio_type_bytes(from));
  }
  helio_array *array = helio_array_of(data, HELIO_SHAPE(COUNT_OF(values)), from);
  helio_array *cast = helio_array_cast(array, to);
  assert_made(cast);
  assert_int_equal(helio_array_type(cast), to);
  helio_tensor *tensor = helio_cast(helio_constant(data, HELIO_SHAPE(COUNT_OF(values)), from), to);
  assert_ok(helio_tensor_read(tensor, found, COUNT_OF(values) * helio_type_bytes(to)));
  assert_memory_equal(helio_array_data(cast), found, COUNT_OF(values) * helio_type_bytes(to));
}

static void test_cast_as_tensors_are(void **state) {
  (void)state;
  for (int from = HELIO_FLOAT32; from <= HELIO_BOOL; from++) {
    for (int to = HELIO_FLOAT32; to <= HELIO_BOOL; to++) check_cast((helio_type)from, (helio_type)to);
  }
}

static void test_large_integers_stay_exact(void **state) {
  (void)state;
  static const int64_t values[] = {INT64_MAX, INT64_MIN, (INT64_C(1) << 53) + 1};
  helio_array *array = helio_array_of(values, HELIO_SHAPE(3), HELIO_INT64);
  helio_array *same = helio_array_cast(array, HELIO_INT64), *narrow = helio_array_cast(array, HELIO_INT32);
  assert_made(same ? narrow : NULL);
  assert_ptr_equal(helio_array_data(same), helio_array_data(array));
  assert_int_equal(((const int32_t *)helio_array_data(narrow))[0], -1);
  assert_int_equal(((const int32_t *)helio_array_data(narrow))[2], 1);
}

/* ---- one-hot ---- */

static void test_one_hot(void **state) {
  (void)state;
  static const uint8_t labels[] = {2, 0, 1, 2};
  helio_array *given = helio_array_of(labels, HELIO_SHAPE(4), HELIO_UINT8);
  helio_array *found = helio_array_one_hot(given, 0, (helio_type)0), *wide = helio_array_one_hot(given, 5, HELIO_INT64);
  assert_made(found ? wide : NULL);
  assert_true(hi_shape_equal(&found->shape, &HELIO_SHAPE(4, 3)));
  assert_true(hi_shape_equal(&wide->shape, &HELIO_SHAPE(4, 5)));
  for (int i = 0; i < 12; i++) assert_true(((const float *)found->data)[i] == (labels[i / 3] == i % 3));
  for (int i = 0; i < 20; i++) assert_true(((const int64_t *)wide->data)[i] == (labels[i / 5] == i % 5));
  helio_array *none = helio_array_one_hot(helio_array_part(given, 0, 0), 0, HELIO_BOOL);
  assert_made(none);
  assert_true(hi_shape_equal(&none->shape, &HELIO_SHAPE(0, 0)));
}

static void test_one_hot_of_wrong_labels(void **state) {
  (void)state;
  static const int64_t labels[] = {1, -1, 3};
  helio_array *given = helio_array_of(labels, HELIO_SHAPE(3), HELIO_INT64);
  assert_null(helio_array_one_hot(given, 0, HELIO_FLOAT32));
  expect_error(HELIO_BAD_DATA, "label -1 of element 1 is not one of 0 classes");
  assert_null(helio_array_one_hot(helio_array_part(given, 2, 1), 3, HELIO_FLOAT32));
  expect_error(HELIO_BAD_DATA, "label 3 of element 0 is not one of 3 classes");
  assert_null(helio_array_one_hot(helio_array_of((float[]){1}, HELIO_SHAPE(1)), 3, HELIO_FLOAT32));
  expect_error(HELIO_INVALID_ARGUMENT, "labels are float32, not integers");
  static const int64_t absurd = INT64_MAX;
  assert_null(helio_array_one_hot(helio_array_of(&absurd, HELIO_SHAPE(1), HELIO_INT64), 0, HELIO_FLOAT32));
  expect_error(HELIO_INVALID_ARGUMENT, "not valid or too large");
}

/* ---- devices ---- */

static void test_to_a_device_and_back(void **state) {
  (void)state;
  static const int32_t values[] = {1, -2, 3, -4};
  helio_tensor *tensor = helio_array_tensor(helio_array_of(values, HELIO_SHAPE(2, 2), HELIO_INT32));
  assert_made(tensor);
  assert_int_equal(helio_tensor_type(tensor), HELIO_INT32);
  helio_array *back = helio_tensor_array(helio_add(tensor, tensor));
  assert_made(back);
  assert_true(hi_shape_equal(&back->shape, &HELIO_SHAPE(2, 2)));
  for (int i = 0; i < 4; i++) assert_int_equal(((const int32_t *)back->data)[i], 2 * values[i]);
  assert_made(helio_tensor_array(helio_array_tensor(helio_array_of(NULL, HELIO_SHAPE(0)))));
  assert_null(helio_array_tensor(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "the array is NULL");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      POOL_TEST(test_made_of_data),
      POOL_TEST(test_made_wrongly),
      POOL_TEST(test_parts),
      POOL_TEST(test_views_keep_what_they_show),
      POOL_TEST(test_other_shapes),
      POOL_TEST(test_bytes_scaled_to_one),
      POOL_TEST(test_cast_as_tensors_are),
      POOL_TEST(test_large_integers_stay_exact),
      POOL_TEST(test_one_hot),
      POOL_TEST(test_one_hot_of_wrong_labels),
      POOL_TEST(test_to_a_device_and_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
