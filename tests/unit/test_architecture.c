/* SPDX-License-Identifier: Apache-2.0 */
/* Models from Keras' JSON and back, and files that hold both architecture and weights. golden/nn has what Keras 3 and
 * Keras 2 wrote, with their summaries, weights and predictions. */
#include "golden.h"
#include "nn/model.h"

/* ---- Keras' models ---- */

static const char *text_in(const json_t *description, const char *key) {
  const char *text = json_string_value(json_object_get(description, key));
  if (!text) fail_msg("the description has no %s", key);
  return text;
}

static helio_model *model_of(const json_t *description) {
  helio_model *model = helio_model_from_json(text_in(description, "json"));
  assert_made(model);
  return model;
}

static char *written_of(helio_model *model) {
  char *text = helio_model_to_json(model);
  assert_made(text);
  return text;
}

/* Calls a function for each case that has weights, with the model that was made of its JSON. */
typedef void visit_case(golden *file, const char *name, const json_t *description, helio_model *model);

static void for_each_case(const char *category, visit_case *visit) {
  golden *file = golden_open(category);
  json_t *order = golden_json(file, "order");
  for (size_t i = 0; i < json_array_size(order); i++) {
    const char *name = json_string_value(json_array_get(order, i));
    json_t *description = golden_json(file, name);
    HELIO_POOL {
      helio_model *model = json_object_get(description, "weights") ? model_of(description) : NULL;
      if (model) visit(file, name, description, model);
      helio_release(model);
    }
    json_decref(description);
  }
  json_decref(order);
  golden_close(file);
}

typedef struct checker {
  golden *file;
  const char *name;
  const json_t *names;
  size_t count;
} checker;

/* In Keras' order, under Keras' name and of its shape; takes Keras' value. */
static helio_status check_weight(void *user, const char *name, hi_weight *weight) {
  checker *c = user;
  const char *expected = json_string_value(json_array_get(c->names, c->count++));
  if (!expected || strcmp(expected, name) != 0) fail_msg("%s: %s instead of %s", c->name, name, expected);
  helio_tensor *value = golden_tensor(c->file, "%s/weight/%s", c->name, name);
  assert_true(shapes_equal(helio_variable_shape(weight->variable), helio_tensor_shape(value)));
  return helio_assign(weight->variable, value);
}

static void take_weights(golden *file, const char *name, const json_t *description, helio_model *model) {
  checker c = {.file = file, .name = name, .names = json_object_get(description, "weights")};
  assert_ok(hi_model_visit(model, check_weight, &c));
  assert_int_equal(c.count, json_array_size(c.names));
}

static int number_in(const json_t *description, const char *key) {
  return (int)json_integer_value(json_object_get(description, key));
}

static void check_predictions(golden *file, const char *name, const json_t *description, helio_model *model) {
  helio_tensor *inputs[4], *outputs[4];
  int count = number_in(description, "input_count");
  for (int i = 0; i < count; i++) inputs[i] = golden_tensor(file, "%s/input/%d", name, i);
  assert_made(helio_call(model, .inputs = inputs, .input_count = count, .outputs = outputs));
  assert_int_equal(model->kind == &hi_functional_kind ? model->model->output_count : 1,
                   number_in(description, "output_count"));
  for (int i = 0; i < number_in(description, "output_count"); i++) {
    helio_tensor *expected = golden_tensor(file, "%s/output/%d", name, i);
    double distance = tensor_distance(outputs[i], expected);
    if (!(distance <= 1e-6)) fail_msg("%s: output %d differs by %g", name, i, distance);
  }
}

static void check_model(golden *file, const char *name, const json_t *description, helio_model *model) {
  if (json_object_get(description, "summary")) {
    char *summary = helio_model_summary_text(model, 0);
    assert_made(summary);
    assert_string_equal(summary, text_in(description, "summary"));
    free(summary);
  }
  take_weights(file, name, description, model);
  check_predictions(file, name, description, model);
}

static void test_keras_models(void **state) {
  (void)state;
  for_each_case("architectures", check_model);
}

static void test_models_of_keras_2(void **state) {
  (void)state;
  for_each_case("old_architectures", check_model);
}

/* ---- what we write is what Keras wrote ---- */

/* Keys that Keras leaves out where they are not set are null with us; one axis stands alone, which Keras puts in a list
 * when the layer is built. How a model was compiled we do not know. */
static bool same_json(const json_t *theirs, const json_t *ours) {
  const char *key;
  json_t *value;
  bool same = true;
  if (json_is_number(theirs) && json_is_number(ours)) return json_number_value(theirs) == json_number_value(ours);
  if (json_array_size(theirs) == 1 && json_is_integer(ours)) theirs = json_array_get(theirs, 0);
  if (json_is_array(theirs) && json_array_size(theirs) == json_array_size(ours)) {
    for (size_t i = 0; i < json_array_size(theirs); i++) {
      same = same && same_json(json_array_get(theirs, i), json_array_get(ours, i));
    }
    return same;
  }
  if (!json_is_object(theirs) || !json_is_object(ours)) return json_equal(theirs, ours);
  json_object_foreach((json_t *)theirs, key, value) {
    if (strcmp(key, "compile_config") != 0) same = same && same_json(value, json_object_get(ours, key));
    if (!same) print_error("%s, ", key);
    if (!same) return false;
  }
  json_object_foreach((json_t *)ours, key, value) {
    if (!json_object_get(theirs, key) && !json_is_null(value)) print_error("%s is too much in ", key);
    if (!json_object_get(theirs, key) && !json_is_null(value)) return false;
  }
  return true;
}

static void check_json(const char *name, const char *text, const char *expected) {
  json_t *ours = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *theirs = json_loads(expected, 0, NULL);
  if (!ours || !same_json(theirs, ours)) fail_msg("%s:\n%s\nexpected:\n%s", name, text, expected);
  json_decref(ours);
  json_decref(theirs);
}

static void check_written(golden *file, const char *name, const json_t *description, helio_model *model) {
  (void)file;
  char *text = written_of(model);
  check_json(name, text, text_in(description, "json"));
  helio_model *again = helio_model_from_json(text);
  assert_made(again);
  char *second = written_of(again);
  assert_string_equal(text, second);
  free(second);
  free(text);
  helio_release(again);
}

static void test_written(void **state) {
  (void)state;
  for_each_case("architectures", check_written);
}

/* A model without an input shape has none from JSON either, and makes its variables when it is called. */
static void test_deferred(void **state) {
  (void)state;
  golden *file = golden_open("architectures");
  json_t *description = golden_json(file, "deferred");
  helio_model *model = model_of(description);
  char *text = written_of(model);
  check_json("deferred", text, text_in(description, "json"));
  free(text);
  assert_null(helio_weights(model));
  expect_error(HELIO_WRONG_STATE, "no variables yet");
  assert_int_equal(helio_save_model(model, "/nowhere/x"), HELIO_WRONG_STATE);
  helio_error_take(NULL);
  assert_made(helio_call(model, helio_fill(HELIO_SHAPE(2, 4), 1)));
  assert_int_equal(helio_count_params(model), 4 * 3 + 3 + 3 * 2 + 2);
  text = written_of(model);
  assert_non_null(strstr(text, "\"batch_shape\": [2, 4]"));
  free(text);
  helio_release(model);
  json_decref(description);
  golden_close(file);
}

/* What stands in a text of Keras before 2.2: neither modules nor an InputLayer, and the shape in the first layer. */
static void test_oldest_form(void **state) {
  (void)state;
  static const char text[] =
      "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"sequential_1\", \"layers\": [{\"class_name\": "
      "\"Dense\", \"config\": {\"name\": \"dense_1\", \"trainable\": true, \"batch_input_shape\": [null, 4], "
      "\"dtype\": \"float32\", \"units\": 3, \"activation\": \"relu\", \"use_bias\": true}}, {\"class_name\": "
      "\"Dense\", \"config\": {\"name\": \"dense_2\", \"units\": 2}}]}, \"keras_version\": \"2.1.6\", \"backend\": "
      "\"tensorflow\"}";
  helio_model *model = helio_model_from_json(text);
  assert_made(model);
  assert_int_equal(helio_count_params(model), 4 * 3 + 3 + 3 * 2 + 2);
  assert_string_equal(helio_variable_name(helio_weights(model)->at[2]), "dense_2/kernel");
  helio_release(model);
}

/* ---- models made by code ---- */

static helio_model *chain(void) {
  return helio_sequential({helio_embedding(9, 4), helio_conv1d(3, 2, .activation = HELIO_RELU), helio_flatten(),
                           helio_dense(2, .kernel_regularizer = {.l2 = 0.5}, .type = HELIO_FLOAT32)},
                          .input_shape = HELIO_SHAPE(5));
}

static helio_model *graph(void) {
  helio_node *a = helio_input(HELIO_SHAPE(5)), *b = helio_input(HELIO_SHAPE(5), .name = "second");
  helio_layer *layer = helio_dense(4, .activation_name = "tanh");
  helio_node *left = helio_apply(layer, a), *right = helio_apply(layer, b);
  helio_node *sum = helio_apply(helio_add_layer(), left, right);
  return helio_model(.inputs = (helio_node *[]){a, b}, .input_count = 2, .outputs = (helio_node *[]){sum, left},
                     .output_count = 2);
}

/* A layer that stands in two models, which stand in a third, is one layer afterwards too. Keras forgets that. */
static helio_model *common_layer(void) {
  helio_layer *layer = helio_dense(3);
  helio_model *first = helio_sequential({layer}, .input_shape = HELIO_SHAPE(3), .name = "first");
  helio_model *second =
      helio_sequential({helio_dense(3), layer}, .input_shape = HELIO_SHAPE(3), .name = "second", .type = HELIO_FLOAT32);
  helio_node *x = helio_input(HELIO_SHAPE(3));
  helio_model *model = helio_model(x, helio_apply(second, helio_apply(first, x)));
  helio_release(first);
  helio_release(second);
  return model;
}

static helio_tensor *input_of(const helio_model *model, int i) {
  const helio_shape *shape = &model->model->input_shapes[i];
  float values[16];
  for (int j = 0; j < 16; j++) values[j] = (float)((j * 7 + i) % 5);
  return helio_constant(values, HELIO_SHAPE(2, shape->extent[1]));
}

static void assert_same_results(helio_model *one, helio_model *other) {
  helio_tensor *inputs[2], *first[2], *second[2];
  int count = one->model->input_count, outputs = one->kind == &hi_functional_kind ? one->model->output_count : 1;
  for (int i = 0; i < count; i++) inputs[i] = input_of(one, i);
  assert_made(helio_call(one, .inputs = inputs, .input_count = count, .outputs = first));
  assert_made(helio_call(other, .inputs = inputs, .input_count = count, .outputs = second));
  for (int i = 0; i < outputs; i++) assert_true(tensor_distance(second[i], first[i]) == 0);
}

static void test_own_models(void **state) {
  helio_model *(*const builders[])(void) = {chain, graph, common_layer};
  char folder[64], path[100];
  (void)state;
  make_folder(folder);
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  for (size_t i = 0; i < COUNT_OF(builders); i++) {
    helio_model *model = builders[i]();
    assert_made(model);
    assert_ok(helio_save_model(model, path));
    helio_model *loaded = helio_load_model(path);
    assert_made(loaded);
    assert_int_equal(helio_weights(loaded)->count, helio_weights(model)->count);
    assert_same_results(model, loaded);
    char *one = written_of(model), *other = written_of(loaded);
    assert_string_equal(one, other);
    free(one);
    free(other);
    helio_release(loaded);
    helio_release(model);
  }
  remove_folder(folder);
}

static helio_tensor *pass_on(void *self, helio_tensor *const *inputs, int count, bool training) {
  (void)self, (void)count, (void)training;
  return inputs[0];
}

static void test_model_of_ones_own(void **state) {
  (void)state;
  helio_model *own = helio_model_of(pass_on, NULL, .name = "mine");
  helio_model *around = helio_sequential({helio_dense(2), own});
  assert_null(helio_model_to_json(own));
  expect_error(HELIO_NOT_SUPPORTED, "mine (Model) has no architecture");
  assert_null(helio_model_to_json(around));
  expect_error(HELIO_NOT_SUPPORTED, "a function of the program (helio_model_of)");
  assert_null(helio_model_to_json(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "the model is NULL");
  assert_null(helio_model_to_json(helio_dense(2)));
  expect_error(HELIO_INVALID_ARGUMENT, "is a layer, not a model");
  helio_model *named = helio_sequential({helio_dense(2, .name = "\xff")});
  assert_null(helio_model_to_json(named));
  expect_error(HELIO_INVALID_ARGUMENT, "is not UTF-8");
  helio_model *seeded = helio_sequential({helio_dropout(0.5, .seed = UINT64_MAX - 1)});
  assert_null(helio_model_to_json(seeded));
  expect_error(HELIO_NOT_SUPPORTED, "seed");
  helio_release(seeded);
  helio_release(named);
  helio_release(around);
  helio_release(own);
}

/* ---- files ---- */

/* golden/nn/check_architectures.py looks at what is left there. */
static void choose_folder(char folder[PATH_MAX], bool *ours) {
  const char *given = getenv("HELIO_TEST_ARCHITECTURES");
  char made[64];
  *ours = !given;
  if (!given) make_folder(made);
  snprintf(folder, PATH_MAX, "%s", given ? given : made);
}

static void check_file(golden *file, const char *name, const json_t *description, helio_model *model) {
  char folder[PATH_MAX], path[PATH_MAX + 100];
  bool ours;
  choose_folder(folder, &ours);
  snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
  take_weights(file, name, description, model);
  assert_ok(helio_save_model(model, path));
  helio_model *loaded = helio_load_model(path);
  assert_made(loaded);
  check_predictions(file, name, description, loaded);
  helio_model *fresh = model_of(description);
  assert_ok(helio_load_weights(fresh, path));
  check_predictions(file, name, description, fresh);
  golden *saved = golden_open_path(path);
  char *text = written_of(model);
  assert_string_equal(hi_safetensors_metadata(saved, "keras_config"), text);
  assert_string_equal(hi_safetensors_metadata(saved, "format"), "helio");
  assert_int_equal(hi_safetensors_count(saved), json_array_size(json_object_get(description, "weights")));
  free(text);
  golden_close(saved);
  helio_release(fresh);
  helio_release(loaded);
  if (ours) remove_folder(folder);
}

static void test_files(void **state) {
  (void)state;
  for_each_case("architectures", check_file);
}

/* Writes a file with this text as architecture and the weights of a Dense(1) of one input. */
static void write_model(const char *path, const char *text) {
  static const float zeros[2];
  hi_safetensors_writer *writer = hi_safetensors_begin(path);
  assert_made(writer);
  assert_ok(hi_safetensors_add(writer, "dense/kernel", HELIO_FLOAT32, &HELIO_SHAPE(1, 1), zeros));
  assert_ok(hi_safetensors_add(writer, "dense/bias", HELIO_FLOAT32, &HELIO_SHAPE(1), zeros));
  assert_ok(hi_safetensors_add_metadata(writer, "keras_config", text));
  assert_ok(hi_safetensors_finish(writer));
}

static void test_wrong_files(void **state) {
  (void)state;
  char folder[64], path[100], *text;
  make_folder(folder);
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  helio_model *model = helio_sequential({helio_dense(1)}, .input_shape = HELIO_SHAPE(1));
  assert_ok(helio_save_weights(model, path));
  assert_null(helio_load_model(path));
  expect_error(HELIO_BAD_DATA, "take the weights with helio_load_weights()");
  assert_null(helio_load_model(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "path is NULL");
  assert_int_equal(helio_save_model(model, NULL), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "path is NULL");
  assert_null(helio_load_model("/nowhere/model.safetensors"));
  expect_error(HELIO_IO_FAILURE, "/nowhere/model.safetensors");
  text = written_of(model);
  write_model(path, text);
  helio_model *loaded = helio_load_model(path);
  assert_made(loaded);
  helio_release(loaded);
  write_model(path, "{\"class_name\": 5}");
  assert_null(helio_load_model(path));
  expect_error(HELIO_INVALID_ARGUMENT, "model.safetensors: keras_config: expected an object with class_name and");
  helio_model *wide = helio_sequential({helio_dense(2)}, .input_shape = HELIO_SHAPE(1));
  free(text);
  text = written_of(wide);
  write_model(path, text);
  assert_null(helio_load_model(path));
  expect_error(HELIO_BAD_DATA, "dense/kernel is float32 (1, 1) there, float32 (1, 2) in the model");
  free(text);
  helio_model *own = helio_model_of(pass_on, NULL);
  assert_made(helio_call(own, helio_fill(HELIO_SHAPE(1, 1), 1)));
  assert_int_equal(helio_save_model(own, path), HELIO_NOT_SUPPORTED);
  expect_error(HELIO_NOT_SUPPORTED, "helio_save_weights() saves its weights");
  assert_null(helio_load_model(path)); /* the file is as it was */
  expect_error(HELIO_BAD_DATA, "dense/kernel");
  helio_release(own);
  helio_release(wide);
  helio_release(model);
  remove_folder(folder);
}

/* ---- wrong texts ---- */

#define INPUT(name)                                                                                                    \
  "{\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null, 3], \"dtype\": \"float32\", \"name\": "       \
  "\"" name "\"}, \"inbound_nodes\": []}"
#define TENSOR(name, node, output)                                                                                     \
  "{\"class_name\": \"__keras_tensor__\", \"config\": {\"shape\": [null, 3], \"dtype\": \"float32\", "                 \
  "\"keras_history\": [\"" name "\", " node ", " output "]}}"
#define CALL(tensors)      "{\"args\": [" tensors "], \"kwargs\": {}}"
#define FROM(name)         CALL(TENSOR(name, "0", "0"))
#define KEYS(name)         "{\"name\": \"" name "\", \"units\": 3}"
#define DENSE(name, nodes) LAYER("Dense", KEYS(name), nodes)
#define LAYER(class_name, config, nodes)                                                                               \
  "{\"class_name\": \"" class_name "\", \"config\": " config ", \"inbound_nodes\": [" nodes "]}"
#define ENDS(layers, inputs, outputs)                                                                                  \
  "{\"class_name\": \"Functional\", \"config\": {\"name\": \"m\", \"layers\": [" layers "], \"input_layers\": " inputs \
  ", \"output_layers\": " outputs "}}"
#define GRAPH(layers)    ENDS(layers, "[\"x\", 0, 0]", "[\"y\", 0, 0]")
#define SEQUENCE(layers) "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [" layers "]}}"
#define PLAIN(keys)      "{\"class_name\": \"Dense\", " keys "}"

static void test_small_texts(void **state) {
  static const char *const good[] = {
      GRAPH(INPUT("x") "," DENSE("y", FROM("x"))),
      GRAPH(DENSE("y", FROM("x")) "," INPUT("x")), /* in any order */
      GRAPH(INPUT("x") "," DENSE("y", "[[\"x\", 0, 0]]")),
      GRAPH(INPUT("x") "," DENSE("y", "[[\"x\", 0, 0, {\"training\": false}]]")),
      ENDS(INPUT("x"), "[[\"x\", 0, 0]]", "[\"x\", 0, 0]"),
      SEQUENCE(DENSE("y", "")),
      SEQUENCE(PLAIN("\"module\": null, \"registered_name\": \"Dense\", \"config\": {\"name\": \"a\", \"units\": 1}")),
  };
  (void)state;
  for (size_t i = 0; i < COUNT_OF(good); i++) {
    helio_model *model = helio_model_from_json(good[i]);
    if (!model) fail_msg("%s: %s", good[i], helio_error_message());
    helio_release(model);
  }
}

typedef struct wrong {
  const char *text;
  helio_status status;
  const char *part;
} wrong;

static const wrong wrong_objects[] = {
    {"", HELIO_INVALID_ARGUMENT, "not the JSON of a model: line 1"},
    {"[]", HELIO_INVALID_ARGUMENT, "expected an object with class_name and config, got []"},
    {"{}", HELIO_INVALID_ARGUMENT, "expected an object with class_name and config"},
    {"{\"class_name\": \"Sequential\", \"class_name\": \"Sequential\"}", HELIO_INVALID_ARGUMENT, "duplicate"},
    {"{\"class_name\": \"Sequential\", \"config\": []}", HELIO_INVALID_ARGUMENT, "expected an object"},
    {"{\"class_name\": \"Sequential\", \"config\": {}}", HELIO_INVALID_ARGUMENT, "has no 'name'"},
    {"{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\"}}", HELIO_INVALID_ARGUMENT, "'layers' is missing"},
    {"{\"class_name\": \"MyModel\", \"config\": {\"name\": \"m\"}}", HELIO_NOT_SUPPORTED, "class 'MyModel'"},
    {"{\"class_name\": \"Dense\", \"config\": {\"name\": \"m\"}}", HELIO_NOT_SUPPORTED, "class 'Dense'"},
    {"{\"class_name\": \"Sequential\", \"module\": \"mine\", \"config\": {\"name\": \"m\", \"layers\": []}}",
     HELIO_NOT_SUPPORTED, "expected 'module' keras, got \"mine\""},
    {"{\"class_name\": \"Functional\", \"module\": \"mine.functional\", \"config\": {\"name\": \"m\"}}",
     HELIO_NOT_SUPPORTED, "'module'"},
    {"{\"class_name\": \"Sequential\", \"weights\": 1, \"config\": {\"name\": \"m\"}}", HELIO_NOT_SUPPORTED,
     "the key 'weights' is not known"},
    {"{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"\\u001b[2J\": 1, \"layers\": []}}",
     HELIO_NOT_SUPPORTED, "the key '?[2J' is not known"},
    {"{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\\u001b\", \"layers\": []}}", HELIO_INVALID_ARGUMENT,
     "one that cannot be shown"},
    {"{\"class_name\": \"Functional\", \"config\": {\"name\": \"m\", \"layers\": [], \"dtype\": \"float16\"}}",
     HELIO_NOT_SUPPORTED, "the key 'dtype' is not known"},
    {SEQUENCE(""), HELIO_NOT_SUPPORTED, "a Sequential without layers"},
    {SEQUENCE(INPUT("x")), HELIO_NOT_SUPPORTED, "a Sequential without layers"},
    {SEQUENCE("5"), HELIO_INVALID_ARGUMENT, "expected an object with class_name and config, got 5"},
    {SEQUENCE(DENSE("a", "") "," DENSE("a", "")), HELIO_INVALID_ARGUMENT, "two layers 'a'"},
    {SEQUENCE(DENSE("a", "") "," INPUT("x")), HELIO_INVALID_ARGUMENT, "layer 'x': an InputLayer stands behind others"},
    {SEQUENCE(DENSE("a/b", "")), HELIO_INVALID_ARGUMENT, "'a/b' cannot be the name of a layer"},
    {SEQUENCE(INPUT("x") "," LAYER("Conv2D", "{\"name\": \"c\", \"filters\": 1, \"kernel_size\": 3}", "")),
     HELIO_INVALID_ARGUMENT, "c (Conv2D): expected"},
};

static const wrong wrong_layers[] = {
    {SEQUENCE(LAYER("LSTM", "{\"name\": \"a\"}", "")), HELIO_NOT_SUPPORTED, "layer 'a': there is no layer of class"},
    {SEQUENCE(LAYER("Dense", "{\"name\": \"a\", \"unitz\": 3}", "")), HELIO_NOT_SUPPORTED,
     "layer 'a': the config of a layer Dense: the key 'unitz' is not known"},
    {SEQUENCE(LAYER("Dense", "{\"name\": \"a\", \"units\": 3, \"kernel_constraint\": 1}", "")), HELIO_NOT_SUPPORTED,
     "layer 'a': the config of a layer Dense: 'kernel_constraint': expected null, got 1"},
    {SEQUENCE(LAYER("Dense", "{\"units\": 3}", "")), HELIO_INVALID_ARGUMENT, "a layer Dense has no 'name'"},
    {SEQUENCE(PLAIN("\"config\": {\"name\": \"a\", \"units\": 1}, \"call\": 1")), HELIO_NOT_SUPPORTED,
     "layer 'a': the key 'call' is not known"},
    {SEQUENCE(PLAIN("\"name\": \"b\", \"config\": {\"name\": \"a\", \"units\": 1}")), HELIO_INVALID_ARGUMENT,
     "layer 'a': expected the 'name' that stands in its config, got \"b\""},
    {SEQUENCE(PLAIN("\"module\": \"keras.src.ops.numpy\", \"config\": {\"name\": \"a\", \"units\": 1}")),
     HELIO_NOT_SUPPORTED, "layer 'a': expected 'module' keras.layers, got \"keras.src.ops.numpy\""},
    {SEQUENCE(PLAIN("\"registered_name\": \"mine>Dense\", \"config\": {\"name\": \"a\", \"units\": 1}")),
     HELIO_NOT_SUPPORTED, "layer 'a': expected 'registered_name' null, got \"mine>Dense\""},
    {SEQUENCE(PLAIN("\"shared_object_id\": \"1\", \"config\": {\"name\": \"a\", \"units\": 1}")),
     HELIO_INVALID_ARGUMENT, "layer 'a': expected a number as 'shared_object_id'"},
    {SEQUENCE(LAYER("InputLayer", "{\"name\": \"x\"}", "")), HELIO_INVALID_ARGUMENT, "layer 'x': 'batch_shape' is"},
    {SEQUENCE(LAYER("InputLayer", "{\"name\": \"x\", \"batch_shape\": [null, 3], \"sparse\": true}", "")),
     HELIO_NOT_SUPPORTED, "layer 'x': 'sparse': expected false, got true"},
    {SEQUENCE(LAYER("InputLayer", "{\"name\": \"x\", \"batch_shape\": [null, 3], \"dtype\": \"string\"}", "")),
     HELIO_NOT_SUPPORTED, "layer 'x': 'dtype': expected the name of one of our types, got \"string\""},
    {SEQUENCE(LAYER("InputLayer", "{\"name\": \"x\", \"batch_shape\": [null, -3]}", "")), HELIO_INVALID_ARGUMENT,
     "layer 'x': 'batch_shape': expected the shape of a batch"},
    {SEQUENCE(LAYER("InputLayer", "{\"name\": \"x\", \"batch_shape\": [1, 1, 1, 1, 1, 1, 1, 1, 1]}", "")),
     HELIO_INVALID_ARGUMENT, "layer 'x': 'batch_shape'"},
    {GRAPH(LAYER("InputLayer", "{\"name\": \"x\", \"batch_shape\": [8, 3]}", "")), HELIO_NOT_SUPPORTED,
     "layer 'x': 'batch_shape': a batch of a certain size"},
};

static const wrong wrong_graphs[] = {
    {GRAPH(INPUT("x")), HELIO_INVALID_ARGUMENT,
     "'output_layers': expected the name of a layer of the model, got \"y\""},
    {ENDS(INPUT("x"), "[\"x\", 0]", "[\"x\", 0, 0]"), HELIO_INVALID_ARGUMENT,
     "'input_layers': expected the name of a layer and two numbers, got [\"x\",0]"},
    {ENDS(INPUT("x"), "{\"a\": [\"x\", 0, 0]}", "[\"x\", 0, 0]"), HELIO_NOT_SUPPORTED,
     "'input_layers': expected a list"},
    {ENDS(INPUT("x"), "[\"x\", 0, 0]", "[\"x\", 1, 0]"), HELIO_INVALID_ARGUMENT,
     "'output_layers': expected a node that the layer has, got [\"x\",1,0]"},
    {ENDS(INPUT("x"), "[\"x\", 0, 0]", "[\"x\", 0, 1]"), HELIO_INVALID_ARGUMENT,
     "'output_layers': there is no output 1"},
    {ENDS(INPUT("x") "," INPUT("z"), "[\"x\", 0, 0]", "[\"x\", 0, 0]"), HELIO_INVALID_ARGUMENT,
     "layer 'z': no output depends on it"},
    {ENDS(INPUT("x") "," INPUT("z"), "[\"x\", 0, 0]", "[[\"x\", 0, 0], [\"z\", 0, 0]]"), HELIO_INVALID_ARGUMENT,
     "z (InputLayer), which is not among the model's inputs"},
    {ENDS(INPUT("x"), "[[\"x\", 0, 0], [\"x\", 0, 0]]", "[\"x\", 0, 0]"), HELIO_INVALID_ARGUMENT, "given twice"},
    {GRAPH(INPUT("x") "," INPUT("x") "," DENSE("y", FROM("x"))), HELIO_INVALID_ARGUMENT, "two layers 'x'"},
    {GRAPH(INPUT("x") "," DENSE("y", FROM("z"))), HELIO_INVALID_ARGUMENT,
     "layer 'y': node 0 of 'inbound_nodes': expected the name of a layer of the model, got \"z\""},
    {GRAPH(INPUT("x") "," DENSE("y", CALL(TENSOR("x", "1", "0")))), HELIO_INVALID_ARGUMENT,
     "layer 'y': node 0 of 'inbound_nodes': expected a node that the layer has, got [\"x\",1,0]"},
    {GRAPH(INPUT("x") "," DENSE("y", CALL(TENSOR("x", "0", "1")))), HELIO_INVALID_ARGUMENT,
     "layer 'y': node 0 of 'inbound_nodes': there is no output 1"},
    {GRAPH(INPUT("x") "," DENSE("y", CALL(TENSOR("x", "-1", "0")))), HELIO_INVALID_ARGUMENT,
     "a node that the layer has"},
    {GRAPH(INPUT("x") "," DENSE("y", CALL(TENSOR("x", "0", "4294967296")))), HELIO_INVALID_ARGUMENT, "a node that"},
    {GRAPH(INPUT("x") "," DENSE("y", CALL("[" TENSOR("x", "0", "0") "," TENSOR("x", "0", "0") "]"))),
     HELIO_INVALID_ARGUMENT, "layer 'y': node 0 of 'inbound_nodes': y (Dense): it takes 1 input, not 2"},
    {GRAPH(INPUT("x") "," DENSE("y", "[[\"x\", 0, 0, {}], [\"x\", 0, 0, {}]]")), HELIO_INVALID_ARGUMENT,
     "it takes 1 input, not 2"},
    {GRAPH(INPUT("x") "," DENSE("y", CALL(TENSOR("x", "0", "0") ", 5"))), HELIO_NOT_SUPPORTED,
     "layer 'y': node 0 of 'inbound_nodes': expected inputs as the only argument"},
    {GRAPH(INPUT("x") "," DENSE("y", CALL("5"))), HELIO_NOT_SUPPORTED, "expected what another layer gives, got 5"},
    {GRAPH(INPUT("x") "," DENSE("y", "5")), HELIO_NOT_SUPPORTED, "expected inputs as the only argument, got 5"},
    {GRAPH(INPUT("x") "," DENSE("y", CALL("[]"))), HELIO_NOT_SUPPORTED, "inputs as the only argument"},
    {GRAPH(INPUT("x") "," DENSE("y", "{\"args\": [" TENSOR("x", "0", "0") "], \"kwargs\": {\"training\": true}}")),
     HELIO_NOT_SUPPORTED, "layer 'y': node 0 of 'inbound_nodes': expected 'training' null or false, got true"},
    {GRAPH(INPUT("x") "," DENSE("y", "{\"args\": [" TENSOR("x", "0", "0") "], \"kwargs\": {\"mask\": 1}}")),
     HELIO_NOT_SUPPORTED, "expected 'mask' null, got 1"},
    {GRAPH(INPUT("x") "," DENSE("y", "{\"args\": [" TENSOR("x", "0", "0") "], \"kwargs\": {\"axis\": 1}}")),
     HELIO_NOT_SUPPORTED, "the key 'axis' is not known"},
    {GRAPH(INPUT("x") "," DENSE("y", "[[\"x\", 0, 0, {\"training\": true}]]")), HELIO_NOT_SUPPORTED, "'training'"},
    {GRAPH(INPUT("x") "," DENSE("y", "[[\"x\", 0, 0, 7]]")), HELIO_INVALID_ARGUMENT, "arguments by name, got 7"},
    {GRAPH(INPUT("x") "," DENSE("y", FROM("y"))), HELIO_INVALID_ARGUMENT, "layer 'y': its inputs depend on what it"},
    {GRAPH(INPUT("x") "," DENSE("a", FROM("y")) "," DENSE("y", FROM("a"))), HELIO_INVALID_ARGUMENT, "has a cycle"},
    {GRAPH(INPUT("x") "," DENSE("y", FROM("x")) "," DENSE("a", FROM("x"))), HELIO_INVALID_ARGUMENT,
     "layer 'a': no output depends on it"},
    {GRAPH(INPUT("x") "," DENSE("y", FROM("x")) "," DENSE("a", "")), HELIO_INVALID_ARGUMENT, "layer 'a': no output"},
    {GRAPH(INPUT("x") "," DENSE("y", "")), HELIO_INVALID_ARGUMENT, "a node that the layer has, got [\"y\",0,0]"},
    {GRAPH("{\"class_name\": \"Dense\", \"config\": " KEYS("y") ", \"inbound_nodes\": 5}"), HELIO_INVALID_ARGUMENT,
     "layer 'y': expected 'inbound_nodes': a list, got 5"},
    {ENDS(INPUT("x") "," DENSE("y", FROM("x")), "[\"y\", 0, 0]", "[\"y\", 0, 0]"), HELIO_INVALID_ARGUMENT,
     "input 0 of the model is not made by helio_input()"},
};

static void check_wrong(const wrong *all, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (helio_model_from_json(all[i].text)) fail_msg("it was read: %s", all[i].text);
    expect_error(all[i].status, all[i].part);
  }
}

static void test_wrong_texts(void **state) {
  (void)state;
  check_wrong(wrong_objects, COUNT_OF(wrong_objects));
  check_wrong(wrong_layers, COUNT_OF(wrong_layers));
  check_wrong(wrong_graphs, COUNT_OF(wrong_graphs));
  assert_null(helio_model_from_json(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "the JSON is NULL");
}

/* ---- hostile texts ---- */

static void refuse_truncated(golden *file, const char *name, const json_t *description, helio_model *model) {
  char *text = strdup(text_in(description, "json"));
  size_t length = strlen(text), step = length > 8000 ? 61 : 1;
  (void)file, (void)model;
  assert_non_null(text);
  for (size_t end = length - 1; end > step; end -= step) {
    text[end] = 0;
    if (helio_model_from_json(text)) fail_msg("%s: %zu of %zu bytes were read", name, end, length);
    expect_error(HELIO_INVALID_ARGUMENT, "not the JSON of a model");
  }
  free(text);
}

static void test_truncated(void **state) {
  (void)state;
  for_each_case("architectures", refuse_truncated);
}

/* Whatever becomes of it, it ends, and nothing stays behind; a model that comes out can be written. */
static void change_at_random(golden *file, const char *name, const json_t *description, helio_model *model) {
  static const char bytes[] = "0123456789-\"[]{},:xnull.e ";
  const char *text = text_in(description, "json");
  uint64_t seed = 17;
  (void)file, (void)name, (void)model;
  for (int i = 0; i < 60; i++) {
    char *changed = strdup(text);
    assert_non_null(changed);
    for (uint32_t count = 1 + next_random(&seed) % 3; count > 0; count--) {
      changed[next_random(&seed) % strlen(text)] = bytes[next_random(&seed) % (sizeof bytes - 1)];
    }
    helio_model *made = helio_model_from_json(changed);
    if (made) free(written_of(made));
    helio_release(made);
    helio_error_take(NULL);
    free(changed);
  }
}

static void test_changed(void **state) {
  (void)state;
  for_each_case("architectures", change_at_random);
}

/* `count` times one text, and then as often another. */
static char *repeated(const char *before, const char *text, int count, const char *between, const char *behind,
                      const char *after) {
  char *result = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&result, &bytes);
  assert_non_null(out);
  fputs(before, out);
  for (int i = 0; i < count; i++) fputs(text, out);
  fputs(between, out);
  for (int i = 0; i < count; i++) fputs(behind, out);
  fputs(after, out);
  assert_int_equal(fclose(out), 0);
  return result;
}

static void refuse(char *text, helio_status status, const char *part) {
  assert_null(helio_model_from_json(text));
  expect_error(status, part);
  free(text);
}

static void test_deep(void **state) {
  static const char begin[] = "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [";
  (void)state;
  refuse(repeated("", "[", 10000000, "", "]", ""), HELIO_NOT_SUPPORTED,
         "the JSON has 20000000 bytes, more than 8388608");
  refuse(repeated("", "[", 4000000, "", "]", ""), HELIO_INVALID_ARGUMENT, "maximum parsing depth");
  refuse(repeated("", "{\"config\": ", 600000, "1", "}", ""), HELIO_INVALID_ARGUMENT, "maximum parsing depth");
  refuse(repeated("", begin, 600, DENSE("a", ""), "]}}", ""), HELIO_NOT_SUPPORTED, "more than 32 deep");
  refuse(repeated("", begin, 33, DENSE("a", ""), "]}}", ""), HELIO_NOT_SUPPORTED, "more than 32 deep");
  char *text = repeated("", begin, 32, DENSE("a", ""), "]}}", "");
  helio_model *model = helio_model_from_json(text);
  assert_made(model);
  free(text);
  text = written_of(model);
  free(text);
  helio_release(model);
}

/* A chain of layers with numbers for names, each behind the one before. */
static char *long_graph(int count) {
  char *result = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&result, &bytes);
  assert_non_null(out);
  fprintf(out, "{\"class_name\": \"Functional\", \"config\": {\"name\": \"m\", \"layers\": [" INPUT("0"));
  for (int i = 1; i <= count; i++) {
    fprintf(out,
            ", {\"class_name\": \"Flatten\", \"config\": {\"name\": \"%d\"}, \"inbound_nodes\": [[[\"%d\", 0, 0]]]}", i,
            i - 1);
  }
  fprintf(out, "], \"input_layers\": [\"0\", 0, 0], \"output_layers\": [\"%d\", 0, 0]}}", count);
  assert_int_equal(fclose(out), 0);
  return result;
}

/* One layer, applied to what it gave, again and again. */
static char *long_loop(int count) {
  char *result = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&result, &bytes);
  assert_non_null(out);
  fprintf(
      out,
      "{\"class_name\": \"Functional\", \"config\": {\"name\": \"m\", \"layers\": [" INPUT(
          "x") ", {\"class_name\": \"Flatten\", \"config\": {\"name\": \"y\"}, \"inbound_nodes\": [[[\"x\", 0, 0]]");
  for (int i = 0; i < count; i++) fprintf(out, ", [[\"y\", %d, 0]]", i);
  fprintf(out, "]}], \"input_layers\": [\"x\", 0, 0], \"output_layers\": [\"y\", %d, 0]}}", count);
  assert_int_equal(fclose(out), 0);
  return result;
}

static void test_long(void **state) {
  (void)state;
  char *text = long_graph(1000);
  helio_model *model = helio_model_from_json(text);
  assert_made(model);
  assert_int_equal(helio_model_layer_count(model), 1001);
  char *written = written_of(model);
  free(written);
  free(text);
  helio_release(model);
  refuse(long_graph(4096), HELIO_NOT_SUPPORTED, "there are more than 4096 layers");
  refuse(long_loop(5000), HELIO_NOT_SUPPORTED, "layer 'y': there are more than 4096 nodes");
  refuse(repeated("{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [",
                  "{\"class_name\": \"Flatten\", \"config\": {\"name\": \"a\"}}, ", 1, "1", "", "]}}"),
         HELIO_INVALID_ARGUMENT, "got 1");
}

/* Each model applies the one inside it twice: thirty lines that would be a thousand million calls. */
static void test_doubling(void **state) {
  static const char begin[] =
      "{\"class_name\": \"Functional\", \"config\": {\"name\": \"y\", \"layers\": [" INPUT("x") ",";
  static const char end[] =
      ", \"inbound_nodes\": [[[\"x\", 0, 0]], [[\"y\", 1, 0]]]}], \"input_layers\": [\"x\", 0, 0], "
      "\"output_layers\": [\"y\", 2, 0]}";
  static const char none[] = "{\"class_name\": \"Functional\", \"config\": {\"name\": \"y\", \"layers\": [" INPUT(
      "x") "], \"input_layers\": [\"x\", 0, 0], \"output_layers\": [\"x\", 0, 0]}";
  static const char one[] = "{\"class_name\": \"Functional\", \"config\": {\"name\": \"y\", \"layers\": [" INPUT(
      "x") "," DENSE("y", FROM("x")) "], \"input_layers\": [\"x\", 0, 0], \"output_layers\": [\"y\", 0, 0]}";
  (void)state;
  refuse(repeated("", begin, 30, one, end, "}"), HELIO_NOT_SUPPORTED, "more than 65536 calls of layers");
  refuse(repeated("", begin, 30, none, end, "}"), HELIO_NOT_SUPPORTED, "more than 65536 calls of layers");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_keras_models),
      TEST(test_models_of_keras_2),
      TEST(test_written),
      TEST(test_deferred),
      TEST(test_oldest_form),
      TEST(test_own_models),
      TEST(test_model_of_ones_own),
      TEST(test_files),
      TEST(test_wrong_files),
      TEST(test_small_texts),
      TEST(test_wrong_texts),
      TEST(test_truncated),
      TEST(test_changed),
      TEST(test_deep),
      TEST(test_long),
      TEST(test_doubling),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, start_afresh, start_afresh);
}
