/* SPDX-License-Identifier: Apache-2.0 */
#include "data/position.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/permute.h"
#include "runtime/error.h"

/* "helio-position-1 FINGERPRINT COUNT BIRTHS BIRTH… CHECK": numbers are decimal, the first and the last hexadecimal. */
static const char head[] = "helio-position-1 ";
enum { MOST_BIRTHS = 1 << 16 };

static uint64_t check_of(const hi_position *position) {
  uint64_t check = hi_mix(position->fingerprint, (uint64_t)position->count);
  for (int i = 0; i < position->birth_count; i++) check = hi_mix(check, (uint64_t)position->births[i]);
  return check;
}

char *hi_position_text(const hi_position *position) {
  char *text = NULL;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  if (out) {
    fprintf(out, "%s%016" PRIx64 " %" PRId64 " %d", head, position->fingerprint, position->count,
            position->birth_count);
    for (int i = 0; i < position->birth_count; i++) fprintf(out, " %" PRId64, position->births[i]);
    fprintf(out, " %016" PRIx64, check_of(position));
    bool bad = ferror(out);
    if (fclose(out) == 0 && !bad) return text;
  }
  free(text);
  hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a position");
  return NULL;
}

/* ---- reading ---- */

static bool read_hexadecimal(const char **text, uint64_t *number) {
  *number = 0;
  for (int i = 0; i < 16; i++, (*text)++) {
    static const char digits[] = "0123456789abcdef";
    const char *digit = **text ? strchr(digits, **text) : NULL;
    if (!digit) return false;
    *number = *number << 4 | (uint64_t)(digit - digits);
  }
  return true;
}

static bool read_decimal(const char **text, int64_t *number) {
  *number = 0;
  const char *first = *text;
  for (; **text >= '0' && **text <= '9'; (*text)++) {
    if (*number > (INT64_MAX - 10) / 10) return false;
    *number = *number * 10 + (**text - '0');
  }
  return *text > first && *(*text)++ == ' ';
}

static bool read_births(const char **text, hi_position *position) {
  int64_t count;
  if (!read_decimal(text, &count) || count > MOST_BIRTHS || (size_t)count * 2 > strlen(*text)) return false;
  position->births = calloc((size_t)count + 1, sizeof *position->births);
  if (!position->births) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a position");
    return false;
  }
  position->birth_count = (int)count;
  for (int i = 0; i < count; i++) {
    if (!read_decimal(text, &position->births[i])) return false;
  }
  return true;
}

static bool read_all(const char *text, hi_position *position) {
  uint64_t check;
  if (strncmp(text, head, sizeof head - 1) != 0) return false;
  text += sizeof head - 1;
  return read_hexadecimal(&text, &position->fingerprint) && *text++ == ' ' && read_decimal(&text, &position->count) &&
         read_births(&text, position) && read_hexadecimal(&text, &check) && *text == 0 && check == check_of(position);
}

helio_status hi_position_parse(const char *text, hi_position *position) {
  hi_position read = {0};
  if (!text) return hi_fail(HELIO_INVALID_ARGUMENT, "the position is NULL");
  if (!read_all(text, &read)) {
    free(read.births);
    return hi_fail(HELIO_BAD_DATA, "'%.60s' is not a position of an iterator of this version, or was damaged", text);
  }
  *position = read;
  return HELIO_OK;
}
