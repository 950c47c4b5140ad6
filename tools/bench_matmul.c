/* SPDX-License-Identifier: Apache-2.0 */
/* helio bench ops, the matrix product: what is lost between a program and the BLAS below it. Both sides multiply the
 * same matrices in the same library with the same number of threads, by turns, so that whatever else the machine does
 * meets both alike. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "output.h"

enum { SIZE = 1024, PAIRS = 9, ROW_MAJOR = 101, NOT_TRANSPOSED = 111 };

typedef void (*sgemm_function)(int order, int transpose_a, int transpose_b, int rows, int columns, int inner,
                               float alpha, const float *a, int row_of_a, const float *b, int row_of_b, float beta,
                               float *c, int row_of_c);

typedef struct direct_blas {
  void *library;
  sgemm_function sgemm;
  void (*set_threads)(int threads);
  int (*get_threads)(void);
  int threads; /* as many as the device uses */
  float *a, *b, *c;
} direct_blas;

/* The value of a device's property "key=value", or NULL. */
static const char *property(const helio_device *device, const char *key) {
  size_t length = strlen(key);
  for (const char *const *one = device->properties; one && *one; one++) {
    if (strncmp(*one, key, length) == 0 && (*one)[length] == '=') return *one + length + 1;
  }
  return NULL;
}

/* How many threads of the process are for CPU devices. */
static int process_threads(const helio_device *device) {
  int count = 0;
  const helio_setting *const *settings = helio_settings(&count);
  for (int i = 0; settings && i < count; i++) {
    if (strcmp(settings[i]->name, "HELIO_NUM_THREADS") == 0 && atoi(settings[i]->value) > 0) {
      return atoi(settings[i]->value);
    }
  }
  return device->compute_units;
}

/* The device's share as the library cuts it: logical devices share out the threads, and the first ones get those that
 * remain. */
static int device_threads(const helio_device *device) {
  int count = 0, sharers = 0, place = 0, all = process_threads(device);
  const helio_device *const *devices = helio_logical_devices(device->type, &count);
  for (int i = 0; devices && i < count; i++) {
    if (strcmp(devices[i]->physical, device->physical) != 0) continue;
    if (devices[i] == device) place = sharers;
    sharers++;
  }
  int share = sharers > 0 ? all / sharers + (place < all % sharers) : all;
  return share > 0 ? share : 1;
}

/* ISO C has no conversion from the object pointer that dlsym() gives to a function pointer. */
static bool look_up(void *library, const char *name, void *function) {
  void *found = dlsym(library, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

static void close_direct(direct_blas *direct) {
  free(direct->a);
  free(direct->b);
  free(direct->c);
  if (direct->library) dlclose(direct->library);
}

static float *new_matrix(float value) {
  float *matrix = aligned_alloc(64, sizeof(float) * SIZE * SIZE);
  for (int i = 0; matrix && i < SIZE * SIZE; i++) matrix[i] = value;
  return matrix;
}

/* NULL, or why the BLAS cannot be called directly. */
static const char *open_direct(const helio_device *device, direct_blas *direct) {
  const char *path = property(device, "blas_library");
  if (!path) return "the device names no BLAS library";
  /* The copy that the device uses has chosen its kernels already; one opened anew might choose others. */
  direct->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (!direct->library) direct->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!direct->library) return "the device's BLAS library cannot be opened";
  if (!look_up(direct->library, "cblas_sgemm", &direct->sgemm) ||
      !look_up(direct->library, "openblas_set_num_threads", &direct->set_threads) ||
      !look_up(direct->library, "openblas_get_num_threads", &direct->get_threads)) {
    return "the device's BLAS library lacks cblas_sgemm or openblas_set_num_threads";
  }
  direct->threads = device_threads(device);
  direct->a = new_matrix(1.25f);
  direct->b = new_matrix(0.5f);
  direct->c = new_matrix(0);
  return direct->a && direct->b && direct->c ? NULL : "out of memory";
}

static void multiply_directly(const direct_blas *direct) {
  direct->sgemm(ROW_MAJOR, NOT_TRANSPOSED, NOT_TRANSPOSED, SIZE, SIZE, SIZE, 1, direct->a, SIZE, direct->b, SIZE, 0,
                direct->c, SIZE);
}

/* One turn of either side: seconds of the best of its calls, since whatever disturbs a call only makes it longer. */
static double time_direct(const direct_blas *direct, int calls) {
  double best = INFINITY;
  int before = direct->get_threads();
  direct->set_threads(direct->threads);
  for (int i = 0; i < calls; i++) {
    double start = bench_seconds();
    multiply_directly(direct);
    best = fmin(best, bench_seconds() - start);
  }
  direct->set_threads(before);
  return best;
}

static double time_ours(const bench_options *options, helio_tensor *a, helio_tensor *b, int calls) {
  double best = INFINITY;
  for (int i = 0; i < calls; i++) {
    double start = bench_seconds();
    HELIO_POOL {
      helio_matmul(a, b);
    }
    helio_synchronize(options->device->name);
    best = fmin(best, bench_seconds() - start);
  }
  return best;
}

/* The threads of either side spin for a while after their work; the other one waits for that to end. */
static void time_pairs(const bench_options *options, const direct_blas *direct, json_t *result) {
  double ours[PAIRS], theirs[PAIRS], ratios[PAIRS], work = 2.0 * SIZE * SIZE * SIZE;
  int calls = options->quick ? 3 : 5;
  HELIO_POOL {
    helio_tensor *a = helio_fill(HELIO_SHAPE(SIZE, SIZE), 1.25);
    helio_tensor *b = helio_fill(HELIO_SHAPE(SIZE, SIZE), 0.5);
    time_ours(options, a, b, 1);
    if (direct->sgemm) time_direct(direct, 1);
    for (int i = 0; i < PAIRS; i++) {
      bench_settle();
      ours[i] = time_ours(options, a, b, calls);
      bench_settle();
      theirs[i] = direct->sgemm ? time_direct(direct, calls) : 0;
      ratios[i] = theirs[i] / ours[i];
    }
  }
  output_set(result, "ratio", direct->sgemm ? json_real(bench_median(ratios, PAIRS)) : json_null());
  output_set(result, "gflops", json_real(work / bench_median(ours, PAIRS) / 1e9));
  output_set(result, "direct_gflops",
             direct->sgemm ? json_real(work / bench_median(theirs, PAIRS) / 1e9) : json_null());
}

json_t *bench_matmul(const bench_options *options) {
  direct_blas direct = {0};
  json_t *result = json_object();
  const char *reason = open_direct(options->device, &direct);
  if (reason) direct.sgemm = NULL;
  time_pairs(options, &direct, result);
  output_set(result, "threads", reason ? json_null() : json_integer(direct.threads));
  if (reason) output_set(result, "reason", output_text(reason));
  close_direct(&direct);
  if (helio_error_pending() == HELIO_OK) return result;
  json_decref(result);
  return NULL;
}
