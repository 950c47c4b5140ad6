/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics: Keras' results over several updates, the choice of an accuracy, state, and wrong use. */
#include "golden.h"
#include "nn/metric.h"

#define FLOATS(shape, ...) helio_constant(((float[]){__VA_ARGS__}), shape)
#define INTS(shape, ...)   helio_constant(((int32_t[]){__VA_ARGS__}), shape, HELIO_INT32)

typedef helio_metric *constructor(const helio_metric_options *options);

static const struct {
  const char *class_name, *name;
  constructor *make;
} metrics[] = {
    {"Mean", "mean", helio_metric_mean_with},
    {"Sum", "sum", helio_metric_sum_with},
    {"Accuracy", "accuracy", helio_accuracy_with},
    {"BinaryAccuracy", "binary_accuracy", helio_binary_accuracy_with},
    {"CategoricalAccuracy", "categorical_accuracy", helio_categorical_accuracy_with},
    {"SparseCategoricalAccuracy", "sparse_categorical_accuracy", helio_sparse_categorical_accuracy_with},
    {"TopKCategoricalAccuracy", "top_k_categorical_accuracy", helio_top_k_categorical_accuracy_with},
    {"SparseTopKCategoricalAccuracy", "sparse_top_k_categorical_accuracy",
     helio_sparse_top_k_categorical_accuracy_with},
    {"MeanSquaredError", "mean_squared_error", helio_metric_mean_squared_error_with},
    {"MeanAbsoluteError", "mean_absolute_error", helio_metric_mean_absolute_error_with},
    {"Precision", "precision", helio_precision_with},
    {"Recall", "recall", helio_recall_with},
};

/* ---- Keras' numbers ---- */

static bool absent(json_t *config, const char *key) {
  json_t *value = json_object_get(config, key);
  return !value || json_is_null(value);
}

static void take_choice(json_t *config, double thresholds[8], helio_metric_options *o) {
  json_t *list = json_object_get(config, "thresholds");
  o->top_k = (int)json_integer_value(json_object_get(config, "top_k"));
  o->of_one_class = !absent(config, "class_id");
  o->class_id = (int)json_integer_value(json_object_get(config, "class_id"));
  o->threshold_count = (int)json_array_size(list);
  assert_in_range(o->threshold_count, 0, 8);
  for (int i = 0; i < o->threshold_count; i++) thresholds[i] = json_number_value(json_array_get(list, (size_t)i));
  o->thresholds = o->threshold_count ? thresholds : NULL;
}

static helio_metric *metric_of(json_t *description) {
  double thresholds[8];
  json_t *config = json_object_get(description, "config");
  const char *class_name = json_string_value(json_object_get(description, "class_name"));
  const char *name = json_string_value(json_object_get(description, "name"));
  helio_metric_options o = {.size = sizeof o, .k = (int)json_integer_value(json_object_get(config, "k"))};
  o.threshold = json_number_value(json_object_get(config, absent(config, "thresholds") ? "threshold" : "thresholds"));
  take_choice(config, thresholds, &o);
  for (size_t i = 0; i < COUNT_OF(metrics); i++) {
    if (strcmp(metrics[i].class_name, class_name) != 0) continue;
    if (strcmp(metrics[i].name, name) != 0) o.name = name; /* else it is the default */
    helio_metric *metric = metrics[i].make(&o);
    assert_made(metric);
    assert_string_equal(helio_metric_name(metric), name);
    return metric;
  }
  fail_msg("%s is not in the list", class_name);
  return NULL;
}

/* What an update is given; NULL if it has none of the role. */
static helio_tensor *part_of(const golden *file, const char *name, int update, const char *role) {
  bool has = golden_has(file, "%s/update/%d/%s", name, update, role);
  return has ? golden_tensor(file, "%s/update/%d/%s", name, update, role) : NULL;
}

static bool near(helio_tensor *result, const golden *file, const char *name, const char *role) {
  assert_made(result);
  double distance = tensor_distance(result, golden_tensor(file, "%s/%s", name, role));
  if (!(distance <= 1e-5)) print_error("%s: %s differs by %g\n", name, role, distance);
  return distance <= 1e-5;
}

/* Updates, then the same again after a reset. */
static bool agrees(const golden *file, const char *name, json_t *description) {
  bool right = true;
  helio_metric *metric = metric_of(description);
  int updates = (int)json_integer_value(json_object_get(description, "updates"));
  for (int i = 0; i < 2 * updates; i++) {
    char role[40];
    helio_tensor *values = part_of(file, name, i % updates, "values");
    assert_ok(helio_metric_update(metric, values ? values : part_of(file, name, i % updates, "y_true"),
                                  part_of(file, name, i % updates, "y_pred"),
                                  .sample_weights = part_of(file, name, i % updates, "sample_weight")));
    snprintf(role, sizeof role, "result/%d", i % updates);
    right = near(helio_metric_result(metric), file, name, role) && right;
    if (i % updates < updates - 1) continue;
    assert_ok(helio_metric_reset(metric));
    right = near(helio_metric_result(metric), file, name, "result_after_reset") && right;
  }
  return right;
}

static helio_shape shape_of(json_t *extents) {
  helio_shape shape = {.rank = (int)json_array_size(extents)};
  for (int i = 0; i < shape.rank; i++) shape.extent[i] = json_integer_value(json_array_get(extents, (size_t)i));
  return shape;
}

static bool chooses(const char *name, json_t *description) {
  const char *chosen = json_string_value(json_object_get(description, "chosen"));
  const char *given = json_string_value(json_object_get(description, "name"));
  helio_loss *loss = helio_loss_named(json_string_value(json_object_get(description, "loss")));
  helio_metric *metric = helio_metric_named(given, loss);
  assert_made(metric);
  assert_string_equal(helio_metric_name(metric), given);
  assert_ok(helio_metric_update(metric, helio_fill(shape_of(json_object_get(description, "y_true_shape")), 0),
                                helio_fill(shape_of(json_object_get(description, "y_pred_shape")), 0.5)));
  bool right = !strcmp(metric->kind->names.class_name, chosen);
  if (!right) print_error("%s: %s was chosen, not %s\n", name, metric->kind->names.class_name, chosen);
  return right;
}

static void test_golden(void **state) {
  (void)state;
  int wrong = 0;
  golden *file = golden_open("metrics");
  json_t *order = golden_json(file, "order");
  size_t count = json_array_size(order);
  for (size_t i = 0; i < count; i++) {
    const char *name = json_string_value(json_array_get(order, i));
    json_t *description = golden_json(file, name);
    bool choice = !strcmp(json_string_value(json_object_get(description, "kind")), "accuracy_choice");
    HELIO_POOL wrong += !(choice ? chooses(name, description) : agrees(file, name, description));
    json_decref(description);
  }
  json_decref(order);
  golden_close(file);
  print_message("%zu cases compared, none left out\n", count);
  assert_int_equal(wrong, 0);
  assert_true(count >= 100);
}

/* ---- the choice of an accuracy ---- */

static void test_choice(void **state) {
  (void)state;
  static const char *const names[] = {"accuracy", "acc", "Accuracy", "ACC"}; /* Keras does not look at the case */
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    helio_metric *metric = helio_metric_named(names[i], NULL);
    assert_string_equal(helio_metric_name(metric), names[i]);
    assert_true(helio_item(helio_metric_result(metric)) == 0); /* before it is chosen */
    assert_int_equal(helio_metric_variables(metric)->count, 2);
    assert_ok(helio_metric_update(metric, INTS(HELIO_SHAPE(2), 1, 0), FLOATS(HELIO_SHAPE(2, 2), 0, 1, 0, 1)));
    assert_true(helio_item(helio_metric_result(metric)) == 0.5);
    assert_ok(helio_metric_reset(metric)); /* the choice stays */
    assert_ptr_equal(metric->kind, &hi_metric_kinds[HI_SPARSE_CATEGORICAL_ACCURACY]);
  }
  helio_metric *metric = helio_metric_named("accuracy", NULL);
  assert_int_equal(helio_metric_update(metric, helio_fill(HELIO_SCALAR, 0), helio_fill(HELIO_SHAPE(1), 0)),
                   HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "accuracy: labels or predictions are a scalar");
}

/* ---- state ---- */

static void test_state(void **state) {
  (void)state;
  helio_metric *metric = helio_metric_mean(.name = "test_loss"), *precision = helio_precision();
  assert_true(helio_item(helio_metric_result(metric)) == 0);
  assert_ok(helio_metric_reset(metric));
  const helio_variables *variables = helio_metric_variables(metric);
  assert_int_equal(variables->count, 2);
  assert_string_equal(helio_variable_name(variables->at[0]), "total");
  assert_string_equal(helio_variable_name(variables->at[1]), "count");
  assert_false(helio_variable_trainable(variables->at[0]));
  assert_int_equal(helio_variable_type(variables->at[0]), HELIO_FLOAT32);
  assert_ok(helio_metric_update(metric, FLOATS(HELIO_SHAPE(2), 3, 5)));
  assert_ok(helio_metric_update(metric, INTS(HELIO_SCALAR, 10))); /* a number is one sample */
  assert_true(helio_item(helio_value(variables->at[0])) == 18);
  assert_true(helio_item(helio_value(variables->at[1])) == 3);
  helio_tensor *result = helio_metric_result(metric);
  assert_ok(helio_metric_reset(metric));
  assert_true(helio_item(result) == 6); /* is not changed by what comes later */
  assert_int_equal(helio_tensor_shape(result).rank, 0);
  assert_true(helio_item(helio_metric_result(metric)) == 0);
  variables = helio_metric_variables(precision);
  assert_string_equal(helio_variable_name(variables->at[0]), "true_positives");
  assert_string_equal(helio_variable_name(variables->at[1]), "false_positives");
  assert_string_equal(helio_variable_name(helio_metric_variables(helio_recall())->at[1]), "false_negatives");
  helio_metric *sum = helio_metric_sum();
  assert_int_equal(helio_metric_variables(sum)->count, 1);
  assert_ok(helio_metric_update(sum, FLOATS(HELIO_SHAPE(1), 1)));
  result = helio_metric_result(sum);
  assert_ok(helio_metric_update(sum, FLOATS(HELIO_SHAPE(1), 1)));
  assert_true(helio_item(result) == 1);
}

/* Replicas: what two metrics have counted is what one would have. */
static void test_state_adds_up(void **state) {
  (void)state;
  helio_metric *one = helio_recall(), *two = helio_recall(), *all = helio_recall();
  helio_tensor *labels[] = {FLOATS(HELIO_SHAPE(3), 1, 1, 0), FLOATS(HELIO_SHAPE(3), 1, 1, 1)};
  helio_tensor *found[] = {FLOATS(HELIO_SHAPE(3), 0.9f, 0.1f, 0.9f), FLOATS(HELIO_SHAPE(3), 0.9f, 0.9f, 0.1f)};
  assert_ok(helio_metric_update(one, labels[0], found[0]));
  assert_ok(helio_metric_update(two, labels[1], found[1]));
  for (int i = 0; i < 2; i++) assert_ok(helio_metric_update(all, labels[i], found[i]));
  for (int i = 0; i < 2; i++) {
    assert_ok(helio_assign_add(helio_metric_variables(one)->at[i], helio_value(helio_metric_variables(two)->at[i])));
  }
  assert_true(helio_item(helio_metric_result(one)) == helio_item(helio_metric_result(all)));
  assert_float_equal(helio_item(helio_metric_result(all)), 0.6, 1e-6);
}

/* Weights that are not as many as the values: each counts as Keras counts it. */
static void test_weights(void **state) {
  (void)state;
  helio_metric *metric = helio_metric_mean();
  const helio_variables *variables = helio_metric_variables(metric);
  assert_ok(helio_metric_update(metric, FLOATS(HELIO_SHAPE(2), 1, 3), .sample_weights = FLOATS(HELIO_SCALAR, 4)));
  assert_true(helio_item(helio_value(variables->at[0])) == 8); /* one for all makes one of them */
  assert_true(helio_item(helio_value(variables->at[1])) == 4);
  assert_ok(helio_metric_reset(metric));
  helio_tensor *columns = FLOATS(HELIO_SHAPE(1, 2), 1, 3);
  assert_ok(helio_metric_update(metric, FLOATS(HELIO_SHAPE(2, 2), 1, 2, 3, 4), .sample_weights = columns));
  assert_true(helio_item(helio_value(variables->at[0])) == 11);
  assert_true(helio_item(helio_value(variables->at[1])) == 4); /* the mean of 1 and 3, twice */
}

/* A tape that is recording sees nothing of it, and keeps nothing for it. */
static void test_not_on_tape(void **state) {
  (void)state;
  helio_memory before, after;
  helio_variable *v = helio_variable(FLOATS(HELIO_SHAPE(2), 1, 3));
  helio_metric *metric = helio_metric_mean(), *squares = helio_metric_mean_squared_error();
  helio_tensor *y = NULL, *result = NULL;
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) {
    y = helio_square(helio_value(v));
    assert_ok(helio_metric_update(metric, y));
    assert_ok(helio_metric_update(squares, y, y));
    assert_ok(helio_memory_info(device_name(), &before));
    assert_ok(helio_metric_update(squares, y, y));
    assert_ok(helio_memory_info(device_name(), &after));
    assert_int_equal(after.allocations, before.allocations);
    result = helio_metric_result(metric);
  }
  assert_true(helio_item(result) == 5);
  helio_gradients *gradients = helio_gradient(tape, result, HELIO_VARIABLES(v));
  assert_made(gradients);
  assert_false(helio_gradients_has(gradients, 0));
}

/* Without any pool of the program's own. */
static void test_flat_memory(void **state) {
  (void)state;
  helio_memory before, after;
  helio_metric *list[] = {helio_metric_named("accuracy", NULL), helio_precision(), helio_metric_named("mse", NULL)};
  helio_tensor *labels = helio_fill(HELIO_SHAPE(32, 1), 1), *x = helio_fill(HELIO_SHAPE(32, 1), 0.75);
  helio_tensor *weights = helio_fill(HELIO_SHAPE(32), 2);
  for (int i = 0; i < 1000; i++) {
    for (size_t m = 0; m < COUNT_OF(list); m++) {
      assert_ok(helio_metric_update(list[m], labels, x, weights));
      HELIO_POOL helio_metric_result(list[m]);
    }
    if (i % 100 == 99) assert_ok(helio_metric_reset(list[1]));
    if (i == 10) assert_ok(helio_memory_info(device_name(), &before));
  }
  assert_ok(helio_memory_info(device_name(), &after));
  assert_int_equal(after.in_use, before.in_use);
  assert_int_equal(after.allocations, before.allocations);
  assert_int_equal(after.reserved, before.reserved);
  assert_true(helio_item(helio_metric_result(list[0])) == 1);
  assert_float_equal(helio_item(helio_metric_result(list[2])), 0.0625, 1e-6);
}

/* A training step updates metrics each time: they must not cost more than a few kernels. */
static void test_few_operations(void **state) {
  (void)state;
  helio_metric *accuracy = helio_sparse_categorical_accuracy(), *mean = helio_metric_mean();
  helio_tensor *labels = helio_fill(HELIO_SHAPE(8), 1, HELIO_INT64), *x = helio_fill(HELIO_SHAPE(8, 3), 0.5);
  helio_tensor *value = helio_fill(HELIO_SCALAR, 1);
  assert_ok(helio_metric_update(accuracy, labels, x));
  assert_ok(helio_metric_update(mean, value));
  assert_ok(helio_set_log_placement(true));
  assert_ok(helio_set_log_level(HELIO_LOG_INFO));
  capture_log();
  assert_ok(helio_metric_update(accuracy, labels, x));
  int of_accuracy = lines_with("Executing op", "");
  capture_log();
  assert_ok(helio_metric_update(mean, value));
  int of_mean = lines_with("Executing op", "");
  print_message("%d operations for an accuracy, %d for a mean\n", of_accuracy, of_mean);
  assert_in_range(of_accuracy, 1, 8);
  assert_in_range(of_mean, 1, 5);
  assert_ok(helio_set_log_placement(false));
}

/* What fails changes nothing. */
static void test_failed_update(void **state) {
  (void)state;
  helio_metric *metric = helio_metric_mean();
  assert_ok(helio_metric_update(metric, FLOATS(HELIO_SHAPE(2), 1, 3)));
  assert_int_equal(
      helio_metric_update(metric, FLOATS(HELIO_SHAPE(2), 5, 5), .sample_weights = helio_fill(HELIO_SHAPE(3), 1)),
      HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "mean: sample weights of shape (3,) do not go with values of shape (2,)");
  assert_true(helio_item(helio_metric_result(metric)) == 2);
}

static void test_after_shutdown(void **state) {
  (void)state;
  helio_metric *metric = helio_keep(helio_metric_mean());
  assert_ok(helio_metric_update(metric, FLOATS(HELIO_SHAPE(2), 1, 3)));
  leaks_are_meant = true;
  assert_ok(helio_shutdown());
  assert_int_equal(helio_metric_update(metric, FLOATS(HELIO_SHAPE(2), 1, 3)), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, "mean: total was made before helio_shutdown()");
  assert_null(helio_metric_result(metric));
  expect_error(HELIO_WRONG_STATE, "helio_shutdown");
  helio_release(metric);
}

/* ---- values ---- */

static void test_values(void **state) {
  (void)state;
  helio_metric *metric = helio_binary_accuracy(.threshold = HELIO_ZERO); /* of logits */
  assert_ok(helio_metric_update(metric, INTS(HELIO_SHAPE(3), 0, 1, 1), FLOATS(HELIO_SHAPE(3, 1), -1, 0.1f, 3)));
  assert_true(helio_item(helio_metric_result(metric)) == 1);
  uint8_t bytes[] = {2, 200};
  metric = helio_sparse_categorical_accuracy();
  helio_tensor *x = helio_one_hot(INTS(HELIO_SHAPE(2), 2, 200), 300, HELIO_FLOAT32);
  assert_ok(helio_metric_update(metric, helio_constant(bytes, HELIO_SHAPE(2), HELIO_UINT8), x));
  assert_ok(helio_metric_update(metric, FLOATS(HELIO_SHAPE(2, 1), 2, 0), x));
  assert_true(helio_item(helio_metric_result(metric)) == 0.75);
  metric = helio_categorical_accuracy();
  assert_ok(helio_metric_update(metric, helio_cast(FLOATS(HELIO_SHAPE(1, 2), 0, 1), HELIO_UINT8),
                                FLOATS(HELIO_SHAPE(1, 2), 0, 1)));
  assert_true(helio_item(helio_metric_result(metric)) == 1);
  metric = helio_metric_mean();
  assert_ok(helio_metric_update(metric, helio_fill(HELIO_SHAPE(0), 1)));
  assert_true(helio_item(helio_metric_result(metric)) == 0);
  assert_ok(helio_metric_update(metric, FLOATS(HELIO_SHAPE(2), NAN, 1)));
  assert_true(isnan(helio_item(helio_metric_result(metric))));
  metric = helio_metric_named("binary_crossentropy", NULL);
  assert_ok(helio_metric_update(metric, FLOATS(HELIO_SHAPE(1, 2), 1, 0), FLOATS(HELIO_SHAPE(1, 2), 0.5f, 0.5f)));
  assert_float_equal(helio_item(helio_metric_result(metric)), 0.6931472, 1e-6);
}

static void expect_parts(helio_metric *metric, int count, const float *expected) {
  float read[4];
  assert_made(metric);
  helio_tensor *result = helio_metric_result(metric);
  assert_made(result);
  assert_int_equal(helio_tensor_elements(result), count);
  assert_int_equal(helio_tensor_shape(result).rank, count > 1);
  assert_ok(helio_tensor_read(result, read, (size_t)count * sizeof *read));
  for (int i = 0; i < count; i++) assert_true(fabsf(read[i] - expected[i]) <= 1e-6f);
}

/* Thresholds, the largest of a row, and one class, together and with weights. */
static void test_choices(void **state) {
  (void)state;
  double thresholds[] = {0, 0.5, 1};
  helio_tensor *labels = FLOATS(HELIO_SHAPE(2, 3), 1, 0, 0, 1, 1, 0);
  helio_tensor *x = FLOATS(HELIO_SHAPE(2, 3), 0.9f, 0.8f, 0.1f, 0.3f, 0.2f, 0.7f);
  helio_metric *several = helio_recall(.thresholds = thresholds, .threshold_count = 3);
  thresholds[0] = 7; /* it has a copy */
  expect_parts(several, 3, (float[]){0, 0, 0});
  assert_ok(helio_metric_update(several, labels, x));
  expect_parts(several, 3, (float[]){1, 1 / 3.0f, 0});
  assert_ok(helio_metric_update(several, labels, x, FLOATS(HELIO_SHAPE(2), 3, 0)));
  expect_parts(several, 3, (float[]){1, 4 / 6.0f, 0});
  assert_int_equal(helio_variable_shape(helio_metric_variables(several)->at[0]).extent[0], 3);
  assert_ok(helio_metric_reset(several));
  expect_parts(several, 3, (float[]){0, 0, 0});
  helio_metric *one = helio_precision(.thresholds = (double[]){0.75}, .threshold_count = 1); /* a scalar, as in Keras */
  assert_ok(helio_metric_update(one, labels, x));
  expect_parts(one, 1, (float[]){0.5f});
  helio_metric *first = helio_recall(.of_one_class = true), *top = helio_precision(.top_k = 2);
  assert_ok(helio_metric_update(first, labels, x, FLOATS(HELIO_SHAPE(2), 1, 3)));
  expect_parts(first, 1, (float[]){0.25f});
  assert_ok(helio_metric_update(top, labels, x)); /* whatever they are: 0.3 is among them */
  expect_parts(top, 1, (float[]){0.5f});
  helio_metric *above = helio_precision(.top_k = 2, .threshold = 0.5, .of_one_class = true);
  assert_ok(helio_metric_update(above, labels, x));
  expect_parts(above, 1, (float[]){1});
  helio_metric *row = helio_recall(.top_k = 1);
  assert_ok(helio_metric_update(row, FLOATS(HELIO_SHAPE(3), 1, 0, 1), FLOATS(HELIO_SHAPE(3), -3, -2, -1)));
  expect_parts(row, 1, (float[]){0.5f});
}

static void test_wrong_choices(void **state) {
  (void)state;
  helio_tensor *row = helio_fill(HELIO_SHAPE(3), 0), *rows = helio_fill(HELIO_SHAPE(2, 3), 0);
  assert_null(helio_binary_accuracy(.top_k = 2));
  expect_error(HELIO_INVALID_ARGUMENT, "binary_accuracy: the metric has no option top_k");
  assert_null(helio_metric_mean(.of_one_class = true));
  expect_error(HELIO_INVALID_ARGUMENT, "mean: the metric has no option class_id");
  assert_null(helio_binary_accuracy(.thresholds = (double[]){0.5}, .threshold_count = 1));
  expect_error(HELIO_INVALID_ARGUMENT, "the metric has no option thresholds");
  assert_null(helio_precision(.thresholds = (double[]){0.5, 1.5}, .threshold_count = 2));
  expect_error(HELIO_INVALID_ARGUMENT, "precision: threshold 1 is 1.5, not in 0 … 1");
  assert_null(helio_precision(.threshold = 0.5, .thresholds = (double[]){0.5}, .threshold_count = 1));
  expect_error(HELIO_INVALID_ARGUMENT, "one threshold and several");
  assert_null(helio_precision(.threshold_count = 2));
  expect_error(HELIO_INVALID_ARGUMENT, "2 thresholds are given, which are NULL");
  assert_null(helio_precision(.thresholds = (double[]){0.5}));
  expect_error(HELIO_INVALID_ARGUMENT, "0 thresholds are given");
  assert_null(helio_recall(.top_k = -1));
  expect_error(HELIO_INVALID_ARGUMENT, "top_k is -1");
  assert_null(helio_recall(.class_id = 2));
  expect_error(HELIO_INVALID_ARGUMENT, "class_id is 2, but of_one_class is not set");
  assert_null(helio_recall(.of_one_class = true, .class_id = -2));
  expect_error(HELIO_INVALID_ARGUMENT, "class_id is -2");
  assert_int_not_equal(helio_metric_update(helio_recall(.of_one_class = true), row, row), HELIO_OK);
  expect_error(HELIO_INVALID_ARGUMENT, "recall: there are no classes in shape (3,)");
  assert_int_not_equal(helio_metric_update(helio_recall(.of_one_class = true, .class_id = 3), rows, rows), HELIO_OK);
  expect_error(HELIO_INVALID_ARGUMENT, "recall: ");
  assert_int_not_equal(helio_metric_update(helio_recall(.top_k = 4), rows, rows), HELIO_OK);
  expect_error(HELIO_INVALID_ARGUMENT, "recall: ");
}

static helio_tensor *own_metric(void *user, helio_tensor *labels, helio_tensor *predictions) {
  ++*(int *)user;
  return helio_equal(labels, predictions);
}

static helio_tensor *no_metric(void *user, helio_tensor *labels, helio_tensor *predictions) {
  (void)user, (void)labels, (void)predictions;
  return NULL;
}

static void test_own(void **state) {
  (void)state;
  int calls = 0;
  helio_metric *metric = helio_metric_of(own_metric, &calls, "own"), *none = helio_metric_of(no_metric, NULL, "none");
  helio_tensor *labels = INTS(HELIO_SHAPE(4), 1, 2, 3, 4), *x = INTS(HELIO_SHAPE(4), 1, 0, 3, 0);
  assert_string_equal(helio_metric_name(metric), "own");
  assert_ok(helio_metric_update(metric, labels, x));
  assert_ok(helio_metric_update(metric, labels, x, FLOATS(HELIO_SHAPE(4), 4, 0, 0, 0)));
  assert_true(helio_item(helio_metric_result(metric)) == 0.75);
  assert_int_equal(calls, 2);
  assert_int_equal(helio_metric_update(none, labels, x), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "none: the function gave no result");
  assert_null(helio_metric_of(NULL, NULL, "x"));
  expect_error(HELIO_INVALID_ARGUMENT, "function is NULL");
}

/* ---- names, options, wrong use ---- */

static void test_names(void **state) {
  (void)state;
  static const char *const others[] = {"mse",
                                       "MSE",
                                       "mae",
                                       "MAE",
                                       "bce",
                                       "BCE",
                                       "KLDivergence",
                                       "kl_divergence",
                                       "CategoricalCrossentropy",
                                       "sparse_categorical_crossentropy"};
  for (size_t i = 0; i < COUNT_OF(metrics); i++) {
    helio_metric_options o = {.size = sizeof o};
    assert_string_equal(helio_metric_name(metrics[i].make(&o)), metrics[i].name);
    o.name = "mine";
    assert_string_equal(helio_metric_name(metrics[i].make(&o)), "mine");
    assert_string_equal(helio_metric_name(helio_metric_named(metrics[i].name, NULL)), metrics[i].name);
    assert_made(helio_metric_named(metrics[i].class_name, NULL));
  }
  for (size_t i = 0; i < COUNT_OF(others); i++) { /* the name that was given is what progress prints */
    assert_string_equal(helio_metric_name(helio_metric_named(others[i], NULL)), others[i]);
  }
  assert_string_equal(helio_metric_name(NULL), "");
  assert_null(helio_metric_named("sparse_categorical_acuracy", NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "there is no metric 'sparse_categorical_acuracy'; did you mean "
                                       "'sparse_categorical_accuracy'?");
  assert_null(helio_metric_named(NULL, NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "NULL");
}

static void test_wrong_use(void **state) {
  (void)state;
  helio_tensor *three = helio_fill(HELIO_SHAPE(3, 2), 0), *four = helio_fill(HELIO_SHAPE(4, 2), 0);
  assert_null(helio_metric_mean(.k = 3));
  expect_error(HELIO_INVALID_ARGUMENT, "mean: the metric has no option k");
  assert_null(helio_categorical_accuracy(.threshold = 0.3));
  expect_error(HELIO_INVALID_ARGUMENT, "categorical_accuracy: the metric has no option threshold");
  assert_null(helio_top_k_categorical_accuracy(.k = -1));
  expect_error(HELIO_INVALID_ARGUMENT, "k is -1");
  assert_null(helio_precision(.threshold = 1.5));
  expect_error(HELIO_INVALID_ARGUMENT, "precision: the threshold is 1.5, not in 0 … 1");
  assert_null(helio_binary_accuracy(.threshold = NAN));
  expect_error(HELIO_INVALID_ARGUMENT, "threshold");
  assert_made(helio_binary_accuracy(.threshold = -2));
  for (size_t i = 2; i < COUNT_OF(metrics); i++) {
    helio_metric_options o = {.size = sizeof o};
    helio_metric *metric = metrics[i].make(&o);
    helio_metric_update(metric, three, four);
    expect_error(HELIO_INVALID_ARGUMENT, metrics[i].name);
    helio_metric_update(metric, three, four);
    expect_error(HELIO_INVALID_ARGUMENT, "labels of shape (3, 2) and predictions of shape (4, 2) do not go together");
    helio_metric_update(metric, NULL, four);
    expect_error(HELIO_INVALID_ARGUMENT, "labels is NULL");
    helio_metric_update(metric, three);
    expect_error(HELIO_INVALID_ARGUMENT, "predictions is NULL");
  }
  helio_metric_update(helio_metric_sum(), three, three);
  expect_error(HELIO_INVALID_ARGUMENT, "sum: it takes values, not labels and predictions");
  helio_metric_update(helio_metric_mean(), NULL);
  expect_error(HELIO_INVALID_ARGUMENT, "mean: values is NULL");
  helio_metric_update(NULL, three);
  expect_error(HELIO_INVALID_ARGUMENT, "the metric is NULL");
  assert_null(helio_metric_result(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "the metric is NULL");
  assert_null(helio_metric_variables(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "the metric is NULL");
  assert_int_equal(helio_metric_reset(NULL), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "the metric is NULL");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_golden),        TEST(test_choice),
      TEST(test_state),         TEST(test_state_adds_up),
      TEST(test_weights),       TEST(test_not_on_tape),
      TEST(test_flat_memory),   TEST(test_few_operations),
      TEST(test_failed_update), TEST(test_after_shutdown),
      TEST(test_values),        TEST(test_choices),
      TEST(test_wrong_choices), TEST(test_own),
      TEST(test_names),         TEST(test_wrong_use),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
