/* SPDX-License-Identifier: Apache-2.0 */
/* A group of devices with a thread for each rank, for tests of collectives. Asserts stay on the test's own thread: a
 * rank writes down what went wrong. */
#ifndef HELIO_TEST_COLLECTIVE_GROUP_H
#define HELIO_TEST_COLLECTIVE_GROUP_H

#include <math.h>
#include <time.h>

#include "device/topology.h"
#include "strategy/collective.h"
#include "support.h"
#include "tensor/tensor.h"

enum { MOST_RANKS = 5 };

/* Which devices are ranks. */
typedef enum device_set { OWN, MIXED } device_set; /* the variant's own; strict devices and CPUs by turns */

typedef struct group group;

typedef struct rank_state {
  group *group;
  int rank;
  hi_device *device;
  hi_communicator *communicator;
  helio_status status; /* the first error of its thread */
  char message[2000];
  char wrong[300]; /* what the body found */
  double seconds, cpu_seconds;
  pthread_t thread;
} rank_state;

struct group {
  int count;
  hi_device *devices[MOST_RANKS];
  hi_collective_choice choice;
  unsigned char id[HELIO_COLLECTIVE_ID_SIZE];
  bool ordered;
  uint32_t timeout_ms;
  pthread_barrier_t *hold; /* of ranks and the test's thread, before communicators are freed; NULL: none */
  int absent;              /* a rank that does not even join; -1: none */
  void (*body)(rank_state *self, const void *argument);
  const void *argument;
  rank_state ranks[MOST_RANKS];
};

/* Starts the library with five devices of each kind and all collectives of the build tree. */
static inline void start_devices(void) {
  char path[PATH_MAX * 6];
  snprintf(path, sizeof path, "%s:%s/collectives/local/.libs:%s/collectives/nccl/.libs:%s/collectives/ring/.libs",
           given_path, build_folder(), build_folder(), build_folder());
  setenv("HELIO_PLUGIN_PATH", path, 1);
  setenv("HELIO_LOGICAL_DEVICES", "cpu:0=5", 1);
  if (on_strict()) setenv("HELIO_STRICT_DEVICES", "5", 1);
  assert_ok(helio_init());
}

/* Every collective; those that do not serve a set of devices are told by name in test_collective_life.c. */
static const char *const collectives[] = {"reduce-to-one", "ring", "local", "nccl", "rccl"};

static inline bool serves(const char *collective, device_set set) {
  if (strcmp(collective, "local") == 0) return !on_gpu();
  if (strcmp(collective, "nccl") == 0) return strcmp(given_backend, "cuda") == 0 && set == OWN;
  if (strcmp(collective, "rccl") == 0) return strcmp(given_backend, "hip") == 0 && set == OWN;
  return true;
}

static inline hi_device *nth_device(device_set set, int rank) {
  char name[20];
  bool cpu = !on_gpu() || (set == MIXED && rank % 2 == 1);
  snprintf(name, sizeof name, "%s:%d", cpu ? "cpu" : "gpu", rank);
  return hi_device_named(name);
}

/* NULL if the collective does not serve these devices: an error is pending then. */
static inline group *group_new(device_set set, int count, const char *collective) {
  group *g = calloc(1, sizeof *g);
  assert_non_null(g);
  g->count = count;
  g->absent = -1;
  g->timeout_ms = 60000;
  for (int i = 0; i < count; i++) assert_made(g->devices[i] = nth_device(set, i));
  if (!hi_collective_choose(g->devices, count, collective, &g->choice)) return g;
  free(g);
  return NULL;
}

static inline double now_seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void *rank_main(void *argument) {
  rank_state *self = argument;
  group *g = self->group;
  double start = now_seconds(CLOCK_MONOTONIC);
  hi_communicator *made = hi_communicator_new(&g->choice, &(hi_communicator_settings){.device = self->device,
                                                                                      .rank = (uint32_t)self->rank,
                                                                                      .rank_count = (uint32_t)g->count,
                                                                                      .id = g->id,
                                                                                      .ordered = g->ordered,
                                                                                      .timeout_ms = g->timeout_ms});
  __atomic_store_n(&self->communicator, made, __ATOMIC_RELEASE); /* the test's thread may abort it */
  if (made) g->body(self, g->argument);
  self->seconds = now_seconds(CLOCK_MONOTONIC) - start;
  self->cpu_seconds = now_seconds(CLOCK_THREAD_CPUTIME_ID);
  helio_error error;
  self->status = helio_error_take(&error);
  snprintf(self->message, sizeof self->message, "%s", error.message);
  if (g->hold) pthread_barrier_wait(g->hold); /* until nobody will abort it any more */
  hi_communicator_free(made);
  return NULL;
}

/* Runs the body in a thread for each rank, with a new communicator. `during`, if there is one, runs meanwhile. */
static inline void group_run(group *g, void (*body)(rank_state *, const void *), const void *argument,
                             void (*during)(group *)) {
  pthread_barrier_t barrier;
  assert_ok(hi_collective_new_id(&g->choice, g->id));
  if (during) pthread_barrier_init(g->hold = &barrier, NULL, (unsigned)g->count + 1);
  g->body = body;
  g->argument = argument;
  for (int i = 0; i < g->count; i++) {
    g->ranks[i] = (rank_state){.group = g, .rank = i, .device = g->devices[i]};
    if (i == g->absent) continue;
    assert_int_equal(pthread_create(&g->ranks[i].thread, NULL, rank_main, &g->ranks[i]), 0);
  }
  if (during) {
    during(g);
    pthread_barrier_wait(g->hold);
  }
  for (int i = 0; i < g->count; i++) {
    if (i != g->absent) pthread_join(g->ranks[i].thread, NULL);
  }
  if (during) pthread_barrier_destroy(&barrier);
  g->hold = NULL;
  g->argument = NULL;
}

/* All ranks did well. `what` names the case. */
static inline void group_check(const group *g, const char *what) {
  for (int i = 0; i < g->count; i++) {
    const rank_state *r = &g->ranks[i];
    if (r->status) fail_msg("%s, rank %d: %s: %s", what, i, helio_status_name(r->status), r->message);
    if (r->wrong[0]) fail_msg("%s, rank %d: %s", what, i, r->wrong);
  }
}

/* ---- values ---- */

/* Different for each rank and element, exact in no simple way for floats, small for integers. */
static inline double value_of(int rank, size_t index, helio_type type) {
  uint64_t seed = (uint64_t)index * 1000003u + (uint64_t)rank * 7919u + 17u;
  next_random(&seed);
  double uniform = next_random(&seed) / 2147483648.0; /* 0 … 1 */
  if (type == HELIO_BOOL) return uniform < 0.5;
  if (type == HELIO_UINT8) return floor(uniform * 256);
  if (!hi_type_is_float(type)) return floor(uniform * 2e6) - 1e6;
  return (uniform - 0.4) * 3;
}

static inline void fill_values(void *to, int rank, size_t first, size_t count, helio_type type) {
  size_t element = helio_type_bytes(type);
  for (size_t i = 0; i < count; i++) {
    hi_type_encode(type, value_of(rank, first + i, type), (char *)to + i * element);
  }
}

/* One step of a sum as the type rounds it: float32 and float64 in that type; half floats are exact in a double before
 * they are rounded. Integers are small. */
static inline void reduce_step(void *into, const void *from, helio_type type, helio_reduction reduction) {
  double a = hi_type_decode(type, into), b = hi_type_decode(type, from);
  double result = reduction == HELIO_REDUCTION_MAX ? fmax(a, b) : reduction == HELIO_REDUCTION_MIN ? fmin(a, b) : a + b;
  if (reduction == HELIO_REDUCTION_SUM && type == HELIO_FLOAT32) result = (float)a + (float)b;
  hi_type_encode(type, result, into);
}

/* The sum over all ranks of elements `first` and on, in the order of ranks. */
static inline void reference_sum(void *to, int ranks, size_t first, size_t count, helio_type type,
                                 helio_reduction reduction) {
  size_t element = helio_type_bytes(type);
  for (size_t i = 0; i < count; i++) {
    char *into = (char *)to + i * element, next[8];
    fill_values(into, 0, first + i, 1, type);
    for (int rank = 1; rank < ranks; rank++) {
      fill_values(next, rank, first + i, 1, type);
      reduce_step(into, next, type, reduction);
    }
  }
}

/* Half a unit in the last place for each addition, of the sum of magnitudes. */
static inline double tolerance_of(int ranks, size_t index, helio_type type) {
  double magnitude = 0;
  for (int rank = 0; rank < ranks; rank++) magnitude += fabs(value_of(rank, index, type)) * 1.01;
  double unit = type == HELIO_FLOAT64    ? 0x1p-53
                : type == HELIO_FLOAT32  ? 0x1p-24
                : type == HELIO_FLOAT16  ? 0x1p-11
                : type == HELIO_BFLOAT16 ? 0x1p-8
                                         : 0;
  return unit * magnitude * ranks;
}

/* ---- memory of a rank ---- */

enum { MARGIN = 5 }; /* elements before and behind, so that starts are odd and overruns are seen */

typedef struct tray {
  hi_block *block;
  helio_place place; /* of the first element */
  size_t count, element;
  char *host; /* contents with both margins */
} tray;

static inline void note(rank_state *self, const char *format, ...) HELIO_PRINTF(2, 3);
static inline void note(rank_state *self, const char *format, ...) {
  if (self->wrong[0]) return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(self->wrong, sizeof self->wrong, format, arguments);
  va_end(arguments);
}

static inline helio_stream *stream_of(const rank_state *self) {
  return hi_device_stream(self->device, HI_STREAM_COLLECTIVE);
}

/* Memory whose elements are what `host` says, or 0x5A. The device gets it in the order of the stream: nobody waits. */
static inline bool tray_open(rank_state *self, tray *t, helio_type type, size_t count) {
  const helio_member *m = &self->device->member;
  t->element = helio_type_bytes(type);
  t->count = count;
  size_t bytes = (count + 2 * MARGIN) * t->element;
  t->host = malloc(bytes);
  helio_stream *stream = stream_of(self);
  t->block = stream ? hi_arena_allocate(self->device->arena, bytes, HI_STREAM_COLLECTIVE, "test") : NULL;
  if (!t->host || !t->block) return false;
  memset(t->host, 0x5A, bytes);
  t->place = (helio_place){t->block->place.buffer, t->block->place.offset + MARGIN * t->element};
  return !m->memory->fill(m->device, stream, t->block->place, "\x5A", 1, bytes);
}

static inline bool tray_write(rank_state *self, tray *t, int rank, size_t first, size_t count, size_t at,
                              helio_type type) {
  const helio_member *m = &self->device->member;
  char *from = t->host + (MARGIN + at) * t->element;
  fill_values(from, rank, first, count, type);
  helio_place to = {t->place.buffer, t->place.offset + at * t->element};
  return count == 0 || !m->memory->copy_in(m->device, stream_of(self), to, from, count * t->element);
}

/* Of a collective whose calls wait for nobody: what became of them is known when the stream is empty. */
static inline helio_status settle(rank_state *self) {
  const helio_member *m = &self->device->member;
  m->streams->synchronize(m->device, stream_of(self));
  return hi_communicator_poll(self->communicator);
}

/* Another rank is about to break the group: this one learns of it in its call or, if that waits for nobody, soon after.
 */
static inline void await_failure(rank_state *self) {
  const group *g = self->group;
  bool waits = g->choice.flags & HELIO_COLLECTIVE_ASYNCHRONOUS;
  for (int i = 0; waits && i < 2000 && !helio_error_pending() && !settle(self); i++) usleep(1000);
}

/* Another user of the stream spoils the tray behind the call: what others still read of it must come before. */
static inline void tray_spoil(rank_state *self, tray *t) {
  const helio_member *m = &self->device->member;
  if (t->count == 0) return;
  m->memory->fill(m->device, stream_of(self), t->place, "\xEE", 1, t->count * t->element);
}

/* Reads it back and looks at the margins. NULL: failed. The result is the first element. */
static inline const char *tray_read(rank_state *self, tray *t) {
  const helio_member *m = &self->device->member;
  size_t bytes = (t->count + 2 * MARGIN) * t->element;
  char *back = malloc(bytes); /* copy_in may not have read the old one */
  helio_status status = m->memory->copy_out(m->device, stream_of(self), back, t->block->place, bytes);
  if (!status) status = m->streams->synchronize(m->device, stream_of(self));
  free(t->host);
  t->host = back;
  if (status) {
    note(self, "reading the result: %s", helio_status_name(status));
    return NULL;
  }
  for (size_t i = 0; i < MARGIN * t->element; i++) {
    if (back[i] == 0x5A && back[bytes - 1 - i] == 0x5A) continue;
    note(self, "written outside of its %zu elements", t->count);
    return NULL;
  }
  return back + MARGIN * t->element;
}

static inline void tray_close(rank_state *self, tray *t) {
  const helio_member *m = &self->device->member;
  if (t->block) m->streams->synchronize(m->device, stream_of(self)); /* it may read host memory still */
  hi_block_release(t->block);
  free(t->host);
}

#endif
