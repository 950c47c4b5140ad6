/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives in trouble: which one is chosen, ranks that do not come, aborts, calls that differ, waiting. */
#include "collective_group.h"
#include "runtime/plugins.h"

static void for_groups(int ranks, void (*body)(group *g)) {
  start_devices();
  for (size_t i = 0; i < COUNT_OF(collectives); i++) {
    if (!serves(collectives[i], OWN)) continue;
    group *g = group_new(OWN, ranks, collectives[i]);
    assert_made(g);
    body(g);
    free(g);
  }
}

/* ---- which one ---- */

static void test_the_highest_score_is_chosen(void **state) {
  (void)state;
  start_devices();
  group *g = group_new(OWN, 3, NULL);
  assert_made(g);
  const char *best = on_strict() ? "ring" : !on_vendor() ? "local" : strcmp(given_backend, "cuda") ? "rccl" : "nccl";
  assert_string_equal(g->choice.collective.name, best);
  assert_int_equal(g->choice.score, on_strict() ? 60 : 100);
  assert_string_equal(g->choice.refusals, ""); /* that local does not suit others than CPUs is no news */
  free(g);
}

static void test_one_is_chosen_by_name(void **state) {
  (void)state;
  start_devices();
  group *g = group_new(OWN, 2, "Reduce-To-One");
  assert_made(g);
  assert_string_equal(g->choice.collective.name, "reduce-to-one");
  free(g);
  assert_null(group_new(OWN, 2, "rign"));
  expect_error(HELIO_INVALID_ARGUMENT,
               "there is no collective rign; did you mean ring? There are: local, nccl, rccl, reduce-to-one, ring");
  assert_null(group_new(OWN, 2, "something-else"));
  expect_error(HELIO_INVALID_ARGUMENT, "There are: local, nccl, rccl, reduce-to-one, ring");
}

static void test_one_is_chosen_by_the_environment(void **state) {
  (void)state;
  setenv("HELIO_COLLECTIVE", "ring", 1);
  start_devices();
  group *g = group_new(OWN, 2, NULL);
  assert_made(g);
  assert_string_equal(g->choice.collective.name, "ring");
  free(g);
  g = group_new(OWN, 2, "reduce-to-one"); /* who asks in the program goes first */
  assert_made(g);
  assert_string_equal(g->choice.collective.name, "reduce-to-one");
  free(g);
}

static void test_a_refusal_of_the_one_asked_for_is_an_error(void **state) {
  (void)state;
  if (!on_gpu()) SKIP("all collectives serve CPUs");
  start_devices();
  assert_null(group_new(MIXED, 2, "local"));
  expect_error(HELIO_NOT_SUPPORTED, "the collective local cannot serve these devices: the host cannot touch the memory "
                                    "of /job:localhost/replica:0/task:0/device:GPU:0");
}

static void test_without_plugins_there_is_one(void **state) {
  (void)state;
  setenv("HELIO_LOGICAL_DEVICES", "cpu:0=2", 1);
  assert_ok(helio_init());
  hi_collective_choice choice;
  hi_device *devices[] = {hi_device_named("cpu:0"), hi_device_named("cpu:1")};
  assert_ok(hi_collective_choose(devices, 2, NULL, &choice));
  assert_string_equal(choice.collective.name, "reduce-to-one");
  assert_string_equal(helio_collective_name(0), "reduce-to-one");
  assert_null(helio_collective_name(1));
}

static void test_a_device_stands_for_one_rank(void **state) {
  (void)state;
  start_devices();
  hi_collective_choice choice;
  hi_device *devices[] = {hi_device_named("cpu:0"), hi_device_named("cpu:1"), hi_device_named("cpu:0")};
  assert_int_equal(hi_collective_choose(devices, 3, NULL, &choice), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "device:CPU:0 stands twice");
  assert_int_equal(hi_collective_choose(devices, 0, NULL, &choice), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "a group needs a device");
}

/* ---- ranks that do not come ---- */

/* The tray is to be closed, and the sum may be on its way. */
static helio_status send_tray(rank_state *self, tray *t, size_t count) {
  helio_status status = HELIO_OUT_OF_MEMORY;
  *t = (tray){.block = NULL};
  if (tray_open(self, t, HELIO_FLOAT32, count) && tray_write(self, t, self->rank, 0, count, 0, HELIO_FLOAT32)) {
    status = hi_communicator_all_reduce(self->communicator, &(hi_exchange){.stream = HI_STREAM_COLLECTIVE,
                                                                           .source = t->place,
                                                                           .target = t->place,
                                                                           .type = HELIO_FLOAT32,
                                                                           .count = count});
  }
  return status;
}

static helio_status reduce_tray(rank_state *self, tray *t, size_t count) {
  helio_status status = send_tray(self, t, count);
  return status ? status : settle(self);
}

static helio_status reduce_some(rank_state *self, size_t count) {
  tray t;
  helio_status status = reduce_tray(self, &t, count);
  tray_close(self, &t);
  return status;
}

/* Longer than ranks that are punctual may be apart on a busy machine. */
enum { PATIENCE_MS = SANITIZED ? 3000 : 1000 };

static atomic_int gave_up;

/* Ranks 1 and 3 come to the second call when the other three have waited for as long as they do. */
static void come_late(rank_state *self, const void *argument) {
  (void)argument;
  bool late = self->rank % 2 == 1;
  if (reduce_some(self, 100)) return;
  for (int i = 0; late && atomic_load(&gave_up) < 3 && i < 60000; i++) usleep(1000);
  reduce_some(self, 100);
  if (!late) atomic_fetch_add(&gave_up, 1);
}

/* On emulated GPUs the first sum waits for the compiler, for longer than ranks wait for each other here. */
static void warm_up(rank_state *self, const void *argument) {
  (void)argument;
  reduce_some(self, 100);
}

static void late_ranks(group *g) {
  if (on_vendor()) {
    group_run(g, warm_up, NULL, NULL);
    group_check(g, "a call without a hurry");
  }
  char expected[80];
  double patience = PATIENCE_MS / 1e3;
  snprintf(expected, sizeof expected, "of 5 ranks these did not come within %g s: 1, 3", patience);
  g->timeout_ms = PATIENCE_MS;
  atomic_store(&gave_up, 0);
  group_run(g, come_late, NULL, NULL);
  for (int i = 0; i < g->count; i++) {
    const rank_state *r = &g->ranks[i];
    assert_int_equal(r->status, HELIO_TIMED_OUT); /* those that come too late are told so too */
    if (!strstr(r->message, expected)) fail_msg("%s", r->message);
    if (i % 2 == 0 && (r->seconds < patience * 0.7 || r->seconds > patience + 10))
      fail_msg("rank %d waited for %g s", i, r->seconds);
  }
}

static void test_ranks_that_come_late(void **state) {
  (void)state;
  for_groups(5, late_ranks);
}

/* What a driver may do when it is asked for memory: before a rank has come to the call no device can be waiting for it,
 * and who goes on behind the call can rely on all having come. */
static void wait_for_all_devices(rank_state *self, const void *argument) {
  static atomic_int come;
  (void)argument;
  if (self->rank == 0) atomic_store(&come, 0);
  if (reduce_some(self, 100)) return;
  if (self->rank == 1) usleep(100 * 1000);
  for (int i = 0; i < self->group->count && self->rank == 1; i++) {
    if (hi_device_synchronize(self->group->devices[i])) return;
  }
  tray t;
  atomic_fetch_add(&come, 1);
  helio_status status = send_tray(self, &t, 100);
  if (!status && atomic_load(&come) != self->group->count)
    snprintf(self->wrong, sizeof self->wrong, "it went on alone");
  if (!status) settle(self);
  tray_close(self, &t);
}

static void devices_that_are_waited_for(group *g) {
  g->timeout_ms = 20000;
  group_run(g, wait_for_all_devices, NULL, NULL);
  group_check(g, "waiting for all devices before a call");
}

static void test_devices_that_are_waited_for(void **state) {
  (void)state;
  for_groups(3, devices_that_are_waited_for);
}

static void nothing(rank_state *self, const void *argument) {
  (void)self, (void)argument;
}

static void a_rank_that_does_not_join(group *g) {
  char expected[100];
  snprintf(expected, sizeof expected, "of 3 ranks these did not come to join the group within %g s: 1",
           PATIENCE_MS / 1e3);
  g->timeout_ms = PATIENCE_MS;
  g->absent = 1;
  group_run(g, nothing, NULL, NULL);
  for (int i = 0; i < g->count; i++) {
    if (i == g->absent) continue;
    assert_int_equal(g->ranks[i].status, HELIO_TIMED_OUT);
    if (!strstr(g->ranks[i].message, expected)) fail_msg("%s", g->ranks[i].message);
  }
  g->absent = -1; /* and the next group is as good as any */
  g->timeout_ms = 60000;
  group_run(g, nothing, NULL, NULL);
  group_check(g, "after a group that did not come together");
}

static void test_a_rank_that_does_not_join(void **state) {
  (void)state;
  for_groups(3, a_rank_that_does_not_join);
}

/* ---- abort ---- */

static void wait_for_rank_0(rank_state *self, const void *argument) {
  (void)argument;
  if (reduce_some(self, 1000)) return;
  if (self->rank == 0) {
    usleep(100 * 1000);
    hi_communicator_abort(self->communicator);
    if (hi_communicator_poll(self->communicator) != HELIO_ABORTED) note(self, "poll says that all is well");
    helio_error_take(NULL);
  }
  reduce_some(self, 1000);
}

static void aborted(group *g) {
  group_run(g, wait_for_rank_0, NULL, NULL);
  for (int i = 0; i < g->count; i++) {
    assert_int_equal(g->ranks[i].status, HELIO_ABORTED);
    assert_non_null(strstr(g->ranks[i].message, "rank 0 has aborted the group"));
    assert_string_equal(g->ranks[i].wrong, "");
    if (g->ranks[i].seconds > 2) fail_msg("the abort took %g s", g->ranks[i].seconds);
  }
}

static void test_abort(void **state) {
  (void)state;
  for_groups(3, aborted);
}

/* At any time, from a thread that is no rank: calls end well or with the abort. The buffers of the call that failed are
 * left alone until all devices are at rest. */
static tray of_failed_call[MOST_RANKS];

static void call_until_it_fails(rank_state *self, const void *argument) {
  (void)argument;
  tray *t = &of_failed_call[self->rank];
  while (!reduce_tray(self, t, 5000)) tray_close(self, t);
}

static void abort_some_time(group *g) {
  usleep(2000 + (useconds_t)(g->timeout_ms * 977 % 5000));
  for (int i = 0; i < 1000; i++) { /* its communicator may not be there yet */
    hi_communicator *c = __atomic_load_n(&g->ranks[1].communicator, __ATOMIC_ACQUIRE);
    if (c) {
      hi_communicator_abort(c);
      return;
    }
    usleep(1000);
  }
}

/* Then nothing touches them any more: what is written stays. */
static void look_behind_the_abort(group *g) {
  for (int i = 0; i < g->count; i++) {
    const helio_member *m = &g->devices[i]->member;
    assert_ok(m->devices->synchronize(m->device));
  }
  for (int i = 0; i < g->count; i++) {
    tray *t = &of_failed_call[i];
    if (t->block) tray_spoil(&g->ranks[i], t);
  }
  for (int i = 0; i < g->count; i++) {
    tray *t = &of_failed_call[i];
    const char *found = t->block ? tray_read(&g->ranks[i], t) : NULL;
    for (size_t k = 0; found && k < t->count * t->element; k++) assert_int_equal((unsigned char)found[k], 0xEE);
    tray_close(&g->ranks[i], t);
    assert_string_equal(g->ranks[i].wrong, "");
  }
}

static void abort_in_the_middle(group *g) {
  for (uint32_t run = 0; run < 20; run++) {
    g->timeout_ms = 30000 + run;
    memset(of_failed_call, 0, sizeof of_failed_call);
    group_run(g, call_until_it_fails, NULL, abort_some_time);
    for (int i = 0; i < g->count; i++) assert_int_equal(g->ranks[i].status, HELIO_ABORTED);
    look_behind_the_abort(g);
  }
}

static void test_abort_in_the_middle(void **state) {
  (void)state;
  for_groups(4, abort_in_the_middle);
}

/* ---- calls that differ ---- */

typedef struct difference {
  const char *part; /* of the message */
  hi_exchange usual, other;
  bool broadcast; /* the other one is */
} difference;

/* Rank 2 makes the other call. */
static void make_different_calls(rank_state *self, const void *argument) {
  const difference *d = argument;
  bool differs = self->rank == 2;
  hi_exchange exchange = differs ? d->other : d->usual;
  tray t = {.block = NULL};
  if (!tray_open(self, &t, HELIO_FLOAT64, 200)) {
    note(self, "no memory");
    hi_communicator_abort(self->communicator);
  } else {
    exchange.stream = HI_STREAM_COLLECTIVE;
    exchange.source = exchange.target = t.place;
    if (exchange.counts) {
      size_t before = exchange.counts[0] * (size_t)(self->rank > 0) + exchange.counts[1] * (size_t)(self->rank > 1);
      exchange.source.offset += before * 8;
      hi_communicator_all_gather(self->communicator, &exchange);
    } else if (differs && d->broadcast) {
      hi_communicator_broadcast(self->communicator, &exchange);
    } else {
      hi_communicator_all_reduce(self->communicator, &exchange);
    }
    await_failure(self);
  }
  tray_close(self, &t);
}

/* Where ranks wait for all, the first of them is compared with the others; where they wait for nobody, whoever came
 * first, which need not be the first rank. */
static bool tells(const group *g, const char *message, const char *part) {
  if (strstr(message, part)) return true;
  bool waits = !(g->choice.flags & HELIO_COLLECTIVE_ASYNCHRONOUS);
  char other[200];
  if (waits || strncmp(part, "rank 0", 6) != 0) return false;
  snprintf(other, sizeof other, "rank 1%s", part + 6);
  return strstr(message, other) != NULL;
}

static void calls_that_differ(group *g) {
  static const size_t counts[] = {5, 7, 9}, others[] = {7, 5, 9};
  const hi_exchange usual = {.type = HELIO_FLOAT32, .count = 100};
  const difference rows[] = {
      {"rank 0 makes all_reduce of 100 float32, sum; rank 2 all_reduce of 99 float32, sum; every",
       usual,
       {.type = HELIO_FLOAT32, .count = 99},
       false},
      {"rank 0 makes all_reduce of 100 float32, sum; rank 2 all_reduce of 100 int32",
       usual,
       {.type = HELIO_INT32, .count = 100},
       false},
      {"rank 2 all_reduce of 100 float32, max",
       usual,
       {.type = HELIO_FLOAT32, .count = 100, .reduction = HELIO_REDUCTION_MAX},
       false},
      {"rank 2 broadcast of 100 float32, root 1", usual, {.type = HELIO_FLOAT32, .count = 100, .root = 1}, true},
      {"rank 2 all_gather of 21 float64 with other counts of the ranks",
       {.type = HELIO_FLOAT64, .counts = counts},
       {.type = HELIO_FLOAT64, .counts = others},
       false},
  };
  for (size_t row = 0; row < COUNT_OF(rows); row++) {
    group_run(g, make_different_calls, &rows[row], NULL);
    for (int i = 0; i < g->count; i++) {
      const rank_state *r = &g->ranks[i];
      if (r->status != HELIO_INVALID_ARGUMENT || !tells(g, r->message, rows[row].part)) {
        fail_msg("%s, row %zu, rank %d: %s: %s", g->choice.collective.name, row, i, helio_status_name(r->status),
                 r->message);
      }
    }
  }
}

static void test_calls_that_differ(void **state) {
  (void)state;
  for_groups(3, calls_that_differ);
}

/* A call that is wrong by itself fails on its rank, and the others do not wait for it. */
static void call_wrongly(rank_state *self, const void *argument) {
  (void)argument;
  hi_exchange exchange = {.stream = HI_STREAM_COLLECTIVE, .type = HELIO_FLOAT32, .root = self->rank == 1 ? 7 : 0};
  hi_communicator_broadcast(self->communicator, &exchange);
  await_failure(self);
}

static void a_wrong_call(group *g) {
  group_run(g, call_wrongly, NULL, NULL);
  for (int i = 0; i < g->count; i++) {
    assert_int_equal(g->ranks[i].status, i == 1 ? HELIO_INVALID_ARGUMENT : HELIO_ABORTED);
    assert_true(g->ranks[i].seconds < 5);
  }
  assert_non_null(strstr(g->ranks[1].message, "broadcast on rank 1 of 3"));
  assert_non_null(strstr(g->ranks[1].message, "there is no such root"));
}

static void test_a_wrong_call(void **state) {
  (void)state;
  for_groups(3, a_wrong_call);
}

/* A device that fails: rank 1's target is no memory of its own. */
static void write_to_nowhere(rank_state *self, const void *argument) {
  (void)argument;
  tray t = {.block = NULL};
  if (tray_open(self, &t, HELIO_FLOAT32, 100)) {
    hi_exchange exchange = {.stream = HI_STREAM_COLLECTIVE,
                            .source = t.place,
                            .target = {t.place.buffer, t.place.offset + ((size_t)(self->rank == 1) << 40)},
                            .type = HELIO_FLOAT32,
                            .count = 100};
    hi_communicator_all_reduce(self->communicator, &exchange);
  }
  tray_close(self, &t);
}

static void a_failing_device(group *g) {
  bool is_ring = strcmp(g->choice.collective.name, "ring") == 0;
  group_run(g, write_to_nowhere, NULL, NULL);
  for (int i = 0; i < g->count; i++) {
    const rank_state *r = &g->ranks[i];
    const char *part =
        is_ring && i != 1 ? "rank 1 (/job:localhost/replica:0/task:0/device:GPU:1) has failed" : "target";
    if (r->status != HELIO_INVALID_ARGUMENT || !strstr(r->message, part)) {
      fail_msg("%s, rank %d: %s: %s", g->choice.collective.name, i, helio_status_name(r->status), r->message);
    }
    assert_true(r->seconds < 5);
  }
}

static void test_a_failing_device(void **state) {
  (void)state;
  if (!on_strict()) SKIP("only the strict device looks at places");
  for_groups(3, a_failing_device);
}

/* ---- waiting ---- */

static void wait_long(rank_state *self, const void *argument) {
  (void)argument;
  if (self->rank == 0) usleep(500 * 1000);
  reduce_some(self, 10);
}

/* A thread that waits for another spins for a moment only. */
static void waits_asleep(group *g) {
  group_run(g, wait_long, NULL, NULL);
  group_check(g, "a long wait");
  for (int i = 1; i < g->count; i++) {
    if (g->ranks[i].seconds < 0.4) fail_msg("rank %d did not wait", i);
    if (g->ranks[i].cpu_seconds > 0.1) fail_msg("rank %d was busy for %g s", i, g->ranks[i].cpu_seconds);
  }
}

static void test_waiting_costs_nothing(void **state) {
  (void)state;
  for_groups(2, waits_asleep);
}

/* ---- one thread for several ranks ---- */

enum { TOGETHER = 3, ELEMENTS = 8 };

/* Three ranks with an int32 each in 8 places: (rank + 1) × (place + 1). */
typedef struct trio {
  group *group;
  const helio_collective_table *table;
  helio_plugin_state *state;
  helio_communicator *communicators[TOGETHER];
  hi_block *blocks[TOGETHER];
  int32_t numbers[TOGETHER][ELEMENTS];
} trio;

static helio_stream *stream_at(const trio *t, int rank) {
  return hi_device_stream(t->group->devices[rank], HI_STREAM_COLLECTIVE);
}

static void trio_open(trio *t, group *g) {
  unsigned char id[HELIO_COLLECTIVE_ID_SIZE];
  *t = (trio){.group = g, .table = g->choice.collective.table, .state = g->choice.collective.state};
  assert_int_equal(t->table->new_id(t->state, id), HELIO_OK);
  assert_int_equal(t->table->group_start(t->state), HELIO_OK);
  for (int i = 0; i < TOGETHER; i++) {
    hi_device *device = g->devices[i];
    helio_communicator_options options = {.size = sizeof options,
                                          .id = id,
                                          .rank = (uint32_t)i,
                                          .rank_count = TOGETHER,
                                          .member = &device->member,
                                          .timeout_ms = 20000};
    assert_int_equal(t->table->create(t->state, &options, &t->communicators[i]), HELIO_OK);
    assert_non_null(stream_at(t, i));
    t->blocks[i] = hi_arena_allocate(device->arena, sizeof t->numbers[i], HI_STREAM_COLLECTIVE, "test");
    assert_non_null(t->blocks[i]);
    for (int k = 0; k < ELEMENTS; k++) t->numbers[i][k] = (i + 1) * (k + 1);
    assert_int_equal(device->member.memory->copy_in(device->member.device, stream_at(t, i), t->blocks[i]->place,
                                                    t->numbers[i], sizeof t->numbers[i]),
                     HELIO_OK);
  }
  assert_int_equal(t->table->group_end(t->state), HELIO_OK);
}

static helio_collective_call call_of(const trio *t, int rank) {
  return (helio_collective_call){.size = sizeof(helio_collective_call),
                                 .stream = stream_at(t, rank),
                                 .source = t->blocks[rank]->place,
                                 .target = t->blocks[rank]->place,
                                 .type = HELIO_INT32,
                                 .reduction = HELIO_REDUCTION_SUM,
                                 .count = ELEMENTS};
}

static void trio_close(trio *t) {
  for (int i = 0; i < TOGETHER; i++) {
    const helio_member *m = &t->group->devices[i]->member;
    assert_int_equal(m->streams->synchronize(m->device, stream_at(t, i)), HELIO_OK);
    t->table->destroy(t->communicators[i]);
    hi_block_release(t->blocks[i]);
  }
}

/* A sum, then one place of each rank to all: two calls of each rank in one group. */
static void two_calls_of_three_ranks(trio *t) {
  static const size_t counts[] = {1, 0, 2};
  assert_int_equal(t->table->group_start(t->state), HELIO_OK);
  assert_int_equal(t->table->group_start(t->state), HELIO_OK);
  for (int i = 0; i < TOGETHER; i++) {
    helio_collective_call sum = call_of(t, i), gather = sum;
    gather.count = counts[i];
    gather.counts = counts;
    gather.source.offset += i == 2 ? sizeof(int32_t) : 0;
    assert_int_equal(t->table->all_reduce(t->communicators[i], &sum), HELIO_OK);
    assert_int_equal(t->table->all_gather(t->communicators[i], &gather), HELIO_OK);
  }
  assert_int_equal(t->table->group_end(t->state), HELIO_OK);
  assert_int_equal(t->table->group_end(t->state), HELIO_OK);
  for (int i = 0; i < TOGETHER; i++) {
    const helio_member *m = &t->group->devices[i]->member;
    assert_int_equal(
        m->memory->copy_out(m->device, stream_at(t, i), t->numbers[i], t->blocks[i]->place, sizeof t->numbers[i]),
        HELIO_OK);
    assert_int_equal(m->streams->synchronize(m->device, stream_at(t, i)), HELIO_OK);
    assert_int_equal(t->table->poll(t->communicators[i]), HELIO_OK);
    for (int k = 0; k < ELEMENTS; k++) assert_int_equal(t->numbers[i][k], 6 * (k + 1));
  }
}

/* Each call of a group is compared before any is handed over. */
static void calls_of_a_group_that_differ(trio *t) {
  assert_int_equal(t->table->group_start(t->state), HELIO_OK);
  for (int i = 0; i < TOGETHER; i++) {
    helio_collective_call sum = call_of(t, i);
    sum.count -= i == 2;
    assert_int_equal(t->table->all_reduce(t->communicators[i], &sum), HELIO_OK);
  }
  assert_int_equal(t->table->group_end(t->state), HELIO_INVALID_ARGUMENT);
  for (int i = 0; i < TOGETHER; i++) {
    assert_int_equal(t->table->poll(t->communicators[i]), HELIO_INVALID_ARGUMENT);
  }
  assert_int_equal(t->table->group_end(t->state), HELIO_WRONG_STATE);
}

static void test_one_thread_drives_several_ranks(void **state) {
  (void)state;
  if (!on_vendor()) SKIP("the collectives of this variant want a thread for each rank");
  start_devices();
  group *g = group_new(OWN, TOGETHER, strcmp(given_backend, "cuda") == 0 ? "nccl" : "rccl");
  assert_made(g);
  trio t;
  trio_open(&t, g);
  two_calls_of_three_ranks(&t);
  calls_of_a_group_that_differ(&t);
  trio_close(&t);
  free(g);
}

/* ---- measuring ---- */

static void test_timing(void **state) {
  (void)state;
  start_devices();
  double seconds[3] = {-1, -1, -1};
  const char *const devices[] = {"cpu:0", "cpu:1"};
  assert_ok(helio_time_all_reduce(devices, 2, NULL, 4096, 3, seconds));
  for (int i = 0; i < 3; i++) assert_true(seconds[i] >= 0 && seconds[i] < 10);
  assert_int_equal(helio_time_all_reduce(devices, 2, NULL, 4095, 3, seconds), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "whole float32 numbers");
  assert_int_equal(helio_time_all_reduce(devices, 2, "nonesuch", 4096, 3, seconds), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "no collective nonesuch");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_the_highest_score_is_chosen),
      TEST(test_one_is_chosen_by_name),
      TEST(test_one_is_chosen_by_the_environment),
      TEST(test_a_refusal_of_the_one_asked_for_is_an_error),
      TEST(test_without_plugins_there_is_one),
      TEST(test_a_device_stands_for_one_rank),
      TEST(test_ranks_that_come_late),
      TEST(test_devices_that_are_waited_for),
      TEST(test_a_rank_that_does_not_join),
      TEST(test_abort),
      TEST(test_abort_in_the_middle),
      TEST(test_calls_that_differ),
      TEST(test_a_wrong_call),
      TEST(test_a_failing_device),
      TEST(test_waiting_costs_nothing),
      TEST(test_one_thread_drives_several_ranks),
      TEST(test_timing),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
