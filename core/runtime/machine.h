/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine grants this process, as opposed to what is installed. */
#ifndef HI_MACHINE_H
#define HI_MACHINE_H

#include <stdint.h>

/* Cores that this process may keep busy: those of its affinity mask, bounded by the quota of its control group. */
int hi_machine_cores(void);

/* The quota of the control groups below `root` ("" for the machine's), rounded up to whole cores; 0 if there is none.
 * `root` stands in front of /proc and /sys, so that a test can lay out groups of its own. */
int hi_machine_quota(const char *root);

/* Bytes of memory that the process has written to and that are no file's, which the machine could take back; 0: not
 * known. */
uint64_t hi_machine_resident(void);

#endif
