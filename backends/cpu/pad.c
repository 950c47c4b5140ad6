/* SPDX-License-Identifier: Apache-2.0 */
/* pad: the input inside a border of one value. The output is walked row by row and written once. */
#include "cpu.h"

#include <string.h>

/* An axis, counted from the innermost: how much of the output lies before the input, how much is the input, and how
 * much there is. The innermost is counted in bytes, the others in rows. */
typedef struct pad_axis {
  size_t before, inside, whole;
} pad_axis;

typedef struct pad_plan {
  helio_plan base;
  helio_type type;
  size_t element;
  size_t bytes;  /* of the output */
  uint32_t axes; /* at least 1 */
  pad_axis axis[HELIO_MAX_RANK + 1];
} pad_plan;

typedef struct pad_work {
  const pad_plan *plan;
  const unsigned char *x;
  unsigned char *y;
  unsigned char value[8]; /* the border's, repeated to eight bytes */
} pad_work;

/* An axis without border is taken into the next one. */
static void join_axes(pad_plan *plan, const helio_argument *x, const helio_argument *y, const int64_t *begin) {
  plan->axis[0] = (pad_axis){0, plan->element, plan->element};
  plan->axes = 1;
  for (uint32_t i = x->rank; i-- > 0;) {
    pad_axis next = {(size_t)begin[i], (size_t)x->extent[i], (size_t)y->extent[i]};
    pad_axis *last = &plan->axis[plan->axes - 1];
    if (last->inside == last->whole) {
      *last = (pad_axis){next.before * last->whole, next.inside * last->whole, next.whole * last->whole};
    } else if (next.whole != 1 || next.inside != 1) {
      plan->axis[plan->axes++] = next;
    }
  }
}

static helio_status pad_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"T", "T", CALL_ALL_TYPES};
  helio_slice_attributes attributes;
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = cpu_call_attributes(device, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *y = call_output(call);
  bool fits = x->rank == y->rank;
  for (uint32_t i = 0; fits && i < x->rank; i++)
    fits = attributes.begin[i] >= 0 && attributes.begin[i] <= y->extent[i] - x->extent[i];
  if (!fits) return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "PAD: the input reaches outside");
  pad_plan *plan = (pad_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->type = (helio_type)x->type;
  plan->element = call_type_size(x->type);
  plan->bytes = call_element_count(y) * plan->element;
  plan->base.empty = plan->bytes == 0;
  join_axes(plan, x, y, attributes.begin);
  plan->base.parts = cpu_parts_for_bytes(device, plan->bytes * 2);
  answer->plan = &plan->base;
  answer->workspace = 0;
  return HELIO_OK;
}

/* Both ends of a row of bytes are multiples of the element's size, and so of the value's. */
static void fill(unsigned char *y, const unsigned char *value, size_t bytes) {
  for (; bytes >= 8; bytes -= 8, y += 8) memcpy(y, value, 8);
  if (bytes > 0) memcpy(y, value, bytes);
}

/* The number of the input's row that output row `row` holds; false if it is all border. */
static bool source_row(const pad_plan *plan, size_t row, size_t *source) {
  size_t step = 1;
  *source = 0;
  for (uint32_t i = 1; i < plan->axes; i++) {
    const pad_axis *axis = &plan->axis[i];
    size_t at = row % axis->whole;
    if (at < axis->before || at - axis->before >= axis->inside) return false;
    *source += (at - axis->before) * step;
    step *= axis->inside;
    row /= axis->whole;
  }
  return true;
}

/* Bytes `begin` to `end` of output row `row`. */
static void pad_row(const pad_work *work, size_t row, size_t begin, size_t end) {
  const pad_axis *axis = &work->plan->axis[0];
  unsigned char *y = work->y + row * axis->whole;
  size_t first = axis->before, last = axis->before + axis->inside, source;
  if (!source_row(work->plan, row, &source) || end <= first || begin >= last) {
    fill(y + begin, work->value, end - begin);
    return;
  }
  size_t from = begin > first ? begin : first, to = end < last ? end : last;
  fill(y + begin, work->value, from - begin);
  if (from < to) memcpy(y + from, work->x + source * axis->inside + (from - first), to - from);
  fill(y + to, work->value, end - to);
}

static void pad_part(void *argument, unsigned part, unsigned parts) {
  const pad_work *work = argument;
  size_t whole = work->plan->axis[0].whole;
  cpu_range range = cpu_part_range(work->plan->bytes, 64, part, parts);
  size_t row = range.begin / whole, column = range.begin % whole;
  for (size_t at = range.begin; at < range.end; row++, column = 0) {
    size_t bytes = whole - column < range.end - at ? whole - column : range.end - at;
    pad_row(work, row, column, column + bytes);
    at += bytes;
  }
}

static helio_status pad_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const pad_plan *plan = (const pad_plan *)base;
  pad_work work = {.plan = plan, .x = cpu_run_address(run, 0), .y = cpu_run_address(run, 1)};
  double value = run_real(run, 0);
  unsigned saved = cpu_float_begin(CPU_FLOAT_EXACT);
  base->device->vector->cast(plan->type, HELIO_FLOAT64, work.value, &value, 1);
  cpu_float_end(CPU_FLOAT_EXACT, saved);
  for (size_t i = plan->element; i < sizeof work.value; i++) work.value[i] = work.value[i - plan->element];
  cpu_plan_execute(base, pad_part, &work);
  return HELIO_OK;
}

const helio_kernel cpu_kernel_pad = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_PAD,
    .types = CALL_ALL_TYPES,
    .plan = pad_plan_make,
    .run = pad_run,
    .plan_free = cpu_plan_free,
};
