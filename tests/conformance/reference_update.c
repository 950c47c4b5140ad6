/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of optimizers, with dense gradients and with rows. */
#include <math.h>
#include <string.h>

#include "conformance.h"

/* One element: the weight, the slots in the order of the inputs (NULL: absent), the gradient, and its square or what
 * was given for it. */
typedef void (*step)(const example *e, double *w, double *const *slots, double g, double square);

static double scalar(const example *e, int i) {
  return e->scalars[i].real;
}

static void step_sgd(const example *e, double *w, double *const *slots, double g, double square) {
  (void)square;
  double rate = scalar(e, 0), momentum = scalar(e, 2), *v = slots[0];
  if (!v) {
    *w -= rate * g;
    return;
  }
  *v = momentum * *v - rate * g;
  *w += e->attributes.sgd.nesterov ? momentum * *v - rate * g : *v;
}

static void step_adam(const example *e, double *w, double *const *slots, double g, double square) {
  double *m = slots[0], *v = slots[1];
  *m += (g - *m) * (1 - scalar(e, 2));
  *v += (square - *v) * (1 - scalar(e, 3));
  *w -= scalar(e, 0) * *m / (sqrt(*v) + scalar(e, 4));
}

static void step_nadam(const example *e, double *w, double *const *slots, double g, double square) {
  double *m = slots[0], *v = slots[1];
  *m += (g - *m) * (1 - scalar(e, 2));
  *v += (square - *v) * (1 - scalar(e, 3));
  *w -= scalar(e, 0) * (scalar(e, 5) * *m + scalar(e, 6) * g) / (sqrt(scalar(e, 7) * *v) + scalar(e, 4));
}

static void step_rmsprop(const example *e, double *w, double *const *slots, double g, double square) {
  double rate = scalar(e, 0), rho = scalar(e, 2), epsilon = scalar(e, 4), *s = slots[0], *p = slots[1], *a = slots[2];
  *s = rho * *s + (1 - rho) * square;
  if (a) *a = rho * *a + (1 - rho) * g;
  double u = rate * g / sqrt(*s - (a ? *a * *a : 0) + epsilon);
  if (p) *p = scalar(e, 3) * *p + u;
  *w -= p ? *p : u;
}

static void step_adagrad(const example *e, double *w, double *const *slots, double g, double square) {
  *slots[0] += square;
  *w -= scalar(e, 0) * g / sqrt(*slots[0] + scalar(e, 2));
}

static step step_of(helio_operation operation) {
  switch (operation) {
  case HELIO_OP_SGD_UPDATE:
    return step_sgd;
  case HELIO_OP_ADAM_UPDATE:
    return step_adam;
  case HELIO_OP_NADAM_UPDATE:
    return step_nadam;
  case HELIO_OP_RMSPROP_UPDATE:
    return step_rmsprop;
  default:
    return step_adagrad;
  }
}

/* Input `place`, the gradient or the squares, as if it had been dense. */
static array dense_input(const example *e, int place) {
  int gradient = hi_update_gradient_place(hi_row_of(e->family->operation));
  const array *weights = &e->inputs[0], *rows = &e->inputs[place], *indices = &e->inputs[gradient + 1];
  if (!indices->values) return array_copy(rows);
  array dense = array_new(weights->type, &weights->shape);
  int64_t length = 1;
  for (int i = 1; i < weights->shape.rank; i++) length *= weights->shape.extent[i];
  for (int64_t i = 0; i < indices->elements; i++) {
    if (indices->values[i] < 0) continue;
    memcpy(dense.values + (int64_t)indices->values[i] * length, rows->values + i * length,
           (size_t)length * sizeof *dense.values);
  }
  return dense;
}

/* Where none are given they are the gradient's own. */
static array dense_squares(const example *e, const array *gradient) {
  int place = hi_update_gradient_place(hi_row_of(e->family->operation)) + 2;
  if (place < e->input_count && e->inputs[place].values) return dense_input(e, place);
  array squares = array_copy(gradient);
  for (int64_t i = 0; i < squares.elements; i++) squares.values[i] *= squares.values[i];
  return squares;
}

static void reference_update(const example *e, array *results) {
  int written = hi_update_gradient_place(hi_row_of(e->family->operation));
  array gradient = dense_input(e, written), squares = dense_squares(e, &gradient);
  step each = step_of(e->family->operation);
  for (int i = 0; i < written; i++) {
    if (e->inputs[i].values) results[i] = array_copy(&e->inputs[i]);
  }
  for (int64_t i = 0; i < results[0].elements; i++) {
    double *slots[MOST_RESULTS] = {NULL};
    for (int k = 1; k < written; k++) slots[k - 1] = results[k].values ? results[k].values + i : NULL;
    results[0].values[i] -= results[0].values[i] * scalar(e, 1);
    each(e, &results[0].values[i], slots, gradient.values[i], squares.values[i]);
  }
  array_free(&gradient);
  array_free(&squares);
}

/* ---- examples ---- */

/* The slots that a row has, in order: which may be absent, and the range of their values. */
typedef struct slot {
  bool optional;
  double low, high;
} slot;

typedef struct optimizer {
  helio_operation operation;
  int slot_count;
  slot slots[3];
  double scalars[HI_MAX_SCALARS];
} optimizer;

static const optimizer optimizers[] = {
    {HELIO_OP_SGD_UPDATE, 1, {{true, -0.5, 0.5}}, {0.1, 0.01, 0.9}},
    {HELIO_OP_ADAM_UPDATE, 2, {{false, -0.5, 0.5}, {false, 0, 1}}, {0.01, 0.01, 0.9, 0.999, 1e-7}},
    {HELIO_OP_NADAM_UPDATE, 2, {{false, -0.5, 0.5}, {false, 0, 1}}, {0.01, 0.01, 0.9, 0.999, 1e-7, 0.97, 0.15, 1.2}},
    {HELIO_OP_RMSPROP_UPDATE, 3, {{false, 1, 2}, {true, -0.5, 0.5}, {true, -0.5, 0.5}}, {0.01, 0.01, 0.9, 0.8, 1e-7}},
    {HELIO_OP_ADAGRAD_UPDATE, 1, {{false, 0.1, 1}}, {0.05, 0.01, 1e-7}},
};

static const optimizer *optimizer_of(helio_operation operation) {
  int i = 0;
  while (optimizers[i].operation != operation) i++;
  return &optimizers[i];
}

/* Distinct rows in ascending order, then −1, whose rows must count nothing whatever they hold. */
static void add_rows(example *e, helio_type type, helio_type index, helio_shape weights, int64_t count) {
  helio_shape rows = weights;
  rows.extent[0] = count;
  add_input(e, type, rows);
  array *indices = &e->inputs[e->input_count++];
  *indices = array_new(index, &(helio_shape){1, {count}});
  int64_t chosen = 0;
  for (int64_t i = 0; i < weights.extent[0] && chosen < count - count / 4; i++) {
    int64_t left = weights.extent[0] - i, needed = count - count / 4 - chosen;
    if ((int64_t)(random_word() % (uint64_t)left) < needed) indices->values[chosen++] = (double)i;
  }
  for (; chosen < count; chosen++) indices->values[chosen] = -1;
}

typedef struct setting {
  helio_shape weights;
  int64_t rows;     /* of the gradient; −1: it is dense */
  helio_type index; /* of the rows' indices */
  uint32_t absent;  /* bit i: slot i, if it may be */
  bool decay, nesterov;
} setting;

/* Squares of their own: neither those of the gradient nor zero where no row is named. */
static void add_squares(example *e) {
  int gradient = e->input_count - 2;
  add_between(e, e->type, e->inputs[gradient].shape, 0.5, 2);
}

static bool has_squares(helio_operation operation) {
  return operation != HELIO_OP_SGD_UPDATE;
}

static void example_update(const family *f, helio_type type, const setting *s, bool squares) {
  const optimizer *o = optimizer_of(f->operation);
  example e = example_new(f, type);
  for (int i = 0; i < HI_MAX_SCALARS; i++) e.scalars[i].real = i == 1 && !s->decay ? 0 : o->scalars[i];
  if (f->operation == HELIO_OP_SGD_UPDATE) {
    e.attributes.sgd = (helio_sgd_attributes){.size = sizeof e.attributes.sgd, .nesterov = s->nesterov};
  }
  add_between(&e, type, s->weights, 0.5, 1.5); /* so that no step makes one nearly zero */
  for (int i = 0; i < o->slot_count; i++) {
    if (o->slots[i].optional && s->absent >> i & 1) {
      add_absent(&e);
    } else {
      add_between(&e, type, s->weights, o->slots[i].low, o->slots[i].high);
    }
  }
  if (s->rows >= 0) {
    add_rows(&e, type, s->index, s->weights, s->rows);
  } else {
    add_input(&e, type, s->weights);
    add_absent(&e);
  }
  if (squares) {
    add_squares(&e);
  } else if (has_squares(f->operation)) {
    add_absent(&e);
  }
  e.once = shape_elements(&s->weights) > 10000;
  check_example(&e);
}

static const setting settings[] = {
    {SHAPE(1), -1, 0, 0, true, false},
    {SHAPE(7), -1, 0, 0, false, true},
    {NO_AXES, -1, 0, 0, true, true},
    {SHAPE(0, 5), -1, 0, 0, true, false},
    {SHAPE(13, 17), -1, 0, 0, true, false},
    {SHAPE(3, 5, 7), -1, 0, 0, false, false},
    {SHAPE(257), -1, 0, 0, true, true},
    {SHAPE(13, 17), 5, HELIO_INT32, 0, true, false},
    {SHAPE(13, 17), 13, HELIO_INT64, 0, false, true},
    {SHAPE(31), 8, HELIO_INT64, 0, true, true},
    {SHAPE(13, 17), 0, HELIO_INT32, 0, true, false},
    {SHAPE(67, 2, 3), 40, HELIO_INT32, 0, false, false},
    {SHAPE(113, 1033), -1, 0, 0, true, false},
    {SHAPE(4999, 33), 997, HELIO_INT64, 0, true, true},
};

/* Slots that may be absent are there and not; gradients that are rows have squares and have not. */
static void examples_update(const family *f, helio_type type) {
  const optimizer *o = optimizer_of(f->operation);
  uint32_t optional = 0;
  for (int k = 0; k < o->slot_count; k++) optional |= o->slots[k].optional ? 1u << k : 0;
  for (int i = 0; i < COUNT(settings); i++) {
    for (uint32_t absent = 0; absent < 8; absent++) {
      if (absent & ~optional) continue;
      setting s = settings[i];
      s.absent = absent;
      example_update(f, type, &s, false);
      if (has_squares(f->operation) && s.rows >= 0) example_update(f, type, &s, true);
    }
  }
}

#define UPDATE(symbol)                                                                                                 \
  { .operation = HELIO_OP_##symbol, .examples = examples_update, .reference = reference_update }

const family update_families[] = {
    UPDATE(SGD_UPDATE),     UPDATE(ADAM_UPDATE),    UPDATE(NADAM_UPDATE),
    UPDATE(RMSPROP_UPDATE), UPDATE(ADAGRAD_UPDATE), {.operation = 0},
};
