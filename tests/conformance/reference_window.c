/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over images: convolution, pooling, and their gradients. */
#include <math.h>
#include <string.h>

#include "conformance.h"

/* The six numbers that say which elements meet; each visit is one of them. */
typedef struct visit {
  int64_t image, row, column;        /* of y */
  int64_t input_row, input_column;   /* of x */
  int64_t window_row, window_column; /* of the kernel */
} visit;

static bool inside(int64_t at, int64_t extent) {
  return at >= 0 && at < extent;
}

static int64_t places(int64_t extent, uint32_t before, uint32_t behind, int64_t window, uint32_t stride,
                      uint32_t dilation) {
  return (extent + before + behind - ((window - 1) * dilation + 1)) / stride + 1;
}

/* ---- convolution ---- */

typedef void (*meet)(const example *e, const visit *v, array *result);

static helio_shape convolved_shape(const helio_shape *x, const helio_shape *kernel,
                                   const helio_conv2d_attributes *how) {
  const uint32_t *pad = how->padding;
  int64_t height = places(x->extent[1], pad[0], pad[1], kernel->extent[0], how->stride[0], how->dilation[0]);
  int64_t width = places(x->extent[2], pad[2], pad[3], kernel->extent[1], how->stride[1], how->dilation[1]);
  return (helio_shape)SHAPE(x->extent[0], height, width, kernel->extent[3]);
}

/* Visits every element of the kernel at every place of y where it lies on x. */
static void convolve(const example *e, const helio_shape *x, const helio_shape *kernel, const helio_shape *y, meet each,
                     array *result) {
  const helio_conv2d_attributes *how = &e->attributes.conv2d;
  int64_t window = kernel->extent[0] * kernel->extent[1], count = y->extent[0] * y->extent[1] * y->extent[2] * window;
  for (int64_t i = 0; i < count; i++) {
    visit v = {.window_column = i % kernel->extent[1], .window_row = i / kernel->extent[1] % kernel->extent[0]};
    v.column = i / window % y->extent[2];
    v.row = i / window / y->extent[2] % y->extent[1];
    v.image = i / window / y->extent[2] / y->extent[1];
    v.input_row = v.row * how->stride[0] + v.window_row * how->dilation[0] - how->padding[0];
    v.input_column = v.column * how->stride[1] + v.window_column * how->dilation[1] - how->padding[2];
    if (inside(v.input_row, x->extent[1]) && inside(v.input_column, x->extent[2])) each(e, &v, result);
  }
}

static double *pixel(const array *a, int64_t image, int64_t row, int64_t column) {
  const int64_t *extent = a->shape.extent;
  return a->values + ((image * extent[1] + row) * extent[2] + column) * extent[3];
}

/* The weights of one place of the window, from the channels of x to those of y. */
static double *weights(const array *kernel, const visit *v) {
  const int64_t *extent = kernel->shape.extent;
  return kernel->values + (v->window_row * extent[1] + v->window_column) * extent[2] * extent[3];
}

/* The three of a product in which one is summed up: y += x w, dx += dy w, dw += x dy. */
static void multiply(const example *e, double *x, double *w, double *y, int64_t channels, int64_t filters, int into) {
  int64_t groups = e->attributes.conv2d.groups, each = channels / groups;
  for (int64_t f = 0; f < filters; f++) {
    int64_t first = f / (filters / groups) * each;
    for (int64_t c = 0; c < each; c++) {
      double *from = x + first + c, *weight = w + c * filters + f;
      if (into == 0) y[f] += *from * *weight;
      if (into == 1) *from += y[f] * *weight;
      if (into == 2) *weight += *from * y[f];
    }
  }
}

static void meet_forward(const example *e, const visit *v, array *result) {
  const array *x = &e->inputs[0], *kernel = &e->inputs[1];
  multiply(e, pixel(x, v->image, v->input_row, v->input_column), weights(kernel, v),
           pixel(result, v->image, v->row, v->column), x->shape.extent[3], kernel->shape.extent[3], 0);
}

static void meet_input(const example *e, const visit *v, array *result) {
  const array *dy = &e->inputs[0], *kernel = &e->inputs[1];
  multiply(e, pixel(result, v->image, v->input_row, v->input_column), weights(kernel, v),
           pixel(dy, v->image, v->row, v->column), result->shape.extent[3], kernel->shape.extent[3], 1);
}

static void meet_kernel(const example *e, const visit *v, array *result) {
  const array *x = &e->inputs[0], *dy = &e->inputs[1];
  multiply(e, pixel(x, v->image, v->input_row, v->input_column), weights(result, v),
           pixel(dy, v->image, v->row, v->column), x->shape.extent[3], dy->shape.extent[3], 2);
}

static void reference_conv2d(const example *e, array *results) {
  const array *x = &e->inputs[0], *kernel = &e->inputs[1], *bias = &e->inputs[2];
  helio_shape shape = convolved_shape(&x->shape, &kernel->shape, &e->attributes.conv2d);
  results[0] = array_new(e->type, &shape);
  convolve(e, &x->shape, &kernel->shape, &shape, meet_forward, &results[0]);
  for (int64_t i = 0; i < results[0].elements; i++) {
    double sum = results[0].values[i] + (bias->values ? bias->values[i % shape.extent[3]] : 0);
    results[0].values[i] = activate(e->attributes.conv2d.activation, sum);
  }
}

static void reference_conv2d_grad_input(const example *e, array *results) {
  results[0] = array_new(e->type, &e->wanted);
  convolve(e, &e->wanted, &e->inputs[1].shape, &e->inputs[0].shape, meet_input, &results[0]);
}

static void reference_conv2d_grad_kernel(const example *e, array *results) {
  results[0] = array_new(e->type, &e->wanted);
  convolve(e, &e->inputs[0].shape, &e->wanted, &e->inputs[1].shape, meet_kernel, &results[0]);
}

typedef struct convolution {
  helio_shape x, kernel;
  uint32_t stride[2], dilation[2], padding[4], groups;
} convolution;

static const convolution convolutions[] = {
    {SHAPE(1, 1, 1, 1), SHAPE(1, 1, 1, 1), {1, 1}, {1, 1}, {0}, 1},
    {SHAPE(2, 5, 7, 3), SHAPE(1, 1, 3, 5), {1, 1}, {1, 1}, {0}, 1},
    {SHAPE(2, 5, 7, 3), SHAPE(1, 1, 3, 5), {2, 3}, {1, 1}, {0}, 1},
    {SHAPE(2, 5, 7, 3), SHAPE(3, 3, 3, 5), {1, 1}, {1, 1}, {0}, 1},
    {SHAPE(2, 5, 7, 3), SHAPE(3, 3, 3, 5), {1, 1}, {1, 1}, {1, 1, 1, 1}, 1},
    {SHAPE(2, 5, 7, 3), SHAPE(2, 4, 3, 5), {2, 1}, {1, 1}, {0, 1, 1, 2}, 1},
    {SHAPE(1, 11, 13, 2), SHAPE(3, 2, 2, 7), {1, 2}, {2, 3}, {2, 2, 0, 3}, 1},
    {SHAPE(1, 7, 7, 6), SHAPE(3, 3, 2, 9), {1, 1}, {1, 1}, {1, 1, 1, 1}, 3},
    {SHAPE(3, 7, 5, 5), SHAPE(3, 3, 1, 5), {1, 1}, {1, 1}, {1, 1, 1, 1}, 5}, /* a filter for each channel */
    {SHAPE(2, 6, 5, 4), SHAPE(2, 2, 1, 8), {2, 2}, {2, 1}, {1, 0, 0, 1}, 4},
    {SHAPE(2, 1, 31, 3), SHAPE(1, 5, 3, 4), {1, 2}, {1, 2}, {0, 0, 4, 4}, 1}, /* of one dimension */
    {SHAPE(0, 5, 5, 2), SHAPE(3, 3, 2, 3), {1, 1}, {1, 1}, {0}, 1},
    {SHAPE(1, 5, 5, 0), SHAPE(3, 3, 0, 3), {1, 1}, {1, 1}, {1, 1, 1, 1}, 1},
    {SHAPE(1, 5, 5, 2), SHAPE(3, 3, 2, 0), {1, 1}, {1, 1}, {0}, 1},
    {SHAPE(1, 2, 2, 1), SHAPE(5, 5, 1, 2), {1, 1}, {1, 1}, {3, 3, 3, 3}, 1}, /* the kernel is larger than the image */
    {SHAPE(1, 8, 8, 2), SHAPE(2, 2, 2, 3), {4, 5}, {1, 1}, {0}, 1},          /* rows that no window meets */
    {SHAPE(1, 28, 28, 1), SHAPE(5, 5, 1, 8), {1, 1}, {1, 1}, {2, 2, 2, 2}, 1},
    {SHAPE(5, 17, 19, 16), SHAPE(3, 3, 16, 24), {1, 1}, {1, 1}, {1, 1, 1, 1}, 1},
    {SHAPE(3, 31, 29, 12), SHAPE(3, 3, 6, 14), {2, 2}, {1, 1}, {0, 1, 0, 1}, 2},
    {SHAPE(1, 9, 11, 67), SHAPE(3, 3, 67, 13), {1, 1}, {1, 1}, {1, 1, 1, 1}, 1},
    {SHAPE(2, 9, 8, 34), SHAPE(3, 2, 17, 132), {2, 1}, {1, 2}, {1, 0, 2, 1}, 2}, /* groups wider than a tile */
};

static example conv2d_example(const family *f, helio_type type, const convolution *c, uint32_t activation) {
  example e = example_new(f, type);
  helio_conv2d_attributes *how = &e.attributes.conv2d;
  *how = (helio_conv2d_attributes){.size = sizeof *how, .groups = c->groups, .activation = activation};
  memcpy(how->stride, c->stride, sizeof how->stride);
  memcpy(how->dilation, c->dilation, sizeof how->dilation);
  memcpy(how->padding, c->padding, sizeof how->padding);
  e.once = shape_elements(&c->x) > 10000;
  e.long_sum = true;
  return e;
}

static void example_conv2d(const family *f, helio_type type, const convolution *c, bool bias, uint32_t activation) {
  example e = conv2d_example(f, type, c, activation);
  add_input(&e, type, c->x);
  add_input(&e, type, c->kernel);
  if (bias) {
    add_input(&e, type, (helio_shape)SHAPE(c->kernel.extent[3]));
  } else {
    add_absent(&e);
  }
  check_example(&e);
}

static void examples_conv2d(const family *f, helio_type type) {
  for (int i = 0; i < COUNT(convolutions); i++) {
    example_conv2d(f, type, &convolutions[i], false, 0);
    example_conv2d(f, type, &convolutions[i], true, 0);
  }
  for (uint32_t activation = HELIO_LINEAR; activation <= HELIO_GELU_TANH; activation++) {
    example_conv2d(f, type, &convolutions[4], activation % 2, activation);
    example_conv2d(f, type, &convolutions[7], true, activation);
  }
}

static void examples_conv2d_grad(const family *f, helio_type type) {
  for (int i = 0; i < COUNT(convolutions); i++) {
    const convolution *c = &convolutions[i];
    bool by_input = f->operation == HELIO_OP_CONV2D_GRAD_INPUT;
    example e = conv2d_example(f, type, c, 0);
    helio_shape y = convolved_shape(&c->x, &c->kernel, &e.attributes.conv2d);
    add_input(&e, type, by_input ? y : c->x);
    add_input(&e, type, by_input ? c->kernel : y);
    e.wanted = by_input ? c->x : c->kernel;
    check_example(&e);
  }
}

/* ---- pooling ---- */

static helio_shape pooled_shape(const helio_shape *x, const helio_pool_attributes *how) {
  helio_shape shape = *x;
  for (int i = 0; i < 2; i++) {
    const uint32_t *pad = how->padding + 2 * i;
    shape.extent[1 + i] = places(x->extent[1 + i], pad[0], pad[1], how->window[i], how->stride[i], 1);
  }
  return shape;
}

/* The element of x in place `window` of the window of element `at` of y; −1 in the padding. */
static int64_t pooled_from(const helio_shape *x, const helio_shape *y, const helio_pool_attributes *how, int64_t at,
                           int64_t window) {
  int64_t channel = at % y->extent[3], column = at / y->extent[3] % y->extent[2];
  int64_t row = at / y->extent[3] / y->extent[2] % y->extent[1],
          image = at / y->extent[3] / y->extent[2] / y->extent[1];
  row = row * how->stride[0] + window / how->window[1] - how->padding[0];
  column = column * how->stride[1] + window % how->window[1] - how->padding[2];
  if (!inside(row, x->extent[1]) || !inside(column, x->extent[2])) return -1;
  return ((image * x->extent[1] + row) * x->extent[2] + column) * x->extent[3] + channel;
}

static int64_t window_places(const helio_pool_attributes *how) {
  return (int64_t)how->window[0] * how->window[1];
}

static helio_type winner_type(const helio_pool_attributes *how) {
  return window_places(how) <= 256 ? HELIO_UINT8 : HELIO_INT32;
}

static void reference_max_pool(const example *e, array *results) {
  const array *x = &e->inputs[0];
  const helio_pool_attributes *how = &e->attributes.pool;
  helio_shape shape = pooled_shape(&x->shape, how);
  results[0] = array_new(e->type, &shape);
  results[1] = array_new(winner_type(how), &shape);
  for (int64_t i = 0; i < results[0].elements; i++) {
    bool found = false;
    for (int64_t k = 0; k < window_places(how); k++) {
      int64_t from = pooled_from(&x->shape, &shape, how, i, k);
      if (from < 0 || (found && !(x->values[from] > results[0].values[i]))) continue;
      found = true;
      results[0].values[i] = x->values[from];
      results[1].values[i] = (double)k;
    }
  }
}

static void reference_max_pool_grad(const example *e, array *results) {
  const array *dy = &e->inputs[0], *winners = &e->inputs[1];
  results[0] = array_new(e->type, &e->wanted);
  for (int64_t i = 0; i < dy->elements; i++) {
    int64_t from = pooled_from(&e->wanted, &dy->shape, &e->attributes.pool, i, (int64_t)winners->values[i]);
    results[0].values[from] += dy->values[i];
  }
}

/* How many elements of the window are not padding. */
static double share_of(const helio_shape *x, const helio_shape *y, const helio_pool_attributes *how, int64_t at) {
  int64_t count = 0;
  for (int64_t k = 0; k < window_places(how); k++) count += pooled_from(x, y, how, at, k) >= 0;
  return 1 / (double)count;
}

static void reference_average_pool(const example *e, array *results) {
  const array *x = &e->inputs[0];
  const helio_pool_attributes *how = &e->attributes.pool;
  helio_shape shape = pooled_shape(&x->shape, how);
  results[0] = array_new(e->type, &shape);
  for (int64_t i = 0; i < results[0].elements; i++) {
    double sum = 0;
    for (int64_t k = 0; k < window_places(how); k++) {
      int64_t from = pooled_from(&x->shape, &shape, how, i, k);
      if (from >= 0) sum += x->values[from];
    }
    results[0].values[i] = sum * share_of(&x->shape, &shape, how, i);
  }
}

static void reference_average_pool_grad(const example *e, array *results) {
  const array *dy = &e->inputs[0];
  const helio_pool_attributes *how = &e->attributes.pool;
  results[0] = array_new(e->type, &e->wanted);
  for (int64_t i = 0; i < dy->elements; i++) {
    double share = share_of(&e->wanted, &dy->shape, how, i);
    for (int64_t k = 0; k < window_places(how); k++) {
      int64_t from = pooled_from(&e->wanted, &dy->shape, how, i, k);
      if (from >= 0) results[0].values[from] += dy->values[i] * share;
    }
  }
}

typedef struct pooling {
  helio_shape x;
  uint32_t window[2], stride[2], padding[4];
} pooling;

static const pooling poolings[] = {
    {SHAPE(1, 1, 1, 1), {1, 1}, {1, 1}, {0}},
    {SHAPE(2, 6, 8, 3), {2, 2}, {2, 2}, {0}},
    {SHAPE(2, 7, 9, 3), {2, 2}, {2, 2}, {0}},
    {SHAPE(2, 7, 9, 3), {3, 3}, {2, 2}, {1, 1, 1, 1}},
    {SHAPE(2, 7, 9, 5), {3, 2}, {1, 1}, {2, 1, 0, 1}},
    {SHAPE(1, 5, 11, 17), {2, 3}, {3, 4}, {0, 1, 0, 0}},
    {SHAPE(3, 7, 7, 13), {7, 7}, {1, 1}, {0}},    /* all of the image */
    {SHAPE(1, 17, 16, 2), {17, 16}, {1, 1}, {0}}, /* more places than a byte counts */
    {SHAPE(1, 16, 16, 3), {16, 16}, {1, 1}, {0}}, /* just as many */
    {SHAPE(2, 9, 5, 1), {1, 5}, {1, 5}, {0}},
    {SHAPE(0, 4, 4, 2), {2, 2}, {2, 2}, {0}},
    {SHAPE(2, 4, 4, 0), {2, 2}, {2, 2}, {0}},
    {SHAPE(5, 29, 31, 67), {2, 2}, {2, 2}, {0, 1, 0, 1}},
    {SHAPE(3, 31, 37, 33), {3, 3}, {1, 1}, {1, 1, 1, 1}},
};

static example pool_example(const family *f, helio_type type, const pooling *p) {
  example e = example_new(f, type);
  helio_pool_attributes *how = &e.attributes.pool;
  how->size = sizeof *how;
  memcpy(how->window, p->window, sizeof how->window);
  memcpy(how->stride, p->stride, sizeof how->stride);
  memcpy(how->padding, p->padding, sizeof how->padding);
  e.once = shape_elements(&p->x) > 10000;
  return e;
}

/* Twice: with values that differ, and with many equals, none of them above the zeros of a padding. */
static void examples_pool(const family *f, helio_type type) {
  for (int i = 0; i < 2 * COUNT(poolings); i++) {
    example e = pool_example(f, type, &poolings[i / 2]);
    add_between(&e, type, poolings[i / 2].x, -4, i % 2 ? -0.5 : 4);
    for (int64_t k = 0; i % 2 && k < e.inputs[0].elements; k++) e.inputs[0].values[k] = rint(e.inputs[0].values[k]);
    check_example(&e);
  }
}

/* Winners that lie in the image, drawn at random. */
static void add_winners(example *e, const helio_shape *y) {
  const helio_pool_attributes *how = &e->attributes.pool;
  array *winners = &e->inputs[e->input_count++];
  *winners = array_new(winner_type(how), y);
  for (int64_t i = 0; i < winners->elements; i++) {
    do {
      winners->values[i] = (double)(random_word() % (uint64_t)window_places(how));
    } while (pooled_from(&e->wanted, y, how, i, (int64_t)winners->values[i]) < 0);
  }
}

static void examples_pool_grad(const family *f, helio_type type) {
  for (int i = 0; i < COUNT(poolings); i++) {
    example e = pool_example(f, type, &poolings[i]);
    helio_shape y = pooled_shape(&poolings[i].x, &e.attributes.pool);
    e.wanted = poolings[i].x;
    add_input(&e, type, y);
    if (f->operation == HELIO_OP_MAX_POOL_GRAD) add_winners(&e, &y);
    check_example(&e);
  }
}

#define FAMILY(symbol, name, how)                                                                                      \
  { .operation = HELIO_OP_##symbol, .examples = examples_##how, .reference = reference_##name }

const family window_families[] = {
    FAMILY(CONV2D, conv2d, conv2d),
    FAMILY(CONV2D_GRAD_INPUT, conv2d_grad_input, conv2d_grad),
    FAMILY(CONV2D_GRAD_KERNEL, conv2d_grad_kernel, conv2d_grad),
    FAMILY(MAX_POOL, max_pool, pool),
    FAMILY(MAX_POOL_GRAD, max_pool_grad, pool_grad),
    FAMILY(AVERAGE_POOL, average_pool, pool),
    FAMILY(AVERAGE_POOL_GRAD, average_pool_grad, pool_grad),
    {.operation = 0},
};
