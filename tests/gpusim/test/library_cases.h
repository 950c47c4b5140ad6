/* SPDX-License-Identifier: Apache-2.0 */
/* What test_gpusim_libraries runs of itself on gpusim. Each answers the number of tests that failed. */
#ifndef LIBRARY_CASES_H
#define LIBRARY_CASES_H

extern const char *golden_path;

int run_library_cases(void);    /* numbers */
int run_library_statuses(void); /* answers to wrong calls, types, arithmetic */
int run_library_faults(void);   /* with GPUSIM_FAULT=library:3 */
int run_library_losses(void);   /* with GPUSIM_FAULT=lost:library:2 */

#endif
