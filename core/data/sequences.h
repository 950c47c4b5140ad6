/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of integers of unequal length, in one piece of memory. */
#ifndef HI_SEQUENCES_H
#define HI_SEQUENCES_H

#include "tensor/object.h"

struct helio_sequences {
  hi_object object;
  int64_t count;
  int64_t *starts; /* count + 1 of them: sequence i is the values from starts[i] to starts[i + 1] */
  int32_t *values;
};

/* Sequences that are being written, one behind the other. Begins as zeros; each call returns false, with the error set,
 * when memory is out. */
typedef struct hi_sequences_writer {
  int64_t *starts;
  int32_t *values;
  int64_t count, starts_room, total, values_room;
} hi_sequences_writer;

bool hi_sequences_begin(hi_sequences_writer *writer); /* a new sequence */
bool hi_sequences_add(hi_sequences_writer *writer, int32_t value);

/* The sequences, which belong to the innermost pool; NULL with the error set. The writer is empty afterwards. */
helio_sequences *hi_sequences_finish(hi_sequences_writer *writer);
void hi_sequences_abandon(hi_sequences_writer *writer);

#endif
