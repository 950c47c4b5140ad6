/* SPDX-License-Identifier: Apache-2.0 */
/* Operations by name, for tools and authors of backends. */
#include <string.h>

#include "ops/options.h"
#include "runtime/error.h"
#include "runtime/nearest.h"

static helio_status unknown(const char *name) {
  int count;
  const helio_operation_info *const *list = helio_operations(&count);
  const char *names[128];
  if (!list || !name) return hi_fail(HELIO_INVALID_ARGUMENT, "operation is NULL");
  if (count > 128) count = 128;
  for (int i = 0; i < count; i++) names[i] = list[i]->name;
  const char *near = hi_nearest(name, names, count);
  return hi_fail(HELIO_INVALID_ARGUMENT, "there is no operation '%s'%s%s%s", name, near ? "; did you mean '" : "",
                 near ? near : "", near ? "'?" : "");
}

/* May the results that are not wanted be left out? */
static helio_status check_no_outputs(const hi_row *row, uint32_t no_outputs) {
  for (int i = 0; i < 32; i++) {
    if (!(no_outputs >> i & 1) || (i < hi_row_outputs(row) && hi_row_output_optional(row, i))) continue;
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s has no result %d that may be left out", row->info.name, i);
  }
  return HELIO_OK;
}

helio_status helio_operation_run(const helio_operation_options *given, helio_tensor *outputs[3]) {
  helio_operation_options o;
  if (!hi_options_enter("helio_operation_run", &o, sizeof o, given)) return helio_error_pending();
  const hi_row *row = hi_row_named(o.operation);
  if (!row) return unknown(o.operation);
  if (row->kind != HI_ROW_KERNEL) {
    return hi_fail(HELIO_NOT_SUPPORTED, "%s has no kernel: call helio_%s", row->info.name, row->info.name);
  }
  if (o.scalar_count != row->scalars || (row->scalars && !o.scalars) || !outputs) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s has %d scalars, not %d", row->info.name, row->scalars, o.scalar_count);
  }
  helio_status status = check_no_outputs(row, o.no_outputs);
  if (status) return status;
  hi_call call = {.row = row,
                  .inputs = o.inputs,
                  .input_count = o.input_count,
                  .no_outputs = o.no_outputs,
                  .wanted = o.shape,
                  .wanted_type = o.type ? o.type : HELIO_FLOAT32};
  if (o.attributes) {
    size_t size = *(const size_t *)o.attributes;
    if (size != row->attributes_size) {
      return hi_fail(HELIO_INVALID_ARGUMENT, "%s: its attributes are %zu bytes, not %zu", row->info.name,
                     row->attributes_size, size);
    }
    memcpy(&call.attributes, o.attributes, size);
  }
  for (int i = 0; i < row->scalars; i++) call.scalars[i] = o.scalars[i];
  return hi_dispatch(&call, outputs);
}
