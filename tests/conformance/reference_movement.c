/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that move elements, change their type, or choose among them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

/* ---- cast ---- */

/* Between integers it wraps. A double does not tell what the last bits of the largest ones are. */
static double wrap(helio_type to, double value) {
  double period = to == HELIO_UINT8 ? 0x1p8 : 0x1p32, low = to == HELIO_UINT8 ? 0 : -0x1p31;
  if (to == HELIO_INT64) return value;
  return value > 0x1p53 ? (double)NAN : value - period * floor((value - low) / period);
}

static void reference_cast(const example *e, array *results) {
  bool wraps = !is_float(e->type) && !is_float(e->wanted_type) && e->wanted_type != HELIO_BOOL;
  const array *x = &e->inputs[0];
  results[0] = array_new(e->wanted_type, &x->shape);
  for (int64_t i = 0; i < x->elements; i++) {
    results[0].values[i] = wraps ? wrap(e->wanted_type, x->values[i]) : as_type(e->wanted_type, x->values[i]);
  }
}

static void example_cast(const family *f, helio_type type, helio_type to, helio_shape shape, bool once) {
  example e = example_new(f, type);
  e.wanted_type = to;
  e.once = once;
  add_between(&e, type, shape, type == HELIO_UINT8 || type == HELIO_BOOL ? 0 : -300,
              type == HELIO_BOOL    ? 1
              : type == HELIO_UINT8 ? 255
                                    : 300);
  check_example(&e);
}

/* Ends of ranges and what lies beyond. NaN has no truth value. */
static void special_cast(const family *f, helio_type type, helio_type to) {
  static const double values[] = {0,       0.5,         -0.5,   1.75,   -1.75,    255,        256,    -1,     300.5,
                                  65504,   65536,       1e6,    -1e6,   1e20,     -1e20,      0x1p31, 0x1p63, 3,
                                  -0x1p63, -0x1p31 - 1, 0x1p24, 1e-5,   1e-7,     0x1p31 - 1, -7,     1e38,   16777217,
                                  2.5,     3.5,         -2.5,   0x1p53, INFINITY, -INFINITY,  NAN};
  example e = example_new(f, type);
  e.wanted_type = to;
  add_values(&e, type, (helio_shape)SHAPE(COUNT(values) - (to == HELIO_BOOL)), values);
  check_example(&e);
}

static void examples_cast(const family *f, helio_type type) {
  for (int to = HELIO_FLOAT32; to <= HELIO_BOOL; to++) {
    special_cast(f, type, (helio_type)to);
    for (int i = 0; i < odd_shape_count; i++) example_cast(f, type, (helio_type)to, odd_shapes[i], false);
    if (to == HELIO_FLOAT32 || to == (int)type % HELIO_BOOL + 1)
      example_cast(f, type, (helio_type)to, large_shape(type), true);
  }
}

/* ---- places along axes ---- */

/* The coordinates of element `at`. */
static void coordinates(const helio_shape *shape, int64_t at, int64_t *places) {
  for (int i = shape->rank - 1; i >= 0; i--) {
    places[i] = at % shape->extent[i];
    at /= shape->extent[i];
  }
}

static int64_t element_at(const helio_shape *shape, const int64_t *places) {
  int64_t at = 0;
  for (int i = 0; i < shape->rank; i++) at = at * shape->extent[i] + places[i];
  return at;
}

static void reference_slice(const example *e, array *results) {
  const array *x = &e->inputs[0];
  int64_t places[HELIO_MAX_RANK];
  results[0] = array_new(x->type, &e->wanted);
  for (int64_t i = 0; i < results[0].elements; i++) {
    coordinates(&e->wanted, i, places);
    for (int k = 0; k < x->shape.rank; k++) places[k] += e->attributes.slice.begin[k];
    results[0].values[i] = x->values[element_at(&x->shape, places)];
  }
}

typedef struct part {
  helio_shape x, begin, extents;
} part;

static const part slices[] = {
    {SHAPE(7), SHAPE(2), SHAPE(3)},
    {SHAPE(13, 17), SHAPE(1, 5), SHAPE(11, 7)},
    {SHAPE(13, 17), SHAPE(0, 16), SHAPE(13, 1)},
    {SHAPE(13, 17), SHAPE(12, 0), SHAPE(1, 17)},
    {SHAPE(5, 7, 3), SHAPE(1, 2, 1), SHAPE(3, 4, 2)},
    {SHAPE(5, 7, 3), SHAPE(2, 0, 0), SHAPE(0, 7, 3)},
    {SHAPE(5, 7, 3), SHAPE(0, 7, 0), SHAPE(5, 0, 3)},
    {SHAPE(2, 3, 2, 3, 2, 3, 2, 3), SHAPE(1, 0, 1, 1, 0, 2, 0, 1), SHAPE(1, 3, 1, 2, 2, 1, 1, 2)},
    {NO_AXES, NO_AXES, NO_AXES},
    {SHAPE(12, 64), SHAPE(2, 16), SHAPE(8, 32)}, /* rows that a device may move in larger units */
    {SHAPE(6, 8, 48), SHAPE(1, 0, 16), SHAPE(4, 8, 24)},
    {SHAPE(113, 1033), SHAPE(3, 1), SHAPE(107, 1031)},
};

static void examples_slice(const family *f, helio_type type) {
  for (int i = 0; i < COUNT(slices); i++) {
    example e = example_new(f, type);
    e.attributes.slice.size = sizeof e.attributes.slice;
    memcpy(e.attributes.slice.begin, slices[i].begin.extent, sizeof slices[i].begin.extent);
    e.wanted = slices[i].extents;
    e.once = i == COUNT(slices) - 1;
    add_input(&e, type, slices[i].x);
    check_example(&e);
  }
}

/* Of PAD `wanted` is what is added behind. */
static void reference_pad(const example *e, array *results) {
  const array *x = &e->inputs[0];
  const int64_t *before = e->attributes.slice.begin;
  int64_t places[HELIO_MAX_RANK];
  helio_shape shape = x->shape;
  for (int i = 0; i < shape.rank; i++) shape.extent[i] += before[i] + e->wanted.extent[i];
  results[0] = array_new(x->type, &shape);
  for (int64_t i = 0; i < results[0].elements; i++) {
    bool inside = true;
    coordinates(&shape, i, places);
    for (int k = 0; k < shape.rank; k++) {
      places[k] -= before[k];
      inside &= places[k] >= 0 && places[k] < x->shape.extent[k];
    }
    results[0].values[i] = inside ? x->values[element_at(&x->shape, places)] : as_type(x->type, e->scalars[0].real);
  }
}

static const part pads[] = {
    {SHAPE(7), SHAPE(2), SHAPE(3)},
    {SHAPE(7), SHAPE(0), SHAPE(0)},
    {SHAPE(0), SHAPE(2), SHAPE(1)},
    {SHAPE(13, 17), SHAPE(1, 5), SHAPE(0, 3)},
    {SHAPE(5, 1, 3), SHAPE(0, 1, 2), SHAPE(2, 1, 0)},
    {SHAPE(2, 0, 3), SHAPE(0, 1, 0), SHAPE(0, 1, 0)},
    {SHAPE(2, 3, 4, 5), SHAPE(0, 1, 1, 0), SHAPE(0, 1, 1, 0)},
    {SHAPE(1, 2, 1, 2, 1, 2, 1, 2), SHAPE(1, 0, 1, 0, 1, 0, 1, 0), SHAPE(0, 1, 0, 1, 0, 1, 0, 1)},
    {NO_AXES, NO_AXES, NO_AXES},
    {SHAPE(6, 32), SHAPE(1, 16), SHAPE(2, 48)},
    {SHAPE(4, 6, 16), SHAPE(1, 1, 0), SHAPE(0, 1, 0)},
    {SHAPE(113, 1031), SHAPE(3, 1), SHAPE(1, 5)},
};

static void examples_pad(const family *f, helio_type type) {
  static const double values[] = {0, 1, -1.5, 7};
  for (int i = 0; i < COUNT(pads); i++) {
    example e = example_new(f, type);
    e.attributes.slice.size = sizeof e.attributes.slice;
    memcpy(e.attributes.slice.begin, pads[i].begin.extent, sizeof pads[i].begin.extent);
    e.wanted = pads[i].extents;
    e.scalars[0].real = as_type(type, values[i % COUNT(values)]);
    e.once = i == COUNT(pads) - 1;
    add_input(&e, type, pads[i].x);
    check_example(&e);
  }
}

static void reference_transpose(const example *e, array *results) {
  const array *x = &e->inputs[0];
  const uint32_t *permutation = e->attributes.transpose.permutation;
  int64_t places[HELIO_MAX_RANK], from[HELIO_MAX_RANK];
  helio_shape shape = {.rank = x->shape.rank};
  for (int i = 0; i < shape.rank; i++) shape.extent[i] = x->shape.extent[permutation[i]];
  results[0] = array_new(x->type, &shape);
  for (int64_t i = 0; i < results[0].elements; i++) {
    coordinates(&shape, i, places);
    for (int k = 0; k < shape.rank; k++) from[permutation[k]] = places[k];
    results[0].values[i] = x->values[element_at(&x->shape, from)];
  }
}

static const part transpositions[] = {
    {SHAPE(7), SHAPE(0), NO_AXES},
    {NO_AXES, NO_AXES, NO_AXES},
    {SHAPE(13, 17), SHAPE(1, 0), NO_AXES},
    {SHAPE(13, 17), SHAPE(0, 1), NO_AXES},
    {SHAPE(1, 17), SHAPE(1, 0), NO_AXES},
    {SHAPE(67, 131), SHAPE(1, 0), NO_AXES},
    {SHAPE(0, 5), SHAPE(1, 0), NO_AXES},
    {SHAPE(5, 7, 3), SHAPE(2, 0, 1), NO_AXES},
    {SHAPE(5, 7, 3), SHAPE(1, 0, 2), NO_AXES},
    {SHAPE(5, 7, 3), SHAPE(0, 2, 1), NO_AXES},
    {SHAPE(2, 3, 5, 7), SHAPE(0, 2, 1, 3), NO_AXES},
    {SHAPE(2, 3, 5, 7), SHAPE(3, 2, 1, 0), NO_AXES},
    {SHAPE(2, 3, 1, 3, 2, 1, 2, 3), SHAPE(7, 0, 6, 1, 5, 2, 4, 3), NO_AXES},
    {SHAPE(3, 35, 41), SHAPE(0, 2, 1), NO_AXES}, /* several planes */
    {SHAPE(9, 4, 35), SHAPE(2, 1, 0), NO_AXES},
    {SHAPE(33, 3, 10, 2), SHAPE(1, 3, 2, 0), NO_AXES},
    {SHAPE(6, 5, 16), SHAPE(1, 0, 2), NO_AXES},
    {SHAPE(113, 1033), SHAPE(1, 0), NO_AXES},
    {SHAPE(17, 61, 257), SHAPE(1, 0, 2), NO_AXES},
};

static void examples_transpose(const family *f, helio_type type) {
  for (int i = 0; i < COUNT(transpositions); i++) {
    example e = example_new(f, type);
    e.attributes.transpose.size = sizeof e.attributes.transpose;
    for (int k = 0; k < transpositions[i].begin.rank; k++) {
      e.attributes.transpose.permutation[k] = (uint32_t)transpositions[i].begin.extent[k];
    }
    e.once = i >= COUNT(transpositions) - 2;
    add_input(&e, type, transpositions[i].x);
    check_example(&e);
  }
}

/* ---- concat ---- */

static void reference_concat(const example *e, array *results) {
  int axis = (int)e->attributes.axis.axis;
  int64_t places[HELIO_MAX_RANK], begin = 0;
  helio_shape shape = e->inputs[0].shape;
  for (int i = 1; i < e->input_count; i++) shape.extent[axis] += e->inputs[i].shape.extent[axis];
  results[0] = array_new(e->type, &shape);
  for (int i = 0; i < e->input_count; i++) {
    const array *x = &e->inputs[i];
    for (int64_t k = 0; k < x->elements; k++) {
      coordinates(&x->shape, k, places);
      places[axis] += begin;
      results[0].values[element_at(&shape, places)] = x->values[k];
    }
    begin += x->shape.extent[axis];
  }
}

typedef struct joint {
  helio_shape shape;
  uint32_t axis;
  int64_t extents[MOST_INPUTS + 1]; /* along the axis, −1: no more */
} joint;

static const joint joints[] = {
    {SHAPE(7), 0, {7, -1}},
    {SHAPE(7), 0, {1, 0, 5, 3, -1}},
    {SHAPE(5, 7), 0, {2, 3, 11, -1}},
    {SHAPE(5, 7), 1, {1, 2, 3, 5, 7, 11, 13, 0, 1, -1}},
    {SHAPE(3, 4, 5), 1, {4, 1, -1}},
    {SHAPE(3, 4, 5), 2, {5, 1, 3, -1}},
    {SHAPE(3, 0, 5), 2, {1, 2, -1}},
    {SHAPE(2, 1, 3, 1, 2, 1, 3, 2), 4, {2, 3, -1}},
    {SHAPE(7, 16), 1, {16, 32, 0, 48, -1}},
    {SHAPE(3, 4), 1, {1, 2, 1, 3, 1, 2, 1, 3, 1, 2, 1, 3, 1, 2, 1, 3, 1, 2, -1}},
    {SHAPE(113, 1), 1, {401, 1, 657, -1}},
};

static void examples_concat(const family *f, helio_type type) {
  for (int i = 0; i < COUNT(joints); i++) {
    example e = example_new(f, type);
    e.attributes.axis = (helio_axis_attributes){.size = sizeof e.attributes.axis, .axis = joints[i].axis};
    e.once = i == COUNT(joints) - 1;
    for (int k = 0; joints[i].extents[k] >= 0; k++) {
      helio_shape shape = joints[i].shape;
      shape.extent[joints[i].axis] = joints[i].extents[k];
      add_input(&e, type, shape);
    }
    check_example(&e);
  }
}

/* ---- rows by index ---- */

static int64_t row_length(const helio_shape *shape) {
  int64_t length = 1;
  for (int i = 1; i < shape->rank; i++) length *= shape->extent[i];
  return length;
}

static void reference_gather(const example *e, array *results) {
  const array *x = &e->inputs[0], *indices = &e->inputs[1];
  int64_t length = row_length(&x->shape);
  helio_shape shape = indices->shape;
  for (int i = 1; i < x->shape.rank; i++) shape.extent[shape.rank++] = x->shape.extent[i];
  results[0] = array_new(x->type, &shape);
  for (int64_t i = 0; i < indices->elements; i++) {
    memcpy(results[0].values + i * length, x->values + (int64_t)indices->values[i] * length,
           (size_t)length * sizeof *x->values);
  }
}

static void example_gather(const family *f, helio_type type, helio_type index, helio_shape table, helio_shape shape) {
  example e = example_new(f, type);
  add_input(&e, type, table);
  add_between(&e, index, shape, 0, (double)(table.extent[0] - 1));
  e.once = shape_elements(&shape) > 1000;
  check_example(&e);
}

/* One bad index among good ones: past the end by one and by much, and negative. */
static void bad_rows(const family *f, helio_type type, helio_type index) {
  const int64_t bad[] = {11, -1, 1000000, INT32_MIN};
  for (int i = 0; i < COUNT(bad); i++) {
    example e = example_new(f, type);
    bool gather = f->operation == HELIO_OP_GATHER;
    add_input(&e, type, gather ? (helio_shape)SHAPE(11, 3) : (helio_shape)SHAPE(7, 3));
    add_indices(&e, index, 7, 11);
    e.inputs[1].values[5] = (double)bad[i];
    e.wanted = (helio_shape)SHAPE(11);
    check_bad_data(&e, bad[i]);
  }
}

static void examples_gather(const family *f, helio_type type) {
  for (int i = 0; i < 2; i++) {
    helio_type index = i ? HELIO_INT64 : HELIO_INT32;
    bad_rows(f, type, index);
    example_gather(f, type, index, (helio_shape)SHAPE(11, 3), (helio_shape)SHAPE(7));
    example_gather(f, type, index, (helio_shape)SHAPE(1), (helio_shape)SHAPE(1));
    example_gather(f, type, index, (helio_shape)SHAPE(13), (helio_shape)SHAPE(5, 7));
    example_gather(f, type, index, (helio_shape)SHAPE(13, 2, 3), (helio_shape)SHAPE(5, 1, 2));
    example_gather(f, type, index, (helio_shape)SHAPE(13, 17), (helio_shape)NO_AXES);
    example_gather(f, type, index, (helio_shape)SHAPE(13, 17), (helio_shape)SHAPE(0));
    example_gather(f, type, index, (helio_shape)SHAPE(13, 0), (helio_shape)SHAPE(5));
    example_gather(f, type, index, (helio_shape)SHAPE(13, 1), (helio_shape)SHAPE(67));
    example_gather(f, type, index, (helio_shape)SHAPE(13, 16), (helio_shape)SHAPE(67));
    example_gather(f, type, index, (helio_shape)SHAPE(509, 67), (helio_shape)SHAPE(4003));
  }
}

static void reference_scatter_add(const example *e, array *results) {
  const array *x = &e->inputs[0], *indices = &e->inputs[1];
  int64_t length = row_length(&x->shape);
  helio_shape shape = x->shape;
  shape.extent[0] = e->wanted.extent[0];
  results[0] = array_new(x->type, &shape);
  for (int64_t i = 0; i < indices->elements; i++) {
    double *row = results[0].values + (int64_t)indices->values[i] * length;
    for (int64_t k = 0; k < length; k++) row[k] += x->values[i * length + k];
  }
}

static void example_scatter_add(const family *f, helio_type type, helio_type index, helio_shape x, int64_t rows) {
  example e = example_new(f, type);
  add_input(&e, type, x);
  add_indices(&e, index, x.extent[0], rows);
  e.wanted = (helio_shape)SHAPE(rows);
  e.once = shape_elements(&x) > 1000;
  e.long_sum = e.once;
  check_example(&e);
}

static void examples_scatter_add(const family *f, helio_type type) {
  for (int i = 0; i < 2; i++) {
    helio_type index = i ? HELIO_INT64 : HELIO_INT32;
    bad_rows(f, type, index);
    example_scatter_add(f, type, index, (helio_shape)SHAPE(7, 3), 11);
    example_scatter_add(f, type, index, (helio_shape)SHAPE(67, 3), 2);
    example_scatter_add(f, type, index, (helio_shape)SHAPE(13), 5);
    example_scatter_add(f, type, index, (helio_shape)SHAPE(13, 2, 3), 1);
    example_scatter_add(f, type, index, (helio_shape)SHAPE(0, 3), 5);
    example_scatter_add(f, type, index, (helio_shape)SHAPE(5, 0), 3);
    example_scatter_add(f, type, index, (helio_shape)SHAPE(2003, 67), 509);
    example_scatter_add(f, type, index, (helio_shape)SHAPE(131, 1), 4099);
    example_scatter_add(f, type, index, (helio_shape)SHAPE(131, 523), 3);
  }
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The distinct indices in ascending order, to be freed. One below zero is none. */
static double *distinct_indices(const array *indices, size_t *count) {
  double *list = calloc((size_t)indices->elements + 1, sizeof *list);
  size_t all = 0, distinct = 0;
  if (!list) exit(2);
  for (int64_t i = 0; i < indices->elements; i++) {
    if (indices->values[i] >= 0) list[all++] = indices->values[i];
  }
  qsort(list, all, sizeof *list, by_value);
  for (size_t i = 0; i < all; i++) {
    if (i == 0 || list[i] > list[i - 1]) list[distinct++] = list[i];
  }
  *count = distinct;
  return list;
}

static void reference_combine_rows(const example *e, array *results) {
  const array *x = &e->inputs[0], *indices = &e->inputs[1];
  int64_t length = row_length(&x->shape);
  results[0] = array_new(x->type, &x->shape);
  results[1] = array_new(indices->type, &indices->shape);
  results[2] = array_new(x->type, &x->shape);
  size_t count;
  double *distinct = distinct_indices(indices, &count);
  for (int64_t i = 0; i < indices->elements; i++) results[1].values[i] = i < (int64_t)count ? distinct[i] : -1;
  for (int64_t i = 0; i < indices->elements; i++) {
    const double *place = bsearch(&indices->values[i], distinct, count, sizeof *distinct, by_value);
    for (int64_t k = 0; place && k < length; k++) {
      double value = x->values[i * length + k];
      results[0].values[(place - distinct) * length + k] += value;
      results[2].values[(place - distinct) * length + k] += value * value;
    }
  }
  free(distinct);
}

/* Every `none`th index is none; 0: all are some. */
static void example_combine_rows(const family *f, helio_type type, helio_type index, helio_shape x, int64_t below,
                                 int64_t none) {
  example e = example_new(f, type);
  add_input(&e, type, x);
  add_indices(&e, index, x.extent[0], below);
  for (int64_t i = 1; none > 0 && i < x.extent[0]; i += none) e.inputs[1].values[i] = -1;
  e.once = shape_elements(&x) > 1000;
  e.long_sum = e.once;
  check_example(&e);
}

/* A few rows, none, one index for all; more than one block sorts, of many indices and of few. */
static void examples_combine_rows(const family *f, helio_type type) {
  for (int i = 0; i < 2; i++) {
    helio_type index = i ? HELIO_INT64 : HELIO_INT32;
    example_combine_rows(f, type, index, (helio_shape)SHAPE(7, 3), 5, 0);
    example_combine_rows(f, type, index, (helio_shape)SHAPE(1, 1), 1, 0);
    example_combine_rows(f, type, index, (helio_shape)SHAPE(13), 1, 0);
    example_combine_rows(f, type, index, (helio_shape)SHAPE(17, 2, 3), 1000000, 3);
    example_combine_rows(f, type, index, (helio_shape)SHAPE(3, 2), 7, 1);
    example_combine_rows(f, type, index, (helio_shape)SHAPE(0, 3), 5, 0);
    example_combine_rows(f, type, index, (helio_shape)SHAPE(5, 0), 3, 0);
    example_combine_rows(f, type, index, (helio_shape)SHAPE(401, 257), 97, 0);
    example_combine_rows(f, type, index, (helio_shape)SHAPE(5003, 3), i ? 1000000000000 : 1000000000, 7);
    example_combine_rows(f, type, index, (helio_shape)SHAPE(3001, 5), 11, 2);
    example_combine_rows(f, type, index, (helio_shape)SHAPE(1024, 67), 1, 0);
  }
}

/* ---- choice ---- */

static void widen(helio_shape *shape, const helio_shape *by) {
  helio_shape result = {.rank = shape->rank > by->rank ? shape->rank : by->rank};
  for (int i = 0; i < result.rank; i++) {
    int at_a = i - (result.rank - shape->rank), at_b = i - (result.rank - by->rank);
    int64_t x = at_a < 0 ? 1 : shape->extent[at_a], y = at_b < 0 ? 1 : by->extent[at_b];
    result.extent[i] = x == 1 ? y : x;
  }
  *shape = result;
}

static void reference_where(const example *e, array *results) {
  const array *a = &e->inputs[0], *b = &e->inputs[1], *condition = &e->inputs[2];
  helio_shape shape = a->shape;
  widen(&shape, &b->shape);
  widen(&shape, &condition->shape);
  results[0] = array_new(a->type, &shape);
  for (int64_t i = 0; i < results[0].elements; i++) {
    const array *from = condition->values[broadcast_index(&condition->shape, &shape, i)] != 0 ? a : b;
    results[0].values[i] = from->values[broadcast_index(&from->shape, &shape, i)];
  }
}

static const part choices[] = {
    {SHAPE(7), SHAPE(7), SHAPE(7)},
    {NO_AXES, NO_AXES, NO_AXES},
    {SHAPE(13, 17), SHAPE(13, 17), SHAPE(13, 17)},
    {SHAPE(13, 17), NO_AXES, SHAPE(13, 17)},
    {NO_AXES, SHAPE(13, 17), SHAPE(13, 17)},
    {SHAPE(13, 17), SHAPE(17), SHAPE(13, 1)},
    {NO_AXES, NO_AXES, SHAPE(13, 17)},
    {SHAPE(3, 1, 5), SHAPE(7, 1), SHAPE(2, 1, 1, 1)},
    {SHAPE(5, 0), SHAPE(5, 1), SHAPE(1)},
    {SHAPE(13, 24), SHAPE(24), SHAPE(13, 1)},
    {SHAPE(13, 1), SHAPE(13, 24), SHAPE(24)},
    {SHAPE(113, 1033), SHAPE(113, 1033), SHAPE(113, 1033)},
    {SHAPE(113, 1033), SHAPE(1033), SHAPE(113, 1)},
};

static void examples_where(const family *f, helio_type type) {
  for (int i = 0; i < COUNT(choices); i++) {
    example e = example_new(f, type);
    add_input(&e, type, choices[i].x);
    add_input(&e, type, choices[i].begin);
    add_input(&e, HELIO_BOOL, choices[i].extents);
    if (is_float(type) && e.inputs[0].elements > 3) e.inputs[0].values[2] = NAN;
    e.once = i >= COUNT(choices) - 2;
    check_example(&e);
  }
}

static void reference_one_hot(const example *e, array *results) {
  const array *indices = &e->inputs[0];
  helio_shape shape = indices->shape;
  int64_t depth = e->wanted.extent[0];
  shape.extent[shape.rank++] = depth;
  results[0] = array_new(e->wanted_type, &shape);
  for (int64_t i = 0; i < indices->elements; i++) {
    double index = indices->values[i];
    if (index >= 0 && index < (double)depth) results[0].values[i * depth + (int64_t)index] = 1;
  }
}

static void example_one_hot(const family *f, helio_type type, helio_type to, helio_shape shape, int64_t depth) {
  example e = example_new(f, type);
  e.wanted_type = to;
  e.wanted = (helio_shape)SHAPE(depth);
  add_between(&e, type, shape, -2, (double)depth + 1);
  e.once = shape_elements(&shape) * depth > 10000;
  check_example(&e);
}

static void examples_one_hot(const family *f, helio_type type) {
  for (int to = HELIO_FLOAT32; to <= HELIO_BOOL; to++) {
    for (int i = 0; i < odd_shape_count; i++) {
      if (odd_shapes[i].rank < HELIO_MAX_RANK) example_one_hot(f, type, (helio_type)to, odd_shapes[i], 1 + i % 7);
    }
    example_one_hot(f, type, (helio_type)to, (helio_shape)SHAPE(7), 0);
    example_one_hot(f, type, (helio_type)to, (helio_shape)SHAPE(1009), 257);
  }
}

/* ---- what the core does by itself: only the way back is checked ---- */

static void reference_same(const example *e, array *results) {
  results[0] = array_copy(&e->inputs[0]);
  results[0].shape = e->wanted;
}

#define FAMILY(symbol, name)                                                                                           \
  { .operation = HELIO_OP_##symbol, .examples = examples_##name, .reference = reference_##name }

const family movement_families[] = {
    FAMILY(CAST, cast),
    FAMILY(SLICE, slice),
    FAMILY(CONCAT, concat),
    FAMILY(TRANSPOSE, transpose),
    FAMILY(PAD, pad),
    FAMILY(GATHER, gather),
    FAMILY(SCATTER_ADD, scatter_add),
    FAMILY(COMBINE_ROWS, combine_rows),
    FAMILY(WHERE, where),
    FAMILY(ONE_HOT, one_hot),
    {.operation = HELIO_OP_COPY, .reference = reference_same},
    {.operation = HELIO_OP_ALL_REDUCE, .reference = reference_same}, /* of the one replica that there is here */
    {.operation = HELIO_OP_RESHAPE, .reference = reference_same},
    {.operation = HELIO_OP_EXPAND_DIMS, .reference = reference_same},
    {.operation = HELIO_OP_SQUEEZE, .reference = reference_same},
    {.operation = 0},
};
