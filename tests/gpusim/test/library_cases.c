/* SPDX-License-Identifier: Apache-2.0 */
/* What runs on gpusim: the numbers of both vendors' libraries against PyTorch's and against each other, gradients
 * against finite differences, answers to calls that are wrong in ways which the vendors document. */

/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* and then itself */
#include <cmocka.h>

#include "library_cases.h"
#include "library_numbers.h"

#include "gpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *golden_path;

static const struct {
  sim_vendor vendor;
  const library *library;
} vendors[] = {{SIM_CUDA, &cuda_library}, {SIM_HIP, &hip_library}};
enum { VENDORS = 2 };

static void open_vendor(int which) {
  gpu_open(vendors[which].vendor, 1);
  vendors[which].library->open();
}

static void close_vendor(int which) {
  assert_int_equal(gpu_finish(), 0);
  vendors[which].library->close();
  gpu_close();
}

static float *input(const int dims[4], int which) {
  float *made = malloc(count_of(dims) * sizeof *made);
  assert_non_null(made);
  fill_input(made, count_of(dims), which);
  return made;
}

static void *put_input(const int dims[4], memory_layout layout, int which) {
  float *values = input(dims, which);
  void *made = put_tensor(values, dims, layout);
  free(values);
  return made;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Against the golden file
 */

/* The file is row by row, a library column by column: it multiplies the transposed matrices in the other order. */
static void golden_product(golden *g, const library *l) {
  product p;
  p.n = golden_integer(g);
  p.m = golden_integer(g);
  p.k = golden_integer(g);
  p.transpose_b = golden_integer(g);
  p.transpose_a = golden_integer(g);
  p.batch = golden_integer(g);
  p.alpha = golden_number(g);
  p.beta = golden_number(g);
  int left[] = {p.batch, p.n, p.k, 1}, right[] = {p.batch, p.k, p.m, 1}, result[] = {p.batch, p.n, p.m, 1};
  float *expected = golden_values(g, "c", count_of(result));
  void *a = put_input(left, 0, 0), *b = put_input(right, 0, 1);
  void *c = p.beta != 0 ? put_input(result, 0, 2) : put_nothing(result, 0);
  l->multiply(&p, b, a, c);
  float *found = take_tensor(c, result, 0);
  expect_equal(found, expected, count_of(result), 1e-6f, "a product");
  gpu_free(a);
  gpu_free(b);
  free(found);
  free(expected);
}

static convolution golden_sizes(golden *g) {
  convolution c = {.groups = 1};
  for (int i = 0; i < 4; i++) c.x[i] = golden_integer(g);
  c.w[0] = golden_integer(g);
  c.w[2] = golden_integer(g);
  c.w[3] = golden_integer(g);
  c.groups = golden_integer(g);
  c.w[1] = c.x[1] / c.groups;
  for (int i = 0; i < 2; i++) c.pad[i] = golden_integer(g);
  for (int i = 0; i < 2; i++) c.stride[i] = golden_integer(g);
  for (int i = 0; i < 2; i++) c.dilation[i] = golden_integer(g);
  c.flipped = golden_integer(g);
  return c;
}

/* The filter has no gaps. */
static memory_layout filter_layout(const convolution *c) {
  return c->layout == WITH_GAPS ? CHANNELS_FIRST : c->layout;
}

/* The result of one direction, from inputs 0, 1 and 2 for x, w and y. */
static float *convolve(const library *l, const convolution *c, pass direction, int number) {
  const int *dims[] = {c->x, c->w, c->y};
  int result = direction == FORWARD ? 2 : direction == BACKWARD_DATA ? 0 : 1;
  void *memory[3];
  for (int i = 0; i < 3; i++) {
    memory_layout layout = i == 1 ? filter_layout(c) : c->layout;
    memory[i] = i == result ? put_nothing(dims[i], layout) : put_input(dims[i], layout, i);
  }
  l->convolve(c, direction, number, memory[0], memory[1], memory[2]);
  for (int i = 0; i < 3; i++)
    if (i != result) gpu_free(memory[i]);
  return take_tensor(memory[result], dims[result], result == 1 ? filter_layout(c) : c->layout);
}

static void check_ways(const library *l, const convolution *c, pass direction, const float *expected) {
  static const char *const names[] = {"y of a convolution", "dx of a convolution", "dw of a convolution"};
  const int *dims = direction == FORWARD ? c->y : direction == BACKWARD_DATA ? c->x : c->w;
  way ways[MOST_WAYS];
  int count = l->ways(c, direction, ways, MOST_WAYS);
  assert_true(count > 0);
  for (int i = 0; i < count; i++) {
    float *found = convolve(l, c, direction, i);
    expect_equal(found, expected, count_of(dims), ways[i].tolerance, names[direction]);
    free(found);
  }
}

static void check_sum(const library *l, const convolution *c, const float *expected) {
  int dims[] = {1, c->y[1], 1, 1};
  void *dy = put_input(c->y, c->layout, 2), *db = put_nothing(dims, 0);
  l->sum(c, dy, db);
  gpu_free(dy);
  float *found = take_tensor(db, dims, 0);
  expect_equal(found, expected, count_of(dims), 1e-6f, "the gradient of a bias");
  free(found);
}

static void golden_convolution(golden *g, const library *l) {
  convolution c = golden_sizes(g);
  bool possible = !c.flipped || l == &cuda_library; /* MIOpen has no flipped filters */
  cuda_library.size(&c);
  int other[4];
  memcpy(other, c.y, sizeof other);
  l->size(&c);
  assert_memory_equal(other, c.y, sizeof other);
  float *y = golden_values(g, "y", count_of(c.y)), *dx = golden_values(g, "dx", count_of(c.x));
  float *dw = golden_values(g, "dw", count_of(c.w)), *db = golden_values(g, "db", (size_t)c.y[1]);
  for (c.layout = 0; possible && c.layout < LAYOUTS; c.layout++) {
    check_ways(l, &c, FORWARD, y);
    check_ways(l, &c, BACKWARD_DATA, dx);
    check_ways(l, &c, BACKWARD_FILTER, dw);
    check_sum(l, &c, db);
  }
  free(y);
  free(dx);
  free(dw);
  free(db);
}

static void golden_pooling(golden *g, const library *l) {
  pooling p = {.mode = (pooling_mode)golden_integer(g)};
  for (int i = 0; i < 4; i++) p.x[i] = golden_integer(g);
  for (int i = 0; i < 2; i++) p.window[i] = golden_integer(g);
  for (int i = 0; i < 2; i++) p.pad[i] = golden_integer(g);
  for (int i = 0; i < 2; i++) p.stride[i] = golden_integer(g);
  l->size_pool(&p);
  float *y = golden_values(g, "y", count_of(p.y)), *dx = golden_values(g, "dx", count_of(p.x));
  for (p.layout = 0; p.layout < LAYOUTS; p.layout++) {
    void *of_x = put_input(p.x, p.layout, 0), *of_y = put_nothing(p.y, p.layout);
    void *of_dx = put_nothing(p.x, p.layout), *of_dy = put_input(p.y, p.layout, 1);
    l->pool(&p, of_x, of_y, of_dy, of_dx);
    gpu_free(of_x);
    gpu_free(of_dy);
    float *found_y = take_tensor(of_y, p.y, p.layout), *found_dx = take_tensor(of_dx, p.x, p.layout);
    expect_equal(found_y, y, count_of(p.y), 1e-6f, "y of pooling");
    expect_equal(found_dx, dx, count_of(p.x), 1e-6f, "dx of pooling");
    free(found_y);
    free(found_dx);
  }
  free(y);
  free(dx);
}

static void golden_softmax(golden *g, const library *l) {
  softmax s;
  s.log = golden_integer(g);
  s.by_channel = golden_integer(g);
  for (int i = 0; i < 4; i++) s.x[i] = golden_integer(g);
  size_t count = count_of(s.x);
  float *y = golden_values(g, "y", count), *dx = golden_values(g, "dx", count);
  void *of_x = put_input(s.x, 0, 0), *of_y = put_nothing(s.x, 0);
  void *of_dy = put_input(s.x, 0, 1), *of_dx = put_nothing(s.x, 0);
  l->softmax(&s, of_x, of_y, of_dy, of_dx);
  gpu_free(of_x);
  gpu_free(of_dy);
  float *found_y = take_tensor(of_y, s.x, 0), *found_dx = take_tensor(of_dx, s.x, 0);
  expect_equal(found_y, y, count, 1e-6f, "y of softmax");
  expect_equal(found_dx, dx, count, 2e-6f, "dx of softmax");
  free(found_y);
  free(found_dx);
  free(y);
  free(dx);
}

static void test_golden(const char *kind, void (*test)(golden *, const library *)) {
  for (int i = 0; i < VENDORS; i++) {
    open_vendor(0); /* sizes are asked from cuDNN, too */
    close_vendor(0);
    open_vendor(i);
    golden g = golden_open(golden_path);
    int problems = 0;
    while (golden_next(&g)) {
      char line_end;
      if (!strcmp(g.word, kind)) {
        test(&g, vendors[i].library);
        problems++;
      } else {
        do line_end = (char)fgetc(g.file);
        while (line_end != '\n');
      }
    }
    assert_true(problems > 0);
    close_vendor(i);
  }
}

static void test_products(void **state) {
  (void)state;
  test_golden("product", golden_product);
}

static void test_convolutions(void **state) {
  (void)state;
  test_golden("convolution", golden_convolution);
}

static void test_pooling(void **state) {
  (void)state;
  test_golden("pooling", golden_pooling);
}

static void test_softmax(void **state) {
  (void)state;
  test_golden("softmax", golden_softmax);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Laws
 */

static double inner(const float *a, const float *b, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += (double)a[i] * b[i];
  return sum;
}

/* A problem drawn by a number, with shapes up to 9. */
static convolution drawn(unsigned number) {
  srand(number);
  convolution c = {.groups = 1 + rand() % 2};
  c.w[1] = 1 + rand() % 3;
  c.w[0] = c.groups * (1 + rand() % 3);
  c.x[0] = 1 + rand() % 3;
  c.x[1] = c.groups * c.w[1];
  for (int i = 0; i < 2; i++) {
    c.w[2 + i] = 1 + rand() % 4;
    c.pad[i] = rand() % 3;
    c.stride[i] = 1 + rand() % 2;
    c.dilation[i] = 1 + rand() % 2;
    c.x[2 + i] = (c.w[2 + i] - 1) * c.dilation[i] + 1 + rand() % 5;
  }
  c.layout = (memory_layout)(rand() % LAYOUTS);
  return c;
}

enum { PROBLEMS = 24 };

/* A convolution is linear in x and in w, so that <dy, y(x, w)> = <dx(dy, w), x> = <dw(dy, x), w>. */
static void test_gradients_of_convolutions(void **state) {
  (void)state;
  for (int i = 0; i < VENDORS; i++) {
    open_vendor(i);
    for (unsigned number = 0; number < PROBLEMS; number++) {
      convolution c = drawn(number);
      vendors[i].library->size(&c);
      const int *dims[] = {c.y, c.x, c.w};
      static const int inputs[] = {2, 0, 1};
      double sums[DIRECTIONS];
      for (int d = 0; d < DIRECTIONS; d++) {
        way ways[MOST_WAYS];
        int count = vendors[i].library->ways(&c, (pass)d, ways, MOST_WAYS), last = count - 1;
        while (!ways[last].exact) last--;
        float *found = convolve(vendors[i].library, &c, (pass)d, last), *other = input(dims[d], inputs[d]);
        sums[d] = inner(found, other, count_of(dims[d]));
        free(found);
        free(other);
      }
      assert_true(fabs(sums[0] - sums[1]) < 1e-4 && fabs(sums[0] - sums[2]) < 1e-4);
    }
    close_vendor(i);
  }
}

static double pool_loss(const library *l, pooling *p, const float *x, const float *dy, float **dx) {
  void *of_x = put_tensor(x, p->x, p->layout), *of_y = put_nothing(p->y, p->layout);
  void *of_dy = put_tensor(dy, p->y, p->layout), *of_dx = put_nothing(p->x, p->layout);
  l->pool(p, of_x, of_y, of_dy, of_dx);
  gpu_free(of_x);
  gpu_free(of_dy);
  float *y = take_tensor(of_y, p->y, p->layout), *gradient = take_tensor(of_dx, p->x, p->layout);
  double loss = inner(y, dy, count_of(p->y));
  free(y);
  if (dx)
    *dx = gradient;
  else
    free(gradient);
  return loss;
}

static double softmax_loss(const library *l, const softmax *s, const float *x, const float *dy, float **dx) {
  void *of_x = put_tensor(x, s->x, 0), *of_y = put_nothing(s->x, 0);
  void *of_dy = put_tensor(dy, s->x, 0), *of_dx = put_nothing(s->x, 0);
  l->softmax(s, of_x, of_y, of_dy, of_dx);
  gpu_free(of_x);
  gpu_free(of_dy);
  float *y = take_tensor(of_y, s->x, 0), *gradient = take_tensor(of_dx, s->x, 0);
  double loss = inner(y, dy, count_of(s->x));
  free(y);
  if (dx)
    *dx = gradient;
  else
    free(gradient);
  return loss;
}

static void test_gradients_of_pooling(void **state) {
  (void)state;
  const float step = 1e-3f; /* less than two inputs differ by, so that no maximum moves */
  for (int i = 0; i < VENDORS; i++) {
    open_vendor(i);
    for (int mode = 0; mode < 3; mode++) {
      pooling p = {.mode = (pooling_mode)mode, .x = {2, 2, 5, 4}, .window = {3, 2}, .pad = {1, 1}, .stride = {2, 1}};
      vendors[i].library->size_pool(&p);
      float *x = input(p.x, 0), *dy = input(p.y, 1), *dx;
      pool_loss(vendors[i].library, &p, x, dy, &dx);
      for (size_t k = 0; k < count_of(p.x); k += 3) {
        float old = x[k];
        x[k] = old + step;
        double more = pool_loss(vendors[i].library, &p, x, dy, NULL);
        x[k] = old - step;
        double less = pool_loss(vendors[i].library, &p, x, dy, NULL);
        x[k] = old;
        assert_true(fabs((more - less) / (2 * (double)step) - (double)dx[k]) < 2e-3);
      }
      free(x);
      free(dy);
      free(dx);
    }
    close_vendor(i);
  }
}

static void test_gradients_of_softmax(void **state) {
  (void)state;
  const float step = 1e-2f;
  for (int i = 0; i < VENDORS * 2; i++) {
    open_vendor(i / 2);
    softmax s = {.log = i % 2, .by_channel = true, .x = {2, 4, 2, 1}};
    float *x = input(s.x, 0), *dy = input(s.x, 1), *dx;
    softmax_loss(vendors[i / 2].library, &s, x, dy, &dx);
    for (size_t k = 0; k < count_of(s.x); k++) {
      float old = x[k];
      x[k] = old + step;
      double more = softmax_loss(vendors[i / 2].library, &s, x, dy, NULL);
      x[k] = old - step;
      double less = softmax_loss(vendors[i / 2].library, &s, x, dy, NULL);
      x[k] = old;
      assert_true(fabs((more - less) / (2 * (double)step) - (double)dx[k]) < 1e-3);
    }
    free(x);
    free(dy);
    free(dx);
    close_vendor(i / 2);
  }
}

/* Bit by bit the same, where both say that they are exact and deterministic. */
static void test_vendors_agree(void **state) {
  (void)state;
  for (unsigned number = 100; number < 100 + PROBLEMS; number++)
    for (int d = 0; d < DIRECTIONS; d++) {
      float *found[VENDORS];
      convolution c = drawn(number);
      for (int i = 0; i < VENDORS; i++) {
        open_vendor(i);
        vendors[i].library->size(&c);
        way ways[MOST_WAYS];
        int count = vendors[i].library->ways(&c, (pass)d, ways, MOST_WAYS), chosen = count - 1;
        while (!ways[chosen].exact || !ways[chosen].deterministic) chosen--;
        assert_true(chosen >= 0);
        found[i] = convolve(vendors[i].library, &c, (pass)d, chosen);
        close_vendor(i);
      }
      size_t count = count_of(d == FORWARD ? c.y : d == BACKWARD_DATA ? c.x : c.w);
      assert_memory_equal(found[0], found[1], count * sizeof *found[0]);
      free(found[0]);
      free(found[1]);
    }
}

/* Sums in no fixed order differ in their last bits from one time to the next; the others do not. */
static void test_determinism(void **state) {
  (void)state;
  for (int i = 0; i < VENDORS; i++) {
    open_vendor(i);
    convolution c = {.x = {4, 3, 9, 9}, .w = {5, 3, 3, 3}, .groups = 1, .stride = {1, 1}, .dilation = {1, 1}};
    vendors[i].library->size(&c);
    way ways[MOST_WAYS];
    int count = vendors[i].library->ways(&c, BACKWARD_FILTER, ways, MOST_WAYS), loose = 0;
    for (int k = 0; k < count; k++) {
      float *first = convolve(vendors[i].library, &c, BACKWARD_FILTER, k);
      float *second = convolve(vendors[i].library, &c, BACKWARD_FILTER, k);
      bool same = !memcmp(first, second, count_of(c.w) * sizeof *first);
      assert_int_equal(same, ways[k].deterministic);
      loose += !same;
      free(first);
      free(second);
    }
    assert_true(loose > 0);
    close_vendor(i);
  }
}

int run_library_cases(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_products),
      cmocka_unit_test(test_convolutions),
      cmocka_unit_test(test_pooling),
      cmocka_unit_test(test_softmax),
      cmocka_unit_test(test_gradients_of_convolutions),
      cmocka_unit_test(test_gradients_of_pooling),
      cmocka_unit_test(test_gradients_of_softmax),
      cmocka_unit_test(test_vendors_agree),
      cmocka_unit_test(test_determinism),
  };
  return cmocka_run_group_tests_name("libraries", tests, NULL, NULL);
}
