/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and histograms of arrays, and sequences. */
#include <math.h>
#include <stdlib.h>

#include "data_describe.h"
#include "output.h"

enum {
  PIECE = 1 << 16,      /* elements that are looked at together */
  MOST_RANGE = 1 << 16, /* from the least to the largest value of a histogram */
};

/* JSON has no word for numbers that are not finite: they are texts. */
static json_t *number_json(double value) {
  if (isfinite(value)) return json_real(value);
  return json_string(isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Rows
 */

/* Elements from `first` on, of an array that was cast to int64 or float64. */
static json_t *values_json(helio_array *array, int64_t first, int64_t count) {
  json_t *list = json_array();
  const void *data = helio_array_data(array);
  bool whole = helio_array_type(array) == HELIO_INT64;
  for (int64_t i = first; i < first + count; i++) {
    output_append(list, whole ? json_integer(((const int64_t *)data)[i]) : number_json(((const double *)data)[i]));
  }
  return list;
}

static void add_extremes(json_t *row, helio_array *array, int64_t first, int64_t count) {
  const void *data = helio_array_data(array);
  bool whole = helio_array_type(array) == HELIO_INT64;
  double least = INFINITY, largest = -INFINITY, sum = 0;
  for (int64_t i = first; i < first + count; i++) {
    double value = whole ? (double)((const int64_t *)data)[i] : ((const double *)data)[i];
    least = isnan(least) || value >= least ? least : value; /* not a number once, not a number for ever */
    largest = isnan(largest) || value <= largest ? largest : value;
    sum += value;
  }
  output_set(row, "count", json_integer(count));
  output_set(row, "least", number_json(least));
  output_set(row, "largest", number_json(largest));
  output_set(row, "mean", number_json(sum / (double)count));
}

/* The begin of each row, and what may be said of all of it. */
static json_t *rows_json(helio_array *array, int64_t rows, int64_t columns) {
  json_t *list = json_array();
  for (int64_t i = 0; i < rows; i++) {
    json_t *row = json_object();
    output_set(row, "values", values_json(array, i * columns, columns < DATA_ROW_VALUES ? columns : DATA_ROW_VALUES));
    if (columns > DATA_ROW_VALUES) add_extremes(row, array, i * columns, columns);
    output_append(list, row);
  }
  return list;
}

static bool add_rows(json_t *object, helio_array *array, const data_view *view) {
  helio_shape shape = helio_array_shape(array);
  helio_type wide = helio_type_is_integer(helio_array_type(array)) ? HELIO_INT64 : HELIO_FLOAT64;
  int64_t all = shape.rank ? shape.extent[0] : 1, most = shape.rank < 2 ? DATA_VECTOR_VALUES : view->rows;
  int64_t rows = view->rows == 0 ? 0 : all < most ? all : most;
  helio_array *part = shape.rank ? helio_array_part(array, 0, rows) : array;
  part = helio_array_cast(part, wide);
  if (!part) return false;
  if (shape.rank < 2) {
    output_set(object, "values", values_json(part, 0, rows));
  } else {
    output_set(object, "rows", rows_json(part, rows, rows ? helio_array_elements(part) / rows : 0));
  }
  return true;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Histograms
 */

/* Calls `look` for all elements, piece by piece. False with the error pending. */
static bool each_piece(helio_array *array, void (*look)(void *user, const int64_t *values, int64_t count), void *user) {
  int64_t count = helio_array_elements(array);
  for (int64_t begin = 0; begin < count; begin += PIECE) {
    int64_t length = count - begin < PIECE ? count - begin : PIECE;
    HELIO_POOL {
      helio_array *piece = helio_array_cast(helio_array_part(array, begin, length), HELIO_INT64);
      if (piece) look(user, helio_array_data(piece), length);
    }
    if (helio_error_pending()) return false;
  }
  return true;
}

typedef struct histogram {
  int64_t least, largest;
  int64_t *counts; /* of least + i */
} histogram;

static void find_ends(void *user, const int64_t *values, int64_t count) {
  histogram *h = user;
  for (int64_t i = 0; i < count; i++) {
    if (values[i] < h->least) h->least = values[i];
    if (values[i] > h->largest) h->largest = values[i];
  }
}

static void count_values(void *user, const int64_t *values, int64_t count) {
  histogram *h = user;
  for (int64_t i = 0; i < count; i++) h->counts[values[i] - h->least]++;
}

static void add_counts(json_t *object, const histogram *h) {
  json_t *list = json_array();
  int64_t distinct = 0, range = h->largest - h->least;
  for (int64_t i = 0; i <= range; i++) distinct += h->counts[i] > 0;
  output_set(object, "distinct", json_integer(distinct));
  for (int64_t i = 0; i <= range && distinct <= DATA_HISTOGRAM; i++) {
    if (h->counts[i] == 0) continue;
    json_t *bar = json_object();
    output_set(bar, "value", json_integer(h->least + i));
    output_set(bar, "count", json_integer(h->counts[i]));
    output_append(list, bar);
  }
  if (distinct <= DATA_HISTOGRAM) output_set(object, "histogram", json_incref(list));
  json_decref(list);
}

/* Of a vector of integers, which may be labels. */
static bool add_histogram(json_t *object, helio_array *array) {
  uint64_t range;
  histogram h = {.least = INT64_MAX, .largest = INT64_MIN};
  if (helio_array_elements(array) == 0) return true;
  if (!each_piece(array, find_ends, &h)) return false;
  output_set(object, "least", json_integer(h.least));
  output_set(object, "largest", json_integer(h.largest));
  range = (uint64_t)h.largest - (uint64_t)h.least;
  if (range >= MOST_RANGE) return true;
  h.counts = calloc((size_t)range + 1, sizeof *h.counts);
  bool good = h.counts && each_piece(array, count_values, &h);
  if (good) add_counts(object, &h);
  free(h.counts);
  return good || !helio_error_pending();
}

bool data_describe_array(json_t *object, helio_array *array, const data_view *view) {
  helio_shape shape = helio_array_shape(array);
  json_t *extents = json_array();
  for (int i = 0; i < shape.rank; i++) output_append(extents, json_integer(shape.extent[i]));
  output_set(object, "type", output_text(helio_type_name(helio_array_type(array))));
  output_set(object, "shape", extents);
  if (!add_rows(object, array, view)) return false;
  return shape.rank != 1 || !helio_type_is_integer(helio_array_type(array)) || add_histogram(object, array);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Sequences
 */

void data_describe_sequences(json_t *object, const helio_sequences *sequences, const data_view *view) {
  int64_t count = helio_sequences_count(sequences), shortest = INT64_MAX, longest = 0, all = 0;
  json_t *first = json_array();
  for (int64_t i = 0; i < count; i++) {
    int64_t length;
    const int32_t *values = helio_sequences_at(sequences, i, &length);
    all += length;
    if (length < shortest) shortest = length;
    if (length > longest) longest = length;
    if (i >= view->rows) continue;
    json_t *row = json_object(), *list = json_array();
    for (int64_t k = 0; k < length && k < DATA_ROW_VALUES; k++) output_append(list, json_integer(values[k]));
    output_set(row, "values", list);
    output_set(row, "count", json_integer(length));
    output_append(first, row);
  }
  output_set(object, "type", output_text("sequences"));
  output_set(object, "sequences", json_integer(count));
  output_set(object, "shortest", json_integer(count ? shortest : 0));
  output_set(object, "longest", json_integer(longest));
  output_set(object, "mean_length", json_real(count ? (double)all / (double)count : 0));
  output_set(object, "largest", json_integer(helio_sequences_largest(sequences)));
  output_set(object, "rows", first);
}
