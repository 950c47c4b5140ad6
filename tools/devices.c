/* SPDX-License-Identifier: Apache-2.0 */
/* helio devices: the physical devices, the logical ones cut from them, and why a backend has none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "output.h"

enum { JSON, TYPE };

static const command_option options[] = {
    [JSON] = {"json", NULL, NULL, "print JSON, with every field"},
    [TYPE] = {"type", "TYPE", "cpu|gpu", "list devices of this type only"},
    {0},
};

typedef struct device_list {
  const helio_device *const *devices;
  int count;
} device_list;

/* "blas_core=SkylakeX" becomes "blas_core": "SkylakeX". */
static json_t *properties_json(const helio_device *device) {
  json_t *object = json_object();
  for (const char *const *property = device->properties; property && *property; property++) {
    char *key = strdup(*property), *value = key;
    if (!key) output_out_of_memory();
    strsep(&value, "=");
    output_set(object, key, output_text(value ? value : ""));
    free(key);
  }
  return object;
}

static json_t *device_json(const helio_device *device) {
  json_t *object = json_object();
  output_set(object, "name", output_text(device->name));
  output_set(object, "type", output_text(device->type));
  output_set(object, "index", json_integer(device->index));
  output_set(object, "backend", output_text(device->backend));
  output_set(object, "backend_index", json_integer(device->backend_index));
  output_set(object, "physical", output_text(device->physical));
  output_set(object, "description", output_text(device->description));
  output_set(object, "vendor", output_text(device->vendor));
  output_set(object, "architecture", output_text(device->architecture));
  output_set(object, "native_api", output_text(device->native_api));
  output_set(object, "bus_id", output_text(device->bus_id));
  output_set(object, "memory", json_integer((json_int_t)device->memory));
  output_set(object, "memory_limit", json_integer((json_int_t)device->memory_limit));
  output_set(object, "compute_units", json_integer(device->compute_units));
  output_set(object, "properties", properties_json(device));
  return object;
}

static json_t *list_json(device_list list) {
  json_t *array = json_array();
  for (int i = 0; i < list.count; i++) output_append(array, device_json(list.devices[i]));
  return array;
}

static void print_physical(device_list list) {
  output_table *table = output_table_new(5);
  output_cell(table, "PHYSICAL DEVICE");
  output_cell(table, "BACKEND");
  output_cell(table, "MEMORY");
  output_cell(table, "ARCHITECTURE");
  output_cell(table, "DESCRIPTION");
  for (int i = 0; i < list.count; i++) {
    const helio_device *device = list.devices[i];
    char memory[OUTPUT_BYTES];
    output_cell(table, "%s", device->name);
    output_cell(table, "%s:%d", device->backend, device->backend_index);
    output_cell(table, "%s", output_bytes(memory, device->memory));
    output_cell(table, "%s", device->architecture);
    output_cell(table, "%s", device->description);
    output_note(table, "compute_units=%d", device->compute_units);
    if (device->vendor[0]) output_note(table, "vendor=%s", device->vendor);
    if (device->bus_id[0]) output_note(table, "bus_id=%s", device->bus_id);
    for (const char *const *property = device->properties; property && *property; property++) {
      output_note(table, "%s", *property);
    }
  }
  output_table_print(table);
}

static void print_logical(device_list list) {
  output_table *table = output_table_new(4);
  output_cell(table, "LOGICAL DEVICE");
  output_cell(table, "BACKEND");
  output_cell(table, "MEMORY LIMIT");
  output_cell(table, "OF");
  for (int i = 0; i < list.count; i++) {
    const helio_device *device = list.devices[i];
    char limit[OUTPUT_BYTES];
    output_cell(table, "%s", device->name);
    output_cell(table, "%s", device->backend);
    output_cell(table, "%s", device->memory_limit ? output_bytes(limit, device->memory_limit) : "not set");
    output_cell(table, "%s", device->physical);
  }
  printf("\n");
  output_table_print(table);
}

/* A card that is there but cannot be used must not simply be missing from the list. */
static void print_other_plugins(void) {
  int count = 0;
  bool first = true;
  const helio_plugin_report *const *reports = helio_plugins(&count);
  for (int i = 0; reports && i < count; i++) {
    const helio_plugin_report *report = reports[i];
    if (report->status == HELIO_PLUGIN_USABLE || report->status == HELIO_PLUGIN_SHADOWED) continue;
    if (first) printf("\nOther plugins ('helio plugins' tells more)\n");
    first = false;
    printf("  %s: %s: %s\n", report->name, helio_plugin_status_text(report->status), report->reason);
  }
}

static int run_devices(const command_line *line) {
  const char *type = line->values[TYPE];
  if (type) type = strcmp(type, "gpu") == 0 ? "GPU" : "CPU";
  device_list physical = {0}, logical = {0};
  physical.devices = helio_physical_devices(type, &physical.count);
  logical.devices = helio_logical_devices(type, &logical.count);
  if (!physical.devices || !logical.devices) return command_library_failure(line->path);
  if (line->values[JSON]) {
    json_t *object = json_object();
    output_set(object, "physical", list_json(physical));
    output_set(object, "logical", list_json(logical));
    output_json(object);
  } else {
    print_physical(physical);
    print_logical(logical);
    print_other_plugins();
  }
  return EXIT_SUCCESS;
}

const command command_devices = {
    .name = "devices",
    .summary = "Lists the physical and logical devices",
    .description = "HELIO_BACKEND, HELIO_VISIBLE_DEVICES and HELIO_LOGICAL_DEVICES decide what there is.",
    .options = options,
    .run = run_devices,
};
