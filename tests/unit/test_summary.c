/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of models are, to the byte, those that Keras has printed: golden/nn/summaries.json and
 * summary_subclass.json. */
#include <fcntl.h>
#include <jansson.h>
#include <pty.h>
#include <termios.h>

#include "nn/model.h"
#include "summary_models.h"
#include "support.h"

/* ---- comparing ---- */

static const struct model_case {
  const char *name;
  helio_model *(*build)(void);
} plain_cases[] = {{"reuters", reuters},
                   {"mnist", mnist},
                   {"linear", linear},
                   {"shared", shared},
                   {"normalized", normalized},
                   {"nested", nested},
                   {"nested_functional", nested_functional},
                   {"long_name", long_name},
                   {"trained", two_dense},
                   {"frozen", frozen}},
  more_cases[] = {{"subclass", subclass},
                  {"deferred", deferred},
                  {"built", built},
                  {"several_outputs", several_outputs},
                  {"chain_of_several", chain_of_several},
                  {"reversed_order", reversed_order},
                  {"second_graph", second_graph},
                  {"twice", twice},
                  {"outputs_on_the_way", outputs_on_the_way},
                  {"words", words},
                  {"long_title", long_title},
                  {"large", large},
                  {"half", half},
                  {"shared", shared}};

static json_t *read_golden(const char *file) {
  char path[PATH_MAX];
  const char *source = getenv("HELIO_TEST_SOURCE");
  json_error_t error;
  snprintf(path, sizeof path, "%s/golden/nn/%s", source ? source : "..", file);
  json_t *content = json_load_file(path, 0, &error);
  if (!content) fail_msg("%s: %s", path, error.text);
  return content;
}

static const char *text_in(const json_t *content, const char *name, const char *key) {
  const char *text = json_string_value(json_object_get(json_object_get(json_object_get(content, "cases"), name), key));
  if (!text) fail_msg("the golden file has no %s of %s", key, name);
  return text;
}

static void assert_text(const char *name, char *text, const char *expected) {
  assert_made(text);
  if (strcmp(text, expected) != 0) fail_msg("%s:\n%s\nexpected:\n%s", name, text, expected);
  free(text);
}

/* What Adam has after a step of the model "trained": two slots for each of 11 weights, steps and learning rate. */
static helio_variables adam_variables(helio_variable *at[3]) {
  at[0] = helio_variable(helio_fill(HELIO_SHAPE(22), 0));
  at[1] = helio_variable(helio_fill(HELIO_SCALAR, 0, .type = HELIO_INT64));
  at[2] = helio_variable(helio_fill(HELIO_SCALAR, 0));
  for (int i = 0; i < 3; i++) assert_made(at[i]);
  return (helio_variables){3, at};
}

static void test_summaries(void **state) {
  (void)state;
  json_t *content = read_golden("summaries.json");
  assert_int_equal(json_object_size(json_object_get(content, "cases")), COUNT_OF(plain_cases));
  for (size_t i = 0; i < COUNT_OF(plain_cases); i++) {
    HELIO_POOL {
      const char *name = plain_cases[i].name;
      helio_variable *at[3];
      helio_variables adam = adam_variables(at);
      const helio_variables *optimizer = strcmp(name, "trained") == 0 ? &adam : NULL;
      helio_model *model = plain_cases[i].build();
      assert_made(model);
      assert_text(name, hi_model_summary_text(model, 0, optimizer), text_in(content, name, "default"));
      assert_text(name, hi_model_summary_text(model, 80, optimizer), text_in(content, name, "80"));
      if (!optimizer) assert_text(name, helio_model_summary_text(model, 0), text_in(content, name, "default"));
      helio_release(model);
    }
  }
  json_decref(content);
}

static void test_more_summaries(void **state) {
  (void)state;
  json_t *content = read_golden("summary_subclass.json");
  assert_int_equal(json_object_size(json_object_get(content, "cases")), COUNT_OF(more_cases));
  for (size_t i = 0; i < COUNT_OF(more_cases); i++) {
    HELIO_POOL {
      helio_model *model = more_cases[i].build();
      const char *columns = NULL;
      json_t *text = NULL;
      assert_made(model);
      json_object_foreach(json_object_get(json_object_get(content, "cases"), more_cases[i].name), columns, text) {
        if (strcmp(columns, "unchanged") == 0) continue;
        assert_text(more_cases[i].name, helio_model_summary_text(model, atoi(columns)), json_string_value(text));
      }
      helio_release(model);
    }
  }
  json_decref(content);
}

/* The one place where more is shown than Keras does: it does not know the shapes of layers that build nothing in a
 * model of the user's own, and has a question mark there. */
static void test_question_marks(void **state) {
  (void)state;
  json_t *content = read_golden("summary_subclass.json");
  const char *theirs = text_in(content, "subclass", "unchanged");
  int marks = 0;
  helio_model *model = subclass();
  char *text = helio_model_summary_text(model, 0), *ours = text;
  assert_made(text);
  while (*ours && *theirs) {
    size_t length = strcspn(ours, "\n") + 1, their_length = strcspn(theirs, "\n") + 1;
    if (length != their_length || memcmp(ours, theirs, length) != 0) {
      const char *mark = strstr(theirs, "│ ? ");
      if (!mark || mark > theirs + their_length) fail_msg("%s\nis not\n%s", ours, theirs);
      marks++;
    }
    ours += length;
    theirs += their_length;
  }
  assert_int_equal(marks, 2);
  assert_string_equal(ours, theirs);
  free(text);
  helio_release(model);
  json_decref(content);
}

/* ---- what the issue names ---- */

static void assert_rows(helio_model *model, const char *const (*rows)[3], int count) {
  assert_made(model);
  char *text = helio_model_summary_text(model, 0), *line = text;
  assert_made(text);
  for (int i = 0; i < count; i++) {
    char expected[200];
    snprintf(expected, sizeof expected, "│ %-31s │ %-22s │ %13s │\n", rows[i][0], rows[i][1], rows[i][2]);
    line = strstr(line, expected);
    if (!line) fail_msg("there is no line\n%sin\n%s", expected, text);
  }
  free(text);
}

static void test_reuters(void **state) {
  (void)state;
  static const char *const rows[][3] = {{"embedding (Embedding)", "(None, 300, 7)", "216,874"},
                                        {"conv1d (Conv1D)", "(None, 296, 64)", "2,304"},
                                        {"max_pooling1d (MaxPooling1D)", "(None, 148, 64)", "0"},
                                        {"conv1d_1 (Conv1D)", "(None, 146, 32)", "6,176"},
                                        {"max_pooling1d_1 (MaxPooling1D)", "(None, 73, 32)", "0"},
                                        {"flatten (Flatten)", "(None, 2336)", "0"},
                                        {"dense (Dense)", "(None, 46)", "107,502"}};
  helio_model *model = reuters(), *second = reuters(); /* names count within a model */
  assert_rows(model, rows, COUNT_OF(rows));
  assert_rows(second, rows, COUNT_OF(rows));
  assert_int_equal(helio_count_params(model), 332856);
  char *text = helio_model_summary_text(model, 0);
  assert_made(text);
  assert_non_null(strstr(text, "Model: \"sequential\"\n"));
  assert_non_null(strstr(text, "\n Total params: 332,856 (1.27 MB)\n Trainable params: 332,856 (1.27 MB)\n"
                               " Non-trainable params: 0 (0.00 B)\n"));
  free(text);
  helio_release(model);
  helio_release(second);
}

static void test_mnist(void **state) {
  (void)state;
  static const char *const rows[][3] = {{"conv2d (Conv2D)", "(None, 26, 26, 16)", "160"},
                                        {"max_pooling2d (MaxPooling2D)", "(None, 13, 13, 16)", "0"},
                                        {"conv2d_1 (Conv2D)", "(None, 11, 11, 32)", "4,640"},
                                        {"max_pooling2d_1 (MaxPooling2D)", "(None, 5, 5, 32)", "0"},
                                        {"flatten (Flatten)", "(None, 800)", "0"},
                                        {"dense (Dense)", "(None, 10)", "8,010"}};
  helio_model *model = mnist();
  assert_rows(model, rows, COUNT_OF(rows));
  assert_int_equal(helio_count_params(model), 12810);
  helio_release(model);
}

/* A layer that another model has used with another shape shows the shape that it has here. */
static void test_layer_of_two_models(void **state) {
  (void)state;
  helio_layer *layer = helio_conv1d(3, 2);
  helio_model *first = helio_sequential({layer}, .input_shape = HELIO_SHAPE(9, 2));
  helio_model *second = helio_sequential({layer, helio_flatten()}, .input_shape = HELIO_SHAPE(5, 2));
  assert_rows(first, (const char *const[][3]){{"conv1d (Conv1D)", "(None, 8, 3)", "15"}}, 1);
  assert_rows(
      second,
      (const char *const[][3]){{"conv1d (Conv1D)", "(None, 4, 3)", "15"}, {"flatten (Flatten)", "(None, 12)", "0"}}, 2);
  helio_release(first);
  helio_release(second);
}

/* ---- lines of all lengths ---- */

/* Enough for the characters of these models. */
static int columns_of(const char *line) {
  int columns = 0;
  for (; *line && *line != '\n'; line++) {
    if ((*line & 0xc0) != 0x80) columns++;
    if (strncmp(line, "層", 3) == 0) columns++;
    if (strncmp(line, "\u0301", 2) == 0) columns--;
  }
  return columns;
}

static void assert_straight(helio_model *model, int columns) {
  char *text = helio_model_summary_text(model, columns);
  assert_made(text);
  assert_int_equal(strncmp(text, "Model: \"", 8), 0);
  int lines = 0;
  for (char *line = strchr(text, '\n') + 1; *line != ' '; line = strchr(line, '\n') + 1, lines++) {
    if (columns_of(line) != columns) fail_msg("in %d columns:\n%s", columns, text);
  }
  assert_true(lines >= 2 * helio_model_layer_count(model) + 3);
  free(text);
}

static void test_all_lengths(void **state) {
  (void)state;
  helio_model *const models[] = {mnist(), shared(), long_name(), words()};
  for (size_t i = 0; i < COUNT_OF(models); i++) {
    assert_made(models[i]);
    for (int columns = 24; columns <= 200; columns++) assert_straight(models[i], columns);
    helio_release(models[i]);
  }
}

/* Bytes that are no UTF-8 do no harm. */
static void test_broken_names(void **state) {
  (void)state;
  helio_model *model = helio_sequential(
      {helio_dense(1, .name = "\xe5\xb1"), helio_dense(1, .name = "\x80\xff\xf0 a"), helio_dense(1, .name = "  ")},
      .input_shape = HELIO_SHAPE(1), .name = "\xc3");
  assert_made(model);
  for (int columns = 18; columns <= 100; columns++) {
    char *text = helio_model_summary_text(model, columns);
    assert_made(text);
    free(text);
  }
  helio_release(model);
}

/* ---- standard output ---- */

/* Writes the summary while standard output is a file. */
static helio_status summary_into(helio_model *model, const char *path) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), kept = dup(STDOUT_FILENO);
  assert_true(file >= 0 && kept >= 0);
  fflush(stdout);
  assert_true(dup2(file, STDOUT_FILENO) >= 0);
  helio_status status = helio_model_summary(model);
  assert_true(dup2(kept, STDOUT_FILENO) >= 0);
  close(file);
  close(kept);
  return status;
}

static void test_printed(void **state) {
  (void)state;
  char path[] = "/tmp/helio-summary-XXXXXX", written[8192] = "";
  int file = mkstemp(path);
  assert_true(file >= 0);
  helio_model *model = mnist();
  assert_made(model);
  assert_ok(summary_into(model, path));
  assert_true(read(file, written, sizeof written - 1) > 0);
  assert_text("mnist", helio_model_summary_text(model, 0), written);
  assert_int_equal(summary_into(model, "/dev/full"), HELIO_IO_FAILURE);
  expect_error(HELIO_IO_FAILURE, "standard output");
  clearerr(stdout);
  close(file);
  unlink(path);
  helio_release(model);
}

/* ---- a terminal ---- */

/* What a terminal so wide is shown, in this locale; to be freed. */
static char *shown_on_terminal(helio_model *model, int columns, const char *locale) {
  struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
  struct termios raw;
  char *text = calloc(1, 1 << 16);
  int terminal, program, kept = dup(STDOUT_FILENO);
  assert_int_equal(openpty(&terminal, &program, NULL, NULL, &size), 0);
  assert_int_equal(tcgetattr(program, &raw), 0);
  cfmakeraw(&raw); /* lines end as they were written */
  assert_int_equal(tcsetattr(program, TCSANOW, &raw), 0);
  setenv("LC_ALL", locale, 1);
  fflush(stdout);
  assert_true(dup2(program, STDOUT_FILENO) >= 0);
  helio_status status = helio_model_summary(model);
  assert_true(dup2(kept, STDOUT_FILENO) >= 0);
  assert_ok(status);
  assert_int_equal(fcntl(terminal, F_SETFL, O_NONBLOCK), 0);
  ssize_t got, bytes = 0;
  while ((got = read(terminal, text + bytes, (size_t)((1 << 16) - 1 - bytes))) > 0) bytes += got;
  close(terminal);
  close(program);
  close(kept);
  return text;
}

/* As wide as Keras makes it where there is no terminal, or as fits. */
static void test_on_a_terminal(void **state) {
  (void)state;
  static const int widths[][2] = {{200, 0}, {80, 0}, {76, 0}, {75, 75}, {40, 40}, {24, 24}, {10, 24}, {1, 24}};
  helio_model *models[] = {linear(), shared()};
  for (size_t i = 0; i < COUNT_OF(widths) * COUNT_OF(models); i++) {
    helio_model *model = models[i % COUNT_OF(models)];
    const int *width = widths[i / COUNT_OF(models)];
    char *shown = shown_on_terminal(model, width[0], "en_US.UTF-8");
    assert_text("on a terminal", helio_model_summary_text(model, width[1]), shown);
    free(shown);
  }
  for (size_t i = 0; i < COUNT_OF(models); i++) helio_release(models[i]);
}

static void test_on_a_terminal_without_utf8(void **state) {
  (void)state;
  helio_model *model = helio_sequential(
      {helio_dense(1, .name = "gr\303\266\303\237e_\346\227\245"), helio_dense(1, .name = "a_long_name_for_a_layer")},
      .input_shape = HELIO_SHAPE(1), .name = "line");
  assert_made(model);
  assert_text("without UTF-8", shown_on_terminal(model, 40, "C"),
              "Model: \"line\"\n"
              "+-----------------+------------+-------+\n"
              "|                 | Output     | Param |\n"
              "| Layer (type)    | Shape      |     # |\n"
              "+-----------------+------------+-------+\n"
              "| gr??e_??        | (None, 1)  |     2 |\n"
              "| (Dense)         |            |       |\n"
              "+-----------------+------------+-------+\n"
              "| a_long_name_fo. | (None, 1)  |     2 |\n"
              "| (Dense)         |            |       |\n"
              "+-----------------+------------+-------+\n"
              " Total params: 4 (16.00 B)\n"
              " Trainable params: 4 (16.00 B)\n"
              " Non-trainable params: 0 (0.00 B)\n");
  helio_release(model);
}

/* ---- wrong use ---- */

static void assert_no_summary(helio_model *model, helio_status status, const char *part) {
  assert_null(helio_model_summary_text(model, 0));
  expect_error(status, part);
  assert_int_equal(helio_model_summary(model), status);
  expect_error(status, part);
}

static void test_not_built(void **state) {
  (void)state;
  helio_model *chain = helio_sequential({helio_dense(3), helio_dense(2)});
  assert_no_summary(chain, HELIO_WRONG_STATE, "has no variables yet");
  assert_made(helio_call(chain, helio_fill(HELIO_SHAPE(1, 2), 0)));
  char *text = helio_model_summary_text(chain, 0);
  assert_made(text);
  free(text);
  helio_release(chain);

  helio_model *own = uncalled_subclass(), *empty = helio_sequential();
  assert_no_summary(own, HELIO_WRONG_STATE, "net (Model) has no variables yet");
  assert_no_summary(empty, HELIO_WRONG_STATE, "has no layers");
  helio_release(own);
  helio_release(empty);
}

static void test_wrong_use(void **state) {
  (void)state;
  assert_no_summary(NULL, HELIO_INVALID_ARGUMENT, "NULL");
  assert_no_summary(helio_dense(1), HELIO_INVALID_ARGUMENT, "not a model");
  helio_model *chain = mnist(), *graph = shared();
  assert_made(graph);
  static const int wrong[] = {-1, 1, 15, 10001, INT_MAX, INT_MIN};
  for (size_t i = 0; i < COUNT_OF(wrong); i++) {
    assert_null(helio_model_summary_text(chain, wrong[i]));
    expect_error(HELIO_INVALID_ARGUMENT, wrong[i] > 100 ? "too many for a summary" : "too few for a summary");
  }
  assert_null(helio_model_summary_text(graph, 20));
  expect_error(HELIO_INVALID_ARGUMENT, "20 columns are too few");
  helio_release(chain);
  helio_release(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_summaries),
      TEST(test_more_summaries),
      TEST(test_question_marks),
      TEST(test_reuters),
      TEST(test_mnist),
      TEST(test_layer_of_two_models),
      TEST(test_all_lengths),
      TEST(test_broken_names),
      TEST(test_printed),
      TEST(test_not_built),
      TEST(test_wrong_use),
      TEST(test_on_a_terminal),
      TEST(test_on_a_terminal_without_utf8),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
