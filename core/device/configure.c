/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of devices and memory, by call or by environment. They may change until the first use of what they concern.
 */
#include <stdlib.h>
#include <string.h>

#include "device/topology.h"
#include "runtime/environment.h"
#include "runtime/error.h"

static hi_physical *physical_named(const char *text) {
  hi_name name;
  int count;
  hi_physical *const *physicals = hi_physicals(&count);
  if (!text || !hi_name_parse(text, &name)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "'%s' is not the name of a device; names look like cpu:0 or /physical_device:GPU:1",
            text ? text : "(null)");
    return NULL;
  }
  hi_physical *physical = hi_physical_find(&name);
  if (!physical) {
    hi_fail(HELIO_NO_DEVICE, "there is no physical device '%s'; there are %d, the first is %s", text, count,
            physicals[0]->name);
  }
  return physical;
}

/* ---- each setting, the lock held ---- */

/* Is the last of so many one of those before? */
static helio_status check_last(hi_physical *const *chosen, int count) {
  for (int i = 0; i < count - 1; i++) {
    if (chosen[i] == chosen[count - 1]) return hi_fail(HELIO_INVALID_ARGUMENT, "%s is named twice", chosen[i]->name);
  }
  return HELIO_OK;
}

static helio_status show(hi_physical *const *chosen, int count) {
  if (hi_topology_used(0)) {
    return hi_fail(HELIO_WRONG_STATE, "Visible devices cannot be modified after being initialized");
  }
  for (int i = 1; i <= count; i++) {
    if (check_last(chosen, i)) return helio_error_pending();
  }
  return hi_topology_show(chosen, count);
}

static helio_status split(hi_physical *physical, const uint64_t *limits, int64_t count) {
  if (count < 1 || count > 1024) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s cannot be cut into %lld logical devices, only into 1 to 1024",
                   physical->name, (long long)count);
  }
  if (hi_topology_used(physical->description.device_class)) {
    return hi_fail(HELIO_WRONG_STATE, "Virtual devices cannot be modified after being initialized (%s)",
                   physical->name);
  }
  uint64_t *copy = NULL;
  if (limits) {
    copy = malloc((size_t)count * sizeof *copy);
    if (!copy) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the limits of %s", physical->name);
    memcpy(copy, limits, (size_t)count * sizeof *copy);
  }
  free(physical->limits);
  physical->limits = copy;
  physical->logical_count = (int)count;
  return HELIO_OK;
}

/* The settings of memory of one device, or of all. NULL: leave as it is. */
typedef struct memory_change {
  const bool *growth;
  const uint64_t *limit;
  const double *fraction;
} memory_change;

static helio_status change_memory(const char *device, const memory_change *change) {
  int count;
  hi_physical *const *physicals = hi_physicals(&count);
  hi_physical *only = device ? physical_named(device) : NULL;
  if (device && !only) return helio_error_pending();
  for (int i = 0; i < count; i++) {
    if ((!only || physicals[i] == only) && physicals[i]->opened > 0) {
      return hi_fail(HELIO_WRONG_STATE, "Physical devices cannot be modified after being initialized (%s)",
                     physicals[i]->name);
    }
  }
  for (int i = 0; i < count; i++) {
    if (only && physicals[i] != only) continue;
    if (change->growth) physicals[i]->growth = *change->growth;
    if (change->limit) physicals[i]->limit = *change->limit;
  }
  if (change->fraction) hi_topology_set_fraction(*change->fraction);
  return HELIO_OK;
}

/* ---- by call ---- */

/* Begins a call that changes settings; NULL, with the error set, if nothing may be changed. */
static hi_saved *begin(void) {
  hi_topology_lock();
  hi_saved *saved = hi_topology_save();
  if (!saved) hi_topology_unlock();
  return saved;
}

/* Ends it: the new settings take effect or, if that fails, are what they were. */
static helio_status apply(hi_saved *saved, helio_status status) {
  if (!status) status = hi_topology_rebuild();
  (status ? hi_topology_restore : hi_topology_forget)(saved);
  hi_topology_unlock();
  return status;
}

static helio_status apply_memory(const char *device, memory_change change) {
  hi_saved *saved = begin();
  return saved ? apply(saved, change_memory(device, &change)) : helio_error_pending();
}

helio_status helio_set_visible_devices(const char *const *names, int count) {
  helio_status status = hi_enter(__func__);
  if (status) return status;
  if (count < 0 || (count > 0 && !names)) return hi_fail(HELIO_INVALID_ARGUMENT, "%d devices without names", count);
  hi_physical **chosen = calloc((size_t)count + 1, sizeof *chosen);
  if (!chosen) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the list of devices");
  hi_saved *saved = begin();
  for (int i = 0; i < count && saved && !status; i++) {
    chosen[i] = physical_named(names[i]);
    if (!chosen[i]) status = helio_error_pending();
  }
  if (saved && !status) status = show(chosen, count);
  free(chosen);
  return saved ? apply(saved, status) : helio_error_pending();
}

helio_status helio_set_logical_devices(const char *name, const uint64_t *limits, int count) {
  helio_status status = hi_enter(__func__);
  if (status) return status;
  hi_saved *saved = begin();
  if (!saved) return helio_error_pending();
  hi_physical *physical = physical_named(name);
  return apply(saved, physical ? split(physical, limits, count) : helio_error_pending());
}

helio_status helio_set_memory_growth(const char *device, bool on) {
  helio_status status = hi_enter(__func__);
  return status ? status : apply_memory(device, (memory_change){.growth = &on});
}

helio_status helio_set_memory_limit(const char *device, uint64_t bytes) {
  helio_status status = hi_enter(__func__);
  return status ? status : apply_memory(device, (memory_change){.limit = &bytes});
}

helio_status helio_set_memory_fraction(double fraction) {
  helio_status status = hi_enter(__func__);
  if (status) return status;
  if (!(fraction > 0 && fraction <= 1)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "memory fraction %g is not above 0 and at most 1", fraction);
  }
  return apply_memory(NULL, (memory_change){.fraction = &fraction});
}

/* ---- by environment, while the library starts ---- */

static helio_status show_from_environment(void) {
  const char *text = hi_environment_text(HI_VISIBLE_DEVICES);
  hi_physical *chosen[64];
  int count = 0;
  if (!hi_environment_set(HI_VISIBLE_DEVICES) || strcmp(text, "all") == 0) return HELIO_OK;
  while (*text) {
    char name[HI_NAME_LENGTH];
    size_t span = strcspn(text, ",");
    if (span > 0) {
      if (span >= sizeof name || count == 64) return hi_fail(HELIO_INVALID_ARGUMENT, "the list is too long");
      memcpy(name, text, span);
      name[span] = 0;
      chosen[count] = physical_named(name);
      if (!chosen[count++]) return helio_error_pending();
    }
    text += span + (text[span] == ',');
  }
  return show(chosen, count);
}

/* "2" is a number of devices, "1024M,1024M" their limits. */
static helio_status split_as_written(hi_physical *physical, const char *text, size_t length) {
  uint64_t count, limits[64];
  int given = 0;
  if (hi_parse_number(text, length, &count) && count <= INT64_MAX) return split(physical, NULL, (int64_t)count);
  for (const char *end = text + length; text <= end;) {
    size_t span = strcspn(text, ",;");
    if (given == 64 || !hi_parse_size(text, span, true, &limits[given++])) {
      return hi_fail(HELIO_INVALID_ARGUMENT,
                     "'%.*s' is neither a number of devices, which stands alone, nor a size with a suffix, as 1024M",
                     (int)span, text);
    }
    text += span + 1;
  }
  return split(physical, limits, given);
}

static helio_status split_from_environment(void) {
  const char *text = hi_environment_text(HI_LOGICAL_DEVICES);
  hi_physical *chosen[64];
  int count = 0;
  while (*text) {
    char name[HI_NAME_LENGTH];
    size_t span = strcspn(text, ";"), length = strcspn(text, "=;");
    if (span > 0) {
      if (length == span || length >= sizeof name) {
        return hi_fail(HELIO_INVALID_ARGUMENT, "'%.*s' is not of the form gpu:0=1024M,1024M", (int)span, text);
      }
      if (count == 64) return hi_fail(HELIO_INVALID_ARGUMENT, "the list is too long");
      memcpy(name, text, length);
      name[length] = 0;
      hi_physical *physical = chosen[count++] = physical_named(name);
      if (!physical || check_last(chosen, count)) return helio_error_pending();
      helio_status status = split_as_written(physical, text + length + 1, span - length - 1);
      if (status) return status;
    }
    text += span + (text[span] == ';');
  }
  return HELIO_OK;
}

/* What is wrong came from no call: only the variable's name leads to where it was set. */
static helio_status told_of(hi_setting setting, helio_status status) {
  if (status) hi_error_prefix("%s: ", hi_environment_name(setting));
  return status;
}

helio_status hi_configure_from_environment(void) {
  bool growth = hi_environment_number(HI_MEMORY_GROWTH);
  uint64_t limit = hi_environment_number(HI_MEMORY_LIMIT);
  double fraction = hi_environment_fraction(HI_MEMORY_FRACTION);
  memory_change change = {.growth = &growth, .limit = &limit, .fraction = &fraction};
  helio_status status = change_memory(NULL, &change);
  if (!status) status = told_of(HI_VISIBLE_DEVICES, show_from_environment());
  return status ? status : told_of(HI_LOGICAL_DEVICES, split_from_environment());
}

/* ---- looking and waiting ---- */

helio_status helio_memory_info_sized(const char *name, helio_memory *info, size_t size) {
  helio_status status = hi_enter(__func__);
  if (status) return status;
  hi_device *device = hi_device_named(name);
  if (!device) return helio_error_pending();
  if (!info || size < sizeof info->size) return hi_fail(HELIO_INVALID_ARGUMENT, "info is NULL or too small");
  helio_memory whole = {.limit = device->info.memory_limit};
  if (atomic_load_explicit(&device->open, memory_order_acquire)) hi_arena_info(device->arena, &whole);
  whole.size = size < sizeof whole ? size : sizeof whole;
  memset(info, 0, size);
  memcpy(info, &whole, whole.size);
  return HELIO_OK;
}

bool helio_device_lost(const char *name) {
  if (hi_enter(__func__)) return false;
  const hi_device *device = hi_device_named(name);
  return device && hi_device_lost(device);
}

helio_status helio_synchronize(const char *name) {
  helio_status status = hi_enter(__func__);
  if (status) return status;
  if (name) {
    hi_device *device = hi_device_named(name);
    if (!device) return helio_error_pending();
    status = hi_device_refuses(device);
    return status ? hi_fail(status, "%s: %s", device->name, hi_reason(status)) : hi_device_synchronize(device);
  }
  int count;
  hi_device *const *devices = hi_devices(&count);
  for (int i = 0; i < count; i++) {
    helio_status one = hi_device_synchronize(devices[i]);
    if (!status) status = one;
  }
  return status;
}
