/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: facts, host data, text, life, views, errors, memory. On the preferred device unless it says so. */
#include <math.h>
#include <unistd.h>

#include "test.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static helio_memory memory_of(const char *device) {
  helio_memory info;
  assert_ok(helio_memory_info(device, &info));
  return info;
}

static const char *preferred(void) {
  int count;
  return helio_logical_devices(NULL, &count)[0]->name;
}

static uint64_t live(void) {
  return memory_of(preferred()).allocations;
}

static helio_tensor *ones(int64_t count) {
  return helio_fill(HELIO_SHAPE(count), 1);
}

/* ---- facts and host data ---- */

static void test_types(void **state) {
  static const struct {
    helio_type type;
    const char *name;
    size_t bytes;
  } types[] = {{HELIO_FLOAT32, "float32", 4}, {HELIO_FLOAT64, "float64", 8},   {HELIO_FLOAT16, "float16", 2},
               {HELIO_INT32, "int32", 4},     {HELIO_BFLOAT16, "bfloat16", 2}, {HELIO_INT64, "int64", 8},
               {HELIO_UINT8, "uint8", 1},     {HELIO_BOOL, "bool", 1}};
  (void)state;
  for (size_t i = 0; i < COUNT(types); i++) {
    assert_string_equal(helio_type_name(types[i].type), types[i].name);
    assert_int_equal(helio_type_bytes(types[i].type), types[i].bytes);
    HELIO_POOL assert_int_equal(helio_tensor_type(helio_fill(HELIO_SHAPE(2), 1, types[i].type)), types[i].type);
  }
  assert_int_equal(helio_type_bytes((helio_type)0), 0);
  assert_int_equal(helio_type_bytes((helio_type)99), 0);
  assert_true(helio_type_is_integer(HELIO_UINT8) && helio_type_is_integer(HELIO_BOOL));
  assert_false(helio_type_is_integer(HELIO_BFLOAT16) || helio_type_is_integer((helio_type)99));
  assert_null(helio_fill(HELIO_SHAPE(2), 1, (helio_type)99));
  expect_error(HELIO_INVALID_ARGUMENT, "99 is not a type");
  assert_null(helio_constant("", HELIO_SHAPE(1), (helio_type)99));
  expect_error(HELIO_INVALID_ARGUMENT, "99 is not a type");
}

static void test_facts(void **state) {
  (void)state;
  HELIO_POOL {
    helio_tensor *a = helio_constant(((float[]){1, 2, 3, 4, 5, 6}), HELIO_SHAPE(2, 3), .name = "a");
    assert_made(a);
    assert_int_equal(helio_tensor_type(a), HELIO_FLOAT32);
    assert_int_equal(helio_tensor_elements(a), 6);
    assert_string_equal(helio_tensor_name(a), "a");
    assert_string_equal(helio_tensor_device(a), preferred());
    helio_shape shape = helio_tensor_shape(a);
    assert_int_equal(shape.rank, 2);
    assert_int_equal(shape.extent[0], 2);
    assert_int_equal(shape.extent[1], 3);
    assert_string_equal(helio_tensor_name(helio_relu(a)), "");
  }
  assert_int_equal(helio_tensor_elements(NULL), 0);
  assert_string_equal(helio_tensor_name(NULL), "");
  assert_string_equal(helio_tensor_device(NULL), "");
  assert_ok(helio_error_pending());
}

static void test_host_and_back(void **state) {
  unsigned char data[2048], back[2048];
  (void)state;
  for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 7 + i / 256);
  for (int rank = 0; rank <= HELIO_MAX_RANK; rank++) {
    helio_shape shape = {rank, {2, 2, 2, 2, 2, 2, 2, 2}};
    for (helio_type type = HELIO_FLOAT32; type <= HELIO_BOOL; type++) {
      size_t bytes = ((size_t)1 << rank) * helio_type_bytes(type);
      HELIO_POOL {
        helio_tensor *x = helio_constant(data, shape, type);
        assert_int_equal(helio_tensor_shape(x).rank, rank);
        memset(back, 0, sizeof back);
        assert_ok(helio_tensor_read(x, back, bytes));
        assert_memory_equal(back, data, bytes);
        assert_int_equal(back[bytes < sizeof back ? bytes : 0], bytes < sizeof back ? 0 : data[0]);
      }
    }
  }
}

/* The data belongs to the caller again when the call returns, whenever the device copies it. */
static void test_host_data_is_copied(void **state) {
  (void)state;
  HELIO_POOL {
    float data[] = {1, 2, 3}, back[3];
    helio_tensor *x = helio_constant(data, HELIO_SHAPE(3));
    memset(data, 0, sizeof data);
    assert_ok(helio_tensor_read(x, back, sizeof back));
    assert_memory_equal(back, ((float[]){1, 2, 3}), sizeof back);
  }
}

static void test_read_errors(void **state) {
  float back[4];
  (void)state;
  HELIO_POOL {
    helio_tensor *x = ones(3);
    assert_int_equal(helio_tensor_read(x, back, 16), HELIO_INVALID_ARGUMENT);
    expect_error(HELIO_INVALID_ARGUMENT, "12 bytes, not 16");
    assert_int_equal(helio_tensor_read(x, NULL, 12), HELIO_INVALID_ARGUMENT);
    expect_error(HELIO_INVALID_ARGUMENT, "data is NULL");
    assert_int_equal(helio_tensor_read(NULL, back, 0), HELIO_INVALID_ARGUMENT);
    expect_error(HELIO_INVALID_ARGUMENT, "NULL");
    assert_null(helio_tensor_text(NULL));
    expect_error(HELIO_INVALID_ARGUMENT, "NULL");
    assert_null(helio_constant(NULL, HELIO_SHAPE(3)));
    expect_error(HELIO_INVALID_ARGUMENT, "data is NULL");
  }
}

static void test_zero_size(void **state) {
  static const helio_shape shapes[] = {{1, {0}}, {2, {0, 3}}, {2, {3, 0}}, {8, {1, 1, 1, 0, 1, 1, 1, 1}}};
  (void)state;
  for (size_t i = 0; i < COUNT(shapes); i++) {
    HELIO_POOL {
      helio_tensor *x = helio_constant(NULL, shapes[i]);
      assert_made(x);
      assert_int_equal(helio_tensor_elements(x), 0);
      assert_ok(helio_tensor_read(x, NULL, 0));
      assert_ok(helio_tensor_read(helio_relu(helio_copy(helio_add(x, x))), NULL, 0));
    }
  }
}

static void test_item(void **state) {
  (void)state;
  HELIO_POOL {
    assert_true(helio_item(helio_fill(HELIO_SCALAR, 2.5)) == 2.5);
    assert_true(helio_item(helio_fill(HELIO_SHAPE(1, 1), -7, HELIO_INT64)) == -7);
    assert_true(helio_item(helio_fill(HELIO_SCALAR, 1, HELIO_BOOL)) == 1);
    assert_true(helio_item(helio_fill(HELIO_SCALAR, 0.5, HELIO_BFLOAT16)) == 0.5);
    assert_true(isnan(helio_item(ones(2))));
    expect_error(HELIO_INVALID_ARGUMENT, "(2,)");
    assert_true(isnan(helio_item(ones(0))));
    expect_error(HELIO_INVALID_ARGUMENT, "(0,)");
    assert_true(isnan(helio_item(NULL)));
    expect_error(HELIO_INVALID_ARGUMENT, "NULL");
  }
}

/* ---- text: TensorFlow's guide to tensors, `tf.` left out ---- */

static const int32_t counting[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
                                   15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29};

static void test_text(void **state) {
  const struct {
    helio_shape shape;
    helio_type type;
    const void *data;
    const char *text;
  } cases[] = {
      {{0, {0}}, HELIO_INT32, (const int32_t[]){4}, "Tensor(4, shape=(), dtype=int32)"},
      {{1, {3}}, HELIO_FLOAT32, (const float[]){2, 3, 4}, "Tensor([2. 3. 4.], shape=(3,), dtype=float32)"},
      {{2, {3, 2}},
       HELIO_FLOAT16,
       (const uint16_t[]){0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600},
       "Tensor(\n[[1. 2.]\n [3. 4.]\n [5. 6.]], shape=(3, 2), dtype=float16)"},
      {{2, {2, 2}},
       HELIO_FLOAT32,
       (const float[]){22, 28, 49, 64},
       "Tensor(\n[[22. 28.]\n [49. 64.]], shape=(2, 2), dtype=float32)"},
      {{2, {2, 2}},
       HELIO_FLOAT32,
       (const float[]){44, 56, 98, 128},
       "Tensor(\n[[ 44.  56.]\n [ 98. 128.]], shape=(2, 2), dtype=float32)"},
      {{3, {3, 2, 5}},
       HELIO_INT32,
       counting,
       "Tensor(\n[[[ 0  1  2  3  4]\n  [ 5  6  7  8  9]]\n\n [[10 11 12 13 14]\n  [15 16 17 18 19]]\n\n"
       " [[20 21 22 23 24]\n  [25 26 27 28 29]]], shape=(3, 2, 5), dtype=int32)"},
      {{1, {2}}, HELIO_BOOL, (const uint8_t[]){1, 0}, "Tensor([ True False], shape=(2,), dtype=bool)"},
      {{1, {0}}, HELIO_FLOAT32, NULL, "Tensor([], shape=(0,), dtype=float32)"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    HELIO_POOL {
      char *text = helio_tensor_text(helio_constant(cases[i].data, cases[i].shape, cases[i].type));
      assert_made(text);
      assert_string_equal(text, cases[i].text);
      free(text);
    }
  }
}

/* ---- life ---- */

static void leave_by_return(void) {
  HELIO_POOL {
    ones(5);
    HELIO_POOL {
      ones(6);
      return;
    }
  }
}

static void leave_by_break(void) {
  HELIO_POOL {
    ones(5);
    break;
  }
}

static void leave_by_goto(void) {
  HELIO_POOL {
    HELIO_POOL {
      ones(5);
      goto out;
    }
  }
out:
  return;
}

static void leave_by_continue(void) {
  for (int i = 0; i < 3; i++) {
    HELIO_POOL {
      ones(5);
      continue;
    }
  }
}

static void test_ways_out_of_a_pool(void **state) {
  (void)state;
  HELIO_POOL ones(1);
  uint64_t before = live();
  leave_by_return();
  assert_int_equal(live(), before);
  leave_by_break();
  assert_int_equal(live(), before);
  leave_by_goto();
  assert_int_equal(live(), before);
  leave_by_continue();
  assert_int_equal(live(), before);
}

static void test_nested_pools(void **state) {
  (void)state;
  HELIO_POOL ones(1);
  uint64_t before = live();
  HELIO_POOL {
    helio_tensor *outer = ones(2), *kept = NULL;
    HELIO_POOL {
      helio_tensor *inner = ones(3);
      assert_int_equal(live(), before + 2);
      HELIO_POOL assert_made(helio_add(inner, inner));
      assert_int_equal(live(), before + 2);
      kept = helio_keep(helio_add(inner, inner));
    }
    assert_int_equal(live(), before + 2);
    assert_true(helio_item(helio_sum(kept)) == 6);
    assert_true(helio_item(helio_sum(outer)) == 2);
    helio_release(kept);
  }
  assert_int_equal(live(), before);
}

static void test_keep_and_release(void **state) {
  helio_tensor *x = NULL;
  (void)state;
  HELIO_POOL ones(1);
  uint64_t before = live();
  HELIO_POOL {
    x = ones(4);
    assert_ptr_equal(helio_keep(x), x);
    assert_ptr_equal(helio_keep(x), x);
  }
  assert_int_equal(live(), before + 1);
  helio_release(x);
  assert_true(helio_item(helio_sum(x)) == 4);
  helio_release(x);
  HELIO_POOL {
    x = ones(4);
    helio_release(x);
    expect_error(HELIO_WRONG_STATE, "not kept");
    helio_release(helio_keep(x));
    helio_release(x);
    expect_error(HELIO_WRONG_STATE, "not kept");
    assert_true(helio_item(helio_sum(x)) == 4);
  }
  helio_release(NULL);
  assert_ok(helio_error_pending());
  assert_null(helio_keep(NULL));
  assert_ok(helio_shutdown()); /* what the thread's own pool has: the sum above */
  HELIO_POOL ones(1);
  assert_int_equal(live(), before);
}

/* ---- views ---- */

static helio_tensor *view_of(helio_tensor *x, int which) {
  switch (which) {
  case 0:
    return helio_reshape(x, HELIO_SHAPE(3, 4));
  case 1:
    return helio_expand_dims(x, -1);
  case 2:
    return helio_squeeze(helio_expand_dims(x, 0));
  case 3:
    return helio_slice(x, HELIO_SHAPE(1, 0), HELIO_SHAPE(1, 6));
  }
  return helio_slice(x, HELIO_SHAPE(1, 2), HELIO_SHAPE(1, 2));
}

static void test_views_share_memory(void **state) {
  (void)state;
  for (int which = 0; which < 5; which++) {
    bool shares = which < 4;
    HELIO_POOL {
      helio_tensor *x = helio_constant(counting, HELIO_SHAPE(2, 6), HELIO_INT32);
      uint64_t with_x = live();
      helio_tensor *view = view_of(x, which);
      assert_made(view);
      assert_int_equal(live(), with_x + !shares);
      assert_string_equal(helio_tensor_device(view), helio_tensor_device(x));
    }
  }
}

static void test_views_outlive_their_base(void **state) {
  static const int64_t sums[] = {66, 66, 66, 51, 17};
  (void)state;
  HELIO_POOL ones(1);
  uint64_t before = live();
  for (int which = 0; which < 5; which++) {
    helio_tensor *base = NULL, *view = NULL;
    HELIO_POOL {
      base = helio_keep(helio_constant(counting, HELIO_SHAPE(2, 6), HELIO_INT32));
      view = helio_keep(view_of(base, which));
    }
    helio_release(base);
    HELIO_POOL {
      helio_fill(HELIO_SHAPE(2, 6), 99, HELIO_INT32); /* would take the base's place */
      assert_true(helio_item(helio_sum(view)) == (double)sums[which]);
    }
    assert_int_equal(live(), before + 1);
    helio_release(view);
    assert_int_equal(live(), before);
  }
}

/* ---- the pending error ---- */

static void test_nothing_happens_while_an_error_is_pending(void **state) {
  float back = 5;
  (void)state;
  HELIO_POOL {
    helio_tensor *x = ones(2), *one = ones(1);
    assert_null(helio_add(x, ones(3)));
    uint64_t pending = helio_error_pending();
    assert_int_equal(pending, HELIO_INVALID_ARGUMENT);
    assert_null(helio_add(x, x));
    assert_null(helio_fill(HELIO_SHAPE(2), 1));
    assert_null(helio_constant(&back, HELIO_SHAPE(1)));
    assert_null(helio_reshape(x, HELIO_SHAPE(2, 1)));
    assert_null(helio_copy(x));
    assert_null(helio_to_device(x, "cpu:0"));
    assert_null(helio_tensor_text(x));
    assert_true(isnan(helio_item(one)));
    assert_int_equal(helio_tensor_read(one, &back, sizeof back), pending);
    assert_true(back == 5);
    assert_int_equal(helio_synchronize(NULL), pending);
    assert_int_equal(helio_set_soft_placement(true), pending);
    helio_release(helio_keep(x)); /* always works */
    expect_error(HELIO_INVALID_ARGUMENT, "(3,)");
    assert_made(helio_add(x, x));
    assert_string_equal(helio_error_message(), "");
  }
}

static void test_error_names_the_call(void **state) {
  helio_error error;
  (void)state;
  HELIO_POOL {
    assert_null(helio_relu(helio_matmul(ones(2), ones(2))));
    assert_int_equal(helio_error_take(&error), HELIO_INVALID_ARGUMENT);
    assert_string_equal(error.where, "helio_matmul");
    assert_int_equal(helio_error_take(&error), HELIO_OK);
    assert_string_equal(error.message, "");
  }
}

static void test_failed_bias_is_not_no_bias(void **state) {
  (void)state;
  HELIO_POOL {
    helio_tensor *a = helio_fill(HELIO_SHAPE(2, 3), 1), *b = helio_fill(HELIO_SHAPE(3, 4), 1);
    assert_null(helio_matmul(a, b, .bias = helio_add(ones(4), ones(5))));
    expect_error(HELIO_INVALID_ARGUMENT, "AddV2");
    assert_made(helio_matmul(a, b, .bias = NULL));
  }
}

/* ---- shutdown ---- */

static void hear_nothing(void *user, helio_log_level level, const char *line) {
  (void)user, (void)level, (void)line;
}

/* A debug build says what is held, which is meant here. */
static void test_kept_over_shutdown(void **state) {
  float back[4];
  (void)state;
  helio_tensor *x = helio_keep(ones(4)), *view = helio_keep(helio_reshape(x, HELIO_SHAPE(2, 2)));
  assert_made(view);
  helio_set_log_sink(hear_nothing, NULL);
  helio_status status = helio_shutdown();
  helio_set_log_sink(NULL, NULL);
  assert_ok(status);
  assert_int_equal(helio_tensor_elements(x), 4);
  assert_string_equal(helio_tensor_device(x), "");
  assert_int_equal(helio_tensor_read(x, back, sizeof back), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, "helio_shutdown");
  assert_null(helio_relu(x));
  expect_error(HELIO_WRONG_STATE, "Relu: input 0");
  assert_null(helio_add(helio_fill(HELIO_SHAPE(4), 1), x));
  expect_error(HELIO_WRONG_STATE, "AddV2: input 1");
  assert_null(helio_reshape(view, HELIO_SHAPE(4)));
  expect_error(HELIO_WRONG_STATE, "helio_shutdown");
  assert_null(helio_to_device(x, "cpu:0"));
  expect_error(HELIO_WRONG_STATE, "helio_shutdown");
  assert_null(helio_concat((helio_tensor *[]){x, x}, 2, 0));
  expect_error(HELIO_WRONG_STATE, "helio_shutdown");
  helio_release(x);
  helio_release(view);
  assert_ok(helio_error_pending());
  HELIO_POOL assert_true(helio_item(helio_sum(ones(4))) == 4);
}

/* ---- options of older and newer programs ---- */

static void test_option_sizes(void **state) {
  struct {
    helio_fill_options known;
    uint64_t newer[2];
  } later = {.known = {.size = sizeof later, .shape = {1, {3}}, .value = 2}};
  helio_fill_options earlier = {.size = offsetof(helio_fill_options, type),
                                .shape = {1, {3}},
                                .value = 2,
                                .type = HELIO_INT32}; /* beyond the size: not looked at */
  (void)state;
  HELIO_POOL {
    helio_tensor *made = helio_fill_with(&earlier);
    assert_int_equal(helio_tensor_type(made), HELIO_FLOAT32);
    assert_true(helio_item(helio_sum(made)) == 6);
    assert_true(helio_item(helio_sum(helio_fill_with(&later.known))) == 6);
    later.newer[1] = 1;
    assert_null(helio_fill_with(&later.known));
    expect_error(HELIO_NOT_SUPPORTED, "newer");
    earlier.size = 0;
    assert_null(helio_fill_with(&earlier));
    helio_error_take(NULL);
    assert_null(helio_fill_with(NULL));
    expect_error(HELIO_INVALID_ARGUMENT, "NULL");
  }
}

static void test_older_matmul(void **state) {
  (void)state;
  HELIO_POOL {
    helio_matmul_options options = {.size = offsetof(helio_matmul_options, bias),
                                    .a = helio_fill(HELIO_SHAPE(2, 3), 1),
                                    .b = helio_fill(HELIO_SHAPE(3, 2), 1),
                                    .bias = ones(2)};
    assert_true(helio_item(helio_sum(helio_matmul_with(&options))) == 12);
    options.size = sizeof options;
    assert_true(helio_item(helio_sum(helio_matmul_with(&options))) == 16);
  }
}

/* An older program has a smaller helio_memory: no more than that is written. */
static void test_memory_info_sizes(void **state) {
  helio_memory info;
  memset(&info, 0x55, sizeof info);
  (void)state;
  HELIO_POOL ones(1);
  assert_ok(helio_memory_info_sized(preferred(), &info, offsetof(helio_memory, reserved)));
  assert_int_equal(info.size, offsetof(helio_memory, reserved));
  assert_true(info.in_use > 0 && info.peak >= info.in_use);
  assert_true(info.reserved == 0x5555555555555555u);
}

/* ---- memory ---- */

static long resident_bytes(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static void step(int number) {
  static const float numbers[64] = {1, -2, 3};
  HELIO_POOL {
    helio_tensor *x = helio_constant(numbers, HELIO_SHAPE(8, 8));
    helio_tensor *y = helio_matmul(x, x, .bias = helio_fill(HELIO_SHAPE(8), 1), .activation = HELIO_RELU);
    helio_tensor *part = helio_slice(y, HELIO_SHAPE(0, 2), HELIO_SHAPE(-1, 4));
    helio_tensor *sum = helio_sum(helio_cast(helio_concat((helio_tensor *[]){part, part}, 2, 1), HELIO_FLOAT64));
    if (number % 10 == 0) assert_true(helio_item(sum) == 70);
  }
}

/* Sanitizers hold freed memory back, so they have no say in how much there is. */
static bool is_sanitized(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return true;
#endif
#endif
  return false;
}

static void test_steady_loop_is_flat(void **state) {
  (void)state;
  for (int i = 0; i < 1000; i++) step(i);
  assert_ok(helio_synchronize(NULL));
  helio_memory before = memory_of(preferred());
  long resident = resident_bytes();
  for (int i = 0; i < 10000; i++) step(i);
  assert_ok(helio_synchronize(NULL));
  helio_memory after = memory_of(preferred());
  assert_int_equal(after.in_use, before.in_use);
  assert_int_equal(after.reserved, before.reserved);
  assert_int_equal(after.taken, before.taken);
  assert_int_equal(after.allocations, before.allocations);
  assert_int_equal(after.peak, before.peak);
  if (!is_sanitized()) assert_true(resident_bytes() - resident < 1 << 20);
}

static void test_out_of_memory(void **state) {
  (void)state;
  HELIO_POOL {
    const char *device = preferred();
    float *zeros = calloc(1 << 18, sizeof *zeros);
    helio_tensor *weights = helio_constant(zeros, HELIO_SHAPE(1 << 18), .name = "weights");
    free(zeros);
    assert_made(weights);
    assert_null(helio_fill(HELIO_SHAPE(1 << 21), 1));
    static const char *const parts[] = {"Fill asked for 8.0 MiB", "limit 4.0 MiB", "weights 1.0 MiB in 1"};
    for (size_t i = 0; i < COUNT(parts); i++) {
      if (!strstr(helio_error_message(), parts[i])) fail_msg("%s: not in: %s", parts[i], helio_error_message());
    }
    expect_error(HELIO_OUT_OF_MEMORY, device);
    assert_null(helio_relu(helio_concat((helio_tensor *[]){weights, weights, weights, weights}, 4, 0)));
    expect_error(HELIO_OUT_OF_MEMORY, "ConcatV2 asked for 4.0 MiB");
    assert_true(helio_item(helio_sum(helio_relu(weights))) == 0); /* life goes on */
    helio_memory info = memory_of(device);
    assert_int_equal(info.limit, 4 << 20);
    assert_true(info.reserved <= info.limit && info.in_use <= info.reserved);
  }
}

static int limit_memory(void **state) {
  setenv("HELIO_MEMORY_LIMIT", "4M", 1);
  return start_afresh(state);
}

static int unlimit_memory(void **state) {
  unsetenv("HELIO_MEMORY_LIMIT");
  return start_afresh(state);
}

/* ---- copies between devices ---- */

/* Two of each kind that the variant has. */
static int start_with_many(void **state) {
  const char *backend = getenv("HELIO_BACKEND");
  bool strict = backend && strcmp(backend, "strict") == 0;
  if (strict) setenv("HELIO_STRICT_DEVICES", "2", 1);
  setenv("HELIO_LOGICAL_DEVICES", strict ? "cpu:0=2;gpu:1=2" : "cpu:0=2", 1);
  return start_afresh(state);
}

static int start_without_peers(void **state) {
  const char *backend = getenv("HELIO_BACKEND");
  if (backend && strcmp(backend, "strict") == 0) setenv("HELIO_STRICT_PEER", "0", 1);
  return start_with_many(state);
}

static int start_with_one(void **state) {
  unsetenv("HELIO_STRICT_DEVICES");
  unsetenv("HELIO_STRICT_PEER");
  unsetenv("HELIO_LOGICAL_DEVICES");
  return start_afresh(state);
}

static void check_copy(const char *from, const char *to, int64_t count) {
  HELIO_POOL {
    helio_tensor *x = NULL, *copied = NULL, *seen = NULL;
    HELIO_DEVICE(from) x = helio_relu(helio_fill(HELIO_SHAPE(count), 3));
    assert_string_equal(helio_tensor_device(x), from);
    copied = helio_to_device(x, to);
    assert_string_equal(helio_tensor_device(copied), to);
    assert_int_equal(copied == x, strcmp(from, to) == 0);
    HELIO_DEVICE(to) seen = helio_add(copied, copied);
    assert_string_equal(helio_tensor_device(seen), to);
    helio_tensor *home = helio_to_device(seen, from);
    HELIO_DEVICE(from) seen = helio_copy(home);
    assert_string_equal(helio_tensor_device(seen), from);
    HELIO_DEVICE(to) assert_string_equal(helio_tensor_device(helio_copy(home)), to);
    float *back = calloc((size_t)count, sizeof *back);
    assert_ok(helio_tensor_read(seen, back, (size_t)count * sizeof *back));
    for (int64_t i = 0; i < count; i++) assert_true(back[i] == 6);
    free(back);
  }
}

static void test_copies_between_devices(void **state) {
  static const int64_t counts[] = {1, 7, 5003, 300007};
  int count;
  (void)state;
  const helio_device *const *devices = helio_logical_devices(NULL, &count);
  assert_true(count >= 2);
  for (int from = 0; from < count; from++) {
    for (int to = 0; to < count; to++) {
      for (size_t i = 0; i < COUNT(counts); i++) check_copy(devices[from]->name, devices[to]->name, counts[i]);
    }
  }
}

static void test_copies_of_nothing_and_to_nowhere(void **state) {
  int count;
  (void)state;
  const char *last = helio_logical_devices(NULL, &count)[count - 1]->name;
  HELIO_POOL {
    helio_tensor *x = helio_to_device(ones(0), last);
    assert_string_equal(helio_tensor_device(x), last);
    assert_int_equal(helio_tensor_elements(x), 0);
    assert_null(helio_to_device(ones(1), "gpu:77"));
    expect_error(HELIO_NO_DEVICE, "unknown device.");
    assert_null(helio_to_device(ones(1), "no such name"));
    expect_error(HELIO_INVALID_ARGUMENT, "'no such name' is not the name of a device");
    assert_null(helio_to_device(ones(1), NULL));
    expect_error(HELIO_INVALID_ARGUMENT, "not the name of a device");
    assert_null(helio_to_device(NULL, last));
    expect_error(HELIO_INVALID_ARGUMENT, "NULL");
  }
}

#define MANY(test)         cmocka_unit_test_setup_teardown(test, start_with_many, start_with_one)
#define WITHOUT_PEER(test) cmocka_unit_test_setup_teardown(test, start_without_peers, start_with_one)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_facts),
      cmocka_unit_test(test_host_and_back),
      cmocka_unit_test(test_host_data_is_copied),
      cmocka_unit_test(test_read_errors),
      cmocka_unit_test(test_zero_size),
      cmocka_unit_test(test_item),
      cmocka_unit_test(test_text),
      cmocka_unit_test(test_ways_out_of_a_pool),
      cmocka_unit_test(test_nested_pools),
      cmocka_unit_test(test_keep_and_release),
      cmocka_unit_test(test_views_share_memory),
      cmocka_unit_test(test_views_outlive_their_base),
      cmocka_unit_test(test_nothing_happens_while_an_error_is_pending),
      cmocka_unit_test(test_error_names_the_call),
      cmocka_unit_test(test_failed_bias_is_not_no_bias),
      cmocka_unit_test(test_kept_over_shutdown),
      cmocka_unit_test(test_option_sizes),
      cmocka_unit_test(test_older_matmul),
      cmocka_unit_test(test_memory_info_sizes),
      cmocka_unit_test(test_steady_loop_is_flat),
      cmocka_unit_test_setup_teardown(test_out_of_memory, limit_memory, unlimit_memory),
      MANY(test_copies_between_devices),
      MANY(test_copies_of_nothing_and_to_nowhere),
      WITHOUT_PEER(test_copies_between_devices),
  };
  return cmocka_run_group_tests(tests, NULL, start_afresh);
}
