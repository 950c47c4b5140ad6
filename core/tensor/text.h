/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays as text, to the byte what numpy's str() and so a tf.Tensor between its parentheses shows: numpy 2.4 with its
 * default print options, and ml_dtypes for bfloat16. The locale plays no part. */
#ifndef HI_TENSOR_TEXT_H
#define HI_TENSOR_TEXT_H

#include <helio/types.h>

/* The text of a row-major array as numpy's str() gives it, without a trailing newline; malloc'd, NULL if out of memory.
 * data needs no alignment. It may be NULL if an extent is 0. Of an array with more than 1000 elements only the three
 * first and three last along each axis longer than six are read. A tf.Tensor puts a newline before text of several
 * lines; that is left to the caller. */
char *hi_array_text(helio_type type, int rank, const int64_t *extent, const void *data);

#endif
