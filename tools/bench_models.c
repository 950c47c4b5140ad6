/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_models.h"

#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "output.h"
#include "recipes.h"

/* ---------------------------------------------------------------------------------------------------------------------
 * Networks
 */

/* 669,706 weights. */
static helio_model *make_mlp(const bench_model *self) {
  return helio_sequential({helio_dense(512, .activation = HELIO_RELU), helio_dense(512, .activation = HELIO_RELU),
                           helio_dense(self->classes, .activation = HELIO_SOFTMAX)},
                          .input_shape = self->input);
}

helio_model *bench_model_make(const bench_model *self) {
  const recipe *r = recipe_named(self->name);
  return r ? r->make_model(r->name, &(sample_set){.words = self->words}) : make_mlp(self);
}

helio_optimizer *bench_model_optimizer(const bench_model *self) {
  const recipe *r = recipe_named(self->name);
  return helio_optimizer_named(r ? r->optimizer : "adam");
}

static const bench_model models[] = {
    {"mnist", 256, {3, {28, 28, 1}}, 0, 10},
    {"mlp", 128, {1, {784}}, 0, 10},
    {"reuters", 32, {1, {300}}, 30982, 46},
};

const bench_model *bench_model_of(const char *name) {
  for (size_t i = 0; name && i < sizeof models / sizeof models[0]; i++) {
    if (strcmp(models[i].name, name) == 0) return &models[i];
  }
  return &models[0];
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Data
 */

static void *take_memory(size_t count) {
  void *memory = malloc(count * sizeof(int32_t));
  if (!memory) output_out_of_memory();
  return memory;
}

static helio_array *make_numbers(const helio_shape *shape, size_t count) {
  uint64_t state = 1;
  float *numbers = take_memory(count);
  for (size_t i = 0; i < count; i++) numbers[i] = (float)(bench_draw(&state) >> 8) * 0x1p-24f;
  helio_array *array = helio_array_of(numbers, *shape, .type = HELIO_FLOAT32);
  free(numbers);
  return array;
}

static helio_array *make_whole_numbers(const helio_shape *shape, size_t count, int below) {
  uint64_t state = 2;
  int32_t *numbers = take_memory(count);
  for (size_t i = 0; i < count; i++) numbers[i] = (int32_t)(bench_draw(&state) % (uint32_t)below);
  helio_array *array = helio_array_of(numbers, *shape, .type = HELIO_INT32);
  free(numbers);
  return array;
}

bool bench_make_up(const bench_model *self, int64_t count, helio_samples *samples) {
  helio_shape shape = {.rank = self->input.rank + 1, .extent = {count}};
  size_t elements = (size_t)count;
  for (int i = 0; i < self->input.rank; i++) {
    shape.extent[i + 1] = self->input.extent[i];
    elements *= (size_t)self->input.extent[i];
  }
  samples->x = self->words ? make_whole_numbers(&shape, elements, self->words) : make_numbers(&shape, elements);
  samples->y = make_whole_numbers(&HELIO_SHAPE(count), (size_t)count, self->classes);
  return samples->x && samples->y;
}
