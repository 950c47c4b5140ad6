/* SPDX-License-Identifier: Apache-2.0 */
/* What the HIP backend's own files share. */
#ifndef HIP_DRIVER_H
#define HIP_DRIVER_H

/* The runtime's library, as dlopen gave it: until HIP 6 the run-time compiler is in it too. */
void *hip_runtime_library(void);
/* Its major version. */
int hip_runtime_major(void);

#endif
