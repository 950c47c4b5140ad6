/* SPDX-License-Identifier: Apache-2.0 */
/* Which collective serves a set of devices. */
#include "strategy/collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/environment.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/nearest.h"
#include "runtime/plugins.h"
#include "strategy/reduce_to_one.h"

enum { MOST_COLLECTIVES = 32 };

static const hi_collective built_in = {.name = "reduce-to-one", .table = &hi_reduce_to_one_table};

/* All there are, in order of names, so that the first of equals is the first by name. */
static int list_all(hi_collective list[MOST_COLLECTIVES]) {
  int plugin_count, count = 0;
  hi_plugin *const *plugins = hi_collectives(&plugin_count);
  list[count++] = built_in;
  for (int i = 0; i < plugin_count && count < MOST_COLLECTIVES; i++) {
    hi_collective next = {plugins[i]->report.name, &plugins[i]->collective, plugins[i]->state, plugins[i]};
    int at = count++;
    for (; at > 0 && strcmp(list[at - 1].name, next.name) > 0; at--) list[at] = list[at - 1];
    list[at] = next;
  }
  return count;
}

typedef struct candidates {
  const helio_member **members;
  size_t count;
} candidates;

static helio_status ask(const hi_collective *collective, const candidates *devices, helio_collective_offer *offer) {
  *offer = (helio_collective_offer){.size = sizeof *offer};
  hi_reason_clear();
  return collective->table->offer(collective->state, devices->members, devices->count, offer);
}

static void take(hi_collective_choice *choice, const hi_collective *collective, const helio_collective_offer *offer) {
  choice->collective = *collective;
  choice->score = offer->score;
  choice->types = offer->types;
  choice->flags = offer->flags;
}

static void note_refusal(hi_collective_choice *choice, const char *name, const char *reason) {
  size_t length = strlen(choice->refusals);
  snprintf(choice->refusals + length, sizeof choice->refusals - length, "%s: %s\n", name, reason);
}

/* Behind the one that has failed already, if there is one, in the order in which they are chosen. */
static bool is_left(const hi_collective_choice *failed, const char *name, const helio_collective_offer *offer) {
  if (!failed || offer->score < failed->score) return true;
  return offer->score == failed->score && strcmp(name, failed->collective.name) > 0;
}

/* A failure that is no refusal is one too: another collective may do better. The built-in one never refuses. That one
 * for other devices does not suit these is no news, nor is what was refused before another one failed. */
static helio_status choose_best(const hi_collective *list, int count, const candidates *devices,
                                const hi_collective_choice *failed, hi_collective_choice *choice) {
  for (int i = 0; i < count; i++) {
    helio_collective_offer offer;
    helio_status status = ask(&list[i], devices, &offer);
    if (status == HELIO_NO_DEVICE) {
      hi_log(HELIO_LOG_DEBUG, "%s: %s", list[i].name, hi_reason(status));
    } else if (status && !failed) {
      note_refusal(choice, list[i].name, hi_reason(status));
    } else if (!status && is_left(failed, list[i].name, &offer)) {
      if (!choice->collective.table || offer.score > choice->score) take(choice, &list[i], &offer);
    }
  }
  if (choice->collective.table) return HELIO_OK;
  return hi_fail(HELIO_NOT_SUPPORTED, "there is no collective for these devices but %s", failed->collective.name);
}

static void unknown(const hi_collective *list, int count, const char *name) {
  const char *names[MOST_COLLECTIVES];
  char known[600] = "";
  size_t length = 0;
  for (int i = 0; i < count && length < sizeof known; i++) {
    names[i] = list[i].name;
    length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", i ? ", " : "", list[i].name);
  }
  const char *near = hi_nearest(name, names, count);
  hi_fail(HELIO_INVALID_ARGUMENT, "there is no collective %s%s%s%s There are: %s", name, near ? "; did you mean " : ".",
          near ? near : "", near ? "?" : "", known);
}

/* NULL with the error set: there is none such. */
static const hi_collective *find(const hi_collective *list, int count, const char *name) {
  for (int i = 0; i < count; i++) {
    if (strcasecmp(list[i].name, name) == 0) return &list[i];
  }
  unknown(list, count, name);
  return NULL;
}

static helio_status choose_named(const hi_collective *list, int count, const candidates *devices, const char *name,
                                 hi_collective_choice *choice) {
  const hi_collective *found = find(list, count, name);
  if (!found) return helio_error_pending();
  helio_collective_offer offer;
  helio_status status = ask(found, devices, &offer);
  if (status) {
    return hi_fail(status == HELIO_NO_DEVICE ? HELIO_NOT_SUPPORTED : status,
                   "the collective %s cannot serve these devices: %s", found->name, hi_reason(status));
  }
  take(choice, found, &offer);
  return HELIO_OK;
}

/* Two ranks on one device would wait for each other in one stream. */
static helio_status use_all(hi_device *const *devices, int count) {
  for (int i = 0; i < count; i++) {
    for (int k = 0; k < i; k++) {
      if (devices[k] != devices[i]) continue;
      return hi_fail(HELIO_INVALID_ARGUMENT, "%s stands twice among the devices of a group", devices[i]->name);
    }
    helio_status status = hi_device_use(devices[i]);
    if (status) return status;
  }
  return HELIO_OK;
}

static bool automatic(const char *name) {
  return !name || !*name || strcasecmp(name, "auto") == 0;
}

/* `failed`: see choose_best(); NULL: none has. */
static helio_status choose(hi_device *const *devices, int count, const char *name, const hi_collective_choice *failed,
                           hi_collective_choice *choice) {
  hi_collective list[MOST_COLLECTIVES];
  if (helio_error_pending()) return helio_error_pending();
  if (count < 1) return hi_fail(HELIO_INVALID_ARGUMENT, "a group needs a device");
  helio_status status = use_all(devices, count);
  if (status) return status;
  candidates members = {calloc((size_t)count, sizeof(helio_member *)), (size_t)count};
  if (!members.members) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a list of %d devices", count);
  for (int i = 0; i < count; i++) members.members[i] = &devices[i]->member;
  int known = list_all(list);
  hi_collective_choice made = {.automatic = automatic(name)};
  status = made.automatic ? choose_best(list, known, &members, failed, &made)
                          : choose_named(list, known, &members, name, &made);
  free(members.members);
  if (!status) *choice = made;
  return status;
}

helio_status hi_collective_choose(hi_device *const *devices, int count, const char *name,
                                  hi_collective_choice *choice) {
  return choose(devices, count, automatic(name) ? hi_environment_text(HI_COLLECTIVE) : name, NULL, choice);
}

helio_status hi_collective_choose_another(hi_device *const *devices, int count, const char *reason,
                                          hi_collective_choice *choice) {
  hi_collective_choice other;
  char line[sizeof choice->refusals];
  helio_status status = choose(devices, count, NULL, choice, &other);
  if (status) return status;
  snprintf(line, sizeof line, "%.*s; %s takes its place", (int)strcspn(reason, "\n"), reason, other.collective.name);
  memcpy(other.refusals, choice->refusals, sizeof other.refusals);
  note_refusal(&other, choice->collective.name, line);
  other.stands_in = true;
  *choice = other;
  return HELIO_OK;
}

helio_status hi_collective_check_name(const char *name) {
  hi_collective list[MOST_COLLECTIVES];
  int known = list_all(list);
  if (automatic(name)) name = hi_environment_text(HI_COLLECTIVE);
  if (automatic(name)) return HELIO_OK;
  return find(list, known, name) ? HELIO_OK : helio_error_pending();
}

const char *helio_collective_name(int index) {
  hi_collective list[MOST_COLLECTIVES];
  if (hi_enter(__func__)) return NULL;
  return index >= 0 && index < list_all(list) ? list[index].name : NULL;
}

helio_status hi_collective_new_id(const hi_collective_choice *choice, void *id) {
  if (helio_error_pending()) return helio_error_pending();
  const hi_collective *collective = &choice->collective;
  hi_reason_clear();
  helio_status status = collective->table->new_id(collective->state, id);
  return status ? hi_fail(status, "a new group of %s: %s", collective->name, hi_reason(status)) : HELIO_OK;
}
