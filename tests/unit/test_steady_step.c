/* SPDX-License-Identifier: Apache-2.0 */
/* A training that has found its pace takes nothing from its devices and does not wait for them. The devices are wrapped
 * and count what they are asked for; the strict one follows the host at the distance of a few commands, as a device
 * does that keeps up. */
#include <dlfcn.h>

#include "../plugins/wrap/counts.h"
#include "digit_training.h"
#include "wrapped.h"

enum { MOST_LAUNCHES = 60 };

/* ---- counting ---- */

typedef struct counts {
  unsigned long long of[WRAP_COUNTS];
} counts;

static wrap_counted_function *devices_counted, *sums_counted;

/* The plugin that the library has opened, not another copy of it. */
static wrap_counted_function *counter_of(const char *name) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/tests/plugins/wrap/.libs/%s", build_folder(), name);
  void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(library);
  wrap_counted_function *function;
  *(void **)&function = dlsym(library, WRAP_COUNTED);
  assert_non_null(function);
  dlclose(library);
  return function;
}

/* With a device that stays so many commands behind the host. */
static void start(const char *behind, const char *rules) {
  char sum[PATH_MAX + 64];
  snprintf(sum, sizeof sum, "%s/collectives/ring/.libs/ring.so", build_folder());
  setenv("HELIO_WRAP_SUM_PLUGIN", sum, 1);
  setenv("HELIO_STRICT_BEHIND", behind, 1);
  start_wrapped(rules);
  devices_counted = counter_of("wrap.so");
  sums_counted = counter_of("wrap_sum.so");
}

static counts count(int device) {
  counts c;
  for (int i = 0; i < WRAP_COUNTS; i++) c.of[i] = devices_counted((uint32_t)device, (wrap_count)i);
  c.of[WRAP_CALLS_OF_SUMS] = sums_counted((uint32_t)device, WRAP_CALLS_OF_SUMS);
  return c;
}

/* ---- training ---- */

typedef struct course {
  int replicas, step;
  bool reads;                                     /* the loss of each step */
  unsigned long long first_copies[MOST_REPLICAS]; /* in, before the first batch */
  counts before[MOST_REPLICAS], behind[MOST_REPLICAS];
} course;

static helio_status look(void *user, helio_training *training) {
  course *c = user;
  if (c->reads && !(helio_logs_get(training->batch_logs, "loss") > 0)) return HELIO_BAD_DATA;
  c->step++;
  for (int i = 0; i < c->replicas && c->step == WARM; i++) c->before[i] = count(i);
  for (int i = 0; i < c->replicas && c->step == WARM + STEADY; i++) c->behind[i] = count(i);
  return HELIO_OK;
}

static unsigned long long copies_in(int replica) {
  return count(replica).of[WRAP_COPIES_IN];
}

static helio_status note_copies(void *user, helio_training *training) {
  course *c = user;
  (void)training;
  for (int i = 0; i < c->replicas; i++) c->first_copies[i] = copies_in(i);
  return HELIO_OK;
}

static helio_status begin_step(void *user, helio_training *training) {
  const course *c = user;
  (void)training;
  return let_read_ahead(c->step, c->replicas, c->first_copies, copies_in);
}

/* NULL: it failed. */
static helio_history *train(helio_model *model, course *c) {
  return train_digits(
      model, c->replicas,
      helio_callback(.user = c, .train_begin = note_copies, .batch_begin = begin_step, .batch_end = look));
}

/* ---- what a steady step costs ---- */

static unsigned long long spent(const course *c, int replica, wrap_count which) {
  return c->behind[replica].of[which] - c->before[replica].of[which];
}

static void expect(const course *c, int replica, wrap_count which, unsigned long long each_step) {
  static const char *const names[WRAP_COUNTS] = {"buffers taken",
                                                 "host buffers taken",
                                                 "streams, events and plans made",
                                                 "waits",
                                                 "kernels",
                                                 "fills",
                                                 "copies inside",
                                                 "copies in",
                                                 "bytes in",
                                                 "copies out",
                                                 "bytes out",
                                                 "sums"};
  if (spent(c, replica, which) == each_step * STEADY) return;
  fail_msg("%llu %s on device %d in %d steps, not %llu in each", spent(c, replica, which), names[which], replica,
           STEADY, each_step);
}

/* What is handed to the device to be carried out by it, and calls of the collective. */
static void expect_launches(const course *c, int replica) {
  unsigned long long launches = spent(c, replica, WRAP_RUNS) + spent(c, replica, WRAP_FILLS) +
                                spent(c, replica, WRAP_COPIES) + spent(c, replica, WRAP_CALLS_OF_SUMS);
  print_message("device %d: %llu launches in a step\n", replica, launches / STEADY);
  assert_true(launches <= (unsigned long long)MOST_LAUNCHES * STEADY);
}

/* The thread that reads ahead may be so many batches further, or less far, than when the counting began. */
static void expect_input(const course *c, int replica) {
  enum { AHEAD = 4 };
  const size_t batch = ROWS * (SIDE * SIDE * sizeof(float) + sizeof(int32_t));
  assert_in_range(spent(c, replica, WRAP_COPIES_IN), PARTS * (STEADY - AHEAD), PARTS * (STEADY + AHEAD));
  assert_in_range(spent(c, replica, WRAP_BYTES_IN), batch * (STEADY - AHEAD), batch * (STEADY + AHEAD));
}

static helio_strategy *strategy_of(int replicas, helio_on_failure on_failure) {
  static const char *const names[] = {"gpu:0", "gpu:1"};
  helio_mirrored_options options = {
      .size = sizeof options, .on_failure = on_failure, .collective = replicas > 1 ? "wrap-sum" : NULL};
  for (int i = 0; i < replicas; i++) options.devices[i] = names[i];
  helio_strategy *strategy = helio_mirrored_with(&options);
  assert_made(strategy);
  return strategy;
}

static void train_on(course *c, helio_on_failure on_failure) {
  make_samples((int64_t)STEPS * c->replicas * ROWS);
  HELIO_POOL {
    helio_model *model = model_of(strategy_of(c->replicas, on_failure));
    assert_made(train(model, c));
    for (int i = 0; i < c->replicas; i++) /* nothing but batches, or the first steps have waited for too few of them */
      assert_int_equal(copies_in(i) - c->first_copies[i], PARTS * STEPS);
    helio_release(model);
  }
  assert_ok(helio_shutdown());
}

/* So many in each step; what the wait of the other replica, or time, has had done by then is not waited for. */
static void expect_waits(const course *c, int replica, unsigned long long each_step) {
  print_message("device %d: %llu waits in %d steps\n", replica, spent(c, replica, WRAP_WAITS), STEADY);
  assert_in_range(spent(c, replica, WRAP_WAITS), each_step * STEADY / 2, each_step * STEADY);
}

/* `waits` in each step, of each replica. */
static void expect_steady(int replicas, helio_on_failure on_failure, unsigned long long waits) {
  start("4", "");
  course c = {.replicas = replicas};
  train_on(&c, on_failure);
  for (int i = 0; i < replicas; i++) {
    expect(&c, i, WRAP_BUFFERS, 0);
    expect(&c, i, WRAP_HOST_BUFFERS, 0);
    expect(&c, i, WRAP_OBJECTS, 0);
    expect_waits(&c, i, waits);
    expect(&c, i, WRAP_COPIES_OUT, waits); /* of the status words, which are read before the commit */
    expect(&c, i, WRAP_CALLS_OF_SUMS, replicas > 1);
    expect_input(&c, i);
    expect_launches(&c, i);
  }
}

static void one_device(void **state) {
  (void)state;
  expect_steady(1, HELIO_STOP, 0);
  expect_steady(1, HELIO_DROP, 0); /* there is none to go on without */
}

static void two_devices_that_stop(void **state) {
  (void)state;
  expect_steady(2, HELIO_STOP, 0);
}

static void two_devices_that_drop(void **state) {
  (void)state;
  expect_steady(2, HELIO_DROP, 1);
}

/* One that does nothing before it must is waited for once in each step: for the end of the step before the last. */
static void no_more_than_two_steps_are_under_way(void **state) {
  (void)state;
  start("60000", "");
  course c = {.replicas = 1};
  train_on(&c, HELIO_STOP);
  expect(&c, 0, WRAP_WAITS, 1);
  expect(&c, 0, WRAP_BUFFERS, 0);
}

static void who_reads_the_loss_of_each_step_waits_once(void **state) {
  (void)state;
  start("4", "");
  course c = {.replicas = 1, .reads = true};
  train_on(&c, HELIO_STOP);
  expect(&c, 0, WRAP_WAITS, 1);
  expect(&c, 0, WRAP_COPIES_OUT, 2); /* the loss, and the status words */
  expect(&c, 0, WRAP_HOST_BUFFERS, 0);
}

/* ---- bad data ---- */

/* Read at the commit's one wait: the step with the bad label is not taken. */
static void bad_data_is_found_before_the_commit(void **state) {
  (void)state;
  start("4", "");
  course c = {.replicas = 2};
  make_samples((int64_t)STEPS * c.replicas * ROWS);
  for (size_t i = 0; i < COUNT_OF(labels); i++) labels[i] = CLASSES;
  HELIO_POOL {
    helio_model *model = model_of(strategy_of(c.replicas, HELIO_DROP));
    helio_variable *kernel = helio_weights(model)->at[0];
    float before[9 * 16], behind[9 * 16];
    assert_ok(helio_tensor_read(helio_variable_copy(kernel, 1), before, sizeof before));
    assert_null(train(model, &c));
    expect_error(HELIO_BAD_DATA, "label 10 is out of range");
    assert_int_equal(c.step, 0);
    assert_ok(helio_tensor_read(helio_variable_copy(kernel, 1), behind, sizeof behind));
    assert_memory_equal(before, behind, sizeof before);
    helio_release(model);
  }
  assert_ok(helio_shutdown());
}

/* ---- input ---- */

static bool is_convolution(const told *t) {
  return strcmp(t->name, "CONV2D") == 0;
}

/* Batches take a way of their own: the copies are not in the order of what is computed. */
static void input_is_copied_beside_the_steps(void **state) {
  void *computes = NULL;
  int copies = 0;
  (void)state;
  start("4", "kernel:tell; copy:tell");
  course c = {.replicas = 1};
  listen();
  train_on(&c, HELIO_STOP);
  for (int i = 0; i < heard.count && !computes; i++) {
    if (is_convolution(&heard.calls[i])) computes = heard.calls[i].stream;
  }
  assert_non_null(computes);
  for (int i = 0; i < heard.count; i++) {
    const told *t = &heard.calls[i];
    bool images = strcmp(t->name, "copy_in") == 0 && t->elements == ROWS * SIDE * SIDE * sizeof(float);
    if (images) copies++;
    if (images) assert_ptr_not_equal(t->stream, computes);
    if (!images && strcmp(t->name, "copy_in") != 0) assert_ptr_equal(t->stream, computes);
  }
  assert_true(copies >= STEPS / 2); /* as many as were heard */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(one_device),
      TEST(two_devices_that_stop),
      TEST(two_devices_that_drop),
      TEST(no_more_than_two_steps_are_under_way),
      TEST(who_reads_the_loss_of_each_step_waits_once),
      TEST(bad_data_is_found_before_the_commit),
      TEST(input_is_copied_beside_the_steps),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
