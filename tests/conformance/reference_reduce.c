/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over axes, the largest and their places, matrix products. */
#include <math.h>
#include <stdlib.h>

#include "conformance.h"

/* ---- over axes ---- */

static void sum_of(const double *x, int64_t count, double *result) {
  *result = 0;
  for (int64_t i = 0; i < count; i++) *result += x[i];
}

static void mean_of(const double *x, int64_t count, double *result) {
  sum_of(x, count, result);
  *result = count > 0 ? *result / (double)count : (double)NAN;
}

/* Over no element an infinity stands for the end of the type's range. */
static void largest_of(const double *x, int64_t count, double *result) {
  *result = -INFINITY;
  for (int64_t i = 0; i < count; i++) *result = isnan(x[i]) || x[i] > *result ? x[i] : *result;
}

static void smallest_of(const double *x, int64_t count, double *result) {
  *result = INFINITY;
  for (int64_t i = 0; i < count; i++) *result = isnan(x[i]) || x[i] < *result ? x[i] : *result;
}

static helio_shape reduced_shape(const helio_shape *x, uint32_t axes, bool keep) {
  helio_shape result = {0};
  for (int i = 0; i < x->rank; i++) {
    bool reduced = axes >> i & 1;
    if (!reduced || keep) result.extent[result.rank++] = reduced ? 1 : x->extent[i];
  }
  return result;
}

/* Into which element of the result element `at` goes. */
static int64_t goes_into(const helio_shape *x, uint32_t axes, int64_t at) {
  int64_t into = 0, stride = 1;
  for (int i = x->rank - 1; i >= 0; i--) {
    if (!(axes >> i & 1)) {
      into += at % x->extent[i] * stride;
      stride *= x->extent[i];
    }
    at /= x->extent[i];
  }
  return into;
}

/* Collects the elements of each result, then reduces them. A NaN that was met stays. */
static void reference_reduce(const example *e, array *results) {
  const array *x = &e->inputs[0];
  uint32_t axes = e->attributes.reduce.axes;
  helio_shape shape = reduced_shape(&x->shape, axes, e->keep_dims);
  results[0] = array_new(x->type, &shape);
  int64_t count = results[0].elements ? x->elements / results[0].elements : 0;
  double *sorted = calloc((size_t)x->elements + 1, sizeof *sorted);
  int64_t *filled = calloc((size_t)results[0].elements + 1, sizeof *filled);
  for (int64_t i = 0; sorted && filled && i < x->elements; i++) {
    int64_t into = goes_into(&x->shape, axes, i);
    sorted[into * count + filled[into]++] = x->values[i];
  }
  for (int64_t i = 0; sorted && filled && i < results[0].elements; i++) {
    double *one = sorted + i * count;
    bool met = false;
    for (int64_t k = 0; k < count; k++) met |= isnan(one[k]);
    e->family->is.sum(one, count, &results[0].values[i]);
    results[0].values[i] = met ? (double)NAN : results[0].values[i];
    if (!is_float(x->type)) results[0].values[i] = as_type(x->type, results[0].values[i]);
  }
  free(sorted);
  free(filled);
}

typedef struct reduction {
  helio_shape shape;
  uint32_t axes;
} reduction;

static const reduction reductions[] = {
    {NO_AXES, 0},
    {SHAPE(1), 1},
    {SHAPE(7), 1},
    {SHAPE(7), 0},
    {SHAPE(0), 1},
    {SHAPE(1031), 1},
    {SHAPE(13, 17), 1},
    {SHAPE(13, 17), 2},
    {SHAPE(13, 17), 3},
    {SHAPE(13, 17), 0},
    {SHAPE(0, 5), 1},
    {SHAPE(0, 5), 2},
    {SHAPE(5, 0), 2},
    {SHAPE(67, 131), 1},
    {SHAPE(67, 131), 2},
    {SHAPE(3, 1, 5), 2},
    {SHAPE(5, 7, 11), 1},
    {SHAPE(5, 7, 11), 2},
    {SHAPE(5, 7, 11), 5},
    {SHAPE(5, 7, 11), 6},
    {SHAPE(2, 3, 5, 7), 10},
    {SHAPE(2, 3, 5, 7), 7},
    {SHAPE(2, 1, 3, 1, 2, 1, 3, 2), 0x55},
    {SHAPE(2, 1, 3, 1, 2, 1, 3, 2), 0xFF},
    {SHAPE(2, 0, 3), 2},
    {SHAPE(113, 1033), 1},
    {SHAPE(113, 1033), 2},
    {SHAPE(113, 1033), 3},
    {SHAPE(17, 61, 257), 5},
    {SHAPE(4999, 33), 1},
    {SHAPE(37, 3, 1031), 5},
    {SHAPE(61, 3, 67, 5), 5},
};

static void special_reduce(const family *f, helio_type type) {
  for (int i = 0; i < 3 && is_float(type); i++) {
    example e = example_new(f, type);
    e.attributes.reduce = (helio_reduce_attributes){.size = sizeof e.attributes.reduce, .axes = i == 2 ? 1 : 2};
    add_input(&e, type, (helio_shape)SHAPE(13, 67));
    e.inputs[0].values[67 * 3 + 60] = NAN;
    e.inputs[0].values[67 * 7 + 1] = i == 0 ? INFINITY : NAN;
    e.inputs[0].values[67 * 12 + 66] = i == 0 ? -INFINITY : NAN;
    check_example(&e);
  }
}

static void examples_reduce(const family *f, helio_type type) {
  special_reduce(f, type);
  for (int i = 0; i < 2 * COUNT(reductions); i++) {
    const reduction *how = &reductions[i / 2];
    example e = example_new(f, type);
    e.attributes.reduce = (helio_reduce_attributes){.size = sizeof e.attributes.reduce, .axes = how->axes};
    e.keep_dims = i % 2;
    e.once = shape_elements(&how->shape) > 10000;
    e.long_sum = e.once;
    if (e.once && e.keep_dims) continue;
    add_input(&e, type, how->shape);
    check_example(&e);
  }
}

/* ---- the largest along an axis ---- */

static void reference_argmax(const example *e, array *results) {
  const array *x = &e->inputs[0];
  int axis = (int)e->attributes.axis.axis;
  helio_shape shape = reduced_shape(&x->shape, 1u << axis, false);
  int64_t count = x->shape.extent[axis], inner = 1;
  for (int i = axis + 1; i < x->shape.rank; i++) inner *= x->shape.extent[i];
  results[0] = array_new(HELIO_INT64, &shape);
  for (int64_t i = 0; i < results[0].elements; i++) {
    const double *first = x->values + i / inner * count * inner + i % inner;
    for (int64_t k = 1; k < count; k++) {
      if (first[k * inner] > first[(int64_t)results[0].values[i] * inner]) results[0].values[i] = (double)k;
    }
  }
}

static const reduction argmaxes[] = {
    {SHAPE(1), 0},         {SHAPE(7), 0},         {SHAPE(13, 17), 0},    {SHAPE(13, 17), 1},
    {SHAPE(5, 7, 11), 0},  {SHAPE(5, 7, 11), 1},  {SHAPE(5, 7, 11), 2},  {SHAPE(5, 1, 3), 1},
    {SHAPE(0, 5), 1},      {SHAPE(5, 0), 0},      {SHAPE(67, 131), 1},   {SHAPE(67, 131), 0},
    {SHAPE(113, 1033), 0}, {SHAPE(113, 1033), 1}, {SHAPE(10007, 10), 1}, {SHAPE(1031), 0},
};

/* Values on a coarse grid, so that there are equals among them. */
static void make_ties(array *a) {
  for (int64_t i = 0; i < a->elements; i++)
    a->values[i] = is_float(a->type) ? rint(a->values[i] * 4) / 4 : rint(a->values[i] / 8);
}

static void examples_argmax(const family *f, helio_type type) {
  for (int i = 0; i < 2 * COUNT(argmaxes); i++) {
    const reduction *how = &argmaxes[i / 2];
    example e = example_new(f, type);
    e.attributes.axis = (helio_axis_attributes){.size = sizeof e.attributes.axis, .axis = how->axes};
    e.once = shape_elements(&how->shape) > 10000;
    add_input(&e, type, how->shape);
    if (i % 2) make_ties(&e.inputs[0]);
    check_example(&e);
  }
}

/* How many of the row are larger, or equal and before: the place of element `at` in the order. */
static int64_t order_of(const double *row, int64_t columns, int64_t at) {
  int64_t order = 0;
  for (int64_t i = 0; i < columns; i++) order += row[i] > row[at] || (row[i] == row[at] && i < at);
  return order;
}

static void reference_top_k(const example *e, array *results) {
  const array *x = &e->inputs[0];
  int64_t rows, columns, k = e->wanted.extent[0];
  helio_shape shape = x->shape;
  rows_of(&shape, &rows, &columns);
  shape.extent[shape.rank - 1] = k;
  results[0] = array_new(x->type, &shape);
  results[1] = array_new(HELIO_INT32, &shape);
  for (int64_t i = 0; i < rows * columns; i++) {
    int64_t order = order_of(x->values + i / columns * columns, columns, i % columns);
    if (order >= k) continue;
    results[0].values[i / columns * k + order] = x->values[i];
    results[1].values[i / columns * k + order] = (double)(i % columns);
  }
}

static const reduction tops[] = {
    {SHAPE(1), 1},        {SHAPE(7), 0},        {SHAPE(7), 7},      {SHAPE(13, 17), 1},     {SHAPE(13, 17), 5},
    {SHAPE(13, 17), 17},  {SHAPE(3, 5, 11), 3}, {SHAPE(0, 5), 2},   {SHAPE(67, 131), 64},   {SHAPE(1009, 101), 5},
    {SHAPE(2003, 67), 1}, {SHAPE(5, 0), 0},     {SHAPE(1, 257), 9}, {SHAPE(3, 1031), 1000},
};

static void examples_top_k(const family *f, helio_type type) {
  for (int i = 0; i < 2 * COUNT(tops); i++) {
    example e = example_new(f, type);
    e.wanted = (helio_shape)SHAPE(tops[i / 2].axes);
    e.once = shape_elements(&tops[i / 2].shape) > 10000;
    add_input(&e, type, tops[i / 2].shape);
    if (i % 2) make_ties(&e.inputs[0]);
    check_example(&e);
  }
}

static void reference_in_top_k(const example *e, array *results) {
  const array *x = &e->inputs[0], *targets = &e->inputs[1];
  int64_t columns = x->shape.extent[1];
  results[0] = array_new(HELIO_BOOL, &targets->shape);
  for (int64_t i = 0; i < targets->elements; i++) {
    const double *row = x->values + i * columns;
    uint32_t larger = 0;
    if (targets->values[i] < 0 || targets->values[i] >= (double)columns) continue; /* no target is among them */
    for (int64_t k = 0; k < columns; k++) larger += row[k] > row[(int64_t)targets->values[i]];
    results[0].values[i] = larger < e->attributes.top_k.k;
  }
}

static void examples_in_top_k(const family *f, helio_type type) {
  for (int i = 0; i < 4 * COUNT(tops); i++) {
    helio_shape shape = tops[i / 4].shape;
    if (shape.rank != 2 || shape.extent[1] == 0) continue;
    example e = example_new(f, type);
    e.attributes.top_k = (helio_top_k_attributes){.size = sizeof e.attributes.top_k, .k = 1 + tops[i / 4].axes};
    e.once = shape_elements(&shape) > 10000;
    add_input(&e, type, shape);
    if (i % 2) make_ties(&e.inputs[0]);
    add_indices(&e, i & 2 ? HELIO_INT64 : HELIO_INT32, shape.extent[0], shape.extent[1]);
    if (shape.extent[0] > 2) e.inputs[1].values[1] = -1, e.inputs[1].values[2] = (double)shape.extent[1];
    check_example(&e);
  }
}

/* ---- products ---- */

static helio_shape product_shape(const example *e, int64_t *inner) {
  const helio_shape *a = &e->inputs[0].shape, *b = &e->inputs[1].shape;
  const helio_matmul_attributes *how = &e->attributes.matmul;
  helio_shape shape = {.rank = a->rank > b->rank ? a->rank : b->rank};
  for (int i = 0; i < shape.rank - 2; i++) {
    int at_a = i - (shape.rank - a->rank), at_b = i - (shape.rank - b->rank);
    int64_t x = at_a < 0 ? 1 : a->extent[at_a], y = at_b < 0 ? 1 : b->extent[at_b];
    shape.extent[i] = x == 1 ? y : x;
  }
  shape.extent[shape.rank - 2] = a->extent[a->rank - (how->transpose_a ? 1 : 2)];
  shape.extent[shape.rank - 1] = b->extent[b->rank - (how->transpose_b ? 2 : 1)];
  *inner = a->extent[a->rank - (how->transpose_a ? 2 : 1)];
  return shape;
}

/* The matrix of `x` that belongs to matrix `batch` of the result. */
static const double *matrix_of(const array *x, const helio_shape *result, int64_t batch) {
  helio_shape of = x->shape, outer = *result;
  int64_t size = of.extent[of.rank - 1] * of.extent[of.rank - 2];
  of.rank -= 2;
  outer.rank -= 2;
  return x->values + broadcast_index(&of, &outer, batch) * size;
}

static void reference_matmul(const example *e, array *results) {
  const helio_matmul_attributes *how = &e->attributes.matmul;
  int64_t inner;
  helio_shape shape = product_shape(e, &inner);
  int64_t rows = shape.extent[shape.rank - 2], columns = shape.extent[shape.rank - 1];
  results[0] = array_new(e->type, &shape);
  for (int64_t i = 0; i < results[0].elements; i++) {
    int64_t row = i / columns % rows, column = i % columns, batch = i / columns / rows;
    const double *a = matrix_of(&e->inputs[0], &shape, batch) + (how->transpose_a ? row : row * inner);
    const double *b = matrix_of(&e->inputs[1], &shape, batch) + (how->transpose_b ? column * inner : column);
    int64_t step_a = how->transpose_a ? rows : 1, step_b = how->transpose_b ? 1 : columns;
    double sum = e->inputs[2].values ? e->inputs[2].values[column] : 0;
    for (int64_t k = 0; k < inner; k++) sum += a[k * step_a] * b[k * step_b];
    results[0].values[i] = activate(how->activation, sum);
  }
}

typedef struct product {
  helio_shape batch_a, batch_b;
  int64_t rows, inner, columns;
} product;

static const product products[] = {
    {NO_AXES, NO_AXES, 1, 1, 1},       {NO_AXES, NO_AXES, 2, 3, 2},         {NO_AXES, NO_AXES, 13, 17, 11},
    {NO_AXES, NO_AXES, 1, 67, 31},     {NO_AXES, NO_AXES, 31, 67, 1},       {NO_AXES, NO_AXES, 7, 1, 5},
    {NO_AXES, NO_AXES, 0, 3, 5},       {NO_AXES, NO_AXES, 3, 0, 5},         {NO_AXES, NO_AXES, 3, 5, 0},
    {NO_AXES, NO_AXES, 61, 127, 67},   {SHAPE(3), NO_AXES, 5, 7, 11},       {NO_AXES, SHAPE(3), 5, 7, 11},
    {SHAPE(2, 1), SHAPE(3), 5, 7, 2},  {SHAPE(1, 3), SHAPE(2, 1), 2, 3, 5}, {SHAPE(0), SHAPE(0), 2, 3, 5},
    {NO_AXES, NO_AXES, 127, 257, 131}, {SHAPE(17), SHAPE(17), 31, 33, 29},
};

static helio_shape matrix_shape(helio_shape batch, int64_t first, int64_t second, bool swapped) {
  batch.extent[batch.rank++] = swapped ? second : first;
  batch.extent[batch.rank++] = swapped ? first : second;
  return batch;
}

static void example_matmul(const family *f, helio_type type, const product *p, uint32_t variant, uint32_t activation) {
  example e = example_new(f, type);
  bool a = variant & 1, b = variant & 2, large = p->rows * p->inner * p->columns > 1000000;
  e.attributes.matmul = (helio_matmul_attributes){
      .size = sizeof e.attributes.matmul, .transpose_a = a, .transpose_b = b, .activation = activation};
  e.once = large;
  add_input(&e, type, matrix_shape(p->batch_a, p->rows, p->inner, a));
  add_input(&e, type, matrix_shape(p->batch_b, p->inner, p->columns, b));
  if (variant & 4) {
    add_input(&e, type, (helio_shape)SHAPE(p->columns));
  } else {
    add_absent(&e);
  }
  check_example(&e);
}

static void examples_matmul(const family *f, helio_type type) {
  uint32_t last = is_float(type) ? HELIO_GELU_TANH : HELIO_RELU;
  for (int i = 0; i < COUNT(products); i++) {
    for (uint32_t variant = 0; variant < 8; variant++) example_matmul(f, type, &products[i], variant, 0);
  }
  for (uint32_t activation = 1; activation <= last; activation++) {
    example_matmul(f, type, &products[2], activation % 4, activation);
    example_matmul(f, type, &products[9], 4 + activation % 4, activation);
  }
}

#define REDUCE(symbol, function, least, most)                                                                          \
  {                                                                                                                    \
    .operation = HELIO_OP_##symbol, .examples = examples_reduce, .reference = reference_reduce, .low = least,          \
    .high = most, .is.sum = function                                                                                   \
  }

/* Sums whose terms cancel would have no norm to be measured by. */
const family reduce_families[] = {
    REDUCE(SUM, sum_of, -0.9, 1),
    REDUCE(MEAN, mean_of, -0.5, 1),
    REDUCE(MAX, largest_of, -1, 1),
    REDUCE(MIN, smallest_of, -1, 1),
    {.operation = HELIO_OP_ARGMAX, .examples = examples_argmax, .reference = reference_argmax},
    {.operation = HELIO_OP_TOP_K, .examples = examples_top_k, .reference = reference_top_k},
    {.operation = HELIO_OP_IN_TOP_K, .examples = examples_in_top_k, .reference = reference_in_top_k},
    {.operation = HELIO_OP_MATMUL, .examples = examples_matmul, .reference = reference_matmul},
    {.operation = 0},
};
