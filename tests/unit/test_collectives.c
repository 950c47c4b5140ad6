/* SPDX-License-Identifier: Apache-2.0 */
/* What collectives compute: every one that there is, on devices of this variant and on a mix, against sums formed here.
 */
#include "collective_group.h"

static const helio_type types[] = {HELIO_FLOAT32,  HELIO_FLOAT64, HELIO_FLOAT16,
                                   HELIO_BFLOAT16, HELIO_INT32,   HELIO_INT64};

/* ---- one call ---- */

typedef enum kind { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER } kind;
static const char *const kind_names[] = {"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter"};

typedef struct example {
  kind kind;
  helio_type type;
  helio_reduction reduction;
  size_t count;         /* of all elements, whosever they are */
  const size_t *counts; /* of all_gather and reduce_scatter */
  int root;
  bool in_place;
  bool exact; /* the sum is that in order of ranks, to the bit */
  char *keep; /* rank 0's result, if not NULL */
} example;

static helio_status make_call(hi_communicator *c, kind what, const hi_exchange *exchange) {
  switch (what) {
  case ALL_REDUCE:
    return hi_communicator_all_reduce(c, exchange);
  case REDUCE:
    return hi_communicator_reduce(c, exchange);
  case BROADCAST:
    return hi_communicator_broadcast(c, exchange);
  case ALL_GATHER:
    return hi_communicator_all_gather(c, exchange);
  case REDUCE_SCATTER:
    return hi_communicator_reduce_scatter(c, exchange);
  }
  return HELIO_INVALID_ARGUMENT;
}

static size_t before_rank(const example *e, int rank) {
  size_t sum = 0;
  for (int i = 0; i < rank && e->counts; i++) sum += e->counts[i];
  return sum;
}

/* Which elements of the whole a rank's source and target hold. */
typedef struct span {
  size_t first, count;
} span;

static span source_span(const example *e, int rank) {
  if (e->kind == ALL_GATHER) return (span){before_rank(e, rank), e->counts[rank]};
  return (span){0, e->kind == BROADCAST && rank != e->root ? 0 : e->count};
}

static span target_span(const example *e, int rank) {
  if (e->kind == REDUCE_SCATTER) return (span){before_rank(e, rank), e->counts[rank]};
  return (span){0, e->kind == REDUCE && rank != e->root ? 0 : e->count};
}

/* The rank whose values an element of all_gather or broadcast is. */
static int owner_of(const example *e, size_t index) {
  int rank = 0;
  if (e->kind == BROADCAST) return e->root;
  for (size_t end = e->counts[0]; index >= end; end += e->counts[rank]) rank++;
  return rank;
}

static void check_element(rank_state *self, const example *e, size_t index, const char *got) {
  char expected[8];
  size_t element = helio_type_bytes(e->type);
  bool moved = e->kind == BROADCAST || e->kind == ALL_GATHER;
  if (moved) {
    fill_values(expected, owner_of(e, index), index, 1, e->type);
  } else {
    reference_sum(expected, self->group->count, index, 1, e->type, e->reduction);
  }
  double wanted = hi_type_decode(e->type, expected), read = hi_type_decode(e->type, got);
  bool rounds = !moved && !e->exact && e->reduction == HELIO_REDUCTION_SUM;
  double tolerance = rounds ? tolerance_of(self->group->count, index, e->type) : 0;
  if (tolerance == 0 ? memcmp(expected, got, element) == 0 : fabs(wanted - read) <= tolerance) return;
  note(self, "element %zu is %.17g, not %.17g", index, read, wanted);
}

/* In place, the smaller of source and target is part of the larger. */
static void run_example(rank_state *self, const void *argument) {
  const example *e = argument;
  span from = source_span(e, self->rank), to = target_span(e, self->rank);
  tray source = {.block = NULL}, target = {.block = NULL};
  bool together = e->in_place && from.count > 0 && to.count > 0;
  bool larger_source = from.count > to.count;
  size_t inside = larger_source ? to.first - from.first : from.first - to.first;
  size_t element = helio_type_bytes(e->type);
  bool opened = tray_open(self, &target, e->type, together && larger_source ? from.count : to.count) &&
                (together || tray_open(self, &source, e->type, from.count));
  tray *held = together ? &target : &source;
  size_t at = together && !larger_source ? inside : 0;
  if (!opened || !tray_write(self, held, self->rank, from.first, from.count, at, e->type)) {
    note(self, "preparing failed");
    hi_communicator_abort(self->communicator);
  }
  hi_exchange exchange = {.stream = HI_STREAM_COLLECTIVE,
                          .source = {held->place.buffer, held->place.offset + at * element},
                          .target = target.place,
                          .type = e->type,
                          .reduction = e->reduction,
                          .root = (uint32_t)e->root,
                          .count = e->count,
                          .counts = e->counts};
  if (together && larger_source) exchange.target.offset += inside * element;
  if (from.count == 0) exchange.source = (helio_place){NULL, 0};
  if (to.count == 0) exchange.target = (helio_place){NULL, 0};
  helio_status status = make_call(self->communicator, e->kind, &exchange);
  if (!status && !together) tray_spoil(self, &source);
  const char *result = status ? NULL : tray_read(self, &target);
  if (result && settle(self)) result = NULL;
  if (result && together && larger_source) result += inside * element;
  for (size_t i = 0; result && i < to.count && !self->wrong[0]; i++) {
    check_element(self, e, to.first + i, result + i * element);
  }
  if (result && e->keep && self->rank == 0) memcpy(e->keep, result, to.count * element);
  tray_close(self, &source);
  tray_close(self, &target);
}

static void try_example(group *g, const example *e) {
  static int examples;
  char what[300];
  example chosen = *e;
  if (SANITIZED && !e->keep && examples++ % 5 != 0) return; /* sanitizers take their time */
  if (g->ordered || g->choice.flags & HELIO_COLLECTIVE_ORDERED) chosen.exact = true;
  snprintf(what, sizeof what, "%s by %s, %d ranks, %zu %s, reduction %d, root %d%s", kind_names[e->kind],
           g->choice.collective.name, g->count, e->count, helio_type_name(e->type), (int)e->reduction, e->root,
           e->in_place ? ", in place" : "");
  group_run(g, run_example, &chosen, NULL);
  group_check(g, what);
}

static void a_bit_of_everything(group *g);

/* Emulated GPUs are slow: the collectives that are made for them are tested in full, the others with a bit of
 * everything.
 */
static bool is_worth_it(const char *collective, void (*body)(group *g)) {
  return !on_vendor() || body == a_bit_of_everything || strcmp(collective, "nccl") == 0 ||
         strcmp(collective, "rccl") == 0;
}

/* Calls `body` for each collective with so many ranks, on each set of devices. */
static void for_groups(int ranks, void (*body)(group *g)) {
  for (device_set set = OWN; set <= (on_gpu() && ranks > 1 ? MIXED : OWN); set++) {
    for (size_t i = 0; i < COUNT_OF(collectives); i++) {
      if (!serves(collectives[i], set) || !is_worth_it(collectives[i], body)) continue;
      group *g = group_new(set, ranks, collectives[i]);
      assert_made(g);
      body(g);
      free(g);
    }
  }
}

/* ---- all_reduce ---- */

static void all_reduce_in_every_way(group *g) {
  static const size_t counts[] = {0, 1, 7, 1023};
  for (size_t t = 0; t < COUNT_OF(types); t++) {
    for (size_t n = 0; n < COUNT_OF(counts); n++) {
      for (int way = 0; way < 6; way++) {
        try_example(g, &(example){.kind = ALL_REDUCE,
                                  .type = types[t],
                                  .reduction = (helio_reduction)(HELIO_REDUCTION_SUM + way / 2),
                                  .count = counts[n],
                                  .in_place = way % 2});
      }
    }
  }
}

static void test_all_reduce(void **state) {
  (void)state;
  start_devices();
  for_groups(1, all_reduce_in_every_way);
  for_groups(2, all_reduce_in_every_way);
  for_groups(3, all_reduce_in_every_way);
  for_groups(5, all_reduce_in_every_way);
}

/* A little more than a MiB of float32: several pieces for those that work in pieces, the last one odd. */
static void all_reduce_of_much(group *g) {
  for (size_t t = 0; t < COUNT_OF(types); t++) {
    try_example(g, &(example){.kind = ALL_REDUCE,
                              .type = types[t],
                              .reduction = HELIO_REDUCTION_SUM,
                              .count = (1 << 18) + 13,
                              .in_place = t % 2});
  }
}

static void test_all_reduce_of_much(void **state) {
  (void)state;
  start_devices();
  for_groups(2, all_reduce_of_much);
  for_groups(3, all_reduce_of_much);
}

/* ---- the other calls ---- */

static void every_root(group *g) {
  static const helio_type moved[] = {HELIO_FLOAT32, HELIO_UINT8, HELIO_BOOL, HELIO_INT64};
  static const size_t counts[] = {0, 1, 1023};
  for (int root = 0; root < g->count; root++) {
    for (size_t n = 0; n < COUNT_OF(counts); n++) {
      for (size_t t = 0; t < COUNT_OF(moved); t++) {
        try_example(
            g, &(example){.kind = BROADCAST, .type = moved[t], .count = counts[n], .root = root, .in_place = t % 2});
      }
      for (int way = 0; way < 6; way++) {
        try_example(g, &(example){.kind = REDUCE,
                                  .type = types[(size_t)(root + way) % COUNT_OF(types)],
                                  .reduction = (helio_reduction)(HELIO_REDUCTION_SUM + way / 2),
                                  .count = counts[n],
                                  .root = root,
                                  .in_place = way % 2});
      }
    }
  }
}

static void test_reduce_and_broadcast(void **state) {
  (void)state;
  start_devices();
  for_groups(1, every_root);
  for_groups(2, every_root);
  for_groups(5, every_root);
}

static void unequal_parts(group *g) {
  static const size_t parts[][MOST_RANKS] = {{1, 1, 1, 1, 1}, {0, 5, 0, 1023, 2}, {700, 0, 1, 0, 0}, {0, 0, 0, 0, 0}};
  for (size_t p = 0; p < COUNT_OF(parts); p++) {
    size_t count = 0;
    for (int i = 0; i < g->count; i++) count += parts[p][i];
    for (size_t t = 0; t < COUNT_OF(types); t++) {
      example e = {.kind = ALL_GATHER, .type = types[t], .count = count, .counts = parts[p], .in_place = t % 2};
      try_example(g, &e);
      e.kind = REDUCE_SCATTER;
      e.reduction = (helio_reduction)(HELIO_REDUCTION_SUM + t % 3);
      try_example(g, &e);
      e.in_place = !e.in_place;
      try_example(g, &e);
    }
  }
}

static void test_gather_and_scatter(void **state) {
  (void)state;
  start_devices();
  for_groups(1, unequal_parts);
  for_groups(3, unequal_parts);
  for_groups(5, unequal_parts);
}

/* ---- order ---- */

/* float32 sums of five ranks: rounding shows the order. */
static void the_same_again(group *g) {
  enum { COUNT = 1023, RUNS = 10 };
  static char first[COUNT * 4], again[COUNT * 4];
  example e = {.kind = ALL_REDUCE, .type = HELIO_FLOAT32, .reduction = HELIO_REDUCTION_SUM, .count = COUNT};
  for (int run = 0; run < RUNS; run++) {
    e.keep = run ? again : first;
    e.in_place = run % 2;
    try_example(g, &e);
    if (run) assert_memory_equal(first, again, sizeof first);
  }
}

static void test_runs_are_equal(void **state) {
  (void)state;
  start_devices();
  for_groups(5, the_same_again);
}

static void in_order(group *g) {
  static const size_t parts[] = {3, 0, 700, 1, 319};
  g->ordered = true;
  example e = {.kind = ALL_REDUCE, .type = HELIO_FLOAT32, .reduction = HELIO_REDUCTION_SUM, .count = 1023};
  for (int way = 0; way < 6; way++) {
    e.in_place = way % 2;
    e.kind = way < 2 ? ALL_REDUCE : way < 4 ? REDUCE : REDUCE_SCATTER;
    e.root = e.kind == REDUCE ? 2 : 0;
    e.counts = e.kind == REDUCE_SCATTER ? parts : NULL;
    try_example(g, &e);
  }
  e = (example){.kind = ALL_REDUCE, .type = HELIO_BFLOAT16, .reduction = HELIO_REDUCTION_SUM, .count = (1 << 19) + 1};
  try_example(g, &e);
}

/* Equal to the bit to the sum formed here in the order of ranks, and so to each other. */
static void test_ordered_mode(void **state) {
  (void)state;
  start_devices();
  for_groups(5, in_order);
}

/* ---- pieces, seeds and ways ---- */

/* Pieces of 64 bytes: many go round at once, in several rounds, the last ones short or empty. */
static void small_pieces(group *g) {
  static const size_t counts[] = {17, 1023, 6000}, parts[] = {1500, 3, 0, 700, 16};
  if (strcmp(g->choice.collective.name, "ring") != 0) return;
  for (size_t n = 0; n < COUNT_OF(counts); n++) {
    for (int in_place = 0; in_place < 2; in_place++) {
      example e = {.kind = ALL_REDUCE,
                   .type = HELIO_FLOAT32,
                   .reduction = HELIO_REDUCTION_SUM,
                   .count = counts[n],
                   .in_place = in_place};
      try_example(g, &e);
      e.kind = BROADCAST;
      e.root = g->count - 1;
      try_example(g, &e);
    }
  }
  example e = {.kind = ALL_GATHER, .type = HELIO_INT64, .counts = parts};
  for (int i = 0; i < g->count; i++) e.count += parts[i];
  try_example(g, &e);
}

static void test_small_pieces(void **state) {
  (void)state;
  setenv("HELIO_RING_CHUNK", "64", 1);
  start_devices();
  for_groups(2, small_pieces);
  for_groups(5, small_pieces);
}

static void a_bit_of_everything(group *g) {
  static const size_t five[] = {0, 500, 23, 499, 1}, three[] = {523, 0, 500};
  const size_t *parts = g->count == 5 ? five : three;
  for (int way = 0; way < 10; way++) {
    example e = {.kind = (kind)(way / 2),
                 .type = HELIO_FLOAT32,
                 .reduction = HELIO_REDUCTION_SUM,
                 .count = 1023,
                 .in_place = way % 2};
    if (e.kind >= ALL_GATHER) e.counts = parts;
    try_example(g, &e);
  }
}

static void test_a_bit_of_everything(void **state) {
  (void)state;
  start_devices();
  for_groups(3, a_bit_of_everything);
}

/* Other orders in which the device's streams run. */
static void test_other_seeds(void **state) {
  (void)state;
  if (!on_strict()) SKIP("only the strict device has an order that can be chosen");
  for (int seed = 2; seed < 8; seed++) {
    char text[12];
    snprintf(text, sizeof text, "%d", seed);
    assert_ok(helio_shutdown());
    setenv("HELIO_STRICT_SEED", text, 1);
    setenv("HELIO_RING_CHUNK", "256", 1);
    start_devices();
    for_groups(5, a_bit_of_everything);
  }
}

/* Devices that cannot reach each other: everything goes through the host. */
static void test_no_peers(void **state) {
  (void)state;
  if (!on_strict()) SKIP("only strict devices can be told not to reach each other");
  setenv("HELIO_STRICT_PEER", "0", 1);
  start_devices();
  for_groups(3, a_bit_of_everything);
}

/* Devices that cannot add: the host does it for them, and says so once. */
static void test_devices_without_kernels(void **state) {
  (void)state;
  if (!on_strict()) SKIP("only strict devices can be told to refuse an operation");
  setenv("HELIO_STRICT_REFUSE", "add,maximum", 1);
  start_devices();
  for_groups(3, a_bit_of_everything);
  assert_int_equal(lines_with("AddV2", "runs on"), 1);
}

/* ---- a collective that has only what is required, and sums float32 alone ---- */

static void as_little_as_possible(group *g) {
  helio_collective_table table = *g->choice.collective.table;
  table.reduce = table.all_gather = table.reduce_scatter = NULL;
  g->choice.collective.table = &table;
  g->choice.flags = 0;
  g->choice.types = HELIO_TYPE_BIT(HELIO_FLOAT32);
  all_reduce_in_every_way(g);
  every_root(g);
  unequal_parts(g);
  in_order(g);
}

static void test_defaults(void **state) {
  (void)state;
  if (on_vendor()) SKIP("the core's own part is the same on every device; emulated ones are slow");
  start_devices();
  group *g = group_new(OWN, 5, "reduce-to-one");
  assert_made(g);
  as_little_as_possible(g);
  free(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_all_reduce),         TEST(test_all_reduce_of_much),      TEST(test_reduce_and_broadcast),
      TEST(test_gather_and_scatter), TEST(test_runs_are_equal),          TEST(test_ordered_mode),
      TEST(test_small_pieces),       TEST(test_a_bit_of_everything),     TEST(test_other_seeds),
      TEST(test_no_peers),           TEST(test_devices_without_kernels), TEST(test_defaults),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
