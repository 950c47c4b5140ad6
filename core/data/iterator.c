/* SPDX-License-Identifier: Apache-2.0 */
#include "data/iterator.h"

#include <stdio.h>
#include <stdlib.h>

#include "data/dataset.h"
#include "data/landing.h"
#include "data/position.h"
#include "device/topology.h"
#include "ops/placement.h"
#include "runtime/error.h"
#include "runtime/runtime.h"
#include "tensor/pool.h"

/* A tree of cursors and what it was opened with. */
typedef struct tree {
  hi_scene *scene;
  hi_cursor *root;
  hi_opening opening; /* births */
} tree;

struct helio_iterator {
  hi_object object;
  pthread_mutex_t lock;
  helio_dataset *dataset; /* held */
  tree tree;
  int64_t count;     /* elements that were handed out */
  unsigned ends;     /* of the library, when it was made */
  helio_error error; /* that ended it; status 0: none */
};

/* ---- trees ---- */

static void tree_close(tree *self) {
  if (self->scene) hi_scene_stop(self->scene);
  hi_cursor_close(self->root);
  free(self->opening.births);
  free(self->scene);
  *self = (tree){0};
}

/* Opens the dataset with the births that `self->opening` has, if they are given. */
static bool tree_open(tree *self, helio_dataset *dataset, const hi_scene *like) {
  self->scene = calloc(1, sizeof *self->scene);
  if (!self->scene) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for an iterator");
    return false;
  }
  self->scene->device = like->device;
  self->scene->named = like->named;
  self->scene->landing = like->landing;
  self->opening.scene = self->scene;
  self->root = hi_dataset_open(dataset, &self->opening);
  return self->root && hi_cursor_begin(self->root, 0);
}

/* ---- life ---- */

static void end(void *object) {
  helio_iterator *iterator = object;
  if (hi_runtime_forked()) return; /* its threads are not in this process, nor who would unlock its locks */
  tree_close(&iterator->tree);
  hi_drop(iterator->dataset);
  pthread_mutex_destroy(&iterator->lock);
  free(iterator);
}

/* Functions run where the elements land or, if that is not known yet, on the host, as in tf.data: it outlives every
 * device that is lost. */
static helio_iterator *iterate(helio_dataset *dataset, bool land) {
  hi_scene scene = {.named = hi_placement_request().named, .landing = hi_placement_for_data(NULL)};
  scene.device = scene.landing;
  if (scene.landing && !land && !scene.named) {
    scene.device = hi_device_host();
    scene.named = true;
    if (hi_device_use(scene.device)) return NULL;
  }
  helio_iterator *iterator = scene.landing ? hi_object_new(sizeof *iterator, end, "an iterator") : NULL;
  if (!iterator) return NULL;
  pthread_mutex_init(&iterator->lock, NULL);
  hi_hold(dataset);
  iterator->dataset = dataset;
  iterator->ends = hi_runtime_ends();
  iterator->tree.opening.land = land;
  return tree_open(&iterator->tree, dataset, &scene) ? iterator : NULL;
}

helio_iterator *helio_iterate(helio_dataset *dataset) {
  return hi_enter(__func__) || !hi_dataset_usable(dataset) ? NULL : iterate(dataset, true);
}

helio_iterator *hi_iterate_unlanded(helio_dataset *dataset) {
  return hi_dataset_usable(dataset) ? iterate(dataset, false) : NULL;
}

static bool usable(const helio_iterator *iterator) {
  if (!iterator) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the iterator is NULL");
  } else if (iterator->ends != hi_runtime_ends()) {
    hi_fail(HELIO_WRONG_STATE,
            "the iterator was made before helio_shutdown(); its position may be restored on another");
  }
  return !helio_error_pending();
}

/* ---- elements ---- */

/* An error ends the iteration: it is said again, so that nobody takes it for the end of the data. */
static bool fail_again(helio_iterator *iterator) {
  if (helio_error_pending()) {
    iterator->error.status = helio_error_pending();
    snprintf(iterator->error.message, sizeof iterator->error.message, "%s", helio_error_message());
  } else if (iterator->error.status) {
    hi_fail(iterator->error.status, "%s", iterator->error.message);
  }
  return iterator->error.status;
}

static bool next_item(helio_iterator *iterator, hi_item **item) {
  *item = NULL;
  if (fail_again(iterator)) return false;
  helio_scope scope = hi_scene_enter(iterator->tree.scene);
  hi_cursor_next(iterator->tree.root, item);
  helio_device_leave(&scope);
  return !fail_again(iterator);
}

bool hi_iterator_item(helio_iterator *iterator, hi_item **item) {
  *item = NULL;
  if (!usable(iterator)) return false;
  pthread_mutex_lock(&iterator->lock);
  bool well = next_item(iterator, item);
  if (*item) iterator->count++;
  pthread_mutex_unlock(&iterator->lock);
  return well;
}

/* Its tensors join the caller's pool, to which those that landed just now belong already. */
static bool hand_out(helio_iterator *iterator, hi_item *item, helio_element *element) {
  helio_element landed;
  if (hi_item_land(item, 0, -1, iterator->tree.scene->landing, &landed)) return false;
  for (int i = 0; i < landed.count; i++) {
    if (landed.part[i] != item->part[i].tensor) continue;
    hi_hold(landed.part[i]);
    if (hi_pool_add(&landed.part[i]->object)) continue;
    hi_drop(landed.part[i]);
    return false;
  }
  *element = landed;
  return true;
}

bool helio_next(helio_iterator *iterator, helio_element *element) {
  if (hi_enter(__func__) || !usable(iterator)) return false;
  if (!element) return hi_fail(HELIO_INVALID_ARGUMENT, "element is NULL") == HELIO_OK;
  hi_item *item;
  pthread_mutex_lock(&iterator->lock);
  bool got = next_item(iterator, &item) && item && hand_out(iterator, item, element);
  if (got) iterator->count++;
  fail_again(iterator);
  pthread_mutex_unlock(&iterator->lock);
  hi_drop(item);
  return got;
}

/* ---- positions ---- */

char *helio_iterator_position(helio_iterator *iterator) {
  if (hi_enter(__func__) || !usable(iterator)) return NULL;
  pthread_mutex_lock(&iterator->lock);
  hi_position position = {.fingerprint = iterator->dataset->fingerprint,
                          .count = iterator->count,
                          .births = iterator->tree.opening.births,
                          .birth_count = iterator->tree.opening.count};
  char *text = hi_position_text(&position);
  pthread_mutex_unlock(&iterator->lock);
  return text;
}

static helio_status go_to(tree *self, helio_dataset *dataset, const hi_scene *scene, int64_t count) {
  if (!tree_open(self, dataset, scene)) return helio_error_pending();
  if (self->opening.at != self->opening.count) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "the position is of another dataset");
  }
  helio_scope scope = hi_scene_enter(self->scene);
  int64_t skipped = hi_cursor_skip(self->root, count);
  helio_device_leave(&scope);
  if (skipped < 0) return helio_error_pending();
  if (skipped == count) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "the position is behind %lld elements, and the dataset has %lld",
                 (long long)count, (long long)skipped);
}

helio_status helio_iterator_restore(helio_iterator *iterator, const char *text) {
  hi_position position;
  helio_status status = hi_enter(__func__);
  if (status) return status;
  if (!usable(iterator) || hi_position_parse(text, &position)) return helio_error_pending();
  tree restored = {
      .opening = {
          .given = true, .births = position.births, .count = position.birth_count, .room = position.birth_count}};
  pthread_mutex_lock(&iterator->lock);
  restored.opening.land = iterator->tree.opening.land;
  if (position.fingerprint != iterator->dataset->fingerprint) {
    status = hi_fail(HELIO_INVALID_ARGUMENT, "the position is of a dataset that was made in another way");
  } else {
    status = go_to(&restored, iterator->dataset, iterator->tree.scene, position.count);
  }
  if (!status) {
    tree before = iterator->tree;
    iterator->tree = restored;
    iterator->count = position.count;
    iterator->error.status = HELIO_OK;
    restored = before;
  }
  tree_close(&restored);
  pthread_mutex_unlock(&iterator->lock);
  return status;
}
