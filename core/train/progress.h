/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HI_TRAIN_PROGRESS_H
#define HI_TRAIN_PROGRESS_H

#include <helio/helio.h>

/* The callback that draws the progress of a training, or of an evaluation, on standard output: a bar if that is a
 * terminal, unless lines are wanted, else a line for each epoch. Owned by the innermost pool; NULL with the error set.
 */
helio_callback *hi_progress_callback(helio_verbosity verbosity);

#endif
