/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on each element by itself: arithmetic, comparisons, functions, activations and their gradients. */
#include <math.h>

#include "conformance.h"

/* Integers whose result does not fit have no defined one. */
static double fitting(helio_type type, double value) {
  return is_float(type) || as_type(type, value) == value ? value : NAN;
}

/* Beyond 2⁵³ a double does not tell one integer from the next. */
static bool is_exact(helio_type type, double value) {
  return type != HELIO_INT64 || fabs(value) <= 0x1p53;
}

/* ---- of one input ---- */

static void reference_one(const example *e, array *results) {
  const array *x = &e->inputs[0];
  results[0] = array_new(x->type, &x->shape);
  for (int64_t i = 0; i < x->elements; i++) {
    double value = e->family->is.one(x->values[i], e);
    results[0].values[i] = is_exact(x->type, value) ? fitting(x->type, value) : (double)NAN;
  }
}

static double neg(double x, const example *e) {
  (void)e;
  return -x;
}

static double absolute(double x, const example *e) {
  (void)e;
  return fabs(x);
}

static double square(double x, const example *e) {
  (void)e;
  return x * x;
}

static double root(double x, const example *e) {
  (void)e;
  return sqrt(x);
}

static double inverse_root(double x, const example *e) {
  (void)e;
  return 1 / sqrt(x);
}

static double exponential(double x, const example *e) {
  (void)e;
  return exp(x);
}

static double logarithm(double x, const example *e) {
  (void)e;
  return log(x);
}

static double clip(double x, const example *e) {
  double low = e->scalars[0].real, high = e->scalars[1].real;
  return x < low ? low : x > high ? high : x;
}

static double relu(double x, const example *e) {
  (void)e;
  return activate(HELIO_RELU, x);
}

static double sigmoid(double x, const example *e) {
  (void)e;
  return activate(HELIO_SIGMOID, x);
}

static double tangent(double x, const example *e) {
  (void)e;
  return activate(HELIO_TANH, x);
}

static double softplus(double x, const example *e) {
  (void)e;
  return activate(HELIO_SOFTPLUS, x);
}

static double swish(double x, const example *e) {
  (void)e;
  return activate(HELIO_SWISH, x);
}

static double gelu(double x, const example *e) {
  return activate(e->attributes.gelu.approximate ? HELIO_GELU_TANH : HELIO_GELU, x);
}

static double elu(double x, const example *e) {
  return x > 0 ? x : e->scalars[0].real * expm1(x);
}

static double leaky_relu(double x, const example *e) {
  return x > 0 ? x : e->scalars[0].real * x;
}

/* Attributes and scalars of one-input families, in their variants. False: there are no more. */
static bool vary(example *e, int variant) {
  switch (e->family->operation) {
  case HELIO_OP_CLIP:
    e->scalars[0].real = is_float(e->type) ? -0.375 : -20;
    e->scalars[1].real = variant == 0 ? (is_float(e->type) ? 0.5 : 15) : variant == 1 ? 30 : INFINITY;
    return variant < (is_float(e->type) ? 3 : 2);
  case HELIO_OP_GELU:
    e->attributes.gelu = (helio_gelu_attributes){.size = sizeof e->attributes.gelu, .approximate = (uint32_t)variant};
    return variant < 2;
  case HELIO_OP_ELU:
  case HELIO_OP_LEAKY_RELU:
    e->scalars[0].real = variant == 0 ? 1 : variant == 1 ? 0.25 : 0;
    return variant < 3;
  default:
    return variant < 1;
  }
}

static void example_one(const family *f, helio_type type, int variant, helio_shape shape, bool once) {
  example e = example_new(f, type);
  if (!vary(&e, variant)) return;
  add_input(&e, type, shape);
  e.once = once;
  check_example(&e);
}

/* NaN, infinities and values at which a careless formula overflows or traps. */
static void special_one(const family *f, helio_type type, int variant) {
  static const double ordinary[] = {0, 1, -1, 3, -3, 0.5, 1e-4};
  static const double infinite[] = {INFINITY, NAN, 1, -2, -INFINITY};
  static const double steep[] = {20, -20, 50, -50, 88, -88, 100, -100, 700, -700, 1e4, -1e4};
  static const double whole[] = {0, 1, -1, INT32_MAX, INT32_MIN, 46341, 0x1p63, -0x1p63};
  bool odd_at_minus_infinity = f->operation == HELIO_OP_SWISH || f->operation == HELIO_OP_GELU;
  const double *const lists[] = {ordinary, infinite, steep};
  const int counts[] = {COUNT(ordinary), COUNT(infinite) - odd_at_minus_infinity, COUNT(steep)};
  for (int i = 0; i < (is_float(type) ? 3 : 1); i++) {
    example e = example_new(f, type);
    if (!vary(&e, variant)) return;
    if (f->operation == HELIO_OP_CLIP && i == 1) continue; /* what becomes of NaN is not defined */
    int count = is_float(type) ? counts[i] : COUNT(whole);
    add_values(&e, type, (helio_shape)SHAPE(count), is_float(type) ? lists[i] : whole);
    check_example(&e);
  }
}

static void examples_one(const family *f, helio_type type) {
  for (int variant = 0; variant < 3; variant++) {
    special_one(f, type, variant);
    for (int i = 0; i < odd_shape_count; i++) example_one(f, type, variant, odd_shapes[i], false);
  }
  example_one(f, type, 0, large_shape(type), true);
}

/* ---- of two inputs that broadcast ---- */

static helio_shape broadcast_shape(const helio_shape *a, const helio_shape *b) {
  helio_shape result = {.rank = a->rank > b->rank ? a->rank : b->rank};
  for (int i = 0; i < result.rank; i++) {
    int at_a = i - (result.rank - a->rank), at_b = i - (result.rank - b->rank);
    int64_t x = at_a < 0 ? 1 : a->extent[at_a], y = at_b < 0 ? 1 : b->extent[at_b];
    result.extent[i] = x == 1 ? y : x;
  }
  return result;
}

static bool compares(helio_operation operation) {
  return operation >= HELIO_OP_EQUAL && operation <= HELIO_OP_GREATER_EQUAL;
}

static void reference_two(const example *e, array *results) {
  const array *a = &e->inputs[0], *b = &e->inputs[1];
  helio_shape shape = broadcast_shape(&a->shape, &b->shape);
  results[0] = array_new(compares(e->family->operation) ? HELIO_BOOL : a->type, &shape);
  for (int64_t i = 0; i < results[0].elements; i++) {
    double x = a->values[broadcast_index(&a->shape, &shape, i)], y = b->values[broadcast_index(&b->shape, &shape, i)];
    double value = e->family->is.two(x, y, e);
    bool exact = is_exact(results[0].type, x) && is_exact(results[0].type, y) && is_exact(results[0].type, value);
    results[0].values[i] = exact ? fitting(results[0].type, value) : (double)NAN;
  }
}

static double add(double a, double b, const example *e) {
  (void)e;
  return a + b;
}

static double sub(double a, double b, const example *e) {
  (void)e;
  return a - b;
}

static double mul(double a, double b, const example *e) {
  (void)e;
  return a * b;
}

static double divide(double a, double b, const example *e) {
  return is_float(e->type) ? a / b : b == 0 ? 0 : trunc(a / b);
}

static double power(double a, double b, const example *e) {
  (void)e;
  return pow(a, b);
}

static double larger(double a, double b, const example *e) {
  (void)e;
  return isnan(a) || isnan(b) ? (double)NAN : a > b ? a : b;
}

static double smaller(double a, double b, const example *e) {
  (void)e;
  return isnan(a) || isnan(b) ? (double)NAN : a < b ? a : b;
}

static double equal(double a, double b, const example *e) {
  (void)e;
  return a == b;
}

static double not_equal(double a, double b, const example *e) {
  (void)e;
  return a != b;
}

static double less(double a, double b, const example *e) {
  (void)e;
  return a < b;
}

static double less_equal(double a, double b, const example *e) {
  (void)e;
  return a <= b;
}

static double greater(double a, double b, const example *e) {
  (void)e;
  return a > b;
}

static double greater_equal(double a, double b, const example *e) {
  (void)e;
  return a >= b;
}

typedef struct pair {
  helio_shape a, b;
} pair;

static const pair pairs[] = {
    {SHAPE(1), SHAPE(1)},
    {SHAPE(7), SHAPE(7)},
    {SHAPE(0), SHAPE(1)},
    {NO_AXES, NO_AXES},
    {SHAPE(13, 17), SHAPE(13, 17)},
    {SHAPE(13, 17), SHAPE(17)},
    {SHAPE(17), SHAPE(13, 17)},
    {SHAPE(13, 17), SHAPE(13, 1)},
    {SHAPE(13, 1), SHAPE(1, 17)},
    {SHAPE(31, 33), NO_AXES},
    {NO_AXES, SHAPE(31, 33)},
    {SHAPE(5, 0), SHAPE(5, 1)},
    {SHAPE(2, 1, 3, 1, 2, 1, 3, 2), SHAPE(1, 5, 1, 2, 1, 3, 1, 2)},
    {SHAPE(3, 1, 5), SHAPE(7, 1)},
    {SHAPE(5, 7, 1, 3), SHAPE(7, 2, 1)},
    {SHAPE(257), SHAPE(257)},
    {SHAPE(13, 24), SHAPE(24)}, /* rows that a device may take in packs */
    {SHAPE(13, 1), SHAPE(13, 24)},
    {SHAPE(5, 1, 8), SHAPE(1, 3, 8)},
    {SHAPE(4, 3, 1), SHAPE(4, 1, 16)},
};

static const pair large_pairs[] = {
    {SHAPE(113, 1033), SHAPE(113, 1033)},
    {SHAPE(61, 1033), SHAPE(1033)},
    {SHAPE(61, 1), SHAPE(61, 1033)},
};

/* Comparisons need equals among their random values; quotients, divisors that are not tiny. */
static void adjust(example *e, array *b) {
  const array *a = &e->inputs[0];
  for (int64_t i = 0; i < b->elements; i++) {
    if (compares(e->family->operation) && a->elements > 0 && random_word() % 3 == 0)
      b->values[i] = a->values[i % a->elements];
    if (e->family->operation == HELIO_OP_DIV && is_float(b->type)) {
      b->values[i] = as_type(b->type, copysign(0.5 + fabs(b->values[i]), b->values[i]));
    }
  }
}

static void example_two(const family *f, helio_type type, const pair *shapes, bool once) {
  example e = example_new(f, type);
  add_input(&e, type, shapes->a);
  if (f->operation == HELIO_OP_POW) {
    add_between(&e, type, shapes->b, -2, 2);
  } else {
    add_input(&e, type, shapes->b);
  }
  adjust(&e, &e.inputs[1]);
  e.once = once;
  check_example(&e);
}

/* Every special value with every other. */
static void special_two(const family *f, helio_type type) {
  static const double values[] = {0, 1, -1, 2, -2, 3, 0.5, INFINITY, -INFINITY, NAN};
  static const double whole[] = {0, 1, -1, 7, -7, INT32_MAX, INT32_MIN, 0x1p40, 0x1p63, -0x1p63};
  static const double bytes[] = {0, 1, 2, 127, 128, 254, 255, 3, 4, 5};
  const double *list = is_float(type) ? values : type == HELIO_UINT8 || type == HELIO_BOOL ? bytes : whole;
  int count = COUNT(values);
  example e = example_new(f, type);
  add_values(&e, type, (helio_shape)SHAPE(count, 1), list);
  add_values(&e, type, (helio_shape)SHAPE(count), list);
  check_example(&e);
}

static void examples_two(const family *f, helio_type type) {
  special_two(f, type);
  for (int i = 0; i < COUNT(pairs); i++) example_two(f, type, &pairs[i], false);
  for (int i = 0; i < COUNT(large_pairs); i++) example_two(f, type, &large_pairs[i], true);
}

/* ---- the sum of several ---- */

static void reference_add_n(const example *e, array *results) {
  results[0] = array_new(e->type, &e->inputs[0].shape);
  for (int64_t i = 0; i < results[0].elements; i++) {
    for (int k = 0; k < e->input_count; k++) results[0].values[i] += e->inputs[k].values[i];
  }
}

static void example_add_n(const family *f, helio_type type, int count, helio_shape shape, bool once) {
  example e = example_new(f, type);
  for (int k = 0; k < count; k++) add_input(&e, type, shape);
  e.once = once;
  check_example(&e);
}

/* Of many inputs one shape will do: a device may take them in several portions. */
static void examples_add_n(const family *f, helio_type type) {
  for (int count = 1; count <= 9; count += count < 3 ? 1 : 3) {
    for (int i = 0; i < odd_shape_count; i++) example_add_n(f, type, count, odd_shapes[i], false);
  }
  example_add_n(f, type, 17, (helio_shape)SHAPE(13, 17), false);
  example_add_n(f, type, MOST_INPUTS, (helio_shape)SHAPE(67), false);
  example_add_n(f, type, 3, large_shape(type), true);
}

/* ---- gradients of activations ---- */

static double gelu_slope(double x) {
  return 0.5 * erfc(-x / sqrt(2)) + x * exp(-x * x / 2) / sqrt(2 * M_PI);
}

static double gelu_tanh_slope(double x) {
  double inner = sqrt(2 / M_PI) * (x + 0.044715 * x * x * x), s = 1 / (1 + exp(-2 * inner));
  return s + 2 * x * s * (1 - s) * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

static double slope(uint32_t activation, double v, double alpha) {
  double s = 1 / (1 + exp(-v));
  switch (activation) {
  case HELIO_RELU:
    return v > 0;
  case HELIO_SIGMOID:
    return v * (1 - v);
  case HELIO_TANH:
    return 1 - v * v;
  case HELIO_SOFTPLUS:
    return s;
  case HELIO_SWISH:
    return s + v * s * (1 - s);
  case HELIO_GELU:
    return gelu_slope(v);
  case HELIO_GELU_TANH:
    return gelu_tanh_slope(v);
  case HELIO_ELU:
    return v > 0 ? 1 : v + alpha;
  case HELIO_LEAKY_RELU:
    return v > 0 ? 1 : alpha;
  default:
    return 1;
  }
}

static void reference_activation_grad(const example *e, array *results) {
  const array *dy = &e->inputs[0], *v = &e->inputs[1];
  results[0] = array_new(dy->type, &dy->shape);
  for (int64_t i = 0; i < dy->elements; i++) {
    results[0].values[i] = dy->values[i] * slope(e->attributes.activation.activation, v->values[i], e->scalars[0].real);
  }
}

static void example_activation_grad(const family *f, helio_type type, uint32_t activation, helio_shape shape,
                                    bool once) {
  example e = example_new(f, type);
  double low = -4, high = 4;
  if (activation == HELIO_SIGMOID) low = 0, high = 1;
  if (activation == HELIO_TANH) low = -1, high = 1;
  if (activation == HELIO_ELU) low = -0.5;
  e.attributes.activation =
      (helio_activation_attributes){.size = sizeof e.attributes.activation, .activation = activation};
  e.scalars[0].real = 0.5;
  e.once = once;
  add_input(&e, type, shape);
  add_between(&e, type, shape, low, high);
  if (activation == HELIO_RELU && e.inputs[1].elements > 0) e.inputs[1].values[0] = 0;
  check_example(&e);
}

/* Far out, slopes must be 0 or 1, not NaN. */
static void special_activation_grad(const family *f, helio_type type, uint32_t activation) {
  static const double far[] = {-1e4, -700, -100, -30, 0, 30, 100, 700, 1e4}, ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  example e = example_new(f, type);
  e.attributes.activation =
      (helio_activation_attributes){.size = sizeof e.attributes.activation, .activation = activation};
  e.scalars[0].real = 0.25;
  add_values(&e, type, (helio_shape)SHAPE(COUNT(ones)), ones);
  add_values(&e, type, (helio_shape)SHAPE(COUNT(far)), far);
  check_example(&e);
}

static void examples_activation_grad(const family *f, helio_type type) {
  uint32_t last = is_float(type) ? HELIO_LEAKY_RELU : HELIO_RELU;
  for (uint32_t activation = HELIO_LINEAR; activation <= last; activation++) {
    bool of_x = (activation >= HELIO_SOFTPLUS && activation <= HELIO_GELU_TANH) || activation == HELIO_LEAKY_RELU;
    for (int i = 0; i < odd_shape_count; i += 3) example_activation_grad(f, type, activation, odd_shapes[i], false);
    example_activation_grad(f, type, activation, (helio_shape)SHAPE(13, 17), false);
    if (of_x) special_activation_grad(f, type, activation);
    example_activation_grad(f, type, activation, (helio_shape)SHAPE(61, 1033), true);
  }
}

#define ONE(symbol, function, least, most)                                                                             \
  {                                                                                                                    \
    .operation = HELIO_OP_##symbol, .examples = examples_one, .reference = reference_one, .low = least, .high = most,  \
    .is.one = function                                                                                                 \
  }
#define TWO(symbol, function, least, most)                                                                             \
  {                                                                                                                    \
    .operation = HELIO_OP_##symbol, .examples = examples_two, .reference = reference_two, .low = least, .high = most,  \
    .is.two = function                                                                                                 \
  }

const family elementwise_families[] = {
    TWO(ADD, add, -1, 1),
    TWO(SUB, sub, -1, 1),
    TWO(MUL, mul, -1, 1),
    TWO(DIV, divide, -2, 2),
    TWO(POW, power, 0.125, 3),
    TWO(MAXIMUM, larger, -1, 1),
    TWO(MINIMUM, smaller, -1, 1),
    TWO(EQUAL, equal, -1, 1),
    TWO(NOT_EQUAL, not_equal, -1, 1),
    TWO(LESS, less, -1, 1),
    TWO(LESS_EQUAL, less_equal, -1, 1),
    TWO(GREATER, greater, -1, 1),
    TWO(GREATER_EQUAL, greater_equal, -1, 1),
    ONE(NEG, neg, -1, 1),
    ONE(ABS, absolute, -1, 1),
    ONE(SQUARE, square, -4, 4),
    ONE(SQRT, root, 0, 9),
    ONE(RSQRT, inverse_root, 0.0625, 9),
    ONE(EXP, exponential, -6, 6),
    ONE(LOG, logarithm, 0.0625, 9),
    ONE(CLIP, clip, -1, 1),
    ONE(RELU, relu, -1, 1),
    ONE(SIGMOID, sigmoid, -8, 8),
    ONE(TANH, tangent, -4, 4),
    ONE(SOFTPLUS, softplus, -8, 8),
    ONE(SWISH, swish, -8, 8),
    ONE(GELU, gelu, -6, 6),
    ONE(ELU, elu, -6, 6),
    ONE(LEAKY_RELU, leaky_relu, -4, 4),
    {.operation = HELIO_OP_ADD_N, .examples = examples_add_n, .reference = reference_add_n},
    {.operation = HELIO_OP_ACTIVATION_GRAD,
     .examples = examples_activation_grad,
     .reference = reference_activation_grad},
    {.operation = 0},
};
