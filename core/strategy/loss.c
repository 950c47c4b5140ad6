/* SPDX-License-Identifier: Apache-2.0 */
/* Losses of replicas, such that their sum is the loss of the whole batch. */
#include "nn/samples.h"
#include "ops/options.h"
#include "runtime/error.h"
#include "strategy/strategy.h"

static helio_status require_replica(const char *function, helio_replica *replica) {
  if (!helio_in_cross_replica_context()) return hi_require_replica(replica) ? HELIO_OK : helio_error_pending();
  return hi_fail(
      HELIO_WRONG_STATE,
      "You are calling `%s` in cross replica context, while it was expected to be called in replica context.",
      function);
}

/* What is given, what the replica knows of its batch or, as TensorFlow has it, what all have if they have as much. */
static int64_t global_size(const helio_average_loss_options *o, const helio_replica *replica) {
  if (o->global_batch_size == HELIO_INTEGER_ZERO) return 0;
  if (o->global_batch_size > 0) return o->global_batch_size;
  if (replica->global_rows >= 0) return replica->global_rows;
  return (o->losses->shape.rank ? o->losses->shape.extent[0] : 1) * replica->count;
}

helio_tensor *helio_compute_average_loss_with(const helio_average_loss_options *given) {
  helio_average_loss_options o;
  helio_replica replica;
  if (!hi_options_enter("helio_compute_average_loss", &o, sizeof o, given)) return NULL;
  if (require_replica("helio_compute_average_loss", &replica) || !hi_tensor_usable(o.losses, "the losses")) return NULL;
  if (o.global_batch_size < 0 && o.global_batch_size != HELIO_INTEGER_ZERO) {
    hi_fail(HELIO_INVALID_ARGUMENT, "global_batch_size must be non-negative, not %lld", (long long)o.global_batch_size);
    return NULL;
  }
  int64_t size = global_size(&o, &replica);
  helio_tensor *losses = hi_in_wide_float(o.losses), *weights = o.sample_weights;
  if (weights) weights = hi_match_ranks(&losses, &weights) ? NULL : hi_weights_for(weights, losses);
  if (!losses || (o.sample_weights && !weights)) return NULL;
  helio_tensor *sum = helio_sum(weights ? helio_mul(losses, weights) : losses);
  return size == 0 ? helio_mul(sum, hi_scalar_like(sum, 0)) : helio_div(sum, hi_scalar_like(sum, (double)size));
}

helio_tensor *helio_scale_regularization_loss(helio_tensor *loss) {
  helio_replica replica;
  if (hi_enter(__func__) || require_replica("helio_scale_regularization_loss", &replica)) return NULL;
  if (!hi_tensor_usable(loss, "the loss")) return NULL;
  helio_tensor *sum = helio_sum(loss);
  return helio_div(sum, hi_scalar_like(sum, replica.count));
}
