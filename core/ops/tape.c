/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/tape.h"

#include <stdlib.h>
#include <string.h>

#include "ops/options.h"
#include "ops/tape_nodes.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

static _Thread_local hi_tapes mine;

bool hi_tape_recording(void) {
  return mine.innermost && !mine.paused;
}

void hi_tape_pause(void) {
  mine.paused++;
}

void hi_tape_resume(void) {
  mine.paused--;
}

hi_tapes hi_tapes_set(hi_tapes tapes) {
  hi_tapes before = mine;
  mine = tapes;
  return before;
}

/* ---- life ---- */

static void end(void *object) {
  helio_tape *tape = object;
  hi_tape_clear(tape);
  free(tape->nodes);
  free(tape->slots);
  free(tape->places);
  free(tape);
}

helio_tape *helio_tape_new_with(const helio_tape_options *given) {
  helio_tape_options o;
  if (!hi_options_enter("helio_tape_new", &o, sizeof o, given)) return NULL;
  helio_tape *tape = hi_object_new(sizeof *tape, end, "a tape");
  if (tape) tape->persistent = o.persistent;
  return tape;
}

helio_scope helio_tape_enter(helio_tape *tape) {
  helio_scope scope = {.open = 1, .depth = 0};
  if (hi_enter(__func__)) return scope;
  if (!tape) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the tape is NULL");
  } else if (tape->recording) {
    hi_fail(HELIO_WRONG_STATE, "the tape is recording already");
  } else {
    if (tape->used) hi_tape_clear(tape);
    hi_hold(tape);
    tape->recording = true;
    tape->outer = mine.innermost;
    mine.innermost = tape;
    scope.depth = 1;
  }
  return scope;
}

void helio_tape_leave(helio_scope *scope) {
  if (!scope || scope->depth == 0) return;
  scope->depth = 0;
  helio_tape *tape = mine.innermost;
  mine.innermost = tape->outer;
  tape->recording = false;
  hi_drop(tape);
}

/* ---- watching and recording ---- */

helio_status hi_tape_watch(helio_tensor *tensor) {
  if (!hi_tape_recording() || !hi_type_is_float(tensor->type)) return HELIO_OK;
  for (helio_tape *tape = mine.innermost; tape; tape = tape->outer) {
    if (!tape->busy && !tape->used && hi_tape_slot(tape, tensor->id) < 0 && hi_tape_add_slot(tape, tensor) < 0) {
      return helio_error_pending();
    }
  }
  return HELIO_OK;
}

helio_status helio_tape_watch(helio_tape *tape, helio_tensor *tensor) {
  helio_status status = hi_enter(__func__);
  if (status) return status;
  if (!tape) return hi_fail(HELIO_INVALID_ARGUMENT, "the tape is NULL");
  if (!hi_tensor_usable(tensor, "the tensor")) return helio_error_pending();
  if (!hi_type_is_float(tensor->type)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "a tensor of type %s has no gradient", helio_type_name(tensor->type));
  }
  if (tape->used) hi_tape_clear(tape); /* it starts anew */
  if (hi_tape_slot(tape, tensor->id) >= 0) return HELIO_OK;
  return hi_tape_add_slot(tape, tensor) < 0 ? helio_error_pending() : HELIO_OK;
}

helio_status hi_tape_record(const hi_call *call, helio_tensor *const *outputs) {
  helio_status status = HELIO_OK;
  if (!hi_tape_recording()) return HELIO_OK;
  for (helio_tape *tape = mine.innermost; tape && !status; tape = tape->outer) {
    if (!tape->busy && !tape->used) status = hi_tape_add_node(tape, call, outputs);
  }
  return status;
}

helio_tensor *hi_tape_record_one(const hi_call *call, helio_tensor *output) {
  helio_tensor *outputs[HI_MAX_OUTPUTS] = {output};
  return output && !hi_tape_record(call, outputs) ? output : NULL;
}

helio_tensor *helio_stop_gradient(helio_tensor *x) {
  if (hi_enter(__func__) || !hi_tensor_usable(x, "the tensor")) return NULL;
  return hi_tensor_view(x, &x->shape, 0);
}
