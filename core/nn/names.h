/* SPDX-License-Identifier: Apache-2.0 */
/* Names by which Keras finds things: "MeanSquaredError", "mean_squared_error", "mse". */
#ifndef HI_NAMES_H
#define HI_NAMES_H

#include <helio/helio.h>
#include <stddef.h>

enum { HI_OTHER_NAMES = 4 };

typedef struct hi_names {
  const char *class_name;
  const char *name; /* the one that its objects have unless they are given another */
  const char *others[HI_OTHER_NAMES];
} hi_names;

/* The row that goes by a name in a table whose rows begin with hi_names. NULL with the error set, which says the
 * nearest name, or all if none is near; `what` is what the rows are: "loss". */
const void *hi_named(const char *what, const char *name, const void *rows, size_t row_bytes, int row_count);

/* "there is no loss 'foo'; did you mean '…'?", the nearest name; "there are …", all of them, where that is NULL. */
helio_status hi_fail_unknown(helio_status status, const char *what, const char *word, const char *nearest,
                             const char *const *names, int count);

#endif
