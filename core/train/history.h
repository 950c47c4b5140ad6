/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured in each epoch. */
#ifndef HI_HISTORY_H
#define HI_HISTORY_H

#include "tensor/object.h"

/* Owned by the innermost pool; NULL with the error set. */
helio_history *hi_history_new(void);

void hi_history_set_signal(helio_history *history, int number);
void hi_history_set_saved(helio_history *history, int64_t steps); /* taken before a checkpoint that was just written */

/* The values of an epoch behind those before. All or nothing. */
helio_status hi_history_add(helio_history *history, int epoch, helio_logs *logs);

#endif
