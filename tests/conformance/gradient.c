/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of the core's table of operations against finite differences of the references, in float64. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "ops/dispatch.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

/* What gradients may differ from finite differences by, and how far apart those are taken. */
static const double allowed = 1e-7, width = 1e-3;

/* ---- examples ---- */

/* Values that all differ by more than the differences are wide, and are as far from zero: there the functions have
 * kinks. */
static void fill_apart(example *e, uint32_t floats, double low, double high) {
  int64_t count = 0, at = 0;
  for (int i = 0; i < e->input_count; i++) count += floats >> i & 1 ? e->inputs[i].elements : 0;
  int64_t *order = calloc((size_t)count + 1, sizeof *order);
  if (!order) exit(2);
  for (int64_t i = 0; i < count; i++) order[i] = i;
  for (int64_t i = count - 1; i > 0; i--) {
    int64_t other = (int64_t)(random_word() % (uint64_t)(i + 1)), kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  for (int i = 0; i < e->input_count; i++) {
    for (int64_t k = 0; floats >> i & 1 && k < e->inputs[i].elements; k++) {
      double value = low + (high - low) * ((double)order[at++] + 0.5) / (double)count;
      e->inputs[i].values[k] = value + copysign(0.02, value);
    }
  }
  free(order);
}

static example example_of(const recipe *r, const hi_row *row) {
  example e = example_new(family_of(r->operation), HELIO_FLOAT64);
  double low = r->low, high = r->high;
  uint32_t floats = 0;
  if (low == 0 && high == 0) low = -2, high = 2;
  e.attributes = r->attributes;
  e.keep_dims = r->keep_dims;
  e.wanted = r->wanted;
  e.wanted_type = r->wanted_type;
  for (int i = 0; i < HI_MAX_SCALARS; i++) {
    if (r->integer_scalars >> i & 1) {
      e.scalars[i].integer = (int64_t)r->scalars[i];
    } else {
      e.scalars[i].real = r->scalars[i];
    }
  }
  for (int i = 0; i < r->input_count; i++) {
    char letter = row->inputs[1] == '*' ? 'T' : (char)toupper((unsigned char)row->inputs[i]);
    if (r->inputs[i].rank < 0) {
      add_absent(&e);
    } else if (letter == 'T') {
      add_between(&e, HELIO_FLOAT64, r->inputs[i], 0.1, 1);
      floats |= r->constant >> i & 1 ? 0 : 1u << i;
    } else {
      add_between(&e, letter == 'B' ? HELIO_BOOL : HELIO_INT64, r->inputs[i], 0,
                  letter == 'B' ? 1 : (double)r->below - 1);
    }
  }
  fill_apart(&e, floats, low, high);
  return e;
}

/* ---- finite differences of Σ weight × result ---- */

typedef struct weighted {
  array weights[MOST_RESULTS]; /* absent: nothing flows back from there */
} weighted;

static double value_of(const example *e, const weighted *w) {
  array results[MOST_RESULTS] = {{0}};
  double sum = 0;
  e->family->reference(e, results);
  for (int i = 0; i < MOST_RESULTS; i++) {
    for (int64_t k = 0; w->weights[i].values && k < results[i].elements; k++) {
      sum += w->weights[i].values[k] * results[i].values[k];
    }
    array_free(&results[i]);
  }
  return sum;
}

static double value_beside(const example *e, const weighted *w, double *x, double by) {
  double before = *x;
  *x = before + by;
  double value = value_of(e, w);
  *x = before;
  return value;
}

/* Of the fourth order, so that the step can be wide enough for rounding to play no part. */
static array differences(example *e, const weighted *w, int input) {
  array *x = &e->inputs[input], result = array_new(HELIO_FLOAT64, &x->shape);
  for (int64_t i = 0; i < x->elements; i++) {
    double *at = &x->values[i], h = width * fmax(1, fabs(*at));
    double near = value_beside(e, w, at, h) - value_beside(e, w, at, -h);
    double far = value_beside(e, w, at, 2 * h) - value_beside(e, w, at, -2 * h);
    result.values[i] = (8 * near - far) / (12 * h);
  }
  return result;
}

/* ---- the row's own gradient ---- */

typedef struct backward {
  helio_tensor *inputs[MOST_INPUTS], *outputs[HI_MAX_OUTPUTS], *kept_inputs[MOST_INPUTS], *kept_outputs[HI_MAX_OUTPUTS];
  helio_tensor *output_gradients[HI_MAX_OUTPUTS];
  helio_shape shapes[MOST_INPUTS];
  helio_type types[MOST_INPUTS];
  hi_gradient gradients[MOST_INPUTS];
} backward;

static helio_tensor *tensor_of(const array *a) {
  void *data = calloc((size_t)a->elements + 1, 8);
  if (!data) exit(2);
  array_encode(a, data);
  helio_tensor *tensor = helio_constant(data, a->shape, .type = a->type);
  free(data);
  return tensor;
}

/* The call forward, with those optional outputs that the gradient looks at. Rows of the core have none to keep. */
static helio_status run_forward(const example *e, const hi_row *row, backward *b) {
  hi_call call = {.row = row,
                  .inputs = b->inputs,
                  .input_count = e->input_count,
                  .attributes = e->attributes,
                  .keep_dims = e->keep_dims,
                  .wanted = e->wanted,
                  .wanted_type = e->wanted_type};
  memcpy(call.scalars, e->scalars, sizeof e->scalars);
  for (int i = 0; i < e->input_count; i++) {
    const array *input = &e->inputs[i];
    b->shapes[i] = input->shape;
    b->types[i] = input->values ? input->type : (helio_type)0;
    b->inputs[i] = input->values ? tensor_of(input) : NULL;
    if (row->keeps_inputs >> i & 1) b->kept_inputs[i] = b->inputs[i];
  }
  for (int i = 0; row->outputs[i]; i++) {
    if (hi_row_output_optional(row, i) && !(row->keeps_outputs >> i & 1)) call.no_outputs |= 1u << i;
  }
  if (helio_error_pending()) return helio_error_pending();
  helio_status status = row->kind == HI_ROW_KERNEL ? hi_dispatch(&call, b->outputs) : HELIO_OK;
  for (int i = 0; i < HI_MAX_OUTPUTS; i++) {
    if (row->keeps_outputs >> i & 1) b->kept_outputs[i] = b->outputs[i];
  }
  return status;
}

/* As the tape does it: only what the row keeps is there. */
static helio_status run_backward(const example *e, const hi_row *row, const weighted *w, uint32_t wanted, backward *b) {
  helio_status status = run_forward(e, row, b);
  for (int i = 0; i < HI_MAX_OUTPUTS; i++) {
    b->output_gradients[i] = w->weights[i].values ? tensor_of(&w->weights[i]) : NULL;
  }
  if (status) return status;
  hi_backward call = {.row = row,
                      .attributes = &e->attributes,
                      .scalars = e->scalars,
                      .input_count = e->input_count,
                      .inputs = b->kept_inputs,
                      .outputs = b->kept_outputs,
                      .input_shapes = b->shapes,
                      .input_types = b->types,
                      .output_gradients = b->output_gradients,
                      .wanted = wanted,
                      .input_gradients = b->gradients};
  return row->gradient(&call);
}

/* Rows are added up to what they stand for. */
static bool dense_of(const hi_gradient *gradient, const helio_shape *shape, array *dense) {
  array values = array_new(HELIO_FLOAT64, &gradient->values->shape);
  *dense = array_new(HELIO_FLOAT64, shape);
  bool good = gradient->values->type == HELIO_FLOAT64 &&
              !helio_tensor_read(gradient->values, values.values, (size_t)values.elements * sizeof(double));
  if (!gradient->indices) {
    good = good && shape_same(&values.shape, shape);
    if (good) memcpy(dense->values, values.values, (size_t)values.elements * sizeof(double));
  } else {
    int64_t count = gradient->indices->elements, length = count ? values.elements / count : 0;
    int64_t *indices = calloc((size_t)count + 1, sizeof *indices);
    good = good && indices && gradient->indices->type == HELIO_INT64 && shape_same(&gradient->shape, shape) &&
           !helio_tensor_read(gradient->indices, indices, (size_t)count * sizeof *indices);
    for (int64_t i = 0; good && i < values.elements; i++) {
      dense->values[indices[i / length] * length + i % length] += values.values[i];
    }
    free(indices);
  }
  array_free(&values);
  return good;
}

static void compare(const example *e, int input, uint32_t wanted, const backward *b, const array *expected) {
  char words[1000];
  array seen = {0};
  int64_t at;
  if (!b->gradients[input].values) {
    failed("%s: no gradient by input %d, wanted are %#x", example_words(e, words), input, wanted);
    return;
  }
  if (!dense_of(&b->gradients[input], &e->inputs[input].shape, &seen)) {
    failed("%s: the gradient by input %d is of another shape or type or cannot be read: %s", example_words(e, words),
           input, helio_error_message());
    helio_error_take(NULL);
  } else {
    double error = array_error(&seen, expected, &at);
    if (!(error <= allowed)) {
      failed("%s: the gradient by input %d has error %.3g, allowed %.3g; element %lld is %.12g, by differences %.12g",
             example_words(e, words), input, error, allowed, (long long)at, seen.values[at], expected->values[at]);
    }
  }
  array_free(&seen);
}

/* ---- one recipe ---- */

/* Asks for the gradients in `wanted` and compares them. */
static void try_wanted(const example *e, const hi_row *row, const weighted *w, uint32_t wanted, const array *expected) {
  HELIO_POOL {
    backward b = {0};
    run.examples++;
    helio_status status = run_backward(e, row, w, wanted, &b);
    if (status == HELIO_NOT_SUPPORTED && !run.is_host) {
      snprintf(run.reason, sizeof run.reason, "%s", helio_error_message());
      run.refused++;
    } else if (status || helio_error_pending()) {
      char words[1000];
      failed("%s: %s: %s", example_words(e, words), helio_status_name(status), helio_error_message());
    } else {
      for (int i = 0; i < e->input_count; i++) {
        if (expected[i].values && wanted >> i & 1) compare(e, i, wanted, &b, &expected[i]);
      }
    }
    helio_error_take(NULL);
  }
}

/* Weights for the outputs in `flowing`. False if there is no such output. */
static bool make_weights(const example *e, const hi_row *row, uint32_t flowing, weighted *w) {
  array results[MOST_RESULTS] = {{0}};
  bool any = false;
  e->family->reference(e, results);
  for (int i = 0; i < MOST_RESULTS; i++) {
    bool output = i < hi_row_outputs(row) && !hi_row_output_optional(row, i) && results[i].values;
    w->weights[i] = (array){0};
    if (output && flowing >> i & 1) w->weights[i] = array_random(HELIO_FLOAT64, &results[i].shape, -1, 1);
    if (flowing >> i & 1 && !output) any = true;
    array_free(&results[i]);
  }
  return !any;
}

static void check_flowing(example *e, const hi_row *row, const recipe *r, uint32_t flowing) {
  weighted w;
  array expected[MOST_INPUTS] = {{0}};
  uint32_t all = 0;
  bool sensible = make_weights(e, row, flowing, &w);
  for (int i = 0; sensible && i < e->input_count; i++) {
    bool has = e->inputs[i].values && e->inputs[i].type == HELIO_FLOAT64 && !(r->constant >> i & 1);
    if (!has) continue;
    expected[i] = differences(e, &w, i);
    all |= 1u << i;
  }
  if (sensible) try_wanted(e, row, &w, all, expected);
  for (int i = 0; sensible && i < e->input_count; i++) {
    if (all >> i & 1 && all != 1u << i) try_wanted(e, row, &w, 1u << i, expected);
  }
  for (int i = 0; i < MOST_INPUTS; i++) array_free(&expected[i]);
  for (int i = 0; i < MOST_RESULTS; i++) array_free(&w.weights[i]);
}

void check_gradient(const hi_row *row) {
  for (int i = 0; i < recipe_count; i++) {
    if (recipes[i].operation != row->operation) continue;
    example e = example_of(&recipes[i], row);
    for (uint32_t flowing = 1; flowing < 1u << HI_MAX_OUTPUTS; flowing++) check_flowing(&e, row, &recipes[i], flowing);
    example_free(&e);
  }
}
