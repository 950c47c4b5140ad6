/* SPDX-License-Identifier: Apache-2.0 */
#include "strategy/compare.h"

#include <stdio.h>
#include <stdlib.h>

#include "device/copy.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

typedef struct hashes {
  int count;
  const hi_gradient *sums;
  uint64_t of[];
} hashes;

/* FNV-1a */
static uint64_t hash_bytes(const unsigned char *bytes, size_t count, uint64_t hash) {
  for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 0x100000001B3u;
  return hash;
}

static helio_status hash_tensor(const helio_tensor *tensor, uint64_t *hash) {
  if (!tensor) return HELIO_OK;
  size_t bytes = hi_tensor_bytes(tensor);
  unsigned char *host = malloc(bytes ? bytes : 1);
  if (!host) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory to compare replicas");
  helio_status status = hi_copy_out(tensor->device, host, hi_tensor_place(tensor), bytes);
  if (!status) *hash = hash_bytes(host, bytes, *hash);
  free(host);
  return status;
}

/* The replicas that have what most have, as a number of those; the first such hash. */
static uint64_t most_common(void *const *brought, int replicas, int index, int *agreeing) {
  uint64_t common = 0;
  *agreeing = 0;
  for (int i = 0; i < replicas; i++) {
    int same = 0;
    uint64_t hash = ((const hashes *)brought[i])->of[index];
    for (int j = 0; j < replicas; j++) same += ((const hashes *)brought[j])->of[index] == hash;
    if (same <= *agreeing) continue;
    *agreeing = same;
    common = hash;
  }
  return common;
}

static helio_status differs(void *const *brought, int replicas, int index, uint64_t common, int agreeing) {
  char names[200] = "", shape[HI_SHAPE_TEXT];
  size_t length = 0;
  const hi_gradient *sum = &((const hashes *)brought[0])->sums[index];
  for (int i = 0; i < replicas && length < sizeof names; i++) {
    bool other = ((const hashes *)brought[i])->of[index] != common;
    if (other) length += (size_t)snprintf(names + length, sizeof names - length, "%s%d", length ? ", " : "", i);
  }
  return hi_fail(
      HELIO_BAD_DATA,
      "HELIO_CHECK_REPLICAS: the sum of gradient %d, %s, is not the same on all replicas: %s %s from what %d of "
      "%d have; its device, or the collective, computes wrongly",
      index, hi_shape_text(&sum->shape, shape), names, length > 1 ? "differ" : "differs", agreeing, replicas);
}

static helio_status compare(void *const *brought, int replicas) {
  for (int i = 0; i < ((const hashes *)brought[0])->count; i++) {
    int agreeing;
    uint64_t common = most_common(brought, replicas, i, &agreeing);
    if (agreeing < replicas) return differs(brought, replicas, i, common, agreeing);
  }
  return HELIO_OK;
}

helio_status hi_compare_sums(helio_strategy *strategy, const hi_gradient *sums, int count) {
  hashes *own = calloc(1, sizeof *own + (size_t)count * sizeof own->of[0]);
  if (!own) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory to compare replicas");
  own->count = count;
  own->sums = sums;
  helio_status status = HELIO_OK;
  for (int i = 0; i < count && !status; i++) {
    own->of[i] = 0xCBF29CE484222325u;
    status = hash_tensor(sums[i].values, &own->of[i]);
    if (!status) status = hash_tensor(sums[i].indices, &own->of[i]);
  }
  if (!status) status = strategy->replicas.services->meet(&strategy->replicas, compare, own);
  free(own);
  return status;
}
