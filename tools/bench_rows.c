/* SPDX-License-Identifier: Apache-2.0 */
/* helio bench ops, the table: what each operation achieves on small, middling and large tensors. Operations that move
 * data are measured in bytes that must be read and written at least, matrix products in operations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "output.h"

enum { COLUMNS = 1024, PARTS = 4 };

typedef struct inputs {
  helio_shape shape;
  helio_tensor *a, *b, *bias;
  helio_tensor *parts[PARTS];
} inputs;

static helio_tensor *run_fill(const inputs *in) {
  return helio_fill(in->shape, 1.5);
}
static helio_tensor *run_copy(const inputs *in) {
  return helio_copy(in->a);
}
static helio_tensor *run_cast(const inputs *in) {
  return helio_cast(in->a, HELIO_FLOAT64);
}
static helio_tensor *run_add(const inputs *in) {
  return helio_add(in->a, in->b);
}
static helio_tensor *run_sub(const inputs *in) {
  return helio_sub(in->a, in->b);
}
static helio_tensor *run_mul(const inputs *in) {
  return helio_mul(in->a, in->b);
}
static helio_tensor *run_add_row(const inputs *in) {
  return helio_add(in->a, in->bias);
}
static helio_tensor *run_add_n(const inputs *in) {
  return helio_add_n(in->parts, PARTS);
}
static helio_tensor *run_relu(const inputs *in) {
  return helio_relu(in->a);
}
static helio_tensor *run_sum(const inputs *in) {
  return helio_sum(in->a);
}
static helio_tensor *run_sum_rows(const inputs *in) {
  return helio_sum(in->a, .axes = HELIO_AXES(0));
}
static helio_tensor *run_sum_columns(const inputs *in) {
  return helio_sum(in->a, .axes = HELIO_AXES(1));
}
static helio_tensor *run_concat(const inputs *in) {
  return helio_concat(in->parts, 2, 1);
}

static helio_tensor *run_slice(const inputs *in) {
  return helio_slice(in->a, HELIO_SHAPE(0, COLUMNS / 4), HELIO_SHAPE(-1, COLUMNS / 2));
}

static const struct moving_row {
  const char *operation;
  const char *variant;
  helio_tensor *(*run)(const inputs *in);
  double bytes; /* read and written for each element of the first input */
} moving_rows[] = {
    {"fill", "", run_fill, 4},
    {"copy", "", run_copy, 8},
    {"cast", "to float64 ", run_cast, 12},
    {"slice", "half of the columns of ", run_slice, 4},
    {"concat", "columns of two ", run_concat, 16},
    {"add", "", run_add, 12},
    {"add", "one row to ", run_add_row, 8},
    {"sub", "", run_sub, 12},
    {"mul", "", run_mul, 12},
    {"add_n", "four ", run_add_n, 4 * (PARTS + 1)},
    {"sum", "all of ", run_sum, 4},
    {"sum", "rows of ", run_sum_rows, 4},
    {"sum", "columns of ", run_sum_columns, 4},
    {"relu", "", run_relu, 8},
};

static helio_tensor *run_matmul(const inputs *in) {
  return helio_matmul(in->a, in->b);
}
static helio_tensor *run_matmul_left(const inputs *in) {
  return helio_matmul(in->a, in->b, .transpose_a = true);
}
static helio_tensor *run_matmul_right(const inputs *in) {
  return helio_matmul(in->a, in->b, .transpose_b = true);
}

static helio_tensor *run_matmul_dense(const inputs *in) {
  return helio_matmul(in->a, in->b, .bias = in->bias, .activation = HELIO_RELU);
}

static const struct matmul_row {
  const char *variant;
  helio_tensor *(*run)(const inputs *in);
  int batch, rows, inner, columns;
  bool in_quick;
} matmul_rows[] = {
    {"", run_matmul, 1, 128, 128, 128, true},
    {"", run_matmul, 1, 512, 512, 512, true},
    {"", run_matmul, 1, 1024, 1024, 1024, false},
    {"left transposed ", run_matmul_left, 1, 512, 512, 512, false},
    {"right transposed ", run_matmul_right, 1, 512, 512, 512, false},
    {"bias and relu ", run_matmul_dense, 1, 512, 512, 512, true},
    {"one row ", run_matmul, 1, 1, 1024, 1024, false},
    {"batch of 32 ", run_matmul, 32, 64, 64, 64, false},
};

/* ---------------------------------------------------------------------------------------------------------------------
 * Measuring
 */

/* Seconds that `calls` calls take, until they are done. */
static double time_calls(const bench_options *options, helio_tensor *(*run)(const inputs *), const inputs *in,
                         long calls) {
  double start = bench_seconds();
  for (long i = 0; i < calls; i++) {
    HELIO_POOL {
      run(in);
    }
  }
  helio_synchronize(options->device->name);
  return bench_seconds() - start;
}

/* Seconds of one call, the median of several series long enough for the clock. */
static double time_one(const bench_options *options, helio_tensor *(*run)(const inputs *), const inputs *in) {
  enum { SERIES = 7, QUICK_SERIES = 3 };
  double enough = options->quick ? 0.002 : 0.01, series[SERIES];
  int count = options->quick ? QUICK_SERIES : SERIES;
  long calls = 1;
  time_calls(options, run, in, 1); /* plans, arena and caches are made by the first call */
  while (helio_error_pending() == HELIO_OK && time_calls(options, run, in, calls) < enough) calls *= 2;
  for (int i = 0; i < count; i++) series[i] = time_calls(options, run, in, calls) / (double)calls;
  return bench_median(series, count);
}

typedef struct row_report {
  json_t *rows;
  void (*show)(const json_t *row);
} row_report;

/* One row of the result. A call that this device does not support is a row with the reason in place of a time; any
 * other error stays pending. `work` is in bytes if `unit` is gigabytes_per_second. */
static void add_row(const row_report *report, const char *operation, const char *label, double seconds,
                    const char *unit, double work) {
  helio_error error;
  json_t *row = json_object();
  output_set(row, "operation", output_text(operation));
  output_set(row, "case", output_text(label));
  if (helio_error_pending() == HELIO_NOT_SUPPORTED) {
    helio_error_take(&error);
    output_set(row, "microseconds", json_null());
    output_set(row, "reason", output_text(error.message));
  } else {
    output_set(row, "microseconds", json_real(seconds * 1e6));
    output_set(row, unit, json_real(seconds > 0 ? work / seconds / 1e9 : 0));
  }
  if (report->show && helio_error_pending() == HELIO_OK) report->show(row);
  output_append(report->rows, row);
}

static void measure_moving(const bench_options *options, const struct moving_row *row, int rows,
                           const row_report *report) {
  char label[80];
  double seconds = 0;
  snprintf(label, sizeof label, "%s%dx%d", row->variant, rows, COLUMNS);
  HELIO_POOL {
    inputs in = {.shape = HELIO_SHAPE(rows, COLUMNS)};
    in.a = helio_fill(in.shape, 1.25);
    in.b = helio_fill(in.shape, -0.5);
    in.bias = helio_fill(HELIO_SHAPE(COLUMNS), 0.25);
    for (int i = 0; i < PARTS; i++) in.parts[i] = i % 2 ? in.b : in.a;
    seconds = time_one(options, row->run, &in);
  }
  add_row(report, row->operation, label, seconds, "gigabytes_per_second", row->bytes * rows * COLUMNS);
}

static void measure_matmul(const bench_options *options, const struct matmul_row *row, const row_report *report) {
  char label[80];
  double seconds = 0;
  snprintf(label, sizeof label, "%s%dx%dx%d", row->variant, row->rows, row->inner, row->columns);
  HELIO_POOL {
    /* A transposed matrix is square in this table, so its shape is the same either way. */
    inputs in = {.shape = HELIO_SHAPE(row->batch, row->rows, row->inner)};
    in.a = helio_fill(in.shape, 1.25);
    in.b = helio_fill(HELIO_SHAPE(row->batch, row->inner, row->columns), 0.5);
    in.bias = helio_fill(HELIO_SHAPE(row->columns), 0.25);
    if (row->batch == 1) {
      in.a = helio_squeeze(in.a, .axes = HELIO_AXES(0));
      in.b = helio_squeeze(in.b, .axes = HELIO_AXES(0));
    }
    seconds = time_one(options, row->run, &in);
  }
  add_row(report, "matmul", label, seconds, "gflops", 2.0 * row->batch * row->rows * row->inner * row->columns);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The table
 */

static bool wanted(const bench_options *options, const char *operation) {
  return helio_error_pending() == HELIO_OK && (!options->only || strcmp(options->only, operation) == 0);
}

static bool has_row(const char *operation) {
  for (size_t i = 0; i < sizeof moving_rows / sizeof moving_rows[0]; i++) {
    if (strcmp(moving_rows[i].operation, operation) == 0) return true;
  }
  return strcmp(operation, "matmul") == 0;
}

static void list_unmeasured(json_t *unmeasured) {
  int count = 0;
  const helio_operation_info *const *operations = helio_operations(&count);
  for (int i = 0; operations && i < count; i++) {
    if (!operations[i]->needs_kernel || has_row(operations[i]->name)) continue;
    output_append(unmeasured, output_text(operations[i]->name));
  }
}

json_t *bench_rows(const bench_options *options, void (*show)(const json_t *row), json_t *unmeasured) {
  static const int sizes[] = {1, 64, 4096};
  int size_count = options->quick ? 2 : 3;
  row_report report = {json_array(), show};
  for (size_t i = 0; i < sizeof moving_rows / sizeof moving_rows[0]; i++) {
    for (int size = 0; size < size_count && wanted(options, moving_rows[i].operation); size++) {
      measure_moving(options, &moving_rows[i], sizes[size], &report);
    }
  }
  for (size_t i = 0; i < sizeof matmul_rows / sizeof matmul_rows[0]; i++) {
    if (options->quick && !matmul_rows[i].in_quick) continue;
    if (wanted(options, "matmul")) measure_matmul(options, &matmul_rows[i], &report);
  }
  list_unmeasured(unmeasured);
  if (helio_error_pending() == HELIO_OK) return report.rows;
  json_decref(report.rows);
  return NULL;
}
