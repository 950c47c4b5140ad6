/* SPDX-License-Identifier: Apache-2.0 */
/* Steps whose gradients are not those of the step before. Where devices are asynchronous the sums of a step begin by
 * what the step before had; nothing of that may be seen. */
#include <math.h>

#include "replica_devices.h"

enum { REPLICAS = 3, ROWS = 6, COLUMNS = 2, MOST_NUMBERS = 400 };

/* A replica that waits in vain shall not do so for long. */
static void start(const char *bucket_bytes) {
  setenv("HELIO_TIMEOUT", "20", 1);
  setenv("HELIO_BUCKET_BYTES", bucket_bytes, 1);
  start_replica_devices();
}

static helio_strategy *make_strategy(void) {
  helio_strategy *strategy = mirrored_over(REPLICAS, NULL, NULL);
  assert_made(strategy);
  return strategy;
}

static helio_variable *zeros(const char *name, helio_shape shape) {
  helio_variable *made =
      helio_variable(.shape = shape, .initializer = {.kind = HELIO_ZEROS}, .type = HELIO_FLOAT64, .name = name);
  assert_made(made);
  return made;
}

static int read_copy(helio_variable *variable, int copy, double *numbers) {
  helio_tensor *tensor =
      helio_variable_copies(variable) > 1 ? helio_variable_copy(variable, copy) : helio_value(variable);
  assert_made(tensor);
  int count = (int)helio_tensor_elements(tensor);
  assert_true(count <= MOST_NUMBERS);
  assert_ok(helio_tensor_read(tensor, numbers, (size_t)count * sizeof numbers[0]));
  return count;
}

/* Every element of every copy. */
static void assert_all(helio_variable *variable, double expected) {
  double numbers[MOST_NUMBERS];
  for (int i = 0; i < REPLICAS; i++) {
    int count = read_copy(variable, i, numbers);
    for (int k = 0; k < count; k++) {
      if (numbers[k] == expected) continue;
      fail_msg("%s: element %d of copy %d is %g, not %g", helio_variable_name(variable), k, i, numbers[k], expected);
    }
  }
}

/* ---- a step: the loss is the sum of some variables ---- */

typedef struct pupil {
  helio_variable *list[3];
  helio_variables variables;
  helio_optimizer *optimizer;
  unsigned uses[REPLICAS]; /* by replica: a bit for each variable that its loss has */
  bool apart;              /* gradients and step in two calls */
} pupil;

static void make_pupil(pupil *p, helio_optimizer *optimizer, int64_t size) {
  *p = (pupil){.optimizer = optimizer};
  p->list[0] = zeros("first", HELIO_SHAPE(size, 2));
  p->list[1] = zeros("second", HELIO_SHAPE(size + 1));
  p->list[2] = zeros("third", HELIO_SHAPE(2, size + 2));
  p->variables = (helio_variables){3, p->list};
  assert_made(optimizer);
}

static helio_status take_step(pupil *p, helio_tape *tape, helio_tensor *loss) {
  if (!p->apart) return helio_minimize(p->optimizer, tape, loss, &p->variables);
  return helio_apply_gradients(p->optimizer, helio_gradient(tape, loss, &p->variables), &p->variables);
}

static helio_status learn(void *argument, const helio_element *inputs, helio_element *outputs) {
  pupil *p = argument;
  int id = helio_replica_id(); /* −1 while an error is pending */
  unsigned uses = id >= 0 ? p->uses[id] : 0;
  helio_tensor *loss = NULL;
  helio_tape *tape = helio_tape_new();
  (void)inputs, (void)outputs;
  HELIO_TAPE(tape) {
    for (int i = 0; i < p->variables.count; i++) {
      helio_tensor *sum = uses >> i & 1 ? helio_sum(helio_value(p->list[i])) : NULL;
      if (sum) loss = loss ? helio_add(loss, sum) : sum;
    }
  }
  return take_step(p, tape, loss);
}

static void run_step(helio_strategy *strategy, pupil *p, unsigned first, unsigned second, unsigned third) {
  unsigned uses[REPLICAS] = {first, second, third};
  memcpy(p->uses, uses, sizeof uses);
  assert_made(helio_run(strategy, learn, p));
}

/* ---- there in one step and nowhere in the next ---- */

typedef struct numbers {
  int count;
  double at[3 * MOST_NUMBERS];
} numbers;

/* A variable and what the optimizer keeps for it, on one replica. */
static void note(numbers *n, const pupil *p, int variable, int copy) {
  const helio_variables *slots = helio_optimizer_variables(p->optimizer);
  n->count = read_copy(p->list[variable], copy, n->at);
  for (int i = 0; i < slots->count; i++) {
    if (strstr(helio_variable_name(slots->at[i]), helio_variable_name(p->list[variable]))) {
      n->count += read_copy(slots->at[i], copy, n->at + n->count);
    }
  }
}

static void check_comes_and_goes(bool apart) {
  static const unsigned uses[][REPLICAS] = {{7, 7, 7}, {5, 5, 5}, {5, 7, 5}, {5, 5, 5}, {5, 5, 5},
                                            {7, 7, 7}, {2, 2, 2}, {2, 3, 2}, {7, 7, 7}, {4, 1, 2}};
  pupil p;
  helio_strategy *strategy = make_strategy();
  HELIO_SCOPE(strategy) make_pupil(&p, helio_adam(0.1), 5);
  p.apart = apart;
  assert_ok(helio_optimizer_build(p.optimizer, &p.variables));
  for (size_t step = 0; step < COUNT_OF(uses); step++) {
    numbers before[3], after;
    for (int i = 0; i < 3; i++) note(&before[i], &p, i, 1);
    run_step(strategy, &p, uses[step][0], uses[step][1], uses[step][2]);
    for (int i = 0; i < 3; i++) {
      bool used = (uses[step][0] | uses[step][1] | uses[step][2]) >> i & 1;
      note(&after, &p, i, 1);
      assert_int_equal(after.count, before[i].count);
      assert_int_equal(memcmp(after.at, before[i].at, (size_t)after.count * sizeof after.at[0]) != 0, used);
    }
  }
}

static void a_gradient_that_nobody_has_moves_nothing(void **state) {
  (void)state;
  start("200");
  for (int apart = 0; apart < 2; apart++) HELIO_POOL check_comes_and_goes(apart);
}

/* ---- rows ---- */

/* Whole: the sum of all of the table is in the loss; else of these rows. */
typedef struct use {
  bool whole;
  int count;
  int32_t rows[4];
} use;

/* Rows of one index are squared one by one, of the whole their sum is: that must not stay from an earlier step. */
static const use uses_by_step[][REPLICAS] = {
    {{.count = 2, .rows = {1, 1}}, {.count = 1, .rows = {1}}, {.count = 1, .rows = {4}}},
    {{.whole = true}, {.count = 2, .rows = {2, 2}}, {.count = 0}},
    {{.count = 3, .rows = {1, 1, 2}}, {.count = 2, .rows = {1, 5}}, {.count = 1, .rows = {0}}},
    {{.count = 0}, {.count = 2, .rows = {3, 3}}, {.count = 1, .rows = {3}}},
    {{.whole = true}, {.whole = true}, {.whole = true}},
    {{.count = 0}, {.count = 0}, {.count = 0}},
    {{.count = 2, .rows = {0, 0}}, {.count = 1, .rows = {0}}, {.count = 2, .rows = {5, 0}}},
};

typedef struct reader {
  pupil pupil; /* its first variable is a table */
  const use *uses;
} reader;

static helio_tensor *add(helio_tensor *a, helio_tensor *b) {
  return a && b ? helio_add(a, b) : a ? a : b;
}

/* What replicas from `first` to `last` have of the table, as one. */
static helio_tensor *used_table(const reader *r, int first, int last) {
  int32_t rows[4 * REPLICAS];
  int count = 0;
  helio_tensor *sum = NULL;
  for (int i = first; i <= last; i++) {
    for (int k = 0; k < r->uses[i].count; k++) rows[count++] = r->uses[i].rows[k];
    if (r->uses[i].whole) sum = add(sum, helio_sum(helio_value(r->pupil.list[0])));
  }
  if (count == 0) return sum;
  helio_tensor *indices = helio_constant(rows, HELIO_SHAPE(count), .type = HELIO_INT32);
  helio_tensor *read = helio_gather_rows(helio_value(r->pupil.list[0]), indices);
  return add(helio_sum(helio_tanh(helio_add(read, helio_fill(HELIO_SCALAR, 0.3, .type = HELIO_FLOAT64)))), sum);
}

/* Every replica has the other two variables, which are dense. */
static helio_tensor *loss_of(const reader *r, int first, int last) {
  helio_tensor *loss = used_table(r, first, last);
  for (int i = first; i <= last; i++) {
    for (int k = 1; k < 3; k++) {
      helio_tensor *value = helio_value(r->pupil.list[k]);
      helio_tensor *away = helio_sub(value, helio_fill(HELIO_SCALAR, i + k, .type = HELIO_FLOAT64));
      loss = add(loss, helio_sum(helio_square(away)));
    }
  }
  return loss;
}

static helio_status read_rows(void *argument, const helio_element *inputs, helio_element *outputs) {
  reader *r = argument;
  int id = helio_replica_id();
  helio_tensor *loss = NULL;
  helio_tape *tape = helio_tape_new();
  (void)inputs, (void)outputs;
  HELIO_TAPE(tape) loss = loss_of(r, id, id);
  return take_step(&r->pupil, tape, loss);
}

static void read_alone(reader *r) {
  helio_tensor *loss = NULL;
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) loss = loss_of(r, 0, REPLICAS - 1);
  assert_ok(take_step(&r->pupil, tape, loss));
}

static void make_reader(reader *r) {
  make_pupil(&r->pupil, helio_adam(0.1), ROWS);
}

static void assert_like(const reader *found, const reader *expected, size_t step) {
  double a[MOST_NUMBERS], b[MOST_NUMBERS];
  for (int i = 0; i < 3; i++) {
    int count = read_copy(expected->pupil.list[i], 0, b);
    for (int copy = 0; copy < REPLICAS; copy++) {
      assert_int_equal(read_copy(found->pupil.list[i], copy, a), count);
      for (int k = 0; k < count; k++) {
        if (fabs(a[k] - b[k]) <= 1e-12) continue;
        fail_msg("step %zu: element %d of copy %d of %s is %.17g, not %.17g", step, k, copy,
                 helio_variable_name(found->pupil.list[i]), a[k], b[k]);
      }
    }
  }
}

static void rows_and_wholes_may_change_from_step_to_step(void **state) {
  (void)state;
  start("200");
  for (int apart = 0; apart < 2; apart++) {
    HELIO_POOL {
      reader together, alone;
      helio_strategy *strategy = make_strategy();
      HELIO_SCOPE(strategy) make_reader(&together);
      make_reader(&alone);
      together.pupil.apart = apart;
      for (size_t step = 0; step < COUNT_OF(uses_by_step); step++) {
        together.uses = alone.uses = uses_by_step[step];
        assert_made(helio_run(strategy, read_rows, &together));
        read_alone(&alone);
        assert_like(&together, &alone, step);
      }
    }
  }
}

/* ---- several optimizers ---- */

static void two_optimizers_have_lists_of_one_length(void **state) {
  (void)state;
  start("200");
  static const int turns[] = {0, 0, 1, 1, 0, 1, 0, 0, 1};
  pupil pupils[2];
  int steps[2] = {0, 0};
  helio_strategy *strategy = make_strategy();
  HELIO_SCOPE(strategy) {
    make_pupil(&pupils[0], helio_sgd(1.0), 3);
    make_pupil(&pupils[1], helio_sgd(1.0), 60);
  }
  for (size_t i = 0; i < COUNT_OF(turns); i++) {
    run_step(strategy, &pupils[turns[i]], 7, 7, 7);
    steps[turns[i]]++;
    for (int k = 0; k < 6; k++) assert_all(pupils[k / 3].list[k % 3], -REPLICAS * steps[k / 3]);
  }
}

/* All are made and go on one thread, so that sooner or later one stands where another stood, whose variables had other
 * shapes. */
static void an_optimizer_takes_the_place_of_another(void **state) {
  (void)state;
  start("1M");
  helio_strategy *strategy = make_strategy();
  for (int i = 0; i < 60; i++) {
    HELIO_POOL {
      pupil p;
      HELIO_SCOPE(strategy) make_pupil(&p, helio_sgd(1.0), 1 + i * 7 % 60);
      assert_ok(helio_optimizer_build(p.optimizer, &p.variables));
      for (int step = 1; step < 3; step++) {
        run_step(strategy, &p, 7, 7, 7);
        for (int k = 0; k < 3; k++) assert_all(p.list[k], -REPLICAS * step);
      }
    }
  }
}

/* ---- where the step is ---- */

static helio_status learn_elsewhere(void *argument, const helio_element *inputs, helio_element *outputs) {
  helio_status status = HELIO_OK;
  HELIO_DEVICE("cpu:4") status = learn(argument, inputs, outputs);
  return status;
}

static void a_step_may_be_taken_inside_another_device(void **state) {
  (void)state;
  static const unsigned uses[][REPLICAS] = {{7, 7, 7}, {7, 7, 7}, {1, 2, 4}, {1, 2, 4}};
  double expected[3] = {0, 0, 0};
  pupil p;
  start("1M");
  helio_strategy *strategy = make_strategy();
  HELIO_SCOPE(strategy) make_pupil(&p, helio_sgd(1.0), 4);
  for (size_t step = 0; step < COUNT_OF(uses); step++) {
    memcpy(p.uses, uses[step], sizeof p.uses);
    assert_made(helio_run(strategy, learn_elsewhere, &p));
    for (int i = 0; i < 9; i++) expected[i / 3] -= uses[step][i % 3] >> (i / 3) & 1;
    for (int i = 0; i < 3; i++) assert_all(p.list[i], expected[i]);
  }
}

/* ---- a variable that stands twice ---- */

static void a_variable_stands_twice(void **state) {
  (void)state;
  start("200");
  helio_strategy *strategy = make_strategy();
  for (int alone = 0; alone < 2; alone++) {
    pupil p;
    if (alone) make_pupil(&p, helio_sgd(1.0), 3);
    HELIO_SCOPE(strategy) if (!alone) make_pupil(&p, helio_sgd(1.0), 3);
    assert_ok(helio_optimizer_build(p.optimizer, &p.variables));
    p.list[2] = p.list[1];
    for (int i = 0; i < REPLICAS; i++) p.uses[i] = 7;
    if (alone) {
      learn(&p, NULL, NULL);
    } else {
      assert_null(helio_run(strategy, learn, &p));
    }
    expect_error(HELIO_INVALID_ARGUMENT, "second stands twice in the list of variables");
    assert_int_equal(helio_optimizer_iterations(p.optimizer), 0);
  }
}

/* ---- replicas that part ---- */

/* What replica 1 does where the others take their step. */
typedef enum lapse { FAILS_BEFORE, GIVES_UP, TAPE_IS_USED, STAYS_AWAY, TAKES_ANOTHER, MEETS, SUMS, LAPSES } lapse;

typedef struct class {
  pupil pupil, other;
  lapse lapse;
} class;

static helio_values *join(helio_strategy *strategy, void *argument, helio_values *values) {
  (void)strategy, (void)argument;
  return values;
}

static helio_status lapse_of(class *c) {
  helio_tape *tape = helio_tape_new();
  helio_tensor *one = helio_fill(HELIO_SCALAR, 1);
  switch (c->lapse) {
  case FAILS_BEFORE:
    helio_matmul(one, one);
    return learn(&c->pupil, NULL, NULL);
  case GIVES_UP:
    return HELIO_BAD_DATA;
  case TAPE_IS_USED:
    helio_gradient(tape, one, &c->pupil.variables);
    return helio_minimize(c->pupil.optimizer, tape, one, &c->pupil.variables);
  case TAKES_ANOTHER:
    return learn(&c->other, NULL, NULL);
  case MEETS:
    return helio_merge_call(join, NULL, &(helio_element){.count = 1, .part = {one}}, NULL);
  case SUMS:
    helio_all_reduce(HELIO_SUM, one);
    return helio_error_pending();
  default:
    return HELIO_OK;
  }
}

static helio_status part(void *argument, const helio_element *inputs, helio_element *outputs) {
  class *c = argument;
  return helio_replica_id() == 1 ? lapse_of(c) : learn(&c->pupil, inputs, outputs);
}

static void check_parting(class *c, helio_strategy *strategy, lapse how, int steps) {
  helio_error error;
  c->lapse = how;
  assert_null(helio_run(strategy, part, c));
  helio_status status = helio_error_take(&error);
  if (status == HELIO_TIMED_OUT || status == HELIO_ABORTED) fail_msg("lapse %d: %s", (int)how, error.message);
  if (how == GIVES_UP) assert_int_equal(status, HELIO_BAD_DATA);
  if (how == STAYS_AWAY || how == MEETS || how == SUMS) assert_int_equal(status, HELIO_WRONG_STATE);
  for (int i = 0; i < 3; i++) assert_all(c->pupil.list[i], -REPLICAS * steps);
  assert_int_equal(helio_optimizer_iterations(c->pupil.optimizer), steps);
}

static void replicas_that_part_do_not_wait_for_each_other(void **state) {
  (void)state;
  start("200");
  for (int how = 0; how < LAPSES; how++) {
    HELIO_POOL {
      class c;
      helio_strategy *strategy = make_strategy();
      HELIO_SCOPE(strategy) {
        make_pupil(&c.pupil, helio_sgd(1.0), 3);
        make_pupil(&c.other, helio_sgd(1.0), 8);
      }
      for (int i = 0; i < REPLICAS; i++) c.other.uses[i] = 7;
      assert_ok(helio_optimizer_build(c.pupil.optimizer, &c.pupil.variables));
      run_step(strategy, &c.pupil, 7, 7, 7);
      check_parting(&c, strategy, (lapse)how, 1);
      check_parting(&c, strategy, (lapse)how, 1);
      run_step(strategy, &c.pupil, 7, 7, 7);
      for (int i = 0; i < 3; i++) assert_all(c.pupil.list[i], -2 * REPLICAS);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_gradient_that_nobody_has_moves_nothing),      TEST(rows_and_wholes_may_change_from_step_to_step),
      TEST(two_optimizers_have_lists_of_one_length),       TEST(an_optimizer_takes_the_place_of_another),
      TEST(a_step_may_be_taken_inside_another_device),     TEST(a_variable_stands_twice),
      TEST(replicas_that_part_do_not_wait_for_each_other),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
