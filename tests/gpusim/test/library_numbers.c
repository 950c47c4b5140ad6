/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* and then itself */
#include <cmocka.h>

#include "library_numbers.h"

#include "gpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void fill_input(float *to, size_t count, int which) {
  for (size_t i = 0; i < count; i++) {
    uint32_t u = (uint32_t)i * 2654435761u + 40503u * (uint32_t)(which + 1);
    u ^= u >> 15;
    u *= 2246822519u;
    u ^= u >> 13;
    to[i] = (float)(u >> 8) / 8388608 - 1;
  }
}

size_t count_of(const int dims[4]) {
  return (size_t)dims[0] * (size_t)dims[1] * (size_t)dims[2] * (size_t)dims[3];
}

void strides_of(const int dims[4], memory_layout layout, int strides[4]) {
  int gap = layout == WITH_GAPS;
  strides[3] = layout == CHANNELS_LAST ? dims[1] : 1;
  strides[2] = strides[3] * dims[3] + gap;
  strides[1] = layout == CHANNELS_LAST ? 1 : strides[2] * dims[2] + 2 * gap;
  strides[0] = (layout == CHANNELS_LAST ? strides[2] * dims[2] : strides[1] * dims[1]) + 3 * gap;
}

size_t extent_of(const int dims[4], memory_layout layout) {
  int strides[4];
  strides_of(dims, layout, strides);
  size_t last = 0;
  for (int i = 0; i < 4; i++) last += (size_t)(dims[i] - 1) * (size_t)strides[i];
  return last + 1;
}

static size_t place_of(size_t index, const int dims[4], const int strides[4]) {
  size_t place = 0;
  for (int i = 3; i >= 0; i--) {
    place += index % (size_t)dims[i] * (size_t)strides[i];
    index /= (size_t)dims[i];
  }
  return place;
}

static const float gap_value = 12345;

void *put_tensor(const float *values, const int dims[4], memory_layout layout) {
  int strides[4];
  strides_of(dims, layout, strides);
  size_t extent = extent_of(dims, layout);
  float *memory = malloc(extent * sizeof *memory);
  assert_non_null(memory);
  for (size_t i = 0; i < extent; i++) memory[i] = gap_value;
  for (size_t i = 0; i < count_of(dims); i++) memory[place_of(i, dims, strides)] = values ? values[i] : NAN;
  void *made = gpu_copy_of(memory, extent * sizeof *memory);
  free(memory);
  return made;
}

void *put_nothing(const int dims[4], memory_layout layout) {
  return put_tensor(NULL, dims, layout);
}

float *take_tensor(void *from, const int dims[4], memory_layout layout) {
  int strides[4];
  strides_of(dims, layout, strides);
  size_t extent = extent_of(dims, layout), count = count_of(dims), gaps = 0;
  float *memory = malloc(extent * sizeof *memory), *values = malloc(count * sizeof *values);
  assert_true(memory && values);
  gpu_copy_out(memory, from, extent * sizeof *memory);
  gpu_free(from);
  for (size_t i = 0; i < extent; i++) gaps += memory[i] == gap_value;
  assert_int_equal(gaps, extent - count); /* nothing was written between the elements */
  for (size_t i = 0; i < count; i++) values[i] = memory[place_of(i, dims, strides)];
  free(memory);
  return values;
}

golden golden_open(const char *path) {
  golden made = {.file = fopen(path, "r")};
  if (!made.file) fail_msg("cannot open %s", path);
  return made;
}

int golden_next(golden *g) {
  if (fscanf(g->file, "%31s", g->word) == 1) return 1;
  fclose(g->file);
  return 0;
}

int golden_integer(golden *g) {
  int value;
  assert_int_equal(fscanf(g->file, "%d", &value), 1);
  return value;
}

float golden_number(golden *g) {
  float value;
  assert_int_equal(fscanf(g->file, "%f", &value), 1);
  return value;
}

float *golden_values(golden *g, const char *name, size_t count) {
  float *values = malloc(count * sizeof *values);
  assert_non_null(values);
  assert_int_equal(fscanf(g->file, "%31s", g->word), 1);
  assert_string_equal(g->word, name);
  assert_int_equal(golden_integer(g), count);
  for (size_t i = 0; i < count; i++) values[i] = golden_number(g);
  return values;
}

void expect_equal(const float *found, const float *expected, size_t count, float tolerance, const char *what) {
  float greatest = 0;
  for (size_t i = 0; i < count; i++) greatest = fmaxf(greatest, fabsf(expected[i]));
  for (size_t i = 0; i < count; i++)
    if (!(fabsf(found[i] - expected[i]) <= tolerance * greatest))
      fail_msg("%s: element %zu of %zu is %.9g and not %.9g", what, i, count, (double)found[i], (double)expected[i]);
}
