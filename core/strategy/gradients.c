/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of gradients over replicas: dense ones travel packed in buckets, from the end of the list to its beginning,
 * because that is how the backward pass comes by them; rows are gathered.
 *
 * What the replicas have is agreed on where they meet, and buckets are made by that. Where all devices work while their
 * threads go on, the buckets of the step before serve from the second step on: each is summed, on a stream of its own,
 * as soon as its gradients are there. Before that the replicas meet, so that none waits for one that never came to the
 * step; whether they still have what they had is agreed on at the end. */
#include <stdlib.h>
#include <string.h>

#include "device/arena.h"
#include "device/copy.h"
#include "ops/placement.h"
#include "ops/tape.h"
#include "runtime/clock.h"
#include "runtime/error.h"
#include "strategy/compare.h"
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

/* Dense gradients of one type, from place `last` down to place `first`. */
typedef struct bucket {
  helio_type type;
  int first, last, members;
  size_t bytes;
} bucket;

/* Written when the replicas meet, read by all until they meet again. */
struct hi_gradient_plan {
  uint64_t key; /* of the list that it was made for; 0: it is not whole */
  int count, bucket_count;
  agreed *gradients;
  bucket *buckets; /* in the order in which they travel; room for `count` */
};

void hi_gradient_plan_free(struct hi_gradient_plan *plan) {
  if (!plan) return;
  free(plan->gradients);
  free(plan->buckets);
  free(plan);
}

/* One replica's part. */
struct hi_summing {
  helio_strategy *strategy;
  uint64_t key;
  hi_gradient *gradients;
  int count, replica;
  hi_device *device;
  bool early;       /* buckets of the step before travel while gradients are computed */
  int next;         /* bucket that is to travel next */
  int *missing;     /* by bucket: gradients that it waits for */
  double seconds;   /* spent so far */
  hi_gradient *own; /* what the replica had, where a sum has taken its place and, in the end, everywhere */
  bool *summed;     /* by gradient */
};

/* ---- agreeing ---- */

/* Rows, if all that have the gradient have rows; the whole, if one has that. */
static helio_status add_replica(agreed *a, int replica, const hi_gradient *gradient) {
  char first[HI_SHAPE_TEXT], other[HI_SHAPE_TEXT];
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

/* Gradients lie in a bucket at places that vector instructions like. So many pieces can be joined by one kernel. */
enum { ALIGNMENT = 64, MOST_AT_ONCE = 4096 };

static size_t room_of(const agreed *a) {
  size_t bytes = 0;
  hi_shape_bytes(&a->shape, a->type, &bytes); /* a tensor of that shape exists */
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool is_in(const struct hi_gradient_plan *plan, int index, helio_type type) {
  return plan->gradients[index].kind == DENSE && plan->gradients[index].type == type;
}

static void make_buckets(struct hi_gradient_plan *plan, size_t most) {
  plan->bucket_count = 0;
  for (int type = HELIO_FLOAT32; type <= HELIO_BFLOAT16; type++) {
    bucket *open = NULL;
    for (int i = plan->count - 1; i >= 0; i--) {
      if (!is_in(plan, i, (helio_type)type)) continue;
      size_t room = room_of(&plan->gradients[i]);
      if (!open || open->bytes + room > most) {
        open = &plan->buckets[plan->bucket_count++];
        *open = (bucket){.type = (helio_type)type, .last = i};
      }
      open->first = i;
      open->members++;
      open->bytes += room;
    }
  }
}

/* The plan with room for so many gradients, without any. */
static struct hi_gradient_plan *blank_plan(helio_strategy *strategy, int count) {
  struct hi_gradient_plan *plan = strategy->plan;
  if (!plan || plan->count != count) {
    hi_gradient_plan_free(plan);
    plan = calloc(1, sizeof *plan);
    strategy->plan = plan;
    if (!plan) return NULL;
    plan->gradients = calloc((size_t)count + 1, sizeof *plan->gradients);
    plan->buckets = calloc((size_t)count + 1, sizeof *plan->buckets);
    if (!plan->gradients || !plan->buckets) return NULL;
    plan->count = count;
  }
  memset(plan->gradients, 0, (size_t)count * sizeof *plan->gradients);
  plan->key = 0;
  return plan;
}

/* All replicas sum gradients of the same list. */
static helio_status compare_lists(void *const *brought, int replicas) {
  const hi_summing *first = brought[0];
  for (int i = 1; i < replicas; i++) {
    const hi_summing *s = brought[i];
    if (s->key == first->key && s->count == first->count) continue;
    return hi_fail(HELIO_INVALID_ARGUMENT, "replica %d takes a step of another optimizer than replica 0", i);
  }
  return HELIO_OK;
}

static helio_status agree(void *const *brought, int replicas) {
  const hi_summing *first = brought[0];
  helio_status status = compare_lists(brought, replicas);
  if (status) return status;
  struct hi_gradient_plan *plan = blank_plan(first->strategy, first->count);
  if (!plan) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %d gradients", first->count);
  for (int i = 0; i < plan->count; i++) {
    for (int j = 0; j < replicas && !status; j++) {
      const hi_gradient *own = &((const hi_summing *)brought[j])->own[i];
      if (own->values) status = add_replica(&plan->gradients[i], j, own);
    }
  }
  make_buckets(plan, first->strategy->bucket_bytes);
  if (!status) plan->key = first->key;
  return status;
}

/* ---- dense gradients ---- */

/* The replica's own gradient as a whole, on its device; zeros where it has none. */
static helio_tensor *own_gradient(const hi_summing *s, int index) {
  const hi_gradient *gradient = &s->gradients[index];
  const agreed *a = &s->strategy->plan->gradients[index];
  if (!gradient->values) return helio_fill(a->shape, 0, .type = a->type);
  helio_tensor *whole = hi_gradient_dense(gradient);
  return whole ? hi_tensor_on(whole, s->device) : NULL;
}

/* What travels early does so beside what is computed: behind what has been computed so far, and later work on the
 * compute stream is made to wait at the end. */
static helio_status call_all_reduce(const hi_summing *s, helio_tensor *source, helio_tensor *target) {
  hi_exchange e = {.stream = s->early ? HI_STREAM_COLLECTIVE : HI_STREAM_COMPUTE,
                   .source = hi_tensor_place(source),
                   .target = hi_tensor_place(target),
                   .type = source->type,
                   .count = (size_t)source->elements};
  if (s->early) {
    helio_status status = hi_streams_order(s->device, HI_STREAM_COMPUTE, HI_STREAM_COLLECTIVE);
    if (status) return status;
    hi_block_used(source->block, HI_STREAM_COLLECTIVE);
    hi_block_used(target->block, HI_STREAM_COLLECTIVE);
  }
  return hi_communicator_all_reduce(s->strategy->communicators[s->replica], &e);
}

static void set_sum(hi_summing *s, int index, helio_tensor *sum) {
  s->own[index] = s->gradients[index];
  s->gradients[index] = (hi_gradient){.values = sum, .shape = sum->shape};
  s->summed[index] = true;
}

/* A gradient that fills a bucket by itself needs no packing. */
static helio_status sum_alone(hi_summing *s, int index) {
  helio_tensor *own = own_gradient(s, index);
  helio_tensor *sum = own ? hi_tensor_new(s->device, own->type, &own->shape, "a gradient") : NULL;
  if (!sum || call_all_reduce(s, own, sum)) return helio_error_pending();
  set_sum(s, index, sum);
  return HELIO_OK;
}

/* A bucket's contents: its gradients, each with zeros up to where the next one lies, because the gaps are summed too.
 */
typedef struct contents {
  helio_tensor **pieces; /* room for two of each gradient */
  int count;
} contents;

static helio_tensor *flat(const helio_tensor *tensor, int64_t elements) {
  return hi_tensor_view(tensor, &HELIO_SHAPE(elements), 0);
}

static helio_status list_contents(const hi_summing *s, const bucket *b, contents *c) {
  const struct hi_gradient_plan *plan = s->strategy->plan;
  size_t element = helio_type_bytes(b->type);
  helio_tensor *zeros = helio_fill(HELIO_SHAPE((int64_t)(ALIGNMENT / element)), 0, .type = b->type);
  for (int i = b->last; i >= b->first && zeros; i--) {
    if (!is_in(plan, i, b->type)) continue;
    helio_tensor *own = own_gradient(s, i);
    if (!own) return helio_error_pending();
    int64_t gap = (int64_t)(room_of(&plan->gradients[i]) / element) - own->elements;
    if (own->elements > 0 && !(c->pieces[c->count++] = flat(own, own->elements))) return helio_error_pending();
    if (gap > 0 && !(c->pieces[c->count++] = flat(zeros, gap))) return helio_error_pending();
  }
  return zeros ? HELIO_OK : helio_error_pending();
}

/* Piece by piece, where the device has no kernel for all of them. */
static helio_tensor *copy_contents(const hi_summing *s, const contents *c, const helio_shape *shape) {
  helio_tensor *packed = hi_tensor_new(s->device, c->pieces[0]->type, shape, "gradients");
  if (!packed) return NULL;
  helio_place place = hi_tensor_place(packed);
  for (int i = 0; i < c->count; i++) {
    size_t bytes = hi_tensor_bytes(c->pieces[i]);
    if (hi_copy(s->device, place, s->device, hi_tensor_place(c->pieces[i]), bytes)) return NULL;
    place.offset += bytes;
  }
  return packed;
}

static helio_tensor *join_contents(const hi_summing *s, const contents *c, const helio_shape *shape, helio_type type) {
  if (c->count == 0) return hi_tensor_new(s->device, type, shape, "gradients"); /* all of them are empty */
  hi_call call = {.row = hi_row_of(HELIO_OP_CONCAT), .inputs = c->pieces, .input_count = c->count};
  call.attributes.axis = (helio_axis_attributes){.size = sizeof call.attributes.axis};
  bool at_once = c->count <= MOST_AT_ONCE && hi_runs_where_wanted(&call);
  return at_once ? hi_dispatch_one(&call) : copy_contents(s, c, shape);
}

static helio_tensor *pack(const hi_summing *s, const bucket *b) {
  helio_shape shape = HELIO_SHAPE((int64_t)(b->bytes / helio_type_bytes(b->type)));
  contents c = {.pieces = calloc(2 * (size_t)b->members, sizeof(helio_tensor *))};
  if (!c.pieces) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a list of %d gradients", b->members);
    return NULL;
  }
  helio_tensor *packed = list_contents(s, b, &c) ? NULL : join_contents(s, &c, &shape, b->type);
  free(c.pieces);
  return packed;
}

static helio_status unpack(hi_summing *s, const bucket *b, helio_tensor *packed) {
  const struct hi_gradient_plan *plan = s->strategy->plan;
  size_t offset = 0;
  for (int i = b->last; i >= b->first; i--) {
    if (!is_in(plan, i, b->type)) continue;
    helio_tensor *view = hi_tensor_view(packed, &plan->gradients[i].shape, offset);
    if (!view) return helio_error_pending();
    set_sum(s, i, view);
    offset += room_of(&plan->gradients[i]);
  }
  return HELIO_OK;
}

static helio_status sum_bucket(hi_summing *s, const bucket *b) {
  if (b->members == 1) return sum_alone(s, b->last);
  helio_tensor *packed = pack(s, b);
  helio_status status = packed ? call_all_reduce(s, packed, packed) : helio_error_pending();
  return status ? status : unpack(s, b, packed);
}

/* ---- rows ---- */

static helio_tensor *gather(const hi_summing *s, helio_tensor *own, const agreed *a, helio_type type,
                            helio_shape shape) {
  size_t counts[HELIO_MAX_REPLICAS], row = 1;
  int64_t total = 0;
  for (int i = 1; i < shape.rank; i++) row *= (size_t)shape.extent[i];
  for (int i = 0; i < s->strategy->replicas.count; i++) {
    counts[i] = (size_t)a->rows[i] * row;
    total += a->rows[i];
  }
  shape.extent[0] = total;
  helio_tensor *all = hi_tensor_new(s->device, type, &shape, "gradients by rows");
  if (!all) return NULL;
  hi_exchange e = {.stream = HI_STREAM_COMPUTE,
                   .source = own ? hi_tensor_place(own) : (helio_place){0},
                   .target = hi_tensor_place(all),
                   .type = type,
                   .counts = counts};
  return hi_communicator_all_gather(s->strategy->communicators[s->replica], &e) ? NULL : all;
}

/* In the order of replicas, which is that of samples: rows of one index are added as on one device. */
static helio_status gather_rows(hi_summing *s, int index) {
  const agreed *a = &s->strategy->plan->gradients[index];
  helio_tensor *values = s->own[index].values, *indices = s->own[index].indices;
  if (values) values = hi_tensor_on(values, s->device);
  if (indices && indices->type != a->index_type) indices = helio_cast(indices, a->index_type);
  if (indices) indices = hi_tensor_on(indices, s->device);
  if (helio_error_pending()) return helio_error_pending();
  values = gather(s, values, a, a->type, a->shape);
  indices = values ? gather(s, indices, a, a->index_type, HELIO_SHAPE(0)) : NULL;
  if (!indices) return helio_error_pending();
  s->gradients[index] = (hi_gradient){.values = values, .indices = indices, .shape = a->shape};
  return HELIO_OK;
}

/* ---- from the first gradient to the last ---- */

static void forget(hi_summing *s) {
  free(s->missing);
  free(s->own);
  free(s->summed);
  free(s);
}

/* Is there a plan for this list, and do all devices work while their threads go on? */
static bool can_be_early(const helio_strategy *strategy, uint64_t key, int count) {
  const struct hi_gradient_plan *plan = strategy->plan;
  bool possible = plan && plan->key == key && plan->count == count;
  for (int i = 0; i < strategy->replicas.count; i++) possible = possible && !strategy->replicas.devices[i]->synchronous;
  return possible;
}

static hi_summing *no_memory(hi_summing *s, int count) {
  if (s) forget(s);
  hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the sums of %d gradients", count);
  return NULL;
}

hi_summing *hi_sums_begin(hi_replicas *replicas, uint64_t key, hi_gradient *gradients, int count) {
  helio_strategy *strategy = (helio_strategy *)replicas;
  hi_summing *s = calloc(1, sizeof *s);
  if (!s) return no_memory(NULL, count);
  int replica = hi_replica_of(replicas);
  hi_strategy_say_sums(strategy);
  *s = (hi_summing){.strategy = strategy,
                    .key = key,
                    .gradients = gradients,
                    .count = count,
                    .replica = replica,
                    .device = replicas->devices[replica],
                    .early = can_be_early(strategy, key, count),
                    .missing = calloc((size_t)count + 1, sizeof *s->missing),
                    .own = calloc((size_t)count + 1, sizeof *s->own),
                    .summed = calloc((size_t)count + 1, sizeof *s->summed)};
  if (!s->missing || !s->own || !s->summed) return no_memory(s, count);
  if (!s->early) return s;
  double begin = hi_seconds();
  if (replicas->services->meet(replicas, compare_lists, s)) {
    forget(s);
    return NULL;
  }
  for (int i = 0; i < strategy->plan->bucket_count; i++) s->missing[i] = strategy->plan->buckets[i].members;
  s->seconds = hi_seconds() - begin;
  return s;
}

helio_status hi_sums_ready(hi_summing *s, int index) {
  const struct hi_gradient_plan *plan = s->strategy->plan;
  helio_status status = HELIO_OK;
  if (!s->early || plan->gradients[index].kind != DENSE) return HELIO_OK;
  for (int i = 0; i < plan->bucket_count; i++) {
    const bucket *b = &plan->buckets[i];
    if (b->type == plan->gradients[index].type && index >= b->first && index <= b->last) s->missing[i]--;
  }
  double begin = hi_seconds();
  helio_scope device = hi_placement_enter(s->device);
  for (; !status && s->next < plan->bucket_count && s->missing[s->next] == 0; s->next++) {
    status = sum_bucket(s, &plan->buckets[s->next]);
  }
  helio_device_leave(&device);
  s->seconds += hi_seconds() - begin;
  return status;
}

/* What has not been told of is not there. */
static helio_status send_what_is_left(hi_summing *s) {
  const struct hi_gradient_plan *plan = s->strategy->plan;
  helio_status status = HELIO_OK;
  for (; !status && s->next < plan->bucket_count; s->next++) status = sum_bucket(s, &plan->buckets[s->next]);
  return status ? status : hi_streams_order(s->device, HI_STREAM_COLLECTIVE, HI_STREAM_COMPUTE);
}

/* By the plan that the replicas have agreed on now. */
static helio_status sum_the_rest(hi_summing *s) {
  const struct hi_gradient_plan *plan = s->strategy->plan;
  helio_status status = HELIO_OK;
  bool whole = !s->early;
  s->early = false;
  for (int i = 0; whole && i < plan->bucket_count && !status; i++) status = sum_bucket(s, &plan->buckets[i]);
  for (int i = 0; i < plan->count && !status; i++) {
    enum kind has = plan->gradients[i].kind;
    if (has == DENSE && !s->summed[i]) status = sum_alone(s, i);
    if (has == ROWS) status = gather_rows(s, i);
    if (has == NONE) s->gradients[i] = (hi_gradient){0}; /* zeros were sent, but nobody had any */
  }
  return status;
}

static helio_status sum_all(hi_summing *s) {
  helio_strategy *strategy = s->strategy;
  helio_status status = helio_error_pending();
  for (int i = 0; i < s->count; i++) {
    if (!s->summed[i]) s->own[i] = s->gradients[i];
  }
  if (!status && s->early) status = send_what_is_left(s);
  if (!status) status = strategy->replicas.services->meet(&strategy->replicas, agree, s);
  return status ? status : sum_the_rest(s);
}

static void keep_times(const hi_summing *s, double begin, double end) {
  s->strategy->reduce_seconds[s->replica] += s->seconds + end - begin;
  s->strategy->reduce_begin[s->replica] = begin;
  s->strategy->reduce_end[s->replica] = end;
}

helio_status hi_sums_end(hi_summing *s) {
  helio_strategy *strategy = s->strategy;
  double begin = hi_seconds();
  helio_scope device = hi_placement_enter(s->device);
  helio_status status = sum_all(s);
  if (!status && strategy->replicas.compared) status = hi_compare_sums(strategy, s->own, s->gradients, s->count);
  helio_device_leave(&device);
  keep_times(s, begin, hi_seconds());
  forget(s);
  return status ? hi_strategy_break(strategy) : HELIO_OK; /* whatever failed, the others wait for this replica */
}
