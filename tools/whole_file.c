/* SPDX-License-Identifier: Apache-2.0 */
#include "whole_file.h"

#include <stdio.h>

#include "data/replacement.h"

static char failure[sizeof((hi_replacement *)0)->problem];

static const char *end(hi_replacement *file, helio_status status) {
  snprintf(failure, sizeof failure, "%s", file->problem);
  hi_replacement_end(file);
  return status ? failure : NULL;
}

const char *whole_file_write(const char *path, const char *data, size_t bytes) {
  hi_replacement file;
  helio_status status = hi_replacement_begin(&file, path);
  if (!status) status = hi_replacement_write(&file, 0, data, bytes);
  if (!status) status = hi_replacement_finish(&file);
  return end(&file, status);
}

const char *whole_file_check(const char *path) {
  hi_replacement file;
  return end(&file, hi_replacement_begin(&file, path));
}
