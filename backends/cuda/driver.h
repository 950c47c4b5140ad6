/* SPDX-License-Identifier: Apache-2.0 */
/* What the CUDA backend's own files share. */
#ifndef CUDA_DRIVER_H
#define CUDA_DRIVER_H

#include "../gpu/vendor.h"

#include <stdlib.h>
#include <string.h>

/* 13000 is 13.0. A library of a newer major version than the driver's does not start. */
int cuda_driver_version(void);

/* 90 is sm_90. */
static inline int cuda_architecture(const vendor_facts *facts) {
  return atoi(facts->architecture + strlen("sm_"));
}

/* The newest major version whose libraries have code for a GPU: 12 has none for Kepler, 13 none for what is older than
 * Turing. Not newer than the driver's. */
static inline int cuda_newest_version(const vendor_facts *facts) {
  int driver = cuda_driver_version() / 1000, newest = cuda_architecture(facts) < 50 ? 11 : 12;
  return cuda_architecture(facts) < 75 && newest < driver ? newest : driver;
}

#endif
