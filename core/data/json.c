/* SPDX-License-Identifier: Apache-2.0 */
#include "data/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/printable.h"

static void skip_space(hi_json_walk *walk) {
  while (walk->at < walk->length && memchr(" \t\n\r", walk->text[walk->at], 4)) walk->at++;
}

static bool next_is(const hi_json_walk *walk, char byte) {
  return walk->at < walk->length && walk->text[walk->at] == byte;
}

static bool expect(hi_json_walk *walk, char byte) {
  if (next_is(walk, byte)) {
    walk->at++;
    return true;
  }
  snprintf(walk->problem, sizeof walk->problem, "%s where '%c' is expected",
           walk->at < walk->length ? "something else stands" : "the text ends", byte);
  return false;
}

bool hi_json_enter(hi_json_walk *walk) {
  walk->first = true;
  return expect(walk, '{');
}

json_t *hi_json_key(hi_json_walk *walk) {
  skip_space(walk);
  if (next_is(walk, '}')) {
    walk->at++;
    walk->first = false; /* of the object around this one */
    return NULL;
  }
  if (!walk->first) {
    if (!expect(walk, ',')) return NULL;
    skip_space(walk);
  }
  walk->first = false;
  if (!next_is(walk, '"')) {
    expect(walk, '"');
    return NULL;
  }
  json_t *key = hi_json_value(walk, walk->length);
  if (!key) return NULL;
  skip_space(walk);
  if (expect(walk, ':')) {
    skip_space(walk);
    return key;
  }
  json_decref(key);
  return NULL;
}

/* jansson's words, without what they advise the programmer: "… is not allowed without JSON_ALLOW_NUL near …". */
static void remove_advice(char *text) {
  static const char advice[] = " without JSON_ALLOW_NUL";
  char *found = strstr(text, advice);
  if (found) memmove(found, found + sizeof advice - 1, strlen(found + sizeof advice - 1) + 1);
}

/* jansson does not come through a lack of memory: it cuts strings short without a word, or ends the program. So what it
 * may need is asked for before; what it did not get all the same is seen by errno. */
json_t *hi_json_load(const char *text, size_t length, size_t flags, json_error_t *error) {
  enum { NEEDED_PER_BYTE = 75, NEEDED = 4096 };
  int before = errno; /* which may tell the caller of a lack of memory as well */
  errno = 0;
  void *needed = malloc(NEEDED + NEEDED_PER_BYTE * length);
  bool enough = needed;
  free(needed);
  json_t *value = enough ? json_loadb(text, length, flags, error) : NULL;
  if (enough && errno != ENOMEM) {
    errno = before;
    if (!value) remove_advice(error->text);
    return value;
  }
  json_decref(value);
  *error = (json_error_t){0};
  return NULL;
}

/* Of the string that begins at the next byte, with its quotes. */
static size_t string_length(const hi_json_walk *walk) {
  size_t end = walk->at + 1;
  while (end < walk->length && walk->text[end] != '"') end += walk->text[end] == '\\' ? 2 : 1;
  return end < walk->length ? end + 1 - walk->at : walk->length - walk->at;
}

static void set_problem(hi_json_walk *walk, const char *text) {
  walk->no_memory = !*text;
  if (walk->no_memory) text = "no memory is left";
  snprintf(walk->problem, sizeof walk->problem, "%.180s", text);
}

json_t *hi_json_value(hi_json_walk *walk, size_t limit) {
  size_t left = next_is(walk, '"') ? string_length(walk) : walk->length - walk->at;
  size_t given = left < limit ? left : limit;
  json_error_t error;
  json_t *value = hi_json_load(walk->text + walk->at, given,
                               JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
  if (!value && *error.text && given < left && (size_t)error.position >= given) {
    snprintf(walk->problem, sizeof walk->problem, "a value has more than %zu bytes", limit);
    return NULL;
  }
  walk->at += (size_t)error.position; /* of the end, or of what is wrong */
  if (!value) set_problem(walk, error.text);
  return value;
}

bool hi_json_end(hi_json_walk *walk) {
  skip_space(walk);
  if (walk->at == walk->length) return true;
  snprintf(walk->problem, sizeof walk->problem, "something follows the object");
  return false;
}

/* Not json_dumps(): what that returns is to be freed as the program around us told jansson to. */
char *hi_json_text(const json_t *value) {
  size_t length = json_dumpb(value, NULL, 0, JSON_ENCODE_ANY); /* 0 of NULL */
  char *text = length ? malloc(length + 1) : NULL;
  if (!text) return NULL;
  if (json_dumpb(value, text, length, JSON_ENCODE_ANY) == length) {
    text[length] = 0;
    return text;
  }
  free(text);
  return NULL;
}

helio_status hi_json_quoted(const char *text, char **result) {
  errno = 0;
  json_t *string = json_string(text);
  char *quoted = hi_json_text(string);
  json_decref(string);
  if (!quoted) return errno == ENOMEM ? HELIO_OUT_OF_MEMORY : HELIO_INVALID_ARGUMENT;
  *result = quoted;
  return HELIO_OK;
}

static const struct {
  const char *word;
  double value;
} not_finite[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};

json_t *hi_json_number(double value) {
  if (isfinite(value)) return json_real(value);
  return json_string(not_finite[isnan(value) ? 0 : value > 0 ? 1 : 2].word);
}

bool hi_json_number_read(const json_t *json, double *value) {
  const char *word = json_string_value(json);
  *value = json_number_value(json);
  if (!word) return json_is_number(json);
  for (int i = 0; i < 3; i++) {
    if (strcmp(word, not_finite[i].word) != 0) continue;
    *value = not_finite[i].value;
    return true;
  }
  return false;
}

const char *hi_shown(const char *text, char shown[HI_SHOWN]) {
  size_t length = hi_text_fit(text, HI_SHOWN);
  memcpy(shown, text, length);
  shown[length] = '\0';
  hi_make_printable(shown);
  return shown;
}
