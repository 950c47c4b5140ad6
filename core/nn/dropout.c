/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: in training some elements become zero and the others larger. */
#include <stdlib.h>

#include "nn/initializer.h"
#include "nn/kinds.h"
#include "nn/layer_help.h"
#include "ops/journal.h"
#include "runtime/error.h"

helio_layer *helio_dropout_with(const helio_dropout_options *options) {
  return hi_layer_new("helio_dropout", &hi_dropout_kind, options);
}

static helio_status check(helio_layer *layer) {
  const helio_dropout_options *o = layer->options;
  if (o->rate >= 0 && o->rate <= 1) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "rate is %g, which is not in [0, 1]", o->rate);
}

static helio_status build(helio_layer *layer, const helio_shape *inputs, int count) {
  (void)inputs, (void)count;
  layer->calls = calloc(HELIO_MAX_REPLICAS, sizeof *layer->calls);
  return layer->calls ? HELIO_OK : hi_fail(HELIO_OUT_OF_MEMORY, "no memory for its counters");
}

/* Where the elements of a replica's part stand among those of the whole batch, so that a mask belongs to samples and
 * not to replicas. Where nobody knows, replicas are taken to have parts of one size. */
static uint64_t place_in_batch(const helio_tensor *x, const helio_replica *replica) {
  if (!replica || x->shape.rank == 0) return 0;
  if (replica->first_row < 0) return (uint64_t)replica->id * (uint64_t)x->elements;
  uint64_t row = 1;
  for (int i = 1; i < x->shape.rank; i++) row *= (uint64_t)x->shape.extent[i];
  return (uint64_t)replica->first_row * row;
}

/* The layer's name and seed say which numbers are drawn; each call is a step of its own. */
static helio_tensor *call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_dropout_options *o = layer->options;
  const helio_replica *replica = hi_context_now().replica;
  (void)count;
  if (!training || o->rate == 0) return inputs[0];
  if (o->rate == 1) return helio_mul(inputs[0], hi_scalar_like(inputs[0], 0));
  atomic_uint_least64_t *calls = &layer->calls[replica ? replica->id : 0];
  if (hi_journal_count(calls)) return NULL;
  return helio_nn_dropout(inputs[0], o->rate, .key = hi_seed_key(o->seed, hi_layer_label(layer)),
                          .step = atomic_fetch_add(calls, 1), .base = place_in_batch(inputs[0], replica));
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
    .mixes = true,
    .least_inputs = 1,
    .most_inputs = 1,
    .check = check,
    .shape = hi_shape_of_input,
    .build = build,
    .call = call,
    .fields = fields,
    .required = {"rate"},
    .no_build_config = true,
    .call_arguments = "{\"training\": false}",
};
