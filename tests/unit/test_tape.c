/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient tape and variables, on the CPU and on the strict device. */
#include <math.h>

#include "support.h"

static helio_tensor *vector(const float *values, int count) {
  return helio_constant(values, HELIO_SHAPE(count));
}

static void assert_values(helio_tensor *tensor, const float *expected, int count) {
  float values[64];
  assert_made(tensor);
  assert_int_equal(helio_tensor_elements(tensor), count);
  assert_ok(helio_tensor_read(tensor, values, (size_t)count * sizeof *values));
  for (int i = 0; i < count; i++) {
    if (fabsf(values[i] - expected[i]) > 1e-6f * (1 + fabsf(expected[i]))) {
      fail_msg("element %d is %g, not %g", i, (double)values[i], (double)expected[i]);
    }
  }
}
#define VALUES(tensor, ...)                                                                                            \
  assert_values(tensor, (float[]){__VA_ARGS__}, (int)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)))

static void test_not_a_scalar(void **state) {
  (void)state;
  helio_variable *v = helio_variable(vector((float[]){1, 2}, 2), .name = "v");
  helio_tape *tape = helio_tape_new();
  helio_tensor *y = NULL;
  HELIO_TAPE(tape) y = helio_square(helio_value(v));
  helio_gradients *g = helio_gradient(tape, y, HELIO_VARIABLES(v));
  assert_made(g);
  VALUES(helio_gradients_at(g, 0), 2, 4);
}

static void test_none(void **state) {
  (void)state;
  helio_variable *v = helio_variable(vector((float[]){1, 2}, 2)), *unused = helio_variable(vector((float[]){3}, 1));
  helio_variable *fixed = helio_variable(vector((float[]){3}, 1), .not_trainable = true);
  helio_tape *tape = helio_tape_new();
  helio_tensor *y = NULL;
  HELIO_TAPE(tape) {
    helio_square(helio_value(unused)); /* seen, but y does not depend on it */
    y = helio_sum(helio_mul(helio_value(v), helio_value(fixed)));
  }
  helio_gradients *g = helio_gradient(tape, y, HELIO_VARIABLES(unused, v, fixed));
  assert_made(g);
  assert_int_equal(helio_gradients_count(g), 3);
  assert_false(helio_gradients_has(g, 0));
  assert_null(helio_gradients_at(g, 0));
  assert_false(helio_gradients_has(g, 2)); /* not trainable: not watched */
  assert_int_equal(helio_error_pending(), HELIO_OK);
  VALUES(helio_gradients_at(g, 1), 3, 3);
  assert_null(helio_gradients_at(g, 3));
  expect_error(HELIO_INVALID_ARGUMENT, "no gradient 3");
}

static void test_watched_and_output_gradient(void **state) {
  (void)state;
  helio_tape *tape = helio_tape_new(.persistent = true);
  helio_tensor *x = vector((float[]){1, 2, 3}, 3), *y = NULL, *middle = NULL;
  HELIO_TAPE(tape) {
    assert_ok(helio_tape_watch(tape, x));
    middle = helio_mul(x, x);
    y = helio_mul(middle, x); /* x³ */
  }
  helio_tensor *both[] = {x, middle};
  helio_gradients *g = helio_gradient(tape, y, .tensors = both, .tensor_count = 2);
  assert_made(g);
  VALUES(helio_gradients_at(g, 0), 3, 12, 27);
  VALUES(helio_gradients_at(g, 1), 1, 2, 3);
  g = helio_gradient(tape, y, .tensors = both, .tensor_count = 1, .output_gradient = vector((float[]){1, 0, 2}, 3));
  assert_made(g);
  VALUES(helio_gradients_at(g, 0), 3, 0, 54);
  assert_null(helio_gradient(tape, y, .tensors = both, .tensor_count = 1, .output_gradient = vector((float[]){1}, 1)));
  expect_error(HELIO_INVALID_ARGUMENT, "(1,)");
  g = helio_gradient(tape, y, .tensors = both, .tensor_count = 1); /* the tape is as it was */
  VALUES(helio_gradients_at(g, 0), 3, 12, 27);
}

static void test_once_unless_persistent(void **state) {
  (void)state;
  helio_variable *v = helio_variable(vector((float[]){3}, 1));
  helio_tape *tape = helio_tape_new();
  helio_tensor *y = NULL;
  for (int i = 0; i < 3; i++) { /* entering it again starts it anew */
    HELIO_TAPE(tape) y = helio_square(helio_value(v));
    helio_gradients *g = helio_gradient(tape, y, HELIO_VARIABLES(v));
    assert_made(g);
    VALUES(helio_gradients_at(g, 0), 6);
    assert_null(helio_gradient(tape, y, HELIO_VARIABLES(v)));
    expect_error(HELIO_WRONG_STATE, "persistent");
  }
}

static void test_stop_gradient(void **state) {
  (void)state;
  helio_variable *v = helio_variable(vector((float[]){3}, 1));
  helio_tape *tape = helio_tape_new();
  helio_tensor *y = NULL;
  HELIO_TAPE(tape) y = helio_mul(helio_value(v), helio_stop_gradient(helio_square(helio_value(v))));
  helio_gradients *g = helio_gradient(tape, y, HELIO_VARIABLES(v));
  VALUES(helio_gradients_at(g, 0), 9);
}

static void test_assigned(void **state) {
  (void)state;
  helio_variable *v = helio_variable(vector((float[]){3}, 1), .name = "dense/kernel");
  helio_tensor *y = NULL;
  for (int how = 0; how < 4; how++) {
    helio_tape *tape = helio_tape_new();
    HELIO_TAPE(tape) y = how < 2 ? helio_square(helio_value(v)) : helio_neg(helio_value(v));
    if (how % 2) {
      assert_ok(helio_assign(v, vector((float[]){4}, 1)));
    } else {
      assert_ok(helio_assign_add(v, vector((float[]){1}, 1)));
    }
    assert_null(helio_gradient(tape, y, HELIO_VARIABLES(v)));
    expect_error(HELIO_WRONG_STATE, "dense/kernel was assigned");
  }
  /* assigned before it is read, also inside the tape: no harm */
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) {
    assert_ok(helio_assign(v, vector((float[]){5}, 1)));
    y = helio_square(helio_value(v));
  }
  helio_gradients *g = helio_gradient(tape, y, HELIO_VARIABLES(v));
  assert_made(g);
  VALUES(helio_gradients_at(g, 0), 10);
}

static void test_views_and_copies(void **state) {
  (void)state;
  float numbers[] = {1, 2, 3, 4, 5, 6};
  helio_variable *v = helio_variable(helio_constant(numbers, HELIO_SHAPE(3, 2)));
  helio_tape *tape = helio_tape_new();
  helio_tensor *y = NULL, *parts[3];
  HELIO_TAPE(tape) {
    helio_tensor *x = helio_copy(helio_reshape(helio_value(v), HELIO_SHAPE(2, 3)));
    x = helio_squeeze(helio_expand_dims(helio_to_device(x, "cpu:0"), 0));
    assert_ok(helio_split(x, 2, 0, parts)); /* views of the first axis */
    helio_tensor *last = helio_slice(x, HELIO_SHAPE(0, 1), HELIO_SHAPE(2, 2));
    y = helio_add(helio_sum(helio_square(parts[1])), helio_sum(last));
  }
  helio_gradients *g = helio_gradient(tape, y, HELIO_VARIABLES(v));
  assert_made(g);
  VALUES(helio_reshape(helio_gradients_at(g, 0), HELIO_SHAPE(6)), 0, 1, 1, 8, 11, 13);
}

static void test_rows(void **state) {
  (void)state;
  float table[] = {1, 2, 3, 4, 5, 6};
  int32_t first[] = {2, 0, 2}, second[] = {1, 1};
  helio_variable *v = helio_variable(helio_constant(table, HELIO_SHAPE(3, 2)));
  helio_tape *tape = helio_tape_new();
  helio_tensor *y = NULL, *indices = NULL;
  HELIO_TAPE(tape) {
    helio_tensor *a = helio_gather_rows(helio_value(v), helio_constant(first, HELIO_SHAPE(3), HELIO_INT32));
    helio_tensor *b = helio_gather_rows(helio_value(v), helio_constant(second, HELIO_SHAPE(2), HELIO_INT32));
    y = helio_add(helio_sum(a), helio_sum(helio_square(b)));
  }
  helio_gradients *g = helio_gradient(tape, y, HELIO_VARIABLES(v));
  assert_made(g);
  helio_tensor *rows = helio_gradients_rows(g, 0, &indices); /* rows and rows are rows */
  assert_made(rows);
  assert_int_equal(helio_tensor_elements(indices), 5);
  assert_int_equal(helio_tensor_shape(rows).extent[0], 5);
  VALUES(helio_reshape(helio_gradients_at(g, 0), HELIO_SHAPE(6)), 1, 1, 12, 16, 2, 2);
  HELIO_TAPE(tape) { /* with a dense one they are dense */
    helio_tensor *a = helio_gather_rows(helio_value(v), helio_constant(first, HELIO_SHAPE(3), HELIO_INT32));
    y = helio_add(helio_sum(a), helio_sum(helio_square(helio_value(v))));
  }
  g = helio_gradient(tape, y, HELIO_VARIABLES(v));
  assert_null(helio_gradients_rows(g, 0, &indices));
  VALUES(helio_reshape(helio_gradients_at(g, 0), HELIO_SHAPE(6)), 3, 5, 6, 8, 12, 14);
}

/* The gradient of a gradient: the outer tape records the inner one's way back. */
static void test_second_order(void **state) {
  (void)state;
  helio_variable *v = helio_variable(vector((float[]){3}, 1));
  helio_tape *outer = helio_tape_new(), *inner = helio_tape_new();
  helio_tensor *y = NULL, *dy = NULL;
  HELIO_TAPE(outer) {
    HELIO_TAPE(inner) {
      helio_tensor *x = helio_value(v);
      y = helio_mul(helio_square(x), x);
    }
    dy = helio_gradients_at(helio_gradient(inner, y, HELIO_VARIABLES(v)), 0);
  }
  VALUES(dy, 27);
  VALUES(helio_gradients_at(helio_gradient(outer, dy, HELIO_VARIABLES(v)), 0), 18);
}

/* What has no gradient says so where one would be lost, and not where none is asked for. */
static void test_no_gradient(void **state) {
  (void)state;
  helio_variable *v = helio_variable(vector((float[]){3, 1, 2}, 3));
  helio_tape *tape = helio_tape_new();
  helio_tensor *y = NULL;
  HELIO_TAPE(tape) y = helio_top_k(helio_value(v), 2, NULL);
  assert_null(helio_gradient(tape, y, HELIO_VARIABLES(v)));
  expect_error(HELIO_NOT_SUPPORTED, "TopKV2 has no gradient");
  HELIO_TAPE(tape) {
    helio_tensor *largest = helio_cast(helio_argmax(helio_value(v), 0), HELIO_FLOAT32);
    y = helio_add(helio_sum(helio_value(v)), largest);
  }
  VALUES(helio_gradients_at(helio_gradient(tape, y, HELIO_VARIABLES(v)), 0), 1, 1, 1);
}

/* Watched before it is entered, also where it was used before. */
static void test_watch_first(void **state) {
  (void)state;
  helio_tape *tape = helio_tape_new();
  helio_tensor *x = vector((float[]){3}, 1), *y = NULL;
  for (int i = 0; i < 2; i++) {
    assert_ok(helio_tape_watch(tape, x));
    HELIO_TAPE(tape) y = helio_square(x);
    VALUES(helio_gradients_at(helio_gradient(tape, y, .tensors = &x, .tensor_count = 1), 0), 6);
  }
}

static void test_wrong_use(void **state) {
  (void)state;
  helio_variable *v = helio_variable(vector((float[]){3}, 1));
  helio_tape *tape = helio_tape_new();
  helio_tensor *y = NULL;
  HELIO_TAPE(tape) {
    HELIO_TAPE(tape) {}
    expect_error(HELIO_WRONG_STATE, "recording already");
    y = helio_square(helio_value(v));
    helio_gradients *g = helio_gradient(tape, y, HELIO_VARIABLES(v)); /* inside its own block */
    assert_made(g);
    VALUES(helio_gradients_at(g, 0), 6);
  }
  assert_null(helio_gradient(NULL, y, HELIO_VARIABLES(v)));
  expect_error(HELIO_INVALID_ARGUMENT, "tape is NULL");
  HELIO_TAPE(NULL) {}
  expect_error(HELIO_INVALID_ARGUMENT, "tape is NULL");
  assert_int_equal(helio_assign(v, vector((float[]){1, 2}, 2)), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "(2,)");
  int32_t one = 1;
  assert_int_equal(helio_tape_watch(tape, helio_constant(&one, HELIO_SCALAR, HELIO_INT32)), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "int32");
}

static helio_tensor *leaves_early(helio_tape *tape, helio_variable *v) {
  HELIO_TAPE(tape) {
    return helio_square(helio_value(v));
  }
  return NULL;
}

static void test_left_by_return(void **state) {
  (void)state;
  helio_variable *v = helio_variable(vector((float[]){3}, 1));
  helio_tape *tape = helio_tape_new();
  helio_tensor *y = leaves_early(tape, v);
  helio_square(helio_value(v)); /* not recorded */
  HELIO_POOL {
    helio_tape *other = helio_tape_new();
    HELIO_TAPE(other) helio_square(helio_value(v));
  }
  VALUES(helio_gradients_at(helio_gradient(tape, y, HELIO_VARIABLES(v)), 0), 6);
}

/* Deep chains and wide sums: the table of slots grows, places for many inputs are found. */
static void test_large(void **state) {
  (void)state;
  enum { DEEP = 3000, WIDE = 100 };
  helio_variable *v = helio_variable(vector((float[]){1}, 1));
  helio_tape *tape = helio_tape_new();
  helio_tensor *y = NULL, *many[WIDE];
  HELIO_TAPE(tape) {
    y = helio_value(v);
    for (int i = 0; i < DEEP; i++) y = helio_neg(y);
    for (int i = 0; i < WIDE; i++) many[i] = helio_neg(y);
    y = helio_add_n(many, WIDE);
  }
  VALUES(helio_gradients_at(helio_gradient(tape, y, HELIO_VARIABLES(v)), 0), -WIDE);
}

/* The way back frees what it has passed: its peak is well below all that the tape kept plus all gradients. */
static void test_memory(void **state) {
  (void)state;
  enum { STEPS = 40, SIDE = 128 };
  const int64_t bytes = (int64_t)SIDE * SIDE * 4;
  helio_memory before, after;
  helio_variable *v = helio_variable(helio_fill(HELIO_SHAPE(SIDE, SIDE), 1));
  for (int round = 0; round < 3; round++) {
    HELIO_POOL {
      helio_tape *tape = helio_tape_new();
      helio_tensor *y = NULL;
      HELIO_POOL {
        HELIO_TAPE(tape) {
          y = helio_value(v);
          for (int i = 0; i < STEPS; i++) y = helio_tanh(y); /* keeps each result */
          y = helio_keep(helio_sum(y));
        }
      }
      assert_ok(helio_memory_info(device_name(), &before));
      assert_true((int64_t)before.in_use > STEPS * bytes);
      assert_made(helio_gradient(tape, y, HELIO_VARIABLES(v)));
      assert_ok(helio_memory_info(device_name(), &after));
      assert_true((int64_t)after.in_use < 6 * bytes);
      if (!SANITIZED) assert_true((int64_t)after.peak < (int64_t)before.in_use + 8 * bytes);
      helio_release(y);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_not_a_scalar),
      TEST(test_none),
      TEST(test_watched_and_output_gradient),
      TEST(test_once_unless_persistent),
      TEST(test_stop_gradient),
      TEST(test_assigned),
      TEST(test_views_and_copies),
      TEST(test_rows),
      TEST(test_second_order),
      TEST(test_no_gradient),
      TEST(test_watch_first),
      TEST(test_wrong_use),
      TEST(test_left_by_return),
      TEST(test_large),
      TEST(test_memory),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
