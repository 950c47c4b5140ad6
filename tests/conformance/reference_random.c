/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: Philox 4×32-10 as published with Random123, and what plugin.h makes of its words. */
#include "reference_random.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the generator ---- */

void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t block[4]) {
  uint32_t k0 = key[0], k1 = key[1];
  memcpy(block, counter, 4 * sizeof *block);
  for (int round = 0; round < 10; round++) {
    uint64_t a = (uint64_t)block[0] * 0xD2511F53u, b = (uint64_t)block[2] * 0xCD9E8D57u;
    uint32_t next[4] = {(uint32_t)(b >> 32) ^ block[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ block[3] ^ k1,
                        (uint32_t)a};
    memcpy(block, next, sizeof next);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

typedef struct known_answer {
  uint32_t counter[4], key[2], block[4];
} known_answer;

/* From kat_vectors of Random123 1.14. */
static const known_answer known_answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

void check_philox(void) {
  for (int i = 0; i < COUNT(known_answers); i++) {
    uint32_t block[4];
    philox(known_answers[i].counter, known_answers[i].key, block);
    run.examples++;
    if (memcmp(block, known_answers[i].block, sizeof block) == 0) continue;
    failed("known answer %d: %08x %08x %08x %08x", i, block[0], block[1], block[2], block[3]);
  }
}

static uint32_t word_of(const example *e, uint64_t n) {
  uint64_t key = (uint64_t)e->scalars[0].integer, step = (uint64_t)e->scalars[1].integer, at = n / 4;
  const uint32_t counter[4] = {(uint32_t)at, (uint32_t)(at >> 32), (uint32_t)step, (uint32_t)(step >> 32)};
  const uint32_t keys[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
  uint32_t block[4];
  philox(counter, keys, block);
  return block[n % 4];
}

/* ---- what is drawn ---- */

static uint64_t place_of(const example *e, int64_t i) {
  return (uint64_t)e->scalars[2].integer + (uint64_t)i;
}

static double single_uniform(const example *e, int64_t i) {
  return (double)(word_of(e, place_of(e, i)) >> 8) * 0x1p-24;
}

static double bits(const example *e, int64_t i) {
  return (int32_t)word_of(e, place_of(e, i));
}

static double uniform(const example *e, int64_t i) {
  uint64_t n = 2 * place_of(e, i);
  double low = e->scalars[3].real, high = e->scalars[4].real, u;
  if (e->wanted_type == HELIO_FLOAT32) {
    u = single_uniform(e, i);
  } else {
    uint64_t pair = (uint64_t)word_of(e, n + 1) << 32 | word_of(e, n);
    u = (double)(pair >> 11) * 0x1p-53;
  }
  return low + u * (high - low);
}

static double normal(const example *e, int64_t i) {
  uint64_t n = 2 * place_of(e, i);
  double a = ((double)word_of(e, n) + 1) * 0x1p-32, b = (double)word_of(e, n + 1) * 0x1p-32;
  return e->scalars[3].real + e->scalars[4].real * sqrt(-2 * log(a)) * cos(2 * M_PI * b);
}

static void reference_random(const example *e, array *results) {
  results[0] = array_new(e->wanted_type, &e->wanted);
  for (int64_t i = 0; i < results[0].elements; i++) {
    double value = e->family->operation == HELIO_OP_RANDOM_BITS      ? bits(e, i)
                   : e->family->operation == HELIO_OP_RANDOM_UNIFORM ? uniform(e, i)
                                                                     : normal(e, i);
    results[0].values[i] = value;
  }
}

static void reference_dropout(const example *e, array *results) {
  const array *x = &e->inputs[0];
  double rate = e->scalars[3].real;
  results[0] = array_new(x->type, &x->shape);
  for (int64_t i = 0; i < x->elements; i++) {
    results[0].values[i] = single_uniform(e, i) < rate ? 0 : x->values[i] / (1 - rate);
  }
}

/* Which numbers: from the start, from inside a block, past 2³⁴ where the counter's second word begins, and far out. */
typedef struct start {
  uint64_t key, step, base;
} start;

static const start starts[] = {
    {0, 0, 0},
    {1, 0, 0},
    {0, 1, 1},
    {UINT64_C(0x0123456789abcdef), 7, 2},
    {UINT64_C(0xffffffffffffffff), UINT64_C(0xffffffffffffffff), 3},
    {UINT64_C(0x299f31d0a4093822), UINT64_C(0x0370734413198a2e), (UINT64_C(1) << 34) - 5},
    {42, UINT64_C(1) << 32, (UINT64_C(1) << 33) - 3},
    {42, 1, (UINT64_C(1) << 61) + 1},
};

static void set_start(example *e, const start *s) {
  e->scalars[0].integer = (int64_t)s->key;
  e->scalars[1].integer = (int64_t)s->step;
  e->scalars[2].integer = (int64_t)s->base;
}

static void example_random(const family *f, helio_type type, int which, helio_shape shape, bool once) {
  bool unit = which % 2 == 0, is_normal = f->operation == HELIO_OP_RANDOM_NORMAL;
  example e = example_new(f, type);
  set_start(&e, &starts[which % COUNT(starts)]);
  e.wanted = shape;
  e.wanted_type = type;
  e.scalars[3].real = unit ? 0 : -1.25;
  e.scalars[4].real = unit ? 1 : 2.5;
  e.once = once;
  if (unit && !is_normal) e.tolerance = DBL_MIN; /* to the bit */
  check_example(&e);
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The largest distance between the distribution of the sample and the one it is drawn from. */
static double kolmogorov_smirnov(array *sample, bool is_normal) {
  double worst = 0, n = (double)sample->elements;
  qsort(sample->values, (size_t)sample->elements, sizeof *sample->values, compare_doubles);
  for (int64_t i = 0; i < sample->elements; i++) {
    double x = sample->values[i], expected = is_normal ? 0.5 * erfc(-x / sqrt(2)) : x;
    worst = fmax(worst, fmax(fabs((double)i / n - expected), fabs((double)(i + 1) / n - expected)));
  }
  return worst;
}

static double moment(const array *sample, int power) {
  double sum = 0;
  for (int64_t i = 0; i < sample->elements; i++) sum += pow(sample->values[i], power);
  return sum / (double)sample->elements;
}

/* Four standard errors each, and the 0.1 % point of Kolmogorov–Smirnov. The numbers are always the same, so that what
 * passes once passes for ever. */
static void check_distribution(const family *f, helio_type type) {
  static const double normal_moments[] = {0, 1, 0, 3}, normal_spread[] = {1, 2, 15, 96};
  static const double uniform_moments[] = {0.5, 1 / 3., 0.25, 0.2}, uniform_spread[] = {0.09, 0.09, 0.09, 0.08};
  bool is_normal = f->operation == HELIO_OP_RANDOM_NORMAL;
  const double *moments = is_normal ? normal_moments : uniform_moments;
  const double *spread = is_normal ? normal_spread : uniform_spread;
  array sample;
  example e = example_new(f, type);
  set_start(&e, &starts[3]);
  e.wanted = (helio_shape)SHAPE(run.lengthy ? 2000000 : 200000);
  e.wanted_type = type;
  e.scalars[4].real = 1;
  if (!run_for_result(&e, &sample)) return;
  double n = (double)sample.elements;
  for (int i = 0; i < 4; i++) {
    double seen = moment(&sample, i + 1);
    if (fabs(seen - moments[i]) < 4 * sqrt(spread[i] / n)) continue;
    failed("moment %d of %g numbers is %g, not %g", i + 1, n, seen, moments[i]);
  }
  double distance = kolmogorov_smirnov(&sample, is_normal);
  if (distance > 1.95 / sqrt(n)) failed("Kolmogorov-Smirnov distance of %g numbers: %g", n, distance);
  array_free(&sample);
}

static void examples_random(const family *f, helio_type type) {
  for (int which = 0; which < COUNT(starts); which++) {
    for (int i = 0; i < odd_shape_count; i++) example_random(f, type, which, odd_shapes[i], false);
  }
  example_random(f, type, 4, large_shape(type), true);
  example_random(f, type, 5, large_shape(type), true);
  if (f->operation != HELIO_OP_RANDOM_BITS) check_distribution(f, type);
}

static void example_dropout(const family *f, helio_type type, int which, helio_shape shape, bool once) {
  static const double rates[] = {0.5, 0, 0.1, 0.999};
  example e = example_new(f, type);
  set_start(&e, &starts[which % COUNT(starts)]);
  e.scalars[3].real = rates[which % COUNT(rates)];
  e.once = once;
  add_input(&e, type, shape);
  check_example(&e);
}

static void examples_dropout(const family *f, helio_type type) {
  for (int which = 0; which < COUNT(starts); which++) {
    for (int i = 0; i < odd_shape_count; i++) example_dropout(f, type, which + i, odd_shapes[i], false);
  }
  example_dropout(f, type, 4, large_shape(type), true);
  example_dropout(f, type, 6, large_shape(type), true);
}

const family random_families[] = {
    {.operation = HELIO_OP_RANDOM_BITS, .examples = examples_random, .reference = reference_random},
    {.operation = HELIO_OP_RANDOM_UNIFORM, .examples = examples_random, .reference = reference_random},
    {.operation = HELIO_OP_RANDOM_NORMAL, .examples = examples_random, .reference = reference_random},
    {.operation = HELIO_OP_DROPOUT, .examples = examples_dropout, .reference = reference_dropout},
    {.operation = 0},
};
