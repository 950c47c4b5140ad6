/* SPDX-License-Identifier: Apache-2.0 */
/* What helio_shutdown() says of things that are still held: in a debug build what they are, in others nothing. */
#include "replicas.h"

#ifdef HELIO_DEBUG
enum { DEBUG_BUILD = 1 };
#else
enum { DEBUG_BUILD = 0 };
#endif

static int told_lines(void) {
  return lines_with("WARNING:helio:still held at helio_shutdown(): ", "");
}

/* Ends the library; a debug build says this. */
#define expect_told(part, other)                                                                                       \
  do {                                                                                                                 \
    leaks_are_meant = true;                                                                                            \
    seen.count = 0;                                                                                                    \
    assert_ok(helio_shutdown());                                                                                       \
    if (DEBUG_BUILD) assert_logged("still held at helio_shutdown(): " part, other);                                    \
    if (!DEBUG_BUILD) assert_int_equal(told_lines(), 0);                                                               \
  } while (0)

/* ---- nothing ---- */

static helio_status double_it(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument;
  return give(outputs, helio_add(inputs->part[0], inputs->part[0]));
}

/* All that is made here belongs to pools but the model, which is released. */
static void use_everything(void) {
  helio_strategy *strategy = mirror(2);
  helio_model *model = NULL;
  HELIO_SCOPE(strategy) {
    model = helio_sequential(.layers = {helio_dense(3), helio_dense(2)}, .input_shape = HELIO_SHAPE(4));
    helio_adam(0.1);
    helio_mean_squared_error();
    helio_metric_mean();
  }
  helio_dataset *batches = helio_dataset_batch(helio_dataset_range(20), 4);
  helio_distributed_iterator *iterator = helio_iterate_distributed(helio_distribute(strategy, batches));
  assert_made(helio_run(strategy, double_it, NULL, helio_next_values(iterator)));
  assert_made(
      helio_run(helio_strategy_current(), double_it, NULL, helio_values_same(helio_strategy_current(), number(2))));
  assert_made(helio_call(model, helio_fill(HELIO_SHAPE(5, 4), 1)));
  helio_release(model);
}

static void who_holds_nothing_is_told_nothing(void **state) {
  (void)state;
  use_everything();
  HELIO_POOL use_everything();
  assert_ok(helio_shutdown());
  assert_int_equal(told_lines(), 0);
}

/* ---- one of each kind ---- */

static void each_kind_is_told(void **state) {
  (void)state;
  helio_strategy *strategy = helio_keep(mirror(2));
  helio_dataset *dataset = helio_keep(helio_dataset_batch(helio_dataset_range(20), 4));
  helio_distributed *distributed = helio_keep(helio_distribute(strategy, dataset));
  void *held[] = {
      strategy,
      dataset,
      distributed,
      helio_keep(helio_iterate_distributed(distributed)),
      helio_keep(helio_iterate(dataset)),
      helio_sequential(.layers = {helio_dense(3, .name = "first")}, .input_shape = HELIO_SHAPE(4), .name = "net"),
      helio_keep(helio_adam(0.1, .name = "teacher")),
      helio_keep(helio_mean_squared_error(.name = "distance")),
      helio_keep(helio_metric_mean(.name = "average")),
      helio_keep(helio_variable(number(3), .name = "weight")),
      helio_keep(helio_values_same(strategy, number(1))),
      helio_keep(helio_array_of(((float[]){1, 2}), HELIO_SHAPE(2)))};
  static const char *const lines[][2] = {{"1 × strategy", ": MirroredStrategy"},
                                         {"dataset: ", "batch"},
                                         {"1 × distributed dataset", ""},
                                         {"1 × distributed iterator", ""},
                                         {"2 × iterator", ""}, /* one of them the distributed one's */
                                         {"1 × model", ": net (Sequential)"},
                                         {"1 × layer", ": first (Dense)"},
                                         {"1 × optimizer", ": teacher"},
                                         {"1 × loss", ": distance"},
                                         {"1 × metric", ": average"},
                                         {"× variable", "weight"},
                                         {"1 × values of replicas", ""},
                                         {"× array", ""},
                                         {"× tensor", "() float32"}};
  assert_ok(helio_error_pending());
  expect_told("", "");
  for (size_t i = 0; DEBUG_BUILD && i < COUNT_OF(lines); i++) assert_logged(lines[i][0], lines[i][1]);
  assert_true(told_lines() <= 21);
  for (size_t i = 0; i < COUNT_OF(held); i++) helio_release(held[i]);
}

/* ---- how it is told ---- */

static void tensors_are_told_by_shape_and_name_in_one_line(void **state) {
  (void)state;
  helio_tensor *held[4];
  for (int i = 0; i < 3; i++) held[i] = helio_keep(helio_fill(HELIO_SHAPE(2, 3), i));
  held[3] = helio_keep(helio_fill(HELIO_SHAPE(5), 1, .type = HELIO_INT32));
  expect_told("4 × tensor: ", "(2, 3) float32 (3 times)");
  if (DEBUG_BUILD) assert_int_equal(lines_with("4 × tensor: ", "(5,) int32"), 1);
  if (DEBUG_BUILD) assert_int_equal(told_lines(), 2); /* the other one is of memory */
  for (int i = 0; i < 4; i++) helio_release(held[i]);
}

static void memory_is_told_by_device_and_holder(void **state) {
  (void)state;
  helio_tensor *held[2] = {0};
  HELIO_DEVICE(nth_device(1)) held[0] = helio_keep(helio_fill(HELIO_SHAPE(1000), 1));
  HELIO_DEVICE(nth_device(2)) held[1] = helio_keep(helio_relu(helio_fill(HELIO_SHAPE(1000), 1)));
  expect_told("", "largest holders: ");
  for (int i = 0; DEBUG_BUILD && i < 2; i++) assert_logged(nth_device_in_full(i + 1), "in 1 pieces");
  if (DEBUG_BUILD) assert_int_equal(lines_with("largest holders: ", ""), 2);
  for (int i = 0; i < 2; i++) helio_release(held[i]);
}

/* There are more kinds and devices than lines. */
static void the_report_is_short(void **state) {
  (void)state;
  enum { MANY = 400 };
  static void *held[MANY];
  for (int i = 0; i < MANY; i++) {
    HELIO_DEVICE(nth_device(i % MOST_DEVICES)) {
      HELIO_POOL held[i] =
          i % 2 ? helio_keep(helio_fill(HELIO_SHAPE(i + 1), 1))
                : (void *)helio_sequential(.layers = {helio_dense(1)}, .input_shape = HELIO_SHAPE(i + 1));
    }
  }
  expect_told("200 × model", "sequential");
  assert_true(told_lines() <= 21);
  for (int i = 0; i < seen.count; i++) assert_true(strlen(seen.lines[i]) < 1100);
  for (int i = 0; i < MANY; i++) helio_release(held[i]);
}

static void what_was_told_is_not_told_again(void **state) {
  (void)state;
  helio_dataset *held = helio_keep(helio_dataset_range(3));
  expect_told("1 × dataset: range", "");
  assert_ok(helio_init());
  seen.count = 0;
  assert_ok(helio_shutdown());
  assert_int_equal(told_lines(), 0);
  helio_release(held);
}

/* ---- threads ---- */

typedef struct other {
  pthread_barrier_t barrier;
  helio_tensor *kept;
} other;

/* What the iterator holds is in no pool. */
static void *fill_a_pool(void *argument) {
  other *o = argument;
  helio_dataset *batches = helio_dataset_batch(helio_dataset_range(20), 4);
  helio_iterate(batches);
  helio_relu(helio_fill(HELIO_SHAPE(10), 1));
  o->kept = helio_keep(helio_fill(HELIO_SHAPE(7), 1));
  pthread_barrier_wait(&o->barrier);
  pthread_barrier_wait(&o->barrier);
  return NULL;
}

static void what_another_thread_will_free_is_not_told(void **state) {
  (void)state;
  pthread_t thread;
  other o;
  pthread_barrier_init(&o.barrier, NULL, 2);
  assert_int_equal(pthread_create(&thread, NULL, fill_a_pool, &o), 0);
  pthread_barrier_wait(&o.barrier);
  seen.count = 0;
  leaks_are_meant = true;
  helio_status status = helio_shutdown();
  int told = told_lines(), tensors = lines_with("1 × tensor: (7,) float32", "");
  pthread_barrier_wait(&o.barrier);
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&o.barrier);
  helio_release(o.kept);
  assert_ok(status);
  assert_int_equal(told, DEBUG_BUILD);
  assert_int_equal(tensors, DEBUG_BUILD);
}

static helio_status hang_on_replica_1(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument, (void)inputs;
  give(outputs, helio_relu(number(1)));
  while (helio_replica_id() == 1) usleep(1000000);
  return HELIO_OK;
}

static bool lose_a_thread(void *argument) {
  (void)argument;
  helio_strategy *strategy = helio_mirrored(.devices = {nth_device(0), nth_device(1)});
  CHILD_CHECK(!helio_run(strategy, hang_on_replica_1));
  CHILD_CHECK(helio_error_take(NULL) == HELIO_REPLICA_LOST);
  seen.count = 0;
  leaks_are_meant = true;
  CHILD_CHECK(!helio_shutdown());
  int told = lines_with("1 × thread: helio-rep1 (abandoned, because it hangs", "");
  if (told != DEBUG_BUILD) print_seen();
  CHILD_CHECK(told == DEBUG_BUILD);
  CHILD_CHECK(told_lines() == 0 || DEBUG_BUILD);
  return true;
}

/* In a child, where it may hang for ever. */
static void an_abandoned_thread_is_told(void **state) {
  (void)state;
  assert_ok(helio_shutdown());
  setenv("HELIO_TIMEOUT", SANITIZED ? "3" : "1", 1); /* long enough for the replica that does not hang */
  assert_int_equal(run_in_child(lose_a_thread, NULL), 0);
}

int main(void) {
  remember_environment();
  const struct CMUnitTest tests[] = {
      REPLICA_TEST(who_holds_nothing_is_told_nothing),
      REPLICA_TEST(each_kind_is_told),
      REPLICA_TEST(tensors_are_told_by_shape_and_name_in_one_line),
      REPLICA_TEST(memory_is_told_by_device_and_holder),
      REPLICA_TEST(the_report_is_short),
      REPLICA_TEST(what_was_told_is_not_told_again),
      REPLICA_TEST(what_another_thread_will_free_is_not_told),
      REPLICA_TEST(an_abandoned_thread_is_told),
  };
  return cmocka_run_group_tests_name("leaks", tests, NULL, NULL);
}
