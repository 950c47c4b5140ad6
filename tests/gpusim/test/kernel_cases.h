/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that are right, and what they must compute. */
#ifndef KERNEL_CASES_H
#define KERNEL_CASES_H

#include "gpu.h"

/* One text, for both vendors, in parts that stand behind gpu_prologue; ends with NULL. */
extern const char *const kernel_text[];
char *kernel_text_whole(void); /* with the prologue, malloc */

/* Runs all of them on the first device of a vendor, in this process; ends it with a message if a number is wrong. */
void run_kernel_cases(sim_vendor vendor);

#endif
