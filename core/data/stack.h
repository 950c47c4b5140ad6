/* SPDX-License-Identifier: Apache-2.0 */
/* Several items as one batch: along a new first axis. */
#ifndef HI_STACK_H
#define HI_STACK_H

#include "data/item.h"

/* At least one item, all of as many parts, types and shapes. NULL with an error that names what differs. */
hi_item *hi_stack(hi_item *const *items, int64_t count);

/* Have the items as many parts of as many types? `what` names the transform in the error. */
bool hi_stack_matches(hi_item *const *items, int64_t count, const char *what);

#endif
