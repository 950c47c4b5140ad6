/* SPDX-License-Identifier: Apache-2.0 */
/* JSON of models that is wrong, cut off, changed at random, or made to do harm: it is refused with the layer and the
 * key at fault. HELIO_TEST_CHANGES: how many changes of each model are tried (60). */
#include "architectures.h"

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
      "\xef\xbb\xbf" SEQUENCE(DENSE("y", "")), /* as some editors begin a text */
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
    {"{\"class_name\": \"Seqential\", \"module\": \"keras\", \"config\": {\"name\": \"m\"}}", HELIO_NOT_SUPPORTED,
     "a model of class 'Seqential'; did you mean 'Sequential'?"},
    {"{\"class_name\": \"Sequential\", \"config\": {\"name\": \"a\\u0000b\"}}", HELIO_INVALID_ARGUMENT,
     "\\u0000 is not allowed near"},
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
    {SEQUENCE(LAYER("LSTM", "{\"name\": \"a\"}", "")), HELIO_NOT_SUPPORTED,
     "layer 'a': there is no layer of class 'LSTM'; there are "},
    {SEQUENCE(LAYER("Dense", "{\"name\": \"a\"}", "")), HELIO_INVALID_ARGUMENT,
     "layer 'a': the config of a layer Dense: the key 'units' is missing"},
    {SEQUENCE(LAYER("Conv1D", "{\"name\": \"a\", \"kernel_size\": 3}", "")), HELIO_INVALID_ARGUMENT,
     "the key 'filters' is missing"},
    {SEQUENCE(LAYER("Conv2D", "{\"name\": \"a\", \"filters\": 3}", "")), HELIO_INVALID_ARGUMENT,
     "the key 'kernel_size' is missing"},
    {SEQUENCE(LAYER("DepthwiseConv2D", "{\"name\": \"a\"}", "")), HELIO_INVALID_ARGUMENT,
     "the key 'kernel_size' is missing"},
    {SEQUENCE(LAYER("Embedding", "{\"name\": \"a\", \"input_dim\": 3}", "")), HELIO_INVALID_ARGUMENT,
     "the key 'output_dim' is missing"},
    {SEQUENCE(LAYER("Reshape", "{\"name\": \"a\"}", "")), HELIO_INVALID_ARGUMENT, "the key 'target_shape' is missing"},
    {SEQUENCE(LAYER("Permute", "{\"name\": \"a\"}", "")), HELIO_INVALID_ARGUMENT, "the key 'dims' is missing"},
    {SEQUENCE(LAYER("Dropout", "{\"name\": \"a\"}", "")), HELIO_INVALID_ARGUMENT, "the key 'rate' is missing"},
    {SEQUENCE(LAYER("Activation", "{\"name\": \"a\"}", "")), HELIO_INVALID_ARGUMENT, "the key 'activation' is missing"},
    {SEQUENCE(LAYER("Rescaling", "{\"name\": \"a\"}", "")), HELIO_INVALID_ARGUMENT, "the key 'scale' is missing"},
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
     HELIO_NOT_SUPPORTED, "layer 'a': Dense of keras.ops, as in x * 2 + 1, is no layer and cannot be read"},
    {SEQUENCE(PLAIN("\"module\": \"mine.layers\", \"config\": {\"name\": \"a\", \"units\": 1}")), HELIO_NOT_SUPPORTED,
     "layer 'a': expected 'module' keras.layers, got \"mine.layers\""},
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
    {SEQUENCE(LAYER("InputLayer", "{\"name\": \"x\", \"batch_shape\": [null, 1099511627776, 1099511627776]}", "")),
     HELIO_INVALID_ARGUMENT,
     "layer 'x': 'batch_shape': expected a shape that is not too large, got [null,1099511627776"},
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
  size_t length = strlen(text), step = strcmp(name, "shared") == 0 ? 1 : 61; /* every one of one text */
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

/* Whatever becomes of a text, it ends, and nothing stays behind; a model that comes out can be written. */
static void try_text(const char *text) {
  helio_model *model = helio_model_from_json(text);
  if (!model == !helio_error_pending()) fail_msg("both a model and an error, or neither, of %s", text);
  if (model) free(written_of(model));
  helio_release(model);
  helio_error_take(NULL);
}

static void change_bytes(golden *file, const char *name, const json_t *description, helio_model *model) {
  static const char bytes[] = "0123456789-\"[]{},:xnull.e ";
  const char *text = text_in(description, "json");
  uint64_t seed = 17;
  (void)file, (void)name, (void)model;
  for (int i = 0; i < 40; i++) {
    char *changed = strdup(text);
    assert_non_null(changed);
    for (uint32_t count = 1 + next_random(&seed) % 3; count > 0; count--) {
      changed[next_random(&seed) % strlen(text)] = bytes[next_random(&seed) % (sizeof bytes - 1)];
    }
    try_text(changed);
    free(changed);
  }
}

/* One of all objects and lists inside, the value itself among them, each as likely as the others. */
static json_t *pick(json_t *value, uint64_t *seed, uint32_t *met) {
  json_t *picked = next_random(seed) % ++*met == 0 ? value : NULL, *inside;
  const char *key;
  size_t i;
  json_object_foreach(value, key, inside) {
    json_t *other = json_is_object(inside) || json_is_array(inside) ? pick(inside, seed, met) : NULL;
    if (other) picked = other;
  }
  json_array_foreach(value, i, inside) {
    json_t *other = json_is_object(inside) || json_is_array(inside) ? pick(inside, seed, met) : NULL;
    if (other) picked = other;
  }
  return picked;
}

/* Something of the text itself, in another place, or something simple. */
static json_t *another(json_t *whole, uint64_t *seed) {
  static const char *const simple[] = {"null", "true", "-1",        "0",  "1",  "2",
                                       "0.5",  "\"\"", "\"dense\"", "[]", "{}", "[0]"};
  uint32_t met = 0;
  if (next_random(seed) % 2) return json_deep_copy(pick(whole, seed, &met));
  return json_loads(simple[next_random(seed) % COUNT_OF(simple)], JSON_DECODE_ANY, NULL);
}

static void change_value(json_t *whole, uint64_t *seed) {
  uint32_t met = 0;
  json_t *place = pick(whole, seed, &met), *value = another(whole, seed);
  size_t members = json_object_size(place), elements = json_array_size(place);
  void *member = json_object_iter(place);
  for (uint32_t skip = members ? next_random(seed) % (uint32_t)members : 0; skip > 0; skip--) {
    member = json_object_iter_next(place, member);
  }
  bool removes = next_random(seed) % 3 == 0;
  size_t index = elements ? next_random(seed) % elements : 0;
  if (members && removes) json_object_del(place, json_object_iter_key(member));
  if (members && !removes) json_object_iter_set(place, member, value);
  if (elements && removes) json_array_remove(place, index);
  if (elements && !removes) json_array_set(place, index, value);
  json_decref(value);
}

static void change_values(golden *file, const char *name, const json_t *description, helio_model *model) {
  const char *more = getenv("HELIO_TEST_CHANGES");
  uint64_t seed = 23;
  (void)file, (void)name, (void)model;
  for (int i = 0; i < (more ? atoi(more) : 60); i++) {
    json_t *json = json_loads(text_in(description, "json"), 0, NULL);
    for (uint32_t count = 1 + next_random(&seed) % 2; count > 0; count--) change_value(json, &seed);
    char *changed = json_dumps(json, 0);
    assert_non_null(changed);
    HELIO_POOL try_text(changed);
    free(changed);
    json_decref(json);
  }
}

static void test_changed(void **state) {
  (void)state;
  for_each_case("architectures", change_bytes);
  for_each_case("architectures", change_values);
  for_each_case("old_architectures", change_values);
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
  refuse(repeated("", begin, 30, one, end, "}"), HELIO_NOT_SUPPORTED, "more than 16384 calls of layers");
  refuse(repeated("", begin, 30, none, end, "}"), HELIO_NOT_SUPPORTED, "more than 16384 calls of layers");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_small_texts), TEST(test_wrong_texts), TEST(test_truncated), TEST(test_changed),
      TEST(test_deep),        TEST(test_long),        TEST(test_doubling),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, start_afresh, start_afresh);
}
