/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of operations: each fills call->input_gradients for the inputs that are wanted. Those are made by ordinary
 * operations, so the way back runs on any device and can itself be recorded. */
#ifndef HI_GRADIENT_H
#define HI_GRADIENT_H

#include "ops/table.h"

/* gradient.c: movement, arithmetic, reductions */
helio_status hi_gradient_same(const hi_backward *call);
helio_status hi_gradient_all_reduce(const hi_backward *call);
helio_status hi_gradient_cast(const hi_backward *call);
helio_status hi_gradient_reshape(const hi_backward *call);
helio_status hi_gradient_slice(const hi_backward *call);
helio_status hi_gradient_concat(const hi_backward *call);
helio_status hi_gradient_transpose(const hi_backward *call);
helio_status hi_gradient_pad(const hi_backward *call);
helio_status hi_gradient_gather(const hi_backward *call);
helio_status hi_gradient_scatter_add(const hi_backward *call);
helio_status hi_gradient_where(const hi_backward *call);
helio_status hi_gradient_add(const hi_backward *call);
helio_status hi_gradient_sub(const hi_backward *call);
helio_status hi_gradient_mul(const hi_backward *call);
helio_status hi_gradient_div(const hi_backward *call);
helio_status hi_gradient_pow(const hi_backward *call);
helio_status hi_gradient_extreme(const hi_backward *call); /* maximum, minimum */
helio_status hi_gradient_neg(const hi_backward *call);
helio_status hi_gradient_abs(const hi_backward *call);
helio_status hi_gradient_square(const hi_backward *call);
helio_status hi_gradient_sqrt(const hi_backward *call);
helio_status hi_gradient_rsqrt(const hi_backward *call);
helio_status hi_gradient_exp(const hi_backward *call);
helio_status hi_gradient_log(const hi_backward *call);
helio_status hi_gradient_clip(const hi_backward *call);
helio_status hi_gradient_sum(const hi_backward *call);
helio_status hi_gradient_mean(const hi_backward *call);
helio_status hi_gradient_max(const hi_backward *call); /* max, min */

/* gradient_network.c */
helio_status hi_gradient_matmul(const hi_backward *call);
helio_status hi_gradient_activation(const hi_backward *call);
helio_status hi_gradient_conv2d(const hi_backward *call);
helio_status hi_gradient_max_pool(const hi_backward *call);
helio_status hi_gradient_average_pool(const hi_backward *call);
helio_status hi_gradient_softmax(const hi_backward *call);
helio_status hi_gradient_cross_entropy(const hi_backward *call);
helio_status hi_gradient_moments(const hi_backward *call);
helio_status hi_gradient_normalize(const hi_backward *call);
helio_status hi_gradient_layer_norm(const hi_backward *call);
helio_status hi_gradient_dropout(const hi_backward *call);

#endif
