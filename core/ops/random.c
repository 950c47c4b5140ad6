/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: pure functions of key, step and place. */
#include "ops/options.h"
#include "runtime/error.h"

/* The three words that say which numbers are drawn, then two of the operation's own. */
static helio_tensor *draw(helio_operation operation, const helio_random_options *o, double first, double second) {
  hi_call call = {.row = hi_row_of(operation),
                  .wanted = o->shape,
                  .wanted_type = o->type                             ? o->type
                                 : operation == HELIO_OP_RANDOM_BITS ? HELIO_INT32
                                                                     : HELIO_FLOAT32,
                  .scalars = {{.integer = (int64_t)o->key},
                              {.integer = (int64_t)o->step},
                              {.integer = (int64_t)o->base},
                              {.real = first},
                              {.real = second}}};
  return hi_dispatch_one(&call);
}

helio_tensor *helio_random_uniform_with(const helio_random_options *given) {
  helio_random_options o;
  if (!hi_options_enter("helio_random_uniform", &o, sizeof o, given)) return NULL;
  return draw(HELIO_OP_RANDOM_UNIFORM, &o, o.low, o.low == 0 && o.high == 0 ? 1 : o.high);
}

helio_tensor *helio_random_normal_with(const helio_random_options *given) {
  helio_random_options o;
  if (!hi_options_enter("helio_random_normal", &o, sizeof o, given)) return NULL;
  return draw(HELIO_OP_RANDOM_NORMAL, &o, o.mean, o.deviation == 0 ? 1 : o.deviation);
}

helio_tensor *helio_random_bits_with(const helio_random_options *given) {
  helio_random_options o;
  if (!hi_options_enter("helio_random_bits", &o, sizeof o, given)) return NULL;
  return draw(HELIO_OP_RANDOM_BITS, &o, 0, 0);
}

helio_tensor *helio_nn_dropout_with(const helio_nn_dropout_options *given) {
  helio_nn_dropout_options o;
  if (!hi_options_enter("helio_nn_dropout", &o, sizeof o, given)) return NULL;
  if (!(o.rate >= 0 && o.rate < 1)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "Dropout: the rate %g is not in [0, 1)", o.rate);
    return NULL;
  }
  hi_call call = {
      .row = hi_row_of(HELIO_OP_DROPOUT),
      .inputs = &o.x,
      .input_count = 1,
      .scalars = {
          {.integer = (int64_t)o.key}, {.integer = (int64_t)o.step}, {.integer = (int64_t)o.base}, {.real = o.rate}}};
  return hi_dispatch_one(&call);
}
