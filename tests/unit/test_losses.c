/* SPDX-License-Identifier: Apache-2.0 */
/* Losses: Keras' numbers and gradients, finite differences, logits behind activations, weights, and wrong use. */
#include "golden.h"

#define FLOATS(shape, ...) helio_constant(((float[]){__VA_ARGS__}), shape)
#define INTS(shape, ...)   helio_constant(((int32_t[]){__VA_ARGS__}), shape, HELIO_INT32)

typedef helio_loss *constructor(const helio_loss_options *options);

static const struct {
  const char *class_name, *name;
  constructor *make;
} losses[] = {
    {"MeanSquaredError", "mean_squared_error", helio_mean_squared_error_with},
    {"MeanAbsoluteError", "mean_absolute_error", helio_mean_absolute_error_with},
    {"Huber", "huber_loss", helio_huber_with},
    {"BinaryCrossentropy", "binary_crossentropy", helio_binary_crossentropy_with},
    {"CategoricalCrossentropy", "categorical_crossentropy", helio_categorical_crossentropy_with},
    {"SparseCategoricalCrossentropy", "sparse_categorical_crossentropy", helio_sparse_categorical_crossentropy_with},
    {"KLDivergence", "kl_divergence", helio_kl_divergence_with},
    {"CosineSimilarity", "cosine_similarity", helio_cosine_similarity_with},
};

/* ---- Keras' numbers ---- */

static helio_loss_reduction reduction_of(const char *name) {
  if (!strcmp(name, "sum_over_batch_size")) return (helio_loss_reduction)0; /* the default */
  if (!strcmp(name, "sum")) return HELIO_LOSS_SUM;
  if (!strcmp(name, "none")) return HELIO_LOSS_NONE;
  assert_string_equal(name, "mean_with_sample_weight");
  return HELIO_LOSS_WEIGHTED_MEAN;
}

/* 0 where it is the default. Cross entropies have the option in Keras alone: there it must be the last axis. */
static int axis_of(json_t *config, const char *class_name) {
  json_t *axis = json_object_get(config, "axis");
  if (!axis || json_integer_value(axis) == -1) return 0;
  assert_string_equal(class_name, "CosineSimilarity");
  return (int)json_integer_value(axis);
}

static helio_loss *loss_of(json_t *description, bool twice) {
  json_t *config = json_object_get(description, "config");
  const char *class_name = json_string_value(json_object_get(description, "class_name"));
  json_t *ignored = json_object_get(config, "ignore_class");
  helio_loss_options o = {
      .size = sizeof o,
      .reduction = reduction_of(json_string_value(json_object_get(config, "reduction"))),
      .from_logits = json_is_true(json_object_get(config, "from_logits")),
      .label_smoothing = json_number_value(json_object_get(config, "label_smoothing")),
      .delta = json_number_value(json_object_get(config, "delta")),
      .softmax_twice = twice,
      .ignores_class = json_is_integer(ignored),
      .ignore_class = (int)json_integer_value(ignored),
      .axis = axis_of(config, class_name),
  };
  for (size_t i = 0; i < COUNT_OF(losses); i++) {
    if (strcmp(losses[i].class_name, class_name) != 0) continue;
    helio_loss *loss = losses[i].make(&o);
    assert_made(loss);
    assert_string_equal(helio_loss_name(loss), json_string_value(json_object_get(config, "name")));
    return loss;
  }
  fail_msg("%s is not in the list", class_name);
  return NULL;
}

/* What a layer with that activation at its end returns. */
static helio_tensor *activated(helio_tensor *x, helio_activation activation) {
  return helio_call(helio_activation_layer(activation, .type = helio_tensor_type(x)), x);
}

static bool near(helio_tensor *tensor, helio_tensor *right, const char *name, const char *what) {
  double distance = tensor_distance(tensor, right);
  if (!(distance <= 1e-5)) print_error("%s: %s differs by %g\n", name, what, distance);
  return distance <= 1e-5;
}

/* Value and gradient by the predictions or by what their activation is applied to. */
static bool agrees(const golden *file, const char *name, json_t *description) {
  const char *kind = json_string_value(json_object_get(description, "kind"));
  bool crossed = strstr(kind, "_crossed"), direct = !strcmp(kind, "direct");
  if (crossed) print_message("%s: Keras' value is that of another loss; compared with the one asked for\n", name);
  const helio_loss *loss = loss_of(description, strstr(kind, "_twice"));
  helio_activation activation = strstr(kind, "softmax") ? HELIO_SOFTMAX : HELIO_SIGMOID;
  helio_tensor *x = golden_tensor(file, "%s/%s", name, direct ? "y_pred" : "logits"), *value = NULL;
  helio_tensor *labels = golden_tensor(file, "%s/y_true", name), *weights = NULL;
  if (golden_has(file, "%s/sample_weight", name)) weights = golden_tensor(file, "%s/sample_weight", name);
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) {
    assert_ok(helio_tape_watch(tape, x));
    helio_tensor *predictions = direct ? x : activated(x, activation);
    value = helio_compute_loss(loss, labels, predictions, .sample_weights = weights);
  }
  assert_made(value);
  helio_gradients *gradients = helio_gradient(tape, value, .tensors = &x, .tensor_count = 1);
  assert_made(gradients);
  bool right = near(value, golden_tensor(file, "%s/%s", name, crossed ? "plain_value" : "value"), name, "the value");
  helio_tensor *gradient = golden_tensor(file, "%s/%s", name, crossed ? "plain_gradient" : "gradient");
  return near(helio_gradients_at(gradients, 0), gradient, name, "the gradient") && right;
}

static void test_golden(void **state) {
  (void)state;
  int wrong = 0;
  golden *file = golden_open("losses");
  json_t *order = golden_json(file, "order");
  size_t count = json_array_size(order);
  for (size_t i = 0; i < count; i++) {
    const char *name = json_string_value(json_array_get(order, i));
    json_t *description = golden_json(file, name);
    HELIO_POOL wrong += !agrees(file, name, description);
    json_decref(description);
  }
  json_decref(order);
  golden_close(file);
  print_message("%zu cases compared, none left out\n", count);
  assert_int_equal(wrong, 0);
  assert_true(count >= 160);
}

/* ---- finite differences ---- */

enum { ROWS = 3, CLASSES = 4, NUMBERS = ROWS * CLASSES };

/* Predictions and labels that stay away from corners: probabilities in each row. */
static const double probabilities[NUMBERS] = {0.1, 0.2, 0.3, 0.4, 0.25, 0.35, 0.15, 0.25, 0.6, 0.2, 0.12, 0.08};
static const double targets[NUMBERS] = {0.7, 0.1, 0.1, 0.1, 0.05, 0.05, 0.6, 0.3, 0.2, 0.5, 0.2, 0.1};
static const double given_weights[ROWS] = {0.5, 2, 1.25};

typedef struct setting {
  const helio_loss *loss;
  bool sparse, softmax, sigmoid, weighted;
} setting;

static helio_tensor *doubles(const double *numbers, helio_shape shape) {
  return helio_constant(numbers, shape, HELIO_FLOAT64);
}

static helio_tensor *loss_at(const setting *s, helio_tensor *x) {
  helio_tensor *labels = s->sparse ? INTS(HELIO_SHAPE(ROWS), 2, 0, 3) : doubles(targets, HELIO_SHAPE(ROWS, CLASSES));
  helio_tensor *predictions = x;
  if (s->softmax) predictions = activated(x, HELIO_SOFTMAX);
  if (s->sigmoid) predictions = activated(x, HELIO_SIGMOID);
  return helio_compute_loss(s->loss, labels, predictions,
                            .sample_weights = s->weighted ? doubles(given_weights, HELIO_SHAPE(ROWS)) : NULL);
}

static double sum_at(const setting *s, const double *numbers) {
  double sum = 0;
  HELIO_POOL {
    sum = helio_item(helio_sum(loss_at(s, doubles(numbers, HELIO_SHAPE(ROWS, CLASSES)))));
  }
  return sum;
}

static void compare_with_differences(const char *name, const setting *s) {
  const double step = 1e-5;
  double gradient[NUMBERS], moved[NUMBERS];
  helio_tensor *x = doubles(probabilities, HELIO_SHAPE(ROWS, CLASSES)), *value = NULL;
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) {
    assert_ok(helio_tape_watch(tape, x));
    value = loss_at(s, x);
  }
  assert_made(value);
  assert_int_equal(helio_tensor_type(value), HELIO_FLOAT64);
  helio_gradients *gradients = helio_gradient(tape, value, .tensors = &x, .tensor_count = 1);
  assert_made(gradients);
  assert_ok(helio_tensor_read(helio_gradients_at(gradients, 0), gradient, sizeof gradient));
  for (int i = 0; i < NUMBERS; i++) {
    memcpy(moved, probabilities, sizeof moved);
    moved[i] += step;
    double above = sum_at(s, moved);
    moved[i] = probabilities[i] - step;
    double slope = (above - sum_at(s, moved)) / (2 * step);
    if (!(fabs(slope - gradient[i]) <= 1e-7))
      fail_msg("%s: %g is the slope of %d, not %g", name, slope, i, gradient[i]);
  }
}

static void test_differences(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(losses); i++) {
    for (int reduction = HELIO_LOSS_MEAN; reduction <= HELIO_LOSS_WEIGHTED_MEAN; reduction++) {
      HELIO_POOL {
        helio_loss_options o = {.size = sizeof o, .reduction = (helio_loss_reduction)reduction};
        setting s = {.sparse = strstr(losses[i].name, "sparse"), .weighted = reduction != HELIO_LOSS_NONE};
        if (strstr(losses[i].name, "huber")) o.delta = 0.25;
        s.loss = losses[i].make(&o);
        compare_with_differences(losses[i].name, &s);
        if (!strstr(losses[i].name, "crossentropy")) continue;
        s.softmax = !(s.sigmoid = strstr(losses[i].name, "binary"));
        compare_with_differences(losses[i].name, &s);
        o.from_logits = true;
        o.label_smoothing = s.sparse ? 0 : 0.2;
        s = (setting){.loss = losses[i].make(&o), .sparse = s.sparse};
        compare_with_differences(losses[i].name, &s);
        if (!s.sparse) continue;
        o.ignores_class = true;
        s = (setting){.loss = losses[i].make(&o), .sparse = true, .weighted = reduction != HELIO_LOSS_NONE};
        compare_with_differences("a loss that ignores a class", &s);
      }
    }
  }
  setting s = {.loss = helio_cosine_similarity(.axis = -2)};
  compare_with_differences("cosine similarity along the batch", &s);
}

/* ---- logits ---- */

static helio_tensor *extreme(void) {
  return FLOATS(HELIO_SHAPE(2, 3), 200, -200, 0, -300, 300, 299);
}

/* Far beyond what a probability of float32 can say; also where a batch has no difference at all. */
static void test_extreme_logits(void **state) {
  (void)state;
  helio_tensor *labels = INTS(HELIO_SHAPE(2), 1, 2), *rows[2];
  helio_loss *loss = helio_sparse_categorical_crossentropy(.reduction = HELIO_LOSS_NONE);
  helio_tensor *value = helio_compute_loss(loss, labels, activated(extreme(), HELIO_SOFTMAX));
  assert_ok(helio_split(value, 2, 0, rows));
  assert_true(fabs(helio_item(rows[0]) - 400) < 1e-4);
  assert_true(fabs(helio_item(rows[1]) - 1.3132617) < 1e-4);
  value = helio_compute_loss(loss, labels, helio_softmax(extreme())); /* nothing is known of its logits */
  assert_ok(helio_split(value, 2, 0, rows));
  assert_true(fabs(helio_item(rows[0]) - 16.118) < 1e-2); /* −log 1e-7 */
  loss = helio_binary_crossentropy();
  value = helio_compute_loss(loss, FLOATS(HELIO_SHAPE(1, 2), 1, 0),
                             activated(FLOATS(HELIO_SHAPE(1, 2), -200, 200), HELIO_SIGMOID));
  assert_true(fabs(helio_item(value) - 200) < 1e-4);
  value = helio_compute_loss(loss, FLOATS(HELIO_SHAPE(1, 2), 1, 0),
                             activated(FLOATS(HELIO_SHAPE(1, 2), 20, -20), HELIO_SIGMOID));
  assert_true(fabs(helio_item(value) - 2.0611536e-9) < 1e-14); /* small, and not 0 */
}

/* A logit of 0, where a network that starts with zeros begins, has a slope of one half. */
static void test_slope_at_zero(void **state) {
  (void)state;
  helio_tensor *x = FLOATS(HELIO_SHAPE(1, 2), 0, 0), *value = NULL;
  helio_loss *loss = helio_binary_crossentropy(.from_logits = true, .reduction = HELIO_LOSS_SUM);
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) {
    assert_ok(helio_tape_watch(tape, x));
    value = helio_compute_loss(loss, FLOATS(HELIO_SHAPE(1, 2), 1, 0), x);
  }
  float slope[2];
  helio_gradients *gradients = helio_gradient(tape, value, .tensors = &x, .tensor_count = 1);
  assert_ok(helio_tensor_read(helio_gradients_at(gradients, 0), slope, sizeof slope));
  assert_float_equal(slope[0], -0.25f, 1e-7f); /* of the mean of two */
  assert_float_equal(slope[1], 0.25f, 1e-7f);
}

/* Only what stands before the right activation is gone back to. */
static void test_crossed_activation(void **state) {
  (void)state;
  helio_tensor *x = FLOATS(HELIO_SHAPE(1, 2), 1, -1), *labels = FLOATS(HELIO_SHAPE(1, 2), 1, 0);
  helio_loss *binary = helio_binary_crossentropy(), *mse = helio_mean_squared_error();
  double crossed = helio_item(helio_compute_loss(binary, labels, activated(x, HELIO_SOFTMAX)));
  assert_true(crossed == helio_item(helio_compute_loss(binary, labels, helio_softmax(x))));
  double plain = helio_item(helio_compute_loss(mse, labels, activated(x, HELIO_SOFTMAX)));
  assert_true(plain == helio_item(helio_compute_loss(mse, labels, helio_softmax(x))));
}

/* The tutorial of TensorFlow 2.3: with one class certain, the loss of 46 is 3.8653 − accuracy. */
static void test_softmax_twice(void **state) {
  (void)state;
  enum { MANY = 46 };
  float logits[2 * MANY] = {0};
  logits[3] = logits[MANY + 5] = 100;
  helio_tensor *labels = INTS(HELIO_SHAPE(2), 3, 7), *predictions;
  predictions = activated(helio_constant(logits, HELIO_SHAPE(2, MANY)), HELIO_SOFTMAX);
  helio_loss *twice = helio_sparse_categorical_crossentropy(.from_logits = true, .softmax_twice = true);
  assert_true(fabs(helio_item(helio_compute_loss(twice, labels, predictions)) - (3.8653 - 0.5)) < 1e-3);
  assert_not_logged("from_logits");
  helio_loss *once = helio_sparse_categorical_crossentropy();
  assert_true(fabs(helio_item(helio_compute_loss(once, labels, predictions)) - 50) < 1e-3);
}

static bool warn_in_child(void *unused) {
  (void)unused;
  helio_tensor *labels = INTS(HELIO_SHAPE(1), 1), *x = FLOATS(HELIO_SHAPE(1, 3), 1, 2, 3);
  helio_loss *loss = helio_sparse_categorical_crossentropy(.from_logits = true, .name = "mine");
  helio_loss *other = helio_binary_crossentropy(.from_logits = true);
  CHILD_CHECK(helio_compute_loss(loss, labels, x));
  CHILD_CHECK(lines_with("from_logits", "") == 0);
  for (int i = 0; i < 3; i++) CHILD_CHECK(helio_compute_loss(loss, labels, activated(x, HELIO_SOFTMAX)));
  CHILD_CHECK(helio_compute_loss(other, x, activated(x, HELIO_SIGMOID)));
  CHILD_CHECK(lines_with("from_logits", "") == 1);
  CHILD_CHECK(lines_with("mine received .from_logits = true",
                         "produced by a softmax activation and thus do not represent logits. Was this intended?") == 1);
  CHILD_CHECK(lines_with("WARNING", "softmax_twice") == 1);
  CHILD_CHECK(helio_item(helio_compute_loss(loss, labels, activated(x, HELIO_SOFTMAX))) ==
              helio_item(helio_compute_loss(loss, labels, x)));
  return true;
}

/* Once in a process: the other tests have warned in this one. */
static void test_warns_once(void **state) {
  (void)state;
  assert_int_equal(run_in_child(warn_in_child, NULL), 0);
}

/* ---- weights ---- */

static void test_weights(void **state) {
  (void)state;
  helio_tensor *labels = helio_fill(HELIO_SHAPE(2, 3, 2), 0), *x = NULL;
  x = FLOATS(HELIO_SHAPE(2, 3, 2), 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6); /* losses 1 … 6 */
  helio_loss *sum = helio_mean_absolute_error(.reduction = HELIO_LOSS_SUM);
  helio_loss *mean = helio_mean_absolute_error(.reduction = HELIO_LOSS_WEIGHTED_MEAN);
#define WEIGHTED(loss, weights) helio_item(helio_compute_loss(loss, labels, x, .sample_weights = weights))
  assert_true(WEIGHTED(sum, NULL) == 21);
  assert_true(WEIGHTED(sum, FLOATS(HELIO_SHAPE(2), 1, 10)) == 156); /* one for each sample */
  assert_true(WEIGHTED(sum, FLOATS(HELIO_SHAPE(2, 1), 1, 10)) == 156);
  assert_true(WEIGHTED(sum, FLOATS(HELIO_SHAPE(2, 3), 1, 0, 0, 0, 0, 2)) == 13); /* for each loss */
  assert_true(WEIGHTED(sum, FLOATS(HELIO_SHAPE(3), 1, 0, 2)) == 23);             /* as numpy broadcasts */
  assert_true(WEIGHTED(sum, FLOATS(HELIO_SCALAR, 2)) == 42);
  assert_true(WEIGHTED(sum, INTS(HELIO_SHAPE(2), 1, 10)) == 156);
  assert_true(WEIGHTED(mean, NULL) == 3.5);
  assert_true(WEIGHTED(mean, FLOATS(HELIO_SHAPE(2, 3), 1, 0, 0, 0, 0, 3)) == 4.75);
  assert_true(WEIGHTED(mean, helio_fill(HELIO_SHAPE(2, 3), 0)) == 0);
  assert_null(helio_compute_loss(sum, labels, x, .sample_weights = helio_fill(HELIO_SHAPE(4), 1)));
  expect_error(HELIO_INVALID_ARGUMENT,
               "mean_absolute_error: sample weights of shape (4,) do not go with values of shape (2, 3)");
}

/* Without any weight there is nothing to divide by: value and gradient are 0, not NaN. */
static void test_no_weight_at_all(void **state) {
  (void)state;
  helio_loss *loss = helio_mean_squared_error(.reduction = HELIO_LOSS_WEIGHTED_MEAN);
  helio_tensor *x = FLOATS(HELIO_SHAPE(2, 1), 1, 2), *value = NULL;
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) {
    assert_ok(helio_tape_watch(tape, x));
    value = helio_compute_loss(loss, helio_fill(HELIO_SHAPE(2, 1), 0), x, helio_fill(HELIO_SHAPE(2), 0));
  }
  float slope[2];
  helio_gradients *gradients = helio_gradient(tape, value, .tensors = &x, .tensor_count = 1);
  assert_ok(helio_tensor_read(helio_gradients_at(gradients, 0), slope, sizeof slope));
  assert_true(helio_item(value) == 0 && slope[0] == 0 && slope[1] == 0);
}

static void expect_numbers(helio_tensor *tensor, int count, const float *numbers) {
  float read[8];
  assert_made(tensor);
  assert_int_equal(helio_tensor_elements(tensor), count);
  assert_ok(helio_tensor_read(tensor, read, (size_t)count * sizeof *read));
  for (int i = 0; i < count; i++) assert_true(fabsf(read[i] - numbers[i]) <= 1e-6f); /* which no NaN is */
}

static void test_class_weights(void **state) {
  (void)state;
  const double weights[] = {1, 0.5, 4};
  const float expected[] = {4, 1, 0.5f};
  uint8_t bytes[] = {2, 0, 1};
  int64_t wide[] = {2, 0, 1};
  helio_tensor *one_hot = FLOATS(HELIO_SHAPE(3, 3), 0, 0, 1, 1, 0, 0, 0, 1, 0);
  expect_numbers(helio_class_weights(INTS(HELIO_SHAPE(3), 2, 0, 1), weights, 3), 3, expected);
  expect_numbers(helio_class_weights(helio_constant(bytes, HELIO_SHAPE(3), HELIO_UINT8), weights, 3), 3, expected);
  expect_numbers(helio_class_weights(helio_constant(wide, HELIO_SHAPE(3), HELIO_INT64), weights, 3), 3, expected);
  expect_numbers(helio_class_weights(FLOATS(HELIO_SHAPE(3, 1), 2, 0, 1), weights, 3), 3, expected);
  expect_numbers(helio_class_weights(one_hot, weights, 3), 3, expected);
  expect_numbers(helio_class_weights(helio_cast(one_hot, HELIO_UINT8), weights, 3), 3, expected);
  helio_tensor *steps = helio_class_weights(INTS(HELIO_SHAPE(2, 2), 2, 0, 1, 2), weights, 3); /* of sequences */
  assert_int_equal(helio_tensor_shape(steps).rank, 2);
  assert_null(helio_class_weights(FLOATS(HELIO_SHAPE(1, 2), 0, 1), weights, 3));
  expect_error(HELIO_INVALID_ARGUMENT, "labels of shape (1, 2) are neither numbers of classes nor one-hot ones of 3");
  assert_null(helio_class_weights(one_hot, NULL, 3));
  expect_error(HELIO_INVALID_ARGUMENT, "weights is NULL");
  assert_null(helio_class_weights(one_hot, weights, 0));
  expect_error(HELIO_INVALID_ARGUMENT, "0 classes");
  assert_null(helio_class_weights(NULL, weights, 3));
  expect_error(HELIO_INVALID_ARGUMENT, "labels is NULL");
  helio_tensor *outside = helio_class_weights(INTS(HELIO_SHAPE(1), 3), weights, 3);
  if (outside) helio_item(outside);
  expect_error(HELIO_BAD_DATA, "class weights: ");
}

/* ---- labels and types ---- */

static void test_types(void **state) {
  (void)state;
  uint8_t bytes[] = {2, 0}, bits[] = {1, 0};
  int64_t wide[] = {2, 0};
  helio_loss *sparse = helio_sparse_categorical_crossentropy(), *mse = helio_mean_squared_error();
  helio_tensor *x = FLOATS(HELIO_SHAPE(2, 3), 0.2f, 0.3f, 0.5f, 0.25f, 0.5f, 0.25f);
  double right = helio_item(helio_compute_loss(sparse, INTS(HELIO_SHAPE(2), 2, 0), x));
#define LOSS_OF(labels) helio_item(helio_compute_loss(sparse, labels, x))
  assert_true(fabs(right - 1.0397) < 1e-4);
  assert_true(LOSS_OF(helio_constant(bytes, HELIO_SHAPE(2), HELIO_UINT8)) == right);
  assert_true(LOSS_OF(helio_constant(bytes, HELIO_SHAPE(2, 1), HELIO_UINT8)) == right);
  assert_true(LOSS_OF(helio_constant(wide, HELIO_SHAPE(2), HELIO_INT64)) == right);
  assert_true(LOSS_OF(FLOATS(HELIO_SHAPE(2), 2, 0)) == right);
  helio_tensor *half = helio_cast(FLOATS(HELIO_SHAPE(2, 1), 0.5f, 1), HELIO_FLOAT16);
  helio_tensor *value = helio_compute_loss(mse, helio_constant(bits, HELIO_SHAPE(2), HELIO_BOOL), half);
  assert_int_equal(helio_tensor_type(value), HELIO_FLOAT32); /* as in Keras, whatever the model computes in */
  assert_true(helio_item(value) == 0.625);
  value = helio_compute_loss(mse, INTS(HELIO_SHAPE(2), 3, 5), INTS(HELIO_SHAPE(2), 1, 2));
  assert_true(helio_item(value) == 6.5);
}

/* A softmax in half precision: its logits are what is made wide. */
static void test_half_logits(void **state) {
  (void)state;
  helio_tensor *x = helio_cast(FLOATS(HELIO_SHAPE(1, 2), 30, -30), HELIO_FLOAT16);
  helio_tensor *value =
      helio_compute_loss(helio_sparse_categorical_crossentropy(), INTS(HELIO_SHAPE(1), 1), activated(x, HELIO_SOFTMAX));
  assert_int_equal(helio_tensor_type(value), HELIO_FLOAT32);
  assert_true(fabs(helio_item(value) - 60) < 1e-4);
}

static void test_not_numbers(void **state) {
  (void)state;
  helio_tensor *labels = helio_fill(HELIO_SHAPE(1, 2), 0.5);
  for (size_t i = 0; i < COUNT_OF(losses); i++) {
    bool sparse = strstr(losses[i].name, "sparse");
    helio_loss_options o = {.size = sizeof o};
    helio_tensor *value = helio_compute_loss(losses[i].make(&o), sparse ? INTS(HELIO_SHAPE(1), 0) : labels,
                                             FLOATS(HELIO_SHAPE(1, 2), NAN, 0.5f));
    assert_made(value);
    if (!isnan(helio_item(value))) fail_msg("%s hides a NaN", losses[i].name);
  }
  helio_tensor *value = helio_compute_loss(helio_mean_squared_error(), labels, FLOATS(HELIO_SHAPE(1, 2), INFINITY, 0));
  assert_true(isinf(helio_item(value)));
}

static void test_no_samples(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(losses); i++) {
    bool sparse = strstr(losses[i].name, "sparse");
    helio_loss_options o = {.size = sizeof o};
    helio_tensor *labels = sparse ? helio_fill(HELIO_SHAPE(0), 0, HELIO_INT32) : helio_fill(HELIO_SHAPE(0, 3), 0);
    helio_tensor *value = helio_compute_loss(losses[i].make(&o), labels, helio_fill(HELIO_SHAPE(0, 3), 0));
    assert_made(value);
    assert_true(helio_item(value) == 0);
  }
}

/* A direction of what has none: no NaN, also in the gradient, and what is shorter than 1e-7 counts less. */
static void test_short_vectors(void **state) {
  (void)state;
  helio_loss *loss = helio_cosine_similarity(.reduction = HELIO_LOSS_NONE);
  helio_tensor *x = FLOATS(HELIO_SHAPE(3, 2), 0, 0, 5e-8f, 0, 2e-7f, 0), *value = NULL;
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) {
    assert_ok(helio_tape_watch(tape, x));
    value = helio_compute_loss(loss, FLOATS(HELIO_SHAPE(3, 2), 1, 0, 1, 0, 1, 0), x);
  }
  float gradient[6];
  helio_gradients *gradients = helio_gradient(tape, value, .tensors = &x, .tensor_count = 1);
  assert_ok(helio_tensor_read(helio_gradients_at(gradients, 0), gradient, sizeof gradient));
  for (int i = 0; i < 6; i++) assert_true(isfinite(gradient[i]));
  expect_numbers(value, 3, (float[]){0, -0.5f, -1});
}

/* ---- options of single losses ---- */

/* Class 0 can be named, in labels of any type and shape; a NaN that is predicted there reaches nothing. */
static void test_ignored_class(void **state) {
  (void)state;
  uint8_t bytes[] = {0, 1, 0};
  helio_loss *loss = helio_sparse_categorical_crossentropy(.from_logits = true, .ignores_class = true);
  helio_tensor *x = FLOATS(HELIO_SHAPE(3, 2), NAN, NAN, 0, 0, INFINITY, 0), *value = NULL;
  helio_tensor *labels[] = {helio_constant(bytes, HELIO_SHAPE(3), HELIO_UINT8), INTS(HELIO_SHAPE(3, 1), 0, 1, 0),
                            FLOATS(HELIO_SHAPE(3), 0, 1, 0)};
  for (size_t i = 0; i < COUNT_OF(labels); i++) {
    helio_tape *tape = helio_tape_new();
    HELIO_TAPE(tape) {
      assert_ok(helio_tape_watch(tape, x));
      value = helio_compute_loss(loss, labels[i], x);
    }
    assert_true(fabs(helio_item(value) - log(2)) < 1e-6); /* of one loss, not of three */
    helio_gradients *gradients = helio_gradient(tape, value, .tensors = &x, .tensor_count = 1);
    expect_numbers(helio_gradients_at(gradients, 0), 6, (float[]){0, 0, 0.5f, -0.5f, 0, 0});
  }
  value = helio_compute_loss(loss, labels[0], x, .sample_weights = FLOATS(HELIO_SHAPE(3, 1), 9, 3, 9));
  assert_true(fabs(helio_item(value) - 3 * log(2)) < 1e-6);
  helio_loss *mean = helio_sparse_categorical_crossentropy(.from_logits = true, .ignores_class = true,
                                                           .reduction = HELIO_LOSS_WEIGHTED_MEAN);
  value = helio_compute_loss(mean, labels[0], x, .sample_weights = FLOATS(HELIO_SHAPE(3), 9, 3, 9));
  assert_true(fabs(helio_item(value) - log(2)) < 1e-6);
  assert_true(helio_item(helio_compute_loss(loss, INTS(HELIO_SHAPE(3), 0, 0, 0), x)) == 0); /* none counts */
  helio_tensor *none = helio_fill(HELIO_SHAPE(0), 0, HELIO_INT32);
  assert_true(helio_item(helio_compute_loss(loss, none, helio_fill(HELIO_SHAPE(0, 2), 0))) == 0);
  helio_loss *void_class = helio_sparse_categorical_crossentropy(.ignores_class = true, .ignore_class = 255);
  value = helio_compute_loss(void_class, INTS(HELIO_SHAPE(2), 1, 255), helio_fill(HELIO_SHAPE(2, 2), 0.5));
  assert_true(fabs(helio_item(value) - log(2)) < 1e-6);
}

static void test_cosine_axis(void **state) {
  (void)state;
  helio_tensor *labels = FLOATS(HELIO_SHAPE(2, 2), 3, 0, 4, 1), *x = FLOATS(HELIO_SHAPE(2, 2), 3, 5, 4, 0);
  helio_loss *along_first = helio_cosine_similarity(.axis = -2, .reduction = HELIO_LOSS_NONE);
  expect_numbers(helio_compute_loss(along_first, labels, x), 2, (float[]){-1, 0});
  assert_null(helio_compute_loss(helio_cosine_similarity(.axis = 2), labels, x));
  expect_error(HELIO_INVALID_ARGUMENT, "cosine_similarity: ");
}

/* ---- the user's own ---- */

static helio_tensor *own_loss(void *user, helio_tensor *labels, helio_tensor *predictions) {
  ++*(int *)user;
  return helio_mean(helio_square(helio_sub(labels, predictions)), .axes = HELIO_AXES(-1));
}

static helio_tensor *no_loss(void *user, helio_tensor *labels, helio_tensor *predictions) {
  (void)user, (void)labels, (void)predictions;
  return NULL;
}

static void test_own(void **state) {
  (void)state;
  int calls = 0;
  helio_loss *loss = helio_loss_of(own_loss, &calls, "own");
  helio_tensor *labels = FLOATS(HELIO_SHAPE(2, 1), 1, 2), *x = FLOATS(HELIO_SHAPE(2, 1), 2, 5);
  assert_string_equal(helio_loss_name(loss), "own");
  assert_true(helio_item(helio_compute_loss(loss, labels, x)) == 5);
  assert_true(helio_item(helio_compute_loss(loss, labels, x, FLOATS(HELIO_SHAPE(2), 0, 1))) == 4.5);
  assert_int_equal(calls, 2);
  assert_null(helio_compute_loss(helio_loss_of(no_loss, NULL, "none"), labels, x));
  expect_error(HELIO_INVALID_ARGUMENT, "none: the function gave no result");
  assert_null(helio_compute_loss(loss, labels, helio_fill(HELIO_SHAPE(3, 2), 0)));
  expect_error(HELIO_INVALID_ARGUMENT, "own: ");
  assert_null(helio_loss_of(NULL, NULL, "x"));
  expect_error(HELIO_INVALID_ARGUMENT, "function is NULL");
}

/* ---- names, options, wrong use ---- */

static void test_names(void **state) {
  (void)state;
  static const char *const names[][2] = {
      {"mse", "mean_squared_error"},  {"MSE", "mean_squared_error"},
      {"mae", "mean_absolute_error"}, {"MAE", "mean_absolute_error"},
      {"huber", "huber_loss"},        {"bce", "binary_crossentropy"},
      {"BCE", "binary_crossentropy"}, {"kld", "kl_divergence"},
      {"KLD", "kl_divergence"},       {"kullback_leibler_divergence", "kl_divergence"},
  };
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    assert_string_equal(helio_loss_name(helio_loss_named(names[i][0])), names[i][1]);
  }
  for (size_t i = 0; i < COUNT_OF(losses); i++) {
    assert_string_equal(helio_loss_name(helio_loss_named(losses[i].class_name)), losses[i].name);
    assert_string_equal(helio_loss_name(helio_loss_named(losses[i].name)), losses[i].name);
  }
  assert_string_equal(helio_loss_name(helio_huber(.name = "mine")), "mine");
  assert_string_equal(helio_loss_name(NULL), "");
  assert_null(helio_loss_named("sparse_categorical_crossentopy"));
  expect_error(HELIO_INVALID_ARGUMENT, "there is no loss 'sparse_categorical_crossentopy'; did you mean "
                                       "'sparse_categorical_crossentropy'?");
  assert_null(helio_loss_named(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "NULL");
}

static void test_options(void **state) {
  (void)state;
  assert_null(helio_mean_squared_error(.delta = 2));
  expect_error(HELIO_INVALID_ARGUMENT, "mean_squared_error: the loss has no option delta");
  assert_null(helio_kl_divergence(.from_logits = true, .name = "mine"));
  expect_error(HELIO_INVALID_ARGUMENT, "mine: the loss has no option from_logits");
  assert_null(helio_sparse_categorical_crossentropy(.label_smoothing = 0.1));
  expect_error(HELIO_INVALID_ARGUMENT, "label_smoothing");
  assert_null(helio_huber(.softmax_twice = true));
  expect_error(HELIO_INVALID_ARGUMENT, "softmax_twice");
  assert_null(helio_categorical_crossentropy(.softmax_twice = true));
  expect_error(HELIO_INVALID_ARGUMENT, "from_logits");
  assert_null(helio_categorical_crossentropy(.label_smoothing = 1.5));
  expect_error(HELIO_INVALID_ARGUMENT, "label_smoothing is 1.5");
  assert_null(helio_categorical_crossentropy(.label_smoothing = NAN));
  expect_error(HELIO_INVALID_ARGUMENT, "label_smoothing");
  assert_null(helio_huber(.delta = -1));
  expect_error(HELIO_INVALID_ARGUMENT, "delta is -1");
  assert_null(helio_categorical_crossentropy(.ignores_class = true));
  expect_error(HELIO_INVALID_ARGUMENT, "categorical_crossentropy: the loss has no option ignore_class");
  assert_null(helio_sparse_categorical_crossentropy(.ignore_class = -1));
  expect_error(HELIO_INVALID_ARGUMENT, "ignore_class is -1, but ignores_class is not set");
  assert_null(helio_mean_squared_error(.axis = 1));
  expect_error(HELIO_INVALID_ARGUMENT, "mean_squared_error: the loss has no option axis");
  assert_null(helio_huber(.reduction = (helio_loss_reduction)7));
  expect_error(HELIO_INVALID_ARGUMENT, "7 is not a reduction");
}

static void test_wrong_shapes(void **state) {
  (void)state;
  helio_loss *mse = helio_mean_squared_error(), *sparse = helio_sparse_categorical_crossentropy();
  assert_null(helio_compute_loss(mse, helio_fill(HELIO_SHAPE(3, 2), 0), helio_fill(HELIO_SHAPE(4, 2), 0)));
  expect_error(HELIO_INVALID_ARGUMENT, "mean_squared_error: labels of shape (3, 2) and predictions of shape (4, 2) do "
                                       "not go together");
  assert_null(helio_compute_loss(mse, helio_fill(HELIO_SHAPE(4, 1), 0), helio_fill(HELIO_SHAPE(4, 3), 0)));
  expect_error(HELIO_INVALID_ARGUMENT, "(4, 1) and predictions of shape (4, 3)"); /* is not broadcast by accident */
  assert_null(helio_compute_loss(mse, helio_fill(HELIO_SCALAR, 0), helio_fill(HELIO_SCALAR, 0)));
  expect_error(HELIO_INVALID_ARGUMENT, "mean_squared_error: labels and predictions are scalars");
  assert_null(helio_compute_loss(sparse, INTS(HELIO_SHAPE(3), 0, 0, 0), helio_fill(HELIO_SHAPE(4, 2), 0)));
  expect_error(HELIO_INVALID_ARGUMENT, "sparse_categorical_crossentropy: labels of shape (3,)");
  assert_null(helio_compute_loss(sparse, INTS(HELIO_SCALAR, 0), helio_fill(HELIO_SCALAR, 0)));
  expect_error(HELIO_INVALID_ARGUMENT, "labels of shape ()");
  assert_null(helio_compute_loss(mse, NULL, helio_fill(HELIO_SHAPE(1), 0)));
  expect_error(HELIO_INVALID_ARGUMENT, "mean_squared_error: labels is NULL");
  assert_null(helio_compute_loss(mse, helio_fill(HELIO_SHAPE(1), 0), NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "mean_squared_error: predictions is NULL");
  assert_null(helio_compute_loss(NULL, helio_fill(HELIO_SHAPE(1), 0), NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "the loss is NULL");
}

/* Devices find it when they compute; the next read tells. */
static void test_label_out_of_range(void **state) {
  (void)state;
  helio_loss *loss = helio_sparse_categorical_crossentropy(.name = "mine");
  helio_tensor *value = helio_compute_loss(loss, INTS(HELIO_SHAPE(2), 1, 3), helio_fill(HELIO_SHAPE(2, 3), 0.3));
  if (value) assert_true(isnan(helio_item(value)));
  expect_error(HELIO_BAD_DATA, "mine: ");
}

/* ---- memory ---- */

static void step(const helio_loss *loss, helio_tensor *labels, helio_tensor *x) {
  HELIO_POOL {
    helio_tensor *value = NULL;
    helio_tape *tape = helio_tape_new();
    HELIO_TAPE(tape) {
      assert_ok(helio_tape_watch(tape, x));
      value = helio_compute_loss(loss, labels, activated(x, HELIO_SOFTMAX));
    }
    assert_made(helio_gradient(tape, value, .tensors = &x, .tensor_count = 1));
  }
}

static void test_flat_memory(void **state) {
  (void)state;
  helio_memory before, after;
  helio_loss *loss = helio_sparse_categorical_crossentropy();
  helio_tensor *labels = helio_fill(HELIO_SHAPE(32), 3, HELIO_INT32), *x = helio_fill(HELIO_SHAPE(32, 10), 1);
  for (int i = 0; i < 1000; i++) {
    step(loss, labels, x);
    if (i == 10) assert_ok(helio_memory_info(device_name(), &before));
  }
  assert_ok(helio_memory_info(device_name(), &after));
  assert_int_equal(after.in_use, before.in_use);
  assert_int_equal(after.allocations, before.allocations);
  assert_int_equal(after.reserved, before.reserved);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_warns_once),
      TEST(test_golden),
      TEST(test_differences),
      TEST(test_extreme_logits),
      TEST(test_slope_at_zero),
      TEST(test_crossed_activation),
      TEST(test_softmax_twice),
      TEST(test_weights),
      TEST(test_no_weight_at_all),
      TEST(test_class_weights),
      TEST(test_types),
      TEST(test_half_logits),
      TEST(test_not_numbers),
      TEST(test_no_samples),
      TEST(test_short_vectors),
      TEST(test_ignored_class),
      TEST(test_cosine_axis),
      TEST(test_own),
      TEST(test_names),
      TEST(test_options),
      TEST(test_wrong_shapes),
      TEST(test_label_out_of_range),
      TEST(test_flat_memory),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
