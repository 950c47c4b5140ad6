/* SPDX-License-Identifier: Apache-2.0 */
/* What the CUDA backend's own files share. */
#ifndef CUDA_DRIVER_H
#define CUDA_DRIVER_H

/* 13000 is 13.0. A library of a newer major version than the driver's does not start. */
int cuda_driver_version(void);

#endif
