/* SPDX-License-Identifier: Apache-2.0 */
#include "train/input.h"

#include <math.h>

#include "data/array.h"
#include "data/dataset.h"
#include "runtime/error.h"

enum { MOST_ARRAYS = 3 };

static helio_status take_tensor(helio_tensor *tensor, const char *name, helio_array **array) {
  if (!tensor) return HELIO_OK;
  if (*array) return hi_fail(HELIO_INVALID_ARGUMENT, "%s is given as an array and as a tensor", name);
  *array = helio_tensor_array(tensor);
  return *array ? HELIO_OK : helio_error_pending();
}

static int list_arrays(const hi_samples *samples, helio_array *list[MOST_ARRAYS]) {
  int count = 0;
  list[count++] = samples->x;
  if (samples->y) list[count++] = samples->y;
  if (samples->weights) list[count++] = samples->weights;
  return count;
}

static int64_t rows_of(const helio_array *array) {
  return array->shape.rank > 0 ? array->shape.extent[0] : 0;
}

static helio_status check_rows(const hi_samples *samples) {
  helio_array *arrays[MOST_ARRAYS];
  int count = list_arrays(samples, arrays);
  for (int i = 0; i < count; i++) {
    if (rows_of(arrays[0]) == 0) return hi_fail(HELIO_INVALID_ARGUMENT, "there are no samples: x is empty");
    if (rows_of(arrays[i]) == rows_of(arrays[0])) continue;
    char text[HI_SHAPE_TEXT];
    return hi_fail(HELIO_INVALID_ARGUMENT, "Data cardinality is ambiguous: x has %lld samples, another array is %s",
                   (long long)rows_of(arrays[0]), hi_shape_text(&arrays[i]->shape, text));
  }
  return HELIO_OK;
}

static helio_status refuse_batch_size(const hi_samples *samples, const char *what) {
  if (!samples->batch_size) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT,
                 "%s: a dataset has batches of its own (helio_dataset_batch()), a batch size is for arrays", what);
}

bool hi_samples_read(hi_samples *samples, const char *what, bool labelled) {
  if (take_tensor(samples->x_tensor, "x", &samples->x) || take_tensor(samples->y_tensor, "y", &samples->y))
    return false;
  bool arrays = samples->x || samples->y || samples->weights;
  if (samples->dataset && arrays) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%s: a dataset is given, and arrays", what);
  } else if (samples->dataset) {
    return hi_dataset_usable(samples->dataset) && !refuse_batch_size(samples, what);
  } else if (!samples->x) {
    hi_fail(HELIO_INVALID_ARGUMENT,
            arrays ? "%s: labels or weights are given without x" : "%s: neither a dataset nor x is given", what);
  } else if (labelled && !samples->y) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%s: x is given without labels, y", what);
  } else if (samples->batch_size < 0) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%s: the batch size is %lld", what, (long long)samples->batch_size);
  } else {
    return !check_rows(samples);
  }
  return false;
}

static helio_status cut(helio_array **array, int64_t first, helio_array **rest) {
  if (!*array) return HELIO_OK;
  *rest = helio_array_part(*array, first, -1);
  if (*rest) *array = helio_array_part(*array, 0, first);
  return *rest && *array ? HELIO_OK : helio_error_pending();
}

bool hi_samples_given(const hi_samples *samples) {
  return samples->dataset || samples->x || samples->y || samples->weights || samples->x_tensor || samples->y_tensor;
}

helio_status hi_samples_split(hi_samples *samples, double fraction, hi_samples *validation) {
  if (hi_samples_given(validation)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "validation data are given, and validation_split");
  }
  if (samples->dataset) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "validation_split is only for arrays: helio_dataset_take() and "
                                           "helio_dataset_skip() cut a dataset");
  }
  if (!(fraction > 0 && fraction < 1)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "validation_split is %g; it must be between 0 and 1", fraction);
  }
  int64_t rows = rows_of(samples->x), first = (int64_t)floor((double)rows * (1 - fraction));
  if (first == 0 || first == rows) {
    return hi_fail(HELIO_INVALID_ARGUMENT,
                   "Training data contains %lld samples, which is not sufficient to split it into a validation and "
                   "training set as specified by `validation_split=%g`. Either provide more data, or a different value "
                   "for the `validation_split` argument.",
                   (long long)rows, fraction);
  }
  helio_status status = cut(&samples->x, first, &validation->x);
  if (!status) status = cut(&samples->y, first, &validation->y);
  return status ? status : cut(&samples->weights, first, &validation->weights);
}

static helio_dataset *batches_of(const hi_samples *samples) {
  helio_array *arrays[MOST_ARRAYS];
  if (samples->dataset) return samples->dataset;
  int count = list_arrays(samples, arrays);
  helio_dataset *dataset = helio_dataset_of_slices(arrays, count);
  if (dataset && samples->shuffle) {
    dataset = helio_dataset_shuffle(dataset, .buffer = rows_of(samples->x), .seed = (int64_t)samples->shuffle);
  }
  return dataset ? helio_dataset_batch(dataset, samples->batch_size ? samples->batch_size : 32) : NULL;
}

helio_distributed *hi_samples_distribute(const hi_samples *samples, helio_strategy *strategy) {
  helio_dataset *dataset = batches_of(samples);
  return dataset ? helio_distribute(strategy, dataset) : NULL;
}

helio_values *hi_samples_values(const hi_samples *samples, helio_strategy *strategy) {
  helio_array *arrays[MOST_ARRAYS];
  int count = list_arrays(samples, arrays);
  hi_item *batch = hi_item_new(count);
  if (!batch) return NULL;
  for (int i = 0; i < count; i++) hi_part_set_array(&batch->part[i], arrays[i]);
  helio_values *values = hi_values_cut(strategy, HELIO_SPLIT_BALANCED, batch);
  hi_drop(batch);
  return values;
}
