/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/options.h"

#include <string.h>

#include "ops/shape.h"
#include "runtime/error.h"

static bool read_options(void *to, size_t known, const void *from) {
  if (!from) {
    hi_fail(HELIO_INVALID_ARGUMENT, "options is NULL");
    return false;
  }
  size_t size = *(const size_t *)from;
  if (size < sizeof(size_t) || size >= 65536) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the options' size is %zu; set it to sizeof the struct", size);
    return false;
  }
  if (!helio_struct_fits(from, known)) {
    hi_fail(HELIO_NOT_SUPPORTED, "the program was built for a newer helio and sets an option that this one lacks");
    return false;
  }
  memset(to, 0, known);
  memcpy(to, from, size < known ? size : known);
  return true;
}

bool hi_options_enter(const char *function, void *to, size_t known, const void *from) {
  return !hi_enter(function) && read_options(to, known, from);
}

bool hi_options_axes(const hi_row *row, const helio_shape *shape, const helio_axes *axes, uint32_t *set) {
  *set = 0;
  if (axes->count < 0 || axes->count > HELIO_MAX_RANK) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%s: %d axes", row->info.label, axes->count);
    return false;
  }
  for (int i = 0; i < axes->count; i++) {
    int axis = hi_axis(row->info.label, axes->axis[i], shape);
    if (axis < 0) return false;
    *set |= 1u << axis;
  }
  return true;
}

helio_tensor *hi_unary(const char *function, helio_operation operation, helio_tensor *x) {
  hi_call call = {.row = hi_row_of(operation), .inputs = &x, .input_count = 1};
  return hi_enter(function) ? NULL : hi_dispatch_one(&call);
}

helio_tensor *hi_binary(const char *function, helio_operation operation, helio_tensor *a, helio_tensor *b) {
  hi_call call = {.row = hi_row_of(operation), .inputs = (helio_tensor *[]){a, b}, .input_count = 2};
  return hi_enter(function) ? NULL : hi_dispatch_one(&call);
}

helio_tensor *hi_scalar(helio_type type, double value) {
  return helio_fill(HELIO_SCALAR, value, .type = type);
}

helio_tensor *hi_scalar_like(const helio_tensor *x, double value) {
  return x ? hi_scalar(helio_tensor_type(x), value) : NULL;
}
