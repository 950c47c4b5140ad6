/* SPDX-License-Identifier: Apache-2.0 */
#include "device/name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Copies letters, digits, '-' and '_' in lower case up to ':', '/' or the end. */
static const char *parse_word(const char *text, char word[HI_KIND_LENGTH]) {
  size_t length = 0;
  for (; *text && *text != ':' && *text != '/'; text++) {
    unsigned char c = (unsigned char)*text;
    if (length == HI_KIND_LENGTH - 1 || !(isalnum(c) || c == '-' || c == '_')) return NULL;
    word[length++] = (char)tolower(c);
  }
  word[length] = 0;
  return length > 0 ? text : NULL;
}

static const char *parse_index(const char *text, int *index) {
  int value = 0, digits = 0;
  for (; isdigit((unsigned char)*text); text++, digits++) {
    if (digits == 6) return NULL;
    value = value * 10 + (*text - '0');
  }
  *index = value;
  return digits > 0 ? text : NULL;
}

/* One part of a full name: "job:localhost", "replica:0", "task:0". NULL if it is none of these. */
static const char *parse_prefix(const char *text, const char *part, hi_name *name) {
  size_t length = strlen(part);
  char word[HI_KIND_LENGTH];
  if (strncasecmp(text, part, length) != 0 || text[length] != ':') return text;
  text = parse_word(text + length + 1, word);
  if (!text || *text != '/') return NULL;
  if (strcmp(word, strcmp(part, "job") == 0 ? "localhost" : "0") != 0) name->remote = true;
  return text + 1;
}

bool hi_name_parse(const char *text, hi_name *name) {
  static const char *const parts[] = {"job", "replica", "task"};
  memset(name, 0, sizeof *name);
  if (*text == '/') text++;
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    text = parse_prefix(text, parts[i], name);
    if (!text) return false;
  }
  text = parse_word(text, name->kind);
  if (!text) return false;
  name->physical = strcmp(name->kind, "physical_device") == 0;
  if (name->physical || strcmp(name->kind, "device") == 0) {
    if (*text != ':' || !(text = parse_word(text + 1, name->kind))) return false;
  }
  if (*text == ':' && !(text = parse_index(text + 1, &name->index))) return false;
  return *text == 0;
}

static void print(const char *before, const char *kind, int index, char text[HI_NAME_LENGTH]) {
  int length = snprintf(text, HI_NAME_LENGTH, "%s", before);
  for (; *kind && length < HI_NAME_LENGTH - 12; kind++) text[length++] = (char)toupper((unsigned char)*kind);
  snprintf(text + length, (size_t)(HI_NAME_LENGTH - length), ":%d", index);
}

void hi_name_print(const char *kind, int index, char text[HI_NAME_LENGTH]) {
  print("/job:localhost/replica:0/task:0/device:", kind, index, text);
}

void hi_name_print_physical(const char *kind, int index, char text[HI_NAME_LENGTH]) {
  print("/physical_device:", kind, index, text);
}
