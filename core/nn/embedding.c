/* SPDX-License-Identifier: Apache-2.0 */
/* Embedding: rows of a table by index. */
#include "nn/kinds.h"
#include "nn/layer_help.h"
#include "runtime/error.h"

helio_layer *helio_embedding_with(const helio_embedding_options *options) {
  return hi_layer_new("helio_embedding", &hi_embedding_kind, options);
}

static helio_status check(helio_layer *layer) {
  const helio_embedding_options *o = layer->options;
  helio_status status = hi_check_positive("input_dim", o->input_dim);
  if (!status) status = hi_check_positive("output_dim", o->output_dim);
  return status ? status : hi_check_regularizers(o->embeddings_regularizer, (helio_regularizer){0});
}

static helio_status shape(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  const helio_embedding_options *o = layer->options;
  (void)count;
  if (inputs->rank >= HELIO_MAX_RANK) {
    char text[HI_SHAPE_TEXT];
    return hi_fail(HELIO_INVALID_ARGUMENT, "expected an input of rank %d or less, got shape %s", HELIO_MAX_RANK - 1,
                   hi_known_text(inputs, text));
  }
  *result = inputs[0];
  result->extent[result->rank++] = o->output_dim;
  return HELIO_OK;
}

static helio_status build(helio_layer *layer, const helio_shape *inputs, int count) {
  const helio_embedding_options *o = layer->options;
  (void)inputs, (void)count;
  return hi_layer_add_weight(layer, "embeddings", &HELIO_SHAPE(o->input_dim, o->output_dim), &o->embeddings_initializer,
                             HELIO_RANDOM_UNIFORM, &o->embeddings_regularizer, true);
}

/* Other types than those of indices become int32, as in Keras. */
static helio_tensor *call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  helio_tensor *x = inputs[0];
  (void)count, (void)training;
  if (x->type != HELIO_INT32 && x->type != HELIO_INT64) x = helio_cast(x, HELIO_INT32);
  return helio_gather_rows(hi_layer_weight(layer, "embeddings"), x);
}

static const hi_field fields[] = {
    {"input_dim", HI_FIELD_INT64, offsetof(helio_embedding_options, input_dim), NULL},
    {"output_dim", HI_FIELD_INT64, offsetof(helio_embedding_options, output_dim), NULL},
    {"embeddings_initializer", HI_FIELD_INITIALIZER, offsetof(helio_embedding_options, embeddings_initializer),
     "RandomUniform"},
    {"embeddings_regularizer", HI_FIELD_REGULARIZER, offsetof(helio_embedding_options, embeddings_regularizer), NULL},
    {"activity_regularizer", HI_FIELD_FIXED, 0, "null"},
    {"embeddings_constraint", HI_FIELD_FIXED, 0, "null"},
    {"mask_zero", HI_FIELD_FIXED, 0, "false"},
    {"quantization_config", HI_FIELD_FIXED, 0, "null"},
    {0},
};

const hi_layer_kind hi_embedding_kind = {
    .class_name = "Embedding",
    .base_name = "embedding",
    .options_size = sizeof(helio_embedding_options),
    .common = offsetof(helio_embedding_options, name),
    .least_inputs = 1,
    .most_inputs = 1,
    .any_type = true,
    .check = check,
    .shape = shape,
    .build = build,
    .call = call,
    .fields = fields,
    .required = {"input_dim", "output_dim"},
};
