/* SPDX-License-Identifier: Apache-2.0 */
/* Where operations run: the thread's device scopes, soft and strict placement, and the account of what ran elsewhere.
 */
#ifndef HI_PLACEMENT_H
#define HI_PLACEMENT_H

#include "device/device.h"
#include "ops/table.h"

/* Takes the settings from the environment. */
void hi_placement_start(void);

/* What the innermost scope asks for. */
typedef struct hi_request {
  bool named;        /* a device was asked for */
  bool lenient;      /* what it cannot do may run elsewhere */
  hi_device *device; /* it, NULL if it does not exist */
  hi_name name;
} hi_request;

hi_request hi_placement_request(void);

/* A scope like the user's, in which what the device cannot do runs elsewhere. Ends with helio_device_leave(). */
helio_scope hi_placement_enter(hi_device *device);

/* The device for data that no kernel makes: the one asked for or, if none was, `otherwise` (NULL: the first). It is in
 * use when this returns. NULL with the error set. */
hi_device *hi_placement_for_data(hi_device *otherwise);

bool hi_placement_soft(void);

/* "Executing op MatMul in device …", if that is wanted. */
void hi_placement_log(const hi_row *row, const hi_device *device);

/* The operation runs on `device` although `preferred` was asked for or comes first, for the `reason` given: counted,
 * warned about once for each operation, an error under strict placement. */
helio_status hi_placement_elsewhere(const hi_row *row, const hi_device *device, const char *preferred,
                                    const char *reason);

/* An input was copied to the operation's device. */
void hi_placement_copied(size_t bytes, bool elsewhere);

#endif
