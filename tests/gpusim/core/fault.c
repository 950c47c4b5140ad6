/* SPDX-License-Identifier: Apache-2.0 */
/* Faults on demand: GPUSIM_FAULT is a list of rules, each of which counts the occasions that it is about. What a
 * program can meet without gpusim (a missing symbol, no device, an old driver) is arranged by `run` and by other
 * settings. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RULES = 32, ANY = -1 };

typedef struct rule {
  int occasion;       /* a sim_occasion */
  bool lost;          /* the device is lost, instead of that one failure */
  uint64_t from, to;  /* which fail, counted from 1 */
  sim_status status;  /* what it fails with; SIM_OK: what such an occasion fails with most often */
  int vendor, device; /* or ANY */
  uint64_t seen;
} rule;

static rule rules[MOST_RULES];
static int rule_count;
static bool late;
static int slow_vendor = ANY, slow_device = ANY;
static bool slow, captured;

static const char *const names[SIM_OCCASIONS] = {
    [SIM_ALLOCATION] = "allocation", [SIM_LAUNCH] = "launch",         [SIM_COPY] = "copy",
    [SIM_LIBRARY] = "library",       [SIM_COLLECTIVE] = "collective", [SIM_COMPILATION] = "compile",
    [SIM_CREATION] = "create",       [SIM_HOST_WAIT] = "wait",        [SIM_POLL] = "poll",
    [SIM_JOIN] = "communicator",     [SIM_CONNECT] = "connect",
};

const char *sim_occasion_name(sim_occasion occasion) {
  return names[occasion];
}

static const char *skip(const char *text, const char *word) {
  size_t length = strlen(word);
  return strncmp(text, word, length) == 0 ? text + length : NULL;
}

/* "@1", "@hip:1" or nothing. */
static bool parse_device(const char *text, int *vendor, int *device) {
  *vendor = *device = ANY;
  if (!*text) return true;
  if (*text++ != '@') return false;
  const char *rest;
  if ((rest = skip(text, "cuda:")))
    *vendor = SIM_CUDA, text = rest;
  else if ((rest = skip(text, "hip:")))
    *vendor = SIM_HIP, text = rest;
  char *end = NULL;
  *device = (int)strtol(text, &end, 10);
  return end != text && *end == 0 && *device >= 0;
}

/* "=700" or nothing: moves on behind it. */
static bool parse_status(const char **text, sim_status *status) {
  *status = SIM_OK;
  if (**text != '=') return true;
  char *end = NULL;
  *status = (sim_status)strtoul(*text + 1, &end, 10);
  bool read = end != *text + 1 && *status != SIM_OK;
  *text = end;
  return read;
}

/* "launch:17", "lost:launch:17", "launch:17+", "launch:17=1", "launch:17@1"; a name without a number means each. */
static bool parse_rule(const char *text) {
  rule made = {.occasion = ANY, .from = 1, .to = UINT64_MAX};
  const char *rest = skip(text, "lost:");
  made.lost = rest != NULL;
  if (rest) text = rest;
  for (int i = 0; i < SIM_OCCASIONS && made.occasion == ANY; i++)
    if ((rest = skip(text, names[i])) && strchr(":=@", *rest)) made.occasion = i; /* or the end */
  if (made.occasion == ANY) return false;
  if (*rest == ':') {
    char *end = NULL;
    made.from = strtoull(rest + 1, &end, 10);
    if (end == rest + 1 || made.from == 0) return false;
    if (*end != '+') made.to = made.from;
    rest = *end == '+' ? end + 1 : end;
  }
  if (!parse_status(&rest, &made.status) || !parse_device(rest, &made.vendor, &made.device)) return false;
  if (rule_count == MOST_RULES) return false;
  rules[rule_count++] = made;
  return true;
}

static void refuse(const char *list, const char *word) {
  const char *known[SIM_OCCASIONS + 5] = {"late", "slow", "capture", "missing", "lost"};
  char name[64];
  memcpy(known + 5, names, sizeof names);
  if (skip(word, "lost:")) word = skip(word, "lost:");
  snprintf(name, sizeof name, "%.*s", (int)strcspn(word, ":=@+"), word);
  const char *nearest = sim_nearest(name, known, SIM_OCCASIONS + 5);
  if (!strcmp(nearest, name))
    sim_refuse_setting("GPUSIM_FAULT=%s: what follows %s is not understood; it is like %s:17, %s:17+, "
                       "%s:17=1 or %s:17@1",
                       list, name, name, name, name, name);
  sim_refuse_setting("GPUSIM_FAULT=%s: \"%s\" is not known here; did you mean %s?", list, name, nearest);
}

void sim_faults_read(const char *list) {
  char *copy = strdup(list), *rest = NULL;
  for (char *word = strtok_r(copy, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
    if (!strcmp(word, "late"))
      late = true;
    else if (!strcmp(word, "capture"))
      captured = true;
    else if (skip(word, "slow") && parse_device(skip(word, "slow"), &slow_vendor, &slow_device))
      slow = true;
    else if (!skip(word, "missing:") && !parse_rule(word))
      refuse(list, word);
  }
  free(copy);
}

static bool is_of(int vendor, int device, const sim_device *which) {
  return (vendor == ANY || (which && (int)which->vendor == vendor)) &&
         (device == ANY || (which && which->index == device));
}

bool sim_fault_is_slow(const sim_device *device) {
  sim_setup(); /* reads them */
  return slow && is_of(slow_vendor, slow_device, device);
}

bool sim_fault_is_captured(void) {
  sim_setup(); /* reads them */
  return captured;
}

static sim_status status_of(sim_occasion occasion) {
  if (occasion == SIM_ALLOCATION || occasion == SIM_CREATION || occasion == SIM_JOIN || occasion == SIM_CONNECT)
    return SIM_OUT_OF_MEMORY;
  return occasion == SIM_LAUNCH ? SIM_LAUNCH_RESOURCES : SIM_UNKNOWN;
}

static bool is_asynchronous(sim_occasion occasion) {
  return occasion == SIM_LAUNCH || occasion == SIM_COPY || occasion == SIM_LIBRARY || occasion == SIM_COLLECTIVE;
}

static sim_status fail(const rule *broken, sim_occasion occasion, sim_device *device) {
  if (late && device && is_asynchronous(occasion)) {
    device->late = SIM_LAUNCH_FAILED;
    return SIM_OK;
  }
  sim_status given = broken->status;
  if (!broken->lost || !device) return given ? given : status_of(occasion);
  if (!given) given = SIM_LAUNCH_FAILED;
  sim_device_lose(device, given);
  return given;
}

/* Every rule counts, also when another has decided. */
static sim_status apply(sim_occasion occasion, sim_device *device) {
  const rule *broken = NULL;
  for (int i = 0; i < rule_count; i++) {
    rule *one = &rules[i];
    if (one->occasion != (int)occasion || !is_of(one->vendor, one->device, device)) continue;
    one->seen++;
    if (one->seen >= one->from && one->seen <= one->to && !broken) broken = one;
  }
  return broken ? fail(broken, occasion, device) : SIM_OK;
}

sim_status sim_count(sim_occasion occasion, sim_device *device) {
  sim_setup(); /* reads them */
  sim_lock();
  sim_status status = device ? device->health : SIM_OK;
  if (status == SIM_OK) {
    sim_counters_add(occasion, device);
    status = apply(occasion, device);
  }
  sim_unlock();
  return status;
}
