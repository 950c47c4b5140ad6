/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of a GPU beside those of the CPU: bits, uniform numbers and dropout are the same to the bit, normal
 * ones to two units in the last place. From places that begin a block of Philox and from others, at lengths that end
 * anywhere in one. */
#include "test.h"

#include <math.h>

enum { LONGEST = 1031 };

static const int64_t lengths[] = {1, 3, 4, 67, 256, LONGEST};
static const uint64_t bases[] = {0, 1, 2, 3, 1000, (UINT64_C(1) << 34) - 5, UINT64_MAX / 2 - 100, UINT64_MAX - 5};

#define COUNT_OF(table) (sizeof(table) / sizeof(table)[0])

/* What a maker gives for one length and base, drawn on a device. */
typedef helio_tensor *make_function(int64_t length, uint64_t base, helio_type type);

static void draw(make_function *make, const char *device, int64_t length, uint64_t base, helio_type type,
                 void *values) {
  HELIO_POOL {
    HELIO_DEVICE(device) {
      helio_tensor *drawn = make(length, base, type);
      assert_made(drawn);
      assert_ok(helio_tensor_read(drawn, values, (size_t)length * helio_type_bytes(type)));
    }
  }
}

static void expect_same_bits(make_function *make, helio_type type) {
  static unsigned char here[LONGEST * 8], there[LONGEST * 8];
  for (size_t i = 0; i < COUNT_OF(lengths); i++) {
    for (size_t k = 0; k < COUNT_OF(bases); k++) {
      draw(make, "/cpu:0", lengths[i], bases[k], type, here);
      draw(make, "/gpu:0", lengths[i], bases[k], type, there);
      if (memcmp(here, there, (size_t)lengths[i] * helio_type_bytes(type)) != 0)
        fail_msg("%s: %lld elements from %llu on differ", helio_type_name(type), (long long)lengths[i],
                 (unsigned long long)bases[k]);
    }
  }
}

static helio_tensor *bits(int64_t length, uint64_t base, helio_type type) {
  (void)type;
  return helio_random_bits(.shape = HELIO_SHAPE(length), .key = UINT64_C(0x123456789abcdef), .step = 7, .base = base);
}

static helio_tensor *uniform(int64_t length, uint64_t base, helio_type type) {
  return helio_random_uniform(.shape = HELIO_SHAPE(length), .key = 5, .step = UINT64_C(1) << 33, .base = base,
                              .low = -0.7, .high = 1.9, .type = type);
}

static helio_tensor *normal(int64_t length, uint64_t base, helio_type type) {
  return helio_random_normal(.shape = HELIO_SHAPE(length), .key = 6, .step = 1, .base = base, .type = type);
}

static helio_tensor *dropout(int64_t length, uint64_t base, helio_type type) {
  helio_tensor *x = helio_cast(bits(length, 0, HELIO_INT32), type);
  return helio_nn_dropout(x, .rate = 0.3, .key = 9, .step = 2, .base = base);
}

static void test_bits(void **state) {
  (void)state;
  expect_same_bits(bits, HELIO_INT32);
}

static void test_uniform(void **state) {
  (void)state;
  expect_same_bits(uniform, HELIO_FLOAT32);
  expect_same_bits(uniform, HELIO_FLOAT64);
}

static void test_dropout(void **state) {
  static const helio_type types[] = {HELIO_FLOAT32, HELIO_FLOAT64, HELIO_FLOAT16, HELIO_BFLOAT16};
  (void)state;
  for (size_t i = 0; i < COUNT_OF(types); i++) expect_same_bits(dropout, types[i]);
}

static void test_normal(void **state) {
  static float here[LONGEST], there[LONGEST];
  static double here_long[LONGEST], there_long[LONGEST];
  (void)state;
  for (size_t k = 0; k < COUNT_OF(bases); k++) {
    draw(normal, "/cpu:0", LONGEST, bases[k], HELIO_FLOAT32, here);
    draw(normal, "/gpu:0", LONGEST, bases[k], HELIO_FLOAT32, there);
    draw(normal, "/cpu:0", LONGEST, bases[k], HELIO_FLOAT64, here_long);
    draw(normal, "/gpu:0", LONGEST, bases[k], HELIO_FLOAT64, there_long);
    for (int i = 0; i < LONGEST; i++) {
      assert_true(fabsf(here[i] - there[i]) <= 2 * fabsf(nextafterf(here[i], INFINITY) - here[i]));
      assert_true(fabs(here_long[i] - there_long[i]) <= 2 * fabs(nextafter(here_long[i], INFINITY) - here_long[i]));
    }
  }
}

static int finish(void **state) {
  (void)state;
  return helio_shutdown() == HELIO_OK ? 0 : -1;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bits),
      cmocka_unit_test(test_uniform),
      cmocka_unit_test(test_dropout),
      cmocka_unit_test(test_normal),
  };
  return cmocka_run_group_tests(tests, NULL, finish);
}
