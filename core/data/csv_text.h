/* SPDX-License-Identifier: Apache-2.0 */
/* Text with separators cut into cells, as RFC 4180 says: a cell in quotes may have separators and line ends in it, and
 * quotes, which are doubled. Lines end with LF or CRLF; those without any character are left out. */
#ifndef HI_CSV_TEXT_H
#define HI_CSV_TEXT_H

#include "data/file.h"

typedef struct hi_csv_text {
  char *text;    /* of all cells, each with a 0 behind it */
  size_t *cells; /* where each begins, row after row */
  size_t cell_count, cell_room;
  int64_t *lines; /* in which each row begins, from 1 on */
  int64_t rows, row_room;
  int columns;
} hi_csv_text;

/* `cut` is zero; it is to be freed whatever comes of it. Errors name the file, the line and the column. */
helio_status hi_csv_cut(hi_csv_text *cut, const hi_file *file, char separator);
void hi_csv_free(hi_csv_text *cut);

static inline const char *hi_csv_cell(const hi_csv_text *cut, int64_t row, int column) {
  return cut->text + cut->cells[(size_t)row * (size_t)cut->columns + (size_t)column];
}

#endif
