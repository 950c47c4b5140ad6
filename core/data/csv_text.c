/* SPDX-License-Identifier: Apache-2.0 */
#include "data/csv_text.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"

enum { MOST_COLUMNS = 1 << 20 };

typedef struct cutting {
  hi_csv_text *cut;
  const hi_file *file;
  char separator;
  size_t at, written;
  int64_t line;
  int column; /* of the cell that is being read, from 0 on */
} cutting;

static helio_status fail(const cutting *c, int64_t line, const char *cause) {
  return hi_fail(HELIO_BAD_DATA, "%s, line %lld, column %d: %s", c->file->name, (long long)line, c->column + 1, cause);
}

static bool grow(void **items, size_t room, size_t size) {
  void *larger = realloc(*items, room * size);
  if (larger) *items = larger;
  return larger;
}

static helio_status no_memory(const cutting *c) {
  return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for its cells", c->file->name);
}

static helio_status begin_row(const cutting *c) {
  hi_csv_text *cut = c->cut;
  if (cut->rows == cut->row_room) {
    void *lines = cut->lines;
    int64_t room = cut->row_room ? 2 * cut->row_room : 64;
    if (!grow(&lines, (size_t)room, sizeof *cut->lines)) return no_memory(c);
    cut->lines = lines;
    cut->row_room = room;
  }
  cut->lines[cut->rows] = c->line;
  return HELIO_OK;
}

static helio_status begin_cell(const cutting *c) {
  hi_csv_text *cut = c->cut;
  if (c->column == MOST_COLUMNS) return fail(c, c->line, "there are too many columns");
  if (cut->cell_count == cut->cell_room) {
    void *cells = cut->cells;
    size_t room = cut->cell_room ? 2 * cut->cell_room : 256;
    if (!grow(&cells, room, sizeof *cut->cells)) return no_memory(c);
    cut->cells = cells;
    cut->cell_room = room;
  }
  cut->cells[cut->cell_count++] = c->written;
  return HELIO_OK;
}

/* The next byte, −1 at the end; CRLF is '\n'. */
static int peek(const cutting *c, size_t *bytes) {
  const unsigned char *at = c->file->bytes + c->at;
  size_t left = c->file->size - c->at;
  *bytes = left > 1 && at[0] == '\r' && at[1] == '\n' ? 2 : left > 0;
  return *bytes == 2 ? '\n' : *bytes ? at[0] : -1;
}

static bool ends_cell(const cutting *c, int byte) {
  return byte < 0 || byte == '\n' || byte == (unsigned char)c->separator;
}

static void write_bytes(cutting *c, size_t count) {
  memcpy(c->cut->text + c->written, c->file->bytes + c->at, count);
  c->written += count;
  c->at += count;
}

static helio_status read_plain(cutting *c) {
  size_t bytes;
  for (int byte; !ends_cell(c, byte = peek(c, &bytes)); write_bytes(c, bytes)) {
    if (byte == '"') return fail(c, c->line, "a quote stands inside a cell that does not begin with one");
    if (byte == '\r') return fail(c, c->line, "a carriage return has no line feed behind it");
    if (byte == 0) return fail(c, c->line, "a byte is 0");
  }
  return HELIO_OK;
}

static helio_status read_quoted(cutting *c) {
  int64_t begun = c->line;
  size_t bytes;
  for (c->at++;;) {
    int byte = peek(c, &bytes);
    if (byte < 0) return fail(c, begun, "the quote that begins here does not end");
    if (byte == 0) return fail(c, c->line, "a byte is 0");
    if (byte == '\n') c->line++;
    if (byte == '"') {
      c->at++;
      byte = peek(c, &bytes);
      if (ends_cell(c, byte)) return HELIO_OK;
      if (byte != '"') return fail(c, c->line, "something follows the quote that ends the cell");
    }
    write_bytes(c, bytes);
  }
}

/* One cell and what ends it; `last` says whether that was the end of the row. */
static helio_status read_cell(cutting *c, bool *last) {
  size_t bytes;
  helio_status status = begin_cell(c);
  if (status) return status;
  status = peek(c, &bytes) == '"' ? read_quoted(c) : read_plain(c);
  if (status) return status;
  c->cut->text[c->written++] = 0;
  int byte = peek(c, &bytes);
  c->at += bytes;
  *last = byte < 0 || byte == '\n';
  if (byte == '\n') c->line++;
  return HELIO_OK;
}

static helio_status read_row(cutting *c) {
  hi_csv_text *cut = c->cut;
  int64_t line = c->line;
  helio_status status = begin_row(c);
  c->column = 0;
  for (bool last = false; !status && !last; c->column += !status) status = read_cell(c, &last);
  if (status) return status;
  if (cut->rows++ == 0) cut->columns = c->column;
  if (c->column == cut->columns) return HELIO_OK;
  return hi_fail(HELIO_BAD_DATA, "%s, line %lld: the row has %d cells, the first one has %d", c->file->name,
                 (long long)line, c->column, cut->columns);
}

static void skip_empty_lines(cutting *c) {
  for (size_t bytes; peek(c, &bytes) == '\n'; c->at += bytes) c->line++;
}

helio_status hi_csv_cut(hi_csv_text *cut, const hi_file *file, char separator) {
  static const char byte_order_mark[] = "\xEF\xBB\xBF";
  cutting c = {.cut = cut, .file = file, .separator = separator, .line = 1};
  cut->text = malloc(file->size + 1); /* the 0 behind each cell is in the place of what ends it */
  if (!cut->text) return no_memory(&c);
  if (file->size >= 3 && memcmp(file->bytes, byte_order_mark, 3) == 0) c.at = 3;
  helio_status status = HELIO_OK;
  for (skip_empty_lines(&c); !status && c.at < file->size; skip_empty_lines(&c)) status = read_row(&c);
  return status;
}

void hi_csv_free(hi_csv_text *cut) {
  free(cut->text);
  free(cut->cells);
  free(cut->lines);
}
