/* SPDX-License-Identifier: Apache-2.0 */
/* Python's pickles, as far as numpy writes them for an array of lists of integers; nothing else. A pickle is a program,
 * and this machine has no instruction that could do harm: of all functions it knows numpy's constructors of arrays and
 * types, by name, and these make nothing but what is expected of them. */
#ifndef HI_PICKLE_H
#define HI_PICKLE_H

#include "data/file.h"

/* The lists of the pickle that fills the file from `offset` on, which must be `count`. They belong to the innermost
 * pool. NULL with the error set, which names the byte. */
helio_sequences *hi_unpickle(const hi_file *file, size_t offset, int64_t count);

#endif
