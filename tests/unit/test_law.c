/* SPDX-License-Identifier: Apache-2.0 */
/* The law of mirrored training: with any number of replicas and any split of the batch ten steps give what plain code
 * gives on one device. make check takes every number of replicas, collective, batch size and split, each with models,
 * ways to build them and optimizers that are drawn; HELIO_TEST_LAW=all takes everything with everything. Emulated GPUs
 * are slow: there make check takes some of these, and the collective that is made for them. */
#include "law.h"

/* In f32 rounding moves weights, and a moved weight may tip a prediction (DESIGN: "Numbers"). */
static const tolerances in_f64 = {.loss = 1e-9, .gradient = 1e-9, .weight = 1e-9, .mean = 1e-9, .accuracy = 0};
static const tolerances in_f32 = {.loss = 1e-5, .gradient = 1e-5, .weight = 1e-2, .mean = 1e-5, .accuracy = 0.02};

static const int batch_sizes[] = {1, 2, 3, 7, 10, 12};
static const int replica_counts[] = {1, 2, 3, 5};

/* ---- what one device gives, trained once for each ---- */

enum { BATCH_SIZES = COUNT_OF(batch_sizes) };

static record *references[2][NETS][RULES][BATCH_SIZES];

static const record *reference_of(const lesson *l, int batch) {
  record **known = &references[l->type == HELIO_FLOAT64][l->net][l->rule][batch];
  if (!*known) {
    *known = malloc(sizeof **known);
    assert_non_null(*known);
    train_plainly(l, *known);
  }
  return *known;
}

static void forget_references(void) {
  record **all = &references[0][0][0][0];
  for (size_t i = 0; i < sizeof references / sizeof *all; i++) {
    free(all[i]);
    all[i] = NULL;
  }
}

/* ---- the law ---- */

static bool is_long(void) {
  const char *asked = getenv("HELIO_TEST_LAW");
  return asked && strcmp(asked, "all") == 0;
}

static bool is_brief(void) {
  return on_vendor() && !is_long();
}

static void check_lesson(lesson *l, int batch) {
  record found;
  l->batch = batch_sizes[batch];
  if (!train_by_replicas(l, &found)) SKIP("%s", helio_error_message());
  assert_law(l, &found, reference_of(l, batch), l->type == HELIO_FLOAT64 ? &in_f64 : &in_f32);
}

/* Some of all, or all. */
static void check_with_everything(lesson *l, int batch, uint64_t *seed) {
  enum { ALL = NETS * WAYS * RULES * 2, SOME = SANITIZED ? 1 : 4 };
  for (int k = 0; k < (is_long() ? ALL : is_brief() ? 1 : SOME); k++) {
    int i = is_long() ? k : (int)(next_random(seed) % ALL);
    l->net = (net_kind)(i % NETS);
    l->way = (way)(i / NETS % WAYS);
    l->rule = (rule)(i / NETS / WAYS % RULES);
    l->split = i / NETS / WAYS / RULES ? HELIO_SPLIT_TENSORFLOW : HELIO_SPLIT_BALANCED;
    check_lesson(l, batch);
  }
}

typedef struct subject {
  const char *collective; /* NULL: a single replica, which needs none */
  helio_type type;
  place place;
  char name[80];
} subject;

static void the_law_holds(void **state) {
  const subject *s = *state;
  lesson l = {.type = s->type, .collective = s->collective, .place = s->place};
  uint64_t seed = 1;
  start_replica_devices();
  for (size_t i = 0; i < COUNT_OF(replica_counts); i++) {
    l.replicas = replica_counts[i];
    if ((l.replicas == 1) != (s->collective == NULL)) continue;
    for (int batch = 0; batch < BATCH_SIZES; batch++) {
      if (is_brief() && batch % 3 != (int)i % 3) continue;
      for (int weighted = 0; weighted < (l.replicas > 1 ? 2 : 1); weighted++) {
        l.weighted = weighted;
        if (is_brief() && weighted != batch % 2 && l.replicas > 1) continue;
        check_with_everything(&l, batch, &seed);
      }
    }
  }
}

/* ---- to the bit ---- */

static const lesson exact_lessons[] = {
    {IMAGES, SEQUENTIAL, ADAM, HELIO_FLOAT32, 7, 3, false, 0, NULL, MIRRORED},
    {IMAGES, LATE, MOMENTUM, HELIO_FLOAT64, 12, 5, false, 0, NULL, MIRRORED},
    {WORDS, OWN, ADAM, HELIO_FLOAT32, 10, 3, true, 0, NULL, MIRRORED},
    {WORDS, FUNCTIONAL, ACCUMULATED, HELIO_FLOAT32, 7, 5, false, HELIO_SPLIT_TENSORFLOW, NULL, MIRRORED},
    {REGULARIZED, OWN, CLIPPED, HELIO_FLOAT32, 3, 5, false, 0, NULL, MIRRORED},
    {REGULARIZED, SEQUENTIAL, CLIPPED_EACH, HELIO_FLOAT32, 12, 2, true, 0, NULL, MIRRORED},
};

static void assert_same_record(const lesson *l, const record *found, const record *expected) {
  if (memcmp(found, expected, sizeof *found) != 0) fail_msg("%s: not equal to the bit", lesson_text(l));
}

static void two_trainings_are_equal_to_the_bit(void **state) {
  const subject *s = *state;
  record first, second;
  start_replica_devices();
  for (size_t i = 0; i < COUNT_OF(exact_lessons); i += is_brief() ? 2 : 1) {
    lesson l = exact_lessons[i];
    l.collective = s->collective;
    if (!train_by_replicas(&l, &first)) SKIP("%s", helio_error_message());
    assert_true(train_by_replicas(&l, &second));
    assert_same_record(&l, &second, &first);
  }
}

static void ordered_sums_are_those_of_every_collective(void **state) {
  const subject *s = *state;
  record expected, found;
  setenv("HELIO_ORDERED_REDUCE", "1", 1);
  start_replica_devices();
  for (size_t i = 0; i < COUNT_OF(exact_lessons); i += is_brief() ? 2 : 1) {
    lesson l = exact_lessons[i];
    l.collective = s->collective;
    if (!train_by_replicas(&l, &found)) SKIP("%s", helio_error_message());
    l.collective = "reduce-to-one";
    assert_true(train_by_replicas(&l, &expected));
    assert_same_record(&l, &found, &expected);
  }
}

/* ---- buckets ---- */

/* A variable each, some together, all together. */
static void buckets_may_be_of_any_size(void **state) {
  static const char *const sizes[] = {"1", "300", "1K", "1G"};
  const subject *s = *state;
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    setenv("HELIO_BUCKET_BYTES", sizes[i], 1);
    assert_ok(helio_shutdown());
    start_replica_devices();
    for (size_t k = is_brief() ? i : 0; k < COUNT_OF(exact_lessons); k += is_brief() ? 4 : 1) {
      record expected, found;
      lesson l = exact_lessons[k];
      l.collective = s->collective;
      if (!train_by_replicas(&l, &found)) SKIP("%s", helio_error_message());
      train_plainly(&l, &expected);
      assert_law(&l, &found, &expected, l.type == HELIO_FLOAT64 ? &in_f64 : &in_f32);
    }
  }
}

/* ---- variables that come into being at the first call, in all replicas at once ---- */

static void assert_mirrored(const helio_variables *variables, int copies) {
  assert_made(variables);
  for (int i = 0; i < variables->count; i++) {
    assert_int_equal(helio_variable_copies(variables->at[i]), copies);
  }
}

static void variables_of_the_first_call_are_mirrored(void **state) {
  (void)state;
  const way ways[] = {OWN, LATE};
  start_replica_devices();
  for (int i = 0; i < 20; i++) {
    HELIO_POOL {
      lesson l = {(net_kind)(i % NETS), ways[i % 2], ADAM, HELIO_FLOAT32, 7, 5, false, 0, NULL, MIRRORED};
      record r = {0};
      trainer t;
      helio_strategy *strategy = mirrored_over(l.replicas, NULL, NULL);
      assert_made(strategy);
      HELIO_SCOPE(strategy) make_trainer(&t, &l, l.way);
      step_by_replicas(strategy, &t, helio_iterate_distributed(helio_distribute(strategy, make_samples(&l))), &r);
      assert_mirrored(helio_weights(t.net.model), l.replicas);
      assert_mirrored(helio_optimizer_variables(t.optimizer), l.replicas);
      assert_mirrored(helio_metric_variables(t.mean), l.replicas);
      assert_int_equal(helio_optimizer_variables(t.optimizer)->count, 2 * r.variables);
      assert_int_equal(helio_optimizer_iterations(t.optimizer), 1);
      note_weights(&r, &t);
      helio_release(t.net.model);
    }
  }
}

/* ---- all that there is ---- */

enum { MOST_COLLECTIVES = 8, MOST_TESTS = 64 };

typedef struct known_collective {
  char name[64];
  bool serves; /* devices of the variant's kind */
} known_collective;

static known_collective collectives[MOST_COLLECTIVES];
static int collective_count;

static void add_collective(const char *name) {
  known_collective *c = &collectives[collective_count++];
  snprintf(c->name, sizeof c->name, "%s", name);
  HELIO_POOL c->serves = mirrored_over(2, NULL, name) != NULL;
  helio_error_take(NULL);
}

/* The core's own, and what was found. */
static void list_collectives(void) {
  int count;
  start_replica_devices();
  const helio_plugin_report *const *plugins = helio_plugins(&count);
  add_collective("reduce-to-one");
  for (int i = 0; i < count && collective_count < MOST_COLLECTIVES; i++) {
    if (!plugins[i]->is_collective || plugins[i]->status != HELIO_PLUGIN_USABLE) continue;
    add_collective(plugins[i]->name);
  }
  helio_shutdown();
}

static struct CMUnitTest tests[MOST_TESTS];
static subject subjects[MOST_TESTS];
static size_t test_count;

static int end_test(void **state) {
  forget_references();
  return tear_down(state);
}

static void add_test(const char *name, CMUnitTestFunction function, subject about) {
  subject *s = &subjects[test_count];
  *s = about;
  snprintf(s->name, sizeof s->name, "%s%s%s%s%s", name, s->type ? "_in_" : "", s->type ? helio_type_name(s->type) : "",
           s->collective ? "_by_" : "", s->collective ? s->collective : "");
  tests[test_count++] = (struct CMUnitTest){s->name, function, set_up, end_test, s};
}

/* Of one that does not serve these devices the first is enough, which says why. */
static void add_tests_of(const known_collective *c) {
  subject s = {.collective = c->name};
  subject wide = {.collective = c->name, .type = HELIO_FLOAT64}, mixed = wide;
  subject narrow = {.collective = c->name, .type = HELIO_FLOAT32};
  mixed.place = MIXED;
  add_test("the_law_holds", the_law_holds, wide);
  if (!c->serves) return;
  add_test("the_law_holds", the_law_holds, narrow);
  if (is_brief() && strcmp(c->name, "nccl") != 0 && strcmp(c->name, "rccl") != 0) return;
  if (on_strict()) add_test("the_law_holds_on_mixed_devices", the_law_holds, mixed);
  add_test("two_trainings_are_equal_to_the_bit", two_trainings_are_equal_to_the_bit, s);
  add_test("buckets_may_be_of_any_size", buckets_may_be_of_any_size, s);
  if (strcmp(c->name, "reduce-to-one") == 0) return; /* with which the others are compared */
  add_test("ordered_sums_are_equal_to_the_bit", ordered_sums_are_those_of_every_collective, s);
}

int main(void) {
  remember_environment();
  if (on_vendor()) given_arena_debug[0] = 0; /* a mapping for every block would be too many for a process */
  restore_environment();
  capture_log();
  list_collectives();
  for (int i = 0; i < 2; i++) {
    helio_type type = i ? HELIO_FLOAT32 : HELIO_FLOAT64;
    add_test("the_law_holds_for_one_replica", the_law_holds, (subject){.type = type});
    add_test("the_law_holds_for_one_device", the_law_holds, (subject){.type = type, .place = ONE_DEVICE});
  }
  for (int i = 0; i < collective_count; i++) add_tests_of(&collectives[i]);
  add_test("variables_of_the_first_call_are_mirrored", variables_of_the_first_call_are_mirrored, (subject){.type = 0});
  return _cmocka_run_group_tests("tests", tests, test_count, NULL, NULL);
}
