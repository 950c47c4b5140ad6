/* SPDX-License-Identifier: Apache-2.0 */
/* Points of a device's streams: what was handed to a stream up to one is waited for, by another stream or by the host,
 * when somebody needs it. Their events are kept and used again, so that a steady training makes none. */
#ifndef HI_POINT_H
#define HI_POINT_H

#include "device/device.h"

typedef struct hi_point hi_point;

/* What the stream (HI_STREAM_…) was handed so far; NULL with the error set. */
hi_point *hi_point_mark(hi_device *device, int stream);

/* Later work of the compute stream waits for it; the host does not. */
helio_status hi_point_await(const hi_point *point);

/* The host waits for it. What went wrong on its stream is an error. */
helio_status hi_point_wait(const hi_point *point);

/* Has it been reached, or failed: is there nothing more to wait for? */
bool hi_point_passed(const hi_point *point);

/* Takes NULL. The device may have been closed since. */
void hi_point_release(hi_point *point);

/* Of a device that has come to rest. */
void hi_points_finish(hi_device *device);

/* Around a step on the device, whose end is a point of the compute stream: at most HI_STEPS_IN_FLIGHT are under way, so
 * that the memory of those that have ended is enough for the next. On a device that keeps up nobody waits. */
helio_status hi_flight_begin(hi_device *device);
helio_status hi_flight_end(hi_device *device);

/* The end of the latest step, until the next but one begins; NULL: there is none, or nobody has to wait for it. */
const hi_point *hi_flight_last(hi_device *device);

#endif
