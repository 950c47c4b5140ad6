/* SPDX-License-Identifier: Apache-2.0 */
/* helio bench: measurements of the library on this machine. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "output.h"

enum { JSON, QUICK, DEVICE, ONLY };

static const command_option options[] = {
    [JSON] = {"json", NULL, NULL, "print JSON"},
    [QUICK] = {"quick", NULL, NULL, "fewer sizes and repetitions"},
    [DEVICE] = {"device", "NAME", NULL, "measure this device instead of the preferred one"},
    [ONLY] = {"only", "OPERATION", NULL, "measure the rows of this operation only"},
    {0},
};

/* ---------------------------------------------------------------------------------------------------------------------
 * What the parts share
 */

double bench_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

double bench_median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void bench_settle(void) {
  nanosleep(&(struct timespec){.tv_nsec = 60 * 1000 * 1000}, NULL);
}

uint32_t bench_draw(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 32);
}

void bench_set_rates(json_t *result, int64_t samples, int64_t batch, double *rates, int epochs) {
  output_set(result, "samples", json_integer(samples));
  output_set(result, "batch", json_integer(batch));
  output_set(result, "epochs", json_integer(epochs));
  output_set(result, "samples_per_second", json_real(bench_median(rates, epochs)));
  output_set(result, "slowest", json_real(rates[0]));
  output_set(result, "fastest", json_real(rates[epochs - 1]));
}

void bench_show_rates(const json_t *result) {
  printf("%.0f samples/s (median of %d epochs of %d samples; %.0f to %.0f)",
         json_real_value(json_object_get(result, "samples_per_second")),
         (int)json_integer_value(json_object_get(result, "epochs")),
         (int)json_integer_value(json_object_get(result, "samples")),
         json_real_value(json_object_get(result, "slowest")), json_real_value(json_object_get(result, "fastest")));
}

int bench_finish(const char *path, json_t *result, bool json, void (*show)(const json_t *result)) {
  if (!result) return command_library_failure(path);
  if (json) {
    output_json(result);
    return EXIT_SUCCESS;
  }
  if (show) show(result);
  json_decref(result);
  return EXIT_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * For people
 */

static void show_row(const json_t *row) {
  printf("%-20s %-32s", json_string_value(json_object_get(row, "operation")),
         json_string_value(json_object_get(row, "case")));
  const char *reason = json_string_value(json_object_get(row, "reason"));
  if (reason) {
    printf(" %s\n", reason);
  } else {
    printf(" %10.2f us %8.2f GFLOP/s %7.2f GB/s\n", json_real_value(json_object_get(row, "microseconds")),
           json_real_value(json_object_get(row, "gflops")),
           json_real_value(json_object_get(row, "gigabytes_per_second")));
  }
  fflush(stdout);
}

static void show_matmul(const json_t *matmul) {
  const char *reason = json_string_value(json_object_get(matmul, "reason"));
  printf("\nmatmul 1024x1024x1024: %.1f GFLOP/s, ", json_real_value(json_object_get(matmul, "gflops")));
  if (reason) {
    printf("not compared: %s\n", reason);
  } else {
    printf("%.3f of the BLAS called directly (%.1f GFLOP/s, %d threads)\n",
           json_real_value(json_object_get(matmul, "ratio")), json_real_value(json_object_get(matmul, "direct_gflops")),
           (int)json_integer_value(json_object_get(matmul, "threads")));
  }
}

static void show_memory(const json_t *memory) {
  const json_t *after = json_object_get(memory, "after");
  char reserved[OUTPUT_BYTES];
  long long growth = json_integer_value(json_object_get(memory, "resident_growth"));
  output_bytes(reserved, (uint64_t)json_integer_value(json_object_get(after, "reserved")));
  printf("memory of a steady loop: %s, %s reserved, process %+lld KiB after %d iterations\n",
         json_is_true(json_object_get(memory, "flat")) ? "flat" : "NOT FLAT", reserved, growth / 1024,
         (int)json_integer_value(json_object_get(memory, "iterations")));
}

static void show_rest(const json_t *result) {
  const json_t *start = json_object_get(result, "start_ms"), *unmeasured = json_object_get(result, "unmeasured");
  show_matmul(json_object_get(result, "matmul_1024"));
  printf("dispatch of an operation on one element: %.0f ns\n", json_real_value(json_object_get(result, "dispatch_ns")));
  if (json_is_real(start)) printf("'helio devices' from start to end: %.1f ms\n", json_real_value(start));
  show_memory(json_object_get(result, "memory"));
  for (size_t i = 0; i < json_array_size(unmeasured); i++) {
    printf("%s%s", i ? ", " : "not measured: ", json_string_value(json_array_get(unmeasured, i)));
  }
  if (json_array_size(unmeasured) > 0) printf("\n");
}

/* ---------------------------------------------------------------------------------------------------------------------
 * bench ops
 */

/* Asking for one element there tells. */
const helio_device *bench_device(const char *name) {
  int count = 0;
  const helio_device *found = NULL, *const *devices = helio_logical_devices(NULL, &count);
  if (!devices) return NULL;
  if (!name) return count > 0 ? devices[0] : NULL;
  HELIO_POOL {
    HELIO_DEVICE(name) {
      helio_tensor *probe = helio_fill(HELIO_SHAPE(1), 0);
      for (int i = 0; probe && i < count; i++) {
        if (strcmp(helio_tensor_device(probe), devices[i]->name) == 0) found = devices[i];
      }
    }
  }
  return found;
}

static int check_operation(const command_line *line) {
  const char *name = line->values[ONLY], *names[256];
  int count = 0, known = 0;
  if (!name) return EXIT_SUCCESS;
  const helio_operation_info *const *operations = helio_operations(&count);
  if (!operations) return command_library_failure(line->path);
  for (; known < count && known < 256; known++) {
    names[known] = operations[known]->name;
    if (strcmp(names[known], name) == 0) return EXIT_SUCCESS;
  }
  return command_unknown(line->path, "operation", name, names, known, NULL);
}

/* Sets the key if there is a value; without one the library's error is pending. */
static bool set(json_t *result, const char *key, json_t *value) {
  if (value) output_set(result, key, value);
  return value != NULL;
}

/* NULL with the library's error pending. */
static json_t *measure(const bench_options *bench, bool as_json) {
  json_t *result = json_object(), *unmeasured = json_array();
  bool done = false;
  output_set(result, "version", output_text(helio_version()));
  output_set(result, "device", output_text(bench->device->name));
  output_set(result, "description", output_text(bench->device->description));
  output_set(result, "unmeasured", unmeasured);
  HELIO_DEVICE(bench->device->name) {
    done = set(result, "rows", bench_rows(bench, as_json ? NULL : show_row, unmeasured)) &&
           set(result, "matmul_1024", bench_matmul(bench)) && set(result, "dispatch_ns", bench_dispatch(bench)) &&
           set(result, "memory", bench_memory(bench));
  }
  if (done && set(result, "start_ms", bench_start(bench))) return result;
  json_decref(result);
  return NULL;
}

static int run_bench_ops(const command_line *line) {
  /* A BLAS that was called with several threads leaves them spinning for a tenth of a second, on the cores that the
   * other side is measured on next. With this it lets them sleep after half a millisecond; it reads it when it is
   * loaded. */
  setenv("OPENBLAS_THREAD_TIMEOUT", "20", 0);
  int status = check_operation(line);
  if (status != EXIT_SUCCESS) return status;
  bench_options bench = {
      .device = bench_device(line->values[DEVICE]),
      .only = line->values[ONLY],
      .quick = line->values[QUICK] != NULL,
  };
  if (!bench.device) return command_library_failure(line->path);
  bool as_json = line->values[JSON] != NULL;
  return bench_finish(line->path, measure(&bench, as_json), as_json, show_rest);
}

static const command bench_ops = {
    .name = "ops",
    .summary = "Measures the operations on one device",
    .description = "Time and rates of each operation in several sizes; the matrix product against the BLAS called\n"
                   "directly; the cost of dispatch, of starting, and whether memory stays flat.",
    .options = options,
    .run = run_bench_ops,
};

static const command *const subcommands[] = {&command_bench_collectives, &command_bench_data, &bench_ops,
                                             &command_bench_training, NULL};

const command command_bench = {
    .name = "bench",
    .summary = "Measures the library on this machine",
    .subcommands = subcommands,
};
