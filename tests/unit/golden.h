/* SPDX-License-Identifier: Apache-2.0 */
/* Files of named tensors, those of golden/nn above all: their cases, which are JSON, their tensors, and how near ours
 * come. A program that includes this sees the core's internal symbols. */
#ifndef HELIO_TEST_GOLDEN_H
#define HELIO_TEST_GOLDEN_H

#include <jansson.h>
#include <math.h>

#include "data/safetensors.h"
#include "support.h"

typedef hi_safetensors golden;

static inline golden *golden_open_path(const char *path) {
  golden *file = hi_safetensors_open(path);
  assert_made(file);
  return file;
}

/* <category>.safetensors of golden/nn. A test whose numbers are missing fails. */
static inline golden *golden_open(const char *category) {
  char path[PATH_MAX];
  const char *source = getenv("HELIO_TEST_SOURCE");
  snprintf(path, sizeof path, "%s/golden/nn/%s.safetensors", source ? source : "tests", category);
  return golden_open_path(path);
}

static inline void golden_close(golden *file) {
  hi_safetensors_close(file);
}

/* A value of the metadata, to be given back by json_decref(). */
static inline json_t *golden_json(const golden *file, const char *key) {
  const char *text = hi_safetensors_metadata(file, key);
  json_t *value = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
  if (!value) fail_msg("%s is not in the metadata, or no JSON", key);
  return value;
}

/* ---- tensors by name ---- */

static inline const hi_safetensors_entry *golden_entry(const golden *file, const char *format, va_list arguments) {
  char name[300];
  vsnprintf(name, sizeof name, format, arguments);
  return hi_safetensors_find(file, name);
}

static inline HELIO_PRINTF(2, 3) bool golden_has(const golden *file, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  bool has = golden_entry(file, format, arguments) != NULL;
  va_end(arguments);
  return has;
}

/* The tensor on the device in force. */
static inline HELIO_PRINTF(2, 3) helio_tensor *golden_tensor(const golden *file, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const hi_safetensors_entry *entry = golden_entry(file, format, arguments);
  va_end(arguments);
  if (!entry) fail_msg("the file has no tensor \"%s\"", format);
  void *data = malloc(entry->bytes + 1);
  assert_non_null(data);
  assert_ok(hi_safetensors_read(file, entry, data));
  helio_tensor *tensor = helio_constant(data, entry->shape, .type = entry->type);
  free(data);
  assert_made(tensor);
  return tensor;
}

/* ---- nearness ---- */

static inline bool shapes_equal(helio_shape a, helio_shape b) {
  bool same = a.rank == b.rank;
  for (int i = 0; same && i < a.rank; i++) same = a.extent[i] == b.extent[i];
  return same;
}

/* All elements of a float tensor, to be freed. */
static inline double *numbers_of(helio_tensor *tensor) {
  helio_type type = helio_tensor_type(tensor);
  size_t count = (size_t)helio_tensor_elements(tensor), bytes = helio_type_bytes(type);
  char *data = malloc(count * bytes + 1);
  double *numbers = malloc(count * sizeof *numbers + 1);
  assert_true(data && numbers && (type == HELIO_FLOAT32 || type == HELIO_FLOAT64));
  assert_ok(helio_tensor_read(tensor, data, count * bytes));
  for (size_t i = 0; i < count; i++) {
    numbers[i] = type == HELIO_FLOAT32 ? (double)((float *)(void *)data)[i] : ((double *)(void *)data)[i];
  }
  free(data);
  return numbers;
}

/* max|a − b| ÷ max|b| of as many numbers; infinite where one of a is not a number. */
static inline double distance_of_numbers(const double *a, const double *b, int64_t count) {
  double difference = 0, largest = 0;
  for (int64_t i = 0; i < count; i++) {
    double d = fabs(a[i] - b[i]);
    difference = isnan(d) ? INFINITY : fmax(difference, d);
    largest = fmax(largest, fabs(b[i]));
  }
  return difference == 0 ? 0 : difference / (largest > 0 ? largest : 1);
}

/* The same of tensors; infinite if the shapes differ, or there is no first one. */
static inline double tensor_distance(helio_tensor *a, helio_tensor *b) {
  if (!a || !shapes_equal(helio_tensor_shape(a), helio_tensor_shape(b))) return INFINITY;
  double *x = numbers_of(a), *y = numbers_of(b);
  double distance = distance_of_numbers(x, y, helio_tensor_elements(a));
  free(x);
  free(y);
  return distance;
}

#define assert_near(tensor, expected, tolerance)                                                                       \
  do {                                                                                                                 \
    helio_tensor *tensor_ = (tensor);                                                                                  \
    assert_made(tensor_);                                                                                              \
    double distance_ = tensor_distance(tensor_, (expected));                                                           \
    if (!(distance_ <= (tolerance))) fail_msg("%s differs from %s by %g", #tensor, #expected, distance_);              \
  } while (0)

#endif
