/* SPDX-License-Identifier: Apache-2.0 */
/* Models from Keras' JSON and back, and files that hold both architecture and weights. golden/nn has what Keras 3 and
 * Keras 2 wrote, with their summaries, weights and predictions. */
#include "architectures.h"
#include "nn/model.h"

/* ---- Keras' models ---- */

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

/* Also one that JSON has to quote; and none once it is taken away. */
static void test_notes(void **state) {
  static const char *const notes[] = {"{\"scale\": 255}", "two\nlines \xc3\xbc", NULL};
  char folder[64], path[100];
  (void)state;
  make_folder(folder);
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  helio_model *model = chain();
  assert_null(helio_model_note(model));
  for (size_t i = 0; i < COUNT_OF(notes); i++) {
    assert_ok(helio_model_set_note(model, notes[i]));
    assert_ok(helio_save_model(model, path));
    helio_model *loaded = helio_load_model(path);
    assert_made(loaded);
    if (notes[i]) assert_string_equal(helio_model_note(loaded), notes[i]);
    if (!notes[i]) assert_null(helio_model_note(loaded));
    helio_release(loaded);
  }
  assert_ok(helio_model_set_note(model, "\xff"));
  assert_int_equal(helio_save_model(model, path), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "UTF-8");
  assert_int_equal(helio_model_set_note(NULL, "a"), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "NULL");
  helio_release(model);
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

/* jansson's allocations, of which one fails. What test_no_memory makes fail are the library's own. */
static long allocations_left;

static void *allocate(size_t bytes) {
  if (--allocations_left == 0) errno = ENOMEM;
  return allocations_left == 0 ? NULL : malloc(bytes);
}

static void test_no_memory_for_json(void **state) {
  (void)state;
  helio_model *model = graph();
  char *whole = written_of(model);
  long failed = 0, k = 1;
  for (bool reached = true; reached; k++) {
    allocations_left = k;
    json_set_alloc_funcs(allocate, free);
    char *text = helio_model_to_json(model);
    json_set_alloc_funcs(malloc, free);
    reached = allocations_left <= 0;
    failed += !text;
    if (text) assert_string_equal(text, whole);
    if (!text) expect_error(HELIO_OUT_OF_MEMORY, "no memory");
    free(text);
  }
  assert_true(failed > 200 && failed >= k - 10);
  free(whole);
  helio_release(model);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_keras_models),
      TEST(test_models_of_keras_2),
      TEST(test_written),
      TEST(test_deferred),
      TEST(test_oldest_form),
      TEST(test_own_models),
      TEST(test_model_of_ones_own),
      TEST(test_no_memory_for_json),
      TEST(test_files),
      TEST(test_notes),
      TEST(test_wrong_files),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, start_afresh, start_afresh);
}
