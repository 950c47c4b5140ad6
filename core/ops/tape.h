/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient tape: what was computed from watched tensors, so that it can be walked back. */
#ifndef HI_TAPE_H
#define HI_TAPE_H

#include "ops/table.h"
#include "tensor/object.h"

/* Is a tape of this thread recording? */
bool hi_tape_recording(void);

/* Tells the thread's tapes of a call that was carried out. A tape records it if one of the inputs is watched or was
 * computed from what is, and a float came out. `outputs` are the row's, NULL where there is none. */
helio_status hi_tape_record(const hi_call *call, helio_tensor *const *outputs);

/* The same for views and copies, which have one result: gives it back, or NULL with the error set. */
helio_tensor *hi_tape_record_one(const hi_call *call, helio_tensor *output);

/* Every tape that records watches the tensor from now on. */
helio_status hi_tape_watch(helio_tensor *tensor);

/* Between the two nothing is recorded on this thread: for what belongs to no gradient, such as moving averages. */
void hi_tape_pause(void);
void hi_tape_resume(void);

/* The tapes of a thread that record, innermost first, and how often they were paused. Setting them returns those that
 * were, to be set again: for what is none of their business but may have tapes of its own. */
typedef struct hi_tapes {
  helio_tape *innermost;
  int paused;
} hi_tapes;

hi_tapes hi_tapes_set(hi_tapes tapes);

/* What helio_gradient() returns. */
struct helio_gradients {
  hi_object object;
  int count;
  hi_gradient *list; /* a reference to each tensor in it */
};

/* As helio_gradient(), which calls it, but tells of the gradient of each variable as soon as nothing more will be added
 * to it, while the rest is still to be computed; one that has no values is told of too, or never. `index` is the
 * variable's place in the list. */
typedef helio_status hi_gradient_ready(void *user, int index, const hi_gradient *gradient);
helio_gradients *hi_gradient_of(const helio_gradient_options *options, hi_gradient_ready *ready, void *user);

/* A list of `count` without gradients, owned by the innermost pool. */
helio_gradients *hi_gradients_new(int count);

/* Adds a list of as many to it. */
helio_status hi_gradients_add(helio_gradients *total, const helio_gradients *more);

/* The whole tensor of a gradient that may be rows; NULL with the error set. There is a gradient. */
helio_tensor *hi_gradient_dense(const hi_gradient *gradient);

/* The sum of two gradients; rows stay rows if both are. */
helio_status hi_gradient_sum_of(const hi_gradient *a, const hi_gradient *b, hi_gradient *sum);

/* References to its tensors. */
void hi_gradient_hold(const hi_gradient *gradient);
void hi_gradient_drop(hi_gradient *gradient);

#endif
