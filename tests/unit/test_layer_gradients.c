/* SPDX-License-Identifier: Apache-2.0 */
/* Every layer's gradients in float64, by inputs and by variables, against central finite differences. */
#include "golden.h"
#include "nn/layer.h"

enum { MOST_INPUTS = 3 };

typedef struct gradient_case {
  const char *class_name, *config; /* without the type */
  int64_t shapes[MOST_INPUTS][4];  /* up to the first 0 */
  bool training;
} gradient_case;

static const gradient_case cases[] = {
    {"Dense", "\"units\": 3", {{3, 4}}, false},
    {"Dense", "\"units\": 2, \"use_bias\": false", {{2, 6, 4}}, false},
    {"Conv1D", "\"filters\": 3, \"kernel_size\": 3", {{2, 6, 4}}, false},
    {"Conv1D", "\"filters\": 2, \"kernel_size\": 2, \"padding\": \"causal\", \"dilation_rate\": 2", {{2, 6, 4}}, false},
    {"Conv1D",
     "\"filters\": 4, \"kernel_size\": 4, \"padding\": \"same\", \"strides\": 2, \"groups\": 2",
     {{2, 6, 4}},
     false},
    {"Conv2D", "\"filters\": 3, \"kernel_size\": [3, 2], \"activation\": \"tanh\"", {{2, 5, 6, 2}}, false},
    {"Conv2D", "\"filters\": 2, \"kernel_size\": 3, \"padding\": \"same\", \"strides\": [2, 1]", {{2, 5, 6, 2}}, false},
    {"Conv2D", "\"filters\": 4, \"kernel_size\": 2, \"groups\": 2, \"dilation_rate\": [1, 2]", {{2, 5, 6, 2}}, false},
    {"Conv2D", "\"filters\": 3, \"kernel_size\": 2, \"activation\": \"softmax\"", {{2, 5, 6, 2}}, false},
    {"DepthwiseConv2D", "\"kernel_size\": 3, \"depth_multiplier\": 2, \"activation\": \"silu\"", {{2, 5, 6, 2}}, false},
    {"DepthwiseConv2D", "\"kernel_size\": 2, \"padding\": \"same\", \"strides\": 2", {{2, 5, 6, 2}}, false},
    {"MaxPooling1D", "\"pool_size\": 3, \"strides\": 2", {{2, 6, 4}}, false},
    {"MaxPooling2D", "\"pool_size\": [2, 3], \"padding\": \"same\"", {{2, 5, 6, 2}}, false},
    {"AveragePooling1D", "\"pool_size\": 2, \"padding\": \"same\"", {{2, 6, 4}}, false},
    {"AveragePooling2D", "\"pool_size\": 3, \"strides\": 1", {{2, 5, 6, 2}}, false},
    {"GlobalMaxPooling1D", "\"keepdims\": true", {{2, 6, 4}}, false},
    {"GlobalMaxPooling2D", "\"keepdims\": false", {{2, 5, 6, 2}}, false},
    {"GlobalAveragePooling1D", "\"keepdims\": false", {{2, 6, 4}}, false},
    {"GlobalAveragePooling2D", "\"keepdims\": true", {{2, 5, 6, 2}}, false},
    {"Flatten", "\"trainable\": true", {{2, 5, 6, 2}}, false},
    {"Reshape", "\"target_shape\": [3, -1]", {{2, 6, 4}}, false},
    {"Permute", "\"dims\": [3, 1, 2]", {{2, 5, 6, 2}}, false},
    {"Embedding", "\"input_dim\": 5, \"output_dim\": 3", {{2, 4}}, false},
    {"Dropout", "\"rate\": 0.4", {{3, 4}}, true},
    {"BatchNormalization", "\"momentum\": 0.9", {{3, 4}}, true},
    {"BatchNormalization", "\"scale\": false", {{2, 5, 6, 2}}, true},
    {"BatchNormalization", "\"center\": false", {{2, 6, 4}}, false},
    {"BatchNormalization", "\"axis\": 1", {{2, 5, 3, 2}}, true},
    {"BatchNormalization", "\"axis\": -2", {{2, 6, 4}}, false},
    {"LayerNormalization", "\"epsilon\": 0.01", {{2, 6, 4}}, false},
    {"LayerNormalization", "\"center\": false, \"scale\": false", {{3, 4}}, false},
    {"LayerNormalization", "\"axis\": 1", {{2, 6, 4}}, false},
    {"LayerNormalization", "\"axis\": [1, 2]", {{2, 6, 4}}, false},
    {"LayerNormalization", "\"axis\": [3, 1]", {{2, 3, 6, 2}}, false},
    {"LayerNormalization", "\"axis\": [-1, 1]", {{2, 3, 6, 2}}, false},
    {"Softmax", "\"axis\": -1", {{2, 6, 4}}, false},
    {"Softmax", "\"axis\": 1", {{2, 6, 4}}, false},
    {"Softmax", "\"axis\": [3, 1]", {{2, 3, 6, 2}}, false},
    {"Softmax", "\"axis\": [0, 1]", {{3, 4}}, false},
    {"ReLU", "\"max_value\": 0.9, \"negative_slope\": 0.2, \"threshold\": 0.3", {{2, 6, 4}}, false},
    {"ReLU", "\"negative_slope\": 0.2", {{2, 6, 4}}, false},
    {"ReLU", "\"max_value\": 6, \"negative_slope\": 0.5", {{2, 6, 4}}, false},
    {"Add", "\"trainable\": true", {{2, 6, 4}, {2, 6, 4}, {2, 1, 4}}, false},
    {"Multiply", "\"trainable\": true", {{2, 6, 4}, {2, 4}, {2, 6, 4}}, false},
    {"Average", "\"trainable\": true", {{3, 4}, {3, 4}, {3, 4}}, false},
    {"Concatenate", "\"axis\": 1", {{2, 6, 4}, {2, 3, 4}}, false},
    {"ZeroPadding2D", "\"padding\": [[1, 0], [2, 1]]", {{2, 5, 6, 2}}, false},
    {"UpSampling2D", "\"size\": [2, 3]", {{2, 5, 6, 2}}, false},
    {"UpSampling2D", "\"size\": [2, 3], \"interpolation\": \"bilinear\"", {{2, 4, 5, 2}}, false},
    {"UpSampling2D", "\"size\": [4, 1], \"interpolation\": \"bilinear\"", {{2, 1, 3, 2}}, false},
    {"Rescaling", "\"scale\": 0.3, \"offset\": -1", {{3, 4}}, false},
    {"Activation", "\"activation\": \"linear\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"relu\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"sigmoid\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"tanh\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"softplus\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"silu\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"gelu\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"gelu_tanh\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"elu\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"leaky_relu\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"softmax\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"log_softmax\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"relu6\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"selu\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"softsign\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"exponential\"", {{3, 4}}, false},
    {"Activation", "\"activation\": \"hard_sigmoid\"", {{3, 4}}, false},
};

/* ---- one case ---- */

enum { MOST_PLACES = 200 };

/* Numbers that the result depends on: those of an input or of a variable. */
typedef struct place {
  helio_variable *variable; /* NULL: an input */
  helio_shape shape;
  int64_t count;
  double numbers[MOST_PLACES];
} place;

typedef struct running {
  const gradient_case *about;
  helio_layer *layer;
  bool indices; /* the input is one of integers, which stays as it is */
  int input_count, place_count;
  place places[MOST_INPUTS + HI_MOST_WEIGHTS]; /* inputs, then variables */
  double dy[4 * MOST_PLACES];
} running;

static double next_number(uint64_t *seed) {
  return next_random(seed) / 2147483648.0 * 4 - 2; /* −2 … 2 */
}

static void add_place(running *r, helio_shape shape, helio_variable *variable, uint64_t *seed) {
  place *p = &r->places[r->place_count++];
  p->shape = shape;
  p->variable = variable;
  p->count = 1;
  for (int i = 0; i < shape.rank; i++) p->count *= shape.extent[i];
  assert_in_range(p->count, 1, MOST_PLACES);
  bool variance = variable && strstr(helio_variable_name(variable), "variance");
  for (int i = 0; i < p->count; i++) p->numbers[i] = variance ? 0.5 + i : next_number(seed);
}

static helio_tensor *tensor_of(const running *r, const place *p) {
  int32_t indices[MOST_PLACES];
  if (!r->indices || p->variable) return helio_constant(p->numbers, p->shape, .type = HELIO_FLOAT64);
  for (int i = 0; i < p->count; i++) indices[i] = i * 3 % 5;
  return helio_constant(indices, p->shape, .type = HELIO_INT32);
}

/* The result for the numbers as they are, with those of all calls before: dropout falls out alike. */
static helio_tensor *forward(running *r, helio_tensor *inputs[MOST_INPUTS]) {
  for (int i = r->input_count; i < r->place_count; i++) {
    assert_ok(helio_assign(r->places[i].variable, tensor_of(r, &r->places[i])));
  }
  if (r->layer->calls) atomic_store(&r->layer->calls[0], 0);
  helio_tensor *y =
      helio_call(r->layer, .inputs = inputs, .input_count = r->input_count, .training = r->about->training);
  assert_made(y);
  assert_int_equal(helio_tensor_type(y), HELIO_FLOAT64);
  return y;
}

/* Σ dy × y */
static double target(running *r) {
  double sum = 0;
  HELIO_POOL {
    helio_tensor *inputs[MOST_INPUTS];
    for (int i = 0; i < r->input_count; i++) inputs[i] = tensor_of(r, &r->places[i]);
    helio_tensor *y = forward(r, inputs);
    double *numbers = numbers_of(y);
    for (int i = 0; i < helio_tensor_elements(y); i++) sum += r->dy[i] * numbers[i];
    free(numbers);
  }
  return sum;
}

/* h is chosen for the cube root of the rounding error. */
static void differences(running *r, place *p, double *slopes) {
  const double h = 1e-5;
  for (int i = 0; i < p->count; i++) {
    double before = p->numbers[i];
    p->numbers[i] = before + h;
    double above = target(r);
    p->numbers[i] = before - h;
    slopes[i] = (above - target(r)) / (2 * h);
    p->numbers[i] = before;
  }
}

static bool near(running *r, helio_gradients *gradients, int index, place *p) {
  double expected[MOST_PLACES], distance = INFINITY;
  helio_tensor *gradient = helio_gradients_at(gradients, index);
  differences(r, p, expected);
  if (gradient && shapes_equal(helio_tensor_shape(gradient), p->shape)) {
    double *numbers = numbers_of(gradient);
    distance = distance_of_numbers(numbers, expected, p->count);
    free(numbers);
  }
  if (distance <= 1e-7) return true;
  print_error("%s {%s}: the gradient by %s is off by %g\n", r->about->class_name, r->about->config,
              p->variable ? helio_variable_name(p->variable) : "an input", distance);
  return false;
}

static void set_up_case(running *r, uint64_t *seed) {
  char config[300];
  helio_shape shapes[MOST_INPUTS];
  snprintf(config, sizeof config, "{\"dtype\": \"float64\", %s}", r->about->config);
  r->layer = helio_layer_from_config(r->about->class_name, config);
  assert_made(r->layer);
  r->indices = strcmp(r->about->class_name, "Embedding") == 0;
  for (; r->input_count < MOST_INPUTS && r->about->shapes[r->input_count][0]; r->input_count++) {
    const int64_t *extents = r->about->shapes[r->input_count];
    helio_shape shape = {0};
    for (; shape.rank < 4 && extents[shape.rank]; shape.rank++) shape.extent[shape.rank] = extents[shape.rank];
    shapes[r->input_count] = shape;
    add_place(r, shape, NULL, seed);
  }
  assert_ok(hi_layer_build(r->layer, shapes, r->input_count));
  for (int i = 0; i < r->layer->weight_count; i++) {
    helio_variable *variable = r->layer->weights[i].variable;
    add_place(r, helio_variable_shape(variable), variable, seed);
  }
  for (size_t i = 0; i < COUNT_OF(r->dy); i++) r->dy[i] = next_number(seed);
}

static helio_gradients *gradients_of(running *r, helio_tensor *inputs[MOST_INPUTS]) {
  helio_variable *variables[HI_MOST_WEIGHTS];
  helio_variables list = {r->layer->weight_count, variables};
  helio_tape *tape = helio_tape_new();
  helio_tensor *y = NULL;
  for (int i = 0; i < list.count; i++) variables[i] = r->layer->weights[i].variable;
  HELIO_TAPE(tape) {
    for (int i = 0; i < r->input_count && !r->indices; i++) assert_ok(helio_tape_watch(tape, inputs[i]));
    y = forward(r, inputs);
  }
  assert_in_range(helio_tensor_elements(y), 1, COUNT_OF(r->dy));
  helio_tensor *dy = helio_constant(r->dy, helio_tensor_shape(y), .type = HELIO_FLOAT64);
  helio_gradients *gradients =
      helio_gradient(tape, y, &list, .tensors = inputs, .tensor_count = r->input_count, .output_gradient = dy);
  assert_made(gradients);
  return gradients;
}

/* Gradients come with those of variables first. */
static bool check_case(const gradient_case *about, uint64_t seed) {
  running r = {.about = about};
  bool right = true;
  set_up_case(&r, &seed);
  helio_tensor *inputs[MOST_INPUTS];
  for (int i = 0; i < r.input_count; i++) inputs[i] = tensor_of(&r, &r.places[i]);
  helio_gradients *gradients = gradients_of(&r, inputs);
  for (int i = 0; i < r.input_count && !r.indices; i++) {
    right &= near(&r, gradients, r.layer->weight_count + i, &r.places[i]);
  }
  for (int i = 0; i < r.layer->weight_count; i++) {
    if (!r.layer->weights[i].trainable) continue;
    right &= near(&r, gradients, i, &r.places[r.input_count + i]);
  }
  return right;
}

static void test_finite_differences(void **state) {
  int failures = 0;
  (void)state;
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    HELIO_POOL failures += !check_case(&cases[i], 20261117 + i);
  }
  if (failures) fail_msg("%d of %zu cases differ", failures, COUNT_OF(cases));
}

static void test_every_kind_is_differentiated(void **state) {
  (void)state;
  for (int k = 0; hi_layer_kinds[k]; k++) {
    bool found = false;
    for (size_t i = 0; i < COUNT_OF(cases); i++) found |= !strcmp(cases[i].class_name, hi_layer_kinds[k]->class_name);
    if (!found) fail_msg("no case is of class %s", hi_layer_kinds[k]->class_name);
  }
}

int main(void) {
  remember_environment();
  const struct CMUnitTest tests[] = {
      TEST(test_finite_differences),
      TEST(test_every_kind_is_differentiated),
  };
  return cmocka_run_group_tests_name("layer gradients", tests, NULL, NULL);
}
