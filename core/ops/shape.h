/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of operations. Each checks the inputs, fills the call's outputs, and names operation and shapes in its
 * errors. */
#ifndef HI_SHAPE_H
#define HI_SHAPE_H

#include "ops/table.h"

/* shape.c: what many rows share, and the movement of elements */
helio_status hi_shape_as_wanted(
    hi_call *call); /* the caller says type and shape; the type of the first input if there is one */
helio_status hi_shape_same(hi_call *call);     /* as the first input */
helio_status hi_shape_all_same(hi_call *call); /* likewise, and all inputs have its shape */
helio_status hi_shape_cast(hi_call *call);
helio_status hi_shape_slice(hi_call *call); /* completes −1 in call->wanted */
helio_status hi_shape_concat(hi_call *call);
helio_status hi_shape_transpose(hi_call *call);
helio_status hi_shape_pad(hi_call *call);
helio_status hi_shape_gather(hi_call *call);
helio_status hi_shape_scatter_add(hi_call *call);
helio_status hi_shape_one_hot(hi_call *call);
helio_status hi_shape_combine_rows(hi_call *call);

/* shape_arithmetic.c */
helio_status hi_shape_broadcast(hi_call *call);
helio_status hi_shape_compare(hi_call *call); /* broadcast, to bool */
helio_status hi_shape_where(hi_call *call);
helio_status hi_shape_reduce(hi_call *call);
helio_status hi_shape_argmax(hi_call *call);
helio_status hi_shape_top_k(hi_call *call);
helio_status hi_shape_in_top_k(hi_call *call);
helio_status hi_shape_matmul(hi_call *call);

/* shape_network.c */
helio_status hi_shape_conv2d(hi_call *call);
helio_status hi_shape_conv2d_grad_input(hi_call *call);  /* the caller says the shape of x, which must give dy's */
helio_status hi_shape_conv2d_grad_kernel(hi_call *call); /* likewise that of the kernel */
helio_status hi_shape_max_pool_grad(hi_call *call);      /* likewise that of x */
helio_status hi_shape_average_pool_grad(hi_call *call);
helio_status hi_shape_max_pool(hi_call *call);
helio_status hi_shape_average_pool(hi_call *call);
helio_status hi_shape_sparse_cross_entropy(hi_call *call);
helio_status hi_shape_cross_entropy(hi_call *call);
helio_status hi_shape_moments(hi_call *call);
helio_status hi_shape_normalize(hi_call *call);
helio_status hi_shape_normalize_sums(hi_call *call);
helio_status hi_shape_normalize_grad_input(hi_call *call);
helio_status hi_shape_layer_norm(hi_call *call);
helio_status hi_shape_layer_norm_grad(hi_call *call);
helio_status hi_shape_update(hi_call *call);

/* ---- for the rules ---- */

/* Axis −rank … rank−1 as 0 … rank−1; −1 with the error set if it is out of range. */
int hi_axis(const char *operation, int axis, const helio_shape *shape);

/* Fills an output, whose size must be one that memory can have. */
helio_status hi_shape_answer(hi_call *call, int output, helio_type type, const helio_shape *shape);

/* "Add: shapes (2, 3) and (4,) do not broadcast" */
helio_status hi_shape_wrong_pair(const hi_call *call, const helio_shape *a, const helio_shape *b, const char *why);
helio_status hi_shape_wrong(const hi_call *call, const helio_shape *shape, const char *why);

const helio_shape *hi_input_shape(const hi_call *call, int input);

#endif
