/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of the library. */
#ifndef HI_RUNTIME_H
#define HI_RUNTIME_H

#include <helio/helio.h>

/* Starts the library if it is not running. Cheap if it is. */
helio_status hi_runtime_ensure(void);

/* Counts starts, so that what a thread keeps from an earlier one can be told from what is of now. */
unsigned hi_runtime_generation(void);

#endif
