/* SPDX-License-Identifier: Apache-2.0 */
/* Moving bytes between the host and devices, and between devices. */
#ifndef HI_COPY_H
#define HI_COPY_H

#include "device/device.h"

/* From host memory, which is free again when this returns, in the order of the compute stream. Waits for an
 * asynchronous device only where much is copied or where it is far behind. */
helio_status hi_copy_in(hi_device *device, helio_place target, const void *source, size_t bytes);

/* The same in the order of another stream, which there is. */
helio_status hi_copy_in_on(hi_device *device, int stream, helio_place target, const void *source, size_t bytes);

/* The same for what is not there yet: `write` puts the bytes into memory that the device copies from. For at most
 * HI_LARGEST_STAGED bytes or little more: waiting costs less than copying twice above this. */
enum { HI_LARGEST_STAGED = 16 << 20 };
typedef void hi_write(const void *argument, void *memory, size_t bytes);
helio_status hi_copy_in_written(hi_device *device, int stream, helio_place target, size_t bytes, hi_write *write,
                                const void *argument);

/* To host memory, waits for it. Also reports what went wrong on the device before. */
helio_status hi_copy_out(hi_device *device, void *target, helio_place source, size_t bytes);

/* Waits, for one event, until all is done that the compute stream was handed so far, and reports what went wrong. */
helio_status hi_copy_settle(hi_device *device);

/* Zeros, in the order of the compute stream. */
helio_status hi_clear(hi_device *device, helio_place target, size_t bytes);

/* Between any two devices, in the order of their compute streams. */
helio_status hi_copy(hi_device *to, helio_place target, hi_device *from, helio_place source, size_t bytes);

/* A device's later stream (HI_STREAM_…) waits for what its earlier one was handed so far. */
helio_status hi_streams_order(hi_device *device, int earlier, int later);

/* The host table's copy (plugin.h). */
helio_status hi_host_copy(const helio_host *host, const helio_member *to, helio_stream *stream, helio_place target,
                          const helio_member *from, helio_place source, size_t bytes);

/* Frees what copies keep on a device that has come to rest. */
void hi_copy_finish(hi_device *device);

#endif
