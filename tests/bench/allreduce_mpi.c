/* SPDX-License-Identifier: Apache-2.0 */
/* What `helio bench collectives` measures, by MPI: all-reduce in place of float32 zeros, the median time of a call on
 * rank 0. One line for each size: bytes and microseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_UP = 3, MOST_REPEATS = 2000 };

static const size_t sizes[] = {4 << 10, 1 << 20, 16 << 20, 64 << 20};

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static double median_of_calls(float *memory, size_t bytes, int repeats) {
  static double seconds[MOST_REPEATS];
  for (int i = -WARM_UP; i < repeats; i++) {
    double start = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, memory, (int)(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (i >= 0) seconds[i] = MPI_Wtime() - start;
  }
  qsort(seconds, (size_t)repeats, sizeof seconds[0], compare);
  return seconds[repeats / 2];
}

int main(int argument_count, char **arguments) {
  int rank;
  MPI_Init(&argument_count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    double wanted = 0.3 / (2e-6 + (double)sizes[i] / 5e9);
    int repeats = wanted < 5 ? 5 : wanted > MOST_REPEATS ? MOST_REPEATS : (int)wanted;
    float *memory = aligned_alloc(4096, sizes[i]);
    if (!memory) MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t k = 0; k < sizes[i] / sizeof(float); k++) memory[k] = 0;
    double seconds = median_of_calls(memory, sizes[i], repeats);
    if (rank == 0) printf("%zu %.3f\n", sizes[i], seconds * 1e6);
    free(memory);
  }
  MPI_Finalize();
  return 0;
}
