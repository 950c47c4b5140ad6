/* SPDX-License-Identifier: Apache-2.0 */
/* With and without a header; every cell is looked at, and every column of numbers made an array. */
#include "fuzz.h"

static bool no_header;

static const void *read(hi_file *file) {
  helio_csv *csv = hi_read_csv(file, &(helio_read_csv_options){.no_header = no_header});
  int columns = helio_csv_columns(csv);
  size_t length = 0;
  for (int64_t row = 0; row < helio_csv_rows(csv); row++) {
    for (int i = 0; i < columns; i++) length += strlen(helio_csv_text(csv, row, i));
  }
  if (length > file->size) abort();
  for (int i = 0; i < columns && i < 20; i++) {
    if (!helio_csv_type(csv, i)) continue;
    touch(helio_csv_column(csv, helio_csv_name(csv, i)));
    helio_error_take(NULL); /* another column may have that name */
  }
  return csv;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  no_header = false;
  fuzz_reader(data, size, read);
  no_header = true;
  return fuzz_reader(data, size, read);
}
