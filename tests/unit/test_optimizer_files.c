/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers in files: what was saved goes on as if nothing had happened, and what is wrong changes nothing. */
#include <math.h>

#include "optimizer_net.h"

enum { STEPS = 10 };

static helio_optimizer *optimizer_number(int number) {
  switch (number) {
  case 0:
    return helio_sgd(.schedule = helio_exponential_decay(0.1, 3, 0.5));
  case 1:
    return helio_sgd(0.1, .momentum = 0.9);
  case 2:
    return helio_adam(0.1, .accumulate_steps = 3);
  case 3:
    return helio_nadam(0.1, .clip_norm = 0.5);
  case 4:
    return helio_rmsprop(0.1, .momentum = 0.5, .centered = true);
  case 5:
    return helio_adagrad(0.1);
  case 6:
    return helio_adamw(0.1, .name = "mine");
  case 7:
    return helio_nadam(0.1, .accumulate_steps = 4);
  default:
    return NULL;
  }
}

static void test_save_and_load(void **state) {
  (void)state;
  char folder[64], path[128], expected[MOST_BYTES];
  make_folder(folder);
  snprintf(path, sizeof path, "%s/optimizer.safetensors", folder);
  for (int number = 0; number < 8; number++) {
    net n, m;
    make_net(&n);
    make_net(&m);
    helio_optimizer *whole = optimizer_number(number), *first = optimizer_number(number),
                    *second = optimizer_number(number);
    if (number > 0) { /* a rate that was set is part of the state */
      assert_ok(helio_optimizer_set_learning_rate(whole, 0.07));
      assert_ok(helio_optimizer_set_learning_rate(first, 0.07));
    }
    train(whole, &n, 0, STEPS);
    train(first, &m, 0, STEPS / 2);
    assert_ok(helio_save_optimizer(first, path));
    assert_ok(helio_optimizer_build(second, &m.variables));
    assert_ok(helio_load_optimizer(second, path));
    train(second, &m, STEPS / 2, STEPS);
    size_t length = snapshot(whole, &n, expected);
    assert_unchanged(second, &m, expected, length);
  }
  assert_null(optimizer_number(8));
  remove_folder(folder);
}

static void replace(char *bytes, size_t length, const char *from, const char *to) {
  char *found = memmem(bytes, length, from, strlen(from));
  assert_non_null(found);
  assert_int_equal(strlen(from), strlen(to));
  memcpy(found, to, strlen(to));
}

/* Copies a file with the first `from` in it replaced by `to`, which is as long; "": cut off at three quarters. Without
 * its checksum, so that it looks as others might write it, or with it. */
static void damage(const char *path, const char *copy, const char *from, const char *to, bool with_checksum) {
  char bytes[16384];
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t length = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_true(length < sizeof bytes);
  replace(bytes, length, from, to);
  if (!with_checksum) replace(bytes, length, "helio_crc32", "other_crc32");
  file = fopen(copy, "wb");
  assert_non_null(file);
  fwrite(bytes, 1, *from ? length : length * 3 / 4, file);
  fclose(file);
}

static void test_damaged_files(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *part;
    helio_status status;
  } cases[] = {
      {"", "", "broken", HELIO_BAD_DATA},
      {"nadam/dense_bias_momentum", "nadam/dense_bias_momentuM", "nadam/dense_bias_momentum is missing",
       HELIO_INVALID_ARGUMENT},
      {"[2,3]", "[3,2]", "nadam/dense_kernel_momentum is float32 (3, 2); the optimizer's is float32 (2, 3)",
       HELIO_INVALID_ARGUMENT},
      {"\"F32\"", "\"I32\"", "nadam/dense_kernel_momentum is int32", HELIO_INVALID_ARGUMENT},
      {"I64", "F64", "nadam/iteration is float64", HELIO_INVALID_ARGUMENT},
      {"[2,3]", "[2,9]", "bytes of data", HELIO_BAD_DATA},
  };
  char folder[64], path[128], broken[128], before[MOST_BYTES];
  net n;
  make_net(&n);
  helio_optimizer *optimizer = helio_nadam(0.1);
  make_folder(folder);
  snprintf(path, sizeof path, "%s/whole.safetensors", folder);
  snprintf(broken, sizeof broken, "%s/broken.safetensors", folder);
  train(optimizer, &n, 0, 3);
  assert_ok(helio_save_optimizer(optimizer, path));
  train(optimizer, &n, 3, 5);
  size_t length = snapshot(optimizer, &n, before);
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    damage(path, broken, cases[i].from, cases[i].to, false);
    assert_int_equal(helio_load_optimizer(optimizer, broken), cases[i].status);
    expect_error(cases[i].status, cases[i].part);
    damage(path, broken, cases[i].from, cases[i].to, true);
    assert_int_equal(helio_load_optimizer(optimizer, broken), HELIO_BAD_DATA);
    expect_error(HELIO_BAD_DATA, cases[i].status == HELIO_BAD_DATA ? cases[i].part : "the file is damaged");
    assert_unchanged(optimizer, &n, before, length);
  }
  remove_folder(folder);
}

/* Numbers that no optimizer has; they stand first in the data, in this order, in a file without a checksum. */
static void test_damaged_numbers(void **state) {
  (void)state;
  const int64_t negative = -1;
  const double wrong_rate = -0.1, wrong_product = NAN;
  const void *numbers[] = {&negative, &wrong_rate, &wrong_product};
  const char *parts[] = {"the iteration is negative", "the learning_rate is -0.1", "the u_product is nan"};
  char folder[64], whole[128], path[128], before[MOST_BYTES];
  net n;
  make_net(&n);
  helio_optimizer *optimizer = helio_nadam(0.1);
  make_folder(folder);
  snprintf(whole, sizeof whole, "%s/whole.safetensors", folder);
  snprintf(path, sizeof path, "%s/optimizer.safetensors", folder);
  train(optimizer, &n, 0, 3);
  assert_ok(helio_save_optimizer(optimizer, whole));
  size_t length = snapshot(optimizer, &n, before);
  for (int i = 0; i < 3; i++) {
    uint64_t header = 0;
    damage(whole, path, "I64", "I64", false);
    FILE *file = fopen(path, "r+b");
    assert_int_equal(fread(&header, 8, 1, file), 1);
    fseek(file, (long)header + 8 + 8 * i, SEEK_SET);
    assert_int_equal(fwrite(numbers[i], 8, 1, file), 1);
    fclose(file);
    assert_int_equal(helio_load_optimizer(optimizer, path), HELIO_BAD_DATA);
    expect_error(HELIO_BAD_DATA, parts[i]);
    assert_unchanged(optimizer, &n, before, length);
  }
  remove_folder(folder);
}

static void test_wrong_files(void **state) {
  (void)state;
  char folder[64], path[128], before[MOST_BYTES];
  net n;
  make_net(&n);
  make_folder(folder);
  snprintf(path, sizeof path, "%s/optimizer.safetensors", folder);
  helio_optimizer *optimizer = helio_adam(0.1), *kernel_only = helio_adam(0.1), *fresh = helio_adam(0.1);
  train(optimizer, &n, 0, 3);
  assert_ok(helio_optimizer_build(kernel_only, HELIO_VARIABLES(n.list[0])));
  size_t length = snapshot(optimizer, &n, before);
  helio_load_optimizer(optimizer, path);
  expect_error(HELIO_IO_FAILURE, path);
  assert_ok(helio_save_optimizer(kernel_only, path));
  helio_load_optimizer(optimizer, path);
  expect_error(HELIO_INVALID_ARGUMENT, "adam/dense_bias_momentum is missing");
  assert_ok(helio_save_optimizer(optimizer, path));
  helio_load_optimizer(kernel_only, path);
  expect_error(HELIO_INVALID_ARGUMENT, "adam/dense_bias_momentum is none of adam's");
  assert_int_equal(helio_optimizer_iterations(kernel_only), 0);
  helio_load_optimizer(fresh, path);
  expect_error(HELIO_WRONG_STATE, "adam does not know its variables yet");
  helio_save_optimizer(fresh, path);
  expect_error(HELIO_WRONG_STATE, "adam does not know its variables yet");
  helio_save_optimizer(NULL, path);
  expect_error(HELIO_INVALID_ARGUMENT, "the optimizer is NULL");
  helio_save_optimizer(optimizer, NULL);
  expect_error(HELIO_INVALID_ARGUMENT, "path is NULL");
  helio_load_optimizer(optimizer, NULL);
  expect_error(HELIO_INVALID_ARGUMENT, "path is NULL");
  helio_save_optimizer(optimizer, "/nowhere/at/all.safetensors");
  expect_error(HELIO_IO_FAILURE, "/nowhere/at/all.safetensors");
  assert_unchanged(optimizer, &n, before, length);
  remove_folder(folder);
}

/* Slots are named after their variables; of one name there can be one in a file, which stays as it was. */
static void test_equal_names(void **state) {
  (void)state;
  char folder[64], path[128], before[MOST_BYTES];
  net n;
  make_net(&n);
  make_folder(folder);
  snprintf(path, sizeof path, "%s/optimizer.safetensors", folder);
  helio_optimizer *optimizer = helio_adam(0.1), *twins = helio_adam(0.1);
  train(optimizer, &n, 0, 3);
  assert_ok(helio_save_optimizer(optimizer, path));
  size_t length = snapshot(optimizer, &n, before);
  helio_variable *a = helio_variable(.shape = HELIO_SHAPE(2)), *b = helio_variable(.shape = HELIO_SHAPE(2));
  assert_ok(helio_optimizer_build(twins, HELIO_VARIABLES(a, b)));
  assert_string_equal(helio_variable_name(helio_optimizer_variables(twins)->at[2]), "adam/Variable_1_momentum");
  assert_ok(helio_save_optimizer(twins, path));
  assert_ok(helio_load_optimizer(twins, path));
  assert_int_not_equal(helio_load_optimizer(optimizer, path), HELIO_OK); /* another's */
  helio_error_take(NULL);
  assert_unchanged(optimizer, &n, before, length);
  remove_folder(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_save_and_load), TEST(test_damaged_files), TEST(test_damaged_numbers),
      TEST(test_wrong_files),   TEST(test_equal_names),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
