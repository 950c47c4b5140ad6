/* SPDX-License-Identifier: Apache-2.0 */
/* Work that a device was handed and that may have failed elsewhere, without anybody having waited for it: sums of
 * several devices, where the devices and not their threads wait for each other. What was computed with them is
 * doubtful, and whoever reads something from the device asks. */
#ifndef HI_DOUBT_H
#define HI_DOUBT_H

#include "device/device.h"

typedef struct hi_doubt {
  struct hi_doubt *next;                       /* of the same device */
  bool raised;                                 /* it is in the device's list */
  helio_status (*ask)(struct hi_doubt *doubt); /* sets the error if the work has failed; does not block */
} hi_doubt;

/* Once it is raised, raising it again changes nothing. */
void hi_doubt_raise(hi_device *device, hi_doubt *doubt);

/* Nobody asks any more. Was it raised? */
bool hi_doubt_end(hi_device *device, hi_doubt *doubt);

/* Called behind a wait for the device. The error of the first doubt that turns out to be right. */
helio_status hi_doubt_ask(hi_device *device);

#endif
