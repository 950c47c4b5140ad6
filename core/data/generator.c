/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that a function of the user's makes. */
#include "data/dataset.h"
#include "ops/options.h"
#include "runtime/error.h"

typedef struct generator {
  helio_dataset dataset;
  helio_dataset_from_generator_options options;
} generator;

typedef struct generator_cursor {
  hi_cursor cursor;
  const helio_dataset_from_generator_options *options;
  void *state;
  bool started;
  int64_t at; /* how many elements it has given */
} generator_cursor;

static helio_status judge(helio_status status, const char *what, int64_t at) {
  if (helio_error_pending()) {
    hi_error_prefix("helio_dataset_from_generator, %s, element %lld: ", what, (long long)at);
  } else if (status) {
    hi_fail(status, "helio_dataset_from_generator, %s, element %lld: the function returned %s", what, (long long)at,
            helio_status_name(status));
  }
  return helio_error_pending();
}

static void stop(generator_cursor *self) {
  if (self->started && self->options->stop) self->options->stop(self->state);
  self->started = false;
}

static bool start(generator_cursor *self) {
  if (self->started) return true;
  self->state = self->options->argument;
  if (self->options->start) {
    helio_status status = HELIO_OK;
    HELIO_POOL status = self->options->start(self->options->argument, &self->state);
    if (judge(status, "start", 0)) return false;
  }
  self->started = true;
  return true;
}

static bool begin(hi_cursor *cursor, uint64_t epoch) {
  generator_cursor *self = (generator_cursor *)cursor;
  (void)epoch;
  stop(self);
  self->at = 0;
  return true;
}

static hi_item *item_of(const helio_generated *element, int64_t at) {
  if (element->count < 0 || element->count > HELIO_MAX_PARTS) {
    hi_fail(HELIO_INVALID_ARGUMENT, "helio_dataset_from_generator, element %lld: %d parts; there are 1 to %d",
            (long long)at, element->count, HELIO_MAX_PARTS);
    return NULL;
  }
  for (int i = 0; i < element->count; i++) {
    if (element->part[i]) continue;
    hi_fail(HELIO_INVALID_ARGUMENT, "helio_dataset_from_generator, element %lld: part %d is NULL", (long long)at, i);
    return NULL;
  }
  hi_item *item = element->count ? hi_item_new(element->count) : NULL;
  for (int i = 0; item && i < item->count; i++) hi_part_set_array(&item->part[i], element->part[i]);
  return item;
}

static bool next(hi_cursor *cursor, hi_item **item) {
  generator_cursor *self = (generator_cursor *)cursor;
  if (start(self)) {
    HELIO_POOL {
      helio_generated element = {0};
      helio_status status = self->options->next(self->state, &element);
      if (!judge(status, "next", self->at)) *item = item_of(&element, self->at);
    }
  }
  self->at++;
  if (!*item) stop(self);
  return *item || !helio_error_pending();
}

static void close_generator(hi_cursor *cursor) {
  stop((generator_cursor *)cursor);
}

static const hi_cursor_class cursor_class = {.begin = begin, .next = next, .close = close_generator};

static hi_cursor *open_generator(helio_dataset *dataset, hi_opening *opening) {
  generator_cursor *self = hi_cursor_new(sizeof *self, &cursor_class, opening);
  if (!self) return NULL;
  self->options = &((const generator *)dataset)->options;
  return &self->cursor;
}

static const hi_dataset_class class = {.name = "generator", .open = open_generator};

helio_dataset *helio_dataset_from_generator_with(const helio_dataset_from_generator_options *given) {
  helio_dataset_from_generator_options o;
  if (!hi_options_enter("helio_dataset_from_generator", &o, sizeof o, given)) return NULL;
  if (!o.next || o.count < 0) {
    if (!o.next) hi_fail(HELIO_INVALID_ARGUMENT, "next is NULL");
    if (o.next) hi_fail(HELIO_INVALID_ARGUMENT, "a count of %lld elements", (long long)o.count);
    return NULL;
  }
  generator *self = hi_dataset_new(sizeof *self, &class, NULL, 0);
  if (!self) return NULL;
  self->options = o;
  self->dataset.cardinality = o.count ? o.count : HELIO_UNKNOWN;
  self->dataset.exact = false;
  hi_dataset_mark(&self->dataset, (uint64_t)o.count);
  return &self->dataset;
}
