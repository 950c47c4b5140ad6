/* SPDX-License-Identifier: Apache-2.0 */
/* What a steady step of training costs two emulated GPUs that follow the host at some distance, by the emulator's own
 * counters: it sees what the backend and the vendor's libraries really ask of a device. */
#include <stdatomic.h>

#include "counters.h"
#include "device/topology.h"
#include "digit_training.h"
#include "runtime/clock.h"

enum { REPLICAS = 2, MOST_LAUNCHES = 60 };
enum { MOST_SPIN_SECONDS = 1 }; /* the most that HELIO_SPIN_US can be */

/* ---- counting ---- */

static bool on_cuda(void) {
  return strcmp(given_backend, "cuda") == 0;
}

static hi_device *device_of(int replica) {
  return hi_device_named(replica == 0 ? "gpu:0" : "gpu:1");
}

/* Waits are counted where the core calls the backend, too. What one is made of differs between the vendors: HIP's own
 * are not called, because most of them spin, and the emulator cannot tell a wait that is questions, with naps in
 * between, from other questions. Copies in are counted there because the emulator does not tell them from others. */
static helio_stream_table backend_streams;
static helio_memory_table backend_memory;
static struct {
  const helio_backend_device *device;
  atomic_ullong waits, long_waits, copies_in;
} asked[REPLICAS];

static int replica_of(const helio_backend_device *device) {
  int replica = 0;
  while (replica < REPLICAS - 1 && asked[replica].device != device) replica++;
  return replica;
}

static void note_wait(const helio_backend_device *device, double seconds) {
  atomic_fetch_add(&asked[replica_of(device)].waits, 1);
  if (seconds >= MOST_SPIN_SECONDS) atomic_fetch_add(&asked[replica_of(device)].long_waits, 1);
}

static helio_status copy_in(helio_backend_device *device, helio_stream *stream, helio_place target, const void *source,
                            size_t bytes) {
  atomic_fetch_add(&asked[replica_of(device)].copies_in, 1);
  return backend_memory.copy_in(device, stream, target, source, bytes);
}

static unsigned long long copies_in(int replica) {
  return atomic_load(&asked[replica].copies_in);
}

static helio_status stream_synchronize(helio_backend_device *device, helio_stream *stream) {
  double begin = hi_seconds();
  helio_status status = backend_streams.synchronize(device, stream);
  note_wait(device, hi_seconds() - begin);
  return status;
}

/* Who waits for what is past does not wait, nor does who comes back before it is. */
static helio_status event_synchronize(helio_backend_device *device, helio_event *event) {
  bool was_ready = backend_streams.event_query(device, event) != HELIO_NOT_READY;
  double begin = hi_seconds();
  helio_status status = backend_streams.event_synchronize(device, event);
  double seconds = hi_seconds() - begin;
  if (!was_ready && backend_streams.event_query(device, event) == HELIO_OK) note_wait(device, seconds);
  return status;
}

static void count_what_is_asked(void) {
  hi_plugin *plugin = device_of(0)->physical->plugin;
  for (int i = 0; i < REPLICAS; i++) {
    assert_ok(hi_device_use(device_of(i)));
    asked[i].device = device_of(i)->handle;
  }
  backend_streams = plugin->streams;
  backend_memory = plugin->memory;
  plugin->memory.copy_in = copy_in;
  plugin->streams.synchronize = stream_synchronize;
  plugin->streams.event_synchronize = event_synchronize;
}

typedef struct counts {
  sim_counters emulator;
  unsigned long long waits;
} counts;

typedef struct course {
  int step;
  bool is_emulated;
  void (*before_step)(void);                 /* NULL: nothing */
  unsigned long long first_copies[REPLICAS]; /* in, before the first batch */
  counts before[REPLICAS], behind[REPLICAS];
} course;

static bool count(int replica, counts *counted) {
  counted->waits = atomic_load(&asked[replica].waits);
  return read_counters(on_cuda() ? SIM_CUDA : SIM_HIP, replica, &counted->emulator);
}

static helio_status look(void *user, helio_training *training) {
  course *c = user;
  (void)training;
  c->step++;
  for (int i = 0; i < REPLICAS; i++) {
    if (c->step == WARM) c->is_emulated = count(i, &c->before[i]);
    if (c->step == WARM + STEADY) count(i, &c->behind[i]);
  }
  return HELIO_OK;
}

static helio_status note_copies(void *user, helio_training *training) {
  course *c = user;
  (void)training;
  for (int i = 0; i < REPLICAS; i++) c->first_copies[i] = copies_in(i);
  return HELIO_OK;
}

static helio_status begin_step(void *user, helio_training *training) {
  const course *c = user;
  (void)training;
  if (c->before_step) c->before_step();
  return let_read_ahead(c->step, REPLICAS, c->first_copies, copies_in);
}

static unsigned long long spent(const course *c, int replica, sim_occasion what) {
  return c->behind[replica].emulator.occasions[what] - c->before[replica].emulator.occasions[what];
}

static unsigned long long waited(const course *c, int replica) {
  return c->behind[replica].waits - c->before[replica].waits;
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

/* Who spins asks again and again, and need not wait when the answer has come. */
static void start(const char *spin_us) {
  helio_shutdown();
  setenv("HELIO_SPIN_US", spin_us, 1);
  start_replica_devices();
  count_what_is_asked();
}

static void train(course *c, helio_on_failure on_failure) {
  make_samples((int64_t)STEPS * REPLICAS * ROWS);
  HELIO_POOL {
    helio_strategy *strategy = helio_mirrored(.devices = {"gpu:0", "gpu:1"}, .collective = on_cuda() ? "nccl" : "rccl",
                                              .on_failure = on_failure);
    assert_made(strategy);
    helio_model *model = model_of(strategy);
    assert_made(train_digits(
        model, REPLICAS,
        helio_callback(.user = c, .train_begin = note_copies, .batch_begin = begin_step, .batch_end = look)));
    for (int i = 0; i < REPLICAS; i++) /* nothing but batches, or the first steps have waited for too few of them */
      assert_int_equal(copies_in(i) - c->first_copies[i], PARTS * STEPS);
    helio_release(model);
  }
  assert_true(c->is_emulated);
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

/* Half of them are enough: for what the wait of the other replica has had done by then there is none. The backend waits
 * for nothing else by itself. */
static void expect_waits(const course *c, unsigned each_step) {
  for (int i = 0; i < REPLICAS; i++) {
    print_message("device %d in %d steps: %llu waits of the host\n", i, STEADY, waited(c, i));
    assert_in_range(waited(c, i), each_step * STEADY / 2, each_step * STEADY);
    assert_true(spent(c, i, SIM_HOST_WAIT) <= waited(c, i));
  }
}

/* A step waits for the end of the step before the last, so that no more than two are under way. That is past on a
 * device that keeps up. */
static void two_devices_that_stop(void **state) {
  course c = {0};
  (void)state;
  start("0");
  train(&c, HELIO_STOP);
  expect_costs(&c, 1);
  expect_waits(&c, 0);
}

/* One in each step, for its sums. */
static void two_devices_that_drop(void **state) {
  course c = {0};
  (void)state;
  start("0");
  train(&c, HELIO_DROP);
  expect_costs(&c, 1);
  expect_waits(&c, 1);
}

/* Long enough for what an emulated device has to do, unless the machine is busy with something else. The emulator sees
 * a wait that sleeps on CUDA only: on HIP it is naps. */
static void waits_that_spin(void **state) {
  course c = {0};
  (void)state;
  start("1000000");
  train(&c, HELIO_DROP);
  expect_waits(&c, 1);
  for (int i = 0; i < REPLICAS; i++) assert_in_range(spent(&c, i, SIM_HOST_WAIT), 0, atomic_load(&asked[i].long_waits));
}

/* Nine tensors are summed: the gradients of six variables, the loss and two numbers of the accuracy. */
static void a_sum_for_each_bucket(void **state) {
  course c = {0};
  (void)state;
  setenv("HELIO_BUCKET_BYTES", "1", 1);
  start("0");
  train(&c, HELIO_DROP);
  expect_costs(&c, 9);
  expect_waits(&c, 1);
}

/* ---- beside other threads ---- */

static atomic_int taken;
static atomic_bool taking_ends;

/* As a thread does that reads ahead and finds too little room. */
static void *take_memory(void *argument) {
  const helio_member *member = &device_of(0)->member;
  while (!atomic_load(&taking_ends)) {
    helio_buffer *buffer;
    if (member->memory->allocate(member->device, 100, &buffer)) break;
    atomic_fetch_add(&taken, 1);
    usleep(300);
    member->memory->free(member->device, buffer);
  }
  return argument;
}

/* So that it has its turn however busy the machine is. */
static void let_take_memory(void) {
  int before = atomic_load(&taken);
  for (int i = 0; i < 100000 && atomic_load(&taken) < before + 2; i++) usleep(100);
}

/* A driver that is asked for memory may wait for all devices: nobody asks while some replicas have handed over their
 * part of a sum and others have not. */
static void a_thread_that_takes_memory(void **state) {
  course c = {0};
  pthread_t thread;
  (void)state;
  setenv("HELIO_BUCKET_BYTES", "1", 1); /* many sums */
  start("0");
  c.before_step = let_take_memory;
  assert_int_equal(pthread_create(&thread, NULL, take_memory, NULL), 0);
  train(&c, HELIO_STOP);
  atomic_store(&taking_ends, true);
  pthread_join(thread, NULL);
  print_message("%llu allocations in %d steps; taken or given back amid a sum: %llu\n", spent(&c, 0, SIM_ALLOCATION),
                STEADY, (unsigned long long)c.behind[0].emulator.amid_collectives);
  assert_true(spent(&c, 0, SIM_ALLOCATION) >= STEADY);
  for (int i = 0; i < REPLICAS; i++) assert_int_equal(c.behind[i].emulator.amid_collectives, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(two_devices_that_stop), TEST(two_devices_that_drop),      TEST(waits_that_spin),
      TEST(a_sum_for_each_bucket), TEST(a_thread_that_takes_memory),
  };
  setenv("GPUSIM_PACE", "behind", 1); /* before the emulator starts */
  remember_environment();
  given_arena_debug[0] = 0; /* where every block is a buffer of its own, all of them are allocations */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
