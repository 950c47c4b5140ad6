/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets for replicas: a last transform, whose items are the tensors of all replicas on their devices. So prefetching
 * and positions are those of any dataset. */
#include <stdlib.h>

#include "data/dataset.h"
#include "data/iterator.h"
#include "data/landing.h"
#include "ops/options.h"
#include "ops/placement.h"
#include "runtime/error.h"
#include "runtime/progress.h"
#include "strategy/split.h"
#include "strategy/values.h"

/* ---- the transform: one dataset that is cut, or one for each replica ---- */

typedef struct shared {
  helio_dataset dataset;
  helio_strategy *strategy; /* a reference */
  helio_batch_split split;
  int source_count; /* one, or as many as replicas */
  helio_dataset *sources[HELIO_MAX_REPLICAS];
} shared;

typedef struct share_cursor {
  hi_cursor cursor;
  const shared *share;
  hi_cursor *sources[HELIO_MAX_REPLICAS];
  hi_item *batch; /* that is being cut: whoever takes over from a thread that hangs begins with it */
} share_cursor;

static bool begin(hi_cursor *cursor, uint64_t epoch) {
  share_cursor *self = (share_cursor *)cursor;
  hi_drop(self->batch);
  self->batch = NULL;
  for (int i = 0; i < self->share->source_count; i++) {
    if (!hi_cursor_begin(self->sources[i], epoch)) return false;
  }
  return true;
}

/* Takes the replica's arrival over. */
static helio_status keep_arrival(hi_item *all, int replicas, int replica, hi_point *arrival) {
  if (!arrival) return HELIO_OK;
  if (!all->arrivals) all->arrivals = calloc((size_t)replicas, sizeof(hi_point *));
  if (!all->arrivals) {
    hi_point_release(arrival);
    return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a batch");
  }
  all->arrival_count = replicas;
  all->arrivals[replica] = arrival;
  return HELIO_OK;
}

/* Lands a replica's rows of a batch and adds them to the item for all, of which it takes the replica's places. */
static helio_status land(const hi_replicas_now *now, hi_device *device, const hi_item *batch, int64_t first,
                         int64_t rows, int replica, hi_item **all) {
  helio_element element;
  hi_point *arrival = NULL;
  if (now->devices[replica]) device = now->devices[replica];
  hi_activity before = hi_progress_change(HI_LANDS); /* a device may hang */
  helio_status status = hi_item_land_ahead(batch, first, rows, device, &element, &arrival);
  hi_progress_change(before);
  if (status) return status;
  if (!*all) *all = hi_item_new(now->count * batch->count);
  if (!*all) {
    hi_point_release(arrival);
    return helio_error_pending();
  }
  status = keep_arrival(*all, now->count, replica, arrival);
  if (status) return status;
  if ((*all)->count != now->count * element.count) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "the elements of replica %d have %d parts, those of replica 0 have %d",
                   replica, element.count, (*all)->count / now->count);
  }
  (*all)->stamp = now->losses;
  for (int i = 0; i < element.count; i++) hi_part_set_tensor(&(*all)->part[i * now->count + replica], element.part[i]);
  return HELIO_OK;
}

/* The item for all, which knows the batch: that can be cut again when a replica is lost. `device` is for replicas that
 * have none of their own. */
static helio_status cut(const hi_replicas_now *now, helio_batch_split split, hi_device *device, hi_item *batch,
                        hi_item **all) {
  int64_t sizes[HELIO_MAX_REPLICAS], first = 0, rows = hi_item_rows(batch);
  helio_status status = HELIO_OK;
  if (rows < 0) {
    hi_error_prefix("Call helio_dataset_batch() on the dataset in order to be able to split it across %d replicas: ",
                    now->count);
    return helio_error_pending();
  }
  hi_split(split, rows, now->weights, now->count, sizes);
  for (int i = 0; i < now->count && !status; i++) {
    status = land(now, device, batch, first, sizes[i], i, all);
    first += sizes[i];
  }
  if (status) return status;
  hi_hold(batch);
  (*all)->whole = batch;
  return HELIO_OK;
}

/* Where a replica's device fails the batch itself goes on, for those that will be left. */
static helio_status cut_ahead(const share_cursor *self, hi_item *batch, hi_item **all) {
  helio_error cause;
  hi_replicas_now now = hi_strategy_replicas(self->share->strategy);
  helio_status status = cut(&now, self->share->split, self->cursor.scene->landing, batch, all);
  bool failed = false;
  for (int i = 0; i < now.count; i++) failed = failed || (now.devices[i] && atomic_load(&now.devices[i]->loss));
  if (status != HELIO_DEVICE_FAILURE || !failed || now.count == 1) return status;
  helio_error_take(&cause);
  hi_drop(*all);
  *all = hi_item_new(0);
  if (!*all) return helio_error_pending();
  hi_hold(batch);
  (*all)->whole = batch;
  return HELIO_OK;
}

/* Every source's next batch; none of any is the end. A source that has ended before others gives batches of no rows,
 * which for the rest look like another's. */
static helio_status collect(share_cursor *self, hi_item **all) {
  hi_item *batches[HELIO_MAX_REPLICAS] = {NULL}, *some = NULL;
  hi_device *device = self->cursor.scene->landing;
  hi_replicas_now now = hi_strategy_replicas(self->share->strategy);
  int count = self->share->source_count;
  if (now.count != count) {
    return hi_fail(HELIO_REPLICA_LOST, "each of %d replicas had a dataset of its own, and some were lost", count);
  }
  helio_status status = HELIO_OK;
  for (int i = 0; i < count && !status; i++) {
    if (!hi_cursor_next(self->sources[i], &batches[i])) status = helio_error_pending();
    if (!some) some = batches[i];
  }
  for (int i = 0; i < count && some && !status; i++) {
    int64_t rows = batches[i] ? hi_item_rows(batches[i]) : 0;
    status = rows < 0 ? helio_error_pending() : land(&now, device, batches[i] ? batches[i] : some, 0, rows, i, all);
  }
  for (int i = 0; i < count; i++) hi_drop(batches[i]);
  return status;
}

static helio_status cut_next(share_cursor *self, hi_item **all) {
  if (!self->batch && !hi_cursor_next(self->sources[0], &self->batch)) return helio_error_pending();
  hi_item *batch = self->batch;
  if (!batch) return HELIO_OK;
  hi_hold(batch); /* a thread that hangs keeps what its device may still read */
  helio_status status = cut_ahead(self, batch, all);
  hi_drop(batch);
  hi_drop(self->batch);
  self->batch = NULL;
  return status;
}

static bool next(hi_cursor *cursor, hi_item **item) {
  share_cursor *self = (share_cursor *)cursor;
  hi_item *all = NULL;
  helio_scope pool = helio_pool_enter();
  helio_status status = self->share->source_count > 1 ? collect(self, &all) : cut_next(self, &all);
  helio_pool_leave(&pool);
  if (status) hi_drop(all);
  *item = status ? NULL : all;
  return !status;
}

static int64_t skip(hi_cursor *cursor, int64_t count) {
  share_cursor *self = (share_cursor *)cursor;
  int64_t most = 0;
  for (int i = 0; i < self->share->source_count; i++) {
    int64_t skipped = hi_cursor_skip(self->sources[i], count);
    if (skipped < 0) return -1;
    if (skipped > most) most = skipped;
  }
  return most;
}

static void close_share(hi_cursor *cursor) {
  share_cursor *self = (share_cursor *)cursor;
  hi_drop(self->batch);
  for (int i = 0; i < self->share->source_count; i++) hi_cursor_close(self->sources[i]);
}

static const hi_cursor_class cursor_class = {.begin = begin, .next = next, .skip = skip, .close = close_share};

static hi_cursor *open_share(helio_dataset *dataset, hi_opening *opening) {
  const shared *from = (const shared *)dataset;
  share_cursor *self = hi_cursor_new(sizeof *self, &cursor_class, opening);
  if (!self) return NULL;
  self->share = from;
  for (int i = 0; i < from->source_count; i++) {
    self->sources[i] = hi_dataset_open(from->sources[i], opening);
    if (self->sources[i]) continue;
    hi_cursor_close(&self->cursor);
    return NULL;
  }
  return &self->cursor;
}

static void end_share(helio_dataset *dataset) {
  shared *self = (shared *)dataset;
  for (int i = 0; i < self->source_count; i++) hi_drop(self->sources[i]);
  hi_drop(self->strategy);
}

static const hi_dataset_class class = {.name = "distribute", .open = open_share, .end = end_share};

/* An iteration goes on until the longest source has ended. */
static int64_t longer(int64_t a, int64_t b) {
  if (a == HELIO_UNKNOWN || b == HELIO_UNKNOWN) return HELIO_UNKNOWN;
  if (a == HELIO_INFINITE || b == HELIO_INFINITE) return HELIO_INFINITE;
  return a > b ? a : b;
}

static shared *new_share(helio_strategy *strategy, helio_dataset *const *sources, int count) {
  shared *self = hi_dataset_new(sizeof *self, &class, sources, 1);
  if (!self) return NULL;
  hi_hold(strategy);
  self->strategy = strategy;
  self->dataset.table = NULL;
  for (; self->source_count < count; self->source_count++) {
    helio_dataset *source = sources[self->source_count];
    if (!hi_dataset_usable(source)) return NULL;
    hi_hold(source);
    self->sources[self->source_count] = source;
    self->dataset.cardinality = longer(self->dataset.cardinality, source->cardinality);
  }
  return self;
}

/* ---- the user's ---- */

struct helio_distributed {
  hi_object object;
  helio_strategy *strategy; /* references */
  helio_dataset *dataset;
  helio_batch_split split;
};

struct helio_distributed_iterator {
  hi_object object;
  helio_strategy *strategy; /* references */
  helio_iterator *iterator;
  helio_batch_split split;
};

static void end_distributed(void *object) {
  helio_distributed *distributed = object;
  hi_drop(distributed->dataset);
  hi_drop(distributed->strategy);
  free(distributed);
}

/* A position is that of the dataset, whatever number of replicas reads it. */
static helio_distributed *new_distributed(helio_strategy *strategy, shared *source, int prefetch) {
  helio_distributed *distributed =
      source ? hi_object_new(sizeof *distributed, end_distributed, "a distributed dataset") : NULL;
  helio_dataset *dataset = source ? &source->dataset : NULL;
  if (dataset && prefetch > 0) dataset = helio_dataset_prefetch(dataset, prefetch);
  if (!distributed || !dataset) return NULL;
  dataset->fingerprint = source->sources[0]->fingerprint;
  hi_hold(strategy);
  distributed->strategy = strategy;
  distributed->split = source->split;
  hi_hold(dataset);
  distributed->dataset = dataset;
  return distributed;
}

helio_distributed *helio_distribute_with(const helio_distribute_options *given) {
  helio_distribute_options o;
  if (!hi_options_enter("helio_distribute", &o, sizeof o, given)) return NULL;
  if (!hi_strategy_usable(o.strategy) || !hi_dataset_usable(o.dataset)) return NULL;
  if ((int)o.split < 0 || o.split > HELIO_SPLIT_TENSORFLOW || o.prefetch < HELIO_NONE) {
    hi_fail(HELIO_INVALID_ARGUMENT, o.prefetch < HELIO_NONE ? "prefetch is %d" : "%d is not a split",
            o.prefetch < HELIO_NONE ? o.prefetch : (int)o.split);
    return NULL;
  }
  shared *source = new_share(o.strategy, &o.dataset, 1);
  if (!source) return NULL;
  source->split = o.split ? o.split : HELIO_SPLIT_BALANCED;
  return new_distributed(o.strategy, source, o.prefetch ? o.prefetch : o.strategy->replicas.count);
}

helio_distributed *helio_distribute_from_function(helio_strategy *strategy, helio_dataset_function function,
                                                  void *argument) {
  helio_dataset *sources[HELIO_MAX_REPLICAS] = {NULL};
  if (hi_enter(__func__) || !hi_strategy_usable(strategy)) return NULL;
  if (!function) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the function is NULL");
    return NULL;
  }
  for (int i = 0; i < strategy->replicas.count; i++) {
    sources[i] = function(argument, i, strategy->replicas.count);
    if (!hi_dataset_usable(sources[i])) return NULL;
  }
  return new_distributed(strategy, new_share(strategy, sources, strategy->replicas.count), 0);
}

int64_t helio_distributed_cardinality(const helio_distributed *distributed) {
  if (hi_enter_unstarted(__func__)) return HELIO_UNKNOWN;
  if (distributed) return distributed->dataset->cardinality;
  hi_fail(HELIO_INVALID_ARGUMENT, "the distributed dataset is NULL");
  return HELIO_UNKNOWN;
}

static void end_iterator(void *object) {
  helio_distributed_iterator *iterator = object;
  hi_drop(iterator->iterator);
  hi_drop(iterator->strategy);
  free(iterator);
}

helio_distributed_iterator *helio_iterate_distributed(helio_distributed *distributed) {
  if (hi_enter(__func__)) return NULL;
  if (!distributed) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the distributed dataset is NULL");
    return NULL;
  }
  if (!hi_strategy_usable(distributed->strategy)) return NULL;
  helio_distributed_iterator *iterator = hi_object_new(sizeof *iterator, end_iterator, "a distributed iterator");
  if (!iterator) return NULL;
  hi_hold(distributed->strategy);
  iterator->strategy = distributed->strategy;
  iterator->split = distributed->split;
  iterator->iterator = hi_iterate_unlanded(distributed->dataset);
  if (!iterator->iterator) return NULL;
  hi_hold(iterator->iterator);
  return iterator;
}

static bool iterator_usable(const helio_distributed_iterator *iterator) {
  if (!iterator) hi_fail(HELIO_INVALID_ARGUMENT, "the iterator is NULL");
  return iterator && hi_strategy_usable(iterator->strategy);
}

/* Those who compute on what was copied ahead wait for it from now on. A device that fails here is suspect, and where
 * there are others the step goes on without it. */
static helio_status await_arrivals(const hi_item *item) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < item->arrival_count && !status; i++) {
    if (item->arrivals[i]) status = hi_point_await(item->arrivals[i]);
    if (status != HELIO_DEVICE_FAILURE || item->arrival_count == 1) continue;
    helio_error_take(NULL);
    status = HELIO_OK;
  }
  return status;
}

/* Of an item that was made for these replicas. Rows are counted in the order of replicas. */
static helio_values *values_of(helio_strategy *strategy, const hi_replicas_now *now, const hi_item *item) {
  int count = now->count;
  helio_values *values = hi_values_new_for(strategy, now, item->count / count);
  if (!values || await_arrivals(item)) return NULL;
  values->global_rows = 0;
  for (int i = 0; i < count; i++) {
    for (int part = 0; part < values->parts; part++)
      hi_values_set(values, i, part, item->part[part * count + i].tensor);
    values->first_row[i] = values->global_rows;
    if (values->parts > 0) values->global_rows += values->tensors[i]->shape.extent[0];
  }
  return values;
}

static helio_values *remember_batch(helio_values *values, helio_batch_split split, hi_item *batch) {
  if (!values || !batch) return values;
  hi_hold(batch);
  values->batch = batch;
  values->split = split;
  return values;
}

helio_values *hi_values_cut(helio_strategy *strategy, helio_batch_split split, hi_item *batch) {
  hi_item *all = NULL;
  helio_scope pool = helio_pool_enter();
  hi_replicas_now now = hi_strategy_replicas(strategy);
  hi_device *usual = hi_placement_for_data(NULL); /* of the default strategy */
  helio_status status = usual ? cut(&now, split, usual, batch, &all) : helio_error_pending();
  helio_pool_leave(&pool);
  helio_values *values = status ? NULL : values_of(strategy, &now, all);
  hi_drop(all);
  return remember_batch(values, split, batch);
}

/* What was made ahead for replicas of which some were lost since is cut again. */
static helio_values *values_now(const helio_distributed_iterator *iterator, const hi_item *item) {
  helio_strategy *strategy = iterator->strategy;
  hi_replicas_now now = hi_strategy_replicas(strategy);
  bool whole = item->count > 0 && item->stamp == now.losses;
  if (whole) return remember_batch(values_of(strategy, &now, item), iterator->split, item->whole);
  if (item->whole) return hi_values_cut(strategy, iterator->split, item->whole);
  hi_fail(HELIO_REPLICA_LOST, "the batch was made for replicas of which some were lost since");
  return NULL;
}

/* A batch does not need the replicas that were lost since the last one. */
static helio_status drop_lost(helio_strategy *strategy) {
  helio_error lost;
  if (hi_strategy_look_around(strategy, NULL) == HELIO_REPLICA_LOST) helio_error_take(&lost);
  return helio_error_pending();
}

helio_values *helio_next_values(helio_distributed_iterator *iterator) {
  hi_item *item;
  if (hi_enter(__func__) || !iterator_usable(iterator)) return NULL;
  if (hi_context_now().replica) {
    hi_fail(HELIO_WRONG_STATE,
            "helio_next_values() should be called from outside of the step: helio_run(strategy, step, "
            "argument, helio_next_values(iterator))");
    return NULL;
  }
  if (!hi_iterator_item(iterator->iterator, &item) || !item) return NULL;
  helio_values *values;
  helio_error lost;
  do { /* a device may fail while the batch is split among those that are left: it is split among the rest */
    values = drop_lost(iterator->strategy) ? NULL : values_now(iterator, item);
  } while (!values && item->whole && hi_strategy_take_loss(iterator->strategy, &lost));
  hi_drop(item);
  return values;
}

char *helio_distributed_position(helio_distributed_iterator *iterator) {
  return hi_enter(__func__) || !iterator_usable(iterator) ? NULL : helio_iterator_position(iterator->iterator);
}

helio_status helio_distributed_restore(helio_distributed_iterator *iterator, const char *position) {
  helio_status status = hi_enter(__func__);
  if (status || !iterator_usable(iterator)) return helio_error_pending();
  return helio_iterator_restore(iterator->iterator, position);
}
