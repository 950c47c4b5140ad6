/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, streams and communicators for tests of collectives, the same for both vendors: CUDA's driver with NCCL, or
 * HIP's runtime with RCCL. What fails ends the process with a message. */
#ifndef RANKS_H
#define RANKS_H

#include "mistakes.h"

#include "cuda_driver.h"
#include "hip.h"
#include "nccl.h"

#include <stdint.h>

enum { MOST_DEVICES = 4 };

/* The vendor's functions, once open_devices has found them. */
NCCL_FUNCTIONS(FACE_DECLARATION)
NCCL_OTHER_FUNCTIONS(FACE_DECLARATION)
NCCL_OPTIONAL_FUNCTIONS(FACE_DECLARATION)

void open_devices(bool hip, int count);
void close_devices(void);
void use_device(int device); /* of what this thread does next */

void *make_stream(int device);
void end_stream(int device, void *stream);
int wait_for_stream(int device, void *stream); /* its status */

/* What is queued on `later` from now on waits for what is queued on `earlier`. */
void order_streams(int device, void *earlier, void *later);

void *allocate(int device, size_t bytes);
int release(int device, void *address); /* its status */
void copy_in(int device, void *to, const void *from, size_t bytes, void *stream);
void copy_within(int device, void *to, const void *from, size_t bytes, void *stream);
void copy_out(int device, void *to, const void *from, size_t bytes, void *stream); /* and waits for the stream */

#endif
