/* SPDX-License-Identifier: Apache-2.0 */
/* Models as a whole: against ten training steps of Keras, built in all ways, saved and loaded, and used wrongly. */
#include <math.h>

#include "golden.h"
#include "support.h"

/* ---- the models of make_training.py ---- */

static helio_model *linear(void) {
  helio_node *x = helio_input(HELIO_SHAPE(1));
  return helio_model(x, helio_apply(helio_dense(1), x));
}

static helio_model *mnist(void) {
  return helio_sequential({helio_conv2d(4, 3, .activation = HELIO_RELU), helio_max_pool2d(),
                           helio_conv2d(8, 3, .activation = HELIO_RELU), helio_max_pool2d(), helio_flatten(),
                           helio_dense(10, .activation = HELIO_SOFTMAX)},
                          .input_shape = HELIO_SHAPE(12, 12, 1));
}

static helio_model *reuters(void) {
  return helio_sequential({helio_embedding(50, 7, .input_shape = HELIO_SHAPE(40)),
                           helio_conv1d(8, 5, .activation_name = "relu"), helio_max_pool1d(2),
                           helio_conv1d(6, 3, .activation_name = "relu"), helio_max_pool1d(2), helio_flatten(),
                           helio_dense(5, .activation_name = "softmax")});
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
  return helio_sequential({helio_dense(8, .no_bias = true, .kernel_regularizer = {.l2 = 0.01}),
                           helio_batch_normalization(.momentum = 0.9), helio_activation_layer(HELIO_RELU),
                           helio_dense(5, .kernel_regularizer = {0.002, 0.01}, .bias_regularizer = {.l2 = 0.1}),
                           helio_layer_normalization(), helio_dense(3, .activation = HELIO_SOFTMAX)},
                          .input_shape = HELIO_SHAPE(6));
}

static helio_model *weighted(void) {
  return helio_sequential({helio_dense(5, .activation = HELIO_TANH), helio_dense(1)}, .input_shape = HELIO_SHAPE(4));
}

/* ---- ten steps ---- */

typedef struct lesson {
  const char *name;
  helio_model *(*build)(void);
  helio_optimizer *optimizer;
  helio_loss *losses[2];
} lesson;

static void set_start(helio_model *model, golden *file, const char *name) {
  const helio_variables *weights = helio_weights(model);
  assert_made(weights);
  for (int i = 0; i < weights->count; i++) {
    helio_tensor *value = golden_tensor(file, "%s/start/%s", name, helio_variable_name(weights->at[i]));
    assert_ok(helio_assign(weights->at[i], value));
  }
}

/* The loss of a step, recorded; `outputs` receives what the model gave. */
static helio_tensor *forward(const lesson *t, helio_model *model, golden *file, int batch, helio_tensor **outputs) {
  helio_tensor *inputs[2] = {NULL}, *loss = helio_regularization_loss(model);
  int count = 0;
  for (; count < 2 && golden_has(file, "%s/batch/%d/input/%d", t->name, batch, count); count++) {
    inputs[count] = golden_tensor(file, "%s/batch/%d/input/%d", t->name, batch, count);
  }
  helio_tensor *weights = golden_has(file, "%s/batch/%d/sample_weight", t->name, batch)
                              ? golden_tensor(file, "%s/batch/%d/sample_weight", t->name, batch)
                              : NULL;
  assert_made(helio_call(model, .inputs = inputs, .input_count = count, .training = true, .outputs = outputs));
  for (int i = 0; i < 2 && t->losses[i]; i++) {
    helio_tensor *labels = golden_tensor(file, "%s/batch/%d/y_true/%d", t->name, batch, i);
    helio_tensor *part = helio_compute_loss(t->losses[i], labels, outputs[i], .sample_weights = weights);
    loss = helio_add(loss, part);
  }
  assert_made(loss);
  return loss;
}

static void check_first(const lesson *t, golden *file, const helio_gradients *gradients,
                        const helio_variables *variables, helio_tensor *const *outputs) {
  for (int i = 0; i < 2 && t->losses[i]; i++) {
    assert_near(outputs[i], golden_tensor(file, "%s/first_output/%d", t->name, i), 1e-5);
  }
  for (int i = 0; i < variables->count; i++) {
    const char *name = helio_variable_name(variables->at[i]);
    assert_near(helio_gradients_at(gradients, i), golden_tensor(file, "%s/gradient/%s", t->name, name), 1e-5);
  }
}

static void train(const lesson *t, helio_model *model, golden *file) {
  float losses[10];
  const helio_variables *variables = helio_trainable_variables(model);
  assert_made(variables);
  for (int step = 0; step < 10; step++) {
    HELIO_POOL {
      helio_tape *tape = helio_tape_new();
      helio_tensor *loss = NULL, *outputs[2] = {NULL};
      HELIO_TAPE(tape) loss = forward(t, model, file, step % 2, outputs);
      helio_gradients *gradients = helio_gradient(tape, loss, variables);
      assert_made(gradients);
      if (step == 0) check_first(t, file, gradients, variables, outputs);
      assert_ok(helio_apply_gradients(t->optimizer, gradients, variables));
      losses[step] = (float)helio_item(loss);
    }
  }
  /* where rows of an embedding come twice, Keras squares each by itself */
  const char *raw = golden_has(file, "%s/raw_loss", t->name) ? "raw_" : "";
  assert_near(helio_constant(losses, HELIO_SHAPE(10)), golden_tensor(file, "%s/%sloss", t->name, raw), 1e-4);
  const helio_variables *weights = helio_weights(model);
  for (int i = 0; i < weights->count; i++) {
    const char *name = helio_variable_name(weights->at[i]);
    assert_near(helio_value(weights->at[i]), golden_tensor(file, "%s/%send/%s", t->name, raw, name), 1e-4);
  }
}

static void test_training(void **state) {
  (void)state;
  helio_loss *mse = helio_mean_squared_error(), *sparse = helio_sparse_categorical_crossentropy();
  const lesson all[] = {
      {"linear", linear, helio_sgd(0.2), {mse}},
      {"mnist", mnist, helio_adam(), {sparse}},
      {"reuters", reuters, helio_nadam(), {sparse}},
      {"shared", shared, helio_adam(0.01), {mse, helio_binary_crossentropy()}},
      {"normalized", normalized, helio_rmsprop(0.01), {helio_categorical_crossentropy()}},
      {"weighted", weighted, helio_sgd(0.05, .momentum = 0.9), {mse}},
  };
  golden *file = golden_open("training");
  for (size_t i = 0; i < COUNT_OF(all); i++) {
    helio_model *model = all[i].build();
    assert_made(model);
    set_start(model, file, all[i].name);
    train(&all[i], model, file);
    helio_release(model);
  }
  golden_close(file);
}

/* ---- the same model in three ways ---- */

typedef struct net {
  helio_model *model;
  helio_layer *layers[6];
} net;

static helio_tensor *net_call(void *self, helio_tensor *const *inputs, int count, bool training) {
  net *n = self;
  helio_tensor *x = inputs[0];
  assert_int_equal(count, 1);
  for (int i = 0; i < 6 && x; i++) x = helio_call(n->layers[i], x, .training = training);
  return x;
}

static void make_net(net *n) {
  n->model = helio_model_of(net_call, n);
  helio_layer *layers[] = {helio_conv2d(4, 3, .activation = HELIO_RELU),
                           helio_max_pool2d(),
                           helio_conv2d(8, 3, .activation = HELIO_RELU),
                           helio_max_pool2d(),
                           helio_flatten(),
                           helio_dense(10, .activation = HELIO_SOFTMAX)};
  for (int i = 0; i < 6; i++) n->layers[i] = helio_track(n->model, layers[i]);
}

static helio_model *functional_mnist(void) {
  helio_node *inputs = helio_input(HELIO_SHAPE(12, 12, 1));
  helio_node *x = helio_apply(helio_conv2d(4, 3, .activation = HELIO_RELU), inputs);
  x = helio_apply(helio_max_pool2d(), x);
  x = helio_apply(helio_conv2d(8, 3, .activation = HELIO_RELU), x);
  x = helio_apply(helio_max_pool2d(), x);
  x = helio_apply(helio_flatten(), x);
  return helio_model(inputs, helio_apply(helio_dense(10, .activation = HELIO_SOFTMAX), x));
}

static helio_tensor *image(int batch) {
  return helio_random_uniform(HELIO_SHAPE(batch, 12, 12, 1), .key = 3);
}

/* The same names and the same seed, so the same starting values, so the same result to the bit; a second model starts
 * its names anew, but not its starting values. */
static void test_three_ways(void **state) {
  (void)state;
  static const char *const names[] = {"conv2d/kernel", "conv2d/bias",  "conv2d_1/kernel",
                                      "conv2d_1/bias", "dense/kernel", "dense/bias"};
  float results[4][30];
  net n;
  helio_model *models[4];
  for (int i = 0; i < 4; i++) {
    if (i < 3) assert_ok(helio_set_seed(7));
    if (i == 2) make_net(&n);
    models[i] = i == 1 ? functional_mnist() : i == 2 ? n.model : mnist();
    helio_tensor *y = helio_call(models[i], image(3));
    assert_made(y);
    assert_ok(helio_tensor_read(y, results[i], sizeof results[i]));
    bool same = memcmp(results[i], results[0], sizeof results[0]) == 0;
    assert_int_equal(same, i < 3);
    const helio_variables *weights = helio_weights(models[i]);
    assert_int_equal(weights->count, 6);
    for (int j = 0; j < 6; j++) assert_string_equal(helio_variable_name(weights->at[j]), names[j]);
    assert_int_equal(helio_count_params(models[i]), 4 * 10 + 8 * (9 * 4 + 1) + 10 * (8 + 1));
  }
  for (int i = 0; i < 4; i++) helio_release(models[i]);
}

/* ---- variables made at the first call ---- */

static void test_first_call(void **state) {
  (void)state;
  net n;
  make_net(&n);
  helio_model *models[] = {n.model, helio_sequential({helio_dense(3), helio_dense(2)})};
  for (int i = 0; i < 2; i++) {
    assert_null(helio_weights(models[i]));
    expect_error(HELIO_WRONG_STATE, "first call");
    assert_null(helio_model_summary_text(models[i], 0));
    expect_error(HELIO_WRONG_STATE, "first call");
    assert_int_equal(helio_count_params(models[i]), -1);
    expect_error(HELIO_WRONG_STATE, "first call");
    helio_tape *tape = helio_tape_new();
    helio_tensor *y = NULL;
    HELIO_TAPE(tape) y = helio_call(models[i], i ? helio_fill(HELIO_SHAPE(2, 4), 1) : image(2));
    assert_made(y);
    helio_gradients *gradients = helio_gradient(tape, y, helio_trainable_variables(models[i]));
    assert_made(gradients);
    for (int j = 0; j < helio_gradients_count(gradients); j++) assert_true(helio_gradients_has(gradients, j));
    helio_release(models[i]);
  }
}

/* ---- nested ---- */

static void test_nested(void **state) {
  (void)state;
  helio_model *encoder =
      helio_sequential({helio_dense(5), helio_dense(4)}, .input_shape = HELIO_SHAPE(6), .name = "encoder");
  helio_node *left = helio_input(HELIO_SHAPE(6), .name = "left"), *right = helio_input(HELIO_SHAPE(6));
  helio_node *both = helio_apply(helio_average_layer(), helio_apply(encoder, left), helio_apply(encoder, right));
  helio_model *siamese = helio_model(.inputs = (helio_node *[]){left, right}, .input_count = 2,
                                     .output = helio_apply(helio_dense(1, .name = "head"), both), .name = "siamese");
  assert_made(siamese);
  helio_release(encoder); /* the outer model holds it */
  assert_int_equal(helio_count_params(siamese), 6 * 5 + 5 + 5 * 4 + 4 + 4 + 1);
  helio_model *outer =
      helio_sequential({helio_dense(3), helio_sequential({helio_dense(2)})}, .input_shape = HELIO_SHAPE(4));
  assert_made(outer);
  helio_tensor *inputs[] = {helio_fill(HELIO_SHAPE(2, 6), 1), helio_fill(HELIO_SHAPE(2, 6), 2)};
  assert_made(helio_call(siamese, .inputs = inputs, .input_count = 2));
  char folder[64], path[100];
  make_folder(folder);
  snprintf(path, sizeof path, "%s/w.safetensors", folder);
  assert_ok(helio_save_weights(siamese, path));
  golden *file = golden_open_path(path);
  assert_true(golden_has(file, "encoder/dense_1/kernel"));
  assert_true(golden_has(file, "head/bias"));
  golden_close(file);
  assert_ok(helio_load_weights(siamese, path));
  remove_folder(folder);
  helio_release(siamese);
  helio_release(helio_model_layer(outer, 1));
  helio_release(outer);
}

/* ---- saving and loading ---- */

static void read_all(helio_model *model, float *values) {
  const helio_variables *weights = helio_weights(model);
  for (int i = 0; i < weights->count; i++) {
    helio_tensor *value = helio_value(weights->at[i]);
    assert_ok(helio_tensor_read(value, values, (size_t)helio_tensor_elements(value) * sizeof *values));
    values += helio_tensor_elements(value);
  }
}

static void test_save_and_load(void **state) {
  (void)state;
  static float before[1000], after[1000];
  char folder[64], path[100];
  make_folder(folder);
  snprintf(path, sizeof path, "%s/mnist.safetensors", folder);
  helio_model *model = mnist();
  helio_set_seed(99);
  helio_model *other = mnist();
  read_all(model, before);
  read_all(other, after);
  assert_memory_not_equal(before, after, sizeof(float) * 20);
  assert_ok(helio_save_weights(model, path));
  assert_ok(helio_load_weights(other, path));
  read_all(other, after);
  assert_memory_equal(before, after, (size_t)helio_count_params(model) * sizeof(float));

  /* of another shape, with a layer too few and one too many: refused by name, and nothing is changed */
  helio_model *wide = helio_sequential({helio_conv2d(4, 3, .activation = HELIO_RELU), helio_max_pool2d(),
                                        helio_conv2d(9, 3), helio_max_pool2d(), helio_flatten(), helio_dense(10)},
                                       .input_shape = HELIO_SHAPE(12, 12, 1));
  read_all(wide, before);
  assert_int_equal(helio_load_weights(wide, path), HELIO_BAD_DATA);
  expect_error(HELIO_BAD_DATA, "conv2d_1/kernel is float32 (3, 3, 4, 8) there, float32 (3, 3, 4, 9) in the model");
  read_all(wide, after);
  assert_memory_equal(before, after, (size_t)helio_count_params(wide) * sizeof(float));
  helio_model *longer = helio_sequential({helio_conv2d(4, 3), helio_dense(3)}, .input_shape = HELIO_SHAPE(12, 12, 1));
  assert_int_equal(helio_load_weights(longer, path), HELIO_BAD_DATA);
  expect_error(HELIO_BAD_DATA, "dense/kernel");
  helio_model *shorter = helio_sequential({helio_conv2d(4, 3)}, .input_shape = HELIO_SHAPE(12, 12, 1));
  assert_int_equal(helio_load_weights(shorter, path), HELIO_BAD_DATA);
  expect_error(HELIO_BAD_DATA, "which the model lacks");

  /* a weight that is another, or truncated at every length: refused, and nothing is changed */
  struct stat about;
  assert_int_equal(stat(path, &about), 0);
  FILE *file = fopen(path, "r+b");
  assert_true(file && fseek(file, -1, SEEK_END) == 0 && fputc(1, file) == 1 && fclose(file) == 0); /* a bias was 0 */
  read_all(other, before);
  assert_int_equal(helio_load_weights(other, path), HELIO_BAD_DATA);
  expect_error(HELIO_BAD_DATA, "mnist.safetensors, byte 42: the file is damaged: its checksum is 0x");
  for (off_t length = about.st_size - 1; length >= 0; length = length > 200 ? length - 97 : length - 1) {
    assert_int_equal(truncate(path, length), 0);
    assert_int_not_equal(helio_load_weights(other, path), HELIO_OK);
    helio_error_take(NULL);
  }
  read_all(other, after);
  assert_memory_equal(before, after, (size_t)helio_count_params(other) * sizeof(float));
  assert_int_equal(helio_load_weights(other, "/nowhere/x.safetensors"), HELIO_IO_FAILURE);
  expect_error(HELIO_IO_FAILURE, "/nowhere/x.safetensors");
  helio_model *all[] = {model, other, wide, longer, shorter};
  for (int i = 0; i < 5; i++) helio_release(all[i]);
  remove_folder(folder);
}

static void test_set_weights(void **state) {
  (void)state;
  float before[20], after[20];
  helio_model *model = helio_sequential({helio_dense(3), helio_dense(1)}, .input_shape = HELIO_SHAPE(2));
  read_all(model, before);
  helio_tensor *values[] = {helio_fill(HELIO_SHAPE(2, 3), 1), helio_fill(HELIO_SHAPE(3), 2),
                            helio_fill(HELIO_SHAPE(3, 1), 3), helio_fill(HELIO_SHAPE(2), 4)};
  assert_int_equal(helio_set_weights(model, values, 4), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "dense_1/bias is float32 (1,), the value for it float32 (2,)");
  assert_int_equal(helio_set_weights(model, NULL, 4), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "values is NULL");
  assert_int_equal(helio_set_weights(model, values, 3), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "4 weights");
  read_all(model, after);
  assert_memory_equal(before, after, 13 * sizeof(float));
  values[3] = helio_fill(HELIO_SHAPE(1), 4);
  assert_ok(helio_set_weights(model, values, 4));
  assert_float_equal(helio_item(helio_call(model, helio_fill(HELIO_SHAPE(1, 2), 1))), 3 * 3 * (2 + 2) + 4, 1e-4);
  helio_release(model);
}

/* ---- trainable or not ---- */

static void test_trainable(void **state) {
  (void)state;
  helio_model *model = normalized();
  assert_int_equal(helio_weights(model)->count, 11);
  assert_int_equal(helio_trainable_variables(model)->count, 9);
  assert_int_equal(helio_non_trainable_variables(model)->count, 2);
  assert_string_equal(helio_variable_name(helio_non_trainable_variables(model)->at[0]),
                      "batch_normalization/moving_mean");
  assert_ok(helio_layer_set_trainable(helio_model_layer_named(model, "dense_1"), false));
  assert_int_equal(helio_trainable_variables(model)->count, 7);
  helio_tape *tape = helio_tape_new();
  helio_tensor *y = NULL;
  HELIO_TAPE(tape) y = helio_call(model, helio_random_normal(HELIO_SHAPE(4, 6)), .training = true);
  helio_gradients *gradients = helio_gradient(tape, y, helio_weights(model));
  int has = 0;
  for (int i = 0; i < 11; i++) has += helio_gradients_has(gradients, i);
  assert_int_equal(has, 7);
  assert_ok(helio_layer_set_trainable(model, true)); /* the moving statistics stay what they are */
  assert_int_equal(helio_trainable_variables(model)->count, 9);
  helio_release(model);
}

/* ---- wrong use ---- */

static void test_wrong_use(void **state) {
  (void)state;
  helio_model *model = mnist();
  assert_null(helio_call(model, helio_fill(HELIO_SHAPE(2, 12, 12), 1)));
  expect_error(HELIO_INVALID_ARGUMENT,
               "sequential (Sequential): input 0 has the shape (2, 12, 12), expected is (None, 12, 12, 1)");
  assert_null(helio_call(model, NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "NULL");
  assert_null(helio_sequential({helio_dense(3), helio_conv2d(4, 3)}, .input_shape = HELIO_SHAPE(4)));
  expect_error(HELIO_INVALID_ARGUMENT, "conv2d (Conv2D)");
  assert_null(helio_sequential({helio_dense(3, .activation_name = "rellu")}));
  expect_error(HELIO_INVALID_ARGUMENT, "dense (Dense): ");
  assert_null(helio_sequential({helio_dense(3, .name = "a"), helio_dense(3, .name = "a")}));
  expect_error(HELIO_INVALID_ARGUMENT, "'a' already");
  assert_null(helio_dense(3, .name = "a/b"));
  expect_error(HELIO_INVALID_ARGUMENT, "a/b");
  helio_node *a = helio_input(HELIO_SHAPE(4), .name = "a"), *b = helio_input(HELIO_SHAPE(4), .name = "b");
  helio_node *y = helio_apply(helio_add_layer(), a, b);
  assert_null(helio_model(a, y));
  expect_error(HELIO_INVALID_ARGUMENT, "b (InputLayer), which is not among the model's inputs");
  assert_null(helio_apply(helio_conv2d(3, 3), a));
  expect_error(HELIO_INVALID_ARGUMENT, "conv2d (Conv2D)");
  assert_null(helio_apply(helio_concatenate(.axis = 2), a, b));
  expect_error(HELIO_INVALID_ARGUMENT, "concatenate (Concatenate): inputs of shape (None, 4) have no axis 2");
  assert_null(helio_weights(helio_dense(3)));
  expect_error(HELIO_INVALID_ARGUMENT, "not a model");
  assert_int_equal(helio_model_add(model, model), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "itself");
  assert_null(helio_model_layer_named(model, "conv3d"));
  expect_error(HELIO_INVALID_ARGUMENT, "conv3d");
  assert_int_equal(helio_model_layer_count(model), 6); /* it is as it was */
  assert_made(helio_call(model, image(1)));
  helio_release(model);
}

/* An index past the vocabulary names layer, index and size, also where it is noticed late. */
static void test_bad_index(void **state) {
  (void)state;
  helio_model *model = reuters();
  int32_t words[40] = {3, 1, 50};
  helio_tensor *y = helio_call(model, helio_constant(words, HELIO_SHAPE(1, 40), HELIO_INT32));
  float values[5];
  if (y) helio_tensor_read(y, values, sizeof values);
  helio_error error;
  assert_int_equal(helio_error_take(&error), HELIO_BAD_DATA);
  assert_non_null(strstr(error.message, "embedding (Embedding)"));
  assert_non_null(strstr(error.message, "50"));
  helio_loss *loss = helio_sparse_categorical_crossentropy();
  words[2] = 0;
  y = helio_call(model, helio_constant(words, HELIO_SHAPE(1, 40), HELIO_INT32));
  int32_t label = 5;
  helio_tensor *value = helio_compute_loss(loss, helio_constant(&label, HELIO_SHAPE(1), HELIO_INT32), y);
  if (value) helio_item(value);
  assert_int_equal(helio_error_take(&error), HELIO_BAD_DATA);
  assert_non_null(strstr(error.message, "sparse_categorical_crossentropy"));
  assert_non_null(strstr(error.message, "label 5"));
  helio_release(model);
}

/* ---- a long loop ---- */

static void test_flat_memory(void **state) {
  (void)state;
  enum { STEPS = 1000, WARM = 50 };
  helio_memory first = {0}, last = {0};
  long resident = 0;
  helio_model *model = mnist();
  helio_loss *loss = helio_sparse_categorical_crossentropy();
  helio_optimizer *adam = helio_adam();
  helio_metric *accuracy = helio_sparse_categorical_accuracy();
  int32_t labels[4] = {1, 2, 3, 4};
  for (int step = 0; step < STEPS; step++) {
    HELIO_POOL {
      helio_tape *tape = helio_tape_new();
      helio_tensor *value = NULL, *y = NULL, *truth = helio_constant(labels, HELIO_SHAPE(4), HELIO_INT32);
      HELIO_TAPE(tape) {
        y = helio_call(model, image(4), .training = true);
        value = helio_compute_loss(loss, truth, y);
      }
      const helio_variables *variables = helio_trainable_variables(model);
      assert_ok(helio_apply_gradients(adam, helio_gradient(tape, value, variables), variables));
      assert_ok(helio_metric_update(accuracy, truth, y));
    }
    if (step == WARM) {
      assert_ok(helio_memory_info(device_name(), &first));
      resident = resident_kib();
    }
  }
  assert_ok(helio_memory_info(device_name(), &last));
  assert_int_equal(last.in_use, first.in_use);
  assert_int_equal(last.taken, first.taken);
  if (!SANITIZED) assert_true(resident_kib() - resident < 1024);
  assert_float_equal(helio_item(helio_metric_result(accuracy)), 1, 0.2); /* it has learnt four images by heart */
  helio_release(model);
}

/* ---- inputs ---- */

static void test_inputs(void **state) {
  (void)state;
  helio_model *late = helio_sequential({helio_dense(2)}),
              *words = helio_sequential({helio_embedding(9, 2)}, .input_shape = HELIO_SHAPE(-1));
  helio_node *a = helio_input(HELIO_SHAPE(3)), *b = helio_input(HELIO_SHAPE(2, 3), .type = HELIO_FLOAT64);
  helio_model *two = helio_model(.inputs = (helio_node *[]){a, b}, .input_count = 2, .output = a);
  assert_int_equal(helio_model_input_shape(late, 0).rank, 0);
  assert_int_equal(helio_model_input_type(late, 0), 0);
  assert_ok(helio_model_build(late, HELIO_SHAPE(-1, 5)));
  assert_int_equal(helio_model_input_shape(words, 0).rank, 1);
  assert_int_equal(helio_model_input_shape(words, 0).extent[0], -1);
  assert_int_equal(helio_model_input_type(words, 0), HELIO_INT32);
  assert_int_equal(helio_model_input_shape(two, 0).extent[0], 3);
  helio_shape second = helio_model_input_shape(two, 1);
  assert_true(second.rank == 2 && second.extent[0] == 2 && second.extent[1] == 3);
  assert_int_equal(helio_model_input_type(two, 1), HELIO_FLOAT64);
  assert_int_equal(helio_model_input_shape(two, 2).rank, 0);
  assert_int_equal(helio_model_input_shape(NULL, 0).rank, 0);
  assert_int_equal(helio_model_input_type(helio_dense(1), 0), 0);
  assert_ok(helio_error_pending());
  helio_release(late);
  helio_release(words);
  helio_release(two);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_training),      TEST(test_three_ways),  TEST(test_first_call),  TEST(test_nested),
      TEST(test_save_and_load), TEST(test_set_weights), TEST(test_trainable),   TEST(test_wrong_use),
      TEST(test_inputs),        TEST(test_bad_index),   TEST(test_flat_memory),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
