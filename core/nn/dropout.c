/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: in training some elements become zero and the others larger. */
#include "nn/initializer.h"
#include "nn/kinds.h"
#include "nn/layer_help.h"
#include "runtime/error.h"

helio_layer *helio_dropout_with(const helio_dropout_options *options) {
  return hi_layer_new("helio_dropout", &hi_dropout_kind, options);
}

static helio_status check(helio_layer *layer) {
  const helio_dropout_options *o = layer->options;
  if (o->rate >= 0 && o->rate <= 1) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "rate is %g, which is not in [0, 1]", o->rate);
}

/* The layer's name and seed say which numbers are drawn; each call is a step of its own. */
static helio_tensor *call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_dropout_options *o = layer->options;
  (void)count;
  if (!training || o->rate == 0) return inputs[0];
  if (o->rate == 1) return helio_mul(inputs[0], hi_scalar_like(inputs[0], 0));
  return helio_nn_dropout(inputs[0], o->rate, .key = hi_seed_key(o->seed, hi_layer_label(layer)),
                          .step = atomic_fetch_add(&layer->calls, 1));
}

static const hi_field fields[] = {
    {"rate", HI_FIELD_REAL, offsetof(helio_dropout_options, rate), NULL},
    {"seed", HI_FIELD_SEED, offsetof(helio_dropout_options, seed), NULL},
    {"noise_shape", HI_FIELD_FIXED, 0, "null"},
    {0},
};

const hi_layer_kind hi_dropout_kind = {
    .class_name = "Dropout",
    .base_name = "dropout",
    .options_size = sizeof(helio_dropout_options),
    .common = offsetof(helio_dropout_options, name),
    .least_inputs = 1,
    .most_inputs = 1,
    .check = check,
    .shape = hi_shape_of_input,
    .call = call,
    .fields = fields,
};
