/* SPDX-License-Identifier: Apache-2.0 */
/* The models whose summaries Keras has printed, under the names that they have in golden/nn/make_summaries.py and
 * make_summary_subclass.py. */
#ifndef HELIO_TEST_SUMMARY_MODELS_H
#define HELIO_TEST_SUMMARY_MODELS_H

#include "test.h"

/* ---- the models of make_summaries.py ---- */

static helio_model *reuters(void) {
  return helio_sequential({helio_embedding(30982, 7), helio_conv1d(64, 5, .activation = HELIO_RELU),
                           helio_max_pool1d(2), helio_conv1d(32, 3, .activation = HELIO_RELU), helio_max_pool1d(2),
                           helio_flatten(), helio_dense(46, .activation = HELIO_SOFTMAX)},
                          .input_shape = HELIO_SHAPE(300));
}

static helio_model *mnist(void) {
  return helio_sequential({helio_conv2d(16, 3, .activation = HELIO_RELU), helio_max_pool2d(),
                           helio_conv2d(32, 3, .activation = HELIO_RELU), helio_max_pool2d(), helio_flatten(),
                           helio_dense(10)},
                          .input_shape = HELIO_SHAPE(28, 28, 1));
}

static helio_model *linear(void) {
  helio_node *x = helio_input(HELIO_SHAPE(1));
  return helio_model(x, helio_apply(helio_dense(1), x));
}

static helio_model *shared(void) {
  helio_node *a = helio_input(HELIO_SHAPE(5)), *b = helio_input(HELIO_SHAPE(5));
  helio_layer *layer = helio_dense(4, .activation = HELIO_TANH);
  helio_node *left = helio_apply(layer, a), *right = helio_apply(layer, b);
  helio_node *first = helio_apply(helio_dense(2), helio_apply(helio_concatenate(), left, right));
  helio_node *second =
      helio_apply(helio_dense(1, .activation = HELIO_SIGMOID), helio_apply(helio_add_layer(), left, right));
  return helio_model(.inputs = (helio_node *[]){a, b}, .input_count = 2, .outputs = (helio_node *[]){first, second},
                     .output_count = 2);
}

static helio_model *normalized(void) {
  return helio_sequential({helio_conv2d(4, 3, .no_bias = true), helio_batch_normalization(), helio_relu_layer(),
                           helio_global_average_pool2d(), helio_dense(2)},
                          .input_shape = HELIO_SHAPE(8, 8, 3));
}

static helio_model *encoder(void) {
  return helio_sequential({helio_dense(5), helio_dense(4)}, .input_shape = HELIO_SHAPE(6), .name = "encoder");
}

static helio_model *nested(void) {
  helio_model *inner = encoder();
  helio_model *model =
      helio_sequential({inner, helio_dense(3, .name = "head")}, .input_shape = HELIO_SHAPE(6), .name = "classifier");
  helio_release(inner);
  return model;
}

static helio_model *nested_functional(void) {
  helio_model *inner = encoder();
  helio_node *a = helio_input(HELIO_SHAPE(6), .name = "left"), *b = helio_input(HELIO_SHAPE(6), .name = "right");
  helio_node *merged = helio_apply(helio_average_layer(), helio_apply(inner, a), helio_apply(inner, b));
  helio_release(inner);
  return helio_model(.inputs = (helio_node *[]){a, b}, .input_count = 2,
                     .output = helio_apply(helio_dense(1, .name = "head"), merged), .name = "siamese");
}

static helio_model *long_name(void) {
  return helio_sequential({helio_dense(2, .name = "a_layer_with_a_name_that_is_much_longer_than_its_column"),
                           helio_dense(1, .name = "projection_to_one")},
                          .input_shape = HELIO_SHAPE(3));
}

static helio_model *two_dense(void) {
  return helio_sequential({helio_dense(2), helio_dense(1)}, .input_shape = HELIO_SHAPE(3));
}

static helio_model *frozen(void) {
  return helio_sequential({helio_dense(2, .not_trainable = true), helio_dense(1)}, .input_shape = HELIO_SHAPE(3));
}

/* ---- those of make_summary_subclass.py ---- */

typedef struct net {
  helio_model *model;
  helio_layer *convolution, *pooling, *normalization, *flatten, *dropout, *encoder, *merge, *head;
} net;

static helio_tensor *net_call(void *self, helio_tensor *const *inputs, int count, bool training) {
  const net *n = self;
  assert_int_equal(count, 1);
  helio_tensor *x = helio_call(n->pooling, helio_call(n->convolution, inputs[0]));
  x = helio_call(n->normalization, x, .training = training);
  x = helio_call(n->encoder, helio_call(n->dropout, helio_call(n->flatten, x), .training = training));
  helio_tensor *both[] = {x, x};
  return helio_call(n->head, helio_call(n->merge, .inputs = both, .input_count = 2));
}

static net the_net;

static helio_model *uncalled_subclass(void) {
  net *n = &the_net;
  n->model = helio_model_of(net_call, n, .name = "net");
  n->convolution = helio_track(n->model, helio_conv2d(4, 3, .activation = HELIO_RELU));
  n->pooling = helio_track(n->model, helio_max_pool2d());
  n->normalization = helio_track(n->model, helio_batch_normalization());
  n->flatten = helio_track(n->model, helio_flatten());
  n->dropout = helio_track(n->model, helio_dropout(0.5));
  n->encoder = helio_track(n->model, helio_sequential({helio_dense(6), helio_dense(3)}, .name = "encoder"));
  n->merge = helio_track(n->model, helio_add_layer());
  n->head = helio_track(n->model, helio_dense(2, .name = "head"));
  helio_release(n->encoder);
  return n->model;
}

static helio_model *subclass(void) {
  helio_model *model = uncalled_subclass();
  assert_made(helio_call(model, helio_fill(HELIO_SHAPE(4, 8, 8, 1), 0)));
  assert_made(helio_call(model, helio_fill(HELIO_SHAPE(6, 8, 8, 1), 0))); /* the first call counts */
  return model;
}

static helio_model *deferred(void) {
  helio_model *model = helio_sequential({helio_dense(3), helio_flatten(), helio_dense(2)});
  assert_made(helio_call(model, helio_fill(HELIO_SHAPE(4, 5), 0)));
  assert_made(helio_call(model, helio_fill(HELIO_SHAPE(7, 5), 0)));
  return model;
}

static helio_model *built(void) {
  helio_model *model = helio_sequential({helio_dense(3), helio_dense(2)});
  assert_ok(helio_model_build(model, HELIO_SHAPE(-1, 5)));
  return model;
}

static helio_model *with_two_outputs(helio_node *input, helio_node *hidden) {
  helio_node *outputs[] = {helio_apply(helio_dense(2), hidden), helio_apply(helio_dense(3), hidden)};
  return helio_model(input, .outputs = outputs, .output_count = 2, .name = "inner");
}

static helio_model *several_outputs(void) {
  helio_node *a = helio_input(HELIO_SHAPE(6), .name = "a"), *b = helio_input(HELIO_SHAPE(6), .name = "b");
  helio_model *inner = with_two_outputs(a, helio_apply(helio_dense(5), a));
  helio_node *first = helio_apply(inner, b), *second = helio_node_output(first, 1);
  helio_node *third = helio_node_output(helio_apply(inner, b), 1);
  helio_release(inner);
  return helio_model(b, helio_apply(helio_concatenate(), second, first, third), .name = "outer");
}

static helio_model *chain_of_several(void) {
  helio_node *a = helio_input(HELIO_SHAPE(6), .name = "a"), *b = helio_input(HELIO_SHAPE(6), .name = "b");
  helio_model *inner = with_two_outputs(a, a);
  helio_node *second = helio_node_output(helio_apply(inner, b), 1);
  helio_release(inner);
  return helio_model(b, helio_apply(helio_dense(1, .name = "head"), second), .name = "chain");
}

static helio_model *reversed_order(void) {
  helio_node *a = helio_input(HELIO_SHAPE(5), .name = "a"), *b = helio_input(HELIO_SHAPE(5), .name = "b");
  helio_node *unused = helio_input(HELIO_SHAPE(2), .name = "unused");
  helio_layer *layer = helio_dense(4);
  helio_node *left = helio_apply(layer, a), *right = helio_apply(layer, b);
  return helio_model(.inputs = (helio_node *[]){unused, a, b}, .input_count = 3,
                     .output = helio_apply(helio_concatenate(), right, left), .name = "reversed");
}

static helio_model *second_graph(void) {
  helio_node *a = helio_input(HELIO_SHAPE(9, 2), .name = "a"), *b = helio_input(HELIO_SHAPE(-1, 2), .name = "b");
  helio_layer *layer = helio_conv1d(3, 2);
  helio_release(helio_model(a, helio_apply(layer, a)));
  helio_node *pooled = helio_apply(helio_global_max_pool1d(), helio_apply(layer, a));
  return helio_model(.inputs = (helio_node *[]){a, b}, .input_count = 2,
                     .outputs = (helio_node *[]){pooled, helio_apply(layer, b)}, .output_count = 2, .name = "second");
}

static helio_model *twice(void) {
  helio_node *a = helio_input(HELIO_SHAPE(5), .name = "a");
  helio_layer *layer = helio_dense(5);
  return helio_model(a, helio_apply(layer, helio_apply(layer, a)), .name = "twice");
}

static helio_model *outputs_on_the_way(void) {
  helio_node *a = helio_input(HELIO_SHAPE(5), .name = "a"), *hidden = helio_apply(helio_dense(3), a);
  return helio_model(a, .outputs = (helio_node *[]){hidden, helio_apply(helio_dense(2), hidden)}, .output_count = 2,
                     .name = "way");
}

static helio_model *words(void) {
  return helio_sequential(
      {helio_dense(3, .name = "плотный слой"), helio_dense(3, .name = "層層層層層層層層層層層層層層層層層層"),
       helio_dense(3, .name = "x層層層層層層層層層層層層層層層層層層"), helio_dense(3, .name = "e\u0301te\u0301"),
       helio_dense(3, .name = "many words so that there is one line after the other to be filled with them")},
      .input_shape = HELIO_SHAPE(3), .name = "модель");
}

static helio_model *long_title(void) {
  char name[500] = "two words ";
  for (int i = 0; i < 20; i++) strcat(name, "and_one_that_is_long");
  return helio_sequential({helio_dense(2)}, .input_shape = HELIO_SHAPE(3), .name = name);
}

static helio_model *large(void) {
  return helio_sequential({helio_dense(1024), helio_dense(1)}, .input_shape = HELIO_SHAPE(1023));
}

static helio_model *half(void) {
  return helio_sequential({helio_dense(5, .type = HELIO_FLOAT16), helio_dense(3, .type = HELIO_FLOAT64)},
                          .input_shape = HELIO_SHAPE(1023));
}

#endif
