/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, losses and normalization, with their gradients. */
#include <math.h>

#include "conformance.h"

/* ---- softmax along the last axis ---- */

/* log Σ exp(x) without overflow. */
static double log_sum(const double *row, int64_t columns) {
  double largest = -INFINITY, sum = 0;
  for (int64_t i = 0; i < columns; i++) largest = fmax(largest, row[i]);
  for (int64_t i = 0; i < columns; i++) sum += exp(row[i] - largest);
  return largest + log(sum);
}

static void reference_softmax(const example *e, array *results) {
  const array *x = &e->inputs[0];
  bool logarithm = e->family->operation == HELIO_OP_LOG_SOFTMAX;
  int64_t rows, columns;
  rows_of(&x->shape, &rows, &columns);
  results[0] = array_new(x->type, &x->shape);
  for (int64_t i = 0; i < rows; i++) {
    double sum = log_sum(x->values + i * columns, columns);
    for (int64_t k = i * columns; k < (i + 1) * columns; k++) {
      results[0].values[k] = logarithm ? x->values[k] - sum : exp(x->values[k] - sum);
    }
  }
}

/* Few long rows, many short ones, one column, nothing. */
static const helio_shape row_shapes[] = {
    SHAPE(1),       SHAPE(7),      SHAPE(1, 1),      SHAPE(13, 17),    SHAPE(5, 1),
    SHAPE(0, 5),    SHAPE(5, 0),   SHAPE(3, 2, 11),  SHAPE(67, 10),    SHAPE(2, 1031),
    SHAPE(31, 257), SHAPE(1, 100), SHAPE(10007, 10), SHAPE(113, 1000), SHAPE(2, 1, 3, 1, 2, 1, 3, 2),
};

static bool is_large(const helio_shape *shape) {
  return shape_elements(shape) > 10000;
}

/* Logits of any height must not overflow, and those of −∞ count nothing. */
static void special_softmax(const family *f, helio_type type) {
  static const double values[] = {1000, 999, -1000, 0, -1e4, -1e4, -1e4, -1e4 + 8, 3, -INFINITY, 2, -INFINITY};
  example e = example_new(f, type);
  add_values(&e, type, (helio_shape)SHAPE(3, 4), values);
  check_example(&e);
}

static void examples_softmax(const family *f, helio_type type) {
  special_softmax(f, type);
  for (int i = 0; i < COUNT(row_shapes); i++) {
    example e = example_new(f, type);
    add_input(&e, type, row_shapes[i]);
    e.once = e.long_sum = is_large(&row_shapes[i]);
    check_example(&e);
  }
}

/* softmax: dx = y (dy − Σ dy y); its logarithm: dx = dy − exp(y) Σ dy */
static void reference_softmax_grad(const example *e, array *results) {
  const array *dy = &e->inputs[0], *y = &e->inputs[1];
  bool logarithm = e->family->operation == HELIO_OP_LOG_SOFTMAX_GRAD;
  int64_t rows, columns;
  rows_of(&y->shape, &rows, &columns);
  results[0] = array_new(y->type, &y->shape);
  for (int64_t i = 0; i < rows; i++) {
    const double *d = dy->values + i * columns, *v = y->values + i * columns;
    double sum = 0;
    for (int64_t k = 0; k < columns; k++) sum += logarithm ? d[k] : d[k] * v[k];
    for (int64_t k = 0; k < columns; k++) {
      results[0].values[i * columns + k] = logarithm ? d[k] - exp(v[k]) * sum : v[k] * (d[k] - sum);
    }
  }
}

static void examples_softmax_grad(const family *f, helio_type type) {
  bool logarithm = f->operation == HELIO_OP_LOG_SOFTMAX_GRAD;
  for (int i = 0; i < COUNT(row_shapes); i++) {
    example e = example_new(f, type);
    int64_t rows, columns;
    rows_of(&row_shapes[i], &rows, &columns);
    add_input(&e, type, row_shapes[i]);
    add_between(&e, type, row_shapes[i], -3, 3);
    array *y = &e.inputs[1];
    for (int64_t k = 0; k < rows; k++) {
      double *row = y->values + k * columns, sum = log_sum(row, columns);
      for (int64_t c = 0; c < columns; c++) row[c] = as_type(type, logarithm ? row[c] - sum : exp(row[c] - sum));
    }
    e.once = e.long_sum = is_large(&row_shapes[i]);
    check_example(&e);
  }
}

/* ---- losses ---- */

static void reference_cross_entropy(const example *e, array *results) {
  const array *x = &e->inputs[0], *labels = &e->inputs[1];
  bool sparse = e->family->operation == HELIO_OP_SPARSE_CROSS_ENTROPY;
  int64_t rows = x->shape.extent[0], columns = x->shape.extent[1];
  results[0] = array_new(x->type, &(helio_shape){1, {rows}});
  results[1] = array_new(x->type, &x->shape);
  for (int64_t i = 0; i < rows; i++) {
    const double *row = x->values + i * columns;
    double sum = log_sum(row, columns), all = 0;
    for (int64_t k = 0; k < columns; k++) {
      double label = sparse ? labels->values[i] == (double)k : labels->values[i * columns + k];
      all += label;
      if (label != 0) results[0].values[i] -= label * (row[k] - sum);
      results[1].values[i * columns + k] = -label;
    }
    for (int64_t k = 0; k < columns; k++) results[1].values[i * columns + k] += all * exp(row[k] - sum);
  }
}

static void add_logits(example *e, helio_type type, helio_shape shape, bool high) {
  add_between(e, type, shape, high ? -1000 : -5, high ? 1000 : 5);
}

static void bad_labels(const family *f, helio_type type, helio_type label) {
  const int64_t bad[] = {11, -1, 1000000, INT32_MIN};
  for (int i = 0; i < COUNT(bad); i++) {
    example e = example_new(f, type);
    add_logits(&e, type, (helio_shape)SHAPE(7, 11), false);
    add_indices(&e, label, 7, 11);
    e.inputs[1].values[3] = (double)bad[i];
    check_bad_data(&e, bad[i]);
  }
}

static void examples_sparse_cross_entropy(const family *f, helio_type type) {
  for (int i = 0; i < 2 * COUNT(row_shapes); i++) {
    helio_shape shape = row_shapes[i / 2];
    helio_type label = i % 2 ? HELIO_INT64 : HELIO_INT32;
    if (i < 2) bad_labels(f, type, label);
    if (shape.rank != 2 || shape.extent[1] == 0) continue;
    example e = example_new(f, type);
    add_logits(&e, type, shape, i % 4 == 3);
    add_indices(&e, label, shape.extent[0], shape.extent[1]);
    e.once = e.long_sum = is_large(&shape);
    check_example(&e);
  }
}

/* Labels that are a distribution, and some that are none: their sum need not be 1. */
static void examples_cross_entropy(const family *f, helio_type type) {
  for (int i = 0; i < 2 * COUNT(row_shapes); i++) {
    helio_shape shape = row_shapes[i / 2];
    if (shape.rank != 2 || shape.extent[1] == 0) continue;
    example e = example_new(f, type);
    add_logits(&e, type, shape, i % 4 == 3);
    add_between(&e, type, shape, 0, i % 2 ? 1 : 2 / (double)shape.extent[1]);
    e.once = e.long_sum = is_large(&shape);
    check_example(&e);
  }
}

/* ---- batch normalization ---- */

static void reference_moments(const example *e, array *results) {
  const array *x = &e->inputs[0];
  int64_t rows, columns;
  rows_of(&x->shape, &rows, &columns);
  for (int i = 0; i < 2; i++) results[i] = array_new(x->type, &(helio_shape){1, {columns}});
  for (int64_t k = 0; k < columns; k++) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < rows; i++) mean += x->values[i * columns + k];
    mean /= (double)rows;
    for (int64_t i = 0; i < rows; i++) variance += pow(x->values[i * columns + k] - mean, 2);
    results[0].values[k] = mean;
    results[1].values[k] = variance / (double)rows;
  }
}

static const helio_shape batch_shapes[] = {
    SHAPE(1, 1), SHAPE(7, 1),          SHAPE(13, 17), SHAPE(67, 3),   SHAPE(3, 5, 7, 11), SHAPE(5, 0),
    SHAPE(7),    SHAPE(2, 3, 1, 2, 5), SHAPE(1, 31),  SHAPE(257, 64), SHAPE(4999, 33),    SHAPE(61, 17, 257),
};

/* A variance must survive a mean that is far from zero. */
static void examples_moments(const family *f, helio_type type) {
  for (int i = 0; i < 2 * COUNT(batch_shapes); i++) {
    example e = example_new(f, type);
    add_between(&e, type, batch_shapes[i / 2], i % 2 ? 48 : -1, i % 2 ? 52 : 2);
    e.once = e.long_sum = is_large(&batch_shapes[i / 2]);
    check_example(&e);
  }
}

static double deviation(const array *variance, int64_t channel, const example *e) {
  return sqrt(variance->values[channel] + e->scalars[0].real);
}

static void reference_normalize(const example *e, array *results) {
  const array *x = &e->inputs[0], *mean = &e->inputs[1], *gamma = &e->inputs[3], *beta = &e->inputs[4];
  results[0] = array_new(x->type, &x->shape);
  for (int64_t i = 0; i < x->elements; i++) {
    int64_t k = i % mean->elements;
    double value = (x->values[i] - mean->values[k]) / deviation(&e->inputs[2], k, e);
    if (gamma->values) value *= gamma->values[k];
    results[0].values[i] = beta->values ? value + beta->values[k] : value;
  }
}

static void add_optional(example *e, helio_type type, helio_shape shape, bool present) {
  if (present) {
    add_between(e, type, shape, 0.5, 2);
  } else {
    add_absent(e);
  }
}

static helio_shape channels_of(const helio_shape *x) {
  return (helio_shape)SHAPE(x->extent[x->rank - 1]);
}

static void add_moments(example *e, helio_type type, const helio_shape *x) {
  add_between(e, type, channels_of(x), -1, 1);
  add_between(e, type, channels_of(x), 0.1, 2);
}

static void examples_normalize(const family *f, helio_type type) {
  for (int i = 0; i < 4 * COUNT(batch_shapes); i++) {
    helio_shape shape = batch_shapes[i / 4];
    example e = example_new(f, type);
    add_input(&e, type, shape);
    add_moments(&e, type, &shape);
    add_optional(&e, type, channels_of(&shape), i & 1);
    add_optional(&e, type, channels_of(&shape), i & 2);
    e.scalars[0].real = i % 3 ? 1e-3 : 0;
    e.once = is_large(&shape);
    check_example(&e);
  }
}

/* dgamma = Σ dy x̂, dbeta = Σ dy */
static void reference_normalize_grad_sums(const example *e, array *results) {
  const array *dy = &e->inputs[0], *x = &e->inputs[1], *mean = &e->inputs[2];
  for (int i = 0; i < 2; i++) results[i] = array_new(x->type, &mean->shape);
  for (int64_t i = 0; i < x->elements; i++) {
    int64_t k = i % mean->elements;
    results[0].values[k] += dy->values[i] * (x->values[i] - mean->values[k]) / deviation(&e->inputs[3], k, e);
    results[1].values[k] += dy->values[i];
  }
}

static void examples_normalize_grad_sums(const family *f, helio_type type) {
  for (int i = 0; i < COUNT(batch_shapes); i++) {
    helio_shape shape = batch_shapes[i];
    example e = example_new(f, type);
    add_between(&e, type, shape, -0.5, 1);
    add_input(&e, type, shape);
    add_moments(&e, type, &shape);
    e.scalars[0].real = 1e-3;
    e.once = e.long_sum = is_large(&shape);
    check_example(&e);
  }
}

/* dx = gamma / deviation × (dy − dbeta / n − x̂ dgamma / n) */
static void reference_normalize_grad_input(const example *e, array *results) {
  const array *dy = &e->inputs[0], *x = &e->inputs[1], *mean = &e->inputs[2], *gamma = &e->inputs[4];
  const array *dgamma = &e->inputs[5], *dbeta = &e->inputs[6];
  double share = e->scalars[1].real;
  results[0] = array_new(x->type, &x->shape);
  for (int64_t i = 0; i < x->elements; i++) {
    int64_t k = i % mean->elements;
    double d = deviation(&e->inputs[3], k, e), normal = (x->values[i] - mean->values[k]) / d;
    double rest = dy->values[i] - dbeta->values[k] * share - normal * dgamma->values[k] * share;
    results[0].values[i] = rest / d * (gamma->values ? gamma->values[k] : 1);
  }
}

static void examples_normalize_grad_input(const family *f, helio_type type) {
  for (int i = 0; i < 2 * COUNT(batch_shapes); i++) {
    helio_shape shape = batch_shapes[i / 2];
    int64_t rows, columns;
    rows_of(&shape, &rows, &columns);
    example e = example_new(f, type);
    add_input(&e, type, shape);
    add_input(&e, type, shape);
    add_moments(&e, type, &shape);
    add_optional(&e, type, channels_of(&shape), i % 2);
    add_input(&e, type, channels_of(&shape));
    add_input(&e, type, channels_of(&shape));
    e.scalars[0].real = 1e-3;
    e.scalars[1].real = 1 / (double)rows;
    e.once = is_large(&shape);
    check_example(&e);
  }
}

/* ---- layer normalization ---- */

static helio_shape rows_shape(const helio_shape *x) {
  helio_shape shape = *x;
  shape.extent[--shape.rank] = 0;
  return shape;
}

static void reference_layer_norm(const example *e, array *results) {
  const array *x = &e->inputs[0], *gamma = &e->inputs[1], *beta = &e->inputs[2];
  int64_t rows, columns;
  rows_of(&x->shape, &rows, &columns);
  helio_shape outer = rows_shape(&x->shape);
  results[0] = array_new(x->type, &x->shape);
  for (int i = 1; i < 3; i++) results[i] = array_new(x->type, &outer);
  for (int64_t i = 0; i < rows; i++) {
    const double *row = x->values + i * columns;
    double mean = 0, variance = 0;
    for (int64_t k = 0; k < columns; k++) mean += row[k] / (double)columns;
    for (int64_t k = 0; k < columns; k++) variance += (row[k] - mean) * (row[k] - mean) / (double)columns;
    results[1].values[i] = mean;
    results[2].values[i] = 1 / sqrt(variance + e->scalars[0].real);
    for (int64_t k = 0; k < columns; k++) {
      double value = (row[k] - mean) * results[2].values[i] * (gamma->values ? gamma->values[k] : 1);
      results[0].values[i * columns + k] = value + (beta->values ? beta->values[k] : 0);
    }
  }
}

static bool has_columns(const helio_shape *shape) {
  return shape->rank > 0 && shape->extent[shape->rank - 1] > 0;
}

static void examples_layer_norm(const family *f, helio_type type) {
  for (int i = 0; i < 4 * COUNT(row_shapes); i++) {
    helio_shape shape = row_shapes[i / 4];
    if (!has_columns(&shape)) continue;
    example e = example_new(f, type);
    add_between(&e, type, shape, i % 8 == 7 ? 28 : -2, i % 8 == 7 ? 32 : 2);
    add_optional(&e, type, channels_of(&shape), i & 1);
    add_optional(&e, type, channels_of(&shape), i & 2);
    e.scalars[0].real = 1e-3;
    e.once = e.long_sum = is_large(&shape);
    check_example(&e);
  }
}

/* With g = dy gamma: dx = (g − mean(g) − x̂ mean(g x̂)) / deviation */
static void layer_norm_row(const example *e, int64_t i, int64_t columns, array *results) {
  const double *dy = e->inputs[0].values + i * columns, *x = e->inputs[1].values + i * columns;
  const double *gamma = e->inputs[2].values;
  double mean = e->inputs[3].values[i], rate = e->inputs[4].values[i], of_g = 0, of_product = 0;
  for (int64_t k = 0; k < columns; k++) {
    double g = dy[k] * (gamma ? gamma[k] : 1), normal = (x[k] - mean) * rate;
    of_g += g / (double)columns;
    of_product += g * normal / (double)columns;
    results[1].values[k] += dy[k] * normal;
    results[2].values[k] += dy[k];
  }
  for (int64_t k = 0; k < columns; k++) {
    double g = dy[k] * (gamma ? gamma[k] : 1), normal = (x[k] - mean) * rate;
    results[0].values[i * columns + k] = (g - of_g - normal * of_product) * rate;
  }
}

static void reference_layer_norm_grad(const example *e, array *results) {
  const array *x = &e->inputs[1];
  int64_t rows, columns;
  rows_of(&x->shape, &rows, &columns);
  helio_shape channels = channels_of(&x->shape);
  results[0] = array_new(x->type, &x->shape);
  for (int i = 1; i < 3; i++) results[i] = array_new(x->type, &channels);
  for (int64_t i = 0; i < rows; i++) layer_norm_row(e, i, columns, results);
}

static void examples_layer_norm_grad(const family *f, helio_type type) {
  for (int i = 0; i < 2 * COUNT(row_shapes); i++) {
    helio_shape shape = row_shapes[i / 2];
    if (!has_columns(&shape)) continue;
    helio_shape outer = rows_shape(&shape);
    example e = example_new(f, type);
    add_between(&e, type, shape, -0.5, 1);
    add_between(&e, type, shape, -2, 2);
    add_optional(&e, type, channels_of(&shape), i % 2);
    add_between(&e, type, outer, -0.1, 0.1);
    add_between(&e, type, outer, 0.8, 1);
    e.once = e.long_sum = is_large(&shape);
    check_example(&e);
  }
}

#define FAMILY(symbol, name)                                                                                           \
  { .operation = HELIO_OP_##symbol, .examples = examples_##name, .reference = reference_##name }

const family network_families[] = {
    {.operation = HELIO_OP_SOFTMAX, .examples = examples_softmax, .reference = reference_softmax, .low = -8, .high = 8},
    {.operation = HELIO_OP_LOG_SOFTMAX,
     .examples = examples_softmax,
     .reference = reference_softmax,
     .low = -8,
     .high = 8},
    {.operation = HELIO_OP_SOFTMAX_GRAD, .examples = examples_softmax_grad, .reference = reference_softmax_grad},
    {.operation = HELIO_OP_LOG_SOFTMAX_GRAD, .examples = examples_softmax_grad, .reference = reference_softmax_grad},
    {.operation = HELIO_OP_SPARSE_CROSS_ENTROPY,
     .examples = examples_sparse_cross_entropy,
     .reference = reference_cross_entropy},
    FAMILY(CROSS_ENTROPY, cross_entropy),
    FAMILY(MOMENTS, moments),
    FAMILY(NORMALIZE, normalize),
    FAMILY(NORMALIZE_GRAD_SUMS, normalize_grad_sums),
    FAMILY(NORMALIZE_GRAD_INPUT, normalize_grad_input),
    FAMILY(LAYER_NORM, layer_norm),
    FAMILY(LAYER_NORM_GRAD, layer_norm_grad),
    {.operation = 0},
};
