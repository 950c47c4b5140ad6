/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/placement.h"

#include <stdatomic.h>
#include <string.h>

#include "device/topology.h"
#include "runtime/environment.h"
#include "runtime/error.h"
#include "runtime/log.h"

enum { DEEPEST = 64 };

typedef struct scope {
  hi_request request;
  unsigned version; /* of the topology that request.device was found in */
} scope;

static _Thread_local struct {
  scope scopes[DEEPEST];
  int depth;
} mine;

static atomic_bool soft, strict, log_placement;
static atomic_ullong operations, bytes_copied, input_copies, input_bytes;
static atomic_ullong warned[(HI_OPERATION_COUNT + 63) / 64]; /* a bit for each operation */

void hi_placement_start(void) {
  atomic_store(&soft, hi_environment_number(HI_SOFT_PLACEMENT));
  atomic_store(&strict, hi_environment_number(HI_STRICT_PLACEMENT));
  atomic_store(&log_placement, hi_environment_number(HI_LOG_PLACEMENT));
  atomic_store(&operations, 0);
  atomic_store(&bytes_copied, 0);
  atomic_store(&input_copies, 0);
  atomic_store(&input_bytes, 0);
  for (size_t i = 0; i < sizeof warned / sizeof warned[0]; i++) atomic_store(&warned[i], 0);
}

/* The scope counts even if its name is wrong or an error is pending: what is inside must not run elsewhere. */
helio_scope helio_device_enter(const char *name) {
  helio_scope outer = {.open = 1, .depth = mine.depth};
  bool blocked = hi_enter_unstarted(__func__);
  if (mine.depth == DEEPEST) {
    if (!blocked) hi_fail(HELIO_WRONG_STATE, "more than %d device scopes inside each other", DEEPEST);
    return outer;
  }
  scope *s = &mine.scopes[mine.depth++];
  memset(s, 0, sizeof *s);
  s->request.named = name != NULL;
  if (name && !hi_name_parse(name, &s->request.name) && !blocked) {
    hi_fail(HELIO_INVALID_ARGUMENT, "'%s' is not the name of a device; names look like cpu:0 or /device:GPU:1", name);
  }
  return outer;
}

helio_scope hi_placement_enter(hi_device *device) {
  helio_scope outer = {.open = 1, .depth = mine.depth};
  if (mine.depth == DEEPEST) return outer; /* it runs where the innermost scope says */
  scope *s = &mine.scopes[mine.depth++];
  *s = (scope){.request = {.named = true, .lenient = true, .device = device}, .version = hi_topology_version()};
  hi_name_parse(device->name, &s->request.name);
  return outer;
}

void helio_device_leave(helio_scope *outer) {
  if (outer) mine.depth = outer->depth;
}

hi_request hi_placement_request(void) {
  if (mine.depth == 0) return (hi_request){0};
  scope *s = &mine.scopes[mine.depth - 1];
  unsigned version = hi_topology_version();
  if (s->request.named && s->version != version) {
    s->request.device = hi_device_find(&s->request.name);
    s->version = version;
  }
  return s->request;
}

hi_device *hi_placement_for_data(hi_device *otherwise) {
  hi_request request = hi_placement_request();
  hi_device *device = request.device;
  if (request.named && !device && !hi_placement_soft()) {
    hi_device_unknown(&request.name, false);
    return NULL;
  }
  if (!device) device = otherwise ? otherwise : hi_device_first();
  return hi_device_use(device) ? NULL : device;
}

bool hi_placement_soft(void) {
  return atomic_load_explicit(&soft, memory_order_relaxed);
}

void hi_placement_log(const hi_row *row, const hi_device *device) {
  if (!atomic_load_explicit(&log_placement, memory_order_relaxed)) return;
  hi_log_bare("Executing op %s in device %s", row->info.label, device->name);
}

helio_status hi_placement_elsewhere(const hi_row *row, const hi_device *device, const char *preferred,
                                    const char *reason) {
  if (atomic_load_explicit(&strict, memory_order_relaxed)) {
    return hi_fail(HELIO_NOT_SUPPORTED, "%s would run on %s instead of %s: %s. HELIO_STRICT_PLACEMENT forbids that",
                   row->info.label, device->name, preferred, reason);
  }
  atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed);
  unsigned long long bit = 1ull << (row->operation & 63);
  if (!(atomic_fetch_or_explicit(&warned[row->operation >> 6], bit, memory_order_relaxed) & bit)) {
    hi_log(HELIO_LOG_WARNING, "%s runs on %s instead of %s: %s", row->info.label, device->name, preferred, reason);
  }
  return HELIO_OK;
}

void hi_placement_copied(size_t bytes, bool elsewhere) {
  atomic_fetch_add_explicit(&input_copies, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&input_bytes, bytes, memory_order_relaxed);
  if (elsewhere) atomic_fetch_add_explicit(&bytes_copied, bytes, memory_order_relaxed);
}

static helio_status set(atomic_bool *flag, bool on, const char *function) {
  helio_status status = hi_enter(function);
  if (!status) atomic_store(flag, on);
  return status;
}

helio_status helio_set_soft_placement(bool on) {
  return set(&soft, on, __func__);
}

helio_status helio_set_strict_placement(bool on) {
  return set(&strict, on, __func__);
}

helio_status helio_set_log_placement(bool on) {
  return set(&log_placement, on, __func__);
}

helio_placement helio_placement_counts(void) {
  return (helio_placement){.operations = atomic_load(&operations),
                           .bytes_copied = atomic_load(&bytes_copied),
                           .input_copies = atomic_load(&input_copies),
                           .input_bytes = atomic_load(&input_bytes)};
}
