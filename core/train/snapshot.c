/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors stand under "model/…", "optimizer/…" and "metric/…", the parts that replicas have in one of them also under
 * "replica/0/model/…"; all else is one JSON object in the metadata, under "helio_training". */
#include "train/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/json.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "tensor/seed.h"
#include "train/checkpoints.h"

static const char key[] = HI_SAFETENSORS_TRAINING;

/* ---- all variables with their names ---- */

typedef helio_status variable_function(void *user, const char *name, helio_variable *variable);

typedef struct naming {
  variable_function *function;
  void *user;
} naming;

static helio_status call_named(const naming *n, const char *prefix, const char *name, helio_variable *variable) {
  char *whole = NULL;
  if (asprintf(&whole, "%s/%s", prefix, name) < 0) {
    return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of %s", name);
  }
  helio_status status = n->function(n->user, whole, variable);
  free(whole);
  return status;
}

static helio_status call_weight(void *user, const char *name, hi_weight *weight) {
  return call_named(user, "model", name, weight->variable);
}

static helio_status visit_metrics(const hi_compiled *compiled, const naming *n) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < compiled->metric_count; i++) {
    const helio_variables *states = helio_metric_variables(compiled->metrics[i]);
    if (!states) return helio_error_pending();
    for (int k = 0; k < states->count && !status; k++) {
      char prefix[40];
      snprintf(prefix, sizeof prefix, "metric/%d", i); /* two may have one name */
      status = call_named(n, prefix, states->at[k]->name, states->at[k]);
    }
  }
  return status;
}

static helio_status visit_variables(const hi_snapshot *s, variable_function *function, void *user) {
  naming n = {.function = function, .user = user};
  const helio_variables *slots = &s->compiled->optimizer->listed;
  helio_status status = hi_model_visit(s->model, call_weight, &n);
  for (int i = 0; i < slots->count && !status; i++) {
    status = call_named(&n, "optimizer", slots->at[i]->name, slots->at[i]);
  }
  return status ? status : visit_metrics(s->compiled, &n);
}

/* To be freed; NULL with the error set. */
static char *name_of_part(const char *name, int replica) {
  char *whole = NULL;
  if (asprintf(&whole, "replica/%d/%s", replica, name) >= 0) return whole;
  hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of %s", name);
  return NULL;
}

/* ---- layers that draw random numbers count how often ---- */

typedef helio_status layer_function(void *user, const char *name, helio_layer *layer);

static helio_status visit_drawing(const helio_layer *owner, const char *prefix, layer_function *function, void *user) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < owner->model->layer_count && !status; i++) {
    helio_layer *layer = owner->model->layers[i];
    char *name = NULL;
    if (asprintf(&name, "%s%s", prefix, owner->model->names[i]) < 0) {
      return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of a layer");
    }
    if (layer->calls) status = function(user, name, layer);
    if (layer->model && !status) {
      char *inner = NULL;
      status = asprintf(&inner, "%s/", name) < 0 ? hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of a layer")
                                                 : visit_drawing(layer, inner, function, user);
      free(inner);
    }
    free(name);
  }
  return status;
}

/* ---- writing ---- */

static helio_status no_memory(void) {
  return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a checkpoint");
}

/* Is it a name of a model that was given none? Keras counts these, too, and writes them into architectures. */
static bool is_counted(const char *name) {
  static const char *const bases[] = {"sequential", "functional", "model"};
  for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
    size_t length = strlen(bases[i]);
    if (strncmp(name, bases[i], length) != 0) continue;
    const char *rest = name + length;
    if (!*rest || (rest[0] == '_' && rest[1] && !rest[1 + strspn(rest + 1, "0123456789")])) return true;
  }
  return false;
}

/* NULL: nobody gave it one. What it is called then says nothing: it depends on the models that were made before. */
static const char *name_of(const helio_model *model) {
  return model->named && !is_counted(model->name) ? model->name : NULL;
}

/* All replicas have called it as often. */
static helio_status note_calls(void *user, const char *name, helio_layer *layer) {
  json_t *count = json_integer((json_int_t)atomic_load(&layer->calls[0]));
  return json_object_set_new(user, name, count) == 0 ? HELIO_OK : no_memory();
}

static json_t *numbers_of(const helio_optimizer *optimizer) {
  const hi_optimizer_numbers *n = &optimizer->numbers;
  return json_pack("{s:s, s:I, s:f, s:f}", "kind", optimizer->kind->name, "calls", (json_int_t)n->calls,
                   "learning_rate", n->learning_rate, "momentum_product", n->momentum_product);
}

static json_t *epoch_of(const helio_history *history, int index) {
  json_t *values = json_object();
  for (int i = 0; values && i < helio_history_count(history); i++) {
    const char *name = helio_history_name(history, i);
    if (json_object_set_new(values, name, hi_json_number(helio_history_value(history, name, index))) == 0) continue;
    json_decref(values);
    return NULL;
  }
  return json_pack("{s:i, s:o}", "epoch", helio_history_epoch(history, index), "values", values);
}

static json_t *epochs_of(const helio_history *history) {
  json_t *list = json_array();
  for (int i = 0; list && i < helio_history_epochs(history); i++) {
    if (json_array_append_new(list, epoch_of(history, i)) == 0) continue;
    json_decref(list);
    return NULL;
  }
  return list;
}

/* Two callbacks of one name, such as two that watch the same, are told apart by their order. */
static char *key_of(const hi_callbacks *callbacks, int index) {
  const char *name = callbacks->list[index]->options.name;
  char *whole = NULL;
  int before = 0;
  for (int i = 0; i < index; i++) {
    const char *other = callbacks->list[i]->options.name;
    if (other && strcmp(other, name) == 0) before++;
  }
  if (asprintf(&whole, before ? "%s #%d" : "%s", name, before + 1) >= 0) return whole;
  no_memory();
  return NULL;
}

static helio_status note_callbacks(const hi_callbacks *callbacks, json_t *states) {
  for (int i = 0; i < callbacks->count; i++) {
    const helio_callback_options *o = &callbacks->list[i]->options;
    if (!o->name || !o->save) continue;
    char *name = key_of(callbacks, i), *state = name ? o->save(o->user) : NULL;
    bool failed = state && json_object_set_new(states, name, json_string(state)) != 0;
    free(name);
    free(state);
    if (!state) return helio_error_pending() ? helio_error_pending() : no_memory();
    if (failed)
      return hi_fail(HELIO_INVALID_ARGUMENT, "the state of callback %s is not UTF-8, or memory is out", o->name);
  }
  return HELIO_OK;
}

static char *text_of_training(const hi_snapshot *s) {
  json_t *calls = json_object(), *states = json_object();
  char seed[24], shuffle[24], *text = NULL;
  snprintf(seed, sizeof seed, "%" PRIu64, hi_seed_now());
  snprintf(shuffle, sizeof shuffle, "%" PRIu64, s->place.shuffle);
  helio_status status = calls && states ? HELIO_OK : no_memory();
  if (!status) status = visit_drawing(s->model, "", note_calls, calls);
  if (!status) status = note_callbacks(s->callbacks, states);
  json_t *all =
      json_pack("{s:i, s:o?, s:s, s:i, s:I, s:I, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "version", 1, "model",
                json_string(name_of(s->model)), "loss", helio_loss_name(s->compiled->loss), "epoch", s->place.epoch,
                "step", (json_int_t)s->place.step, "total_steps", (json_int_t)s->place.total_steps, "position",
                s->place.position, "shuffle", shuffle, "seed", seed, "optimizer", numbers_of(s->compiled->optimizer),
                "calls", calls, "history", epochs_of(s->history), "callbacks", states);
  if (!status && all) text = hi_json_text(all);
  json_decref(all);
  if (!text && !status) no_memory();
  return text;
}

/* As many replicas go on with these, to the bit; others with what they have come to together. */
static helio_status add_parts(hi_safetensors_writer *writer, const char *name, helio_variable *variable) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < helio_variable_copies(variable) && !status; i++) {
    char *part = name_of_part(name, i);
    status = part ? hi_safetensors_add_tensor(writer, part, helio_variable_copy(variable, i)) : helio_error_pending();
    free(part);
  }
  return status;
}

static helio_status add_variable(void *user, const char *name, helio_variable *variable) {
  helio_tensor *tensor = hi_variable_usable(variable) ? hi_variable_read(variable) : NULL;
  if (!tensor) return helio_error_pending();
  helio_status status = hi_safetensors_add_tensor(user, name, tensor);
  return status || !hi_variable_has_parts(variable) ? status : add_parts(user, name, variable);
}

static helio_status fill(void *user, hi_safetensors_writer *writer) {
  const hi_snapshot *s = user;
  char *text = text_of_training(s);
  helio_status status = text ? hi_safetensors_add_metadata(writer, key, text) : helio_error_pending();
  free(text);
  return status ? status : visit_variables(s, add_variable, writer);
}

/* What a device that is lost had is read of another. */
helio_status hi_snapshot_write(const hi_snapshot *s, const char *folder, int keep) {
  helio_status status;
  do {
    helio_scope pool = helio_pool_enter();
    status = hi_checkpoint_write(folder, s->place.total_steps, keep, fill, (void *)s);
    helio_pool_leave(&pool);
  } while (status && helio_retry(s->compiled->strategy, NULL));
  return helio_error_pending();
}

/* ---- reading: everything is looked at before anything is changed ---- */

typedef struct reading {
  hi_snapshot *snapshot;
  hi_safetensors *file;
  json_t *training;
  int known; /* tensors of the file */
  int count, room;
  struct {
    helio_variable *variable;
    int copy; /* ALL_COPIES, or the one that it is for */
    void *data;
  } * staged;
} reading;

enum { ALL_COPIES = -1 };

static helio_status stage_entry(reading *r, const hi_safetensors_entry *entry, helio_variable *variable, int copy) {
  const helio_tensor *own = hi_variable_tensor(variable);
  const char *name = entry->name;
  char a[HI_SHAPE_TEXT], b[HI_SHAPE_TEXT];
  if (entry->type != own->type || !hi_shape_equal(&entry->shape, &own->shape)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: %s is %s %s there, here it is %s %s", hi_safetensors_path(r->file),
                   name, helio_type_name(entry->type), hi_shape_text(&entry->shape, a), helio_type_name(own->type),
                   hi_shape_text(&own->shape, b));
  }
  if (r->count == r->room) {
    int room = r->room ? 2 * r->room : 32;
    void *more = realloc(r->staged, (size_t)room * sizeof *r->staged);
    if (!more) return no_memory();
    r->staged = more;
    r->room = room;
  }
  void *data = malloc(entry->bytes + 1);
  if (!data) return no_memory();
  r->staged[r->count].variable = variable;
  r->staged[r->count].copy = copy;
  r->staged[r->count++].data = data;
  return hi_safetensors_read(r->file, entry, data);
}

/* Parts of so many replicas as there are now take the place of what they have come to together. */
static helio_status stage_parts(reading *r, const char *name, helio_variable *variable) {
  const hi_safetensors_entry *parts[HELIO_MAX_REPLICAS];
  int count = 0;
  for (; count < HELIO_MAX_REPLICAS; count++) {
    char *part = name_of_part(name, count);
    if (!part) return helio_error_pending();
    parts[count] = hi_safetensors_find(r->file, part);
    free(part);
    if (!parts[count]) break;
  }
  r->known += count;
  helio_status status = HELIO_OK;
  bool fit = hi_variable_has_parts(variable) && count == helio_variable_copies(variable);
  for (int i = 0; fit && i < count && !status; i++) status = stage_entry(r, parts[i], variable, i);
  return status;
}

static helio_status stage(void *user, const char *name, helio_variable *variable) {
  reading *r = user;
  const hi_safetensors_entry *entry = hi_safetensors_find(r->file, name);
  if (!entry) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: it has no %s: it is of another model, optimizer or metrics",
                   hi_safetensors_path(r->file), name);
  }
  r->known++;
  helio_status status = stage_entry(r, entry, variable, ALL_COPIES);
  return status ? status : stage_parts(r, name, variable);
}

static helio_status damaged(const reading *r, const char *what) {
  return hi_fail(HELIO_BAD_DATA, "%s: its training has no %s as this version writes it", hi_safetensors_path(r->file),
                 what);
}

static helio_status parse(reading *r) {
  const char *text = hi_safetensors_metadata(r->file, key);
  json_error_t error;
  if (!text) return damaged(r, "state");
  r->training = hi_json_load(text, strlen(text), JSON_REJECT_DUPLICATES, &error);
  if (!r->training && !*error.text) return no_memory();
  if (!r->training) {
    return hi_fail(HELIO_BAD_DATA, "%s: its training cannot be read: %s", hi_safetensors_path(r->file), error.text);
  }
  return json_integer_value(json_object_get(r->training, "version")) == 1 ? HELIO_OK : damaged(r, "version");
}

/* A number that is none, or that nobody can count on from, is not what anybody wrote. */
static bool read_seed(const char *text, uint64_t *seed) {
  char *end;
  errno = 0;
  *seed = strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && !*end && !errno;
}

static bool is_count(json_int_t number, json_int_t most) {
  return number >= 0 && number <= most;
}

static helio_status read_place(const reading *r, hi_snapshot_place *place) {
  json_int_t epoch, step, total;
  const char *position, *shuffle;
  if (json_unpack(r->training, "{s:I, s:I, s:I, s:s, s:s}", "epoch", &epoch, "step", &step, "total_steps", &total,
                  "position", &position, "shuffle", &shuffle) ||
      !is_count(epoch, INT_MAX / 2) || !is_count(step, INT64_MAX / 2) || !is_count(total, INT64_MAX / 2) ||
      !read_seed(shuffle, &place->shuffle)) {
    return damaged(r, "place");
  }
  place->epoch = (int)epoch;
  place->step = step;
  place->total_steps = total;
  place->position = strdup(position);
  return place->position ? HELIO_OK : no_memory();
}

static helio_status refuse_other(const reading *r, const char *has, const char *theirs, const char *own) {
  char shown[HI_SHOWN];
  return hi_fail(HELIO_INVALID_ARGUMENT,
                 "%s: it was written by a training %s %s, and this is one %s %s; give the folder of this training, or "
                 "one without checkpoints",
                 hi_safetensors_path(r->file), has, hi_shown(theirs, shown), has, own);
}

/* Two models may have variables of the same names and shapes. */
static helio_status check_model(const reading *r) {
  const char *theirs = json_string_value(json_object_get(r->training, "model")), *own = name_of(r->snapshot->model);
  return !theirs || !own || strcmp(theirs, own) == 0 ? HELIO_OK : refuse_other(r, "of", theirs, own);
}

/* The mean of the epoch's losses, of which the checkpoint has a part, would be one of both. */
static helio_status check_loss(const reading *r) {
  const char *theirs = json_string_value(json_object_get(r->training, "loss"));
  const char *own = helio_loss_name(r->snapshot->compiled->loss);
  return !theirs || strcmp(theirs, own) == 0 ? HELIO_OK : refuse_other(r, "with", theirs, own);
}

static helio_status read_numbers(const reading *r, hi_optimizer_numbers *numbers, uint64_t *seed) {
  json_int_t calls;
  const char *text, *kind, *own = r->snapshot->compiled->optimizer->kind->name;
  if (json_unpack(r->training, "{s:{s:s, s:I, s:F, s:F}, s:s}", "optimizer", "kind", &kind, "calls", &calls,
                  "learning_rate", &numbers->learning_rate, "momentum_product", &numbers->momentum_product, "seed",
                  &text) ||
      !is_count(calls, INT64_MAX / 2) || !(numbers->learning_rate >= 0) || !isfinite(numbers->momentum_product) ||
      !read_seed(text, seed)) {
    return damaged(r, "optimizer");
  }
  numbers->calls = calls;
  return strcmp(kind, own) == 0 ? HELIO_OK : refuse_other(r, "with", kind, own);
}

static helio_status find_calls(void *user, const char *name, helio_layer *layer) {
  const reading *r = user;
  (void)layer;
  json_t *count = json_object_get(json_object_get(r->training, "calls"), name);
  return json_is_integer(count) && json_integer_value(count) >= 0 ? HELIO_OK : damaged(r, name);
}

static helio_status set_calls(void *user, const char *name, helio_layer *layer) {
  const reading *r = user;
  json_int_t count = json_integer_value(json_object_get(json_object_get(r->training, "calls"), name));
  for (int i = 0; i < HELIO_MAX_REPLICAS; i++) atomic_store(&layer->calls[i], (uint_least64_t)count);
  return HELIO_OK;
}

static helio_status read_history(const reading *r) {
  const json_t *list = json_object_get(r->training, "history");
  helio_status status = json_is_array(list) ? HELIO_OK : damaged(r, "history");
  for (size_t i = 0; i < json_array_size(list) && !status; i++) {
    json_t *epoch = json_array_get(list, i), *values = json_object_get(epoch, "values"), *value;
    const char *name;
    helio_logs *logs = hi_logs_new(NULL);
    if (!logs) return helio_error_pending();
    json_object_foreach(values, name, value) {
      double number;
      if (!status && !hi_json_number_read(value, &number)) status = damaged(r, name);
      if (!status) status = hi_logs_add_value(logs, "", name, number);
    }
    int number = (int)json_integer_value(json_object_get(epoch, "epoch"));
    if (!status) status = hi_history_add(r->snapshot->history, number, logs);
  }
  return status;
}

static helio_status restore_callbacks(const reading *r) {
  const hi_callbacks *callbacks = r->snapshot->callbacks;
  helio_status status = HELIO_OK;
  for (int i = 0; i < callbacks->count && !status; i++) {
    const helio_callback_options *o = &callbacks->list[i]->options;
    if (!o->name || !o->restore) continue;
    char *name = key_of(callbacks, i);
    if (!name) return helio_error_pending();
    const char *state = json_string_value(json_object_get(json_object_get(r->training, "callbacks"), name));
    free(name);
    if (state) status = o->restore(o->user, state);
  }
  return status;
}

/* Only a device can fail in this, or a callback. */
static helio_status commit(reading *r, const hi_optimizer_numbers *numbers, uint64_t seed) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < r->count && !status; i++) {
    helio_variable *variable = r->staged[i].variable;
    const void *data = r->staged[i].data;
    int copy = r->staged[i].copy;
    status = copy == ALL_COPIES ? hi_variable_write(variable, data) : hi_variable_write_copy(variable, copy, data);
  }
  if (status) return status;
  r->snapshot->compiled->optimizer->numbers = *numbers;
  hi_seed_resume(seed);
  status = visit_drawing(r->snapshot->model, "", set_calls, r);
  return status ? status : restore_callbacks(r);
}

static helio_status refuse_more(const reading *r) {
  int there = hi_safetensors_count(r->file);
  if (there == r->known) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT,
                 "%s: it has %d variables, this training has %d: it is of another model, optimizer or metrics",
                 hi_safetensors_path(r->file), there, r->known);
}

static helio_status read_all(reading *r, hi_snapshot_go *go, void *user) {
  hi_optimizer_numbers numbers;
  hi_snapshot_place place = {0};
  uint64_t seed = 0;
  helio_status status = parse(r);
  if (!status) status = check_model(r);
  if (!status) status = check_loss(r);
  if (!status) status = read_numbers(r, &numbers, &seed);
  if (!status) status = visit_drawing(r->snapshot->model, "", find_calls, r);
  if (!status) status = visit_variables(r->snapshot, stage, r);
  if (!status) status = refuse_more(r);
  if (!status) status = read_place(r, &place);
  if (!status) status = read_history(r);
  if (!status) status = go(user, &place);
  if (!status) status = commit(r, &numbers, seed);
  if (!status) {
    hi_log(HELIO_LOG_INFO, "the training goes on from %s: epoch %d, step %lld (%lld in all)",
           hi_safetensors_path(r->file), place.epoch + 1, (long long)place.step, (long long)place.total_steps);
  }
  free(place.position);
  return status;
}

helio_status hi_snapshot_read(hi_snapshot *s, const char *folder, hi_snapshot_go *go, void *user) {
  int64_t step;
  reading r = {.snapshot = s, .file = hi_checkpoint_open_last(folder, &step)};
  if (!r.file) {
    helio_status failed = helio_error_pending();
    if (!failed) hi_log(HELIO_LOG_INFO, "there is no checkpoint in %s yet: the training begins", folder);
    return failed;
  }
  helio_scope pool = helio_pool_enter();
  helio_status status = read_all(&r, go, user);
  helio_pool_leave(&pool);
  for (int i = 0; i < r.count; i++) free(r.staged[i].data);
  free(r.staged);
  json_decref(r.training);
  hi_safetensors_close(r.file);
  return status;
}

helio_status hi_snapshot_refuse_others(const char *folder) {
  int64_t step;
  hi_safetensors *file = hi_checkpoint_open_last(folder, &step);
  if (!file) return helio_error_pending();
  hi_fail(
      HELIO_WRONG_STATE,
      "%s is there already, of another training: resume it (.resume, --resume), or give a folder without checkpoints",
      hi_safetensors_path(file));
  hi_safetensors_close(file);
  return helio_error_pending();
}
