/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products on the preferred device against three loops in double precision. */
#include "reference.h"

typedef struct product {
  helio_shape a, b; /* as the product sees them: transposed arguments are stored the other way round */
  bool transpose_a, transpose_b, bias, relu;
} product;

static void swap_last(helio_shape *shape) {
  int64_t extent = shape->extent[shape->rank - 1];
  shape->extent[shape->rank - 1] = shape->extent[shape->rank - 2];
  shape->extent[shape->rank - 2] = extent;
}

static helio_shape stored(helio_shape shape, bool transposed) {
  if (transposed) swap_last(&shape);
  return shape;
}

/* Element (row, column) of a matrix of a batch. */
static double element(const array *x, bool transposed, int64_t batch, int64_t row, int64_t column) {
  int64_t rows = x->shape.extent[x->shape.rank - 2], columns = x->shape.extent[x->shape.rank - 1];
  int64_t at = transposed ? column * columns + row : row * columns + column;
  return x->values[batch * rows * columns + at];
}

static helio_shape batches_of(const helio_shape *shape) {
  helio_shape batches = *shape;
  batches.rank -= 2;
  return batches;
}

static helio_shape shape_of_product(const product *p) {
  helio_shape shape = {p->a.rank > p->b.rank ? p->a.rank : p->b.rank, {0}};
  for (int i = 0; i < shape.rank - 2; i++) {
    int at_a = i - (shape.rank - p->a.rank), at_b = i - (shape.rank - p->b.rank);
    int64_t x = at_a < 0 ? 1 : p->a.extent[at_a], y = at_b < 0 ? 1 : p->b.extent[at_b];
    shape.extent[i] = x == 1 ? y : x;
  }
  shape.extent[shape.rank - 2] = p->a.extent[p->a.rank - 2];
  shape.extent[shape.rank - 1] = p->b.extent[p->b.rank - 1];
  return shape;
}

static double dot(const product *p, const array *a, const array *b, int64_t batch_a, int64_t batch_b, int64_t row,
                  int64_t column) {
  double sum = 0;
  for (int64_t k = 0; k < p->a.extent[p->a.rank - 1]; k++) {
    sum += element(a, p->transpose_a, batch_a, row, k) * element(b, p->transpose_b, batch_b, k, column);
  }
  return sum;
}

static array reference(const product *p, const array *a, const array *b, const array *bias) {
  array want = array_new(a->type, shape_of_product(p));
  helio_shape batches = batches_of(&want.shape), of_a = batches_of(&a->shape), of_b = batches_of(&b->shape);
  int64_t rows = want.shape.extent[want.shape.rank - 2], columns = want.shape.extent[want.shape.rank - 1];
  for (int64_t i = 0; i < want.elements; i++) {
    int64_t column = i % columns, row = i / columns % rows, batch = i / columns / rows;
    double value =
        dot(p, a, b, broadcast_index(&of_a, &batches, batch), broadcast_index(&of_b, &batches, batch), row, column);
    if (p->bias) value += bias->values[column];
    want.values[i] = p->relu && value < 0 ? 0 : value;
  }
  return want;
}

static void check_arrays(const product *p, const array *a, const array *b, const array *bias, double allowed) {
  helio_tensor *x = tensor_of(a), *y = tensor_of(b), *added = p->bias ? tensor_of(bias) : NULL;
  helio_activation activation = p->relu ? HELIO_RELU : (helio_activation)0;
  helio_tensor *made = helio_matmul(x, y, p->transpose_a, p->transpose_b, added, activation);
  expect_array(made, reference(p, a, b, bias), allowed);
  expect_same_bits(made, helio_matmul(x, y, p->transpose_a, p->transpose_b, added, activation));
}

static void check_product(const product *p, helio_type type) {
  int64_t columns = p->b.extent[p->b.rank - 1];
  array a = array_random(type, stored(p->a, p->transpose_a), 11),
        b = array_random(type, stored(p->b, p->transpose_b), 12);
  array bias = array_random(type, HELIO_SHAPE(columns), 13);
  check_arrays(p, &a, &b, &bias, facts_of(type)->reduced);
  free(a.values);
  free(b.values);
  free(bias.values);
}

/* ---- shapes, in all sixteen ways ---- */

static const struct {
  helio_shape a, b;
} pairs[] = {
    {SHAPE(2, 3), SHAPE(3, 2)},
    {SHAPE(1, 1), SHAPE(1, 1)},
    {SHAPE(1, 7), SHAPE(7, 1)},
    {SHAPE(7, 1), SHAPE(1, 7)},
    {SHAPE(13, 17), SHAPE(17, 19)},
    {SHAPE(0, 3), SHAPE(3, 2)}, /* no rows */
    {SHAPE(2, 3), SHAPE(3, 0)}, /* no columns */
    {SHAPE(2, 0), SHAPE(0, 3)}, /* nothing to add up: zeros */
    {SHAPE(5, 2, 3), SHAPE(5, 3, 4)},
    {SHAPE(5, 2, 3), SHAPE(3, 4)},
    {SHAPE(2, 3), SHAPE(5, 3, 4)},
    {SHAPE(3, 1, 2, 3), SHAPE(5, 3, 4)},
    {SHAPE(1, 4, 7, 3), SHAPE(2, 1, 3, 5)},
    {SHAPE(0, 2, 3), SHAPE(3, 4)},
    {SHAPE(2, 1, 2, 1, 3, 1, 5, 3), SHAPE(1, 2, 1, 2, 1, 2, 3, 7)},
};

static void test_products(void **state) {
  (void)state;
  for (size_t t = 0; t < NUMBER_TYPES; t++) {
    for (size_t i = 0; i < COUNT(pairs); i++) {
      for (int way = 0; way < 16; way++) {
        product p = {pairs[i].a, pairs[i].b, way & 1, way & 2, way & 4, way & 8};
        HELIO_POOL check_product(&p, all_types[t].type);
      }
    }
  }
}

/* Large enough for several threads and for all blocks of a kernel, with rests in all directions. */
static void test_large_products(void **state) {
  static const product products[] = {
      {SHAPE(127, 131), SHAPE(131, 137), false, false, true, true},
      {SHAPE(127, 131), SHAPE(131, 137), true, false, false, true},
      {SHAPE(127, 131), SHAPE(131, 137), false, true, true, false},
      {SHAPE(127, 131), SHAPE(131, 137), true, true, false, false},
      {SHAPE(1, 2003), SHAPE(2003, 301), false, false, true, false},
      {SHAPE(601, 2003), SHAPE(2003, 1), false, false, false, false},
      {SHAPE(1009, 3), SHAPE(3, 211), false, false, true, true},
      {SHAPE(67, 31, 29), SHAPE(67, 29, 23), false, true, true, true},
  };
  (void)state;
  for (size_t t = 0; t < NUMBER_TYPES; t++) {
    for (size_t i = 0; i < COUNT(products); i++) HELIO_POOL check_product(&products[i], all_types[t].type);
  }
}

/* What TensorFlow's guide prints. */
static void test_guide(void **state) {
  static const float want[] = {22, 28, 49, 64};
  float seen[4];
  (void)state;
  HELIO_POOL {
    helio_tensor *a = helio_constant(((float[]){1, 2, 3, 4, 5, 6}), HELIO_SHAPE(2, 3));
    helio_tensor *b = helio_constant(((float[]){1, 2, 3, 4, 5, 6}), HELIO_SHAPE(3, 2));
    assert_ok(helio_tensor_read(helio_matmul(a, b), seen, sizeof seen));
    assert_memory_equal(seen, want, sizeof seen);
    assert_ok(helio_tensor_read(helio_matmul(a, b, .activation = HELIO_LINEAR), seen, sizeof seen));
    assert_memory_equal(seen, want, sizeof seen);
  }
}

/* ---- values with a meaning of their own ---- */

/* 0 × ∞ and 0 × NaN are NaN and are not left out; relu lets NaN through. */
static void test_specials(void **state) {
  static const double left[] = {0, 1, 2, -1, 0, 0, 1, INFINITY, 1},
                      right[] = {INFINITY, NAN, 1, 1, 2, -INFINITY, 3, 4, 5};
  (void)state;
  for (size_t t = 0; t < NUMBER_TYPES; t++) {
    if (!all_types[t].is_float) continue;
    for (int way = 0; way < 16; way++) {
      HELIO_POOL {
        product p = {SHAPE(3, 3), SHAPE(3, 3), way & 1, way & 2, way & 4, way & 8};
        array a = array_new(all_types[t].type, HELIO_SHAPE(3, 3)), b = array_new(a.type, a.shape);
        array bias = array_new(a.type, HELIO_SHAPE(3));
        memcpy(a.values, left, sizeof left);
        memcpy(b.values, right, sizeof right);
        bias.values[0] = INFINITY;
        check_arrays(&p, &a, &b, &bias, facts_of(a.type)->reduced);
        free(a.values);
        free(b.values);
        free(bias.values);
      }
    }
  }
}

static void test_integers_wrap(void **state) {
  int32_t small[4];
  int64_t large;
  (void)state;
  HELIO_POOL {
    helio_tensor *a = helio_constant(((int32_t[]){INT32_MAX, 2, 1, 1}), HELIO_SHAPE(2, 2), .type = HELIO_INT32);
    assert_ok(helio_tensor_read(helio_matmul(a, a), small, sizeof small));
    assert_int_equal(small[0], 3); /* (2³¹ − 1)² + 2 */
    assert_int_equal(small[1], 0);
    assert_int_equal(small[2], INT32_MIN);
    assert_int_equal(small[3], 3);
    helio_tensor *b = helio_constant(&(int64_t){INT64_MAX}, HELIO_SHAPE(1, 1), .type = HELIO_INT64);
    assert_ok(helio_tensor_read(helio_matmul(b, b), &large, sizeof large));
    assert_true(large == 1);
  }
}

/* ---- errors ---- */

static void test_errors(void **state) {
  const helio_status invalid = HELIO_INVALID_ARGUMENT;
  (void)state;
  HELIO_POOL {
    helio_tensor *a = F32(2, 3), *b = F32(3, 4), *whole = I32(3, 4);
    helio_tensor *bytes = filled(HELIO_SHAPE(3, 3), HELIO_UINT8);
    expect_refusal(helio_matmul(a, a), invalid, "MatMul", "(2, 3)", "inner extents");
    expect_refusal(helio_matmul(a, b, .transpose_a = true), invalid, "MatMul", "(2, 3)", "(3, 4)");
    expect_refusal(helio_matmul(a, b, .transpose_b = true), invalid, "MatMul", "(2, 3)", "(3, 4)");
    expect_refusal(helio_matmul(F32(3), b), invalid, "MatMul", "(3,)", "(3, 4)");
    expect_refusal(helio_matmul(filled(HELIO_SCALAR, HELIO_FLOAT32), b), invalid, "MatMul", "()", "(3, 4)");
    expect_refusal(helio_matmul(F32(2, 2, 3), F32(3, 3, 4)), invalid, "MatMul", "(2, 2, 3)", "(3, 3, 4)");
    expect_refusal(helio_matmul(a, b, .bias = F32(3)), invalid, "MatMul", "(3, 4)", "(3,)");
    expect_refusal(helio_matmul(a, b, .bias = F32(1, 4)), invalid, "MatMul", "(3, 4)", "(1, 4)");
    expect_refusal(helio_matmul(a, b, .bias = I32(4)), invalid, "MatMul", "float32", "int32");
    expect_refusal(helio_matmul(a, whole), invalid, "MatMul", "float32", "int32");
    expect_refusal(helio_matmul(a, NULL), invalid, "MatMul", "input 1", "NULL");
    expect_refusal(helio_matmul(NULL, b), invalid, "MatMul", "input 0", "NULL");
    expect_refusal(helio_matmul(a, b, .activation = (helio_activation)99), invalid, "99", "not", "activation");
    expect_refusal(helio_matmul(bytes, bytes), HELIO_NOT_SUPPORTED, "MatMul", "uint8", "");
    helio_tensor *tall = helio_reshape(F32(0), HELIO_SHAPE(1LL << 40, 0)),
                 *wide = helio_reshape(tall, HELIO_SHAPE(0, 1LL << 40));
    expect_refusal(helio_matmul(tall, wide), invalid, "MatMul", "too large", "");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_products), cmocka_unit_test(test_large_products), cmocka_unit_test(test_guide),
      cmocka_unit_test(test_specials), cmocka_unit_test(test_integers_wrap),  cmocka_unit_test(test_errors),
  };
  return run_with_each_code(tests, COUNT(tests));
}
