/* SPDX-License-Identifier: Apache-2.0 */
/* JSON objects from files that may be hostile. jansson needs up to 75 bytes of memory for each byte of text, so a large
 * object is walked member by member and only one value at a time becomes a json_t. */
#ifndef HI_JSON_H
#define HI_JSON_H

#include <helio/helio.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct hi_json_walk {
  const char *text;
  size_t length;
  size_t at;         /* the next byte; where the problem is if there is one */
  bool first;        /* no member of the object was met yet */
  char problem[200]; /* "" as long as all is well */
  bool no_memory;    /* is the problem, as far as can be told */
} hi_json_walk;

/* Goes into the object that begins at the next byte. False with a problem if none begins there. */
bool hi_json_enter(hi_json_walk *walk);

/* The key of the object's next member, a string without NUL in it that is the caller's; its value must be read or
 * entered next. NULL when the object has ended or with a problem. Duplicates are for the caller to find. */
json_t *hi_json_key(hi_json_walk *walk);

/* The next value, which is the caller's. NULL with a problem, for instance if its text is longer than `limit` bytes. No
 * key stands twice in any object of it. */
json_t *hi_json_value(hi_json_walk *walk, size_t limit);

/* Nothing but white space may follow. False with a problem. */
bool hi_json_end(hi_json_walk *walk);

/* A value as text, which the caller frees with free(). NULL, without the error set, if memory is out. */
char *hi_json_text(const json_t *value);

/* A string as JSON, quoted, which the caller frees with free(). HELIO_INVALID_ARGUMENT, without the error set: it is
 * not UTF-8; HELIO_OUT_OF_MEMORY, likewise. */
helio_status hi_json_quoted(const char *text, char **quoted);

/* Numbers, also those that JSON does not have, which are text: "nan", "inf", "-inf". False if it is none. */
json_t *hi_json_number(double value);
bool hi_json_number_read(const json_t *json, double *value);

/* The begin of a text, made printable, for a message. */
enum { HI_SHOWN = 101 };
const char *hi_shown(const char *text, char shown[HI_SHOWN]);

/* json_loadb(). Where memory is out it is NULL, and the text of the error is empty. */
json_t *hi_json_load(const char *text, size_t length, size_t flags, json_error_t *error);

#endif
