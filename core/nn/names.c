/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/names.h"

#include <stdio.h>
#include <string.h>

#include "data/json.h"
#include "runtime/error.h"
#include "runtime/nearest.h"

enum { NAMES_OF_ROW = 2 + HI_OTHER_NAMES, MOST_NAMES = 256 };

/* All names of a row, without gaps; returns their number. */
static int names_of(const hi_names *row, const char *names[NAMES_OF_ROW]) {
  int count = 0;
  names[count++] = row->class_name;
  names[count++] = row->name;
  for (int i = 0; i < HI_OTHER_NAMES && row->others[i]; i++) names[count++] = row->others[i];
  return count;
}

helio_status hi_fail_unknown(helio_status status, const char *what, const char *word, const char *nearest,
                             const char *const *names, int count) {
  char list[1500] = "", shown[HI_SHOWN];
  hi_shown(word, shown);
  if (nearest) return hi_fail(status, "there is no %s '%s'; did you mean '%s'?", what, shown, nearest);
  for (int i = 0; i < count; i++) {
    size_t length = strlen(list);
    snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", names[i]);
  }
  return hi_fail(status, "there is no %s '%s'; there are %s", what, shown, list);
}

const void *hi_named(const char *what, const char *name, const void *rows, size_t row_bytes, int row_count) {
  const char *names[MOST_NAMES] = {NULL}, *listed[MOST_NAMES]; /* of each row one is told */
  int count = 0, rows_seen = 0;
  if (!name) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the name of the %s is NULL", what);
    return NULL;
  }
  for (int i = 0; i < row_count && count + NAMES_OF_ROW <= MOST_NAMES; i++) {
    const hi_names *row = (const void *)((const char *)rows + (size_t)i * row_bytes);
    listed[rows_seen++] = row->name;
    for (int end = count + names_of(row, names + count); count < end; count++) {
      if (!strcmp(names[count], name)) return row;
    }
  }
  hi_fail_unknown(HELIO_INVALID_ARGUMENT, what, name, hi_nearest(name, names, count), listed, rows_seen);
  return NULL;
}
