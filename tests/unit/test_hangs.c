/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that do not come back: in a device, in the user's own functions, at every place where others wait for them.
 * Each in a child, which must end by itself before its time is up. */
#include "wrapped.h"

enum { PATIENCE = SANITIZED ? 120 : 30 }; /* seconds that a child may take */

static const char *const timeout = SANITIZED ? "2" : "1";

enum { SILENCE_MS = SANITIZED ? 3000 : 1500 }; /* longer than that */

/* ---- children ---- */

typedef struct scenario {
  const char *rules;
  bool (*body)(void);
} scenario;

static bool begin(void *argument) {
  const scenario *s = argument;
  alarm(PATIENCE);
  wrap_devices(s->rules);
  setenv("HELIO_TIMEOUT", timeout, 1);
  leaks_are_meant = true;
  CHILD_CHECK(helio_init() == HELIO_OK);
  return s->body();
}

static void run(const char *rules, bool (*body)(void)) {
  scenario s = {.rules = rules, .body = body};
  int status = run_in_child(begin, &s);
  if (WIFSIGNALED(status)) fail_msg("the child was ended by signal %d", WTERMSIG(status));
  assert_int_equal(status, 0);
}

static bool took(helio_status status) {
  helio_error error;
  helio_error_take(&error);
  if (error.status == status) return true;
  fprintf(stderr, "%s: %s\n", helio_status_name(error.status), error.message);
  return false;
}

/* ---- a step ---- */

static helio_status add_one(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)inputs, (void)outputs;
  return helio_assign_add(argument, helio_fill(HELIO_SHAPE(3), 1));
}

static helio_variable *make_counter(helio_strategy *strategy) {
  helio_variable *counter = NULL;
  HELIO_SCOPE(strategy) counter = helio_variable(helio_fill(HELIO_SHAPE(3), 0), .name = "counter");
  return counter;
}

/* ---- in devices ---- */

/* What lies on a device that hangs may be given back when the library is long gone. */
static bool release_late(void) {
  helio_strategy *strategy = mirrored_over(2, NULL, "reduce-to-one");
  helio_variable *counter = strategy ? make_counter(strategy) : NULL;
  CHILD_CHECK(counter);
  helio_keep(counter);
  CHILD_CHECK(!helio_run(strategy, add_one, counter) && took(HELIO_REPLICA_LOST));
  helio_shutdown();
  helio_release(counter);
  return true;
}

static void what_hangs_is_released_behind_the_end(void **state) {
  (void)state;
  run("kernel@1+/1:hang", release_late);
}

static bool iterate_ahead(void) {
  static const float numbers[64];
  helio_array *x = helio_array_of(numbers, HELIO_SHAPE(64));
  helio_dataset *dataset = helio_dataset_prefetch(helio_dataset_batch(helio_dataset_from_slices(x), 4), 2);
  helio_iterator *iterator = helio_iterate(dataset);
  helio_element element;
  CHILD_CHECK(iterator);
  while (helio_next(iterator, &element)) continue;
  CHILD_CHECK(took(HELIO_TIMED_OUT) && lines_with("thread is abandoned", "ERROR:") == 1);
  CHILD_CHECK(!helio_next(iterator, &element) && helio_error_pending()); /* nothing is left out in silence */
  return true;
}

static void who_reads_ahead_has_a_deadline(void **state) {
  (void)state;
  run("copy@3:hang", iterate_ahead);
}

static helio_status negate(void *argument, helio_element *element) {
  (void)argument;
  element->part[0] = helio_neg(element->part[0]);
  return element->part[0] ? HELIO_OK : helio_error_pending();
}

static bool map_on_devices(void) {
  static const float numbers[64];
  helio_array *x = helio_array_of(numbers, HELIO_SHAPE(64));
  helio_dataset *batches = helio_dataset_batch(helio_dataset_from_slices(x), 4);
  helio_iterator *iterator = helio_iterate(helio_dataset_map(batches, negate, .parallel = 2));
  helio_element element;
  CHILD_CHECK(iterator);
  while (helio_next(iterator, &element)) continue;
  return took(HELIO_TIMED_OUT);
}

static void a_map_on_a_device_has_a_deadline(void **state) {
  (void)state;
  run("kernel@3:hang", map_on_devices);
}

/* ---- in the user's own functions ---- */

/* Replica 0 has used replica 1's copy before it goes silent: it is the one that is lost. */
static helio_status be_silent(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)inputs, (void)outputs;
  if (helio_replica_id() != 0) return HELIO_OK;
  if (!helio_copy(helio_variable_copy(argument, 1))) return helio_error_pending();
  usleep(SILENCE_MS * 1000);
  helio_fill(HELIO_SHAPE(3), 1); /* goes no further */
  return HELIO_OK;
}

static bool lose_the_silent(void) {
  helio_strategy *strategy = mirrored_over(2, NULL, "reduce-to-one");
  helio_variable *counter = strategy ? make_counter(strategy) : NULL;
  CHILD_CHECK(counter);
  char lost[200];
  snprintf(lost, sizeof lost, "lost replica 0 (%s)", helio_strategy_device(strategy, 0));
  CHILD_CHECK(!helio_run(strategy, be_silent, counter) && took(HELIO_REPLICA_LOST));
  CHILD_CHECK(lines_with(lost, "has not come back from the step") == 1);
  usleep(SILENCE_MS * 1000);
  CHILD_CHECK(helio_run(strategy, add_one, counter));
  return true;
}

static void who_is_silent_in_its_own_code_is_lost_itself(void **state) {
  (void)state;
  run("", lose_the_silent);
}

static helio_values *merge_slowly(helio_strategy *strategy, void *argument, helio_values *inputs) {
  (void)strategy, (void)argument;
  usleep(SILENCE_MS * 1000);
  return inputs;
}

static helio_status meet_slowly(void *argument, const helio_element *inputs, helio_element *outputs) {
  helio_element mine = {.count = 1, .part = {helio_fill(HELIO_SHAPE(3), 1)}};
  (void)argument, (void)inputs;
  return mine.part[0] ? helio_merge_call(merge_slowly, NULL, &mine, outputs) : helio_error_pending();
}

static bool survive_a_slow_merge(void) {
  helio_strategy *strategy = mirrored_over(3, NULL, "reduce-to-one");
  CHILD_CHECK(strategy);
  CHILD_CHECK(!helio_run(strategy, meet_slowly) && took(HELIO_REPLICA_LOST));
  CHILD_CHECK(helio_num_replicas(strategy) == 2);
  usleep(SILENCE_MS * 1000); /* now it comes back */
  helio_variable *counter = make_counter(strategy);
  CHILD_CHECK(counter && helio_run(strategy, add_one, counter));
  return true;
}

static void a_slow_merge_leaves_the_others_alone(void **state) {
  (void)state;
  run("", survive_a_slow_merge);
}

/* ---- failures one behind the other ---- */

static helio_status use_batch(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument;
  outputs->part[outputs->count++] = helio_sum(inputs->part[0]);
  return helio_error_pending();
}

static bool retry_twice(void) {
  static const float numbers[64];
  helio_array *x = helio_array_of(numbers, HELIO_SHAPE(64));
  helio_strategy *strategy = mirrored_over(3, NULL, "reduce-to-one");
  helio_dataset *dataset = helio_dataset_batch(helio_dataset_from_slices(x), 32);
  helio_distributed_iterator *batches =
      helio_iterate_distributed(helio_distribute(strategy, dataset, .prefetch = HELIO_NONE));
  helio_values *batch = batches ? helio_next_values(batches) : NULL, *sums;
  CHILD_CHECK(batch);
  do {
    sums = helio_run(strategy, use_batch, NULL, batch);
  } while (!sums && helio_retry(strategy, &batch));
  CHILD_CHECK(sums && helio_num_replicas(strategy) == 1);
  return true;
}

static void a_second_failure_while_a_batch_is_split_anew(void **state) {
  (void)state;
  run("kernel@1+/2:fail; copy@2+/1:fail", retry_twice);
}

/* ---- who is right? ---- */

typedef struct trainer {
  helio_variable *variable;
  helio_optimizer *optimizer;
} trainer;

static helio_status train(void *argument, const helio_element *inputs, helio_element *outputs) {
  const trainer *t = argument;
  helio_tape *tape = helio_tape_new();
  helio_tensor *loss = NULL;
  (void)inputs, (void)outputs;
  HELIO_TAPE(tape) loss = helio_sum(helio_square(helio_value(t->variable)));
  return helio_minimize(t->optimizer, tape, loss, HELIO_VARIABLES(t->variable));
}

static bool compare_two(void) {
  helio_strategy *strategy = mirrored_over(2, NULL, "reduce-to-one");
  trainer t = {.variable = strategy ? make_counter(strategy) : NULL, .optimizer = helio_sgd(0.1)};
  helio_error error;
  CHILD_CHECK(t.variable && !helio_assign(t.variable, helio_fill(HELIO_SHAPE(3), 1)));
  for (int i = 0; i < 4 && !helio_error_pending(); i++) helio_run(strategy, train, &t);
  helio_error_take(&error);
  if (error.status != HELIO_BAD_DATA) fprintf(stderr, "%s\n", error.message);
  CHILD_CHECK(error.status == HELIO_BAD_DATA && strstr(error.message, "differs between replica 0"));
  CHILD_CHECK(strstr(error.message, "replica 1"));
  return true;
}

/* Of two that differ nobody can say which is right. */
static void of_two_that_differ_both_are_named(void **state) {
  (void)state;
  setenv("HELIO_CHECK_REPLICAS", "1", 1);
  run("kernel@6+/0:short", compare_two);
}

int main(void) {
  remember_environment();
  const struct CMUnitTest tests[] = {
      TEST(what_hangs_is_released_behind_the_end), TEST(who_reads_ahead_has_a_deadline),
      TEST(a_map_on_a_device_has_a_deadline),      TEST(who_is_silent_in_its_own_code_is_lost_itself),
      TEST(a_slow_merge_leaves_the_others_alone),  TEST(a_second_failure_while_a_batch_is_split_anew),
      TEST(of_two_that_differ_both_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
