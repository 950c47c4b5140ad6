/* SPDX-License-Identifier: Apache-2.0 */
/* helio bench collectives: all-reduce between logical CPU devices, by each collective. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "command.h"
#include "output.h"

enum { JSON, QUICK, ONLY, RANKS };

static const command_option options[] = {
    [JSON] = {"json", NULL, NULL, "print JSON"},
    [QUICK] = {"quick", NULL, NULL, "fewer repetitions"},
    [ONLY] = {"only", "NAME", NULL, "measure this collective only"},
    [RANKS] = {"ranks", "COUNT", "2|4", "measure this number of devices only"},
    {0},
};

static const size_t sizes[] = {4 << 10, 1 << 20, 16 << 20, 64 << 20};
static const int rank_counts[] = {2, 4};
enum { MOST_RANKS = 4, MOST_REPEATS = 2000 };

/* As often as takes 0.3 s at 5 GB/s, or 0.05 s, but for a few calls at least. */
static int repeats_for(size_t bytes, bool quick) {
  double seconds = 2e-6 + (double)bytes / 5e9, wanted = (quick ? 0.05 : 0.3) / seconds;
  return wanted < 5 ? 5 : wanted > MOST_REPEATS ? MOST_REPEATS : (int)wanted;
}

static json_t *make_row(const char *name, int ranks, size_t bytes, bool quick) {
  static double seconds[MOST_REPEATS];
  static const char *const devices[MOST_RANKS] = {"cpu:0", "cpu:1", "cpu:2", "cpu:3"};
  int repeats = repeats_for(bytes, quick);
  helio_error error;
  json_t *row = json_object();
  output_set(row, "collective", output_text(name));
  output_set(row, "ranks", json_integer(ranks));
  output_set(row, "bytes", json_integer((json_int_t)bytes));
  if (helio_time_all_reduce(devices, ranks, name, bytes, repeats, seconds)) {
    helio_error_take(&error);
    output_set(row, "reason", output_text(error.message));
    return row;
  }
  double median = bench_median(seconds, repeats);
  output_set(row, "repeats", json_integer(repeats));
  output_set(row, "microseconds", json_real(median * 1e6));
  output_set(row, "fastest_microseconds", json_real(seconds[0] * 1e6)); /* bench_median has sorted them */
  output_set(row, "gigabytes_per_second", json_real((double)bytes / median * 1e-9));
  return row;
}

static void show_row(const json_t *row) {
  char bytes[OUTPUT_BYTES];
  output_bytes(bytes, (uint64_t)json_integer_value(json_object_get(row, "bytes")));
  printf("%-16s %d ranks %10s", json_string_value(json_object_get(row, "collective")),
         (int)json_integer_value(json_object_get(row, "ranks")), bytes);
  const char *reason = json_string_value(json_object_get(row, "reason"));
  if (reason) {
    printf("  %s\n", reason);
  } else {
    printf(" %12.2f us %8.2f GB/s\n", json_real_value(json_object_get(row, "microseconds")),
           json_real_value(json_object_get(row, "gigabytes_per_second")));
  }
  fflush(stdout);
}

static int check_name(const command_line *line) {
  const char *wanted = line->values[ONLY], *names[64];
  int count = 0;
  while (count < 64 && (names[count] = helio_collective_name(count)) != NULL) {
    if (!wanted || strcmp(wanted, names[count]) == 0) return EXIT_SUCCESS;
    count++;
  }
  return helio_error_pending() ? command_library_failure(line->path)
                               : command_unknown(line->path, "collective", wanted, names, count, NULL);
}

static void measure_all(const command_line *line, int wanted_ranks, json_t *rows) {
  const char *name;
  for (int i = 0; (name = helio_collective_name(i)) != NULL; i++) {
    if (line->values[ONLY] && strcmp(line->values[ONLY], name) != 0) continue;
    for (size_t r = 0; r < sizeof rank_counts / sizeof rank_counts[0]; r++) {
      if (wanted_ranks && wanted_ranks != rank_counts[r]) continue;
      for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        json_t *row = make_row(name, rank_counts[r], sizes[s], line->values[QUICK] != NULL);
        if (!line->values[JSON]) show_row(row);
        output_append(rows, row);
      }
    }
  }
}

static int run_bench_collectives(const command_line *line) {
  const char *ranks = line->values[RANKS];
  setenv("HELIO_LOGICAL_DEVICES", "cpu:0=4", 1);
  int status = check_name(line);
  if (status != EXIT_SUCCESS) return status;
  json_t *result = json_object(), *rows = json_array();
  output_set(result, "version", output_text(helio_version()));
  output_set(result, "rows", rows);
  measure_all(line, ranks ? ranks[0] - '0' : 0, rows);
  return bench_finish(line->path, result, line->values[JSON], NULL);
}

const command command_bench_collectives = {
    .name = "collectives",
    .summary = "Measures sums between devices",
    .description = "All-reduce of 4 KiB to 64 MiB between 2 and 4 logical CPU devices by each collective: the median\n"
                   "time of a call, and bytes of the message by that time.",
    .options = options,
    .run = run_bench_collectives,
};
