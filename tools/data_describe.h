/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a file of data, as JSON: `helio data show` prints that as it is or writes a text from it. */
#ifndef DATA_DESCRIBE_H
#define DATA_DESCRIBE_H

#include <helio/helio.h>
#include <jansson.h>

typedef struct data_view {
  int rows; /* to show of each array */
  bool no_header;
} data_view;

enum {
  DATA_ROW_VALUES = 10,    /* of a row that are shown */
  DATA_VECTOR_VALUES = 20, /* of a vector, of which each element is a row */
  DATA_HISTOGRAM = 256,    /* values that differ, at the most */
};

/* {"path", "format", "parts": [{"name", "type", "shape", …}, …]}. NULL with the error pending, or with none: then the
 * file has no format that is known. A member of an archive that cannot be read has an "error" instead of its contents.
 */
json_t *data_describe(const char *path, const data_view *view);

/* The pieces, added to an object. False with the error pending. */
bool data_describe_array(json_t *object, helio_array *array, const data_view *view);
void data_describe_sequences(json_t *object, const helio_sequences *sequences, const data_view *view);

#endif
