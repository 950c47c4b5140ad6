/* SPDX-License-Identifier: Apache-2.0 */
/* Runs this program again, on an emulated GPU of some kind: what a backend finds when it starts is found once for each
 * process. */
#ifndef GPU_CHILD_H
#define GPU_CHILD_H

#include "test.h"

/* What became of a child: its exit status and all that it printed. */
typedef struct child_end {
  int status;
  char output[32768];
} child_end;

/* The top of the build tree. */
const char *test_build_folder(void);

/* Runs `job` with the settings of the environment ("NAME=value NAME=value", may be "") and tests/gpusim/run's options.
 * Compiled kernels are kept in the build tree, and none of the machine's libraries is found in the usual folders. */
void run_job(const char *backend, const char *settings, const char *options, const char *job, child_end *end);

/* The same on the machine as it is. */
void run_machine_job(const char *backend, const char *job, child_end *end);

/* The other side, called first in main(): does the job that was asked for and ends the process, or returns.
 *   plugins  prints the reports on all plugins: name, status, reason, with tabs between them
 *   add      adds two tensors on gpu:0 and prints the sum, or the error; then goes on with a fill there, and says so if
 *            the core holds that device for lost by now
 *   wait     likewise, once it has waited for gpu:0
 *   matmul   likewise, a product; conv2d a convolution
 *   matmul-again                the same product twice, where the first may fail
 *   batches, pointwise          Σ w × x over several products, and over a convolution by 1 × 1 and its gradients
 *   short-matmul, short-conv2d  a product and a convolution whose numbers are too long for TF32
 *   half-gradient               1 + 2⁻⁹, as a convolution's gradient in float16
 *   same-matmul, same-gradient  0 if a product, or a convolution's gradient, has the same bits each time, else 1 */
void do_job(int argc, char **argv);

#define assert_says(end, part)                                                                                         \
  do {                                                                                                                 \
    if (strstr((end).output, part) == NULL) fail_msg("\"%s\" is not in: %s", part, (end).output);                      \
  } while (0)
#define assert_says_not(end, part)                                                                                     \
  do {                                                                                                                 \
    if (strstr((end).output, part) != NULL) fail_msg("\"%s\" is in: %s", part, (end).output);                          \
  } while (0)
/* Whether the core holds the job's device for lost: "goes on" alone does not tell. */
#define assert_suspect(end, wanted)                                                                                    \
  do {                                                                                                                 \
    if (wanted)                                                                                                        \
      assert_says(end, "gpu:0 is suspect");                                                                            \
    else                                                                                                               \
      assert_says_not(end, "gpu:0 is suspect");                                                                        \
  } while (0)
#define assert_ended(end, wanted)                                                                                      \
  do {                                                                                                                 \
    if ((end).status != (wanted)) fail_msg("exit status %d, not %d: %s", (end).status, wanted, (end).output);          \
  } while (0)

#endif
