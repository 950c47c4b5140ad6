/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the user's in a pipeline: maps, with threads and without, and generators; and their failures. */
#include <stdatomic.h>

#include "pipelines.h"

/* ---- maps ---- */

typedef struct log_of_calls {
  atomic_int calls, at_once, most_at_once;
  int64_t fail_at; /* fails on the element of this number */
  helio_status status;
  bool pending; /* by an error of an operation */
} log_of_calls;

static int64_t number_of(const helio_element *element) {
  int64_t number = -1;
  helio_tensor_read(element->part[0], &number, sizeof number);
  return number;
}

/* Elements of even number take longer. */
static helio_status observe(void *argument, helio_element *element) {
  log_of_calls *self = argument;
  int now = atomic_fetch_add(&self->at_once, 1) + 1, most = atomic_load(&self->most_at_once);
  while (now > most && !atomic_compare_exchange_weak(&self->most_at_once, &most, now)) {
  }
  int64_t number = number_of(element);
  atomic_fetch_add(&self->calls, 1);
  usleep(number % 2 ? 200 : 3000);
  atomic_fetch_sub(&self->at_once, 1);
  if (self->fail_at < 0 || number != self->fail_at) return HELIO_OK;
  if (self->pending) helio_matmul(element->part[0], element->part[0]);
  return self->pending ? HELIO_OK : self->status;
}

static void parallel_calls_run_at_once_and_keep_the_order(void **state) {
  (void)state;
  log_of_calls calls = {.fail_at = -1};
  helio_iterator *iterator = helio_iterate(helio_dataset_map(helio_dataset_range(40), observe, &calls, .parallel = 4));
  helio_element element;
  for (int64_t i = 0; i < 40; i++) {
    assert_true(helio_next(iterator, &element));
    assert_int_equal(number_of(&element), i);
  }
  assert_false(helio_next(iterator, &element));
  assert_false(helio_next(iterator, &element));
  assert_int_equal(atomic_load(&calls.calls), 40);
  assert_in_range(atomic_load(&calls.most_at_once), 2, 4);
}

static void unordered_results_come_as_they_are_ready(void **state) {
  (void)state;
  log_of_calls calls = {.fail_at = -1};
  bool seen_numbers[40] = {false}, moved = false;
  helio_iterator *iterator =
      helio_iterate(helio_dataset_map(helio_dataset_range(40), observe, &calls, .parallel = 4, .unordered = true));
  helio_element element;
  for (int64_t i = 0; i < 40; i++) {
    assert_true(helio_next(iterator, &element));
    int64_t number = number_of(&element);
    assert_true(number >= 0 && number < 40 && !seen_numbers[number]);
    seen_numbers[number] = true;
    moved = moved || number != i;
  }
  assert_false(helio_next(iterator, &element));
  assert_true(moved);
}

static void without_threads_a_map_runs_one_call_when_asked(void **state) {
  (void)state;
  log_of_calls calls = {.fail_at = -1};
  helio_iterator *iterator = helio_iterate(helio_dataset_map(helio_dataset_range(9), observe, &calls));
  helio_element element;
  assert_int_equal(atomic_load(&calls.calls), 0);
  assert_true(helio_next(iterator, &element) && helio_next(iterator, &element));
  assert_int_equal(atomic_load(&calls.calls), 2);
}

/* Behind a cache a map is not called again; before it, it is called once for each element. */
static void a_cache_saves_calls(void **state) {
  (void)state;
  log_of_calls calls = {.fail_at = -1};
  helio_dataset *dataset = helio_dataset_cache(helio_dataset_map(helio_dataset_range(6), observe, &calls));
  free(rest_text(helio_iterate(helio_dataset_repeat(dataset, 3)), LIMIT));
  free(rest_text(helio_iterate(dataset), LIMIT));
  assert_int_equal(atomic_load(&calls.calls), 6);
  /* one that was read half is dropped, and the next begins anew */
  dataset = helio_dataset_cache(helio_dataset_map(helio_dataset_range(6), observe, &calls));
  helio_element element;
  assert_true(helio_next(helio_iterate(dataset), &element));
  free(rest_text(helio_iterate(dataset), LIMIT));
  free(rest_text(helio_iterate(dataset), LIMIT));
  assert_int_equal(atomic_load(&calls.calls), 6 + 1 + 6);
}

/* ---- failures of maps ---- */

static void check_failing(log_of_calls *calls, int parallel, bool prefetched, helio_status status, const char *part) {
  HELIO_POOL {
    helio_dataset *dataset = helio_dataset_map(helio_dataset_range(40), observe, calls, .parallel = parallel);
    if (prefetched) dataset = helio_dataset_prefetch(dataset, 3);
    helio_iterator *iterator = helio_iterate(dataset);
    helio_element element;
    for (int64_t i = 0; i < calls->fail_at; i++) assert_true(helio_next(iterator, &element));
    for (int i = 0; i < 2; i++) {
      assert_false(helio_next(iterator, &element));
      expect_error(status, part);
    }
  }
}

static void a_failing_function_ends_the_iteration(void **state) {
  (void)state;
  log_of_calls said = {.fail_at = 5, .status = HELIO_IO_FAILURE}, pending = {.fail_at = 5, .pending = true};
  for (int parallel = 0; parallel <= 3; parallel += 3) {
    for (int prefetched = 0; prefetched < 2; prefetched++) {
      check_failing(&said, parallel, prefetched, HELIO_IO_FAILURE,
                    "helio_dataset_map, element 5: the function returned HELIO_IO_FAILURE");
      check_failing(&pending, parallel, prefetched, HELIO_INVALID_ARGUMENT, "helio_dataset_map, element 5: MatMul");
    }
  }
}

static helio_status leave_nothing(void *argument, helio_element *element) {
  (void)argument;
  element->count = 0;
  return HELIO_OK;
}

static helio_status leave_null(void *argument, helio_element *element) {
  (void)argument;
  element->part[element->count++] = NULL;
  return HELIO_OK;
}

static helio_status make_two(void *argument, helio_element *element) {
  (void)argument;
  element->part[element->count++] = helio_neg(helio_cast(element->part[0], HELIO_FLOAT32));
  return HELIO_OK;
}

static void a_function_may_change_the_number_of_parts(void **state) {
  (void)state;
  helio_element element;
  helio_iterator *iterator = helio_iterate(helio_dataset_batch(helio_dataset_map(helio_dataset_range(3), make_two), 3));
  float negative[3];
  assert_true(helio_next(iterator, &element));
  assert_int_equal(element.count, 2);
  assert_ok(helio_tensor_read(element.part[1], negative, sizeof negative));
  assert_true(negative[0] == 0 && negative[1] == -1 && negative[2] == -2);
  assert_false(helio_next(helio_iterate(helio_dataset_map(helio_dataset_range(3), leave_nothing)), &element));
  expect_error(HELIO_INVALID_ARGUMENT, "element 0: the function left 0 parts");
  assert_false(helio_next(helio_iterate(helio_dataset_map(helio_dataset_range(3), leave_null)), &element));
  expect_error(HELIO_INVALID_ARGUMENT, "element 0: the function left NULL for part 1");
}

/* More tensors than helio_concat takes at a time. */
static void large_batches_of_tensors_are_stacked(void **state) {
  (void)state;
  enum { N = 4100 };
  helio_element element;
  helio_iterator *iterator =
      helio_iterate(helio_dataset_batch(helio_dataset_map(helio_dataset_range(N), twice_and_one), 5000));
  static int64_t values[N];
  assert_true(helio_next(iterator, &element));
  assert_ok(helio_tensor_read(element.part[0], values, sizeof values));
  for (int64_t i = 0; i < N; i++) assert_int_equal(values[i], 2 * i + 1);
}

/* ---- generators ---- */

typedef struct script {
  int fail_start, fail_at, starts, stops, at;
  helio_status status;
  bool pending, null, many;
} script;

static helio_status start_script(void *argument, void **state) {
  script *self = argument;
  *state = self;
  self->starts++;
  self->at = 0;
  return self->fail_start ? HELIO_NOT_READY : HELIO_OK;
}

static helio_status next_script(void *state, helio_generated *element) {
  script *self = state;
  int64_t number = self->at++;
  if (number == 6) return HELIO_OK;
  element->part[element->count++] = helio_array_of(&number, HELIO_SCALAR, .type = HELIO_INT64);
  if (self->fail_at < 0 || number != self->fail_at) return HELIO_OK;
  if (self->null) element->part[0] = NULL;
  if (self->many) element->count = 9;
  if (self->pending) helio_array_of(NULL, HELIO_SHAPE(-1));
  return self->status;
}

static void stop_script(void *state) {
  ((script *)state)->stops++;
}

static void check_script(script *self, int elements, helio_status status, const char *part) {
  for (int prefetched = 0; prefetched < 2; prefetched++) {
    HELIO_POOL {
      helio_dataset *dataset = helio_dataset_from_generator(next_script, start_script, stop_script, self);
      helio_iterator *iterator = helio_iterate(prefetched ? helio_dataset_prefetch(dataset, 2) : dataset);
      helio_element element;
      for (int i = 0; i < elements; i++) assert_true(helio_next(iterator, &element));
      assert_false(helio_next(iterator, &element));
      if (status) expect_error(status, part);
      assert_int_equal(self->starts, self->stops + self->fail_start);
    }
    assert_int_equal(self->starts, self->stops + self->fail_start);
    self->starts = self->stops = 0;
  }
}

static void generators_are_started_and_stopped_and_may_fail(void **state) {
  (void)state;
  const char *name = "helio_dataset_from_generator";
  check_script(&(script){.fail_at = -1}, 6, HELIO_OK, "");
  check_script(&(script){.fail_at = 3, .status = HELIO_TIMED_OUT}, 3, HELIO_TIMED_OUT, name);
  check_script(&(script){.fail_at = 3, .status = HELIO_TIMED_OUT}, 3, HELIO_TIMED_OUT, "next, element 3");
  check_script(&(script){.fail_at = 2, .pending = true}, 2, HELIO_INVALID_ARGUMENT, "next, element 2: ");
  check_script(&(script){.fail_at = 0, .null = true}, 0, HELIO_INVALID_ARGUMENT, "element 0: part 0 is NULL");
  check_script(&(script){.fail_at = 1, .many = true}, 1, HELIO_INVALID_ARGUMENT, "element 1: 9 parts");
  check_script(&(script){.fail_start = 1}, 0, HELIO_NOT_READY, "start, element 0");
}

static void a_count_that_is_promised_is_the_cardinality(void **state) {
  (void)state;
  static script self = {.fail_at = -1}; /* stopped when the test's pool ends */
  helio_dataset *dataset = helio_dataset_from_generator(next_script, start_script, stop_script, &self, .count = 1000);
  assert_int_equal(helio_dataset_cardinality(dataset), 1000);
  assert_int_equal(helio_dataset_cardinality(helio_dataset_batch(dataset, 300)), 4);
  /* but nothing relies on it */
  helio_iterator *iterator = helio_iterate(helio_dataset_skip(helio_dataset_repeat(dataset, 3), 13));
  helio_element element;
  assert_true(helio_next(iterator, &element));
  assert_int_equal(number_of(&element), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      POOL_TEST(parallel_calls_run_at_once_and_keep_the_order),
      POOL_TEST(unordered_results_come_as_they_are_ready),
      POOL_TEST(without_threads_a_map_runs_one_call_when_asked),
      POOL_TEST(a_cache_saves_calls),
      POOL_TEST(a_failing_function_ends_the_iteration),
      POOL_TEST(a_function_may_change_the_number_of_parts),
      POOL_TEST(large_batches_of_tensors_are_stacked),
      POOL_TEST(generators_are_started_and_stopped_and_may_fail),
      POOL_TEST(a_count_that_is_promised_is_the_cardinality),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, start_afresh, start_afresh);
}
