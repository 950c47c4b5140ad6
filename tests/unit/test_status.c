/* SPDX-License-Identifier: Apache-2.0 */
/* Bad data is told with the name of who handed it over, the value and the limit, on devices of any kind; and text is
 * put before an error's message. */
#include "device/status.h"

#include <stdatomic.h>

#include "ops/dispatch.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "support.h"

/* ---- calls ---- */

static helio_tensor *indices(int value) {
  helio_tensor *tensor = helio_constant(((int[]){0, value}), HELIO_SHAPE(2), .type = HELIO_INT32);
  assert_made(tensor);
  return tensor;
}

static helio_tensor *gather(int rows, int index) {
  helio_tensor *result = helio_gather_rows(helio_fill(HELIO_SHAPE(rows, 3), 1), indices(index));
  assert_made(result);
  return result;
}

static helio_tensor *gather_by(const char *name, int rows, int index) {
  const char *previous = hi_blame_enter(name);
  helio_tensor *result = gather(rows, index);
  hi_blame_leave(previous);
  return result;
}

static helio_tensor *scatter_add(int rows, int index) {
  return helio_scatter_add(helio_fill(HELIO_SHAPE(2, 3), 1), indices(index), rows);
}

static helio_tensor *cross_entropy(int classes, int label) {
  return helio_nn_sparse_cross_entropy(helio_fill(HELIO_SHAPE(2, classes), 1), indices(label));
}

/* Of windows of two places each. */
static helio_tensor *max_pool_grad(int unused, int winner) {
  unsigned char winners[] = {1, (unsigned char)winner};
  (void)unused;
  helio_tensor *inputs[] = {helio_fill(HELIO_SHAPE(1, 1, 2, 1), 1),
                            helio_constant(winners, HELIO_SHAPE(1, 1, 2, 1), .type = HELIO_UINT8)};
  hi_call call = {.row = hi_row_of(HELIO_OP_MAX_POOL_GRAD),
                  .inputs = inputs,
                  .input_count = 2,
                  .attributes = {.pool = {.size = sizeof call.attributes.pool, .window = {1, 2}, .stride = {1, 2}}},
                  .wanted = HELIO_SHAPE(1, 1, 4, 1)};
  return hi_dispatch_one(&call);
}

/* Returns the table, which is what is written. */
static helio_tensor *update(helio_operation operation, int rows, int index) {
  helio_tensor *inputs[HI_MAX_FIXED_INPUTS] = {NULL}, *outputs[HI_MAX_OUTPUTS];
  hi_call call = {.row = hi_row_of(operation), .inputs = inputs};
  call.input_count = (int)strlen(call.row->inputs);
  call.attributes.size = call.row->attributes_size;
  int gradient = hi_update_gradient_place(call.row);
  for (int i = 0; i < gradient; i++) {
    if (call.row->inputs[i] == 'V') inputs[i] = helio_fill(HELIO_SHAPE(rows, 3), 1);
  }
  inputs[gradient] = helio_fill(HELIO_SHAPE(2, 3), 1);
  inputs[gradient + 1] = indices(index);
  return hi_dispatch(&call, outputs) ? NULL : inputs[0];
}

static helio_tensor *sgd_update(int rows, int index) {
  return update(HELIO_OP_SGD_UPDATE, rows, index);
}
static helio_tensor *adam_update(int rows, int index) {
  return update(HELIO_OP_ADAM_UPDATE, rows, index);
}
static helio_tensor *nadam_update(int rows, int index) {
  return update(HELIO_OP_NADAM_UPDATE, rows, index);
}
static helio_tensor *rmsprop_update(int rows, int index) {
  return update(HELIO_OP_RMSPROP_UPDATE, rows, index);
}
static helio_tensor *adagrad_update(int rows, int index) {
  return update(HELIO_OP_ADAGRAD_UPDATE, rows, index);
}

/* ---- what is told ---- */

/* The whole message of the bad data that is told now, in which % stands for the device. */
static void expect_message_at(const char *pattern, int line) {
  helio_error error;
  char expected[2000] = "";
  for (const char *from = pattern; *from; from++) {
    size_t length = strlen(expected);
    snprintf(expected + length, sizeof expected - length, *from == '%' ? "%s" : "%.1s",
             *from != '%' ? from
             : on_gpu()   ? "/job:localhost/replica:0/task:0/device:GPU:0"
                          : "/job:localhost/replica:0/task:0/device:CPU:0");
  }
  helio_status status = helio_error_take(&error);
  if (status != HELIO_BAD_DATA || strcmp(error.message, expected) != 0) {
    print_error("line %d: expected: %s\n     got: %s: %s\n", line, expected, helio_status_name(status), error.message);
    _fail(__FILE__, line);
  }
}

/* By all that waits for the device. */
static void expect_told_at(const char *pattern, int line) {
  static unsigned turn;
  helio_tensor *any = helio_fill(HELIO_SCALAR, 1);
  float value;
  switch (turn++ % 3) {
  case 0:
    helio_tensor_read(any, &value, sizeof value);
    break;
  case 1:
    helio_item(any);
    break;
  default:
    helio_synchronize(NULL);
  }
  expect_message_at(pattern, line);
  assert_ok(helio_synchronize(NULL)); /* told once */
}
#define expect_told(pattern) expect_told_at(pattern, __LINE__)

static void expect_all_well(void) {
  HELIO_POOL {
    assert_true(helio_item(helio_sum(gather(5, 4))) == 6);
    assert_true(helio_item(helio_sum(gather_by("well", 5, 0))) == 6);
    assert_ok(helio_synchronize(NULL));
  }
}

static void test_operations(void **state) {
  static const struct {
    helio_tensor *(*make)(int limit, int value);
    int limit, value;
    const char *operation, *what;
  } cases[] = {
      {gather, 5, 7, "GatherV2", "index 7 is out of range: the table has 5 rows"},
      {gather, 5, 5, "GatherV2", "index 5 is out of range: the table has 5 rows"},
      {gather, 1, -1, "GatherV2", "index -1 is out of range: the table has 1 row"},
      {gather, 0, 3, "GatherV2", "index 0 is out of range: the table has 0 rows"},
      {scatter_add, 4, 4, "ScatterAdd", "index 4 is out of range: the result has 4 rows"},
      {cross_entropy, 46, 46, "SparseSoftmaxCrossEntropyWithLogits", "label 46 is out of range: there are 46 classes"},
      {cross_entropy, 1, 9, "SparseSoftmaxCrossEntropyWithLogits", "label 9 is out of range: there is 1 class"},
      {max_pool_grad, 2, 2, "MaxPoolGrad", "winner 2 is out of range: the window has 2 places"},
      {sgd_update, 5, 6, "SgdUpdate", "index 6 is out of range: the table has 5 rows"},
      {adam_update, 5, -2, "AdamUpdate", "index -2 is out of range: the table has 5 rows"},
      {nadam_update, 5, 5, "NadamUpdate", "index 5 is out of range: the table has 5 rows"},
      {rmsprop_update, 6, 6, "RmspropUpdate", "index 6 is out of range: the table has 6 rows"},
      {adagrad_update, 5, 8, "AdagradUpdate", "index 8 is out of range: the table has 5 rows"},
  };
  char expected[400];
  (void)state;
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    HELIO_POOL {
      assert_made(cases[i].make(cases[i].limit, cases[i].value));
      snprintf(expected, sizeof expected, "%s on %%: %s", cases[i].operation, cases[i].what);
      expect_told(expected);
      const char *previous = hi_blame_enter("encoder/words (Embedding)");
      assert_made(cases[i].make(cases[i].limit, cases[i].value));
      hi_blame_leave(previous);
      snprintf(expected, sizeof expected, "encoder/words (Embedding): %s (%s on %%)", cases[i].what,
               cases[i].operation);
      expect_told(expected);
    }
  }
  expect_all_well();
}

/* The read of the very result tells of it too, and the second read has the result. */
static void test_result(void **state) {
  float values[6];
  (void)state;
  HELIO_POOL {
    helio_tensor *rows = gather_by("embedding (Embedding)", 30050, 30050);
    assert_int_equal(helio_tensor_read(rows, values, sizeof values), HELIO_BAD_DATA);
    expect_message_at("embedding (Embedding): index 30050 is out of range: the table has 30050 rows (GatherV2 on %)",
                      __LINE__);
    assert_ok(helio_tensor_read(rows, values, sizeof values));
    assert_true(values[0] == 1 && values[2] == 1); /* what was good */
  }
  expect_all_well();
}

/* ---- names ---- */

static void test_nested_names(void **state) {
  (void)state;
  assert_null(hi_blame_enter("outer"));
  assert_string_equal(hi_blame_enter("inner"), "outer");
  HELIO_POOL {
    gather(5, 6);
    hi_blame_leave("outer");
    expect_told("inner: index 6 is out of range: the table has 5 rows (GatherV2 on %)");
    gather(5, 6);
    hi_blame_leave(NULL);
    expect_told("outer: index 6 is out of range: the table has 5 rows (GatherV2 on %)");
    gather(5, 6);
    expect_told("GatherV2 on %: index 6 is out of range: the table has 5 rows");
    gather_by("", 5, 6); /* as nobody */
    expect_told("GatherV2 on %: index 6 is out of range: the table has 5 rows");
  }
}

/* A name counts as it is during the call, wherever it lies. */
static void test_memory_of_names(void **state) {
  char name[20];
  (void)state;
  HELIO_POOL {
    snprintf(name, sizeof name, "first");
    gather_by(name, 5, 6);
    snprintf(name, sizeof name, "firs");
    gather_by(name, 5, 1);
    snprintf(name, sizeof name, "first2");
    gather_by(name, 5, 2);
    memset(name, 'x', sizeof name);
    expect_told("first: index 6 is out of range: the table has 5 rows (GatherV2 on %)");
  }
}

static void test_long_names(void **state) {
  char name[400], expected[600];
  (void)state;
  for (int shift = 0; shift < 3; shift++) { /* each of the three bytes of the character lies at the end once */
    memset(name, 'a', (size_t)shift);
    for (int i = shift; i + 4 < (int)sizeof name; i += 3) snprintf(name + i, 4, "→");
    int length = shift + (HI_BLAME_LENGTH - 1 - shift) / 3 * 3;
    HELIO_POOL {
      gather_by(name, 5, 6);
      gather_by(name, 5, 0); /* is the same */
      snprintf(expected, sizeof expected, "%.*s: index 6 is out of range: the table has 5 rows (GatherV2 on %%)",
               length, name);
      expect_told(expected);
    }
  }
}

/* ---- several callers in one batch of work ---- */

static void test_two_callers(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    HELIO_POOL {
      gather_by("one (Embedding)", 5, 4);
      gather_by("two (Embedding)", 5, 5);
      gather(5, 1);
      expect_told("two (Embedding): index 5 is out of range: the table has 5 rows (GatherV2 on %)");
      gather_by("one (Embedding)", 5, 6);
      gather_by("two (Embedding)", 5, 4);
      expect_told("one (Embedding): index 6 is out of range: the table has 5 rows (GatherV2 on %)");
      gather(8, 9);
      gather_by("one (Embedding)", 5, 6);
      gather_by("one (Embedding)", 5, 7); /* the first counts */
      gather_by("two (Embedding)", 5, 6);
      gather_by("one (Embedding)", 5, 2);
      expect_told("one (Embedding): index 6 is out of range: the table has 5 rows (GatherV2 on %); two (Embedding): "
                  "index 6 is out of range: the table has 5 rows (GatherV2 on %); GatherV2 on %: index 9 is out of "
                  "range: the table has 8 rows");
      expect_all_well();
    }
  }
}

/* A bad index comes by again in the gradient and in the update. */
static void test_told_of_the_first(void **state) {
  (void)state;
  HELIO_POOL {
    sgd_update(5, 6);
    gather_by("embedding", 5, 6);
    const char *previous = hi_blame_enter("embedding");
    scatter_add(5, 6);
    hi_blame_leave(previous);
    expect_told("embedding: index 6 is out of range: the table has 5 rows (GatherV2 on %)");
    sgd_update(5, 7);
    gather_by("embedding", 5, 6);
    expect_told("embedding: index 6 is out of range: the table has 5 rows (GatherV2 on %); SgdUpdate on %: index 7 is "
                "out of range: the table has 5 rows");
  }
}

/* What does not fit is left out, between two characters. */
static void test_all_callers_at_once(void **state) {
  char name[HI_BLAME_LENGTH + 8]; /* gcc reckons with larger numbers */
  (void)state;
  HELIO_POOL {
    for (int i = 1; i < HI_STATUS_WORDS; i++) {
      snprintf(name, sizeof name, "%02d →→→→→→→→→→→→→→→→→→→→→→→→→→→→→→→→→→→→→→→", i);
      gather_by(name, 5, 6);
    }
    gather_by("too many", 5, 6);
    helio_synchronize(NULL);
    assert_in_range(strlen(helio_error_message()), 1990, 1999);
    expect_error(HELIO_BAD_DATA, "; 02 →");
    assert_ok(helio_synchronize(NULL));
  }
  expect_all_well();
}

/* ---- more callers than words ---- */

static void fill_words(void) {
  char name[20];
  for (int i = 1; i < HI_STATUS_WORDS; i++) {
    snprintf(name, sizeof name, "layer %d", i);
    gather_by(name, 5, 1);
  }
}

static void test_more_callers_than_words(void **state) {
  (void)state;
  HELIO_POOL {
    fill_words();
    gather_by("too many", 6, 7);
    expect_told("GATHER on % met the value 7, which is out of range");
    /* That was followed by a read that found all well. */
    gather_by("too many", 6, 7);
    expect_told("too many: index 7 is out of range: the table has 6 rows (GatherV2 on %)");
    fill_words();
    gather_by("too many", 6, 7);
    gather_by("layer 31", 5, 6);
    expect_told("layer 31: index 6 is out of range: the table has 5 rows (GatherV2 on %); GATHER on % met the value 7, "
                "which is out of range");
  }
  expect_all_well();
}

/* Words go to new callers as long as somebody reads now and then; a caller that is used all the time keeps its own. */
static void test_ever_new_callers(void **state) {
  char name[40], expected[200];
  (void)state;
  for (int i = 0; i < 5 * HI_STATUS_WORDS; i++) {
    HELIO_POOL {
      snprintf(name, sizeof name, "layer %d", i);
      gather_by("always", 4, 3);
      gather_by(name, 5 + i, 0);
      gather(300 + i, 1);
      assert_ok(helio_synchronize(NULL));
      if (i % 10 != 9) continue;
      gather_by(name, 5 + i, 5 + i);
      snprintf(expected, sizeof expected, "%s: index %d is out of range: the table has %d rows (GatherV2 on %%)", name,
               5 + i, 5 + i);
      expect_told(expected);
    }
  }
}

static void test_devices_opened_again(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    HELIO_POOL {
      if (i == 2) setenv("HELIO_ARENA_DEBUG", "1", 1);
      gather_by("embedding", 5, 6);
      expect_told("embedding: index 6 is out of range: the table has 5 rows (GatherV2 on %)");
      fill_words();
      gather_by("too many", 5, 6); /* nobody hears of it */
    }
    assert_ok(helio_shutdown());
    expect_all_well();
    assert_ok(helio_shutdown());
  }
}

/* ---- threads ---- */

enum { WORKERS = 4, ROUNDS = 60, INDICES = 4000 }; /* so many that other threads read while a kernel runs */

static struct {
  atomic_int told[WORKERS];
  atomic_int wrong;
  pthread_barrier_t barrier;
} shared;

/* Each message must be that of a caller with its own value and limit. */
static void take_apart(char *message) {
  int worker, value, limit, length;
  for (char *rest = NULL, *part = strtok_r(message, ";", &rest); part; part = strtok_r(NULL, ";", &rest)) {
    length = 0;
    int found = sscanf(part, " worker %d: index %d is out of range: the table has %d rows (GatherV2 on /job%n", &worker,
                       &value, &limit, &length);
    if (found == 3 && length > 0 && worker >= 0 && worker < WORKERS && value == 100 + worker && limit == 5 + worker) {
      atomic_fetch_add(&shared.told[worker], 1);
    } else {
      fprintf(stderr, "told: %s\n", part);
      atomic_fetch_add(&shared.wrong, 1);
    }
  }
}

static void read_and_note(helio_tensor *any) {
  helio_error error;
  helio_item(any);
  helio_status status = helio_error_take(&error);
  if (status == HELIO_BAD_DATA) take_apart(error.message);
  if (status && status != HELIO_BAD_DATA) {
    fprintf(stderr, "%s\n", error.message);
    atomic_fetch_add(&shared.wrong, 1);
  }
}

static void *work(void *argument) {
  int number = *(int *)argument, values[INDICES] = {0};
  char name[20];
  snprintf(name, sizeof name, "worker %d", number);
  pthread_barrier_wait(&shared.barrier);
  for (int i = 0; i < ROUNDS; i++) {
    HELIO_POOL {
      helio_tensor *any = helio_fill(HELIO_SCALAR, 1), *table = helio_fill(HELIO_SHAPE(5 + number, 3), 1);
      values[INDICES - 1] = i % 5 == number % 5 ? 100 + number : number;
      helio_tensor *index = helio_constant(values, HELIO_SHAPE(INDICES), .type = HELIO_INT32);
      const char *previous = hi_blame_enter(name);
      helio_gather_rows(table, index);
      hi_blame_leave(previous);
      read_and_note(any);
    }
  }
  return NULL;
}

/* What a thread did may be told to another one, but of the right caller, and it is told. */
static void test_threads(void **state) {
  pthread_t threads[WORKERS];
  int numbers[WORKERS];
  (void)state;
  memset(&shared, 0, sizeof shared);
  assert_int_equal(pthread_barrier_init(&shared.barrier, NULL, WORKERS), 0);
  for (int i = 0; i < WORKERS; i++) {
    numbers[i] = i;
    assert_int_equal(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
  }
  for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&shared.barrier);
  assert_int_equal(shared.wrong, 0);
  for (int i = 0; i < WORKERS; i++) assert_in_range(shared.told[i], 1, WORKERS * ROUNDS);
  expect_all_well();
}

/* More threads than words that are free: what is told is right or plain, and the rest is not disturbed. */
static void *work_with_many_names(void *argument) {
  int number = *(int *)argument;
  pthread_barrier_wait(&shared.barrier);
  for (int i = 0; i < ROUNDS; i++) {
    HELIO_POOL {
      char name[40];
      float sum = 0;
      snprintf(name, sizeof name, "%d of %d", i, number);
      const char *previous = hi_blame_enter(name);
      helio_tensor *index = helio_constant(((int[]){0, 1}), HELIO_SHAPE(2), .type = HELIO_INT32);
      for (int k = 0; k < 8; k++)
        sum = helio_item(helio_sum(helio_gather_rows(helio_fill(HELIO_SHAPE(2 + k, 3), 1), index)));
      hi_blame_leave(previous);
      if (sum != 6) atomic_fetch_add(&shared.wrong, 1);
    }
  }
  helio_error_take(NULL);
  return NULL;
}

static void test_threads_with_many_names(void **state) {
  pthread_t threads[WORKERS];
  int numbers[WORKERS];
  (void)state;
  memset(&shared, 0, sizeof shared);
  assert_int_equal(pthread_barrier_init(&shared.barrier, NULL, WORKERS), 0);
  for (int i = 0; i < WORKERS; i++) {
    numbers[i] = i;
    assert_int_equal(pthread_create(&threads[i], NULL, work_with_many_names, &numbers[i]), 0);
  }
  for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&shared.barrier);
  assert_int_equal(shared.wrong, 0);
  HELIO_POOL {
    gather_by("afterwards", 5, 6);
    expect_told("afterwards: index 6 is out of range: the table has 5 rows (GatherV2 on %)");
  }
}

/* ---- text before a message ---- */

static void test_prefix(void **state) {
  (void)state;
  hi_error_prefix("%s: ", "nothing");
  assert_int_equal(helio_error_pending(), HELIO_OK);
  assert_string_equal(helio_error_message(), "");
  hi_fail(HELIO_INVALID_ARGUMENT, "the shape is %d", 7);
  hi_error_prefix("%s (%s): ", "dense", "Dense");
  hi_error_prefix("model: ");
  assert_string_equal(helio_error_message(), "model: dense (Dense): the shape is 7");
  hi_error_prefix("%.5s: ", helio_error_message()); /* of itself */
  expect_error(HELIO_INVALID_ARGUMENT, "model: model: dense (Dense): the shape is 7");
}

/* Characters of three bytes from `shift` on: the text must end with a whole one. */
static void expect_whole_characters(const char *text, size_t shift) {
  size_t length = strlen(text);
  assert_in_range(length, 1997, 1999);
  assert_int_equal((length - shift) % 3, 0);
  assert_string_equal(text + length - 3, "→");
}

static void test_prefix_that_is_too_long(void **state) {
  char text[5000];
  (void)state;
  for (int i = 0; i + 4 < (int)sizeof text; i += 3) snprintf(text + i, 4, "→");
  for (int shift = 0; shift < 3; shift++) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%.*s%s", shift, "aa", text);
    expect_whole_characters(helio_error_message(), (size_t)shift);
    hi_error_prefix("b");
    assert_int_equal(helio_error_message()[0], 'b');
    expect_whole_characters(helio_error_message(), (size_t)shift + 1);
    hi_error_prefix("%.*s%s", shift, "aa", text); /* nothing else is left */
    expect_whole_characters(helio_error_message(), (size_t)shift);
    assert_int_equal(helio_error_take(NULL), HELIO_INVALID_ARGUMENT);
  }
}

static void test_fit(void **state) {
  (void)state;
  assert_int_equal(hi_text_fit("", 1), 0);
  assert_int_equal(hi_text_fit("abc", 4), 3);
  assert_int_equal(hi_text_fit("abc", 3), 2);
  assert_int_equal(hi_text_fit("abc", 1), 0);
  assert_int_equal(hi_text_fit("a→b", 6), 5);
  assert_int_equal(hi_text_fit("a→b", 5), 4);
  assert_int_equal(hi_text_fit("a→b", 4), 1);
  assert_int_equal(hi_text_fit("a→b", 3), 1);
  assert_int_equal(hi_text_fit("a→b", 2), 1);
  assert_int_equal(hi_text_fit("\x80\x80\x80", 2), 0); /* no text at all */
}

static void expect_printable(const char *text, const char *expected) {
  char copy[32];
  snprintf(copy, sizeof copy, "%s", text);
  hi_make_printable(copy);
  assert_string_equal(copy, expected);
}

static void test_printable(void **state) {
  (void)state;
  expect_printable("a→é b", "a→é b");
  expect_printable("\x1b[31m\r\n\x7f", "?[31m???");
  expect_printable("a\xc2\x9b"
                   "31m\xc2\xa0",
                   "a??31m\xc2\xa0"); /* CSI in UTF-8; a space that does not break */
  expect_printable("\xc2", "\xc2");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_operations),
      TEST(test_result),
      TEST(test_nested_names),
      TEST(test_memory_of_names),
      TEST(test_long_names),
      TEST(test_two_callers),
      TEST(test_told_of_the_first),
      TEST(test_all_callers_at_once),
      TEST(test_more_callers_than_words),
      TEST(test_ever_new_callers),
      TEST(test_devices_opened_again),
      TEST(test_threads),
      TEST(test_threads_with_many_names),
      TEST(test_prefix),
      TEST(test_prefix_that_is_too_long),
      TEST(test_fit),
      TEST(test_printable),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
