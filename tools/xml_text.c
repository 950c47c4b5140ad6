/* SPDX-License-Identifier: Apache-2.0 */
#include "xml_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const char REPLACEMENT[] = "\xEF\xBF\xBD", ELLIPSIS[] = "\xE2\x80\xA6";

typedef struct character {
  uint32_t code;
  int bytes;
  bool good; /* UTF-8, and allowed in XML */
} character;

static bool is_allowed(uint32_t code) {
  return (code >= 0x20 && code < 0xD800) || (code >= 0xE000 && code < 0xFFFE) || (code >= 0x10000 && code < 0x110000);
}

/* What is wrong counts as one byte, so that whatever follows is found. */
static character read_character(const char *text) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char *at = (const unsigned char *)text;
  int bytes = at[0] < 0x80 ? 1 : at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : 2;
  uint32_t code = bytes == 1 ? at[0] : at[0] & (0x7Fu >> bytes);
  for (int i = 1; i < bytes; i++) {
    if ((at[i] & 0xC0) != 0x80) return (character){.bytes = 1};
    code = code << 6 | (at[i] & 0x3F);
  }
  if ((at[0] & 0xC0) == 0x80 || at[0] >= 0xF8 || code < least[bytes]) return (character){.bytes = 1};
  return (character){code, bytes, is_allowed(code)};
}

/* Those of East Asia and pictures are twice as wide as letters. */
static int width(character read) {
  return read.code >= 0x1100 ? 2 : 1;
}

static int total_width(const char *text) {
  int total = 0;
  for (character read; *text; text += read.bytes) {
    read = read_character(text);
    total += width(read);
  }
  return total;
}

static void put_character(FILE *out, const char *text, character read) {
  switch (read.code) {
  case '&':
    fputs("&amp;", out);
    break;
  case '<':
    fputs("&lt;", out);
    break;
  case '>':
    fputs("&gt;", out);
    break;
  case '"':
    fputs("&quot;", out);
    break;
  case '\t':
  case '\n':
  case '\r':
    fputc(' ', out);
    break;
  default:
    fprintf(out, "%.*s", read.good ? read.bytes : (int)strlen(REPLACEMENT), read.good ? text : REPLACEMENT);
  }
}

void xml_text_put(FILE *out, const char *text, int most) {
  bool cut = total_width(text) > most;
  int left = cut ? most - 1 : most;
  for (character read; *text; text += read.bytes) {
    read = read_character(text);
    left -= width(read);
    if (left < 0) break;
    put_character(out, text, read);
  }
  if (cut) fputs(ELLIPSIS, out);
}
