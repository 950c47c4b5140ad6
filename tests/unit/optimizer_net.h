/* SPDX-License-Identifier: Apache-2.0 */
/* Two variables that optimizers train with random gradients, and all that such a training has come to. A program that
 * includes this sees the core's internal symbols. */
#ifndef HELIO_TEST_OPTIMIZER_NET_H
#define HELIO_TEST_OPTIMIZER_NET_H

#include "ops/tape.h"
#include "ops/variable.h"
#include "support.h"
#include "tensor/tensor.h"

enum { MOST_BYTES = 4096 };

typedef struct net {
  helio_variable *list[2];
  helio_variables variables;
} net;

static inline void make_net(net *n) {
  n->list[0] =
      helio_variable(helio_constant((float[]){1, -2, 3, -4, 5, -6}, HELIO_SHAPE(2, 3)), .name = "dense/kernel");
  n->list[1] = helio_variable(helio_constant((float[]){0.5f, 0, -0.5f}, HELIO_SHAPE(3)), .name = "dense/bias");
  n->variables = (helio_variables){2, n->list};
  assert_made(n->list[1]);
}

static inline helio_tensor *random_like(const helio_variable *variable, uint64_t *seed) {
  float values[64];
  helio_shape shape = helio_variable_shape(variable);
  int64_t count = helio_tensor_elements(hi_variable_tensor(variable));
  for (int64_t i = 0; i < count; i++) values[i] = (float)((double)next_random(seed) / 1e9 - 1);
  return helio_constant(values, shape);
}

/* Bit i of `which`: there is a gradient of variable i. */
static inline helio_gradients *gradients_of(const helio_variables *variables, unsigned which, uint64_t seed) {
  helio_gradients *gradients = hi_gradients_new(variables->count);
  for (int i = 0; i < variables->count; i++) {
    if (!(which >> i & 1)) continue;
    gradients->list[i] = (hi_gradient){.values = random_like(variables->at[i], &seed)};
    gradients->list[i].shape = gradients->list[i].values->shape;
    hi_gradient_hold(&gradients->list[i]);
  }
  return gradients;
}

static inline void train(helio_optimizer *optimizer, const net *n, int from, int to) {
  for (int step = from; step < to; step++) {
    HELIO_POOL {
      helio_gradients *gradients = gradients_of(&n->variables, 3, (uint64_t)step + 1);
      assert_ok(helio_apply_gradients(optimizer, gradients, &n->variables));
    }
  }
}

/* All bytes of variables and slots, the number of steps and the rate. */
static inline size_t snapshot(helio_optimizer *optimizer, const net *n, char *bytes) {
  size_t length = 0;
  const helio_variables *lists[] = {&n->variables, helio_optimizer_variables(optimizer)};
  int64_t iterations = helio_optimizer_iterations(optimizer);
  double rate = helio_optimizer_learning_rate(optimizer);
  memset(bytes, 0, MOST_BYTES);
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < lists[k]->count; i++) {
      const helio_tensor *tensor = hi_variable_tensor(lists[k]->at[i]);
      assert_true(length + hi_tensor_bytes(tensor) + 16 <= MOST_BYTES);
      assert_ok(helio_tensor_read(tensor, bytes + length, hi_tensor_bytes(tensor)));
      length += hi_tensor_bytes(tensor);
    }
  }
  memcpy(bytes + length, &iterations, sizeof iterations);
  memcpy(bytes + length + 8, &rate, sizeof rate);
  return length + 16;
}

static inline void assert_unchanged(helio_optimizer *optimizer, const net *n, const char *before, size_t length) {
  char after[MOST_BYTES];
  assert_int_equal(snapshot(optimizer, n, after), length);
  assert_memory_equal(after, before, length);
}

#endif
