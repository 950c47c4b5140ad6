/* SPDX-License-Identifier: Apache-2.0 */
/* Iterators: positions, threads and their end, several threads at once, what shutdown leaves. */
#include <stdatomic.h>
#include <time.h>

#include "data/iterator.h"
#include "data/position.h"
#include "pipelines.h"

/* ---- positions ---- */

/* Pipelines of every kind; those of the golden file come on top. */
static const char *const kinds[] = {
    "range 30, shuffle 30 5, batch 4",
    "range 30, shuffle 7 5, batch 4, repeat 3",
    "range 30, shuffle 7 5, repeat 3, batch 4",
    "range 12, shuffle 12 5, repeat -1, batch 5, take 9",
    "range 12, shuffle_same 5 5, repeat 2",
    "slices 20, shuffle 20 5, batch 6, prefetch 2",
    "slices 20, shuffle 20 5, batch 6, map, prefetch 2, repeat 2",
    "slices 20, map_parallel 3, shuffle 6 2, batch 4, prefetch 1",
    "gen 14, shuffle 5 9, batch 3, repeat 2",
    "gen 14, map_parallel 2, prefetch 2",
    "range 12, shuffle 12 5, cache, repeat 3",
    "range 12, cache, shuffle 12 5, repeat 3, batch 5",
    "gen 9, shuffle 9 5, cache, repeat 3",
    "gen 9, cache, shuffle 9 5, repeat 3",
    "gen 9, shuffle 9 1, batch 2, cache, shuffle 5 2, repeat 3, prefetch 2",
    "range 9, shuffle 9 1, cache, take 4, repeat 3",
    "range 9, shuffle 9 1, range 9, shuffle 9 2, zip 2, repeat 2",
    "range 9, shuffle 9 1, range 7, shuffle 9 2, concat, shuffle 5 3, repeat 2",
    "slices 9, shuffle 9 1, slices 9, shuffle 9 2, concat, batch 4",
    "range 9, shuffle 9 1, take 4, repeat 3, shard 2 1",
    "range 9, shuffle 9 1, repeat -1, skip 5, take 7, shuffle 3 3, repeat 2",
    "ragged 9, shuffle 4 1, padded 2, repeat 2",
    "gen 5, range 5, shuffle 5 1, zip 2, map, cache, repeat 2",
};

/* As many epochs before as `iteration` says, then so many elements, then the rest with another iterator. */
static void check_restored(const char *pipeline, int iteration, int stop) {
  HELIO_POOL {
    helio_dataset *dataset = build_pipeline(pipeline);
    helio_element element;
    for (int i = 0; i < iteration; i++) {
      HELIO_POOL free(rest_text(helio_iterate(dataset), 3));
    }
    helio_iterator *iterator = helio_iterate(dataset);
    assert_made(iterator);
    for (int i = 0; i < stop && helio_next(iterator, &element); i++) {
    }
    helio_error_take(NULL);
    char *position = helio_iterator_position(iterator);
    assert_made(position);
    assert_true(strlen(position) < 400 && !strchr(position, '\n'));
    char *expected = rest_text(iterator, LIMIT);
    /* on the same dataset, whose caches are full and counters further; and on one that is new */
    helio_dataset *others[] = {dataset, build_pipeline(pipeline)};
    for (int i = 0; i < 2 && !strstr(expected, "error"); i++) {
      helio_iterator *other = helio_iterate(others[i]);
      if (i == 1) helio_next(other, &element);
      assert_ok(helio_iterator_restore(other, position));
      char *again = helio_iterator_position(other), *text = rest_text(other, LIMIT);
      assert_string_equal(again, position);
      if (strcmp(text, expected) != 0) {
        fail_msg("%s, iteration %d, behind %d elements:\n  expected %s\n  restored %s", pipeline, iteration, stop,
                 expected, text);
      }
      free(again);
      free(text);
    }
    free(position);
    free(expected);
  }
}

static void a_position_brings_back_the_rest(void **state) {
  (void)state;
  const int stops[] = {0, 1, 2, 3, 5, 8, 13, 100};
  for (size_t i = 0; i < COUNT_OF(kinds); i++) {
    bool endless = strstr(kinds[i], "repeat -1") && !strstr(kinds[i], "take");
    for (size_t k = 0; k < COUNT_OF(stops) - endless; k++) {
      check_restored(kinds[i], 0, stops[k]);
      check_restored(kinds[i], 2, stops[k]);
    }
  }
}

static void positions_hold_for_all_pipelines_of_tf_data(void **state) {
  (void)state;
  static char line[1 << 16];
  FILE *file = fopen(golden_data("datasets/pipelines.txt"), "r");
  assert_non_null(file);
  for (int i = 0; fgets(line, sizeof line, file); i++) {
    *strstr(line, " => ") = 0;
    check_restored(line, 0, i % 7);
  }
  fclose(file);
}

/* What follows in the next iteration is also what would have followed. */
static void iterations_are_counted_on(void **state) {
  (void)state;
  const char *pipeline = "range 30, shuffle 30 5, batch 30";
  helio_dataset *dataset = build_pipeline(pipeline), *other = build_pipeline(pipeline);
  helio_iterate(dataset);
  helio_iterate(dataset);
  char *position = helio_iterator_position(helio_iterate(dataset));
  char *expected = rest_text(helio_iterate(dataset), LIMIT);
  assert_ok(helio_iterator_restore(helio_iterate(other), position));
  char *text = rest_text(helio_iterate(other), LIMIT);
  assert_string_equal(text, expected);
  free(text);
  free(expected);
  free(position);
}

/* Restoring over sources of arrays reads no element: it would take hours here. */
static void positions_far_behind_are_reached_at_once(void **state) {
  (void)state;
  const char *pipelines[] = {"range 1000000000000, batch 7, prefetch 2", "range 1000, repeat -1, batch 3, map",
                             "range 1000, shuffle 1000 1, repeat -1, batch 3",
                             "range 100000000000, skip 5, shard 3 1, take 90000000000, range 8, concat"};
  const int64_t far = 10000000000;
  for (size_t i = 0; i < COUNT_OF(pipelines); i++) {
    helio_iterator *iterator = helio_iterate(build_pipeline(pipelines[i]));
    hi_position position;
    char *text = helio_iterator_position(iterator);
    assert_ok(hi_position_parse(text, &position));
    free(text);
    position.count = far;
    text = hi_position_text(&position);
    assert_ok(helio_iterator_restore(iterator, text));
    char *found = rest_text(iterator, 3);
    char *expected = rest_text(helio_iterate(helio_dataset_skip(build_pipeline(pipelines[i]), far)), 3);
    assert_string_equal(found, expected);
    assert_true(strlen(found) > 12);
    free(text);
    free(found);
    free(expected);
    free(position.births);
  }
}

/* Behind the end there is nothing. */
static void a_position_behind_the_end_is_refused(void **state) {
  (void)state;
  const char *pipelines[] = {"range 10, batch 3", "gen 4", "range 3, shuffle 2 1, repeat 5", "slices 4, batch_drop 3"};
  for (size_t i = 0; i < COUNT_OF(pipelines); i++) {
    helio_iterator *iterator = helio_iterate(build_pipeline(pipelines[i]));
    hi_position position;
    char *text = helio_iterator_position(iterator);
    assert_ok(hi_position_parse(text, &position));
    free(text);
    position.count = 16;
    text = hi_position_text(&position);
    assert_int_equal(helio_iterator_restore(iterator, text), HELIO_INVALID_ARGUMENT);
    expect_error(HELIO_INVALID_ARGUMENT, "behind 16 elements");
    free(text);
    free(position.births);
  }
}

static void hostile_positions_are_refused(void **state) {
  (void)state;
  helio_iterator *iterator = helio_iterate(build_pipeline("range 30, shuffle 30 5, batch 4"));
  const char *hostile[] = {"",
                           " ",
                           "helio-position-1",
                           "helio-position-2 0000000000000000 0 0 0000000000000000",
                           "helio-position-1 0000000000000000 99999999999999999999999999 0 0000000000000000",
                           "helio-position-1 0000000000000000 0 99999999 1 2 3",
                           "helio-position-1 0000000000000000 0 -1 0000000000000000",
                           "\xff\xfe\xfd"};
  for (size_t i = 0; i < COUNT_OF(hostile); i++) {
    assert_int_equal(helio_iterator_restore(iterator, hostile[i]), HELIO_BAD_DATA);
    expect_error(HELIO_BAD_DATA, "is not a position");
  }
  assert_int_equal(helio_iterator_restore(iterator, NULL), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "the position is NULL");
  /* each character changed, and the line cut there */
  char *position = helio_iterator_position(iterator), *damaged = strdup(position);
  for (size_t i = 0; position[i]; i++) {
    strcpy(damaged, position);
    damaged[i] = damaged[i] == '1' ? '2' : '1';
    assert_int_equal(helio_iterator_restore(iterator, damaged), HELIO_BAD_DATA);
    helio_error_take(NULL);
    damaged[i] = 0;
    assert_int_equal(helio_iterator_restore(iterator, damaged), HELIO_BAD_DATA);
    helio_error_take(NULL);
  }
  free(damaged);
  free(position);
}

static void a_position_of_another_dataset_is_refused(void **state) {
  (void)state;
  helio_iterator *iterator = helio_iterate(build_pipeline("range 30, shuffle 30 5, batch 4"));
  helio_element element;
  assert_true(helio_next(iterator, &element));
  char *position = helio_iterator_position(iterator);
  const char *others[] = {"range 31, shuffle 30 5, batch 4", "range 30, shuffle 29 5, batch 4",
                          "range 30, shuffle 30 6, batch 4", "range 30, shuffle 30 5, batch 5", "range 30, batch 4"};
  for (size_t i = 0; i < COUNT_OF(others); i++) {
    helio_iterator *other = helio_iterate(build_pipeline(others[i]));
    assert_true(helio_next(other, &element));
    assert_int_equal(helio_iterator_restore(other, position), HELIO_INVALID_ARGUMENT);
    expect_error(HELIO_INVALID_ARGUMENT, "a dataset that was made in another way");
    /* and is left where it was: seven batches of four follow, or five of five */
    char *text = rest_text(other, LIMIT);
    int spaces = 0;
    for (const char *c = text; *c; c++) spaces += *c == ' ';
    assert_int_equal(spaces, strstr(others[i], "batch 5") ? 4 : 6);
    free(text);
  }
  free(position);
}

static bool restore_in_child(void *argument) {
  const char *const *both = argument; /* position, expected rest */
  helio_iterator *iterator = helio_iterate(build_pipeline(kinds[6]));
  CHILD_CHECK(helio_iterator_restore(iterator, both[0]) == HELIO_OK);
  char *text = rest_text(iterator, LIMIT);
  CHILD_CHECK(strcmp(text, both[1]) == 0);
  free(text);
  return true;
}

static void a_position_holds_in_another_process_and_after_shutdown(void **state) {
  (void)state;
  char *both[2];
  helio_element element;
  HELIO_POOL {
    helio_iterator *iterator = helio_iterate(build_pipeline(kinds[6]));
    for (int i = 0; i < 3; i++) assert_true(helio_next(iterator, &element));
    both[0] = helio_iterator_position(iterator);
    both[1] = rest_text(iterator, LIMIT);
  }
  assert_ok(helio_shutdown());
  assert_int_equal(run_in_child(restore_in_child, both), 0);
  assert_true(restore_in_child(both));
  free(both[0]);
  free(both[1]);
}

/* ---- threads ---- */

typedef struct slow {
  atomic_int calls, stops;
  int microseconds;
} slow;

static helio_status next_slow(void *state, helio_generated *element) {
  slow *self = state;
  int64_t number = atomic_fetch_add(&self->calls, 1);
  usleep((useconds_t)self->microseconds);
  element->part[element->count++] = helio_array_of(&number, HELIO_SCALAR, .type = HELIO_INT64);
  return HELIO_OK;
}

static void stop_slow(void *state) {
  atomic_fetch_add(&((slow *)state)->stops, 1);
}

static helio_dataset *slow_dataset(slow *self) {
  return helio_dataset_from_generator(next_slow, .stop = stop_slow, .argument = self);
}

static void settle(void) {
  helio_tensor *tensor = helio_fill(HELIO_SHAPE(1), 1); /* the device and its own threads are there */
  assert_made(tensor);
  assert_ok(helio_synchronize(NULL));
}

static void threads_end_with_their_iterator(void **state) {
  (void)state;
  settle();
  int before = thread_count(-1);
  slow full = {.microseconds = 100}, empty = {.microseconds = 20000}, nested = {.microseconds = 500};
  struct timespec start, stop;
  helio_element element;
  HELIO_POOL {
    /* one waits for room, one for an element, and one for threads that wait themselves */
    helio_dataset *mapped = helio_dataset_map(slow_dataset(&nested), twice_and_one, .parallel = 3);
    helio_iterator *a = helio_iterate(helio_dataset_prefetch(slow_dataset(&full), 2));
    helio_iterator *b = helio_iterate(helio_dataset_prefetch(slow_dataset(&empty), 2));
    helio_iterator *c = helio_iterate(
        helio_dataset_prefetch(helio_dataset_concatenate(helio_dataset_take(helio_dataset_batch(mapped, 1), 1),
                                                         helio_dataset_batch(mapped, 100000)),
                               2));
    assert_int_equal(thread_count(before), before); /* none before the first element is asked for */
    assert_true(helio_next(a, &element) && helio_next(b, &element) && helio_next(c, &element));
    for (int i = 0; i < 10000 && atomic_load(&full.calls) < 3; i++) usleep(1000);
    usleep(20000);
    assert_int_equal(thread_count(before + 9), before + 9);
    clock_gettime(CLOCK_MONOTONIC, &start);
  }
  clock_gettime(CLOCK_MONOTONIC, &stop);
  assert_int_equal(thread_count(before), before);
  assert_true(stop.tv_sec - start.tv_sec < 5); /* the batch would take three times as long, at the least */
  assert_in_range(atomic_load(&full.calls), 3, 4);
  assert_int_equal(atomic_load(&full.stops), 1);
  assert_int_equal(atomic_load(&empty.stops), 1);
  assert_int_equal(atomic_load(&nested.stops), 2);
}

static void shutdown_ends_threads(void **state) {
  (void)state;
  slow nested = {.microseconds = 1000};
  helio_element element;
  settle();
  int before = thread_count(-1);
  helio_dataset *dataset = helio_keep(helio_dataset_map(slow_dataset(&nested), twice_and_one, .parallel = 3));
  helio_iterator *iterator = helio_keep(helio_iterate(helio_dataset_prefetch(dataset, 2)));
  assert_true(helio_next(iterator, &element));
  assert_int_equal(thread_count(before + 4), before + 4);
  leaks_are_meant = true;
  assert_ok(helio_shutdown());
  assert_true(thread_count(-1) <= before);
  int calls = atomic_load(&nested.calls);
  usleep(10000);
  assert_int_equal(atomic_load(&nested.calls), calls);
  assert_false(helio_next(iterator, &element));
  expect_error(HELIO_WRONG_STATE, "before helio_shutdown()");
  assert_null(helio_iterator_position(iterator));
  expect_error(HELIO_WRONG_STATE, "before helio_shutdown()");
  /* datasets of the host's memory live on */
  HELIO_POOL assert_true(helio_next(helio_iterate(dataset), &element));
  helio_release(iterator);
  helio_release(dataset);
  assert_int_equal(atomic_load(&nested.stops), 2);
}

/* A thread's pool ends with it, and with the pool an iterator whose thread ends then. */
static void *iterate_and_leave(void *argument) {
  helio_element element;
  helio_iterator *iterator = helio_iterate(argument);
  return (void *)(intptr_t)helio_next(iterator, &element);
}

static void an_iterator_may_end_with_the_thread_that_made_it(void **state) {
  (void)state;
  settle();
  int before = thread_count(-1);
  helio_dataset *dataset = build_pipeline("slices 9, map_parallel 2, batch 2, prefetch 1");
  for (int i = 0; i < 20; i++) {
    pthread_t thread;
    void *got;
    assert_int_equal(pthread_create(&thread, NULL, iterate_and_leave, dataset), 0);
    assert_int_equal(pthread_join(thread, &got), 0);
    assert_int_equal((intptr_t)got, 1);
  }
  assert_int_equal(thread_count(before), before);
}

/* The thread is inside no call any more when it ends: shutdown, in another, need not wait for it. */
static void *iterate_and_tell(void *argument) {
  atomic_int *told = argument;
  helio_element element;
  bool got = helio_next(helio_iterate(build_pipeline("range 99, map_parallel 2, prefetch 3")), &element);
  atomic_store(told, got ? 1 : -1);
  return NULL;
}

static void a_thread_may_end_while_the_library_does(void **state) {
  (void)state;
  for (int i = 0; i < 30; i++) {
    pthread_t thread;
    atomic_int told = 0;
    assert_int_equal(pthread_create(&thread, NULL, iterate_and_tell, &told), 0);
    while (atomic_load(&told) == 0) usleep(50);
    assert_int_equal(atomic_load(&told), 1);
    assert_ok(helio_shutdown());
    assert_int_equal(pthread_join(thread, NULL), 0);
  }
}

/* Each element goes to one of them. */
static void *read_half(void *argument) {
  int64_t *sum = calloc(2, sizeof *sum);
  bool more = true;
  while (more) {
    HELIO_POOL {
      helio_element element;
      more = helio_next(argument, &element);
      if (more) sum[0] += (int64_t)helio_item(element.part[0]);
      sum[1] += more;
    }
  }
  if (helio_error_take(NULL)) sum[0] = -1;
  return sum;
}

static void two_threads_share_an_iterator(void **state) {
  (void)state;
  const char *pipelines[] = {"range 400, shuffle 10 1", "range 400, map_parallel 2, prefetch 3", "gen 400, prefetch 2"};
  for (size_t i = 0; i < COUNT_OF(pipelines); i++) {
    helio_iterator *iterator = helio_iterate(build_pipeline(pipelines[i]));
    pthread_t threads[2];
    int64_t sum = 0, count = 0;
    for (int k = 0; k < 2; k++) assert_int_equal(pthread_create(&threads[k], NULL, read_half, iterator), 0);
    for (int k = 0; k < 2; k++) {
      void *part;
      assert_int_equal(pthread_join(threads[k], &part), 0);
      sum += ((int64_t *)part)[0];
      count += ((int64_t *)part)[1];
      free(part);
    }
    assert_int_equal(count, 400);
    assert_int_equal(sum, i == 1 ? 400 * 400 : 400 * 399 / 2);
  }
}

/* Restored by both again and again, it brings the first elements only. */
static void *read_and_restore(void *argument) {
  helio_iterator *iterator = argument;
  char *position = NULL;
  bool well = true;
  for (int i = 0; i < 50 && well; i++) {
    HELIO_POOL {
      helio_element element;
      well = helio_next(iterator, &element) && helio_item(element.part[0]) < 2 * 2 * 50;
      if (!position) position = helio_iterator_position(iterator);
      well = well && !helio_iterator_restore(iterator, position);
    }
  }
  free(position);
  return (void *)(intptr_t)(well && !helio_error_take(NULL));
}

static void two_threads_may_restore_an_iterator(void **state) {
  (void)state;
  helio_iterator *iterator = helio_iterate(build_pipeline("range 400, map_parallel 2, prefetch 3"));
  pthread_t threads[2];
  void *well;
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, read_and_restore, iterator), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(pthread_join(threads[i], &well), 0);
    assert_true((intptr_t)well);
  }
}

static bool use_in_child(void *argument) {
  helio_element element;
  CHILD_CHECK(!helio_next(argument, &element));
  CHILD_CHECK(helio_error_take(NULL) == HELIO_WRONG_STATE);
  return true;
}

static void a_forked_child_is_told(void **state) {
  (void)state;
  helio_element element;
  helio_iterator *iterator = helio_iterate(build_pipeline("range 40, prefetch 2"));
  assert_true(helio_next(iterator, &element));
  assert_int_equal(run_in_child(use_in_child, iterator), 0);
  char *text = rest_text(iterator, 2);
  assert_string_equal(text, ":1 :2 ...");
  free(text);
}

/* ---- devices and memory ---- */

static void elements_come_to_be_where_the_iterator_was_made(void **state) {
  (void)state;
  const char *pipelines[] = {"slices 9, batch 2", "slices 9, batch 2, prefetch 1", "slices 9, map_parallel 2, batch 2",
                             "range 5", "gen 5, prefetch 2"};
  for (size_t i = 0; i < COUNT_OF(pipelines); i++) {
    helio_iterator *iterator = NULL;
    helio_element element;
    HELIO_DEVICE("cpu:0") iterator = helio_iterate(build_pipeline(pipelines[i]));
    assert_true(helio_next(iterator, &element));
    assert_string_equal(helio_tensor_device(element.part[0]), "/job:localhost/replica:0/task:0/device:CPU:0");
    iterator = helio_iterate(build_pipeline(pipelines[i]));
    HELIO_DEVICE("cpu:0") assert_true(helio_next(iterator, &element));
    helio_tensor *expected = NULL;
    HELIO_DEVICE(device_name()) expected = helio_fill(HELIO_SHAPE(1), 0);
    assert_string_equal(helio_tensor_device(element.part[0]), helio_tensor_device(expected));
  }
}

static void a_steady_iteration_takes_no_memory(void **state) {
  (void)state;
  helio_memory before = {0}, after = {0};
  HELIO_POOL {
    helio_iterator *iterator =
        helio_iterate(build_pipeline("slices 64, shuffle 64 1, repeat -1, batch 16, map, prefetch 2"));
    for (int i = 0; i < 400; i++) {
      helio_element element;
      HELIO_POOL assert_true(helio_next(iterator, &element));
      if (i == 100) assert_ok(helio_memory_info(device_name(), &before));
    }
    assert_ok(helio_memory_info(device_name(), &after));
  }
  assert_int_equal(after.taken, before.taken);
  assert_true(after.allocations <= before.allocations + 16); /* what is ahead at the moment */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      POOL_TEST(a_position_brings_back_the_rest),
      POOL_TEST(positions_hold_for_all_pipelines_of_tf_data),
      POOL_TEST(iterations_are_counted_on),
      POOL_TEST(positions_far_behind_are_reached_at_once),
      POOL_TEST(a_position_behind_the_end_is_refused),
      POOL_TEST(hostile_positions_are_refused),
      POOL_TEST(a_position_of_another_dataset_is_refused),
      TEST(a_position_holds_in_another_process_and_after_shutdown),
      POOL_TEST(threads_end_with_their_iterator),
      TEST(shutdown_ends_threads),
      POOL_TEST(an_iterator_may_end_with_the_thread_that_made_it),
      TEST(a_thread_may_end_while_the_library_does),
      POOL_TEST(two_threads_share_an_iterator),
      POOL_TEST(two_threads_may_restore_an_iterator),
      POOL_TEST(a_forked_child_is_told),
      POOL_TEST(elements_come_to_be_where_the_iterator_was_made),
      POOL_TEST(a_steady_iteration_takes_no_memory),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, start_afresh, start_afresh);
}
