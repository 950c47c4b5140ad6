/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/journal.h"

#include <stdlib.h>

#include "device/copy.h"
#include "ops/replica.h"
#include "runtime/error.h"

typedef struct hi_journal_entry {
  helio_tensor *tensor, *before;  /* references; NULL: a counter */
  atomic_uint_least64_t *counter; /* which lives as long as the step */
  uint64_t number;
} entry;

static bool known(const hi_journal *journal, const void *what) {
  for (int i = 0; i < journal->count; i++) {
    if (journal->entries[i].tensor == what || journal->entries[i].counter == what) return true;
  }
  return false;
}

static entry *next_entry(hi_journal *journal) {
  if (journal->count == journal->room) {
    int room = journal->room ? 2 * journal->room : 16;
    entry *more = realloc(journal->entries, (size_t)room * sizeof *more);
    if (!more) {
      hi_fail(HELIO_OUT_OF_MEMORY, "no memory to remember what a step has written");
      return NULL;
    }
    journal->entries = more;
    journal->room = room;
  }
  return &journal->entries[journal->count];
}

helio_status hi_journal_write(helio_tensor *tensor) {
  hi_journal *journal = hi_context_now().journal;
  if (!journal || known(journal, tensor)) return HELIO_OK;
  entry *e = next_entry(journal);
  helio_tensor *before = e ? hi_tensor_new(tensor->device, tensor->type, &tensor->shape, "what a step writes") : NULL;
  if (!before) return helio_error_pending();
  helio_status status = hi_copy(tensor->device, hi_tensor_place(before), tensor->device, hi_tensor_place(tensor),
                                hi_tensor_bytes(tensor));
  if (status) return status;
  hi_hold(tensor);
  hi_hold(before);
  *e = (entry){.tensor = tensor, .before = before};
  journal->count++;
  return HELIO_OK;
}

helio_status hi_journal_count(atomic_uint_least64_t *counter) {
  hi_journal *journal = hi_context_now().journal;
  if (!journal || known(journal, counter)) return HELIO_OK;
  entry *e = next_entry(journal);
  if (!e) return helio_error_pending();
  *e = (entry){.counter = counter, .number = atomic_load(counter)};
  journal->count++;
  return HELIO_OK;
}

/* The journal is empty before the first is dropped: a device may hang there, and then the step is not undone. */
void hi_journal_keep(hi_journal *journal) {
  hi_journal kept = *journal;
  *journal = (hi_journal){0};
  for (int i = 0; i < kept.count; i++) {
    hi_drop(kept.entries[i].tensor);
    hi_drop(kept.entries[i].before);
  }
  free(kept.entries);
}

void hi_step_keep(void) {
  hi_journal *journal = hi_context_now().journal;
  if (journal) hi_journal_keep(journal);
}

static helio_status undo(const entry *e) {
  if (e->counter) {
    atomic_store(e->counter, e->number);
    return HELIO_OK;
  }
  helio_tensor *tensor = e->tensor;
  if (hi_device_lost(tensor->device)) return HELIO_OK;
  atomic_fetch_add(&tensor->block->version, 1);
  return hi_copy(tensor->device, hi_tensor_place(tensor), tensor->device, hi_tensor_place(e->before),
                 hi_tensor_bytes(tensor));
}

helio_status hi_journal_undo(hi_journal *journal) {
  helio_status result = HELIO_OK;
  for (int i = 0; i < journal->count; i++) {
    helio_status status = undo(&journal->entries[i]);
    if (!result) result = status;
  }
  hi_journal_keep(journal);
  return result;
}
