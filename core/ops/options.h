/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions of helio.h that are operations share. */
#ifndef HI_OPTIONS_H
#define HI_OPTIONS_H

#include "ops/dispatch.h"

/* Begins a call with named arguments: starts the library and reads the options, whatever size this library's or an
 * older header gave them. False: do nothing. */
bool hi_options_enter(const char *function, void *to, size_t known, const void *from);

/* The axes given as a set of bits; false with the error set. */
bool hi_options_axes(const hi_row *row, const helio_shape *shape, const helio_axes *axes, uint32_t *set);

/* An operation of one input and no attributes, and one of two. */
helio_tensor *hi_unary(const char *function, helio_operation operation, helio_tensor *x);
helio_tensor *hi_binary(const char *function, helio_operation operation, helio_tensor *a, helio_tensor *b);

/* One number of a type, or of a tensor's type, for arithmetic with tensors. */
helio_tensor *hi_scalar(helio_type type, double value);
helio_tensor *hi_scalar_like(const helio_tensor *x, double value); /* NULL for NULL */

#endif
