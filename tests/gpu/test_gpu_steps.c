/* SPDX-License-Identifier: Apache-2.0 */
/* What a steady step of training costs two emulated GPUs that follow the host at some distance, by the emulator's own
 * counters: it sees what the backend and the vendor's libraries really ask of a device. */
#include "../gpusim/core/sim.h"
#include "digit_training.h"

#include <dlfcn.h>

enum { REPLICAS = 2, MOST_LAUNCHES = 60 };

/* ---- counting ---- */

static void (*read_counters)(const sim_device *device, sim_counters *counters);
static sim_device *(*device_at)(sim_vendor vendor, int index);

static bool on_cuda(void) {
  return strcmp(given_backend, "cuda") == 0;
}

/* The emulator that the backend has opened. */
static void find_counters(void) {
  void *library = dlopen("libgpusim.so", RTLD_NOW | RTLD_NOLOAD);
  if (!library) fail_msg("this is no emulated GPU: %s", dlerror());
  *(void **)&read_counters = dlsym(library, "sim_counters_read");
  *(void **)&device_at = dlsym(library, "sim_device_at");
  assert_true(read_counters && device_at);
  dlclose(library);
}

typedef struct course {
  int step;
  sim_counters before[REPLICAS], behind[REPLICAS];
} course;

static helio_status look(void *user, helio_training *training) {
  course *c = user;
  (void)training;
  c->step++;
  for (int i = 0; i < REPLICAS; i++) {
    const sim_device *device = device_at(on_cuda() ? SIM_CUDA : SIM_HIP, i);
    if (c->step == WARM) read_counters(device, &c->before[i]);
    if (c->step == WARM + STEADY) read_counters(device, &c->behind[i]);
  }
  return HELIO_OK;
}

static unsigned long long spent(const course *c, int replica, sim_occasion what) {
  return c->behind[replica].occasions[what] - c->before[replica].occasions[what];
}

/* ---- what is expected ---- */

static void expect(const course *c, int replica, sim_occasion what, const char *name, unsigned each_step) {
  if (spent(c, replica, what) == (unsigned long long)each_step * STEADY) return;
  fail_msg("%llu %s on device %d in %d steps, not %u in each", spent(c, replica, what), name, replica, STEADY,
           each_step);
}

static void expect_launches(const course *c, int replica) {
  unsigned long long launches = spent(c, replica, SIM_LAUNCH), calls = spent(c, replica, SIM_LIBRARY);
  print_message("device %d in %d steps: %llu launches, %llu library calls, %llu copies, %llu polls\n", replica, STEADY,
                launches, calls, spent(c, replica, SIM_COPY), spent(c, replica, SIM_POLL));
  assert_true(launches + calls <= (unsigned long long)MOST_LAUNCHES * STEADY);
}

static void train(course *c, helio_on_failure on_failure) {
  helio_shutdown();
  start_replica_devices();
  find_counters();
  make_samples((int64_t)STEPS * REPLICAS * ROWS);
  HELIO_POOL {
    helio_strategy *strategy = helio_mirrored(.devices = {"gpu:0", "gpu:1"}, .collective = on_cuda() ? "nccl" : "rccl",
                                              .on_failure = on_failure);
    assert_made(strategy);
    helio_model *model = model_of(strategy);
    assert_made(train_digits(model, REPLICAS, helio_callback(.user = c, .batch_end = look)));
    helio_release(model);
  }
}

/* What a step costs whatever the pace; `sums` of each replica. */
static void expect_costs(const course *c, unsigned sums) {
  for (int i = 0; i < REPLICAS; i++) {
    expect_launches(c, i);
    expect(c, i, SIM_ALLOCATION, "allocations", 0);
    expect(c, i, SIM_CREATION, "streams, events, modules and handles", 0);
    expect(c, i, SIM_COMPILATION, "compilations", 0);
    expect(c, i, SIM_COLLECTIVE, "sums", sums);
  }
}

/* A step waits for the end of the step before the last, so that no more than two are under way. That is past on a
 * device that keeps up; an emulated one, whose work is done by the threads of the program, may not on a busy machine:
 * one training of a few without a wait is enough. */
static void two_devices_that_stop(void **state) {
  enum { TRIES = 5 };
  unsigned long long waits = 1;
  (void)state;
  for (int i = 0; i < TRIES && waits > 0; i++) {
    course c = {0};
    train(&c, HELIO_STOP);
    expect_costs(&c, 1);
    waits = spent(&c, 0, SIM_HOST_WAIT) + spent(&c, 1, SIM_HOST_WAIT);
    print_message("%llu waits of the host\n", waits);
  }
  assert_int_equal(waits, 0);
}

/* One in each step, for its sums; for what the wait of the other replica has had done by then it is none. */
static void expect_waits_for_sums(const course *c) {
  for (int i = 0; i < REPLICAS; i++) {
    print_message("device %d in %d steps: %llu waits of the host\n", i, STEADY, spent(c, i, SIM_HOST_WAIT));
    assert_in_range(spent(c, i, SIM_HOST_WAIT), STEADY / 2, STEADY);
  }
}

static void two_devices_that_drop(void **state) {
  course c = {0};
  (void)state;
  train(&c, HELIO_DROP);
  expect_costs(&c, 1);
  expect_waits_for_sums(&c);
}

/* Nine tensors are summed: the gradients of six variables, the loss and two numbers of the accuracy. */
static void a_sum_for_each_bucket(void **state) {
  course c = {0};
  (void)state;
  setenv("HELIO_BUCKET_BYTES", "1", 1);
  train(&c, HELIO_DROP);
  expect_costs(&c, 9);
  expect_waits_for_sums(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(two_devices_that_stop),
      TEST(two_devices_that_drop),
      TEST(a_sum_for_each_bucket),
  };
  setenv("GPUSIM_PACE", "behind", 1); /* before the emulator starts */
  remember_environment();
  given_arena_debug[0] = 0; /* where every block is a buffer of its own, all of them are allocations */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
