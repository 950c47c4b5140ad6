/* SPDX-License-Identifier: Apache-2.0 */
/* Paths with values in them, as Python's str.format() writes them: "{epoch:02d}-{val_loss:.2f}". A value is a name,
 * and behind a colon, if wanted, 0 for leading zeros, a width, a precision and a letter: d, f, e or g. Two braces are
 * one. */
#ifndef HI_PATH_TEMPLATE_H
#define HI_PATH_TEMPLATE_H

#include <helio/helio.h>

/* Fails if it is none, whatever values there will be. */
helio_status hi_path_template_check(const char *path);

/* The path with the values of "epoch" and of what is in the logs; and of "batch", unless that is 0. To be freed; NULL
 * with the error set, say for a name that has no value. */
char *hi_path_template_fill(const char *path, int epoch, int64_t batch, helio_logs *logs);

#endif
