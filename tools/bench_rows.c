/* SPDX-License-Identifier: Apache-2.0 */
/* helio bench ops, the rows: how each is measured and told. What there is to measure stands in the families' tables. */
#include "bench_rows.h"

#include <ctype.h>
#include <string.h>

#include "output.h"

static const bench_family *const families[] = {&bench_elements, &bench_products, &bench_images,
                                               &bench_layers,   &bench_random,   &bench_updates};

enum { FAMILIES = sizeof families / sizeof families[0] };

/* ---------------------------------------------------------------------------------------------------------------------
 * Measuring
 */

static void prepare(const bench_family *family, const bench_row *row, int size, bench_case *one) {
  int count = 0;
  for (const char *letter = row->inputs; *letter; letter++, count++) {
    if (*letter == '-') continue;
    one->inputs[count] = bench_tensor(*letter, family->shape(row, size, (char)tolower((unsigned char)*letter)));
  }
  one->call = (helio_operation_options){.size = sizeof one->call,
                                        .operation = row->operation,
                                        .inputs = one->inputs,
                                        .input_count = count,
                                        .attributes = one->attributes.size ? &one->attributes : row->attributes,
                                        .scalars = row->scalars,
                                        .scalar_count = row->scalar_count,
                                        .type = row->type,
                                        .no_outputs = row->no_outputs};
  if (row->result) one->call.shape = family->shape(row, size, row->result);
}

static void run(const bench_row *row, const bench_case *one, helio_tensor *outputs[3]) {
  if (row->one) {
    outputs[0] = row->one(one->inputs[0]);
  } else if (row->two) {
    outputs[0] = row->two(one->inputs[0], one->inputs[1]);
  } else {
    helio_operation_run(&one->call, outputs);
  }
}

static double bytes_of(const helio_tensor *tensor) {
  return tensor ? (double)helio_tensor_elements(tensor) * (double)helio_type_bytes(helio_tensor_type(tensor)) : 0;
}

/* The first call, for which plans, arena and caches are made. Returns the bytes that every call must read and write. */
static double run_first(const bench_row *row, const bench_case *one) {
  helio_tensor *outputs[3] = {NULL};
  double bytes = 0;
  HELIO_POOL {
    run(row, one, outputs);
    for (int i = 0; i < 3; i++) bytes += bytes_of(outputs[i]);
  }
  for (int i = 0; i < one->call.input_count; i++) {
    bool written = isupper((unsigned char)row->inputs[i]);
    double touched = i == 0 || written ? 1 - row->untouched : 1;
    bytes += bytes_of(one->inputs[i]) * touched * (written ? 2 : 1);
  }
  return bytes;
}

/* Seconds that `calls` calls take, until they are done. */
static double time_calls(const bench_options *options, const bench_row *row, const bench_case *one, long calls) {
  helio_tensor *outputs[3];
  double start = bench_seconds();
  for (long i = 0; i < calls; i++) {
    HELIO_POOL {
      run(row, one, outputs);
    }
  }
  helio_synchronize(options->device->name);
  return bench_seconds() - start;
}

/* Seconds of one call, the median of several series long enough for the clock. */
static double time_one(const bench_options *options, const bench_row *row, const bench_case *one) {
  enum { SERIES = 7, QUICK_SERIES = 3 };
  double enough = options->quick ? 0.001 : 0.01, series[SERIES];
  int count = options->quick ? QUICK_SERIES : SERIES;
  long calls = 1;
  while (helio_error_pending() == HELIO_OK && time_calls(options, row, one, calls) < enough) calls *= 2;
  for (int i = 0; i < count; i++) series[i] = time_calls(options, row, one, calls) / (double)calls;
  return bench_median(series, count);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Telling
 */

typedef struct row_report {
  json_t *rows;
  void (*show)(const json_t *row);
} row_report;

static json_t *rate(double work, double seconds) {
  return json_real(seconds > 0 ? work / seconds / 1e9 : 0);
}

/* One row of the result. A call that this device does not support is a row with the reason in place of a time; any
 * other error stays pending. */
static void add_row(const row_report *report, const bench_row *of, const bench_case *one, double seconds,
                    double bytes) {
  helio_error error;
  json_t *row = json_object();
  output_set(row, "operation", output_text(of->operation));
  output_set(row, "case", output_text(one->label));
  if (helio_error_pending() == HELIO_NOT_SUPPORTED) {
    helio_error_take(&error);
    output_set(row, "microseconds", json_null());
    output_set(row, "reason", output_text(error.message));
  } else {
    output_set(row, "microseconds", json_real(seconds * 1e6));
    output_set(row, "gflops", rate(of->flops * one->elements, seconds));
    output_set(row, "gigabytes_per_second", rate(bytes, seconds));
  }
  if (report->show && helio_error_pending() == HELIO_OK) report->show(row);
  output_append(report->rows, row);
}

static void measure(const bench_options *options, const bench_family *family, const bench_row *row, int size,
                    const row_report *report) {
  double seconds = 0, bytes = 0;
  bench_case one = {0};
  family->describe(row, size, &one);
  HELIO_POOL {
    prepare(family, row, size, &one);
    bytes = run_first(row, &one);
    if (helio_error_pending() == HELIO_OK) seconds = time_one(options, row, &one);
  }
  add_row(report, row, &one, seconds, bytes);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The table
 */

static bool wanted(const bench_options *options, const bench_row *row) {
  if (helio_error_pending() != HELIO_OK || (options->quick && row->long_only)) return false;
  return !options->only || strcmp(options->only, row->operation) == 0;
}

static void measure_family(const bench_options *options, const bench_family *family, const row_report *report) {
  int sizes = options->quick ? family->quick_sizes : BENCH_MAX_SIZES;
  for (const bench_row *row = family->rows; row->operation; row++) {
    for (int i = 0; i < sizes && family->sizes[i] > 0 && wanted(options, row); i++) {
      measure(options, family, row, family->sizes[i], report);
    }
  }
}

static bool has_row(const char *operation) {
  for (int i = 0; i < FAMILIES; i++) {
    for (const bench_row *row = families[i]->rows; row->operation; row++) {
      if (strcmp(row->operation, operation) == 0) return true;
    }
  }
  return false;
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
  row_report report = {json_array(), show};
  for (int i = 0; i < FAMILIES; i++) measure_family(options, families[i], &report);
  list_unmeasured(unmeasured);
  if (helio_error_pending() == HELIO_OK) return report.rows;
  json_decref(report.rows);
  return NULL;
}
