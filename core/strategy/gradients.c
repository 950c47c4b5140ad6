/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of gradients over replicas. What all replicas have is agreed on first; then dense gradients travel packed in
 * buckets, in the order of the list, and rows are gathered. */
#include <stdlib.h>
#include <string.h>

#include "device/copy.h"
#include "ops/tape.h"
#include "runtime/error.h"
#include "strategy/strategy.h"
#include "tensor/tensor.h"

/* ---- what the replicas have ---- */

typedef enum kind { NONE, DENSE, ROWS } kind;

typedef struct agreed {
  kind kind;
  helio_type type, index_type;
  helio_shape shape;                /* of the whole gradient */
  int64_t rows[HELIO_MAX_REPLICAS]; /* of each replica, where the gradient is rows */
} agreed;

/* Written when the replicas meet, read by all until they meet again. */
struct hi_gradient_plan {
  int count;
  agreed gradients[];
};

void hi_gradient_plan_free(struct hi_gradient_plan *plan) {
  free(plan);
}

typedef struct visit {
  helio_strategy *strategy;
  const hi_gradient *gradients;
  int count;
} visit;

/* Rows, if all that have the gradient have rows; the whole, if one has that. */
static helio_status add_replica(agreed *a, int replica, const hi_gradient *gradient) {
  char first[HI_SHAPE_TEXT], other[HI_SHAPE_TEXT];
  if (!gradient->values) return HELIO_OK;
  const helio_shape *shape = gradient->indices ? &gradient->shape : &gradient->values->shape;
  if (a->kind == NONE) {
    a->kind = gradient->indices ? ROWS : DENSE;
    a->type = gradient->values->type;
    a->shape = *shape;
  } else if (a->type != gradient->values->type || !hi_shape_equal(&a->shape, shape)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "a gradient is %s %s on replica %d and %s %s on another",
                   helio_type_name(gradient->values->type), hi_shape_text(shape, other), replica,
                   helio_type_name(a->type), hi_shape_text(&a->shape, first));
  }
  if (!gradient->indices) {
    a->kind = DENSE;
    return HELIO_OK;
  }
  a->index_type = a->index_type == HELIO_INT64 ? HELIO_INT64 : gradient->indices->type;
  a->rows[replica] = gradient->indices->elements;
  return HELIO_OK;
}

static helio_status agree(void *const *brought, int replicas) {
  const visit *first = brought[0];
  struct hi_gradient_plan *plan = first->strategy->plan;
  helio_status status = HELIO_OK;
  for (int i = 1; i < replicas; i++) {
    const visit *v = brought[i];
    if (v->count == first->count) continue;
    return hi_fail(HELIO_INVALID_ARGUMENT, "replica 0 has %d gradients and replica %d has %d", first->count, i,
                   v->count);
  }
  if (!plan || plan->count != first->count) {
    free(plan);
    plan = calloc(1, sizeof *plan + (size_t)first->count * sizeof plan->gradients[0]);
    first->strategy->plan = plan;
    if (!plan) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %d gradients", first->count);
    plan->count = first->count;
  }
  memset(plan->gradients, 0, (size_t)plan->count * sizeof plan->gradients[0]);
  for (int i = 0; i < plan->count; i++) {
    for (int j = 0; j < replicas && !status; j++) {
      status = add_replica(&plan->gradients[i], j, &((const visit *)brought[j])->gradients[i]);
    }
  }
  return status;
}

/* ---- buckets of dense gradients ---- */

/* One replica's work. */
typedef struct work {
  helio_strategy *strategy;
  const struct hi_gradient_plan *plan;
  hi_gradient *gradients;
  int replica;
  hi_device *device;
} work;

/* Gradients lie in a bucket at places that vector instructions like. */
enum { ALIGNMENT = 64 };

static size_t bytes_of(const agreed *a) {
  size_t bytes = 0;
  hi_shape_bytes(&a->shape, a->type, &bytes); /* a tensor of that shape exists */
  return bytes;
}

static size_t room_of(const agreed *a) {
  return (bytes_of(a) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static helio_status call_all_reduce(const work *w, helio_tensor *source, helio_tensor *target) {
  hi_exchange e = {.stream = HI_STREAM_COMPUTE,
                   .source = hi_tensor_place(source),
                   .target = hi_tensor_place(target),
                   .type = source->type,
                   .count = (size_t)source->elements};
  return hi_communicator_all_reduce(w->strategy->communicators[w->replica], &e);
}

/* The replica's own gradient as a whole, on its device; zeros where it has none. */
static helio_tensor *own_gradient(const work *w, int index) {
  const hi_gradient *gradient = &w->gradients[index];
  const agreed *a = &w->plan->gradients[index];
  if (!gradient->values) return helio_fill(a->shape, 0, .type = a->type);
  helio_tensor *whole = hi_gradient_dense(gradient);
  return whole ? hi_tensor_on(whole, w->device) : NULL;
}

/* A gradient that fills a bucket by itself needs no packing. */
static helio_status sum_alone(const work *w, int index) {
  helio_tensor *own = own_gradient(w, index);
  helio_tensor *sum = own ? hi_tensor_new(w->device, own->type, &own->shape, "a gradient") : NULL;
  if (!sum || call_all_reduce(w, own, sum)) return helio_error_pending();
  w->gradients[index] = (hi_gradient){.values = sum, .shape = own->shape};
  return HELIO_OK;
}

static bool is_in_bucket(const work *w, int index, helio_type type) {
  return w->plan->gradients[index].kind == DENSE && w->plan->gradients[index].type == type;
}

static helio_status pack(const work *w, helio_tensor *bucket, int first, int last) {
  size_t offset = 0;
  for (int i = first; i <= last; i++) {
    if (!is_in_bucket(w, i, bucket->type)) continue;
    helio_tensor *own = own_gradient(w, i);
    if (!own) return helio_error_pending();
    helio_place place = hi_tensor_place(bucket);
    place.offset += offset;
    helio_status status = hi_copy(w->device, place, w->device, hi_tensor_place(own), hi_tensor_bytes(own));
    if (status) return status;
    offset += room_of(&w->plan->gradients[i]);
  }
  return HELIO_OK;
}

static helio_status unpack(const work *w, helio_tensor *bucket, int first, int last) {
  size_t offset = 0;
  for (int i = first; i <= last; i++) {
    const agreed *a = &w->plan->gradients[i];
    if (!is_in_bucket(w, i, bucket->type)) continue;
    helio_tensor *view = hi_tensor_view(bucket, &a->shape, offset);
    if (!view) return helio_error_pending();
    w->gradients[i] = (hi_gradient){.values = view, .shape = a->shape};
    offset += room_of(a);
  }
  return HELIO_OK;
}

static helio_status sum_bucket(const work *w, int first, int last, helio_type type, size_t bytes) {
  if (first == last) return sum_alone(w, first);
  helio_shape shape = HELIO_SHAPE((int64_t)(bytes / helio_type_bytes(type)));
  helio_tensor *bucket = helio_fill(shape, 0, .type = type); /* the gaps are summed too */
  helio_status status = bucket ? pack(w, bucket, first, last) : helio_error_pending();
  if (!status) status = call_all_reduce(w, bucket, bucket);
  return status ? status : unpack(w, bucket, first, last);
}

/* All gradients of a type, in the order of the list, bucket by bucket. */
static helio_status sum_dense(const work *w, helio_type type) {
  helio_status status = HELIO_OK;
  int first = -1, last = -1;
  size_t bytes = 0;
  for (int i = 0; i < w->plan->count && !status; i++) {
    if (!is_in_bucket(w, i, type)) continue;
    size_t more = room_of(&w->plan->gradients[i]);
    if (first >= 0 && bytes + more > w->strategy->bucket_bytes) {
      status = sum_bucket(w, first, last, type, bytes);
      first = -1;
      bytes = 0;
    }
    if (first < 0) first = i;
    last = i;
    bytes += more;
  }
  return status || first < 0 ? status : sum_bucket(w, first, last, type, bytes);
}

/* ---- rows ---- */

static helio_tensor *gather(const work *w, helio_tensor *own, const agreed *a, helio_type type, helio_shape shape) {
  size_t counts[HELIO_MAX_REPLICAS], row = 1;
  int64_t total = 0;
  for (int i = 1; i < shape.rank; i++) row *= (size_t)shape.extent[i];
  for (int i = 0; i < w->strategy->replicas.count; i++) {
    counts[i] = (size_t)a->rows[i] * row;
    total += a->rows[i];
  }
  shape.extent[0] = total;
  helio_tensor *all = hi_tensor_new(w->device, type, &shape, "gradients by rows");
  if (!all) return NULL;
  hi_exchange e = {.stream = HI_STREAM_COMPUTE,
                   .source = own ? hi_tensor_place(own) : (helio_place){0},
                   .target = hi_tensor_place(all),
                   .type = type,
                   .counts = counts};
  return hi_communicator_all_gather(w->strategy->communicators[w->replica], &e) ? NULL : all;
}

/* In the order of replicas, which is that of samples: rows of one index are added as on one device. */
static helio_status gather_rows(const work *w, int index) {
  const agreed *a = &w->plan->gradients[index];
  hi_gradient *gradient = &w->gradients[index];
  helio_tensor *values = gradient->values, *indices = gradient->indices;
  if (values) values = hi_tensor_on(values, w->device);
  if (indices && indices->type != a->index_type) indices = helio_cast(indices, a->index_type);
  if (indices) indices = hi_tensor_on(indices, w->device);
  if (helio_error_pending()) return helio_error_pending();
  values = gather(w, values, a, a->type, a->shape);
  indices = values ? gather(w, indices, a, a->index_type, HELIO_SHAPE(0)) : NULL;
  if (!indices) return helio_error_pending();
  *gradient = (hi_gradient){.values = values, .indices = indices, .shape = a->shape};
  return HELIO_OK;
}

helio_status hi_sum_gradients(hi_replicas *replicas, hi_gradient *gradients, int count) {
  helio_strategy *strategy = (helio_strategy *)replicas;
  visit mine = {.strategy = strategy, .gradients = gradients, .count = count};
  helio_status status = replicas->services->meet(replicas, agree, &mine);
  if (status) return status;
  int replica = hi_replica_of(replicas);
  work w = {.strategy = strategy,
            .plan = strategy->plan,
            .gradients = gradients,
            .replica = replica,
            .device = replicas->devices[replica]};
  for (int type = HELIO_FLOAT32; type <= HELIO_BFLOAT16 && !status; type++) status = sum_dense(&w, (helio_type)type);
  for (int i = 0; i < count && !status; i++) {
    if (w.plan->gradients[i].kind == ROWS) status = gather_rows(&w, i);
  }
  return status ? hi_strategy_break(strategy) : HELIO_OK; /* whatever failed, the others wait for this replica */
}
