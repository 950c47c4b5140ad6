/* SPDX-License-Identifier: Apache-2.0 */
/* helio bench ops, the runtime: what an operation costs besides its work, what starting costs, and whether memory stays
 * where it is. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "output.h"

extern char **environ;

/* ---------------------------------------------------------------------------------------------------------------------
 * Dispatch
 */

/* Batches are shorter than a time slice: on a busy machine most of them are not interrupted. */
enum { POOLS = 5, ADDITIONS = 100, BATCHES = 301, QUICK_BATCHES = 101 };

static double time_batch(helio_tensor *a, helio_tensor *b) {
  double start = bench_seconds();
  for (int pool = 0; pool < POOLS; pool++) {
    HELIO_POOL {
      for (int i = 0; i < ADDITIONS; i++) helio_add(a, b);
    }
  }
  return (bench_seconds() - start) / (POOLS * ADDITIONS);
}

json_t *bench_dispatch(const bench_options *options) {
  double batches[BATCHES];
  int count = options->quick ? QUICK_BATCHES : BATCHES;
  HELIO_POOL {
    helio_tensor *a = helio_fill(HELIO_SHAPE(1), 1), *b = helio_fill(HELIO_SHAPE(1), 2);
    time_batch(a, b);
    for (int i = 0; i < count; i++) {
      batches[i] = time_batch(a, b);
      helio_synchronize(options->device->name); /* not counted: this is about handing over, not about the work */
    }
  }
  return helio_error_pending() == HELIO_OK ? json_real(bench_median(batches, count) * 1e9) : NULL;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Start
 */

/* Seconds of one run of `helio devices`; negative if it failed. */
static double time_start(void) {
  char *arguments[] = {"helio", "devices", NULL};
  posix_spawn_file_actions_t actions;
  pid_t child;
  int how = -1;
  if (posix_spawn_file_actions_init(&actions) != 0) return -1;
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  double start = bench_seconds();
  if (posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ) == 0) waitpid(child, &how, 0);
  double seconds = bench_seconds() - start;
  posix_spawn_file_actions_destroy(&actions);
  return WIFEXITED(how) && WEXITSTATUS(how) == EXIT_SUCCESS ? seconds : -1;
}

json_t *bench_start(const bench_options *options) {
  enum { STARTS = 9, QUICK_STARTS = 3 };
  double starts[STARTS];
  int count = options->quick ? QUICK_STARTS : STARTS;
  for (int i = 0; i < count; i++) {
    starts[i] = time_start();
    if (starts[i] < 0) return json_null();
  }
  return json_real(bench_median(starts, count) * 1e3);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Memory
 */

/* Bytes of this process that are in memory; 0 if the system does not say. */
static long long resident_bytes(void) {
  long long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file) return 0;
  if (fscanf(file, "%*s %lld", &pages) != 1) pages = 0;
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static json_t *memory_json(const helio_memory *memory, long long resident) {
  json_t *object = json_object();
  output_set(object, "in_use", json_integer((json_int_t)memory->in_use));
  output_set(object, "reserved", json_integer((json_int_t)memory->reserved));
  output_set(object, "taken", json_integer((json_int_t)memory->taken));
  output_set(object, "allocations", json_integer((json_int_t)memory->allocations));
  output_set(object, "resident", json_integer(resident));
  return object;
}

/* Sizes differ from call to call, as they do in a training step, and repeat. */
static void work_steadily(helio_tensor *a, helio_tensor *b, int iterations) {
  for (int i = 0; i < iterations; i++) {
    HELIO_POOL {
      helio_tensor *product = helio_matmul(a, b, .activation = HELIO_RELU);
      helio_tensor *half = helio_slice(product, HELIO_SHAPE(0, 0), HELIO_SHAPE(-1, 8 + i % 8));
      helio_sum(helio_mul(half, half));
      helio_cast(helio_add(product, product), HELIO_FLOAT64);
    }
  }
}

json_t *bench_memory(const bench_options *options) {
  enum { ITERATIONS = 10000, WARM_UP = 1000 };
  const char *device = options->device->name;
  helio_memory before = {0}, after = {0};
  long long resident_before = 0, resident_after = 0;
  HELIO_POOL {
    helio_tensor *a = helio_fill(HELIO_SHAPE(32, 32), 0.5), *b = helio_fill(HELIO_SHAPE(32, 32), 0.25);
    work_steadily(a, b, WARM_UP);
    helio_synchronize(device);
    helio_memory_info(device, &before);
    resident_before = resident_bytes();
    work_steadily(a, b, ITERATIONS);
    helio_synchronize(device);
    helio_memory_info(device, &after);
    resident_after = resident_bytes();
  }
  if (helio_error_pending() != HELIO_OK) return NULL;
  json_t *result = json_object();
  output_set(result, "iterations", json_integer(ITERATIONS));
  output_set(result, "before", memory_json(&before, resident_before));
  output_set(result, "after", memory_json(&after, resident_after));
  output_set(result, "resident_growth", json_integer(resident_after - resident_before));
  output_set(result, "flat",
             json_boolean(before.in_use == after.in_use && before.reserved == after.reserved &&
                          before.taken == after.taken && before.allocations == after.allocations));
  return result;
}
