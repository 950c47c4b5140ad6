/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of a training as text, against what Keras draws (golden/train, made by make_bar.py there). */
#include <inttypes.h>
#include <locale.h>
#include <math.h>

#include "data_files.h"
#include "train/bar.h"

enum { VALUES = 32, ENDLESS = 1000000 };

/* ---- running out of memory ---- */

static int allocations_left = -1; /* of realloc(); -1: as many as are wanted */

void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes) {
  if (allocations_left == 0) return NULL;
  if (allocations_left > 0) allocations_left--;
  return __real_realloc(memory, bytes);
}

/* ---- what Keras draws ---- */

typedef struct golden {
  FILE *file;
  char *state, *expected; /* the two lines of a case, without their newlines */
  size_t state_room, expected_room;
  bool on_terminal;
  hi_bar_state bar; /* with colours and room for all */
  const char *names[VALUES];
  double values[VALUES];
} golden;

static void open_golden(golden *from, const char *name) {
  *from = (golden){.file = fopen(golden_data(name), "r")};
  assert_non_null(from->file);
  assert_true(getline(&from->state, &from->state_room, from->file) > 0);
  assert_int_equal(from->state[0], '#');
}

static void close_golden(golden *from) {
  fclose(from->file);
  free(from->state);
  free(from->expected);
}

static bool next_line(FILE *file, char **line, size_t *room) {
  if (getline(line, room, file) < 0) return false;
  (*line)[strcspn(*line, "\n")] = 0;
  return true;
}

static void read_values(golden *from, char *at) {
  from->bar.names = from->names;
  from->bar.values = from->values;
  for (char *word = strtok(at, " "); word; word = strtok(NULL, " ")) {
    int index = from->bar.value_count++;
    char *equals = strchr(word, '=');
    assert_true(equals && index < VALUES);
    *equals = 0;
    from->names[index] = word;
    from->values[index] = strtod(equals + 1, NULL);
  }
}

static bool next_case(golden *from) {
  if (!next_line(from->file, &from->state, &from->state_room)) return false;
  assert_true(next_line(from->file, &from->expected, &from->expected_room));
  if (strncmp(from->state, "epoch ", 6) == 0) return true;
  int verbose, finished, read = 0;
  hi_bar_state *bar = &from->bar;
  *bar = (hi_bar_state){.utf8 = true, .color = true};
  assert_int_equal(sscanf(from->state, "%d %" SCNd64 " %" SCNd64 " %lf %lf %d%n", &verbose, &bar->target, &bar->step,
                          &bar->seconds, &bar->first_step, &finished, &read),
                   6);
  from->on_terminal = verbose == 1;
  bar->columns = from->on_terminal ? ENDLESS : 0;
  bar->finished = finished != 0;
  read_values(from, from->state + read);
  return true;
}

/* As many as there are on a terminal, one after another. */
static bool next_on_terminal(golden *from) {
  while (next_case(from)) {
    if (strncmp(from->state, "epoch ", 6) != 0 && from->on_terminal) return true;
  }
  return false;
}

/* The line is this text, and what moves the cursor around it. */
static void assert_line(const hi_bar_state *bar, const char *expected) {
  char *whole = NULL, *line = hi_bar_line(bar);
  assert_made(line);
  assert_true(asprintf(&whole, "\r%s\x1b[K%s", expected, bar->finished ? "\n" : "") > 0);
  assert_string_equal(line, whole);
  free(whole);
  free(line);
}

static void check_all_cases(void) {
  golden from;
  int count = 0;
  open_golden(&from, "train/bar.txt");
  for (; next_case(&from); count++) {
    long long epoch, epochs;
    bool is_epoch = sscanf(from.state, "epoch %lld %lld", &epoch, &epochs) == 2;
    if (!is_epoch && from.on_terminal) {
      assert_line(&from.bar, from.expected);
      continue;
    }
    char *text = is_epoch ? hi_bar_epoch(epoch, epochs) : hi_bar_line(&from.bar);
    assert_made(text);
    if (from.expected[0]) strcat(from.expected, "\n"); /* in place of the one that was cut off */
    assert_string_equal(text, from.expected);
    free(text);
  }
  assert_true(count > 400);
  close_golden(&from);
}

static void test_draws_as_keras(void **state) {
  (void)state;
  check_all_cases();
}

static void test_any_locale(void **state) {
  (void)state;
  const char *names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR", "pt_BR.UTF-8", "ru_RU.UTF-8"};
  bool found = false;
  for (size_t i = 0; i < COUNT_OF(names) && !found; i++) {
    found = setlocale(LC_ALL, names[i]) && strcmp(localeconv()->decimal_point, ",") == 0;
  }
  if (!found) SKIP("no locale with a decimal comma is installed");
  hi_bar_state bar = {.step = 1,
                      .target = 1,
                      .names = (const char *[]){"v"},
                      .values = (double[]){0.25},
                      .value_count = 1,
                      .finished = true};
  char *line = hi_bar_line(&bar), *after = NULL;
  assert_true(asprintf(&after, "%.1f", 0.5) > 0);
  setlocale(LC_ALL, "C");
  assert_string_equal(line, "1/1 - 0s - 0s/step - v: 0.2500\n");
  assert_string_equal(after, "0,5");
  free(line);
  free(after);
}

/* Without what is between escapes; the part of the bar that is still to come gets a look of its own. */
static void remove_colors(const char *from, char *to) {
  bool grey = false;
  while (*from) {
    if (*from == '\x1b') {
      grey = strncmp(from, "\x1b[37m", 5) == 0;
      from = strchr(from, 'm') + 1;
    } else if (grey) {
      assert_int_equal(strncmp(from, "━", strlen("━")), 0);
      to = stpcpy(to, "─");
      from += strlen("━");
    } else {
      *to++ = *from++;
    }
  }
  *to = 0;
}

static void test_no_color(void **state) {
  (void)state;
  golden from;
  open_golden(&from, "train/bar.txt");
  while (next_on_terminal(&from)) {
    char *plain = malloc(strlen(from.expected) + 1);
    assert_non_null(plain);
    remove_colors(from.expected, plain);
    from.bar.color = false;
    assert_line(&from.bar, plain);
    free(plain);
  }
  close_golden(&from);
}

static void test_bars_without_utf8(void **state) {
  (void)state;
  golden from;
  open_golden(&from, "train/bar_keras2.txt");
  int count = 0, read;
  for (; next_line(from.file, &from.state, &from.state_room); count++) {
    hi_bar_state bar = {.columns = ENDLESS, .seconds = 2, .finished = true};
    assert_int_equal(sscanf(from.state, "%" SCNd64 " %" SCNd64 "%n", &bar.target, &bar.step, &read), 2);
    char expected[200], *pace = bar.step == 0 ? "0s" : bar.step == 1 ? "2s" : bar.step == 2 ? "1s" : NULL;
    if (!pace) bar.seconds = 2 * (double)bar.step;
    snprintf(expected, sizeof expected, "%s %.0fs %s/step", from.state + read + 1, bar.seconds, pace ? pace : "2s");
    assert_line(&bar, expected);
  }
  assert_true(count > 30);
  close_golden(&from);
}

static void test_bold_without_utf8(void **state) {
  (void)state;
  hi_bar_state bar = {.step = 5, .target = 10, .seconds = 10, .columns = 80, .color = true};
  assert_line(&bar, "\x1b[1m 5/10\x1b[0m [=========>..........] \x1b[1m10s\x1b[0m 2s/step");
}

static void test_nothing_elsewhere_before_the_end(void **state) {
  (void)state;
  hi_bar_state bar = {.step = 5, .target = 10, .seconds = 10, .utf8 = true, .color = true};
  for (int columns = -1; columns <= 0; columns++) {
    bar.columns = columns;
    char *line = hi_bar_line(&bar);
    assert_string_equal(line, "");
    free(line);
  }
}

/* ---- widths ---- */

/* Columns that text takes, if its wide characters are those of the cases. */
static int columns_of(const char *text) {
  int columns = 0;
  for (; *text; text++) {
    unsigned char byte = (unsigned char)*text;
    if (byte == 0x1b) {
      text += strcspn(text, "mK");
    } else if (byte >= 0x20 && (byte & 0xc0) != 0x80) {
      columns += byte >= 0xe3 ? 2 : 1;
    }
  }
  return columns;
}

static bool ends_with(const char *text, const char *end) {
  size_t bytes = strlen(text), tail = strlen(end);
  return bytes >= tail && strcmp(text + bytes - tail, end) == 0;
}

/* What is left is the whole line, or one without its last values, or a bar that is shorter, or less. */
/* Cuts off the lines behind the first of a finished bar, none of which wraps unless it has a single value, and counts
 * the values in them. */
static int cut_rest(const hi_bar_state *bar, char *line) {
  int values = 0;
  char *rest = strchr(line, '\n');
  if (!bar->finished) return 0;
  assert_non_null(rest);
  for (char *next = rest + 1, *end; (end = strchr(next, '\n')); next = end + 1) {
    *end = 0;
    int own = 0;
    for (const char *at = next; (at = strstr(at, " - ")); at += 3) own++;
    assert_true(own > 0 && strncmp(next, "        - ", 10) == 0);
    assert_true(own == 1 || columns_of(next) < bar->columns);
    values += own;
  }
  rest[1] = 0;
  return values;
}

static void check_width(const hi_bar_state *bar, const char *whole, int *least) {
  char *line = hi_bar_line(bar);
  assert_made(line);
  int behind = cut_rest(bar, line), before = 0;
  for (const char *at = line; (at = strstr(at, " - ")); at += 3) before++;
  if (bar->finished && !strstr(line, " - -")) assert_int_equal(before + behind, bar->value_count);
  int columns = columns_of(line);
  if (columns >= bar->columns) fail_msg("%d columns of %d: %s", columns, bar->columns, line);
  assert_true(columns >= *least);
  *least = columns;
  if (columns_of(whole) < bar->columns) assert_string_equal(line, whole);
  assert_true(ends_with(line, bar->finished ? "\x1b[K\n" : "\x1b[K"));
  char *end = strstr(line, "\x1b[K");
  *end = 0;
  if (strstr(line, " - ")) {
    size_t bytes = strlen(line);
    assert_int_equal(strncmp(line, whole, bytes), 0);
    assert_true(strncmp(whole + bytes, " - ", 3) == 0 || whole[bytes] == '\x1b');
  }
  free(line);
}

static void test_every_width(void **state) {
  (void)state;
  golden from;
  open_golden(&from, "train/bar.txt");
  for (int number = 0; next_on_terminal(&from); number++) {
    from.bar.utf8 = number % 3 != 0 || strstr(from.expected, "精");
    from.bar.color = number % 2 == 0;
    char *whole = hi_bar_line(&from.bar);
    int least = 0;
    for (from.bar.columns = 1; from.bar.columns <= 250; from.bar.columns++) check_width(&from.bar, whole, &least);
    free(whole);
  }
  close_golden(&from);
}

static const char *const usual_names[] = {"loss", "accuracy", "val_loss", "val_accuracy"};
static const double usual_values[] = {0.33124, 0.90117, 0.2, 0.94};

static hi_bar_state usual(int columns) {
  return (hi_bar_state){.step = 140,
                        .target = 281,
                        .seconds = 2,
                        .columns = columns,
                        .names = usual_names,
                        .values = usual_values,
                        .value_count = 4,
                        .utf8 = true};
}

static void test_finished_on_narrow_terminals(void **state) {
  (void)state;
  static const struct {
    int columns;
    const char *text;
  } cases[] = {
      {80, "\r281/281 ━━━━━━━━━━━━━━━━━━━━ 2s 7ms/step - loss: 0.3312 - accuracy: 0.9012\x1b[K\n"
           "        - val_loss: 0.2000 - val_accuracy: 0.9400\n"},
      {40, "\r281/281 ━━━━━━━━━━━━━━━━━━━ 2s 7ms/step\x1b[K\n"
           "        - loss: 0.3312\n"
           "        - accuracy: 0.9012\n"
           "        - val_loss: 0.2000\n"
           "        - val_accuracy: 0.9400\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    hi_bar_state bar = usual(cases[i].columns);
    bar.step = 281;
    bar.finished = true;
    char *line = hi_bar_line(&bar);
    assert_string_equal(line, cases[i].text);
    free(line);
  }
}

static void test_narrow_terminals(void **state) {
  (void)state;
  static const struct {
    int columns;
    const char *expected;
  } cases[] = {
      {200, "140/281 ━━━━━━━━━─────────── 2s 14ms/step - loss: 0.3312 - accuracy: 0.9012 - val_loss: 0.2000 - "
            "val_accuracy: 0.9400"},
      {80, "140/281 ━━━━━━━━━─────────── 2s 14ms/step - loss: 0.3312 - accuracy: 0.9012"},
      {57, "140/281 ━━━━━━━━━─────────── 2s 14ms/step - loss: 0.3312"},
      {56, "140/281 ━━━━━━━━━─────────── 2s 14ms/step"},
      {42, "140/281 ━━━━━━━━━─────────── 2s 14ms/step"},
      {41, "140/281 ━━━━━━━━━────────── 2s 14ms/step"},
      {40, "140/281 ━━━━━━━━────────── 2s 14ms/step"},
      {23, "140/281 ─ 2s 14ms/step"},
      {22, "140/281 2s 14ms/step"},
      {21, "140/281 2s 14ms/step"},
      {20, "140/281 2s"},
      {11, "140/281 2s"},
      {10, "140/281"},
      {8, "140/281"},
      {7, ""},
      {1, ""},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    hi_bar_state bar = usual(cases[i].columns);
    assert_line(&bar, cases[i].expected);
  }
  hi_bar_state plain = usual(40);
  plain.utf8 = false;
  assert_line(&plain, "140/281 [======>.........] 2s 14ms/step");
}

/* ---- names ---- */

static void assert_name(const char *name, bool utf8, int columns, const char *expected) {
  hi_bar_state bar = {.step = 1,
                      .target = -1,
                      .names = &name,
                      .values = (double[]){0.5},
                      .value_count = 1,
                      .columns = columns,
                      .utf8 = utf8};
  char *whole = NULL;
  assert_true(asprintf(&whole, "      1/Unknown 0s 0s/step%s%s%s", expected ? " - " : "", expected ? expected : "",
                       expected ? ": 0.5000" : "") > 0);
  assert_line(&bar, whole);
  free(whole);
}

static void test_hostile_names(void **state) {
  (void)state;
  static const struct {
    const char *name, *shown, *shown_plain;
  } cases[] = {
      {"", "", ""},
      {"\x1b[2J\x1b]0;title\a", "?[2J?]0;title?", "?[2J?]0;title?"},
      {"a\nb\rc\td\be\x7f", "a?b?c?d?e?", "a?b?c?d?e?"},
      {"\x9b"
       "31m",
       "?31m", "?31m"}, /* a byte that some terminals take for an escape */
      {"\xc2\x9b"
       "31m",
       "?31m", "?31m"}, /* the same as a character */
      {"a\xe2\x80\xae"
       "b\xe2\x80\xa8"
       "c\xe2\x81\xa6",
       "a?b?c?", "a?b?c?"},                                                     /* U+202E, U+2028, U+2066 */
      {"\xc0\x9b\xed\xa0\x80\xf4\x90\x80\x80\xff", "??????????", "??????????"}, /* overlong, surrogate, too large */
      {"\xe7\xb2", "??", "??"},                                                 /* cut off */
      {"\xe7"
       "a\x80",
       "?a?", "?a?"},
      {"%s%n", "%s%n", "%s%n"},
      {"précision Δ", "précision Δ", "pr?cision ?"},
      {"精度", "精度", "??"},
      {"🎯", "🎯", "?"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    assert_name(cases[i].name, true, 200, cases[i].shown);
    assert_name(cases[i].name, false, 200, cases[i].shown_plain);
  }
  hi_bar_state bar = {.step = 1,
                      .target = 1,
                      .names = (const char *[]){"\x1b[1m\n"},
                      .values = (double[]){0.5},
                      .value_count = 1,
                      .utf8 = true,
                      .finished = true};
  char *line = hi_bar_line(&bar);
  assert_string_equal(line, "1/1 - 0s - 0s/step - ?[1m?: 0.5000\n");
  free(line);
}

/* The text before a name takes 26 columns, that around it 11, and one stays free. */
static void test_columns_of_names(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int columns;
  } cases[] = {{"loss", 4}, {"précision", 9}, {"Δ", 1}, {"精度", 4}, {"🎯", 2}};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    assert_name(cases[i].name, true, 26 + 11 + 1 + cases[i].columns, cases[i].name);
    assert_name(cases[i].name, true, 26 + 11 + cases[i].columns, NULL);
  }
}

/* ---- states that should not be ---- */

static void test_odd_states(void **state) {
  (void)state;
  assert_line(&(hi_bar_state){.step = 15, .target = 10, .seconds = 3, .columns = 80, .utf8 = true},
              "15/10 ━━━━━━━━━━━━━━━━━━━━ 0s 200ms/step");
  assert_line(&(hi_bar_state){.step = -4, .target = -7, .seconds = -3, .columns = 80}, "      0/Unknown 0s 0s/step");
  assert_line(&(hi_bar_state){.step = 2, .target = 4, .seconds = NAN, .first_step = NAN, .columns = 80},
              "2/4 [=========>..........] 0s 0s/step");
  assert_line(&(hi_bar_state){.step = 2, .target = 4, .seconds = 1, .first_step = 3, .columns = 80},
              "2/4 [=========>..........] 0s 0s/step");
  assert_line(&(hi_bar_state){.step = 2, .target = 4, .seconds = INFINITY, .columns = 80, .finished = true},
              "2/4 [=========>..........] 0s 0s/step");
  double negative = copysign(NAN, -1); /* Python shows no sign of it */
  hi_bar_state nan = {.target = -1, .names = usual_names, .values = &negative, .value_count = 1, .columns = 80};
  assert_line(&nan, "      0/Unknown 0s 0s/step - loss: nan");
  hi_bar_state huge = {.step = 1, .target = INT64_MAX, .seconds = 1e300, .columns = INT_MAX};
  char *line = hi_bar_line(&huge);
  assert_non_null(strstr(line, "                  1/9223372036854775807 ["));
  free(line);
}

static void test_no_memory(void **state) {
  (void)state;
  hi_bar_state bar = usual(200);
  char *line = NULL;
  for (int allowed = 0; !line; allowed++) {
    assert_in_range(allowed, 0, 40);
    allocations_left = allowed;
    line = hi_bar_line(&bar);
    allocations_left = -1;
    if (!line) expect_error(HELIO_OUT_OF_MEMORY, "progress");
    if (allowed < 2) assert_null(line);
  }
  free(line);
  allocations_left = 0;
  assert_null(hi_bar_epoch(0, 1));
  expect_error(HELIO_OUT_OF_MEMORY, "progress");
  assert_null(hi_bar_summary(&(hi_bar_totals){.epochs = 1}));
  expect_error(HELIO_OUT_OF_MEMORY, "progress");
  allocations_left = -1;
}

/* ---- the summary ---- */

static void assert_summary(const hi_bar_totals *totals, const char *expected) {
  char *text = hi_bar_summary(totals);
  assert_made(text);
  assert_string_equal(text, expected);
  free(text);
}

static void test_summary(void **state) {
  (void)state;
  hi_bar_totals totals = {.epochs = 10, .samples = 600240, .seconds = 12.3, .replicas = 1, .efficiency = 1};
  assert_summary(&totals, "10 epochs in 12.3 s, 48,800 samples/s\n");
  totals = (hi_bar_totals){.epochs = 10,
                           .samples = 600240,
                           .seconds = 12.3,
                           .replicas = 2,
                           .compute = 16.2,
                           .reduce = 2.4,
                           .input = 1.4,
                           .efficiency = 0.8765};
  assert_summary(&totals, "10 epochs in 12.3 s, 48,800 samples/s; "
                          "2 replicas: compute 81 %, reduce 12 %, input 7 %, efficiency 0.88\n");
  totals.efficiency = 0;
  assert_summary(&totals, "10 epochs in 12.3 s, 48,800 samples/s; "
                          "2 replicas: compute 81 %, reduce 12 %, input 7 %\n");
  totals.compute = totals.reduce = totals.input = 0;
  assert_summary(&totals, "10 epochs in 12.3 s, 48,800 samples/s; 2 replicas\n");
  totals.efficiency = 1.004;
  assert_summary(&totals, "10 epochs in 12.3 s, 48,800 samples/s; 2 replicas: efficiency 1.00\n");
  assert_summary(&(hi_bar_totals){0}, "0 epochs in 0 ms\n");
  assert_summary(&(hi_bar_totals){.epochs = 1, .seconds = NAN, .samples = 5}, "1 epoch in 0 ms\n");
  assert_summary(&(hi_bar_totals){.epochs = 1, .seconds = 0.04, .samples = 1234},
                 "1 epoch in 40 ms, 30,850 samples/s\n");
  assert_summary(&(hi_bar_totals){.epochs = 2, .seconds = 3723.4, .samples = 11914},
                 "2 epochs in 1:02:03, 3.2 samples/s\n");
  assert_summary(&(hi_bar_totals){.epochs = 2, .seconds = 125, .samples = 125000000},
                 "2 epochs in 2:05, 1,000,000 samples/s\n");
  assert_summary(&(hi_bar_totals){.epochs = 1, .seconds = 10, .validation = 8, .samples = 2000},
                 "1 epoch in 10.0 s, 1,000 samples/s\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_draws_as_keras),
      cmocka_unit_test(test_any_locale),
      cmocka_unit_test(test_no_color),
      cmocka_unit_test(test_bars_without_utf8),
      cmocka_unit_test(test_bold_without_utf8),
      cmocka_unit_test(test_nothing_elsewhere_before_the_end),
      cmocka_unit_test(test_finished_on_narrow_terminals),
      cmocka_unit_test(test_every_width),
      cmocka_unit_test(test_narrow_terminals),
      cmocka_unit_test(test_hostile_names),
      cmocka_unit_test(test_columns_of_names),
      cmocka_unit_test(test_odd_states),
      cmocka_unit_test(test_no_memory),
      cmocka_unit_test(test_summary),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
