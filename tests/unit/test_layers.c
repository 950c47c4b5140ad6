/* SPDX-License-Identifier: Apache-2.0 */
/* Every layer against the numbers of Keras and PyTorch (golden/nn), its shapes, its options, and used wrongly. */
#include "golden.h"
#include "nn/config.h"
#include "nn/layer.h"
#include "nn/layer_help.h"

enum { MOST_INPUTS = 4 };

/* ---- the golden cases ---- */

/* What options do not have: refused, with the key. Each is printed with its reason. */
typedef struct left_out {
  const char *name, *key, *reason;
} left_out;

static const left_out refused[] = {
    {"dense_activity", "activity_regularizer",
     "its loss belongs to a call, and a layer may be called by several threads at once"},
};

static const left_out *refused_case(const char *name) {
  for (size_t i = 0; i < COUNT_OF(refused); i++) {
    if (strcmp(refused[i].name, name) == 0) return &refused[i];
  }
  return NULL;
}

typedef struct golden_case {
  const golden *file, *torch;
  const char *name;
  json_t *description;
  helio_layer *layer;
  helio_tensor *inputs[MOST_INPUTS];
  helio_shape shapes[MOST_INPUTS];
  int input_count;
  int failures;
} golden_case;

static helio_layer *layer_of_case(const json_t *description) {
  char *config = json_dumps(json_object_get(description, "config"), 0);
  helio_layer *layer = helio_layer_from_config(json_string_value(json_object_get(description, "class_name")), config);
  free(config);
  return layer;
}

/* The layer with its weights, and the inputs. */
static void set_case_up(golden_case *c) {
  json_t *weights = json_object_get(c->description, "weights");
  c->layer = layer_of_case(c->description);
  assert_made(c->layer);
  c->input_count = (int)json_integer_value(json_object_get(c->description, "input_count"));
  for (int i = 0; i < c->input_count; i++) {
    c->inputs[i] = golden_tensor(c->file, "%s/input/%d", c->name, i);
    c->shapes[i] = helio_tensor_shape(c->inputs[i]);
  }
  assert_ok(hi_layer_build(c->layer, c->shapes, c->input_count));
  assert_int_equal(c->layer->weight_count, json_array_size(weights));
  for (int i = 0; i < c->layer->weight_count; i++) {
    const char *name = c->layer->weights[i].local_name;
    assert_string_equal(name, json_string_value(json_array_get(weights, (size_t)i)));
    assert_ok(helio_assign(c->layer->weights[i].variable, golden_tensor(c->file, "%s/weight/%s", c->name, name)));
  }
}

static void compare(golden_case *c, helio_tensor *ours, const char *role) {
  double distance = tensor_distance(ours, golden_tensor(c->file, "%s/%s", c->name, role));
  double from_torch = golden_has(c->torch, "layers/%s/%s", c->name, role)
                          ? tensor_distance(ours, golden_tensor(c->torch, "layers/%s/%s", c->name, role))
                          : 0;
  if (distance <= 1e-5 && from_torch <= 1e-5) return;
  print_error("%s: %s differs from Keras' by %g, from PyTorch's by %g\n", c->name, role, distance, from_torch);
  c->failures++;
}

/* As compare(), of a gradient; where Keras has none there is none. */
static void compare_gradient(golden_case *c, const helio_gradients *gradients, int index, const char *role) {
  if (golden_has(c->file, "%s/%s", c->name, role)) {
    compare(c, helio_gradients_at(gradients, index), role);
  } else if (helio_gradients_has(gradients, index)) {
    print_error("%s: there is a %s\n", c->name, role);
    c->failures++;
  }
}

static void compare_by_weights(golden_case *c, const helio_gradients *gradients, const char *role) {
  for (int i = 0; i < c->layer->weight_count; i++) {
    char whole[100];
    snprintf(whole, sizeof whole, "%s/%s", role, c->layer->weights[i].local_name);
    compare_gradient(c, gradients, i, whole);
  }
}

static helio_gradients *gradients_of(golden_case *c, helio_tape *tape, helio_tensor *target, helio_tensor *dy) {
  helio_variable *variables[HI_MOST_WEIGHTS];
  helio_variables list = {c->layer->weight_count, variables};
  for (int i = 0; i < list.count; i++) variables[i] = c->layer->weights[i].variable;
  helio_gradients *gradients =
      helio_gradient(tape, target, &list, .tensors = c->inputs, .tensor_count = c->input_count, .output_gradient = dy);
  assert_made(gradients);
  return gradients;
}

static void check_call(golden_case *c) {
  helio_tape *tape = helio_tape_new();
  bool training = json_is_true(json_object_get(c->description, "training"));
  helio_tensor *y = NULL;
  HELIO_TAPE(tape) {
    for (int i = 0; i < c->input_count; i++) {
      if (hi_type_is_float(c->inputs[i]->type)) assert_ok(helio_tape_watch(tape, c->inputs[i]));
    }
    y = helio_call(c->layer, .inputs = c->inputs, .input_count = c->input_count, .training = training);
  }
  assert_made(y);
  compare(c, y, "output");
  helio_tensor *dy = golden_tensor(c->file, "%s/output_gradient", c->name);
  helio_gradients *gradients = gradients_of(c, tape, y, dy);
  compare_by_weights(c, gradients, "weight_gradient");
  for (int i = 0; i < c->input_count; i++) {
    char role[40];
    snprintf(role, sizeof role, "input_gradient/%d", i);
    compare_gradient(c, gradients, c->layer->weight_count + i, role);
  }
}

/* Weights are as the call is to leave them: those without a tensor "after" as they were. */
static void check_after(golden_case *c) {
  for (int i = 0; i < c->layer->weight_count; i++) {
    char role[60];
    const char *name = c->layer->weights[i].local_name;
    bool changed = golden_has(c->file, "%s/after/%s", c->name, name);
    snprintf(role, sizeof role, "%s/%s", changed ? "after" : "weight", name);
    compare(c, helio_value(c->layer->weights[i].variable), role);
  }
}

static void check_regularization(golden_case *c) {
  helio_model *model = helio_sequential({c->layer});
  helio_tape *tape = helio_tape_new();
  helio_tensor *loss = NULL;
  double expected = json_number_value(json_object_get(c->description, "regularization"));
  assert_made(model);
  HELIO_TAPE(tape) loss = helio_regularization_loss(model);
  assert_made(loss);
  double value = helio_item(loss);
  if (fabs(value - expected) > 1e-5 * fabs(expected)) {
    print_error("%s: the regularization is %g, not %g\n", c->name, value, expected);
    c->failures++;
  }
  if (expected != 0) compare_by_weights(c, gradients_of(c, tape, loss, NULL), "regularization_gradient");
  helio_release(model);
}

/* Each extent that is not known leaves those unknown that depend on it, and changes no other. */
static void check_shapes(golden_case *c) {
  helio_shape output = helio_tensor_shape(golden_tensor(c->file, "%s/output", c->name)), result;
  assert_ok(hi_layer_shape(c->layer, c->shapes, c->input_count, &result));
  if (!shapes_equal(result, output)) fail_msg("%s: the shape rule says another shape", c->name);
  for (int axis = 0; axis < HELIO_MAX_RANK; axis++) {
    helio_shape unknown[MOST_INPUTS];
    for (int i = 0; i < c->input_count; i++) {
      unknown[i] = c->shapes[i];
      if (axis < unknown[i].rank) unknown[i].extent[axis] = HI_ANY;
    }
    if (hi_layer_shape(c->layer, unknown, c->input_count, &result)) fail_msg("%s: %s", c->name, helio_error_message());
    assert_int_equal(result.rank, output.rank);
    if (axis == 0) assert_int_equal(result.extent[0], HI_ANY);
    for (int i = 0; i < output.rank; i++) {
      if (result.extent[i] != HI_ANY) assert_int_equal(result.extent[i], output.extent[i]);
      if (axis == 0 && i > 0) assert_int_equal(result.extent[i], output.extent[i]);
    }
  }
}

static void check_refused(const golden_case *c, const left_out *about) {
  char quoted[100];
  snprintf(quoted, sizeof quoted, "'%s'", about->key);
  assert_null(layer_of_case(c->description));
  expect_error(HELIO_NOT_SUPPORTED, quoted);
  print_message("%s left out, %s is refused: %s\n", c->name, about->key, about->reason);
}

static int check_case(const golden *file, const golden *torch, const char *name) {
  golden_case c = {.file = file, .torch = torch, .name = name, .description = golden_json(file, name)};
  const left_out *about = refused_case(name);
  if (about) {
    check_refused(&c, about);
  } else {
    HELIO_POOL {
      set_case_up(&c);
      check_shapes(&c);
      check_call(&c);
      check_after(&c);
      if (c.input_count == 1) check_regularization(&c);
      if (c.input_count > 1) assert_true(json_is_null(json_object_get(c.description, "regularization")));
    }
  }
  json_decref(c.description);
  return c.failures;
}

static void test_golden(void **state) {
  (void)state;
  golden *file = golden_open("layers"), *torch = golden_open("torch");
  json_t *order = golden_json(file, "order");
  int failures = 0;
  for (size_t i = 0; i < json_array_size(order); i++) {
    failures += check_case(file, torch, json_string_value(json_array_get(order, i)));
  }
  print_message("%zu cases compared, %zu left out\n", json_array_size(order) - COUNT_OF(refused), COUNT_OF(refused));
  assert_true(json_array_size(order) > 150);
  json_decref(order);
  golden_close(torch);
  golden_close(file);
  if (failures) fail_msg("%d numbers differ", failures);
}

/* Nothing that helio has stands without numbers from outside. */
static void test_every_kind_is_golden(void **state) {
  (void)state;
  golden *file = golden_open("layers");
  json_t *order = golden_json(file, "order");
  for (int k = 0; hi_layer_kinds[k]; k++) {
    bool found = false;
    for (size_t i = 0; i < json_array_size(order) && !found; i++) {
      json_t *description = golden_json(file, json_string_value(json_array_get(order, i)));
      const char *class_name = json_string_value(json_object_get(description, "class_name"));
      found = strcmp(class_name, hi_layer_kinds[k]->class_name) == 0;
      json_decref(description);
    }
    if (!found) fail_msg("no case is of class %s", hi_layer_kinds[k]->class_name);
  }
  json_decref(order);
  golden_close(file);
}

/* ---- options as a program writes them ---- */

static helio_tensor *ones(helio_shape shape) {
  helio_tensor *tensor = helio_fill(shape, 1);
  assert_made(tensor);
  return tensor;
}

static void expect_shape(helio_layer *layer, helio_shape input, helio_shape output) {
  assert_made(layer);
  helio_tensor *y = helio_call(layer, ones(input));
  assert_made(y);
  helio_shape result = helio_tensor_shape(y);
  char text[HI_SHAPE_TEXT];
  if (!shapes_equal(result, output)) fail_msg("%s gives %s", helio_layer_class(layer), hi_shape_text(&result, text));
}

static void test_options_by_hand(void **state) {
  (void)state;
  helio_shape image = HELIO_SHAPE(2, 8, 6, 3), steps = HELIO_SHAPE(2, 9, 3);
  expect_shape(helio_dense(7), HELIO_SHAPE(2, 3), HELIO_SHAPE(2, 7));
  expect_shape(helio_conv2d(16, 3, .activation = HELIO_RELU), image, HELIO_SHAPE(2, 6, 4, 16));
  expect_shape(helio_conv2d(16, 3, 2, .strides = {2}, .padding = HELIO_SAME), image, HELIO_SHAPE(2, 4, 3, 16));
  expect_shape(helio_conv2d(16, 3, .dilation = {3, 2}), image, HELIO_SHAPE(2, 2, 2, 16));
  expect_shape(helio_conv1d(4, 3, .strides = {2, 2}), steps, HELIO_SHAPE(2, 4, 4));
  expect_shape(helio_conv1d(4, 3, .padding = HELIO_CAUSAL), steps, HELIO_SHAPE(2, 9, 4));
  expect_shape(helio_depthwise_conv2d(3, .depth_multiplier = 2), image, HELIO_SHAPE(2, 6, 4, 6));
  expect_shape(helio_max_pool2d(), image, HELIO_SHAPE(2, 4, 3, 3));
  expect_shape(helio_max_pool2d(3, 2), image, HELIO_SHAPE(2, 2, 3, 3));
  expect_shape(helio_average_pool2d(2, .strides = {1, 3}), image, HELIO_SHAPE(2, 7, 2, 3));
  expect_shape(helio_max_pool1d(3), steps, HELIO_SHAPE(2, 3, 3));
  expect_shape(helio_average_pool1d(.strides = {1}), steps, HELIO_SHAPE(2, 8, 3));
  expect_shape(helio_global_max_pool1d(), steps, HELIO_SHAPE(2, 3));
  expect_shape(helio_global_average_pool2d(.keep_dims = true), image, HELIO_SHAPE(2, 1, 1, 3));
  expect_shape(helio_global_average_pool1d(), steps, HELIO_SHAPE(2, 3));
  expect_shape(helio_global_max_pool2d(), image, HELIO_SHAPE(2, 3));
  expect_shape(helio_flatten(), image, HELIO_SHAPE(2, 144));
  expect_shape(helio_flatten(), HELIO_SHAPE(0, 4, 2), HELIO_SHAPE(0, 8));
  expect_shape(helio_reshape_layer(HELIO_SHAPE(-1, 12)), image, HELIO_SHAPE(2, 12, 12));
  expect_shape(helio_reshape_layer(HELIO_SHAPE(-1, 4)), HELIO_SHAPE(0, 8), HELIO_SHAPE(0, 2, 4));
  expect_shape(helio_permute(HELIO_AXES(3, 1, 2)), image, HELIO_SHAPE(2, 3, 8, 6));
  expect_shape(helio_zero_padding2d(), image, HELIO_SHAPE(2, 10, 8, 3));
  expect_shape(helio_zero_padding2d(2), image, HELIO_SHAPE(2, 12, 10, 3));
  expect_shape(helio_zero_padding2d(.padding = {1, 0, 0, 4}), image, HELIO_SHAPE(2, 9, 10, 3));
  expect_shape(helio_up_sampling2d(), image, HELIO_SHAPE(2, 16, 12, 3));
  expect_shape(helio_up_sampling2d(1, 3), image, HELIO_SHAPE(2, 8, 18, 3));
  expect_shape(helio_up_sampling2d(3, .interpolation = HELIO_BILINEAR), image, HELIO_SHAPE(2, 24, 18, 3));
  expect_shape(helio_up_sampling2d(.interpolation = HELIO_BILINEAR), HELIO_SHAPE(2, 0, 3, 1), HELIO_SHAPE(2, 0, 6, 1));
  expect_shape(helio_softmax_layer(), steps, steps);
  expect_shape(helio_softmax_layer(HELIO_AXES(0, 1, 2)), steps, steps);
  expect_shape(helio_batch_normalization(.axis = 1), image, image);
  expect_shape(helio_layer_normalization(.axes = HELIO_AXES(3, 1)), image, image);
  expect_shape(helio_layer_normalization(.axes = HELIO_AXES(0, 1, 2)), HELIO_SHAPE(1, 0, 3), HELIO_SHAPE(1, 0, 3));
  expect_shape(helio_activation_layer(.activation_name = "swish"), steps, steps);
  expect_shape(helio_layer_normalization(.no_scale = true), steps, steps);
}

/* What a layer makes of one number. */
static double value_of(helio_layer *layer, double x, bool training) {
  assert_made(layer);
  helio_tensor *y = helio_call(layer, helio_fill(HELIO_SHAPE(1, 1), x), .training = training);
  assert_made(y);
  return helio_item(y);
}

/* Zero is a number where HELIO_ZERO says so, and else the default. */
static void test_zero(void **state) {
  (void)state;
  assert_float_equal(value_of(helio_relu_layer(), 7, false), 7, 0);
  assert_float_equal(value_of(helio_relu_layer(.max_value = HELIO_ZERO), 7, false), 0, 0);
  assert_float_equal(value_of(helio_relu_layer(6), 7, false), 6, 0);
  assert_float_equal(value_of(helio_relu_layer(6, .threshold = 3), 2, false), 0, 0);
  assert_float_equal(value_of(helio_rescaling(HELIO_ZERO, .offset = 3), 7, false), 3, 0);
  helio_layer *usual = helio_batch_normalization(), *at_once = helio_batch_normalization(.momentum = HELIO_ZERO);
  value_of(usual, 5, true);
  value_of(at_once, 5, true);
  assert_float_equal(helio_item(hi_layer_weight(usual, "moving_mean")), 0.05, 1e-6);
  assert_float_equal(helio_item(hi_layer_weight(at_once, "moving_mean")), 5, 1e-6);
  assert_float_equal(value_of(helio_layer_normalization(.epsilon = HELIO_ZERO, .no_scale = true), 2, false), 0, 1);
}

static void test_variables(void **state) {
  (void)state;
  helio_layer *layer =
      helio_dense(2, .name = "top", .no_bias = true, .kernel_initializer = {HELIO_CONSTANT, .value = 3},
                  .type = HELIO_FLOAT64, .not_trainable = true);
  helio_tensor *y = helio_call(layer, ones(HELIO_SHAPE(1, 4)));
  assert_made(y);
  assert_int_equal(helio_tensor_type(y), HELIO_FLOAT64); /* the input became the layer's type */
  assert_int_equal(layer->weight_count, 1);
  assert_string_equal(helio_variable_name(layer->weights[0].variable), "top/kernel");
  assert_false(helio_variable_trainable(layer->weights[0].variable));
  assert_float_equal(helio_item(helio_mean(y)), 12, 0);
}

/* Keras takes the statistics of a frozen layer, in training too, and leaves them. */
static void test_frozen_statistics(void **state) {
  (void)state;
  helio_layer *layer = helio_batch_normalization(.not_trainable = true, .epsilon = HELIO_ZERO);
  assert_float_equal(value_of(layer, 5, true), 5, 1e-6);
  assert_float_equal(helio_item(hi_layer_weight(layer, "moving_mean")), 0, 0);
}

/* Along other axes than the last: as if it were the last of what is transposed. */
static void test_axes(void **state) {
  (void)state;
  helio_tensor *x = helio_random_normal(HELIO_SHAPE(2, 3, 4, 5), .key = 7), *turned;
  turned = helio_transpose(x, HELIO_AXES(0, 2, 3, 1));
  helio_layer *layers[][2] = {
      {helio_batch_normalization(.axis = 1), helio_batch_normalization()},
      {helio_batch_normalization(.axis = -3), helio_batch_normalization()},
      {helio_layer_normalization(.axes = HELIO_AXES(1)), helio_layer_normalization()},
      {helio_softmax_layer(HELIO_AXES(-3)), helio_softmax_layer()},
      {helio_softmax_layer(HELIO_AXES(1, -1)), helio_softmax_layer(HELIO_AXES(2, 3))},
      {helio_layer_normalization(.axes = HELIO_AXES(1, 3)), helio_layer_normalization(.axes = HELIO_AXES(2, 3))},
  };
  for (size_t i = 0; i < COUNT_OF(layers); i++) {
    helio_tensor *y = helio_call(layers[i][0], x, .training = true);
    helio_tensor *expected = helio_call(layers[i][1], turned, .training = true);
    assert_near(y, helio_transpose(expected, HELIO_AXES(0, 3, 1, 2)), 1e-5);
  }
  assert_null(helio_call(helio_softmax_layer(HELIO_AXES(1)), x)->logits);
  assert_non_null(helio_call(helio_softmax_layer(HELIO_AXES(3)), x)->logits); /* which is the last */
}

/* Keras sorts axes as they are given, so that the same ones may give other shapes. */
static void test_shapes_along_axes(void **state) {
  (void)state;
  static const struct {
    helio_axes axes;
    helio_shape shape;
  } of_gamma[] = {
      {{1, {1}}, {1, {3}}},
      {{2, {3, 1}}, {2, {3, 5}}},
      {{2, {1, -1}}, {2, {5, 3}}}, /* −1 comes first */
      {{3, {1, 2, 3}}, {3, {3, 4, 5}}},
  };
  for (size_t i = 0; i < COUNT_OF(of_gamma); i++) {
    helio_layer *layer = helio_layer_normalization(.axes = of_gamma[i].axes);
    assert_made(helio_call(layer, ones(HELIO_SHAPE(2, 3, 4, 5))));
    assert_true(shapes_equal(helio_tensor_shape(hi_layer_weight(layer, "gamma")), of_gamma[i].shape));
    assert_true(shapes_equal(helio_tensor_shape(hi_layer_weight(layer, "beta")), of_gamma[i].shape));
  }
  helio_layer *layer = helio_batch_normalization(.axis = 1);
  assert_made(helio_call(layer, ones(HELIO_SHAPE(2, 3, 4, 5))));
  for (int i = 0; i < layer->weight_count; i++) {
    assert_true(shapes_equal(helio_variable_shape(layer->weights[i].variable), HELIO_SHAPE(3)));
  }
  helio_shape open = HELIO_SHAPE(HI_ANY, 3, HI_ANY, HI_ANY); /* no other extent needs to be known */
  assert_ok(hi_layer_build(helio_batch_normalization(.axis = 1), &open, 1));
  assert_ok(hi_layer_build(helio_layer_normalization(.axes = HELIO_AXES(1)), &open, 1));
  assert_int_not_equal(hi_layer_build(helio_layer_normalization(.axes = HELIO_AXES(1, 2)), &open, 1), HELIO_OK);
  expect_error(HELIO_INVALID_ARGUMENT, "axis 2 of its input must be known, got shape (None, 3, None, None)");
}

/* Places beyond the outermost centers are as these; one element alone has no neighbour. */
static void test_bilinear(void **state) {
  (void)state;
  const float two[] = {1, 5}, between[] = {1, 2, 4, 5}, thirds[] = {1, 1, 1 + 4 / 3.0f, 5 - 4 / 3.0f, 5, 5};
  helio_tensor *x = helio_constant(two, HELIO_SHAPE(1, 1, 2, 1));
  helio_tensor *y = helio_call(helio_up_sampling2d(1, 2, HELIO_BILINEAR), x);
  assert_near(y, helio_constant(between, HELIO_SHAPE(1, 1, 4, 1)), 1e-6);
  y = helio_call(helio_up_sampling2d(1, 3, HELIO_BILINEAR), x);
  assert_near(y, helio_constant(thirds, HELIO_SHAPE(1, 1, 6, 1)), 1e-6);
  y = helio_call(helio_up_sampling2d(4, 1, HELIO_BILINEAR), x);
  assert_near(y, helio_call(helio_up_sampling2d(4, 1), x), 0);
  x = helio_random_normal(HELIO_SHAPE(2, 3, 4, 2), .key = 3);
  assert_near(helio_call(helio_up_sampling2d(1, 1, HELIO_BILINEAR), x), x, 0);
}

/* A deviation of zero is no deviation, not the default; it does not take a layer's time to draw either. */
static void test_initializers_without_deviation(void **state) {
  (void)state;
  const helio_initializer_kind kinds[] = {HELIO_RANDOM_NORMAL, HELIO_TRUNCATED_NORMAL};
  for (size_t i = 0; i < COUNT_OF(kinds); i++) {
    helio_initializer fixed = {.kind = kinds[i], .mean = 3, .deviation = HELIO_ZERO},
                      usual = {.kind = kinds[i], .mean = 3};
    helio_variable *v = helio_variable(.shape = HELIO_SHAPE(40, 50), .initializer = fixed, .name = "v");
    assert_made(v);
    assert_near(helio_value(v), helio_fill(HELIO_SHAPE(40, 50), 3), 0);
    v = helio_variable(.shape = HELIO_SHAPE(40, 50), .initializer = usual, .name = "v");
    assert_true(tensor_distance(helio_value(v), helio_fill(HELIO_SHAPE(40, 50), 3)) > 0.01);
    fixed.mean = HELIO_ZERO;
    v = helio_variable(.shape = HELIO_SHAPE(1), .initializer = fixed, .type = HELIO_BFLOAT16, .name = "v");
    assert_made(v);
    assert_int_equal(helio_variable_type(v), HELIO_BFLOAT16);
    double value = helio_item(helio_value(v));
    assert_true(value == 0 && !signbit(value));
  }
}

/* ---- types ---- */

static void test_integers(void **state) {
  (void)state;
  const uint8_t bytes[] = {0, 51, 255, 102};
  const float words[] = {1.9f, 0, 2, 1}, scaled[] = {0, 0.2f, 1, 0.4f};
  float values[4];
  helio_tensor *x = helio_constant(bytes, HELIO_SHAPE(1, 4), .type = HELIO_UINT8);
  helio_tensor *y = helio_call(helio_rescaling(1.0 / 255), x);
  assert_made(y);
  assert_ok(helio_tensor_read(y, values, sizeof values));
  for (int i = 0; i < 4; i++) assert_float_equal(values[i], scaled[i], 1e-6);
  assert_int_equal(helio_tensor_type(helio_call(helio_flatten(), x)), HELIO_UINT8);
  assert_int_equal(helio_tensor_type(helio_call(helio_reshape_layer(HELIO_SHAPE(2, 2)), x)), HELIO_UINT8);
  /* Keras casts other indices to int32, which cuts them off. */
  helio_layer *table = helio_embedding(3, 1);
  helio_tensor *by_float = helio_call(table, helio_constant(words, HELIO_SHAPE(1, 4)));
  int32_t whole[] = {1, 0, 2, 1};
  helio_tensor *by_int = helio_call(table, helio_constant(whole, HELIO_SHAPE(1, 4), .type = HELIO_INT32));
  assert_near(by_float, by_int, 0);
  helio_tensor *mixed[] = {ones(HELIO_SHAPE(1, 4)), x};
  y = helio_call(helio_concatenate(), .inputs = mixed, .input_count = 2);
  assert_made(y);
  assert_int_equal(helio_tensor_type(y), HELIO_FLOAT32);
  y = helio_call(helio_concatenate(), .inputs = (helio_tensor *[]){x, x}, .input_count = 2);
  assert_int_equal(helio_tensor_type(y), HELIO_UINT8);
}

/* Layers in half precision compute, and their results are of that type. */
static void test_halves(void **state) {
  (void)state;
  for (helio_type type = HELIO_FLOAT16; type <= HELIO_BFLOAT16; type++) {
    helio_layer *layers[] = {helio_conv2d(2, 2, .type = type, .activation = HELIO_RELU),
                             helio_batch_normalization(.type = type),
                             helio_max_pool2d(.type = type),
                             helio_layer_normalization(.type = type),
                             helio_layer_normalization(.axes = HELIO_AXES(1, 2), .type = type),
                             helio_batch_normalization(.axis = 1, .type = type),
                             helio_softmax_layer(HELIO_AXES(2), .type = type),
                             helio_dropout(0.5, .type = type),
                             helio_up_sampling2d(.type = type),
                             helio_up_sampling2d(.interpolation = HELIO_BILINEAR, .type = type),
                             helio_dense(3, .type = type)};
    helio_tensor *x = ones(HELIO_SHAPE(2, 5, 5, 1));
    for (size_t i = 0; i < COUNT_OF(layers); i++) {
      x = helio_call(layers[i], x, .training = true);
      assert_made(x);
      assert_int_equal(helio_tensor_type(x), type);
    }
    assert_true(isfinite(helio_item(helio_cast(helio_mean(x), HELIO_FLOAT32))));
  }
}

/* ---- softmax and sigmoid at the end of a layer remember their logits ---- */

static void test_logits(void **state) {
  (void)state;
  const helio_activation ends[] = {HELIO_SOFTMAX, HELIO_SIGMOID};
  helio_tensor *x = ones(HELIO_SHAPE(2, 4, 4, 2));
  for (int i = 0; i < 2; i++) {
    helio_layer *layers[] = {helio_dense(3, .activation = ends[i]), helio_conv2d(3, 2, .activation = ends[i]),
                             helio_depthwise_conv2d(2, .activation = ends[i]), helio_activation_layer(ends[i])};
    for (size_t l = 0; l < COUNT_OF(layers); l++) {
      helio_tensor *y = helio_call(layers[l], x);
      assert_made(y);
      assert_non_null(y->logits);
      assert_near(helio_activate(y->logits, ends[i]), y, 1e-6);
    }
  }
  assert_non_null(helio_call(helio_softmax_layer(), x)->logits);
  assert_null(helio_call(helio_dense(3, .activation = HELIO_TANH), x)->logits);
}

/* ---- Dropout ---- */

enum { DROPPED = 20000 };

static void read_dropped(helio_layer *layer, float values[DROPPED], bool training) {
  helio_tensor *y = helio_call(layer, ones(HELIO_SHAPE(100, 200)), .training = training);
  assert_made(y);
  assert_ok(helio_tensor_read(y, values, DROPPED * sizeof(float)));
}

static int zeros_in(const float values[DROPPED]) {
  int count = 0;
  for (int i = 0; i < DROPPED; i++) count += values[i] == 0;
  return count;
}

static int differing(const float a[DROPPED], const float b[DROPPED]) {
  int count = 0;
  for (int i = 0; i < DROPPED; i++) count += a[i] != b[i];
  return count;
}

static void test_dropout(void **state) {
  static float first[DROPPED], second[DROPPED], again[DROPPED];
  (void)state;
  helio_layer *layer = helio_dropout(0.3);
  read_dropped(layer, first, true);
  for (int i = 0; i < DROPPED; i++) assert_true(first[i] == 0 || fabsf(first[i] - 1 / 0.7f) < 1e-6f);
  assert_in_range(zeros_in(first), DROPPED * 0.3 - 400, DROPPED * 0.3 + 400); /* six deviations */
  read_dropped(layer, second, true);
  assert_true(differing(first, second) > 5000); /* 0.42 of them are expected to */
  read_dropped(layer, again, false);
  for (int i = 0; i < DROPPED; i++) assert_float_equal(again[i], 1, 0);
}

/* Numbers follow from name and seed: of the layer, or of the process. */
static void test_dropout_seeds(void **state) {
  static float first[DROPPED], second[DROPPED];
  (void)state;
  read_dropped(helio_dropout(0.5, .seed = 7), first, true);
  helio_set_seed(99);
  read_dropped(helio_dropout(0.5, .seed = 7), second, true);
  assert_int_equal(differing(first, second), 0);
  read_dropped(helio_dropout(0.5, .seed = 8), second, true);
  assert_true(differing(first, second) > 5000);
  read_dropped(helio_dropout(0.5), first, true);
  read_dropped(helio_dropout(0.5), second, true);
  assert_int_equal(differing(first, second), 0); /* equal names */
  read_dropped(helio_dropout(0.5, .name = "other"), second, true);
  assert_true(differing(first, second) > 5000);
  helio_set_seed(98);
  read_dropped(helio_dropout(0.5), second, true);
  assert_true(differing(first, second) > 5000);
}

static void test_dropout_way_back(void **state) {
  (void)state;
  helio_layer *layer = helio_dropout(0.4);
  helio_tensor *x = ones(HELIO_SHAPE(50, 50)), *y = NULL;
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) {
    assert_ok(helio_tape_watch(tape, x));
    y = helio_call(layer, x, .training = true);
  }
  helio_gradients *gradients = helio_gradient(tape, y, .tensors = &x, .tensor_count = 1);
  assert_made(gradients);
  assert_near(helio_gradients_at(gradients, 0), y, 0); /* of ones, mask and gradient are the same */
}

/* ---- wrong use ---- */

static void refuse(helio_layer *layer, const char *title, const char *part) {
  assert_null(layer);
  helio_error error;
  assert_int_equal(helio_error_take(&error), HELIO_INVALID_ARGUMENT);
  if (strncmp(error.message, title, strlen(title)) != 0 || !strstr(error.message, part)) {
    fail_msg("\"%s\" does not begin with \"%s\" or has no \"%s\"", error.message, title, part);
  }
}

static void test_wrong_options(void **state) {
  (void)state;
  refuse(helio_dense(0), "dense (Dense): ", "units is 0");
  refuse(helio_dense(-3, .name = "top"), "top (Dense): ", "units is -3");
  refuse(helio_dense(3, .activation_name = "rellu"), "dense (Dense): ", "did you mean 'relu'");
  refuse(helio_dense(3, .activation_name = "frobnicate"), "dense (Dense): ", "linear, relu, sigmoid");
  refuse(helio_dense(3, .activation = (helio_activation)99), "dense (Dense): ", "99");
  refuse(helio_dense(3, .kernel_regularizer = {.l2 = -1}), "dense (Dense): ", "-1");
  refuse(helio_conv2d(0, 3), "conv2d (Conv2D): ", "filters is 0");
  refuse(helio_conv2d(3), "conv2d (Conv2D): ", "kernel_size is 0");
  refuse(helio_conv2d(3, 3, .strides = {-1}), "conv2d (Conv2D): ", "strides is -1");
  refuse(helio_conv2d(3, 3, .dilation = {1, -2}), "conv2d (Conv2D): ", "dilation is -2");
  refuse(helio_conv2d(3, 3, .padding = HELIO_CAUSAL), "conv2d (Conv2D): ", "padding 3");
  refuse(helio_conv2d(4, 3, .groups = 3), "conv2d (Conv2D): ", "4 filters are not a multiple of 3 groups");
  refuse(helio_conv2d(4, 3, .groups = -1), "conv2d (Conv2D): ", "groups is -1");
  refuse(helio_conv1d(4, 3, 5), "conv1d (Conv1D): ", "kernel_size is 3 and 5 for one axis");
  refuse(helio_depthwise_conv2d(3, .depth_multiplier = -1), "depthwise_conv2d (", "depth_multiplier is -1");
  refuse(helio_max_pool2d(-2), "max_pooling2d (MaxPooling2D): ", "pool_size is -2");
  refuse(helio_max_pool1d(.padding = HELIO_CAUSAL), "max_pooling1d (MaxPooling1D): ", "padding 3");
  refuse(helio_reshape_layer(HELIO_SHAPE(-1, -1)), "reshape (Reshape): ", "(-1, -1)");
  refuse(helio_reshape_layer(HELIO_SHAPE(2, -3)), "reshape (Reshape): ", "(2, -3)");
  refuse(helio_permute(), "permute (Permute): ", "dims");
  refuse(helio_permute(HELIO_AXES(1, 3)), "permute (Permute): ", "1 … 2");
  refuse(helio_permute(HELIO_AXES(1, 1)), "permute (Permute): ", "once");
  refuse(helio_embedding(0, 4), "embedding (Embedding): ", "input_dim is 0");
  refuse(helio_embedding(5, -1), "embedding (Embedding): ", "output_dim is -1");
  refuse(helio_dropout(1.5), "dropout (Dropout): ", "rate is 1.5");
  refuse(helio_dropout(-0.1), "dropout (Dropout): ", "rate is -0.1");
  refuse(helio_dropout(NAN), "dropout (Dropout): ", "rate is");
  refuse(helio_batch_normalization(1.5), "batch_normalization (", "momentum is 1.5");
  refuse(helio_layer_normalization(-1), "layer_normalization (", "epsilon is -1");
  refuse(helio_activation_layer(), "activation (Activation): ", "no activation");
  refuse(helio_relu_layer(-1), "re_lu (ReLU): ", "max_value -1");
  refuse(helio_zero_padding2d(-1), "zero_padding2d (", "-1");
  refuse(helio_zero_padding2d(1, .padding = {1, 1, 1, 1}), "zero_padding2d (", "one number and as four");
  refuse(helio_up_sampling2d(-2), "up_sampling2d (", "size is -2");
  refuse(helio_up_sampling2d(.interpolation = 3), "up_sampling2d (", "3 is not an interpolation");
  refuse(helio_rescaling(), "rescaling (Rescaling): ", "no scale");
  refuse(helio_dense(3, .type = HELIO_INT32), "dense (Dense): ", "int32");
}

/* A call with inputs of these shapes, the second of rank 0 being none. */
static void refuse_shapes(helio_layer *layer, helio_shape first, helio_shape second, const char *part) {
  assert_made(layer);
  char start[100];
  snprintf(start, sizeof start, "%s (%s): ", helio_layer_name(layer), helio_layer_class(layer));
  helio_tensor *inputs[] = {ones(first), second.rank ? ones(second) : NULL};
  assert_null(helio_call(layer, .inputs = inputs, .input_count = inputs[1] ? 2 : 1));
  refuse(NULL, start, part);
}
#define REFUSE(layer, shape, part) refuse_shapes(layer, shape, HELIO_SCALAR, part)

static void test_wrong_shapes(void **state) {
  (void)state;
  const helio_shape row = HELIO_SHAPE(2, 5), image = HELIO_SHAPE(2, 4, 4, 3), steps = HELIO_SHAPE(2, 4, 3);
  REFUSE(helio_dense(3), HELIO_SHAPE(5), "rank 2 or more, got shape (5,)");
  REFUSE(helio_conv2d(3, 3, .name = "c"), row, "rank 4 (batch, height, width, channels), got shape (2, 5)");
  REFUSE(helio_conv1d(3, 3), row, "rank 3 (batch, steps, channels), got shape (2, 5)");
  REFUSE(helio_conv2d(8, 5), image, "a window of 5 does not fit into axis 1 of the input's shape (2, 4, 4, 3)");
  REFUSE(helio_conv2d(8, 3, .dilation = {1, 2}), image,
         "a window of 5 does not fit into axis 2 of the input's shape (2, 4, 4, 3)");
  REFUSE(helio_depthwise_conv2d(5, .depth_multiplier = 2), image, "axis 1 of the input's shape (2, 4, 4, 3)");
  REFUSE(helio_conv2d(4, 3, .groups = 2), image, "3 channels are not a multiple of 2 groups, got shape (2, 4, 4, 3)");
  REFUSE(helio_depthwise_conv2d(3), steps, "rank 4");
  REFUSE(helio_max_pool2d(5), image, "a window of 5");
  REFUSE(helio_average_pool1d(), image, "rank 3 (batch, steps, channels), got shape (2, 4, 4, 3)");
  REFUSE(helio_global_max_pool2d(), steps, "rank 4");
  REFUSE(helio_global_average_pool1d(), row, "rank 3");
  REFUSE(helio_flatten(), HELIO_SCALAR, "rank 1 or more, got shape ()");
  REFUSE(helio_reshape_layer(HELIO_SHAPE(7)), image, "shape (2, 4, 4, 3) cannot become (7,)");
  REFUSE(helio_reshape_layer(HELIO_SHAPE(-1, 7)), image, "cannot become (-1, 7)");
  REFUSE(helio_permute(HELIO_AXES(2, 1)), image, "rank 3");
  REFUSE(helio_batch_normalization(), HELIO_SHAPE(3), "rank 2 or more");
  REFUSE(helio_zero_padding2d(), row, "rank 4");
  REFUSE(helio_up_sampling2d(), row, "rank 4");
  REFUSE(helio_embedding(3, 3), HELIO_SHAPE(1, 1, 1, 1, 1, 1, 1, 1), "rank 7 or less");
  REFUSE(helio_concatenate(4), image, "shape (2, 4, 4, 3) have no axis 4");
  refuse_shapes(helio_dense(3), row, row, "1 input, not 2");
  refuse_shapes(helio_add_layer(), row, HELIO_SHAPE(2, 4), "shapes (2, 5) and (2, 4) cannot be merged");
  refuse_shapes(helio_multiply_layer(), row, HELIO_SHAPE(1, 5), "shapes (2, 5) and (1, 5) cannot be merged");
  refuse_shapes(helio_concatenate(), row, HELIO_SHAPE(3, 5), "shapes (2, 5) and (3, 5) cannot be concatenated");
  refuse_shapes(helio_concatenate(), row, image, "shapes (2, 5) and (2, 4, 4, 3) cannot be concatenated");
}

static void test_wrong_axes(void **state) {
  (void)state;
  const helio_shape row = HELIO_SHAPE(2, 5);
  refuse(helio_layer_normalization(.axes = {.count = 9}), "layer_normalization (", "9 axes are given, not 1 … 8");
  refuse(helio_softmax_layer(.axes = {.count = -1}), "softmax (Softmax): ", "-1 axes are given");
  REFUSE(helio_batch_normalization(.axis = 2), row, "there is no axis 2 in shape (2, 5)");
  REFUSE(helio_batch_normalization(.axis = -3), row, "there is no axis -3 in shape (2, 5)");
  REFUSE(helio_layer_normalization(.axes = HELIO_AXES(1, -1)), row, "axis 1 is given twice for shape (2, 5)");
  REFUSE(helio_layer_normalization(.axes = HELIO_AXES(1, 2)), row, "there is no axis 2 in shape (2, 5)");
  REFUSE(helio_softmax_layer(HELIO_AXES(0, 0)), row, "axis 0 is given twice for shape (2, 5)");
  REFUSE(helio_softmax_layer(), HELIO_SCALAR, "there is no axis -1 in shape ()");
}

/* A layer that was built for other inputs names itself too. */
static void test_other_channels_than_built_for(void **state) {
  (void)state;
  helio_layer *layer = helio_dense(3, .name = "top");
  assert_made(helio_call(layer, ones(HELIO_SHAPE(2, 5))));
  assert_null(helio_call(layer, ones(HELIO_SHAPE(2, 6))));
  refuse(NULL, "top (Dense): ", "(5, 3)");
  layer = helio_layer_normalization(.axes = HELIO_AXES(1, 2), .name = "norm");
  assert_made(helio_call(layer, ones(HELIO_SHAPE(1, 2, 6))));
  assert_null(helio_call(layer, ones(HELIO_SHAPE(1, 3, 4)))); /* as many elements */
  refuse(NULL, "norm (LayerNormalization): ", "shape (1, 3, 4) does not go with gamma, which is (2, 6)");
}

static void test_unknown_extents_at_build(void **state) {
  (void)state;
  helio_shape open = HELIO_SHAPE(HI_ANY, HI_ANY, HI_ANY, HI_ANY);
  helio_layer *layers[] = {helio_dense(3), helio_conv2d(3, 3), helio_depthwise_conv2d(3), helio_batch_normalization(),
                           helio_layer_normalization()};
  for (size_t i = 0; i < COUNT_OF(layers); i++) {
    assert_int_equal(hi_layer_build(layers[i], &open, 1), HELIO_INVALID_ARGUMENT);
    refuse(NULL, layers[i]->title, "must be known, got shape (None, None, None, None)");
    assert_int_equal(layers[i]->weight_count, 0);
  }
}

/* Sizes that no memory has are an error and no overflow. */
static void test_huge_shapes(void **state) {
  (void)state;
  helio_shape huge = HELIO_SHAPE(2, INT64_MAX / 2, INT64_MAX / 2, INT64_MAX / 2), twice[] = {huge, huge, huge}, result;
  helio_layer *layers[] = {helio_depthwise_conv2d(3, .depth_multiplier = 7),
                           helio_zero_padding2d(INT32_MAX),
                           helio_up_sampling2d(1000),
                           helio_flatten(),
                           helio_reshape_layer(HELIO_SHAPE(3, -1)),
                           helio_max_pool2d(INT32_MAX),
                           helio_conv2d(3, INT32_MAX, .dilation = {INT32_MAX})};
  for (size_t i = 0; i < COUNT_OF(layers); i++) {
    assert_made(layers[i]);
    hi_layer_shape(layers[i], &huge, 1, &result);
    if (hi_layer_build(layers[i], &huge, 1)) helio_error_take(NULL);
  }
  assert_ok(hi_layer_shape(helio_concatenate(), twice, 3, &result));
  assert_int_equal(result.extent[3], INT64_MAX);
  assert_int_not_equal(hi_layer_build(helio_dense(INT64_MAX), &huge, 1), HELIO_OK);
  helio_error_take(NULL);
}

static void refuse_indices(const void *indices, helio_type type, const char *index) {
  float values[4];
  helio_layer *layer = helio_embedding(5, 2, .name = "words");
  helio_tensor *y = helio_call(layer, helio_constant(indices, HELIO_SHAPE(2), .type = type));
  assert_made(y);
  assert_int_equal(helio_tensor_read(y, values, sizeof values), HELIO_BAD_DATA);
  helio_error error;
  helio_error_take(&error);
  if (!strstr(error.message, "words (Embedding)") || !strstr(error.message, index) || !strstr(error.message, "5")) {
    fail_msg("\"%s\" does not say layer, index %s and size", error.message, index);
  }
}

static void test_index_out_of_range(void **state) {
  (void)state;
  refuse_indices((int32_t[]){0, 7}, HELIO_INT32, "7");
  refuse_indices((int32_t[]){-2, 1}, HELIO_INT32, "-2");
  refuse_indices((int64_t[]){4294967296, 1}, HELIO_INT64, "4294967296"); /* not 0 */
  refuse_indices((uint8_t[]){4, 9}, HELIO_UINT8, "9");
}

int main(void) {
  remember_environment();
  const struct CMUnitTest tests[] = {
      TEST(test_golden),
      TEST(test_every_kind_is_golden),
      TEST(test_options_by_hand),
      TEST(test_zero),
      TEST(test_variables),
      TEST(test_frozen_statistics),
      TEST(test_axes),
      TEST(test_shapes_along_axes),
      TEST(test_bilinear),
      TEST(test_initializers_without_deviation),
      TEST(test_integers),
      TEST(test_halves),
      TEST(test_logits),
      TEST(test_dropout),
      TEST(test_dropout_seeds),
      TEST(test_dropout_way_back),
      TEST(test_wrong_options),
      TEST(test_wrong_shapes),
      TEST(test_wrong_axes),
      TEST(test_other_channels_than_built_for),
      TEST(test_unknown_extents_at_build),
      TEST(test_huge_shapes),
      TEST(test_index_out_of_range),
  };
  return cmocka_run_group_tests_name("layers", tests, NULL, NULL);
}
