/* SPDX-License-Identifier: Apache-2.0 */
/* Labels, predictions and sample weights brought together, as losses and metrics need it. Errors do not name the loss
 * or metric: who calls these does. */
#ifndef HI_SAMPLES_H
#define HI_SAMPLES_H

#include "ops/options.h"
#include "tensor/tensor.h"

/* Keras' squeeze_or_expand_to_same_rank: where one of two has an axis of extent 1 more at its end, the other gets one
 * too if it is a vector; else it loses it. */
helio_status hi_match_ranks(helio_tensor **a, helio_tensor **b);

/* An error with both shapes, unless they are equal. */
helio_status hi_match_shapes(const helio_tensor *labels, const helio_tensor *predictions);

/* Numbers of classes as int32 or int64, one for each row of the predictions, whose last axis is the classes; an axis of
 * extent 1 in its place is taken away. NULL with the error set, with both shapes, where that is not so. */
helio_tensor *hi_class_numbers(helio_tensor *labels, const helio_tensor *predictions);

/* Sample weights in the type of the values and with as many axes, so that they broadcast to their shape: those of fewer
 * axes belong to the first ones. NULL with the error set where they do not fit. */
helio_tensor *hi_weights_for(helio_tensor *weights, const helio_tensor *values);

/* a ÷ b, and 0 where b is 0, where no gradient passes either. */
helio_tensor *hi_divide_no_nan(helio_tensor *a, helio_tensor *b);

/* x in the type; itself if it has it. */
helio_tensor *hi_in_type(helio_tensor *x, helio_type type);

/* x as it is, if its type is one that losses are computed in, else in float32. */
helio_tensor *hi_in_wide_float(helio_tensor *x);

#endif
