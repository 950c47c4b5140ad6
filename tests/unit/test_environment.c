/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: every kind with good and bad values, parameters of plugins, warnings of what means nothing. */
#include "runtime/environment.h"
#include "runtime/nearest.h"
#include "support.h"

typedef struct sample {
  hi_setting setting;
  const char *name, *value;
  double expected;
} sample;

static const sample good[] = {
    {HI_MEMORY_GROWTH, "HELIO_MEMORY_GROWTH", "0", 0},
    {HI_MEMORY_GROWTH, "HELIO_MEMORY_GROWTH", "1", 1},
    {HI_MEMORY_GROWTH, "HELIO_MEMORY_GROWTH", "false", 0},
    {HI_MEMORY_GROWTH, "HELIO_MEMORY_GROWTH", "TRUE", 1},
    {HI_MEMORY_GROWTH, "HELIO_MEMORY_GROWTH", "Off", 0},
    {HI_SOFT_PLACEMENT, "HELIO_SOFT_PLACEMENT", "on", 1},
    {HI_SOFT_PLACEMENT, "HELIO_SOFT_PLACEMENT", "no", 0},
    {HI_ARENA_DEBUG, "HELIO_ARENA_DEBUG", "yes", 1},
    {HI_NUM_THREADS, "HELIO_NUM_THREADS", "0", 0},
    {HI_NUM_THREADS, "HELIO_NUM_THREADS", "007", 7},
    {HI_NUM_THREADS, "HELIO_NUM_THREADS", "4096", 4096},
    {HI_SPIN_US, "HELIO_SPIN_US", "123", 123},
    {HI_SPIN_US, "HELIO_SPIN_US", "1000000", 1000000},
    {HI_SEED, "HELIO_SEED", "18446744073709551615", 18446744073709551615.0},
    {HI_MEMORY_LIMIT, "HELIO_MEMORY_LIMIT", "0", 0},
    {HI_MEMORY_LIMIT, "HELIO_MEMORY_LIMIT", "100", 100},
    {HI_MEMORY_LIMIT, "HELIO_MEMORY_LIMIT", "3k", 3072},
    {HI_MEMORY_LIMIT, "HELIO_MEMORY_LIMIT", "1024K", 1048576},
    {HI_MEMORY_LIMIT, "HELIO_MEMORY_LIMIT", "512M", 536870912},
    {HI_MEMORY_LIMIT, "HELIO_MEMORY_LIMIT", "2g", 2147483648.0},
    {HI_MEMORY_LIMIT, "HELIO_MEMORY_LIMIT", "1T", 1099511627776.0},
    {HI_MEMORY_FRACTION, "HELIO_MEMORY_FRACTION", "1", 1},
    {HI_MEMORY_FRACTION, "HELIO_MEMORY_FRACTION", "1.0", 1},
    {HI_MEMORY_FRACTION, "HELIO_MEMORY_FRACTION", "0.4", 0.4},
    {HI_MEMORY_FRACTION, "HELIO_MEMORY_FRACTION", ".5", 0.5},
    {HI_MEMORY_FRACTION, "HELIO_MEMORY_FRACTION", "1.", 1},
    {HI_MEMORY_FRACTION, "HELIO_MEMORY_FRACTION", "0.001", 0.001},
    {HI_LOG, "HELIO_LOG", "debug", 0},
    {HI_LOG, "HELIO_LOG", "info", 1},
    {HI_LOG, "HELIO_LOG", "Warning", 2},
    {HI_LOG, "HELIO_LOG", "ERROR", 3},
    {HI_LOG, "HELIO_LOG", "off", 4},
};

static const struct {
  const char *name, *value, *expected;
} bad[] = {
    {"HELIO_MEMORY_GROWTH", "2", "0 or 1"},
    {"HELIO_MEMORY_GROWTH", "-1", "0 or 1"},
    {"HELIO_MEMORY_GROWTH", "1 ", "0 or 1"},
    {"HELIO_SOFT_PLACEMENT", "maybe", "0 or 1"},
    {"HELIO_STRICT_PLACEMENT", "tru", "0 or 1"},
    {"HELIO_LOG_PLACEMENT", "01", "0 or 1"},
    {"HELIO_ARENA_DEBUG", "yess", "0 or 1"},
    {"HELIO_NUM_THREADS", "-4", "a number that is not negative"},
    {"HELIO_NUM_THREADS", "four", "a number that is not negative"},
    {"HELIO_NUM_THREADS", "4.0", "a number that is not negative"},
    {"HELIO_NUM_THREADS", " 4", "a number that is not negative"},
    {"HELIO_NUM_THREADS", "4097", "at most 4096"},
    {"HELIO_SPIN_US", "1000001", "at most 1000000"},
    {"HELIO_SPIN_US", "0x10", "a number that is not negative"},
    {"HELIO_SPIN_US", "99999999999999999999", "at most 1000000"},
    {"HELIO_SEED", "18446744073709551616", "at most 18446744073709551615"},
    {"HELIO_SEED", "99999999999999999999999", "at most 18446744073709551615"},
    {"HELIO_MEMORY_LIMIT", "-1", "a size such as 512M or 2G"},
    {"HELIO_MEMORY_LIMIT", "1.5G", "a size such as 512M or 2G"},
    {"HELIO_MEMORY_LIMIT", "M", "a size such as 512M or 2G"},
    {"HELIO_MEMORY_LIMIT", "12MB", "a size such as 512M or 2G"},
    {"HELIO_MEMORY_LIMIT", "1 G", "a size such as 512M or 2G"},
    {"HELIO_MEMORY_LIMIT", "abc", "a size such as 512M or 2G"},
    {"HELIO_MEMORY_LIMIT", "16777216T", "a size such as 512M or 2G"},
    {"HELIO_MEMORY_FRACTION", "0", "above 0 and at most 1"},
    {"HELIO_MEMORY_FRACTION", "0.0", "above 0 and at most 1"},
    {"HELIO_MEMORY_FRACTION", "1.5", "above 0 and at most 1"},
    {"HELIO_MEMORY_FRACTION", "abc", "above 0 and at most 1"},
    {"HELIO_MEMORY_FRACTION", "-0.5", "above 0 and at most 1"},
    {"HELIO_MEMORY_FRACTION", ".", "above 0 and at most 1"},
    {"HELIO_MEMORY_FRACTION", "0,5", "above 0 and at most 1"},
    {"HELIO_MEMORY_FRACTION", "1e-1", "above 0 and at most 1"},
    {"HELIO_MEMORY_FRACTION", "0.5.5", "above 0 and at most 1"},
    {"HELIO_MEMORY_FRACTION", "nan", "above 0 and at most 1"},
    {"HELIO_MEMORY_FRACTION", "inf", "above 0 and at most 1"},
    {"HELIO_MEMORY_FRACTION", "1.0000001", "above 0 and at most 1"},
    {"HELIO_LOG", "loud", "debug|info|warning|error|off"},
    {"HELIO_LOG", "inf", "debug|info|warning|error|off"},
    {"HELIO_LOG", "info|warning", "debug|info|warning|error|off"},
};

/* Flags are 0 or 1 and choices spelt as listed, however they were written. */
static void check_text(const sample *s) {
  static const char *const levels[] = {"debug", "info", "warning", "error", "off"};
  const char *text = hi_environment_text(s->setting);
  bool is_flag = s->setting == HI_MEMORY_GROWTH || s->setting == HI_SOFT_PLACEMENT || s->setting == HI_ARENA_DEBUG;
  const char *expected = s->value;
  if (is_flag) expected = s->expected > 0 ? "1" : "0";
  if (s->setting == HI_LOG) expected = levels[(int)s->expected];
  assert_string_equal(text, expected);
}

static void test_good_values(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(good); i++) {
    const sample *s = &good[i];
    setenv(s->name, s->value, 1);
    assert_ok(hi_environment_start());
    bool is_fraction = s->setting == HI_MEMORY_FRACTION;
    double value = is_fraction ? hi_environment_fraction(s->setting) : (double)hi_environment_number(s->setting);
    double error = value > s->expected ? value - s->expected : s->expected - value;
    if (error > 1e-12 * s->expected) fail_msg("%s=%s was read as %.17g", s->name, s->value, value);
    assert_true(hi_environment_set(s->setting));
    check_text(s);
    hi_environment_finish();
    unsetenv(s->name);
  }
}

/* The error names variable, value and what is expected; once it is put right the library starts. */
static void test_bad_values(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    char message[200];
    snprintf(message, sizeof message, "%s=%s: expected %s", bad[i].name, bad[i].value, bad[i].expected);
    setenv(bad[i].name, bad[i].value, 1);
    assert_int_equal(helio_init(), HELIO_INVALID_ARGUMENT);
    assert_string_equal(helio_error_message(), message);
    expect_error(HELIO_INVALID_ARGUMENT, message);
    unsetenv(bad[i].name);
  }
  assert_ok(helio_init());
}

static void test_the_failing_call_is_named(void **state) {
  helio_error error;
  int count;
  (void)state;
  setenv("HELIO_MEMORY_FRACTION", "abc", 1);
  assert_null(helio_physical_devices(NULL, &count));
  assert_int_equal(helio_error_take(&error), HELIO_INVALID_ARGUMENT);
  assert_string_equal(error.where, "helio_physical_devices");
}

/* Set but empty: as if unset, except for texts, where nothing may be a value of its own. */
static void test_set_but_empty(void **state) {
  (void)state;
#define SET_EMPTY(symbol, kind, value, choices, most, help) setenv("HELIO_" #symbol, "", 1);
  HI_SETTING_LIST(SET_EMPTY)
#undef SET_EMPTY
  assert_ok(hi_environment_start());
#define CHECK(symbol, kind, value, choices, most, help)                                                                \
  bool is_text_##symbol = strcmp(#kind, "TEXT") == 0;                                                                  \
  assert_int_equal(hi_environment_set(HI_##symbol), is_text_##symbol);                                                 \
  assert_string_equal(hi_environment_text(HI_##symbol), is_text_##symbol ? "" : value);
  HI_SETTING_LIST(CHECK)
#undef CHECK
  hi_environment_finish();
}

static const struct {
  const char *name, *kind, *value, *choices;
} core_settings[] = {
#define ROW(symbol, kind, value, choices, most, help) {"HELIO_" #symbol, #kind, value, choices},
    HI_SETTING_LIST(ROW)
#undef ROW
};

static const helio_setting *find_setting(const char *name) {
  int count;
  const helio_setting *const *settings = helio_settings(&count);
  assert_made(settings);
  for (int i = 0; i < count; i++) {
    if (strcmp(settings[i]->name, name) == 0) return settings[i];
  }
  return NULL;
}

static void test_settings_lists_all(void **state) {
  int count = 0;
  (void)state;
  setenv("HELIO_SEED", "99", 1);
  const helio_setting *const *settings = helio_settings(&count);
  assert_made(settings);
  assert_true(count > (int)COUNT_OF(core_settings)); /* the CPU's too */
  for (size_t i = 0; i < COUNT_OF(core_settings); i++) {
    const helio_setting *s = settings[i];
    bool given = strcmp(s->name, "HELIO_SEED") == 0 || strcmp(s->name, "HELIO_PLUGIN_PATH") == 0;
    assert_string_equal(s->name, core_settings[i].name);
    assert_int_equal(strcasecmp(s->kind, core_settings[i].kind), 0);
    assert_string_equal(s->default_value, core_settings[i].value);
    assert_string_equal(s->choices, core_settings[i].choices);
    assert_string_equal(s->owner, "helio");
    assert_true(strlen(s->help) > 10);
    assert_int_equal(s->set, given);
    if (!given) assert_string_equal(s->value, s->default_value);
  }
  assert_string_equal(find_setting("HELIO_SEED")->value, "99");
  assert_null(helio_settings(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "count is NULL");
}

static void test_parameters_of_a_plugin_are_listed(void **state) {
  (void)state;
  setenv("HELIO_CPU_ISA", "Portable", 1);
  assert_ok(helio_init());
  const helio_setting *isa = find_setting("HELIO_CPU_ISA");
  assert_non_null(isa);
  assert_string_equal(isa->owner, "cpu");
  assert_string_equal(isa->kind, "choice");
  assert_string_equal(isa->default_value, "auto");
  assert_string_equal(isa->choices, "auto|avx512|avx2|portable");
  assert_true(isa->set);
  assert_true(strlen(isa->help) > 10);
  assert_not_logged("HELIO_CPU_ISA");
}

static void test_a_bad_value_for_a_plugin(void **state) {
  (void)state;
  setenv("HELIO_CPU_ISA", "mmx", 1);
  if (helio_init() == HELIO_OK) SKIP("another plugin for the host is installed");
  expect_error(HELIO_NO_DEVICE, "HELIO_CPU_ISA=mmx: expected auto|avx512|avx2|portable");
  assert_logged("WARNING:helio:plugin cpu", "HELIO_CPU_ISA=mmx");
  assert_not_logged("means nothing"); /* it does mean something */
}

/* ---- parameters, handed in directly ---- */

#define PARAMETER(...)                                                                                                 \
  { .size = sizeof(helio_parameter), __VA_ARGS__ }

typedef struct longer_parameter {
  helio_parameter known;
  unsigned char tail[8];
} longer_parameter;

static helio_status add(const helio_parameter *first, const helio_parameter *second, char *reason) {
  const helio_parameter *const list[] = {first, second, NULL};
  reason[0] = 0;
  return hi_environment_add("mine", list, reason, 300);
}

static const helio_parameter sound =
    PARAMETER(.name = "HELIO_MINE_SOUND", .kind = HELIO_PARAMETER_INTEGER, .default_value = "3", .help = "A number.");

static void test_parameters_that_are_refused(void **state) {
  static const helio_parameter wrong[] = {
      PARAMETER(.kind = HELIO_PARAMETER_TEXT, .default_value = "", .help = "No name."),
      PARAMETER(.name = "MINE_X", .kind = HELIO_PARAMETER_TEXT, .default_value = "", .help = "No prefix."),
      PARAMETER(.name = "HELIO_YOURS_X", .kind = HELIO_PARAMETER_TEXT, .default_value = "", .help = "Another's."),
      PARAMETER(.name = "HELIO_MINEX", .kind = HELIO_PARAMETER_TEXT, .default_value = "", .help = "Run together."),
      PARAMETER(.name = "HELIO_mine_X", .kind = HELIO_PARAMETER_TEXT, .default_value = "", .help = "Small."),
      PARAMETER(.name = "HELIO_MINE_", .kind = HELIO_PARAMETER_TEXT, .default_value = "", .help = "Nothing behind."),
      PARAMETER(.name = "HELIO_MINE_X", .default_value = "", .help = "No kind."),
      PARAMETER(.name = "HELIO_MINE_X", .kind = 5, .default_value = "", .help = "A kind of the future."),
      PARAMETER(.name = "HELIO_MINE_X", .kind = HELIO_PARAMETER_TEXT, .help = "No default."),
      PARAMETER(.name = "HELIO_MINE_X", .kind = HELIO_PARAMETER_TEXT, .default_value = ""),
      PARAMETER(.name = "HELIO_MINE_X", .kind = HELIO_PARAMETER_TEXT, .default_value = "", .help = ""),
      PARAMETER(.name = "HELIO_MINE_X", .kind = HELIO_PARAMETER_CHOICE, .default_value = "a", .help = "No choices."),
      {.size = 8, .name = "HELIO_MINE_X", .kind = HELIO_PARAMETER_TEXT, .default_value = "", .help = "Too short."},
      PARAMETER(.name = "HELIO_SEED", .kind = HELIO_PARAMETER_INTEGER, .default_value = "1", .help = "The core's."),
      PARAMETER(.name = "HELIO_MINE_SOUND", .kind = HELIO_PARAMETER_TEXT, .default_value = "", .help = "Twice."),
  };
  char reason[300];
  (void)state;
  assert_ok(hi_environment_start());
  for (size_t i = 0; i < COUNT_OF(wrong); i++) {
    assert_int_equal(add(&sound, &wrong[i], reason), HELIO_ABI_MISMATCH);
    assert_non_null(strstr(reason, "parameter "));
    if (wrong[i].size == sizeof wrong[i] && wrong[i].name) assert_non_null(strstr(reason, wrong[i].name));
    assert_null(hi_environment_parameter("mine", "HELIO_MINE_SOUND")); /* nothing was added */
  }
  hi_environment_finish();
}

static void test_longer_parameters(void **state) {
  longer_parameter longer = {.known = sound};
  char reason[300];
  (void)state;
  longer.known.size = sizeof longer;
  assert_ok(hi_environment_start());
  longer.tail[7] = 1;
  assert_int_equal(add(&longer.known, NULL, reason), HELIO_ABI_MISMATCH);
  longer.tail[7] = 0;
  assert_int_equal(add(&longer.known, NULL, reason), HELIO_OK);
  assert_string_equal(hi_environment_parameter("mine", "HELIO_MINE_SOUND"), "3");
  hi_environment_finish();
}

static void test_values_of_parameters(void **state) {
  static const struct {
    uint32_t kind;
    const char *value, *expected, *read; /* expected NULL: good; read NULL: as written */
  } rows[] = {
      {HELIO_PARAMETER_TEXT, "any thing", NULL, NULL},
      {HELIO_PARAMETER_TEXT, "", NULL, NULL},
      {HELIO_PARAMETER_FLAG, "on", NULL, "1"},
      {HELIO_PARAMETER_FLAG, "x", "0 or 1", NULL},
      {HELIO_PARAMETER_INTEGER, "12", NULL, NULL},
      {HELIO_PARAMETER_INTEGER, "-12", "a number that is not negative", NULL},
      {HELIO_PARAMETER_CHOICE, "B", NULL, "b"},
      {HELIO_PARAMETER_CHOICE, "c", "a|b", NULL},
      {HELIO_PARAMETER_CHOICE, "a|b", "a|b", NULL},
  };
  static const char *const defaults[] = {"", "", "0", "1", "a"};
  (void)state;
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    char reason[300], message[300];
    helio_parameter p = PARAMETER(.name = "HELIO_MINE_X", .kind = rows[i].kind, .default_value = defaults[rows[i].kind],
                                  .choices = rows[i].kind == HELIO_PARAMETER_CHOICE ? "a|b" : NULL, .help = "Help.");
    setenv("HELIO_MINE_X", rows[i].value, 1);
    assert_ok(hi_environment_start());
    helio_status status = add(&sound, &p, reason);
    const char *value = hi_environment_parameter("mine", "HELIO_MINE_X");
    snprintf(message, sizeof message, "HELIO_MINE_X=%s: expected %s", rows[i].value, rows[i].expected);
    if (rows[i].expected) {
      assert_int_equal(status, HELIO_INVALID_ARGUMENT);
      assert_string_equal(reason, message);
      assert_null(value);
    } else {
      assert_int_equal(status, HELIO_OK);
      assert_string_equal(value, rows[i].read ? rows[i].read : rows[i].value);
    }
    hi_environment_finish();
  }
}

/* A plugin sees its own parameters only. */
static void test_parameters_belong_to_their_plugin(void **state) {
  char reason[300];
  (void)state;
  assert_ok(hi_environment_start());
  assert_int_equal(add(&sound, NULL, reason), HELIO_OK);
  assert_null(hi_environment_parameter("yours", "HELIO_MINE_SOUND"));
  assert_null(hi_environment_parameter("mine", "HELIO_SEED"));
  assert_null(hi_environment_parameter("mine", "HELIO_MINE"));
  assert_int_equal(hi_environment_add("yours", NULL, reason, sizeof reason), HELIO_OK);
  helio_parameter other = sound;
  other.name = "HELIO_MY_OWN_2_X";
  const helio_parameter *const list[] = {&other, NULL};
  assert_int_equal(hi_environment_add("my-own-2", list, reason, sizeof reason), HELIO_OK);
  hi_environment_finish();
}

static void test_too_many_parameters(void **state) {
  char names[300][32], reason[300];
  helio_status status = HELIO_OK;
  int added = 0;
  (void)state;
  assert_ok(hi_environment_start());
  for (; added < 300 && status == HELIO_OK; added++) {
    snprintf(names[added], sizeof names[added], "HELIO_MINE_%d", added);
    helio_parameter p = sound;
    p.name = names[added];
    status = add(&p, NULL, reason);
  }
  assert_int_equal(status, HELIO_ABI_MISMATCH);
  assert_non_null(strstr(reason, "one too many"));
  assert_true(added > 100);
  hi_environment_finish();
}

/* ---- unknown variables ---- */

static void test_unknown_variables_are_warned_of(void **state) {
  char endless[400];
  (void)state;
  memset(endless, 'X', sizeof endless - 1);
  memcpy(endless, "HELIO_", 6);
  endless[sizeof endless - 1] = 0;
  setenv("HELIO_BACKEN", "cpu", 1);
  setenv("HELIO_memory_groth", "1", 1);
  setenv("HELIO_CPU_IAS", "auto", 1);
  setenv("HELIO_DATA", "/somewhere", 1);
  setenv("HELIO_XYZZY_PLUGH_QUUX", "", 1);
  setenv("HELIO_TEST_OF_MINE", "1", 1);
  setenv("HELIOS", "1", 1);
  setenv("helio_backend", "1", 1);
  setenv(endless, "1", 1);
  assert_ok(helio_init());
  unsetenv("HELIO_TEST_OF_MINE");
  unsetenv("HELIOS");
  unsetenv("helio_backend");
  unsetenv(endless);
  assert_logged("WARNING:helio:", "HELIO_BACKEN is set but means nothing; did you mean HELIO_BACKEND?");
  assert_logged("WARNING:helio:", "HELIO_memory_groth is set but means nothing; did you mean HELIO_MEMORY_GROWTH?");
  assert_logged("WARNING:helio:", "HELIO_CPU_IAS is set but means nothing; did you mean HELIO_CPU_ISA?");
  assert_logged("WARNING:helio:", "HELIO_DATA is set but means nothing; did you mean HELIO_DATA_DIR?");
  assert_logged("WARNING:helio:", "HELIO_XYZZY_PLUGH_QUUX is set but means nothing");
  assert_int_equal(lines_with("HELIO_XYZZY_PLUGH_QUUX", "did you mean"), 0);
  assert_logged("WARNING:helio:", "HELIO_XXXXXXXX");
  assert_not_logged("HELIO_TEST_");
  assert_not_logged("HELIOS");
  assert_not_logged("helio_backend");
  assert_int_equal(seen.count, 6);
}

static void test_known_variables_are_not(void **state) {
  (void)state;
  setenv("HELIO_SEED", "1", 1);
  setenv("HELIO_CPU_ISA", "auto", 1);
  setenv("HELIO_VISIBLE_DEVICES", "all", 1);
  assert_ok(helio_init());
  assert_not_logged("means nothing");
}

/* ---- parsing ---- */

static void test_numbers_end_where_they_are_told(void **state) {
  uint64_t number = 77;
  (void)state;
  assert_true(hi_parse_number("12345", 3, &number));
  assert_int_equal(number, 123);
  assert_true(hi_parse_number("7M", 1, &number));
  assert_int_equal(number, 7);
  assert_false(hi_parse_number("7M", 2, &number));
  assert_false(hi_parse_number("", 0, &number));
  assert_int_equal(number, 7); /* written only on success */
}

static void test_sizes(void **state) {
  static const struct {
    const char *text;
    size_t length;
    bool need_suffix, good;
    uint64_t bytes;
  } rows[] = {
      {"10", 2, false, true, 10},
      {"10", 2, true, false, 0},
      {"10K", 3, true, true, 10240},
      {"10K,4M", 3, true, true, 10240},
      {"10K", 2, false, true, 10},
      {"10K", 2, true, false, 0},
      {"0M", 2, true, true, 0},
      {"", 0, false, false, 0},
      {"", 0, true, false, 0},
      {"G", 1, true, false, 0},
      {"KK", 2, false, false, 0},
      {"1B", 2, false, false, 0},
      {"16777215T", 9, false, true, UINT64_C(16777215) << 40},
      {"16777216T", 9, false, false, 0},
      {"18446744073709551615", 20, false, true, UINT64_MAX},
      {"18446744073709551615K", 21, false, false, 0},
  };
  (void)state;
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    uint64_t bytes = 1;
    bool is_good = hi_parse_size(rows[i].text, rows[i].length, rows[i].need_suffix, &bytes);
    if (is_good != rows[i].good || bytes != (is_good ? rows[i].bytes : 1)) fail_msg("row %zu: '%s'", i, rows[i].text);
  }
}

static void test_nearest(void **state) {
  static const char *const names[] = {
      "cpu", "cuda", "hip", "opencl", "HELIO_BACKEND", "HELIO_LOG", "HELIO_LOG_PLACEMENT", "HELIO_DATA_DIR"};
  static const struct {
    const char *word, *nearest;
  } rows[] = {
      {"cpu", "cpu"},
      {"CPU", "cpu"},
      {"cup", "cpu"},
      {"cpuu", "cpu"},
      {"cda", "cuda"},
      {"cudda", "cuda"},
      {"openlc", "opencl"},
      {"HELIO_BACKEN", "HELIO_BACKEND"},
      {"HELIO_LOG_PLACMENT", "HELIO_LOG_PLACEMENT"},
      {"HELIO_DATA", "HELIO_DATA_DIR"}, /* though HELIO_LOG differs by fewer letters */
      {"HELIO_DAT", "HELIO_LOG"},       /* no whole part */
      {"hop", "hip"},
      {"hat", NULL}, /* one letter of three is not enough */
      {"2", NULL},
      {"vulkan", NULL},
      {"metal", NULL},
      {"somethingelse", NULL},
  };
  char endless[1000];
  (void)state;
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    const char *nearest = hi_nearest(rows[i].word, names, COUNT_OF(names));
    bool right = nearest && rows[i].nearest ? strcmp(nearest, rows[i].nearest) == 0 : nearest == rows[i].nearest;
    if (!right) fail_msg("%s: %s", rows[i].word, nearest ? nearest : "(none)");
  }
  memset(endless, 'c', sizeof endless - 1);
  endless[sizeof endless - 1] = 0;
  assert_null(hi_nearest(endless, names, COUNT_OF(names)));
  assert_null(hi_nearest("", names, 0));
  assert_null(hi_nearest("cpu", names, 0));
  const char *const same[] = {"ab", "ac"};
  assert_string_equal(hi_nearest("ad", same, 2), "ab"); /* the first of equals */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_good_values),
      TEST(test_bad_values),
      TEST(test_the_failing_call_is_named),
      TEST(test_set_but_empty),
      TEST(test_settings_lists_all),
      TEST(test_parameters_of_a_plugin_are_listed),
      TEST(test_a_bad_value_for_a_plugin),
      TEST(test_parameters_that_are_refused),
      TEST(test_longer_parameters),
      TEST(test_values_of_parameters),
      TEST(test_parameters_belong_to_their_plugin),
      TEST(test_too_many_parameters),
      TEST(test_unknown_variables_are_warned_of),
      TEST(test_known_variables_are_not),
      TEST(test_numbers_end_where_they_are_told),
      TEST(test_sizes),
      TEST(test_nearest),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
