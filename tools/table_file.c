/* SPDX-License-Identifier: Apache-2.0 */
#include "table_file.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "command.h"

bool table_file_is(const char *file) {
  return command_ends_in(file, ".csv") || command_ends_in(file, ".tsv");
}

/* ---- names ---- */

/* Is a column called by something else than a number? A cell that is missing is no name. */
bool table_file_has_names(const helio_csv *csv) {
  for (int i = 0; i < helio_csv_columns(csv); i++) {
    char *end;
    strtod(helio_csv_name(csv, i), &end);
    if (end[strspn(end, " \t")]) return true;
  }
  return false;
}

helio_csv *table_file_open(const char *file, bool no_header) {
  char separator = command_ends_in(file, ".tsv") ? '\t' : ',';
  helio_csv *csv = helio_read_csv(file, separator, .no_header = no_header);
  return !csv || no_header || table_file_has_names(csv) ? csv : helio_read_csv(file, separator, .no_header = true);
}

/* ---- labels ---- */

/* Is the column called so? Capitals make no other name, nor do blanks around it. */
static bool is_called(const helio_csv *csv, int column, const char *name) {
  const char *text = helio_csv_name(csv, column);
  size_t length = strlen(name);
  text += strspn(text, " \t");
  return strncasecmp(text, name, length) == 0 && !text[length + strspn(text + length, " \t")];
}

/* One that is called label comes before one that is called y, because x and y may be features. */
int table_file_labels(const helio_csv *csv) {
  static const char *const names[] = {"label", "class", "target", "y"};
  for (int k = 0; k < 4; k++) {
    for (int i = 0; i < helio_csv_columns(csv); i++) {
      if (is_called(csv, i, names[k])) return i;
    }
  }
  return -1;
}
