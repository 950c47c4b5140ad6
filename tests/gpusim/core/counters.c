/* SPDX-License-Identifier: Apache-2.0 */
/* What was done how often: time on a GPU is lost in launches, waits and copies long before it is lost in arithmetic. */
#include "internal.h"

#include <stdio.h>

static sim_counters without_device;
static int amid; /* collectives that only some ranks were handed */

void sim_count_amid(int change) {
  amid += change;
}

void sim_counters_add_amid(sim_device *device) {
  device->counters.amid_collectives += amid > 0;
}

void sim_counters_add(sim_occasion occasion, sim_device *device) {
  (device ? &device->counters : &without_device)->occasions[occasion]++;
  if (device && (occasion == SIM_ALLOCATION || occasion == SIM_CREATION)) sim_counters_add_amid(device);
}

static void add(const sim_counters *more, sim_counters *sum) {
  for (int i = 0; i < SIM_OCCASIONS; i++) sum->occasions[i] += more->occasions[i];
  sum->bytes_in += more->bytes_in;
  sum->bytes_out += more->bytes_out;
  sum->bytes_within += more->bytes_within;
  sum->bytes_between += more->bytes_between;
  sum->memory_used += more->memory_used;
  sum->memory_peak += more->memory_peak;
  sum->amid_collectives += more->amid_collectives;
}

static void add_device(sim_device *device, void *context) {
  add(&device->counters, context);
}

void sim_counters_read(const sim_device *device, sim_counters *counters) {
  sim_lock();
  if (device) {
    *counters = device->counters;
  } else {
    *counters = without_device;
    sim_each_device(add_device, counters);
  }
  sim_unlock();
}

static void write_lines(FILE *file, const char *who, const sim_counters *counters) {
  for (int i = 0; i < SIM_OCCASIONS; i++)
    fprintf(file, "%s %s %llu\n", who, sim_occasion_name(i), (unsigned long long)counters->occasions[i]);
  const struct {
    const char *name;
    uint64_t value;
  } rest[] = {
      {"bytes_in", counters->bytes_in},
      {"bytes_out", counters->bytes_out},
      {"bytes_within", counters->bytes_within},
      {"bytes_between", counters->bytes_between},
      {"memory_used", counters->memory_used},
      {"memory_peak", counters->memory_peak},
      {"amid_collectives", counters->amid_collectives},
  };
  for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
    fprintf(file, "%s %s %llu\n", who, rest[i].name, (unsigned long long)rest[i].value);
}

static void write_device(sim_device *device, void *context) {
  char who[32];
  snprintf(who, sizeof who, "%s:%d", device->vendor == SIM_CUDA ? "cuda" : "hip", device->index);
  write_lines(context, who, &device->counters);
}

/* Lines "cuda:0 launch 12", and the sums as "all …". */
void sim_counters_write(void) {
  const char *path = sim_setup()->counters;
  if (!path) return;
  FILE *file = fopen(path, "w");
  if (!file) {
    fprintf(stderr, "gpusim: %s cannot be written\n", path);
    return;
  }
  sim_counters all;
  sim_counters_read(NULL, &all);
  sim_lock();
  sim_each_device(write_device, file);
  sim_unlock();
  write_lines(file, "all", &all);
  fclose(file);
}
