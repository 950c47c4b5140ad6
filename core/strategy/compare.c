/* SPDX-License-Identifier: Apache-2.0 */
#include "strategy/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/copy.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

/* What is looked at of one tensor. */
typedef struct trait {
  const helio_tensor *tensor; /* NULL: the replica has none */
  uint64_t hash;
  bool finite; /* what the replica had before the sum */
} trait;

/* One replica's. */
typedef struct report {
  const char *what;         /* they are */
  const char *const *names; /* of each; NULL: they have numbers */
  int count;
  trait traits[];
} report;

/* ---- looking ---- */

/* FNV-1a */
static uint64_t hash_bytes(const unsigned char *bytes, size_t count) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 0x100000001B3u;
  return hash;
}

static bool all_finite(const void *numbers, helio_type type, int64_t count) {
  bool finite = true;
  for (int64_t i = 0; i < count && finite; i++) {
    if (type == HELIO_FLOAT32) finite = isfinite(((const float *)numbers)[i]);
    if (type == HELIO_FLOAT64) finite = isfinite(((const double *)numbers)[i]);
  }
  return finite;
}

static helio_status look(const helio_tensor *tensor, uint64_t *hash, bool *finite) {
  size_t bytes = hi_tensor_bytes(tensor);
  void *host = malloc(bytes ? bytes : 1);
  if (!host) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory to compare replicas");
  helio_status status = hi_copy_out(tensor->device, host, hi_tensor_place(tensor), bytes);
  if (!status && hash) *hash = hash_bytes(host, bytes);
  if (!status && finite) *finite = all_finite(host, tensor->type, tensor->elements);
  free(host);
  return status;
}

static report *new_report(const char *what, const char *const *names, int count) {
  report *r = calloc(1, sizeof *r + (size_t)count * sizeof r->traits[0]);
  if (!r) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory to compare replicas");
    return NULL;
  }
  r->what = what;
  r->names = names;
  r->count = count;
  for (int i = 0; i < count; i++) r->traits[i].finite = true;
  return r;
}

static helio_status take_tensor(report *r, int index, const helio_tensor *tensor) {
  r->traits[index].tensor = tensor;
  return tensor ? look(tensor, &r->traits[index].hash, NULL) : HELIO_OK;
}

/* ---- comparing: once for all, where they meet ---- */

static const trait *trait_of(void *const *brought, int replica, int index) {
  return &((const report *)brought[replica])->traits[index];
}

/* The hash that more than half of the replicas have; NULL: there is none. */
static const uint64_t *majority(void *const *brought, int replicas, int index) {
  for (int i = 0; i < replicas; i++) {
    int same = 0;
    const uint64_t *hash = &trait_of(brought, i, index)->hash;
    for (int j = 0; j < replicas; j++) same += trait_of(brought, j, index)->hash == *hash;
    if (2 * same > replicas) return hash;
  }
  return NULL;
}

typedef bool is_odd(const trait *t, const uint64_t *common);

static bool is_not_finite(const trait *t, const uint64_t *unused) {
  (void)unused;
  return !t->finite;
}

/* Where no hash is that of most, who could say which is right? */
static bool differs(const trait *t, const uint64_t *common) {
  return !common || t->hash != *common;
}

/* "replica 1 (/job:…/device:GPU:1), …" of those that are odd, and how many. */
static int name_odd(void *const *brought, int replicas, int index, is_odd *asked, const uint64_t *common, char *text,
                    size_t size) {
  int count = 0;
  size_t length = 0;
  for (int i = 0; i < replicas; i++) {
    const trait *t = trait_of(brought, i, index);
    bool odd = asked(t, common);
    count += odd;
    if (!odd || length >= size) continue;
    length += (size_t)snprintf(text + length, size - length, "%sreplica %d (%s)", length ? ", " : "", i,
                               t->tensor ? t->tensor->device->name : "");
  }
  return count;
}

static helio_status compare_one(void *const *brought, int replicas, int index) {
  const report *first = brought[0];
  const helio_tensor *tensor = first->traits[index].tensor;
  char names[500], shape[HI_SHAPE_TEXT] = "", number[16];
  snprintf(number, sizeof number, "%d", index);
  const char *which = first->names ? first->names[index] : number;
  const uint64_t *common = majority(brought, replicas, index);
  if (tensor) hi_shape_text(&tensor->shape, shape);
  int odd = name_odd(brought, replicas, index, is_not_finite, NULL, names, sizeof names);
  if (odd > 0 && odd < replicas) {
    return hi_fail(HELIO_BAD_DATA, "HELIO_CHECK_REPLICAS: to %s %s, %s, a number that is not finite came from %s alone",
                   first->what, which, shape, names);
  }
  if (name_odd(brought, replicas, index, differs, common, names, sizeof names) == 0) return HELIO_OK;
  return hi_fail(
      HELIO_BAD_DATA,
      "HELIO_CHECK_REPLICAS: %s %s, %s, should be the same on all replicas but %s %s: %s, or the collective, "
      "computes wrongly",
      first->what, which, shape, common ? "is not on" : "differs between", names,
      common ? "that device" : "one of these devices");
}

static helio_status compare(void *const *brought, int replicas) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < ((const report *)brought[0])->count && !status; i++) status = compare_one(brought, replicas, i);
  return status;
}

helio_status hi_compare_sums(helio_strategy *strategy, const hi_gradient *own, const hi_gradient *sums, int count) {
  report *r = new_report("the sum of gradient", NULL, count);
  helio_status status = r ? HELIO_OK : helio_error_pending();
  for (int i = 0; i < count && !status; i++) {
    status = take_tensor(r, i, sums[i].values);
    if (!status && own[i].values) status = look(own[i].values, NULL, &r->traits[i].finite);
    uint64_t rows = 0;
    if (!status && sums[i].indices) status = look(sums[i].indices, &rows, NULL);
    r->traits[i].hash ^= rows;
  }
  if (!status) status = strategy->replicas.services->meet(&strategy->replicas, compare, r);
  free(r);
  return status;
}

helio_status hi_compare_written(hi_replicas *replicas, helio_tensor *const *tensors, const char *const *names,
                                int count) {
  report *r = new_report("what a step wrote to", names, count);
  helio_status status = r ? HELIO_OK : helio_error_pending();
  for (int i = 0; i < count && !status; i++) status = take_tensor(r, i, tensors[i]);
  if (!status) status = replicas->services->meet(replicas, compare, r);
  free(r);
  return status;
}
