/* SPDX-License-Identifier: Apache-2.0 */
#include "device/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "device/guard.h"
#include "device/name.h"
#include "runtime/environment.h"
#include "runtime/error.h"
#include "runtime/leaks.h"
#include "runtime/log.h"
#include "runtime/machine.h"

/* A list of devices as users see it, in all and by type. */
typedef struct lists {
  const helio_device **all, **cpu, **gpu;
  int all_count, cpu_count, gpu_count;
} lists;

/* The logical devices at a time. A new one is published when settings change; old ones stay until the end, because
 * threads may be looking at them. */
typedef struct snapshot {
  hi_device **devices;
  int count;
  lists lists;
  struct snapshot *older;
} snapshot;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything below but the pointer `current` */
static hi_physical **physicals, **visible;
static int physical_count, visible_count;
static lists physical_lists;
static double fraction = 1;
static int cores;       /* granted to the process, as read at the start */
static hi_device *made; /* all that were made, whatever snapshots they stand in */
static _Atomic(snapshot *) current;
static atomic_uint version;

void hi_topology_lock(void) {
  pthread_mutex_lock(&lock);
}

void hi_topology_unlock(void) {
  pthread_mutex_unlock(&lock);
}

void hi_topology_set_fraction(double value) {
  fraction = value;
}

static const char *class_name(uint32_t device_class) {
  return device_class == HELIO_CLASS_CPU ? "CPU" : "GPU";
}

/* ---- lists for users ---- */

static bool lists_allocate(lists *l, int count) {
  size_t room = (size_t)count + 1;
  l->all = calloc(room, sizeof *l->all);
  l->cpu = calloc(room, sizeof *l->cpu);
  l->gpu = calloc(room, sizeof *l->gpu);
  return l->all && l->cpu && l->gpu;
}

static void lists_free(lists *l) {
  free(l->all);
  free(l->cpu);
  free(l->gpu);
  memset(l, 0, sizeof *l);
}

static void lists_append(lists *l, const helio_device *device) {
  l->all[l->all_count++] = device;
  if (strcmp(device->type, "CPU") == 0) {
    l->cpu[l->cpu_count++] = device;
  } else {
    l->gpu[l->gpu_count++] = device;
  }
}

static const helio_device *const *lists_choose(const lists *l, const char *type, int *count) {
  static const helio_device *const none[] = {NULL};
  if (!type || strcasecmp(type, "CPU") == 0 || strcasecmp(type, "GPU") == 0) {
    bool cpu = type && (type[0] | 0x20) == 'c';
    *count = !type ? l->all_count : cpu ? l->cpu_count : l->gpu_count;
    return !type ? l->all : cpu ? l->cpu : l->gpu;
  }
  *count = 0;
  return none;
}

/* ---- physical devices ---- */

static helio_device describe(const hi_physical *physical) {
  const helio_device_description *d = &physical->description;
  return (helio_device){.type = class_name(d->device_class),
                        .backend = physical->plugin->report.name,
                        .description = d->name,
                        .vendor = d->vendor ? d->vendor : "",
                        .architecture = d->architecture ? d->architecture : "",
                        .native_api = d->native_api ? d->native_api : "none",
                        .bus_id = d->bus_id ? d->bus_id : "",
                        .memory = d->memory,
                        .compute_units = (int)d->compute_units,
                        .properties = d->properties};
}

/* NULL if the description can be worked with. */
static const char *wrong_with(const helio_device_description *d) {
  if (d->device_class != HELIO_CLASS_CPU && d->device_class != HELIO_CLASS_GPU) return "is of an unknown class";
  if (!d->name) return "has no name";
  if (d->alignment < 64 || d->alignment & (d->alignment - 1)) return "has an alignment that is no power of two from 64";
  return NULL;
}

static bool seen_through_another(const hi_physical *physical) {
  const char *bus_id = physical->info.bus_id;
  for (int i = 0; *bus_id && i < physical_count; i++) {
    if (physicals[i]->plugin == physical->plugin || strcmp(physicals[i]->info.bus_id, bus_id) != 0) continue;
    hi_log(HELIO_LOG_INFO, "%s device %u at %s is used through %s", physical->plugin->report.name,
           physical->plugin_index, bus_id, physicals[i]->plugin->report.name);
    return true;
  }
  return false;
}

static int count_before(const hi_physical *physical, bool by_backend) {
  int count = 0;
  for (int i = 0; i < physical_count && physicals[i] != physical; i++) {
    bool same = by_backend ? physicals[i]->plugin == physical->plugin
                           : physicals[i]->description.device_class == physical->description.device_class;
    count += same;
  }
  return count;
}

static helio_status add_physical(hi_plugin *plugin, uint32_t index) {
  hi_physical **grown = realloc(physicals, ((size_t)physical_count + 1) * sizeof *physicals);
  if (grown) physicals = grown;
  hi_physical *p = grown ? calloc(1, sizeof *p) : NULL;
  if (!p) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the list of devices");
  p->plugin = plugin;
  p->plugin_index = index;
  p->description.size = sizeof p->description;
  p->logical_count = 1;
  p->growth = true;
  hi_reason_clear();
  helio_status status = plugin->devices.describe(plugin->state, index, &p->description);
  const char *wrong = status ? hi_reason(status) : wrong_with(&p->description);
  if (wrong) hi_log(HELIO_LOG_WARNING, "%s device %u is not used: %s", plugin->report.name, index, wrong);
  if (!wrong) p->info = describe(p);
  if (wrong || seen_through_another(p)) {
    free(p);
    return HELIO_OK;
  }
  physicals[physical_count++] = p;
  return HELIO_OK;
}

/* All devices of all backends, in the order of the backends. */
static helio_status collect_physicals(void) {
  int backend_count;
  hi_plugin *const *backends = hi_backends(&backend_count);
  for (int i = 0; i < backend_count; i++) {
    uint32_t count = 0;
    hi_guard(backends[i]);
    hi_reason_clear();
    helio_status status = backends[i]->devices.count(backends[i]->state, &count);
    if (status)
      hi_log(HELIO_LOG_WARNING, "%s cannot count its devices: %s", backends[i]->report.name, hi_reason(status));
    for (uint32_t index = 0; !status && index < count; index++) {
      status = add_physical(backends[i], index);
      if (status) return status;
    }
  }
  return HELIO_OK;
}

static bool is_cpu(const hi_physical *physical) {
  return physical->description.device_class == HELIO_CLASS_CPU;
}

bool hi_physical_integrated(const hi_physical *physical) {
  return physical->description.capabilities & HELIO_CAPABLE_INTEGRATED;
}

/* Accelerators first, those that are part of a processor behind others. */
static int rank_of(const hi_physical *physical) {
  return is_cpu(physical) ? 2 : hi_physical_integrated(physical);
}

/* Else as they were found; where the user has ordered the backends, only within each. */
static bool goes_before(const hi_physical *p, const hi_physical *other) {
  return rank_of(p) < rank_of(other) && (p->plugin == other->plugin || !hi_backends_ordered());
}

static void order_physicals(void) {
  for (int i = 1; i < physical_count; i++) {
    hi_physical *p = physicals[i];
    int at = i;
    for (; at > 0 && goes_before(p, physicals[at - 1]); at--) physicals[at] = physicals[at - 1];
    physicals[at] = p;
  }
}

static void number_physicals(void) {
  for (int i = 0; i < physical_count; i++) {
    hi_physical *p = physicals[i];
    p->id = (uint64_t)i;
    p->info.index = count_before(p, false);
    p->info.backend_index = count_before(p, true);
    hi_name_print_physical(p->info.type, p->info.index, p->name);
    p->info.name = p->info.physical = p->name;
  }
}

static helio_status find_physicals(void) {
  helio_status status = collect_physicals();
  if (status) return status;
  order_physicals();
  number_physicals();
  if (physical_count == 0) return hi_fail(HELIO_NO_DEVICE, "no backend has a usable device");
  if (!lists_allocate(&physical_lists, physical_count)) {
    return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the list of devices");
  }
  for (int i = 0; i < physical_count; i++) lists_append(&physical_lists, &physicals[i]->info);
  return HELIO_OK;
}

hi_physical *const *hi_physicals(int *count) {
  *count = physical_count;
  return physicals;
}

hi_physical *hi_physical_find(const hi_name *name) {
  for (int i = 0; i < physical_count && !name->remote; i++) {
    const helio_device *info = &physicals[i]->info;
    if ((strcasecmp(info->type, name->kind) == 0 && info->index == name->index) ||
        (strcasecmp(info->backend, name->kind) == 0 && info->backend_index == name->index)) {
      return physicals[i];
    }
  }
  return NULL;
}

helio_status hi_topology_show(hi_physical *const *chosen, int count) {
  hi_physical **list = calloc((size_t)count + (size_t)physical_count, sizeof *list);
  if (!list) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the list of devices");
  int shown = 0;
  bool host = false;
  for (int i = 0; i < count; i++) {
    list[shown++] = chosen[i];
    host = host || chosen[i]->plugin->is_host;
  }
  for (int i = 0; i < physical_count && !host; i++) {
    if (physicals[i]->plugin->is_host) list[shown++] = physicals[i];
  }
  free(visible);
  visible = list;
  visible_count = shown;
  return HELIO_OK;
}

/* ---- settings as they were ---- */

/* Those of a physical device. */
typedef struct saved_settings {
  bool growth;
  uint64_t limit, *limits;
  int logical_count;
} saved_settings;

struct hi_saved {
  saved_settings *each; /* of `physicals` */
  hi_physical **visible;
  int visible_count;
  double fraction;
};

static bool save_settings(saved_settings *to, const hi_physical *from) {
  size_t bytes = (size_t)from->logical_count * sizeof *from->limits;
  *to = (saved_settings){from->growth, from->limit, NULL, from->logical_count};
  if (!from->limits) return true;
  to->limits = malloc(bytes);
  if (to->limits) memcpy(to->limits, from->limits, bytes);
  return to->limits;
}

hi_saved *hi_topology_save(void) {
  hi_saved *saved = calloc(1, sizeof *saved);
  bool whole = saved;
  if (saved) {
    saved->each = calloc((size_t)physical_count, sizeof *saved->each);
    saved->visible = calloc((size_t)visible_count, sizeof *saved->visible);
    saved->visible_count = visible_count;
    saved->fraction = fraction;
    whole = saved->each && saved->visible;
  }
  for (int i = 0; whole && i < physical_count; i++) whole = save_settings(&saved->each[i], physicals[i]);
  if (whole) {
    memcpy(saved->visible, visible, (size_t)visible_count * sizeof *visible);
    return saved;
  }
  hi_topology_forget(saved);
  hi_fail(HELIO_OUT_OF_MEMORY, "no memory to change settings");
  return NULL;
}

void hi_topology_restore(hi_saved *saved) {
  for (int i = 0; i < physical_count; i++) {
    hi_physical *p = physicals[i];
    if (p->opened > 0) continue; /* nothing of it can have changed, and it is read without the lock */
    uint64_t *limits = p->limits;
    p->growth = saved->each[i].growth;
    p->limit = saved->each[i].limit;
    p->limits = saved->each[i].limits;
    p->logical_count = saved->each[i].logical_count;
    saved->each[i].limits = limits;
  }
  hi_physical **list = visible;
  visible = saved->visible;
  saved->visible = list;
  visible_count = saved->visible_count;
  fraction = saved->fraction;
  hi_topology_forget(saved);
}

void hi_topology_forget(hi_saved *saved) {
  if (!saved) return;
  for (int i = 0; saved->each && i < physical_count; i++) free(saved->each[i].limits);
  free(saved->each);
  free(saved->visible);
  free(saved);
}

/* ---- logical devices ---- */

bool hi_topology_used(uint32_t device_class) {
  for (int i = 0; i < physical_count; i++) {
    bool concerned = !device_class || physicals[i]->description.device_class == device_class;
    if (concerned && physicals[i]->opened > 0) return true;
  }
  return false;
}

static uint64_t smaller_limit(uint64_t a, uint64_t b) {
  return a == 0 || (b != 0 && b < a) ? b : a;
}

static uint64_t limit_of(const hi_physical *physical, int logical_index) {
  uint64_t limit = physical->limit;
  if (physical->limits) limit = smaller_limit(limit, physical->limits[logical_index]);
  if (fraction < 1) {
    double share = fraction * (double)physical->description.memory / physical->logical_count;
    limit = smaller_limit(limit, (uint64_t)share);
  }
  return limit;
}

static hi_device *in_use(const hi_physical *physical, int logical_index) {
  snapshot *s = atomic_load(&current);
  for (int i = 0; s && i < s->count; i++) {
    hi_device *device = s->devices[i];
    if (device->physical == physical && device->logical_index == logical_index && device->used) return device;
  }
  return NULL;
}

static void snapshot_free(snapshot *s) {
  lists_free(&s->lists);
  free(s->devices);
  free(s);
}

/* Adds the next logical device to a snapshot, numbered by those before it. */
static bool snapshot_add(snapshot *s, hi_physical *physical, int logical_index) {
  hi_device *device = in_use(physical, logical_index);
  if (!device) {
    device = hi_device_new(physical, logical_index);
    if (!device) return false;
    device->next = made;
    made = device;
    int backend_index = 0;
    for (int i = 0; i < s->count; i++) backend_index += s->devices[i]->physical->plugin == physical->plugin;
    device->info = physical->info;
    device->info.index = is_cpu(physical) ? s->lists.cpu_count : s->lists.gpu_count;
    device->info.backend_index = backend_index;
    device->info.memory_limit = limit_of(physical, logical_index);
    hi_name_print(device->info.type, device->info.index, device->name);
    device->info.name = device->name;
  }
  s->devices[s->count++] = device;
  lists_append(&s->lists, &device->info);
  return true;
}

helio_status hi_topology_rebuild(void) {
  int count = 0;
  for (int i = 0; i < visible_count; i++) count += visible[i]->logical_count;
  snapshot *s = calloc(1, sizeof *s);
  if (s) s->devices = calloc((size_t)count + 1, sizeof *s->devices);
  if (!s || !s->devices || !lists_allocate(&s->lists, count)) {
    if (s) snapshot_free(s);
    return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the list of devices");
  }
  for (int i = 0; i < visible_count; i++) {
    for (int j = 0; j < visible[i]->logical_count; j++) {
      if (snapshot_add(s, visible[i], j)) continue;
      snapshot_free(s);
      return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the list of devices");
    }
  }
  snapshot *old = atomic_load(&current);
  for (int i = 0; old && i < old->count; i++) {
    if (!old->devices[i]->used) old->devices[i]->retired = true;
  }
  s->older = old;
  atomic_store_explicit(&current, s, memory_order_release);
  atomic_fetch_add_explicit(&version, 1, memory_order_release);
  return HELIO_OK;
}

unsigned hi_topology_version(void) {
  return atomic_load_explicit(&version, memory_order_acquire);
}

int hi_topology_cores(void) {
  return cores;
}

static int threads_of_process(void) {
  uint64_t asked = hi_environment_number(HI_NUM_THREADS);
  return asked > 0 ? (int)asked : cores;
}

helio_status hi_topology_first_use(hi_device *device, hi_device_settings *settings) {
  hi_physical *physical = device->physical;
  helio_status status = HELIO_OK;
  pthread_mutex_lock(&lock);
  if (device->retired) {
    status = hi_fail(HELIO_WRONG_STATE, "%s was replaced when the devices were configured anew", device->name);
  } else {
    int all = threads_of_process(), count = physical->logical_count;
    int share = all / count + (device->logical_index < all % count);
    bool crowded = all > cores || count > all;
    *settings = (hi_device_settings){.growth = physical->growth,
                                     .limit = device->info.memory_limit,
                                     .sharers = count - physical->opened,
                                     .threads = !is_cpu(physical) ? 0
                                                : share > 0       ? (uint32_t)share
                                                                  : 1,
                                     .spin_us = crowded ? 0 : (uint32_t)hi_environment_number(HI_SPIN_US)};
    physical->opened++;
    device->used = true;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

void hi_topology_no_use(hi_device *device) {
  pthread_mutex_lock(&lock);
  device->physical->opened--;
  device->used = false;
  pthread_mutex_unlock(&lock);
}

hi_device *const *hi_devices(int *count) {
  snapshot *s = atomic_load_explicit(&current, memory_order_acquire); /* NULL: the library has ended */
  *count = s ? s->count : 0;
  return s ? s->devices : NULL;
}

hi_device *hi_device_first(void) {
  int count;
  hi_device *const *devices = hi_devices(&count);
  for (int i = 0; i < count; i++) {
    if (!hi_device_lost(devices[i])) return devices[i];
  }
  return devices[0];
}

hi_device *hi_device_host(void) {
  int count;
  hi_device *const *devices = hi_devices(&count);
  hi_device *found = NULL;
  for (int i = 0; i < count; i++) {
    if (strcmp(devices[i]->info.type, "CPU") != 0) continue;
    if (!hi_device_lost(devices[i])) return devices[i];
    if (!found) found = devices[i];
  }
  return found ? found : hi_device_first();
}

hi_device *hi_device_find(const hi_name *name) {
  int count;
  hi_device *const *devices = hi_devices(&count);
  if (name->remote || name->physical) return NULL;
  for (int i = 0; i < count; i++) {
    const helio_device *info = &devices[i]->info;
    if (strcasecmp(info->type, name->kind) == 0 && info->index == name->index) return devices[i];
  }
  for (int i = 0; i < count; i++) { /* a backend's own numbers come second: "cpu" is a type first */
    const helio_device *info = &devices[i]->info;
    if (strcasecmp(info->backend, name->kind) == 0 && info->backend_index == name->index) return devices[i];
  }
  return NULL;
}

helio_status hi_device_unknown(const hi_name *name, bool soft_placement) {
  char full[HI_NAME_LENGTH], types[32] = "", all[900] = "";
  int count;
  size_t length = 0;
  hi_device *const *devices = hi_devices(&count);
  if (name->remote) return hi_fail(HELIO_NO_DEVICE, "the only job is /job:localhost/replica:0/task:0; unknown device.");
  if (name->physical) {
    return hi_fail(HELIO_NO_DEVICE,
                   "a physical device is not a place to run on, its logical ones are; unknown device.");
  }
  hi_name_print(name->kind, name->index, full);
  for (int i = 0; i < count; i++) {
    if (!strstr(types, devices[i]->info.type)) {
      snprintf(types + strlen(types), sizeof types - strlen(types), "%s%s", *types ? ", " : "", devices[i]->info.type);
    }
    if (length < sizeof all) {
      length += (size_t)snprintf(all + length, sizeof all - length, "%s%s", i ? ", " : "", devices[i]->name);
    }
  }
  return hi_fail(HELIO_NO_DEVICE,
                 "Could not satisfy device specification '%s'. enable_soft_placement=%d. Supported device types [%s]. "
                 "All available devices [%s]. %s unknown device.",
                 full, soft_placement, types, all, full);
}

hi_device *hi_device_named(const char *text) {
  hi_name name;
  if (!text || !hi_name_parse(text, &name)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "'%s' is not the name of a device; names look like cpu:0 or /device:GPU:1",
            text ? text : "(null)");
    return NULL;
  }
  hi_device *device = hi_device_find(&name);
  if (!device) hi_device_unknown(&name, false);
  return device;
}

/* ---- start and end ---- */

helio_status hi_topology_start(void) {
  fraction = 1;
  cores = hi_machine_cores();
  helio_status status = find_physicals();
  if (!status) status = hi_topology_show(physicals, physical_count);
  if (!status) status = hi_configure_from_environment();
  if (!status) status = hi_topology_rebuild();
  if (status) hi_topology_finish();
  return status;
}

/* All come to rest before the first is closed, because their streams may wait for each other's events. */
static void free_devices(void) {
  for (hi_device *device = made; device; device = device->next) hi_device_rest(device);
  while (made) {
    hi_device *device = made;
    made = device->next;
    hi_device_free(device);
  }
}

void hi_topology_finish(void) {
  free_devices();
  for (snapshot *s = atomic_exchange(&current, NULL), *older; s; s = older) {
    older = s->older;
    snapshot_free(s);
  }
  lists_free(&physical_lists);
  while (physical_count > 0) {
    hi_physical *physical = physicals[--physical_count];
    free(physical->limits);
    physical->limits = NULL;
    if (atomic_load(&physical->plugin->stuck)) { /* its devices stay */
      hi_keep_for_ever(physical);
    } else {
      free(physical);
    }
  }
  free(physicals);
  free(visible);
  physicals = visible = NULL;
  visible_count = 0;
}

const helio_device *const *helio_physical_devices(const char *type, int *count) {
  if (hi_enter(__func__)) return NULL;
  if (count) return lists_choose(&physical_lists, type, count);
  hi_fail(HELIO_INVALID_ARGUMENT, "count is NULL");
  return NULL;
}

const helio_device *const *helio_logical_devices(const char *type, int *count) {
  if (hi_enter(__func__)) return NULL;
  if (count) return lists_choose(&atomic_load_explicit(&current, memory_order_acquire)->lists, type, count);
  hi_fail(HELIO_INVALID_ARGUMENT, "count is NULL");
  return NULL;
}
