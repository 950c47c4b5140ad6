/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of which not all replicas have the same: none on some, rows on one and the whole on another, several types.
 * With plain gradient descent at a rate of one a variable that starts from zero becomes minus the sum. */
#include "replica_devices.h"

enum { REPLICAS = 3, ROWS = 4, COLUMNS = 2 };

/* What a replica's loss has of the table: so many times the sum of all of it, and of each of these rows. */
typedef struct use {
  double whole;
  int count;
  int32_t rows[4];
} use;

typedef struct pupil {
  helio_variable *base, *table; /* each replica's loss has the sum of the base, times its number plus one */
  helio_variables variables;
  helio_variable *list[2];
  helio_optimizer *optimizer;
  const use *uses;
  bool apart; /* gradients and step in two calls */
} pupil;

static helio_tensor *number_like(helio_tensor *x, double number) {
  return helio_fill(HELIO_SCALAR, number, .type = helio_tensor_type(x));
}

static helio_tensor *used_table(const pupil *p, const use *u) {
  helio_tensor *sum = NULL;
  if (u->count) {
    helio_tensor *rows = helio_constant(u->rows, HELIO_SHAPE(u->count), .type = HELIO_INT32);
    sum = helio_sum(helio_gather_rows(helio_value(p->table), rows));
  }
  if (u->whole == 0) return sum;
  helio_tensor *whole = helio_sum(helio_value(p->table));
  whole = helio_mul(whole, number_like(whole, u->whole));
  return sum ? helio_add(sum, whole) : whole;
}

static helio_status learn(void *argument, const helio_element *inputs, helio_element *outputs) {
  pupil *p = argument;
  int id = helio_replica_id();
  helio_tensor *loss = NULL;
  helio_tape *tape = helio_tape_new();
  (void)inputs, (void)outputs;
  HELIO_TAPE(tape) {
    loss = helio_sum(helio_value(p->base));
    loss = helio_mul(loss, number_like(loss, id + 1));
    helio_tensor *more = used_table(p, &p->uses[id]);
    if (more) loss = helio_add(loss, helio_cast(more, helio_tensor_type(loss)));
  }
  if (!p->apart) return helio_minimize(p->optimizer, tape, loss, &p->variables);
  return helio_apply_gradients(p->optimizer, helio_gradient(tape, loss, &p->variables), &p->variables);
}

static void make_pupil(pupil *p, helio_type base, helio_type table) {
  const helio_initializer zeros = {.kind = HELIO_ZEROS};
  p->base = helio_variable(.shape = HELIO_SHAPE(3), .initializer = zeros, .type = base, .name = "base");
  p->table = helio_variable(.shape = HELIO_SHAPE(ROWS, COLUMNS), .initializer = zeros, .type = table, .name = "table");
  p->list[0] = p->base;
  p->list[1] = p->table;
  p->variables = (helio_variables){2, p->list};
  p->optimizer = helio_sgd(1.0);
  assert_made(p->table);
  assert_made(p->optimizer);
}

static void assert_copies(helio_variable *variable, const double *expected, int count) {
  assert_int_equal(helio_variable_copies(variable), REPLICAS);
  for (int i = 0; i < REPLICAS; i++) {
    double found[ROWS * COLUMNS];
    helio_tensor *copy = helio_cast(helio_variable_copy(variable, i), HELIO_FLOAT64);
    assert_ok(helio_tensor_read(copy, found, (size_t)count * sizeof found[0]));
    for (int k = 0; k < count; k++) {
      if (found[k] != expected[k]) {
        fail_msg("%s: element %d of copy %d is %g, not %g", helio_variable_name(variable), k, i, found[k], expected[k]);
      }
    }
  }
}

static void check_uses(const use *uses, helio_type base, helio_type table, bool apart) {
  double expected[ROWS * COLUMNS] = {0};
  for (int i = 0; i < REPLICAS; i++) {
    for (int k = 0; k < ROWS * COLUMNS; k++) expected[k] -= uses[i].whole;
    for (int r = 0; r < uses[i].count; r++) {
      for (int c = 0; c < COLUMNS; c++) expected[uses[i].rows[r] * COLUMNS + c] -= 1;
    }
  }
  HELIO_POOL {
    pupil p = {.uses = uses, .apart = apart};
    helio_strategy *strategy = mirrored_over(REPLICAS, NULL, NULL);
    assert_made(strategy);
    HELIO_SCOPE(strategy) make_pupil(&p, base, table);
    assert_made(helio_run(strategy, learn, &p));
    assert_copies(p.base, (double[]){-6, -6, -6}, 3);
    assert_copies(p.table, expected, ROWS * COLUMNS);
  }
}

static void check_everywhere(const use *uses) {
  const helio_type types[] = {HELIO_FLOAT32, HELIO_FLOAT64};
  start_replica_devices();
  for (int i = 0; i < 8; i++) check_uses(uses, types[i & 1], types[i >> 1 & 1], i >> 2 & 1);
}

static void what_a_replica_lacks_counts_as_zeros(void **state) {
  (void)state;
  check_everywhere((const use[]){{.whole = 0}, {.whole = 3}, {.whole = 0}});
  check_everywhere((const use[]){{.whole = 2}, {.whole = 0}, {.whole = 5}});
}

static void rows_that_a_replica_lacks_are_none(void **state) {
  (void)state;
  check_everywhere((const use[]){{.whole = 0}, {.count = 3, .rows = {1, 1, 2}}, {.whole = 0}});
  check_everywhere((const use[]){{.count = 1, .rows = {3}}, {.whole = 0}, {.count = 4, .rows = {3, 0, 3, 0}}});
}

static void rows_of_all_replicas_are_added(void **state) {
  (void)state;
  check_everywhere(
      (const use[]){{.count = 2, .rows = {0, 1}}, {.count = 1, .rows = {1}}, {.count = 3, .rows = {3, 1, 1}}});
}

static void rows_and_wholes_are_added(void **state) {
  (void)state;
  check_everywhere((const use[]){{.count = 2, .rows = {0, 1}}, {.whole = 2}, {.whole = 0}});
  check_everywhere((const use[]){{.whole = 2}, {.count = 2, .rows = {2, 2}}, {.count = 1, .rows = {0}}});
  check_everywhere((const use[]){{.whole = 1, .count = 1, .rows = {1}}, {.count = 2, .rows = {2, 2}}, {.whole = 4}});
}

/* As on one device: it stays as it is, and that is said once. */
static void what_all_replicas_lack_stays(void **state) {
  (void)state;
  check_everywhere((const use[]){{.whole = 0}, {.whole = 0}, {.whole = 0}});
  assert_logged("Gradients do not exist for variables table", "when minimizing the loss");
}

/* One replica asks for a step of fewer variables, or fails on its way. */
static helio_status learn_unlike(void *argument, const helio_element *inputs, helio_element *outputs) {
  pupil *p = argument;
  helio_variables fewer = {1, p->list};
  helio_tensor *loss = NULL;
  helio_tape *tape = helio_tape_new();
  (void)inputs, (void)outputs;
  HELIO_TAPE(tape) loss = helio_sum(helio_value(p->base));
  return helio_minimize(p->optimizer, tape, loss, helio_replica_id() == 1 ? &fewer : &p->variables);
}

static helio_status fail_on_one(void *argument, const helio_element *inputs, helio_element *outputs) {
  return helio_replica_id() == 1 ? HELIO_BAD_DATA : learn(argument, inputs, outputs);
}

static void a_step_that_fails_on_one_replica_changes_nothing(void **state) {
  (void)state;
  start_replica_devices();
  pupil p = {.uses = (const use[]){{.whole = 1}, {.whole = 0}, {.whole = 0}}};
  helio_strategy *strategy = mirrored_over(REPLICAS, NULL, NULL);
  assert_made(strategy);
  HELIO_SCOPE(strategy) make_pupil(&p, HELIO_FLOAT32, HELIO_FLOAT32);
  for (int i = 0; i < 2; i++) {
    assert_null(helio_run(strategy, fail_on_one, &p));
    expect_error(HELIO_BAD_DATA, "replica 1: the step returned HELIO_BAD_DATA");
    assert_copies(p.base, (double[]){0, 0, 0}, 3);
    assert_int_equal(helio_optimizer_iterations(p.optimizer), 0);
  }
  assert_made(helio_run(strategy, learn, &p));
  assert_copies(p.base, (double[]){-6, -6, -6}, 3);
  assert_int_equal(helio_optimizer_iterations(p.optimizer), 1);
}

static void replicas_may_ask_for_different_variables(void **state) {
  (void)state;
  start_replica_devices();
  pupil p = {.uses = NULL};
  helio_strategy *strategy = mirrored_over(REPLICAS, NULL, NULL);
  assert_made(strategy);
  HELIO_SCOPE(strategy) make_pupil(&p, HELIO_FLOAT32, HELIO_FLOAT32);
  assert_ok(helio_optimizer_build(p.optimizer, &p.variables));
  assert_made(helio_run(strategy, learn_unlike, &p));
  assert_copies(p.base, (double[]){-3, -3, -3}, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_a_replica_lacks_counts_as_zeros),
      TEST(rows_that_a_replica_lacks_are_none),
      TEST(rows_of_all_replicas_are_added),
      TEST(rows_and_wholes_are_added),
      TEST(what_all_replicas_lack_stays),
      TEST(a_step_that_fails_on_one_replica_changes_nothing),
      TEST(replicas_may_ask_for_different_variables),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
