/* SPDX-License-Identifier: Apache-2.0 */
/* What the wrapping plugins count, for tests that look the function up in them (dlopen, dlsym). */
#ifndef WRAP_COUNTS_H
#define WRAP_COUNTS_H

#include <stdint.h>

typedef enum wrap_count {
  WRAP_BUFFERS,      /* allocated */
  WRAP_HOST_BUFFERS, /* likewise, by host_allocate */
  WRAP_OBJECTS,      /* streams, events and plans that were made */
  WRAP_WAITS,        /* of the host: every synchronize, but for events only those that had not passed yet */
  WRAP_RUNS,         /* of kernels */
  WRAP_FILLS,
  WRAP_COPIES, /* inside the device, and to it from another */
  WRAP_COPIES_IN,
  WRAP_BYTES_IN,
  WRAP_COPIES_OUT,
  WRAP_BYTES_OUT,
  WRAP_CALLS_OF_SUMS, /* of a collective, by wrap_sum.so */
  WRAP_COUNTS,
} wrap_count;

/* The exported symbol's name and type: how many there were on a device, or on a rank's device, since it was opened. */
#define WRAP_COUNTED "wrap_counted"
typedef unsigned long long wrap_counted_function(uint32_t device, wrap_count count);

#endif
