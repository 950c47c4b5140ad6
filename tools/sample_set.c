/* SPDX-License-Identifier: Apache-2.0 */
#include "sample_set.h"

#include <stdlib.h>
#include <string.h>

#include "command.h"

int64_t sample_set_count(const helio_array *samples) {
  return samples ? helio_array_shape(samples).extent[0] : 0;
}

static bool is_bytes(const helio_array *samples) {
  return samples && helio_array_type(samples) == HELIO_UINT8;
}

bool sample_set_has_bytes(const sample_set *set) {
  return is_bytes(set->x) || is_bytes(set->test_x);
}

/* ---- batches ---- */

static helio_status prepare(void *argument, helio_element *batch) {
  const sample_set *set = argument;
  helio_tensor *x = batch->part[0];
  bool scaled = set->divisor != 0 && helio_tensor_type(x) == HELIO_UINT8;
  if (set->type) x = helio_cast(x, set->type);
  if (scaled) x = helio_div(x, helio_fill(HELIO_SCALAR, set->divisor, .type = helio_tensor_type(x)));
  batch->part[0] = x;
  return helio_error_pending();
}

helio_dataset *sample_set_batches(sample_set *set, helio_array *x, helio_array *y, int64_t batch, int64_t buffer) {
  bool prepared = (set->type && helio_array_type(x) != set->type) || (set->divisor != 0 && is_bytes(x));
  helio_dataset *dataset = helio_dataset_of_slices((helio_array *const[]){x, y}, y ? 2 : 1);
  if (buffer > 0) dataset = helio_dataset_shuffle(dataset, buffer);
  dataset = helio_dataset_batch(dataset, batch);
  return prepared ? helio_dataset_map(dataset, prepare, set) : dataset;
}

/* ---- the model's shape ---- */

static int64_t elements_of(const helio_shape *shape, int first) {
  int64_t elements = 1;
  for (int i = first; i < shape->rank; i++) elements *= shape->extent[i];
  return elements;
}

/* Are samples of this shape what the model takes as they are? An extent of −1 takes any. */
static bool fits(const helio_shape *samples, const helio_shape *wanted) {
  bool fit = samples->rank == wanted->rank + 1;
  for (int i = 0; fit && i < wanted->rank; i++) {
    fit = wanted->extent[i] < 0 || wanted->extent[i] == samples->extent[i + 1];
  }
  return fit;
}

static int refuse_shape(const helio_shape *samples, const helio_shape *wanted, const char *path) {
  helio_shape one = {.rank = samples->rank - 1};
  for (int i = 0; i < one.rank; i++) one.extent[i] = samples->extent[i + 1];
  char *has = helio_shape_text(one), *takes = helio_shape_text(*wanted);
  int status = command_failure(path,
                               "a sample of the data has the shape %s, the model takes %s: use the data that it "
                               "was made for, or another model",
                               has ? has : "?", takes ? takes : "?");
  free(has);
  free(takes);
  return status;
}

static int suit(helio_array **x, const helio_model *model, const char *path) {
  helio_shape wanted = helio_model_input_shape(model, 0);
  if (!*x) return EXIT_SUCCESS;
  if (helio_array_elements(*x) == 0) return command_failure(path, "the data have no samples");
  helio_shape has = helio_array_shape(*x), shape = {.rank = wanted.rank + 1, .extent = {has.extent[0]}};
  if (wanted.rank == 0 || fits(&has, &wanted)) return EXIT_SUCCESS;
  bool same = has.rank > 0 && elements_of(&has, 1) == elements_of(&wanted, 0);
  for (int i = 0; i < wanted.rank; i++) {
    shape.extent[i + 1] = wanted.extent[i];
    same = same && wanted.extent[i] >= 0;
  }
  if (!same) return refuse_shape(&has, &wanted, path);
  *x = helio_array_reshape(*x, shape);
  return *x ? EXIT_SUCCESS : command_library_failure(path);
}

/* A model that does not know its input yet takes what its first layer does. */
static helio_type input_type(const helio_model *model) {
  helio_type known = helio_model_input_type(model, 0);
  const helio_layer *first = helio_model_layer_count(model) > 0 ? helio_model_layer(model, 0) : NULL;
  if (known || !first) return known;
  return strcmp(helio_layer_class(first), "Embedding") == 0 ? HELIO_INT32 : HELIO_FLOAT32;
}

bool sample_set_model_rescales(const helio_model *model) {
  for (int i = 0; i < helio_model_layer_count(model); i++) {
    const char *class = helio_layer_class(helio_model_layer(model, i));
    if (strcmp(class, "InputLayer") != 0) return strcmp(class, "Rescaling") == 0;
  }
  return false;
}

int sample_set_suit(sample_set *set, const helio_model *model, const char *path) {
  if (helio_model_input_shape(model, 1).rank > 0) {
    return command_failure(path, "%s takes several inputs; this command gives one: write a program (helio_fit)",
                           helio_layer_name(model));
  }
  int status = suit(&set->x, model, path);
  if (status == EXIT_SUCCESS) status = suit(&set->test_x, model, path);
  set->type = input_type(model);
  /* Divided, whole numbers would all be 0 or 1. */
  if (sample_set_model_rescales(model) || helio_type_is_integer(set->type)) set->divisor = 0;
  return status;
}
