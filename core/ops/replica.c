/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/replica.h"

#include "ops/tape.h"

static _Thread_local hi_context here;

hi_context hi_context_now(void) {
  return here;
}

hi_context hi_context_set(hi_context context) {
  hi_context before = here;
  here = context;
  return before;
}

hi_context hi_context_alone(void) {
  return hi_context_set((hi_context){.replicas = here.replicas, .journal = here.journal});
}

int hi_replica_of(const hi_replicas *replicas) {
  return replicas && here.replicas == replicas && here.replica ? here.replica->id : -1;
}

hi_replicas *hi_replicas_together(void) {
  return here.replica && here.replicas->count > 1 ? here.replicas : NULL;
}

helio_tensor *hi_all_reduce(helio_tensor *tensor) {
  hi_replicas *together = hi_replicas_together();
  if (!together || !tensor) return tensor;
  hi_call call = {.row = hi_row_of(HELIO_OP_ALL_REDUCE), .inputs = &tensor, .input_count = 1};
  if (hi_call_check(&call)) return NULL;
  return hi_tape_record_one(&call, together->services->sum(together, tensor));
}
