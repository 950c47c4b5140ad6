/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's parameters, and where it finds the plugin that it builds on. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "strict.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PARAMETER(its_name, its_kind, its_default, its_choices, its_help)                                              \
  &(const helio_parameter) {                                                                                           \
    .size = sizeof(helio_parameter), .name = (its_name), .kind = (its_kind), .default_value = (its_default),           \
    .choices = (its_choices), .help = (its_help)                                                                       \
  }

const helio_parameter *const strict_parameters[] = {
    PARAMETER("HELIO_STRICT_SEED", HELIO_PARAMETER_INTEGER, "1", NULL,
              "Seed of the order in which the strict device's streams run."),
    PARAMETER("HELIO_STRICT_INNER", HELIO_PARAMETER_TEXT, "", NULL,
              "Path of the plugin whose kernels the strict device uses; empty: the CPU's in the build tree."),
    PARAMETER("HELIO_STRICT_DEVICES", HELIO_PARAMETER_INTEGER, "1", NULL, "How many strict devices there are, 0 to 8."),
    PARAMETER("HELIO_STRICT_MEMORY", HELIO_PARAMETER_INTEGER, "1073741824", NULL,
              "Bytes of memory of each strict device."),
    PARAMETER("HELIO_STRICT_BEHIND", HELIO_PARAMETER_INTEGER, "128", NULL,
              "How many commands each stream of the strict device may stay behind the host."),
    PARAMETER("HELIO_STRICT_REFUSE", HELIO_PARAMETER_TEXT, "", NULL,
              "Operations that the strict device refuses to plan, such as matmul,relu."),
    PARAMETER("HELIO_STRICT_PLANT", HELIO_PARAMETER_CHOICE, "none", "none|overrun|late-error|bad-data",
              "A mistake that the strict device makes once, to show that it is noticed."),
    PARAMETER("HELIO_STRICT_PEER", HELIO_PARAMETER_FLAG, "1", NULL, "Whether strict devices copy between each other."),
    NULL,
};

/* The host's answer, or the default where it has none. */
static const char *text_of(const helio_host *host, const char *name) {
  const char *value = host->parameter(host, name);
  for (size_t i = 0; value == NULL && strict_parameters[i] != NULL; i++) {
    if (strcmp(strict_parameters[i]->name, name) == 0) value = strict_parameters[i]->default_value;
  }
  return value != NULL ? value : "";
}

static helio_status read_integer(const helio_host *host, strict_call *call, const char *name, uint64_t limit,
                                 uint64_t *result) {
  const char *text = text_of(host, name);
  char *end = NULL;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != 0 || errno != 0 || value > limit) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "%s=%.100s is no number from 0 to %llu", name, text,
                       (unsigned long long)limit);
  }
  *result = value;
  return HELIO_OK;
}

static helio_status read_plant(const helio_host *host, strict_call *call, strict_plant *plant) {
  static const char *const names[] = {"none", "overrun", "late-error", "bad-data"};
  const char *text = text_of(host, "HELIO_STRICT_PLANT");
  for (int i = STRICT_PLANT_NONE; i <= STRICT_PLANT_BAD_DATA; i++) {
    if (strcmp(text, names[i]) != 0) continue;
    *plant = (strict_plant)i;
    return HELIO_OK;
  }
  return strict_fail(call, HELIO_INVALID_ARGUMENT, "HELIO_STRICT_PLANT=%.100s", text);
}

static helio_status read_refused(const helio_host *host, strict_call *call, bool *refused) {
  const char *text = text_of(host, "HELIO_STRICT_REFUSE");
  while (*text != 0) {
    size_t length = strcspn(text, ",");
    uint32_t operation = strict_operation_by_name(text, length);
    if (operation == 0) {
      return strict_fail(call, HELIO_INVALID_ARGUMENT, "HELIO_STRICT_REFUSE: there is no operation %.*s",
                         (int)(length < 100 ? length : 100), text);
    }
    refused[operation] = true;
    text += length;
    if (*text == ',') text++;
  }
  return HELIO_OK;
}

/* Where this shared object lies, with a slash at the end. */
static bool own_folder(char *folder) {
  Dl_info information;
  if (dladdr(strict_parameters, &information) == 0) return false;
  if (realpath(information.dli_fname, folder) == NULL) return false;
  char *slash = strrchr(folder, '/');
  if (slash == NULL) return false;
  slash[1] = 0;
  return true;
}

/* The CPU plugin of the build tree (this one is <build>/tests/plugins/strict/.libs/strict.so), else one that lies in
 * the same folder. */
static helio_status find_inner(const helio_host *host, strict_call *call, char *path, size_t size) {
  static const char *const places[] = {"../../../../backends/cpu/.libs/cpu.so", "cpu.so"};
  char folder[PATH_MAX];
  const char *given = text_of(host, "HELIO_STRICT_INNER");
  if (given[0] != 0) {
    if (access(given, R_OK) != 0) {
      return strict_fail(call, HELIO_NO_DEVICE, "HELIO_STRICT_INNER=%.300s: %s", given, strerror(errno));
    }
    snprintf(path, size, "%s", given);
    return HELIO_OK;
  }
  if (!own_folder(folder)) return strict_fail(call, HELIO_NO_DEVICE, "cannot find out where the plugin itself lies");
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    int length = snprintf(path, size, "%s%s", folder, places[i]);
    if (length > 0 && (size_t)length < size && access(path, R_OK) == 0) return HELIO_OK;
  }
  return strict_fail(call, HELIO_NO_DEVICE, "no CPU plugin at %.200s%s; set HELIO_STRICT_INNER", folder, places[0]);
}

helio_status strict_settings_read(const helio_host *host, strict_call *call, strict_settings *settings) {
  uint64_t devices = 0, peer = 0, behind = 0;
  memset(settings, 0, sizeof *settings);
  helio_status status = read_integer(host, call, "HELIO_STRICT_SEED", UINT64_MAX, &settings->seed);
  if (status == HELIO_OK) status = read_integer(host, call, "HELIO_STRICT_DEVICES", STRICT_MAX_DEVICES, &devices);
  if (status == HELIO_OK) status = read_integer(host, call, "HELIO_STRICT_MEMORY", INT64_MAX, &settings->memory);
  if (status == HELIO_OK) status = read_integer(host, call, "HELIO_STRICT_PEER", 1, &peer);
  if (status == HELIO_OK) status = read_integer(host, call, "HELIO_STRICT_BEHIND", STRICT_MOST_BEHIND, &behind);
  if (status == HELIO_OK) status = read_plant(host, call, &settings->plant);
  if (status == HELIO_OK) status = read_refused(host, call, settings->refused);
  if (status == HELIO_OK) status = find_inner(host, call, settings->inner_path, sizeof settings->inner_path);
  settings->devices = (uint32_t)devices;
  settings->behind = (size_t)behind;
  settings->peer = peer != 0;
  return status;
}
