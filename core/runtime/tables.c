/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a plugin's tables: sizes checked, required entries present, optional ones filled with named defaults. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/plugins.h"

/* The lists have no gaps: kernel_of has room for each. */
#define IN_RANGE(name, value) _Static_assert((value) > 0 && (value) < HI_OPERATION_COUNT, #name);
HELIO_OPERATION_LIST(IN_RANGE)
#undef IN_RANGE
#define IN_RANGE(name, value, text, bytes) _Static_assert((value) > 0 && (value) < HI_TYPE_COUNT, #name);
HELIO_TYPE_LIST(IN_RANGE)
#undef IN_RANGE

const char *hi_struct_read(void *to, size_t known, size_t least, const void *from) {
  size_t size = *(const size_t *)from;
  if (size < least) return "is shorter than what is required of it";
  if (!helio_struct_fits(from, known)) return "has fields that this version does not know";
  memset(to, 0, known);
  memcpy(to, from, size < known ? size : known);
  return NULL;
}

static bool malformed(hi_plugin *plugin, const char *what, const char *why) {
  plugin->report.status = HELIO_PLUGIN_MALFORMED;
  snprintf(plugin->report.reason, sizeof plugin->report.reason, "its %s %s", what, why);
  return false;
}

/* A required entry: its name for the report and where it stands. All of them are pointers. */
typedef struct required {
  const char *name;
  size_t offset;
} required;

#define ENTRY(type, field)                                                                                             \
  { #field, offsetof(type, field) }

static const required plugin_entries[] = {
    ENTRY(helio_plugin, name),  ENTRY(helio_plugin, version), ENTRY(helio_plugin, description),
    ENTRY(helio_plugin, probe), ENTRY(helio_plugin, init),    ENTRY(helio_plugin, finish),
};

static const required device_entries[] = {
    ENTRY(helio_device_table, count), ENTRY(helio_device_table, describe),    ENTRY(helio_device_table, open),
    ENTRY(helio_device_table, close), ENTRY(helio_device_table, memory_info), ENTRY(helio_device_table, synchronize),
};

static const required memory_entries[] = {
    ENTRY(helio_memory_table, allocate), ENTRY(helio_memory_table, free), ENTRY(helio_memory_table, copy_in),
    ENTRY(helio_memory_table, copy_out), ENTRY(helio_memory_table, copy), ENTRY(helio_memory_table, fill),
};

static const required stream_entries[] = {
    ENTRY(helio_stream_table, create),        ENTRY(helio_stream_table, destroy),
    ENTRY(helio_stream_table, synchronize),   ENTRY(helio_stream_table, event_create),
    ENTRY(helio_stream_table, event_destroy), ENTRY(helio_stream_table, event_record),
    ENTRY(helio_stream_table, event_query),   ENTRY(helio_stream_table, event_synchronize),
    ENTRY(helio_stream_table, wait),
};

static const required kernel_entries[] = {
    ENTRY(helio_kernel, plan),
    ENTRY(helio_kernel, run),
    ENTRY(helio_kernel, plan_free),
};

static const required collective_entries[] = {
    ENTRY(helio_collective_table, offer),      ENTRY(helio_collective_table, new_id),
    ENTRY(helio_collective_table, create),     ENTRY(helio_collective_table, destroy),
    ENTRY(helio_collective_table, abort),      ENTRY(helio_collective_table, poll),
    ENTRY(helio_collective_table, all_reduce), ENTRY(helio_collective_table, broadcast),
};

/* Reads one table whose required entries come first; `what` names it. */
static bool read_table(hi_plugin *plugin, const char *what, void *to, size_t known, const void *from,
                       const required *entries, size_t count) {
  size_t least = entries[count - 1].offset + sizeof(void *);
  const char *wrong = hi_struct_read(to, known, least, from);
  if (wrong) return malformed(plugin, what, wrong);
  for (size_t i = 0; i < count; i++) {
    void *pointer;
    memcpy(&pointer, (const char *)to + entries[i].offset, sizeof pointer);
    if (pointer) continue;
    char why[100];
    snprintf(why, sizeof why, "lacks the required entry %s", entries[i].name);
    return malformed(plugin, what, why);
  }
  return true;
}

#define READ(plugin, what, to, from, entries)                                                                          \
  read_table(plugin, what, to, sizeof *(to), from, entries, sizeof(entries) / sizeof(entries)[0])

/* Defaults of optional entries. */
static void *no_native_device(helio_backend_device *device) {
  (void)device;
  return NULL;
}

static void *no_native_buffer(helio_buffer *buffer) {
  (void)buffer;
  return NULL;
}

static void *no_native_stream(helio_stream *stream) {
  (void)stream;
  return NULL;
}

static helio_status no_copy_peer(helio_backend_device *device, helio_stream *stream, helio_place target,
                                 helio_backend_device *from, helio_place source, size_t bytes) {
  (void)device, (void)stream, (void)target, (void)from, (void)source, (void)bytes;
  return HELIO_NOT_SUPPORTED;
}

static helio_status ordinary_host_allocate(helio_backend_device *device, size_t bytes, void **memory) {
  (void)device;
  return posix_memalign(memory, 64, bytes) == 0 ? HELIO_OK : HELIO_OUT_OF_MEMORY;
}

static void ordinary_host_free(helio_backend_device *device, void *memory) {
  (void)device;
  free(memory);
}

static bool read_backend(hi_plugin *plugin) {
  const helio_plugin *entry = &plugin->entry;
  if (!entry->memory || !entry->streams) {
    return malformed(plugin, "backend", "has devices but no table of memory or streams");
  }
  if (!READ(plugin, "table of devices", &plugin->devices, entry->devices, device_entries) ||
      !READ(plugin, "table of memory", &plugin->memory, entry->memory, memory_entries) ||
      !READ(plugin, "table of streams", &plugin->streams, entry->streams, stream_entries)) {
    return false;
  }
  if (!plugin->memory.host_allocate != !plugin->memory.host_free) {
    return malformed(plugin, "table of memory", "has one of host_allocate and host_free but not the other");
  }
  if (!plugin->devices.native_device) plugin->devices.native_device = no_native_device;
  if (!plugin->memory.native_buffer) plugin->memory.native_buffer = no_native_buffer;
  if (!plugin->memory.copy_peer) plugin->memory.copy_peer = no_copy_peer;
  if (!plugin->memory.host_allocate) {
    plugin->memory.host_allocate = ordinary_host_allocate;
    plugin->memory.host_free = ordinary_host_free;
  }
  if (!plugin->streams.native_stream) plugin->streams.native_stream = no_native_stream;
  plugin->report.is_backend = true;
  return true;
}

static bool read_kernels(hi_plugin *plugin) {
  helio_kernel_table table;
  size_t least = HELIO_STRUCT_SIZE(helio_kernel_table, kernels);
  const char *wrong = hi_struct_read(&table, sizeof table, least, plugin->entry.kernels);
  if (wrong) return malformed(plugin, "table of kernels", wrong);
  if (table.count > 0 && !table.kernels) return malformed(plugin, "table of kernels", "counts kernels but has none");
  plugin->kernels = calloc(table.count ? table.count : 1, sizeof *plugin->kernels);
  plugin->no_memory = !plugin->kernels;
  if (plugin->no_memory) return malformed(plugin, "table of kernels", "found no memory");
  for (size_t i = 0; i < table.count; i++) {
    helio_kernel *kernel = &plugin->kernels[i];
    if (!table.kernels[i]) return malformed(plugin, "table of kernels", "holds NULL");
    if (!READ(plugin, "kernel", kernel, table.kernels[i], kernel_entries)) return false;
    if (kernel->operation >= HI_OPERATION_COUNT) continue; /* newer than this core: nobody will ask for it */
    for (unsigned type = 1; type < HI_TYPE_COUNT; type++) {
      if (kernel->types & HELIO_TYPE_BIT(type)) plugin->kernel_of[kernel->operation][type] = kernel;
    }
  }
  plugin->kernel_count = table.count;
  return true;
}

/* What stands for reduce, all_gather and reduce_scatter needs to know whose communicator it is given: it is put in
 * where one is made (strategy/communicator.c). */
static helio_status no_group(helio_plugin_state *state) {
  (void)state;
  return HELIO_OK;
}

static bool read_collective(hi_plugin *plugin) {
  if (!READ(plugin, "table of collectives", &plugin->collective, plugin->entry.collective, collective_entries)) {
    return false;
  }
  if (!plugin->collective.group_start != !plugin->collective.group_end) {
    return malformed(plugin, "table of collectives", "has one of group_start and group_end but not the other");
  }
  if (!plugin->collective.group_start) {
    plugin->collective.group_start = no_group;
    plugin->collective.group_end = no_group;
  }
  plugin->report.is_collective = true;
  return true;
}

static bool good_name(const char *name) {
  size_t length = strlen(name);
  return length > 0 && length < sizeof((helio_plugin_report *)0)->name &&
         strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

bool hi_plugin_read_tables(hi_plugin *plugin, const helio_plugin *entry) {
  if (!READ(plugin, "entry", &plugin->entry, entry, plugin_entries)) return false;
  entry = &plugin->entry;
  if (!good_name(entry->name)) {
    return malformed(plugin, "name", "is empty, too long, or has other than lower case letters, digits and '-'");
  }
  snprintf(plugin->report.name, sizeof plugin->report.name, "%s", entry->name);
  snprintf(plugin->report.version, sizeof plugin->report.version, "%s", entry->version);
  snprintf(plugin->report.description, sizeof plugin->report.description, "%s", entry->description);
  if (!entry->devices && !entry->collective) {
    return malformed(plugin, "entry", "has neither devices nor a collective");
  }
  return (!entry->devices || read_backend(plugin)) && (!entry->kernels || read_kernels(plugin)) &&
         (!entry->collective || read_collective(plugin));
}
