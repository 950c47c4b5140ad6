/* SPDX-License-Identifier: Apache-2.0 */
/* What a step has written so far by assignments: of each value what it was before, so that a step which fails leaves
 * everything as it found it. An update by an optimizer, which every replica takes or none, makes the writes before it
 * final. */
#ifndef HI_JOURNAL_H
#define HI_JOURNAL_H

#include "tensor/tensor.h"

typedef struct hi_journal {
  struct hi_journal_entry *entries;
  int count, room;
} hi_journal;

/* The tensor's memory is about to be written, or the counter changed, by the thread's step; outside of steps nothing.
 * All or nothing. */
helio_status hi_journal_write(helio_tensor *tensor);
helio_status hi_journal_count(atomic_uint_least64_t *counter);

/* What the thread's step has written so far stays. */
void hi_step_keep(void);

/* What was written stays; or it becomes again what it was, on all devices but lost ones. No step writes meanwhile. */
void hi_journal_keep(hi_journal *journal);
helio_status hi_journal_undo(hi_journal *journal);

#endif
