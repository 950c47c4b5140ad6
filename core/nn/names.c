/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/names.h"

#include <stdio.h>
#include <string.h>

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

/* "there is no loss 'foo'; there are mean_squared_error, …": by one name each. */
static void list_names(const char *what, const char *name, const void *rows, size_t row_bytes, int row_count) {
  char list[1500] = "";
  for (int i = 0; i < row_count; i++) {
    const hi_names *row = (const void *)((const char *)rows + (size_t)i * row_bytes);
    size_t length = strlen(list);
    snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", row->name);
  }
  hi_fail(HELIO_INVALID_ARGUMENT, "there is no %s '%.100s'; there are %s", what, name, list);
}

const void *hi_named(const char *what, const char *name, const void *rows, size_t row_bytes, int row_count) {
  const char *names[MOST_NAMES] = {NULL};
  int count = 0;
  if (!name) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the name of the %s is NULL", what);
    return NULL;
  }
  for (int i = 0; i < row_count && count + NAMES_OF_ROW <= MOST_NAMES; i++) {
    const void *row = (const char *)rows + (size_t)i * row_bytes;
    for (int end = count + names_of(row, names + count); count < end; count++) {
      if (!strcmp(names[count], name)) return row;
    }
  }
  const char *near = hi_nearest(name, names, count);
  if (near) {
    hi_fail(HELIO_INVALID_ARGUMENT, "there is no %s '%s'; did you mean '%s'?", what, name, near);
  } else {
    list_names(what, name, rows, row_bytes, row_count);
  }
  return NULL;
}
