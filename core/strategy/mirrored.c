/* SPDX-License-Identifier: Apache-2.0 */
/* What replicas do together: meet, sum and broadcast. Before each call of a collective they meet and compare what they
 * brought, so that a replica that failed on its way, or computes something else, is an error of all and not a wait. */
#include "device/copy.h"
#include "device/doubt.h"
#include "ops/options.h"
#include "ops/tape.h"
#include "runtime/error.h"
#include "runtime/progress.h"
#include "strategy/compare.h"
#include "strategy/strategy.h"
#include "tensor/tensor.h"

static helio_status meet(hi_replicas *replicas, hi_merge function, void *mine) {
  return hi_team_meet(((helio_strategy *)replicas)->team, hi_replica_of(replicas), function, mine);
}

/* Where calls of the collective do not wait for other ranks the stream may: the collective has a deadline for that. */
static helio_status wait_for_step(const helio_strategy *strategy, hi_device *device) {
  bool waits = strategy->collective.flags & HELIO_COLLECTIVE_ASYNCHRONOUS;
  hi_activity before = waits ? hi_progress_change(HI_WAITS) : HI_WORKS;
  helio_status status = hi_copy_settle(device);
  if (waits) hi_progress_change(before);
  return status;
}

helio_status hi_strategy_settle(helio_strategy *strategy, int replica) {
  hi_device *device = strategy->replicas.devices[replica];
  if (strategy->on_failure != HELIO_DROP && !device->synchronous) return HELIO_OK; /* hi_strategy_judge() */
  helio_status status = wait_for_step(strategy, device);
  if (status) return status;
  if (atomic_load(&device->loss)) { /* a thread that reads ahead has seen it fail */
    return hi_fail(HELIO_DEVICE_FAILURE, "%s failed outside of the step", device->name);
  }
  return HELIO_OK;
}

helio_status hi_strategy_judge(helio_strategy *strategy) {
  helio_status status = HELIO_OK;
  if (!strategy->team || strategy->on_failure == HELIO_DROP) return HELIO_OK;
  for (int i = 0; i < strategy->replicas.count && !status; i++) {
    hi_device *device = strategy->replicas.devices[i];
    if (hi_device_lost(device)) continue;
    status = hi_copy_settle(device);
    if (!status) status = hi_doubt_ask(device);
  }
  return status;
}

/* This replica's sums are there and well, or, where nobody has waited for them, nothing else is known yet. */
static helio_status see_sums(helio_strategy *strategy, int replica) {
  helio_status status = hi_strategy_settle(strategy, replica);
  return status ? status : hi_communicator_poll(strategy->communicators[replica]);
}

static helio_status commit(hi_replicas *replicas, hi_merge function, void *mine) {
  helio_strategy *strategy = (helio_strategy *)replicas;
  helio_status status = helio_error_pending();
  if (!status) status = see_sums(strategy, hi_replica_of(replicas));
  if (!status) status = meet(replicas, function, mine);
  if (status) return status;
  atomic_store(&strategy->committed, true);
  if (strategy->on_failure != HELIO_DROP) hi_communicator_doubt(strategy->communicators[hi_replica_of(replicas)]);
  return HELIO_OK;
}

static helio_status check_alike(void *const *brought, int count) {
  const helio_tensor *first = brought[0];
  char a[HI_SHAPE_TEXT], b[HI_SHAPE_TEXT];
  for (int i = 1; i < count; i++) {
    const helio_tensor *other = brought[i];
    if (other->type == first->type && hi_shape_equal(&other->shape, &first->shape)) continue;
    return hi_fail(HELIO_INVALID_ARGUMENT,
                   "replica 0 has %s %s and replica %d %s %s: they cannot be joined element by "
                   "element",
                   helio_type_name(first->type), hi_shape_text(&first->shape, a), i, helio_type_name(other->type),
                   hi_shape_text(&other->shape, b));
  }
  return HELIO_OK;
}

typedef helio_status exchange(hi_communicator *communicator, const hi_exchange *exchange);

/* Calls the collective for one tensor. Its device's stream orders everything. */
static helio_tensor *join(hi_replicas *replicas, helio_tensor *tensor, exchange *call) {
  helio_strategy *strategy = (helio_strategy *)replicas;
  int replica = hi_replica_of(replicas);
  tensor = hi_tensor_on(tensor, replicas->devices[replica]);
  helio_tensor *result =
      tensor ? hi_tensor_new(tensor->device, tensor->type, &tensor->shape, "a sum of replicas") : NULL;
  if (!result || meet(replicas, check_alike, tensor)) return NULL;
  hi_exchange e = {.stream = HI_STREAM_COMPUTE,
                   .source = hi_tensor_place(tensor),
                   .target = hi_tensor_place(result),
                   .type = tensor->type,
                   .count = (size_t)tensor->elements};
  if (!call(strategy->communicators[replica], &e)) return result;
  hi_strategy_break(strategy);
  return NULL;
}

static helio_tensor *sum(hi_replicas *replicas, helio_tensor *tensor) {
  return tensor ? join(replicas, tensor, hi_communicator_all_reduce) : NULL;
}

static helio_tensor *broadcast(hi_replicas *replicas, helio_tensor *tensor) {
  return tensor ? join(replicas, tensor, hi_communicator_broadcast) : NULL;
}

const hi_replica_services hi_mirrored_services = {
    .meet = meet,
    .commit = commit,
    .compare = hi_compare_written,
    .sum = sum,
    .broadcast = broadcast,
    .sums_begin = hi_sums_begin,
    .sums_ready = hi_sums_ready,
    .sums_end = hi_sums_end,
};
