/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of optimizers and schedules: those of Keras in tests/golden/nn, and references in double precision. */
#include <math.h>

#include "golden.h"
#include "nn/optimizer.h"
#include "ops/tape.h"

enum { STEPS = 10, MOST_VARIABLES = 2 };

static void compare(const char *name, const char *what, helio_tensor *got, helio_tensor *expected, double tolerance) {
  double distance = tensor_distance(got, expected);
  if (!(distance <= tolerance)) fail_msg("%s: %s is off by %g", name, what, distance);
}

/* ---- objects from Keras' configurations ---- */

/* 0 where there is none, else the number, of which zero must not stand for the default. */
static double number(const json_t *config, const char *key) {
  const json_t *value = json_object_get(config, key);
  if (!json_is_number(value)) return 0;
  return json_number_value(value) == 0 ? HELIO_ZERO : json_number_value(value);
}

static helio_schedule *schedule_from(const json_t *json) {
  const char *class_name = json_string_value(json_object_get(json, "class_name"));
  const json_t *c = json_object_get(json, "config"), *list = json_object_get(c, "boundaries");
  int64_t boundaries[8];
  double values[9];
  helio_schedule_options o = {.size = sizeof o,
                              .initial = number(c, "initial_learning_rate"),
                              .steps = (int64_t)number(c, "decay_steps"),
                              .rate = number(c, "decay_rate"),
                              .staircase = json_is_true(json_object_get(c, "staircase")),
                              .end = number(c, "end_learning_rate"),
                              .power = number(c, "power"),
                              .cycle = json_is_true(json_object_get(c, "cycle")),
                              .alpha = number(c, "alpha"),
                              .warmup_target = number(c, "warmup_target"),
                              .warmup_steps = (int64_t)number(c, "warmup_steps")};
  if (!strcmp(class_name, "ExponentialDecay")) return helio_exponential_decay_with(&o);
  if (!strcmp(class_name, "CosineDecay")) return helio_cosine_decay_with(&o);
  if (!strcmp(class_name, "PolynomialDecay")) return helio_polynomial_decay_with(&o);
  assert_string_equal(class_name, "PiecewiseConstantDecay");
  o.boundary_count = (int)json_array_size(list);
  assert_in_range(o.boundary_count, 1, 8);
  for (int i = 0; i < o.boundary_count; i++) boundaries[i] = json_integer_value(json_array_get(list, (size_t)i));
  list = json_object_get(c, "values");
  assert_int_equal(json_array_size(list), o.boundary_count + 1);
  for (int i = 0; i <= o.boundary_count; i++) values[i] = json_number_value(json_array_get(list, (size_t)i));
  o.boundaries = boundaries;
  o.values = values;
  return helio_piecewise_constant_decay_with(&o);
}

static helio_optimizer *optimizer_from(const char *class_name, const json_t *c) {
  const json_t *rate = json_object_get(c, "learning_rate");
  helio_optimizer_options o = {.size = sizeof o,
                               .learning_rate = number(c, "learning_rate"),
                               .schedule = json_is_object(rate) ? schedule_from(rate) : NULL,
                               .momentum = number(c, "momentum"),
                               .nesterov = json_is_true(json_object_get(c, "nesterov")),
                               .beta1 = number(c, "beta_1"),
                               .beta2 = number(c, "beta_2"),
                               .rho = number(c, "rho"),
                               .centered = json_is_true(json_object_get(c, "centered")),
                               .initial_accumulator_value = number(c, "initial_accumulator_value"),
                               .epsilon = number(c, "epsilon"),
                               .weight_decay = number(c, "weight_decay"),
                               .clip_value = number(c, "clipvalue"),
                               .clip_norm = number(c, "clipnorm"),
                               .global_clip_norm = number(c, "global_clipnorm"),
                               .accumulate_steps = (int)number(c, "gradient_accumulation_steps")};
  static const struct {
    const char *name;
    helio_optimizer *(*make)(const helio_optimizer_options *);
  } table[] = {{"SGD", helio_sgd_with},     {"Adam", helio_adam_with},       {"AdamW", helio_adamw_with},
               {"Nadam", helio_nadam_with}, {"RMSprop", helio_rmsprop_with}, {"Adagrad", helio_adagrad_with}};
  for (size_t i = 0; i < COUNT_OF(table); i++) {
    if (!strcmp(table[i].name, class_name)) return table[i].make(&o);
  }
  fail_msg("no optimizer %s", class_name);
  return NULL;
}

/* ---- a case ---- */

static void put_gradient(helio_gradients *to, int index, helio_tensor *values, helio_tensor *indices,
                         helio_shape shape) {
  to->list[index] = (hi_gradient){.values = values, .indices = indices, .shape = shape};
  hi_gradient_hold(&to->list[index]);
}

/* Those of a step; rows as they came or, if asked, as the dense gradient that they add up to. */
static helio_gradients *golden_gradients(const golden *file, const char *name, int step, bool rows, bool dense,
                                         const helio_variables *variables) {
  helio_gradients *gradients = hi_gradients_new(variables->count);
  for (int i = 0; i < variables->count; i++) {
    helio_tensor *values = rows ? golden_tensor(file, "%s/gradient/%d/%d/values", name, step, i)
                                : golden_tensor(file, "%s/gradient/%d/%d", name, step, i);
    helio_tensor *indices = rows ? golden_tensor(file, "%s/gradient/%d/%d/indices", name, step, i) : NULL;
    helio_shape shape = helio_variable_shape(variables->at[i]);
    if (rows && dense) values = helio_scatter_add(values, indices, shape.extent[0]);
    put_gradient(gradients, i, values, dense ? NULL : indices, shape);
  }
  return gradients;
}

/* Slots stand in Keras' order; Nadam's u_product is a number on the host. */
static void check_slots(const golden *file, const char *name, helio_optimizer *optimizer, const json_t *names) {
  const helio_variables *slots = helio_optimizer_variables(optimizer);
  int count = 0;
  for (size_t i = 0; i < json_array_size(names); i++) {
    char path[200];
    const char *slot = json_string_value(json_array_get(names, i));
    if (!strcmp(slot, "u_product")) {
      double product = helio_item(golden_tensor(file, "%s/slot/u_product", name));
      assert_true(fabs(optimizer->numbers.momentum_product - product) <= 1e-4 * product);
      continue;
    }
    assert_true(count < slots->count);
    snprintf(path, sizeof path, "%s/%s", helio_optimizer_name(optimizer), slot);
    assert_string_equal(helio_variable_name(slots->at[count]), path);
    assert_false(helio_variable_trainable(slots->at[count]));
    compare(name, slot, helio_value(slots->at[count]), golden_tensor(file, "%s/slot/%s", name, slot), 1e-4);
    count++;
  }
  assert_int_equal(slots->count, count);
}

/* Where rows come twice Keras squares each by itself: then what they give differs from what their sum gives, and only
 * the end is known. */
static void run_case(const golden *file, const char *name, const json_t *about, bool dense) {
  const json_t *config = json_object_get(about, "config"), *names = json_object_get(about, "variables");
  helio_optimizer *optimizer = optimizer_from(json_string_value(json_object_get(about, "class_name")), config);
  helio_variable *variables[MOST_VARIABLES];
  helio_variables list = {(int)json_array_size(names), variables};
  assert_made(optimizer);
  assert_string_equal(helio_optimizer_name(optimizer), json_string_value(json_object_get(config, "name")));
  for (int i = 0; i < list.count; i++) {
    variables[i] = helio_variable(golden_tensor(file, "%s/start/%d", name, i),
                                  .name = json_string_value(json_array_get(names, (size_t)i)));
    assert_made(variables[i]);
  }
  bool apart = !dense && golden_has(file, "%s/raw_after/%d/0", name, STEPS - 1);
  double *rates = numbers_of(golden_tensor(file, "%s/learning_rate", name));
  for (int step = 0; step < STEPS; step++) {
    double rate = helio_optimizer_learning_rate(optimizer);
    if (fabs(rate - rates[step]) > 1e-6 * rates[step]) fail_msg("%s: step %d has the rate %g", name, step, rate);
    bool rows = json_is_true(json_object_get(about, "rows"));
    assert_ok(helio_apply_gradients(optimizer, golden_gradients(file, name, step, rows, dense, &list), &list));
    for (int i = 0; i < list.count && (!apart || step == STEPS - 1); i++) {
      helio_tensor *expected = apart ? golden_tensor(file, "%s/raw_after/%d/%d", name, step, i)
                                     : golden_tensor(file, "%s/after/%d/%d", name, step, i);
      compare(name, helio_variable_name(variables[i]), helio_value(variables[i]), expected, step ? 1e-4 : 1e-5);
    }
  }
  int64_t calls = json_integer_value(json_object_get(about, "iterations"));
  int64_t every = json_integer_value(json_object_get(config, "gradient_accumulation_steps"));
  assert_int_equal(helio_optimizer_iterations(optimizer), calls / (every ? every : 1));
  if (!apart) check_slots(file, name, optimizer, json_object_get(about, "slots"));
  free(rates);
}

static void test_golden(void **state) {
  (void)state;
  golden *file = golden_open("optimizers");
  json_t *order = golden_json(file, "order");
  int count = 0;
  for (size_t i = 0; i < json_array_size(order); i++) {
    const char *name = json_string_value(json_array_get(order, i));
    json_t *about = golden_json(file, name);
    if (!json_is_true(json_object_get(about, "optional"))) {
      HELIO_POOL run_case(file, name, about, false);
      HELIO_POOL run_case(file, name, about, true);
      count++;
    }
    json_decref(about);
  }
  assert_true(count > 60);
  json_decref(order);
  golden_close(file);
}

static void test_schedules(void **state) {
  (void)state;
  golden *file = golden_open("schedules");
  json_t *order = golden_json(file, "order");
  for (size_t i = 0; i < json_array_size(order); i++) {
    const char *name = json_string_value(json_array_get(order, i));
    json_t *about = golden_json(file, name);
    helio_tensor *at = golden_tensor(file, "%s/steps", name);
    double *steps = numbers_of(helio_cast(at, HELIO_FLOAT64));
    double *values = numbers_of(golden_tensor(file, "%s/values", name));
    bool constant = !strcmp(name, "constant");
    helio_schedule *schedule = constant ? NULL : schedule_from(about);
    double rate = number(json_object_get(about, "config"), "learning_rate");
    for (int64_t j = 0; j < helio_tensor_elements(at); j++) {
      double got =
          constant ? helio_optimizer_learning_rate(helio_sgd(rate)) : helio_schedule_rate(schedule, (int64_t)steps[j]);
      if (fabs(got - values[j]) > 1e-6 * fabs(values[j]) + 1e-8) fail_msg("%s: %g, not %g", name, got, values[j]);
    }
    free(steps);
    free(values);
    json_decref(about);
  }
  json_decref(order);
  golden_close(file);
}

/* ---- references in double precision ---- */

/* One element of everything, by Keras' own formulas. */
typedef struct element {
  double w, m, v, a;
} element;

static double u_of(double beta1, int t) {
  return beta1 * (1 - 0.5 * pow(0.96, t));
}

static void step_sgd(element *e, double g, int t) {
  (void)t;
  e->w -= e->w * 0.02 * 0.1;
  e->m = e->m * 0.9 - g * 0.1;
  e->w += e->m * 0.9 - g * 0.1;
}

static void step_adam(element *e, double g, int t) {
  e->w -= e->w * 0.03 * 0.1;
  e->m += (g - e->m) * (1 - 0.8);
  e->v += (g * g - e->v) * (1 - 0.95);
  double correction = sqrt(1 - pow((double)0.95f, t)) / (1 - pow((double)0.8f, t)); /* of floats, as Keras has them */
  e->w -= e->m * (0.1 * correction) / (sqrt(e->v) + 1e-7);
}

static void step_nadam(element *e, double g, int t) {
  double product = 1;
  for (int i = 1; i <= t; i++) product *= u_of(0.9, i);
  e->m += (g - e->m) * (1 - 0.9);
  e->v += (g * g - e->v) * (1 - 0.999);
  double m_hat = u_of(0.9, t + 1) * e->m / (1 - product * u_of(0.9, t + 1)) + (1 - u_of(0.9, t)) * g / (1 - product);
  e->w -= m_hat * 0.1 / (sqrt(e->v / (1 - pow(0.999, t))) + 1e-7);
}

static void step_rmsprop(element *e, double g, int t) {
  (void)t;
  e->v = 0.8 * e->v + (1 - 0.8) * g * g;
  e->a = 0.8 * e->a + (1 - 0.8) * g;
  e->m = 0.5 * e->m + 0.1 * g / sqrt(e->v - e->a * e->a + 1e-7);
  e->w -= e->m;
}

static void step_adagrad(element *e, double g, int t) {
  if (t == 1) e->v = 0.1;
  e->v += g * g;
  e->w -= 0.1 * g / sqrt(e->v + 1e-7);
}

static helio_gradients *one_gradient(helio_tensor *values, helio_tensor *indices, helio_shape shape) {
  helio_gradients *gradients = hi_gradients_new(1);
  put_gradient(gradients, 0, values, indices, shape);
  return gradients;
}

static double next_value(uint64_t *seed) {
  return (double)next_random(seed) / 1e9 - 1;
}

static void run_double(helio_optimizer *optimizer, void (*step)(element *, double, int)) {
  enum { N = 13 };
  element elements[N] = {{0}};
  double values[N];
  uint64_t seed = 5;
  assert_made(optimizer);
  for (int i = 0; i < N; i++) values[i] = elements[i].w = next_value(&seed);
  helio_variable *v = helio_variable(helio_constant(values, HELIO_SHAPE(N), HELIO_FLOAT64), .name = "v");
  for (int t = 1; t <= STEPS; t++) {
    for (int i = 0; i < N; i++) step(&elements[i], values[i] = next_value(&seed), t);
    helio_tensor *gradient = helio_constant(values, HELIO_SHAPE(N), HELIO_FLOAT64);
    assert_ok(helio_apply_gradients(optimizer, one_gradient(gradient, NULL, HELIO_SHAPE(N)), HELIO_VARIABLES(v)));
    assert_ok(helio_tensor_read(helio_value(v), values, sizeof values));
    for (int i = 0; i < N; i++) {
      double error = fabs(values[i] - elements[i].w);
      if (error > 1e-12) fail_msg("%s: step %d is off by %g", helio_optimizer_name(optimizer), t, error);
    }
  }
}

static void test_double(void **state) {
  (void)state;
  run_double(helio_sgd(0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.02), step_sgd);
  run_double(helio_adamw(0.1, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.03), step_adam);
  run_double(helio_nadam(0.1), step_nadam);
  run_double(helio_rmsprop(0.1, .rho = 0.8, .momentum = 0.5, .centered = true), step_rmsprop);
  run_double(helio_adagrad(0.1), step_adagrad);
}

/* ---- rows ---- */

static helio_optimizer *optimizer_number(int number) {
  switch (number) {
  case 0:
    return helio_sgd(0.1);
  case 1:
    return helio_sgd(0.1, .momentum = 0.9, .weight_decay = 0.01);
  case 2:
    return helio_adam(0.1, .clip_value = 0.3);
  case 3:
    return helio_nadam(0.1, .clip_norm = 0.5);
  case 4:
    return helio_rmsprop(0.1, .momentum = 0.5, .centered = true);
  case 5:
    return helio_adagrad(0.1, .global_clip_norm = 0.5);
  case 6:
    return helio_adamw(0.1, .accumulate_steps = 3, .clip_norm = 1);
  default:
    return NULL;
  }
}

/* A gradient by rows, out of order, or of none, gives what the dense one does; where nothing is squared also if some
 * come twice. */
static void test_rows_equal_dense(void **state) {
  (void)state;
  enum { ROWS = 7, WIDTH = 3, GIVEN = 5 };
  helio_shape whole = HELIO_SHAPE(ROWS, WIDTH);
  for (int kind = 0; kind < 7; kind++) {
    uint64_t seed = 11;
    helio_optimizer *by_rows = optimizer_number(kind), *dense = optimizer_number(kind);
    helio_variable *a = helio_variable(.shape = whole, .name = "a"), *b = helio_variable(helio_value(a), .name = "b");
    for (int step = 0; step < STEPS; step++) {
      float values[GIVEN * WIDTH];
      int64_t indices[GIVEN];
      for (int i = 0; i < GIVEN * WIDTH; i++) values[i] = (float)next_value(&seed);
      bool squares = kind >= 2 && kind <= 5;
      for (int i = 0; i < GIVEN; i++) indices[i] = (squares ? (unsigned)(3 * i) : next_random(&seed)) % ROWS;
      if (!squares) indices[3] = indices[1];
      int given = step == 4 ? 0 : GIVEN;
      helio_tensor *rows = helio_constant(values, HELIO_SHAPE(given, WIDTH));
      helio_tensor *at = helio_constant(indices, HELIO_SHAPE(given), HELIO_INT64);
      assert_ok(helio_apply_gradients(by_rows, one_gradient(rows, at, whole), HELIO_VARIABLES(a)));
      helio_tensor *sums = helio_scatter_add(rows, at, ROWS);
      assert_ok(helio_apply_gradients(dense, one_gradient(sums, NULL, whole), HELIO_VARIABLES(b)));
      compare("rows and dense", helio_optimizer_name(dense), helio_value(a), helio_value(b), 1e-6);
    }
    assert_null(optimizer_number(7));
  }
}

/* ---- clipping ---- */

static helio_variable *variable_of(double first, double second, helio_type type) {
  float narrow[] = {(float)first, (float)second};
  double wide[] = {first, second};
  return helio_variable(helio_constant(type == HELIO_FLOAT64 ? (void *)wide : narrow, HELIO_SHAPE(2), type));
}

static void assert_pair(helio_variable *variable, double first, double second) {
  double *values = numbers_of(helio_value(variable)), expected[] = {first, second};
  for (int i = 0; i < 2; i++) {
    bool same = isnan(expected[i]) ? isnan(values[i]) : fabs(values[i] - expected[i]) < 1e-6;
    if (!same) fail_msg("element %d is %g, not %g", i, values[i], expected[i]);
  }
  free(values);
}

/* One step of SGD at rate 1 from zeros shows the negated gradients. */
static void clip(helio_optimizer *optimizer, helio_variable *a, helio_variable *b, const double gradients[4]) {
  helio_gradients *list = hi_gradients_new(2);
  helio_variable *from[] = {variable_of(gradients[0], gradients[1], helio_variable_type(a)),
                            variable_of(gradients[2], gradients[3], helio_variable_type(b))};
  for (int i = 0; i < 2; i++) put_gradient(list, i, helio_value(from[i]), NULL, HELIO_SHAPE(2));
  assert_made(optimizer);
  assert_ok(helio_apply_gradients(optimizer, list, HELIO_VARIABLES(a, b)));
}

static void test_clipping(void **state) {
  (void)state;
  helio_variable *a = variable_of(0, 0, HELIO_FLOAT32), *b = variable_of(0, 0, HELIO_FLOAT64);
  clip(helio_sgd(1, .global_clip_norm = 1), a, b, (double[]){3, 4, 0, 12}); /* of norm 13, in two types */
  assert_pair(a, -3. / 13, -4. / 13);
  assert_pair(b, 0, -12. / 13);
  a = variable_of(0, 0, HELIO_FLOAT32), b = variable_of(0, 0, HELIO_FLOAT32);
  clip(helio_sgd(1, .clip_norm = 1), a, b, (double[]){3, 4, 0, 0}); /* nothing is divided by zero */
  assert_pair(a, -0.6, -0.8);
  assert_pair(b, 0, 0);
  clip(helio_sgd(1, .global_clip_norm = 1), a, b, (double[]){0, 0, 0, 0});
  assert_pair(a, -0.6, -0.8);
  clip(helio_sgd(1, .global_clip_norm = 10), a, b, (double[]){1, 0, 0.25, 0}); /* below the limit: to the bit */
  assert_pair(b, -0.25, 0);
  clip(helio_sgd(1, .clip_value = 0.5), a, b, (double[]){-3, 0.25, 0.5, 7});
  assert_pair(b, -0.75, -0.5);
  clip(helio_sgd(1, .global_clip_norm = 1), a, b, (double[]){INFINITY, 0, 1, 0}); /* all are lost, as in Keras */
  assert_pair(b, NAN, NAN);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_golden), TEST(test_schedules), TEST(test_double), TEST(test_rows_equal_dense), TEST(test_clipping),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
