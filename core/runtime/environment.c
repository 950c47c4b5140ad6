/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/nearest.h"
#include "runtime/plugins.h"

extern char **environ;

typedef enum kind { TEXT, FLAG, INTEGER, SIZE, FRACTION, SECONDS, CHOICE } kind;
static const char *const kind_names[] = {"text", "flag", "integer", "size", "fraction", "seconds", "choice"};

typedef struct entry {
  helio_setting info; /* its strings belong to the entry */
  kind kind;
  uint64_t number, most;
  double fraction;
  char bound[32]; /* "at most 4096" */
} entry;

static const struct {
  const char *name;
  kind kind;
  const char *value, *choices;
  uint64_t most;
  const char *help;
} core_settings[] = {
#define ROW(symbol, kind, value, choices, most, help) {"HELIO_" #symbol, kind, value, choices, most, help},
    HI_SETTING_LIST(ROW)
#undef ROW
};

/* The core's settings in the order of hi_setting, then those of plugins. Written only while the library starts or ends;
 * runtime.c holds its lock meanwhile. */
static entry *entries[256];
static const helio_setting *public_list[256];
static int entry_count;

/* How the variables begin of plugins whose parameters were refused: they mean something, even if it is unknown what. */
static char refused[32][80];
static int refused_count;

bool hi_parse_number(const char *text, size_t length, uint64_t *number) {
  uint64_t value = 0;
  if (length == 0) return false;
  for (size_t i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    uint64_t digit = (uint64_t)(text[i] - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *number = value;
  return true;
}

bool hi_parse_size(const char *text, size_t length, bool need_suffix, uint64_t *bytes) {
  unsigned shift = 0;
  uint64_t value;
  if (length > 0) {
    switch (text[length - 1] | 0x20) {
    case 'k':
      shift = 10;
      break;
    case 'm':
      shift = 20;
      break;
    case 'g':
      shift = 30;
      break;
    case 't':
      shift = 40;
      break;
    }
  }
  if (need_suffix && shift == 0) return false;
  if (!hi_parse_number(text, length - (shift != 0), &value) || value > UINT64_MAX >> shift) return false;
  *bytes = value << shift;
  return true;
}

/* "yes" becomes "1", so that plugins, which see the text, need not know all words. */
static bool parse_flag(char *text, uint64_t *number) {
  static const char *const words[][2] = {{"0", "1"}, {"false", "true"}, {"off", "on"}, {"no", "yes"}};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    for (uint64_t value = 0; value < 2; value++) {
      if (strcasecmp(text, words[i][value]) == 0) {
        strcpy(text, words[0][value]);
        *number = value;
        return true;
      }
    }
  }
  return false;
}

/* Digits with one point, whatever the locale says of points. */
static bool parse_decimal(const char *text, double *number) {
  double value = 0, unit = 1;
  bool point = false, digits = false;
  for (; *text; text++) {
    if (*text == '.' && !point) {
      point = true;
    } else if (*text >= '0' && *text <= '9') {
      digits = true;
      if (point) unit /= 10;
      value = point ? value + unit * (*text - '0') : value * 10 + (*text - '0');
    } else {
      return false;
    }
  }
  *number = value;
  return digits;
}

static bool parse_fraction(const char *text, double *fraction) {
  return parse_decimal(text, fraction) && *fraction > 0 && *fraction <= 1;
}

/* As milliseconds; what is more than nothing stays so. */
static bool parse_seconds(const char *text, uint64_t most, uint64_t *milliseconds) {
  double seconds;
  if (!parse_decimal(text, &seconds) || seconds > (double)most) return false;
  *milliseconds = seconds > 0 && seconds < 0.001 ? 1 : (uint64_t)(seconds * 1000 + 0.5);
  return true;
}

/* The number of `text` among "a|b|c", whose spelling it takes on. */
static bool parse_choice(const char *choices, char *text, uint64_t *number) {
  size_t length = strlen(text);
  for (uint64_t index = 0;; index++) {
    size_t span = strcspn(choices, "|");
    if (span == length && strncasecmp(choices, text, span) == 0) {
      memcpy(text, choices, span);
      *number = index;
      return true;
    }
    if (!choices[span]) return false;
    choices += span + 1;
  }
}

/* A number that has too many digits to be read is too large, and no less a number. */
static const char *parse_integer(entry *e, const char *text) {
  size_t length = strlen(text);
  if (length == 0 || strspn(text, "0123456789") < length) return "a number that is not negative";
  if (hi_parse_number(text, length, &e->number) && e->number <= e->most) return NULL;
  snprintf(e->bound, sizeof e->bound, "at most %" PRIu64, e->most);
  return e->bound;
}

/* NULL if the value is good, else what it should be. */
static const char *parse_value(entry *e) {
  char *text = (char *)e->info.value;
  switch (e->kind) {
  case TEXT:
    return NULL;
  case FLAG:
    return parse_flag(text, &e->number) ? NULL : "0 or 1";
  case INTEGER:
    return parse_integer(e, text);
  case SIZE:
    return hi_parse_size(text, strlen(text), false, &e->number) ? NULL : "a size such as 512M or 2G";
  case FRACTION:
    return parse_fraction(text, &e->fraction) ? NULL : "above 0 and at most 1";
  case SECONDS:
    return parse_seconds(text, e->most, &e->number) ? NULL : "seconds such as 300 or 0.5, at most 1000000";
  case CHOICE:
    break;
  }
  return parse_choice(e->info.choices, text, &e->number) ? NULL : e->info.choices;
}

static void entry_free(entry *e) {
  if (!e) return;
  const char *strings[] = {e->info.name,    e->info.default_value, e->info.value,
                           e->info.choices, e->info.help,          e->info.owner};
  for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) free((char *)strings[i]);
  free(e);
}

static entry *entry_new(const char *name, kind what, const char *value, const char *choices, const char *help,
                        const char *owner) {
  entry *e = calloc(1, sizeof *e);
  if (!e) return NULL;
  const char *given = getenv(name);
  bool empty_means_unset = what != TEXT;
  e->kind = what;
  e->most = UINT64_MAX;
  e->info.set = given && !(empty_means_unset && !*given);
  e->info.name = strdup(name);
  e->info.kind = kind_names[what];
  e->info.default_value = strdup(value);
  e->info.value = strdup(e->info.set ? given : value);
  e->info.choices = strdup(choices ? choices : "");
  e->info.help = strdup(help);
  e->info.owner = strdup(owner);
  bool whole =
      e->info.name && e->info.default_value && e->info.value && e->info.choices && e->info.help && e->info.owner;
  if (whole) return e;
  entry_free(e);
  return NULL;
}

static void append(entry *e) {
  public_list[entry_count] = &e->info;
  entries[entry_count++] = e;
}

helio_status hi_environment_start(void) {
  for (int i = 0; i < HI_SETTING_COUNT; i++) {
    entry *e = entry_new(core_settings[i].name, core_settings[i].kind, core_settings[i].value, core_settings[i].choices,
                         core_settings[i].help, "helio");
    if (!e) {
      hi_environment_finish();
      return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the settings");
    }
    append(e);
    e->most = core_settings[i].most;
    const char *expected = parse_value(e);
    if (expected) {
      hi_fail(HELIO_INVALID_ARGUMENT, "%s=%s: expected %s", e->info.name, e->info.value, expected);
      hi_environment_finish();
      return HELIO_INVALID_ARGUMENT;
    }
  }
  return HELIO_OK;
}

void hi_environment_finish(void) {
  while (entry_count > 0) entry_free(entries[--entry_count]);
  refused_count = 0;
}

const char *hi_environment_name(hi_setting setting) {
  return entries[setting]->info.name;
}

const char *hi_environment_text(hi_setting setting) {
  return entries[setting]->info.value;
}

uint64_t hi_environment_number(hi_setting setting) {
  return entries[setting]->number;
}

double hi_environment_fraction(hi_setting setting) {
  return entries[setting]->fraction;
}

bool hi_environment_set(hi_setting setting) {
  return entries[setting]->info.set;
}

static entry *find(const char *name) {
  for (int i = 0; i < entry_count; i++) {
    if (strcmp(entries[i]->info.name, name) == 0) return entries[i];
  }
  return NULL;
}

/* "HELIO_MY_PLUGIN_" for my-plugin. */
static void prefix_of(const char *owner, char *prefix, size_t size) {
  snprintf(prefix, size, "HELIO_%s_", owner);
  for (; *prefix; prefix++) {
    if (*prefix == '-') *prefix = '_';
    if (*prefix >= 'a' && *prefix <= 'z') *prefix = (char)(*prefix - 'a' + 'A'); /* whatever the locale says */
  }
}

/* NULL if the parameter is sound and can be had, else what is wrong with it. */
static const char *wrong_with(const char *owner, const helio_parameter *p) {
  char prefix[80];
  prefix_of(owner, prefix, sizeof prefix);
  size_t length = strlen(prefix);
  if (!p->name || strncmp(p->name, prefix, length) != 0 || !p->name[length]) {
    return "has a name that does not begin with HELIO_ and the plugin's own";
  }
  if (p->kind < HELIO_PARAMETER_TEXT || p->kind > HELIO_PARAMETER_CHOICE) return "is of an unknown kind";
  if (p->kind == HELIO_PARAMETER_CHOICE && !p->choices) return "lacks choices";
  if (!p->default_value) return "lacks a default";
  if (!p->help || !*p->help) return "lacks a help text";
  if (find(p->name)) return "is taken already";
  return entry_count == sizeof entries / sizeof entries[0] ? "is one too many" : NULL;
}

static helio_status add_one(const char *owner, const helio_parameter *parameter, char *reason, size_t size) {
  static const kind kinds[] = {[HELIO_PARAMETER_TEXT] = TEXT,
                               [HELIO_PARAMETER_FLAG] = FLAG,
                               [HELIO_PARAMETER_INTEGER] = INTEGER,
                               [HELIO_PARAMETER_CHOICE] = CHOICE};
  helio_parameter p = {.name = NULL};
  const char *wrong = hi_struct_read(&p, sizeof p, HELIO_STRUCT_SIZE(helio_parameter, help), parameter);
  if (!wrong) wrong = wrong_with(owner, &p);
  if (wrong) {
    snprintf(reason, size, "parameter %s %s", p.name ? p.name : "(without name)", wrong);
    return HELIO_ABI_MISMATCH;
  }
  entry *e = entry_new(p.name, kinds[p.kind], p.default_value, p.choices, p.help, owner);
  if (!e) {
    snprintf(reason, size, "no memory for its parameters");
    return HELIO_OUT_OF_MEMORY;
  }
  append(e);
  const char *expected = parse_value(e);
  if (!expected) return HELIO_OK;
  snprintf(reason, size, "%s=%s: expected %s", e->info.name, e->info.value, expected);
  return HELIO_INVALID_ARGUMENT;
}

static void refuse(const char *owner, int before) {
  while (entry_count > before) entry_free(entries[--entry_count]);
  if (refused_count == sizeof refused / sizeof refused[0]) return;
  prefix_of(owner, refused[refused_count++], sizeof refused[0]);
}

helio_status hi_environment_add(const char *owner, const helio_parameter *const *parameters, char *reason,
                                size_t size) {
  int before = entry_count;
  for (; parameters && *parameters; parameters++) {
    helio_status status = add_one(owner, *parameters, reason, size);
    if (status) {
      refuse(owner, before);
      return status;
    }
  }
  return HELIO_OK;
}

const char *hi_environment_parameter(const char *owner, const char *name) {
  entry *e = find(name);
  return e && strcmp(e->info.owner, owner) == 0 ? e->info.value : NULL;
}

static bool belongs_to_refused(const char *name) {
  for (int i = 0; i < refused_count; i++) {
    if (strncmp(name, refused[i], strlen(refused[i])) == 0) return true;
  }
  return false;
}

void hi_environment_warn_unknown(void) {
  const char *names[sizeof entries / sizeof entries[0]];
  for (int i = 0; i < entry_count; i++) names[i] = entries[i]->info.name;
  for (char **variable = environ; variable && *variable; variable++) {
    char name[128];
    size_t length = strcspn(*variable, "=");
    /* HELIO_TEST_… belongs to the project's test programs. */
    if (strncmp(*variable, "HELIO_", 6) != 0 || strncmp(*variable, "HELIO_TEST_", 11) == 0) continue;
    if (length >= sizeof name) length = sizeof name - 1;
    memcpy(name, *variable, length);
    name[length] = 0;
    if (find(name) || belongs_to_refused(name)) continue;
    const char *near = hi_nearest(name, names, entry_count);
    hi_log(HELIO_LOG_WARNING, "the variable %s is set but means nothing%s%s%s", name, near ? "; did you mean " : "",
           near ? near : "", near ? "?" : "");
  }
}

const helio_setting *const *helio_settings(int *count) {
  if (hi_enter(__func__)) return NULL;
  if (!count) {
    hi_fail(HELIO_INVALID_ARGUMENT, "count is NULL");
    return NULL;
  }
  *count = entry_count;
  return public_list;
}
