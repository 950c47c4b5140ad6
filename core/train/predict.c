/* SPDX-License-Identifier: Apache-2.0 */
/* A model's results for many samples. */
#include <stdlib.h>

#include "data/array.h"
#include "ops/options.h"
#include "runtime/error.h"
#include "tensor/pool.h"
#include "train/input.h"
#include "train/pass.h"

/* Results as they come, on the host. */
typedef struct results {
  char *data;
  size_t bytes, room; /* so far, at hand */
  helio_shape shape;  /* of all so far; rank 0: there were none */
  helio_type type;
} results;

static helio_status grow(results *r, size_t more) {
  if (r->room - r->bytes >= more) return HELIO_OK;
  size_t room = 2 * r->room > r->bytes + more ? 2 * r->room : r->bytes + more;
  char *data = realloc(r->data, room);
  if (!data) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the results of %zu bytes", room);
  r->data = data;
  r->room = room;
  return HELIO_OK;
}

static helio_status check_alike(results *r, const helio_tensor *part) {
  char a[HI_SHAPE_TEXT], b[HI_SHAPE_TEXT];
  if (part->shape.rank < 1)
    return hi_fail(HELIO_INVALID_ARGUMENT, "the model's result is a scalar, not one for each sample");
  if (r->shape.rank == 0) {
    r->shape = part->shape;
    r->shape.extent[0] = 0;
    r->type = part->type;
    return HELIO_OK;
  }
  helio_shape other = part->shape;
  other.extent[0] = r->shape.extent[0];
  if (part->type == r->type && hi_shape_equal(&other, &r->shape)) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "results of batches differ in shape: %s and %s cannot be joined",
                 hi_shape_text(&r->shape, a), hi_shape_text(&part->shape, b));
}

static helio_status take_part(results *r, const helio_tensor *part) {
  size_t bytes = hi_tensor_bytes(part);
  helio_status status = check_alike(r, part);
  if (!status) status = grow(r, bytes);
  if (!status) status = helio_tensor_read(part, r->data + r->bytes, bytes);
  if (status) return status;
  r->bytes += bytes;
  r->shape.extent[0] += part->shape.extent[0];
  return HELIO_OK;
}

/* In the order of replicas, which is that of samples. All of a batch or nothing: it may be read again. */
static helio_status take_results(void *user, const helio_values *outputs) {
  results *r = user;
  size_t bytes = r->bytes;
  helio_shape shape = r->shape;
  helio_status status = HELIO_OK;
  for (int i = 0; i < outputs->count && !status; i++) status = take_part(r, outputs->tensors[i]);
  if (!status) return HELIO_OK;
  r->bytes = bytes;
  r->shape = shape;
  return status;
}

static helio_status predict(const helio_predict_options *o, results *r) {
  hi_pass pass = {0};
  hi_samples samples = {.dataset = o->dataset, .x = o->x, .x_tensor = o->x_tensor, .batch_size = o->batch_size};
  if (o->steps < 0) return hi_fail(HELIO_INVALID_ARGUMENT, "steps is %lld", (long long)o->steps);
  if (!hi_model_usable(o->model) || !hi_samples_read(&samples, "prediction", false)) return helio_error_pending();
  const hi_compiled *compiled = o->model->model->compiled;
  pass.strategy = compiled ? compiled->strategy : hi_model_strategy(o->model);
  if (!pass.strategy || !hi_strategy_usable(pass.strategy)) return helio_error_pending();
  pass.task =
      (hi_task){.model = o->model, .input_count = hi_model_inputs(o->model, compiled ? compiled->input_count : 0)};
  helio_distributed *batches = hi_samples_distribute(&samples, pass.strategy);
  helio_distributed_iterator *iterator = batches ? helio_iterate_distributed(batches) : NULL;
  if (!iterator || (!o->steps && hi_pass_steps(batches, "predicted for") < 0 && helio_error_pending())) {
    return helio_error_pending();
  }
  hi_walk walk = {.step = hi_predict_step, .batches = iterator, .most = o->steps, .read = take_results, .user = r};
  helio_status status = hi_pass_walk(&pass, &walk);
  if (!status && r->shape.rank == 0) status = hi_fail(HELIO_INVALID_ARGUMENT, "there are no samples to predict for");
  return status;
}

helio_array *helio_predict_with(const helio_predict_options *given) {
  helio_predict_options o;
  results r = {0};
  if (!hi_options_enter("helio_predict", &o, sizeof o, given)) return NULL;
  helio_scope pool = helio_pool_enter();
  helio_status status = predict(&o, &r);
  helio_array *array = status ? NULL : helio_array_of(r.data, r.shape, .type = r.type);
  free(r.data);
  hi_error_blame("helio_predict");
  return hi_pool_leave_with(&pool, array);
}
