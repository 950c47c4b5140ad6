/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of `helio bench` share. */
#ifndef BENCH_H
#define BENCH_H

#include <helio/helio.h>
#include <jansson.h>

typedef struct bench_options {
  const helio_device *device; /* the logical device that is measured */
  const char *only;           /* measure the rows of this operation only; NULL: of all */
  bool quick;                 /* fewer sizes and repetitions */
} bench_options;

/* The logical device of this name, in any of its spellings; NULL: the preferred one. NULL with the library's error
 * pending. */
const helio_device *bench_device(const char *name);

double bench_seconds(void); /* of a clock that never jumps */

/* Sorts the values. */
double bench_median(double *values, int count);

/* The same numbers in every run. */
uint32_t bench_draw(uint64_t *state);

/* Adds to a result how many samples a second there were in each epoch of so many samples, and prints that as the begin
 * of a line. Sorts the rates. */
void bench_set_rates(json_t *result, int64_t samples, int64_t batch, double *rates, int epochs);
void bench_show_rates(const json_t *result);

/* Ends a command that has made this result, NULL with the library's error pending: prints it as JSON or by `show`,
 * NULL: it is shown already, and gives the exit status. */
int bench_finish(const char *path, json_t *result, bool json, void (*show)(const json_t *result));

/* Waits as long as an idle thread of a BLAS may spin for its next work, so that what is measured next has the cores. */
void bench_settle(void);

/* Fashion-MNIST's images and labels for training, or as many that are made up; fewer of them if `quick`. Says which:
 * "fashion-mnist" or "made up"; NULL with the library's error pending. */
const char *bench_samples(helio_samples *samples, bool quick);

/* Each of these gives a JSON value, or NULL with the library's error pending. */

/* One row for each operation and size: operation, case, microseconds, gflops, gigabytes_per_second (bench_rows.h says
 * what is counted) or, where the device cannot, the reason. `show`, if there is one, is called with each as soon as it
 * is known. `unmeasured` gets the names of operations that have no row. */
json_t *bench_rows(const bench_options *options, void (*show)(const json_t *row), json_t *unmeasured);

/* A product of 1024 × 1024 matrices against the device's own BLAS called directly. */
json_t *bench_matmul(const bench_options *options);

/* Nanoseconds that handing over an operation on one element takes. */
json_t *bench_dispatch(const bench_options *options);

/* Milliseconds from start to end of `helio devices`. */
json_t *bench_start(const bench_options *options);

/* Memory before and after a steady loop of operations. */
json_t *bench_memory(const bench_options *options);

#endif
