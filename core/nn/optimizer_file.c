/* SPDX-License-Identifier: Apache-2.0 */
/* An optimizer's slots and numbers in a safetensors file, under Keras' names: "adam/iteration", "adam/learning_rate"
 * (unless there is a schedule), "adam/dense_kernel_momentum". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/safetensors.h"
#include "nn/optimizer.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

/* ---- the numbers ---- */

enum { MOST_NUMBERS = 3, NUMBER_NAME = 300 };

typedef struct number {
  char name[NUMBER_NAME];
  helio_type type;
  void *value;
} number;

static number number_named(const helio_optimizer *optimizer, const char *name, helio_type type, void *value) {
  number result = {.type = type, .value = value};
  snprintf(result.name, sizeof result.name, "%.200s/%s", optimizer->name, name);
  return result;
}

/* What the file has of `from`. */
static int list_numbers(const helio_optimizer *optimizer, hi_optimizer_numbers *from, number list[MOST_NUMBERS]) {
  int count = 0;
  list[count++] = number_named(optimizer, "iteration", HELIO_INT64, &from->calls);
  if (!optimizer->schedule) {
    list[count++] = number_named(optimizer, "learning_rate", HELIO_FLOAT64, &from->learning_rate);
  }
  if (optimizer->kind->momentum_product) {
    list[count++] = number_named(optimizer, "u_product", HELIO_FLOAT64, &from->momentum_product);
  }
  return count;
}

static helio_status check_numbers(const char *path, const hi_optimizer_numbers *numbers) {
  if (numbers->calls < 0) return hi_fail(HELIO_BAD_DATA, "%s: the iteration is negative", path);
  if (!isfinite(numbers->learning_rate) || numbers->learning_rate < 0) {
    return hi_fail(HELIO_BAD_DATA, "%s: the learning_rate is %g", path, numbers->learning_rate);
  }
  if (numbers->momentum_product >= 0 && numbers->momentum_product <= 1) return HELIO_OK;
  return hi_fail(HELIO_BAD_DATA, "%s: the u_product is %g", path, numbers->momentum_product);
}

/* ---- saving ---- */

static helio_status check(const helio_optimizer *optimizer) {
  if (!optimizer) return hi_fail(HELIO_INVALID_ARGUMENT, "the optimizer is NULL");
  if (!atomic_load(&optimizer->ready)) {
    return hi_fail(HELIO_WRONG_STATE,
                   "%s does not know its variables yet: call helio_optimizer_build(), or let it take a step",
                   optimizer->name);
  }
  for (int i = 0; i < optimizer->listed.count; i++) {
    if (!hi_variable_usable(optimizer->listed.at[i])) return helio_error_pending();
  }
  return HELIO_OK;
}

helio_status helio_save_optimizer(helio_optimizer *optimizer, const char *path) {
  number numbers[MOST_NUMBERS];
  helio_status status = hi_enter(__func__);
  if (!status) status = check(optimizer);
  hi_safetensors_writer *writer = status ? NULL : hi_safetensors_begin(path);
  if (!writer) return helio_error_pending();
  int count = list_numbers(optimizer, &optimizer->numbers, numbers);
  for (int i = 0; i < count && !status; i++) {
    status = hi_safetensors_add(writer, numbers[i].name, numbers[i].type, &HELIO_SCALAR, numbers[i].value);
  }
  for (int i = 0; i < optimizer->listed.count && !status; i++) {
    const helio_variable *slot = optimizer->listed.at[i];
    status = hi_safetensors_add_tensor(writer, slot->name, hi_variable_tensor(slot));
  }
  if (!status) return hi_safetensors_finish(writer);
  hi_safetensors_abandon(writer);
  return status;
}

/* ---- loading ---- */

/* What was read and is not in use yet. */
typedef struct staged {
  const char *path;
  const helio_optimizer *optimizer;
  hi_safetensors *file;
  hi_optimizer_numbers numbers;
  void **slots; /* in the order of the list */
} staged;

/* The tensor of that name, of this type and shape; NULL with the error set. */
static const hi_safetensors_entry *find(const staged *s, const char *name, helio_type type, const helio_shape *shape) {
  const hi_safetensors_entry *entry = hi_safetensors_find(s->file, name);
  if (!entry) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%s: %s is missing", s->path, name);
  } else if (entry->type != type || !hi_shape_equal(&entry->shape, shape)) {
    char a[HI_SHAPE_TEXT], b[HI_SHAPE_TEXT];
    hi_fail(HELIO_INVALID_ARGUMENT, "%s: %s is %s %s; the optimizer's is %s %s", s->path, name,
            helio_type_name(entry->type), hi_shape_text(&entry->shape, a), helio_type_name(type),
            hi_shape_text(shape, b));
    entry = NULL;
  }
  return entry;
}

static helio_status stage_numbers(staged *s, number list[MOST_NUMBERS], int count) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < count && !status; i++) {
    const hi_safetensors_entry *entry = find(s, list[i].name, list[i].type, &HELIO_SCALAR);
    status = entry ? hi_safetensors_read(s->file, entry, list[i].value) : helio_error_pending();
  }
  return status ? status : check_numbers(s->path, &s->numbers);
}

static helio_status stage_slot(staged *s, int index) {
  const helio_variable *slot = s->optimizer->listed.at[index];
  const helio_tensor *own = hi_variable_tensor(slot);
  const hi_safetensors_entry *entry = find(s, slot->name, own->type, &own->shape);
  if (!entry) return helio_error_pending();
  s->slots[index] = malloc(entry->bytes + 1);
  if (s->slots[index]) return hi_safetensors_read(s->file, entry, s->slots[index]);
  return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for %s", s->path, slot->name);
}

static bool is_ours(const helio_optimizer *optimizer, const number *numbers, int count, const char *name) {
  for (int i = 0; i < count; i++) {
    if (!strcmp(numbers[i].name, name)) return true;
  }
  for (int i = 0; i < optimizer->listed.count; i++) {
    if (!strcmp(optimizer->listed.at[i]->name, name)) return true;
  }
  return false;
}

/* All of the optimizer's are there: is anything else? */
static helio_status refuse_others(const staged *s, const number *numbers, int count) {
  int tensors = hi_safetensors_count(s->file);
  for (int i = 0; i < tensors && tensors > count + s->optimizer->listed.count; i++) {
    const char *name = hi_safetensors_at(s->file, i)->name;
    if (is_ours(s->optimizer, numbers, count, name)) continue;
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: %s is none of %s's", s->path, name, s->optimizer->name);
  }
  return HELIO_OK;
}

static helio_status stage(staged *s) {
  number numbers[MOST_NUMBERS];
  int count = list_numbers(s->optimizer, &s->numbers, numbers);
  s->slots = calloc((size_t)s->optimizer->listed.count + 1, sizeof *s->slots);
  if (!s->slots) return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for a list of its tensors", s->path);
  helio_status status = stage_numbers(s, numbers, count);
  for (int i = 0; i < s->optimizer->listed.count && !status; i++) status = stage_slot(s, i);
  return status ? status : refuse_others(s, numbers, count);
}

/* Everything was read and checked: only a device can fail now. */
static helio_status commit(helio_optimizer *optimizer, const staged *s) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < optimizer->listed.count && !status; i++) {
    status = hi_variable_write(optimizer->listed.at[i], s->slots[i]);
  }
  if (!status) optimizer->numbers = s->numbers;
  return status;
}

helio_status helio_load_optimizer(helio_optimizer *optimizer, const char *path) {
  helio_status status = hi_enter(__func__);
  if (!status) status = check(optimizer);
  if (status) return status;
  staged s = {
      .path = path, .optimizer = optimizer, .file = hi_safetensors_open_verified(path), .numbers = optimizer->numbers};
  status = s.file ? stage(&s) : helio_error_pending();
  if (!status) status = commit(optimizer, &s);
  for (int i = 0; s.slots && i < optimizer->listed.count; i++) free(s.slots[i]);
  free(s.slots);
  hi_safetensors_close(s.file);
  return status;
}
