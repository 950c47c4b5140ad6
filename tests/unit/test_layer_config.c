/* SPDX-License-Identifier: Apache-2.0 */
/* Layers from Keras' JSON configs and back, and configs that are wrong. */
#include "golden.h"
#include "nn/config.h"

/* ---- what Keras writes is what we write ---- */

static json_t *keras_cases(void) {
  char path[PATH_MAX];
  const char *source = getenv("HELIO_TEST_SOURCE");
  snprintf(path, sizeof path, "%s/golden/nn/configs.json", source ? source : "tests");
  json_t *file = json_load_file(path, 0, NULL), *cases = json_incref(json_object_get(file, "cases"));
  if (!cases) fail_msg("%s cannot be read", path);
  json_decref(file);
  return cases;
}

/* As json_equal(), but 1 and 1.0 are equal. */
static bool equal(const json_t *a, const json_t *b) {
  const char *key;
  json_t *value;
  if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
  if (json_is_array(a) && json_array_size(a) == json_array_size(b)) {
    bool same = true;
    for (size_t i = 0; i < json_array_size(a); i++) same &= equal(json_array_get(a, i), json_array_get(b, i));
    return same;
  }
  if (!json_is_object(a) || !json_is_object(b)) return json_equal(a, b);
  json_object_foreach((json_t *)a, key, value) {
    if (!equal(value, json_object_get(b, key))) return false;
  }
  return json_object_size(a) == json_object_size(b);
}

/* Keras' keys have Keras' values; of others, which Keras leaves out where they are not set, none is set. */
static void compare(const char *class_name, const json_t *theirs, const char *text) {
  const char *key;
  json_t *value, *ours = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(ours);
  json_object_foreach((json_t *)theirs, key, value) {
    if (!equal(value, json_object_get(ours, key))) fail_msg("%s: '%s' in %s", class_name, key, text);
  }
  json_object_foreach(ours, key, value) {
    if (!json_object_get(theirs, key) && !json_is_null(value)) fail_msg("%s has no '%s'", class_name, key);
  }
  json_decref(ours);
}

static char *written_of(const char *class_name, const char *config) {
  helio_layer *layer = helio_layer_from_config(class_name, config);
  assert_made(layer);
  char *text = hi_layer_config(layer);
  assert_made(text);
  return text;
}

static void test_keras_configs(void **state) {
  (void)state;
  json_t *cases = keras_cases();
  assert_true(json_array_size(cases) > 70);
  for (size_t i = 0; i < json_array_size(cases); i++) {
    const json_t *one = json_array_get(cases, i), *config = json_object_get(one, "config");
    const char *class_name = json_string_value(json_object_get(one, "class_name"));
    char *given = json_dumps(config, 0);
    char *written = written_of(class_name, given);
    compare(class_name, config, written);
    char *again = written_of(class_name, written);
    assert_string_equal(written, again);
    free(again);
    free(written);
    free(given);
  }
  json_decref(cases);
}

static void test_every_kind_has_a_config(void **state) {
  (void)state;
  json_t *cases = keras_cases();
  for (int k = 0; hi_layer_kinds[k]; k++) {
    const json_t *one = json_array_get(cases, (size_t)k); /* the first ones are all layers with their defaults */
    assert_string_equal(json_string_value(json_object_get(one, "class_name")), hi_layer_kinds[k]->class_name);
    const json_t *name = json_object_get(json_object_get(one, "config"), "name");
    assert_string_equal(json_string_value(name), hi_layer_kinds[k]->base_name);
  }
  json_decref(cases);
}

/* ---- other ways to say it ---- */

static const struct {
  const char *class_name, *one, *other; /* give the same */
} pairs[] = {
    {"Dense", "{\"units\": 2, \"activation\": \"swish\"}", "{\"units\": 2, \"activation\": \"silu\"}"},
    {"Dense", "{\"units\": 2, \"activation\": null}", "{\"units\": 2, \"activation\": \"linear\"}"},
    {"Dense",
     "{\"units\": 2, \"activation\": {\"module\": \"builtins\", \"class_name\": \"function\", \"config\": \"relu\", "
     "\"registered_name\": \"relu\"}}",
     "{\"units\": 2, \"activation\": \"relu\"}"},
    {"Dense", "{\"units\": 2, \"kernel_initializer\": \"he_normal\"}",
     "{\"units\": 2, \"kernel_initializer\": {\"class_name\": \"HeNormal\", \"config\": {}}}"},
    {"Dense", "{\"units\": 2, \"kernel_initializer\": \"uniform\"}",
     "{\"units\": 2, \"kernel_initializer\": {\"class_name\": \"RandomUniform\", \"config\": {\"minval\": -0.05, "
     "\"maxval\": 0.05, \"seed\": null}}}"},
    {"Dense", "{\"units\": 2, \"kernel_regularizer\": \"l2\"}",
     "{\"units\": 2, \"kernel_regularizer\": {\"class_name\": \"L1L2\", \"config\": {\"l2\": 0.01}}}"},
    {"Dense", "{\"units\": 2, \"dtype\": \"float64\"}",
     "{\"units\": 2, \"dtype\": {\"class_name\": \"DTypePolicy\", \"config\": {\"name\": \"float64\"}}}"},
    {"Dense", "{\"units\": 2, \"dtype\": null, \"name\": null}", "{\"units\": 2}"},
    {"Conv2D", "{\"filters\": 2, \"kernel_size\": 3, \"strides\": 2}",
     "{\"filters\": 2, \"kernel_size\": [3, 3], \"strides\": [2, 2], \"groups\": 1}"},
    {"Conv1D", "{\"filters\": 2, \"kernel_size\": 3}", "{\"filters\": 2, \"kernel_size\": [3]}"},
    {"ZeroPadding2D", "{\"padding\": 2}", "{\"padding\": [[2, 2], [2, 2]]}"},
    {"ZeroPadding2D", "{\"padding\": [2, 0]}", "{\"padding\": [[2, 2], [0, 0]]}"},
    {"LayerNormalization", "{\"axis\": [-1]}", "{\"axis\": -1}"},
    {"LayerNormalization", "{\"axis\": [3, 1]}", "{\"axis\": [1, 3]}"},
    {"LayerNormalization", "{\"axis\": [0]}", "{\"axis\": 0}"},
    {"BatchNormalization", "{\"axis\": [3]}", "{\"axis\": 3}"}, /* Keras 2 wrote a list */
    {"Softmax", "{\"axis\": [-1]}", "{}"},
    {"MaxPooling2D", "{}", "{\"pool_size\": 2, \"strides\": 2, \"padding\": \"valid\"}"},
};

static void test_other_ways(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(pairs); i++) {
    char *one = written_of(pairs[i].class_name, pairs[i].one), *other = written_of(pairs[i].class_name, pairs[i].other);
    assert_string_equal(one, other);
    free(one);
    free(other);
  }
}

/* Zero is stored with a sign so that it is not taken for a default; a variable starts without it. */
static void test_constant_zero(void **state) {
  (void)state;
  helio_layer *layer = helio_layer_from_config("Dense", "{\"units\": 1, \"bias_initializer\": {\"class_name\": "
                                                        "\"Constant\", \"config\": {\"value\": 0.0}}}");
  assert_made(layer);
  assert_made(helio_call(layer, helio_fill(HELIO_SHAPE(1, 1), 1)));
  assert_false(signbit(helio_item(hi_layer_weight(layer, "bias"))));
}

/* What is not fixed by options is the layer's: its name, its type, whether it is trained. */
static void test_after_use(void **state) {
  (void)state;
  helio_layer *layer = helio_dense(2, .kernel_regularizer = {0.5, 0.25});
  assert_made(helio_call(layer, helio_fill(HELIO_SHAPE(1, 1), 1)));
  assert_ok(helio_layer_set_trainable(layer, false));
  char *text = hi_layer_config(layer);
  assert_made(text);
  assert_non_null(strstr(text, "\"name\": \"dense\", \"trainable\": false"));
  assert_non_null(strstr(text, "{\"name\": \"float32\"}"));
  assert_non_null(strstr(text, "{\"l1\": 0.5, \"l2\": 0.25}"));
  free(text);
  helio_model *model = helio_sequential({layer});
  assert_made(model);
  assert_null(hi_layer_config(model));
  expect_error(HELIO_NOT_SUPPORTED, "sequential (Sequential)");
  helio_release(model);
  assert_null(hi_layer_config(helio_dropout(0.5, .seed = UINT64_MAX - 1)));
  expect_error(HELIO_NOT_SUPPORTED, "seed");
}

/* ---- wrong ones ---- */

typedef struct wrong {
  const char *class_name, *config;
  helio_status status;
  const char *part;
} wrong;

static const wrong wrong_text[] = {
    {"Dense", "{\"units\": 3", HELIO_INVALID_ARGUMENT, "layer Dense is not a JSON object"},
    {"Dense", "{\"units\": 3} {}", HELIO_INVALID_ARGUMENT, "end of file expected"},
    {"Dense", "{\"units\": 3, \"units\": 3}", HELIO_INVALID_ARGUMENT, "duplicate"},
    {"Dense", "{\"units\": 0x3}", HELIO_INVALID_ARGUMENT, "layer Dense is not a JSON object"},
    {"Dense", "{\"units\": NaN}", HELIO_INVALID_ARGUMENT, "layer Dense is not a JSON object"},
    {"Dense", "{\"name\": \"\\u0000\", \"units\": 3}", HELIO_INVALID_ARGUMENT, "layer Dense is not a JSON object"},
    {"Dense", "{\"name\": \"\xff\", \"units\": 3}", HELIO_INVALID_ARGUMENT, "layer Dense is not a JSON object"},
    {"Dense", "[3]", HELIO_INVALID_ARGUMENT, "it is a list"},
    {"Dense", "", HELIO_INVALID_ARGUMENT, "layer Dense is not a JSON object"},
    {"Desne", "{}", HELIO_NOT_SUPPORTED, "no layer of class 'Desne'; did you mean 'Dense'?"},
    {"SeparableConv2D", "{}", HELIO_NOT_SUPPORTED, "no layer of class 'SeparableConv2D'; there are Dense, Conv1D, "},
    {"InputLayer", "{\"batch_shape\": [null, 3]}", HELIO_NOT_SUPPORTED, "no layer of class 'InputLayer'"},
    {"Dense", "{}", HELIO_INVALID_ARGUMENT, "the key 'units' is missing"},
    {"Dense", "{\"units\": 3, \"name\": \"a/b\"}", HELIO_INVALID_ARGUMENT, "'a/b'"},
    {"Dense", NULL, HELIO_INVALID_ARGUMENT, "the config is NULL"},
    {NULL, "{}", HELIO_INVALID_ARGUMENT, "the class is NULL"},
};

static const wrong wrong_values[] = {
    {"Dense", "\"unitz\": 3", HELIO_NOT_SUPPORTED, "layer Dense: the key 'unitz' is not known"},
    {"Dense", "\"batch_input_shape\": [null, 3]", HELIO_NOT_SUPPORTED, "'batch_input_shape'"},
    {"Dense", "\"units\": \"3\"", HELIO_INVALID_ARGUMENT, "layer Dense: 'units': expected a whole number, got \"3\""},
    {"Dense", "\"units\": 3.0", HELIO_INVALID_ARGUMENT, "'units': expected a whole number, got 3.0"},
    {"Dense", "\"units\": -3", HELIO_INVALID_ARGUMENT, "units is -3"},
    {"Dense", "\"use_bias\": 1", HELIO_INVALID_ARGUMENT, "'use_bias': expected true or false, got 1"},
    {"Dense", "\"name\": 5", HELIO_INVALID_ARGUMENT, "'name'"},
    {"Dense", "\"trainable\": null", HELIO_INVALID_ARGUMENT, "'trainable'"},
    {"Dense", "\"kernel_constraint\": {\"class_name\": \"NonNeg\"}", HELIO_NOT_SUPPORTED,
     "'kernel_constraint': expected null, got {\"class_name\":\"NonNeg\"}"},
    {"Dense", "\"activity_regularizer\": \"l2\"", HELIO_NOT_SUPPORTED, "'activity_regularizer'"},
    {"Dense", "\"lora_rank\": 4", HELIO_NOT_SUPPORTED, "'lora_rank'"},
    {"Dense", "\"dtype\": \"mixed_float16\"", HELIO_NOT_SUPPORTED, "'dtype'"},
    {"Dense", "\"dtype\": \"int32\"", HELIO_NOT_SUPPORTED, "'dtype'"},
    {"Dense", "\"dtype\": {\"class_name\": \"QuantizedDTypePolicy\", \"config\": {\"name\": \"float32\"}}",
     HELIO_NOT_SUPPORTED, "'dtype'"},
    {"Dense", "\"dtype\": {\"class_name\": \"DTypePolicy\"}", HELIO_NOT_SUPPORTED, "'dtype'"},
    {"Dense", "\"dtype\": 7", HELIO_NOT_SUPPORTED, "'dtype'"},
    {"Dense", "\"activation\": \"rellu\"", HELIO_INVALID_ARGUMENT, "'activation': there is no activation 'rellu'; did"},
    {"Dense", "\"activation\": \"\\u001b[31mred\"", HELIO_INVALID_ARGUMENT, "there is no activation '?[31mred'; there"},
    {"Dense", "\"activation\": {\"class_name\": \"LeakyReLU\", \"config\": {}}", HELIO_NOT_SUPPORTED, "'activation'"},
    {"Dense", "\"activation\": {\"module\": \"my\", \"class_name\": \"function\", \"config\": \"relu\"}",
     HELIO_NOT_SUPPORTED, "'activation'"},
    {"Dense", "\"kernel_initializer\": \"orthogonal\"", HELIO_NOT_SUPPORTED, "'kernel_initializer'"},
    {"Dense", "\"kernel_initializer\": null", HELIO_INVALID_ARGUMENT, "'kernel_initializer'"},
    {"Dense", "\"kernel_initializer\": {\"class_name\": \"Zeros\", \"config\": 3}", HELIO_INVALID_ARGUMENT, "Zeros"},
    {"Dense", "\"kernel_initializer\": {\"class_name\": \"HeNormal\", \"config\": {\"scale\": 2}}", HELIO_NOT_SUPPORTED,
     "'kernel_initializer': the key 'scale' is not known"},
    {"Dense", "\"kernel_initializer\": {\"class_name\": \"HeNormal\", \"config\": {\"seed\": -1}}", HELIO_NOT_SUPPORTED,
     "'kernel_initializer': 'seed'"},
    {"Dense", "\"kernel_initializer\": {\"class_name\": \"RandomUniform\", \"config\": {\"minval\": 0, \"maxval\": 0}}",
     HELIO_NOT_SUPPORTED, "minval"},
    {"Dense", "\"kernel_regularizer\": {\"class_name\": \"OrthogonalRegularizer\", \"config\": {}}",
     HELIO_NOT_SUPPORTED, "'kernel_regularizer': expected L1, L2 or L1L2"},
    {"Dense", "\"kernel_regularizer\": {\"class_name\": \"L1\", \"config\": {\"l2\": 1}}", HELIO_NOT_SUPPORTED, "'l2'"},
    {"Dense", "\"units\": 2, \"kernel_regularizer\": {\"class_name\": \"L1\", \"config\": {\"l1\": -1}}",
     HELIO_INVALID_ARGUMENT, "factor is -1"},
    {"Conv2D", "\"data_format\": \"channels_first\"", HELIO_NOT_SUPPORTED,
     "'data_format': expected \"channels_last\", got \"channels_first\""},
    {"Conv2D", "\"padding\": \"full\"", HELIO_INVALID_ARGUMENT, "'padding'"},
    {"Conv2D", "\"padding\": 1", HELIO_INVALID_ARGUMENT, "'padding'"},
    {"Conv2D", "\"strides\": 0", HELIO_INVALID_ARGUMENT, "'strides': expected a positive whole number, got 0"},
    {"Conv2D", "\"strides\": []", HELIO_INVALID_ARGUMENT, "'strides'"},
    {"Conv2D", "\"strides\": [1, 2, 3]", HELIO_INVALID_ARGUMENT, "'strides'"},
    {"Conv2D", "\"strides\": [1, 0]", HELIO_INVALID_ARGUMENT, "'strides'"},
    {"Conv2D", "\"strides\": null", HELIO_INVALID_ARGUMENT, "'strides'"},
    {"Conv2D", "\"kernel_size\": 3000000000", HELIO_INVALID_ARGUMENT, "'kernel_size'"},
    {"Conv2D", "\"groups\": 0", HELIO_NOT_SUPPORTED, "'groups': 0"},
    {"Conv1D", "\"filters\": 2, \"kernel_size\": [3, 4]", HELIO_INVALID_ARGUMENT, "3 and 4 for one axis"},
    {"Concatenate", "\"axis\": 0", HELIO_NOT_SUPPORTED, "'axis': 0"},
    {"BatchNormalization", "\"axis\": 0", HELIO_NOT_SUPPORTED, "'axis': 0"},
    {"BatchNormalization", "\"axis\": [1, 2]", HELIO_INVALID_ARGUMENT, "'axis': expected a whole number, got [1,2]"},
    {"LayerNormalization", "\"axis\": []", HELIO_INVALID_ARGUMENT, "'axis': expected a list of whole numbers, got []"},
    {"LayerNormalization", "\"axis\": \"last\"", HELIO_INVALID_ARGUMENT, "'axis'"},
    {"BatchNormalization", "\"renorm\": true", HELIO_NOT_SUPPORTED, "'renorm'"},
    {"BatchNormalization", "\"momentum\": null", HELIO_INVALID_ARGUMENT, "'momentum': expected a number, got null"},
    {"Softmax", "\"axis\": [1, 2.5]", HELIO_INVALID_ARGUMENT, "'axis'"},
    {"Softmax", "\"axis\": 3000000000", HELIO_INVALID_ARGUMENT, "'axis'"},
    {"Softmax", "\"axis\": [1, 1, 1, 1, 1, 1, 1, 1, 1]", HELIO_INVALID_ARGUMENT, "'axis'"},
    {"Permute", "\"dims\": 1", HELIO_INVALID_ARGUMENT, "'dims': expected a list of whole numbers, got 1"},
    {"Embedding", "\"mask_zero\": true", HELIO_NOT_SUPPORTED, "'mask_zero'"},
    {"Dropout", "\"noise_shape\": [1, 2]", HELIO_NOT_SUPPORTED, "'noise_shape'"},
    {"Dropout", "\"rate\": 1.5", HELIO_INVALID_ARGUMENT, "rate is 1.5"},
    {"ReLU", "\"max_value\": \"6\"", HELIO_INVALID_ARGUMENT, "'max_value'"},
    {"Reshape", "\"target_shape\": 3", HELIO_INVALID_ARGUMENT, "'target_shape': expected a list of whole numbers"},
    {"Reshape", "\"target_shape\": [1, 1, 1, 1, 1, 1, 1, 1, 1]", HELIO_INVALID_ARGUMENT, "'target_shape'"},
    {"Permute", "\"dims\": [1, 1]", HELIO_INVALID_ARGUMENT, "dims"},
    {"ZeroPadding2D", "\"padding\": 0", HELIO_NOT_SUPPORTED, "'padding'"},
    {"ZeroPadding2D", "\"padding\": [[1, 2]]", HELIO_INVALID_ARGUMENT, "'padding'"},
    {"ZeroPadding2D", "\"padding\": [[1, 2], 3]", HELIO_INVALID_ARGUMENT, "'padding'"},
    {"ZeroPadding2D", "\"padding\": [1, -1]", HELIO_INVALID_ARGUMENT, "'padding'"},
    {"UpSampling2D", "\"interpolation\": \"bicubic\"", HELIO_NOT_SUPPORTED,
     "'interpolation': expected \"nearest\" or \"bilinear\", got \"bicubic\""},
    {"UpSampling2D", "\"interpolation\": null", HELIO_NOT_SUPPORTED, "'interpolation'"},
    {"Rescaling", "\"scale\": [1, 2]", HELIO_INVALID_ARGUMENT, "'scale': expected a number, got [1,2]"},
};

static void expect_wrong(const wrong *w, const char *config) {
  if (helio_layer_from_config(w->class_name, config)) fail_msg("%s %s was taken", w->class_name, config);
  helio_error error;
  helio_status status = helio_error_take(&error);
  if (status != w->status || !strstr(error.message, w->part)) {
    fail_msg("%s %s: %s: \"%s\" has no \"%s\"", w->class_name, config, helio_status_name(status), error.message,
             w->part);
  }
}

static void test_wrong_text(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(wrong_text); i++) expect_wrong(&wrong_text[i], wrong_text[i].config);
}

static void test_wrong_values(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(wrong_values); i++) {
    char config[400];
    snprintf(config, sizeof config, "{%s}", wrong_values[i].config);
    expect_wrong(&wrong_values[i], config);
  }
}

static void test_depth(void **state) {
  enum { DEPTH = 100000 };
  (void)state;
  char *text = malloc(DEPTH + 20);
  assert_non_null(text);
  memcpy(text, "{\"units\": ", 10);
  memset(text + 10, '[', DEPTH);
  text[10 + DEPTH] = 0;
  assert_null(helio_layer_from_config("Dense", text));
  expect_error(HELIO_INVALID_ARGUMENT, "depth");
  free(text);
}

/* Any change of a byte gives a layer or an error, and never both or none. */
static void test_damaged_configs(void **state) {
  (void)state;
  json_t *cases = keras_cases();
  uint64_t seed = 5;
  for (size_t i = 0; i < 20 * json_array_size(cases); i++) {
    const json_t *one = json_array_get(cases, i / 20);
    char *text = json_dumps(json_object_get(one, "config"), JSON_COMPACT);
    size_t place = next_random(&seed) % strlen(text);
    text[place] = (char)(next_random(&seed) % 4 ? "0123456789-.,:[]{}\"enul "[next_random(&seed) % 24] : 0);
    HELIO_POOL {
      helio_layer *layer = helio_layer_from_config(json_string_value(json_object_get(one, "class_name")), text);
      if (!layer == !helio_error_pending()) fail_msg("%s", text);
    }
    helio_error_take(NULL);
    free(text);
  }
  json_decref(cases);
}

int main(void) {
  remember_environment();
  const struct CMUnitTest tests[] = {
      TEST(test_keras_configs),   TEST(test_every_kind_has_a_config),
      TEST(test_other_ways),      TEST(test_after_use),
      TEST(test_constant_zero),   TEST(test_wrong_text),
      TEST(test_wrong_values),    TEST(test_depth),
      TEST(test_damaged_configs),
  };
  return cmocka_run_group_tests_name("layer config", tests, NULL, NULL);
}
