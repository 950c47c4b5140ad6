/* SPDX-License-Identifier: Apache-2.0 */
/* The position of an iterator as a line of text. */
#ifndef HI_POSITION_H
#define HI_POSITION_H

#include <helio/helio.h>

typedef struct hi_position {
  uint64_t fingerprint; /* of the dataset */
  int64_t count;        /* elements that have come */
  int64_t *births;      /* cursor.h */
  int birth_count;
} hi_position;

/* For free(); NULL with the error set. */
char *hi_position_text(const hi_position *position);

/* Births are for free(). The text is taken for hostile. */
helio_status hi_position_parse(const char *text, hi_position *position);

#endif
