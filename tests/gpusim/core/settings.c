/* SPDX-License-Identifier: Apache-2.0 */
/* The environment, read once. A value that cannot be is told, and ends the process before anything runs. */
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static sim_settings settings = {
    .devices = {1, 0},
    .memory = (size_t)2 << 30,
    .warp = {32, 64},
    .architecture = {"sm_80", "gfx90a:sramecc+:xnack-"},
    .driver = 13000,
    .collectives = 22809,
    .peer = true,
    .integrated = -1,
    .seed = 1,
    .order = SIM_UP,
    .pace = SIM_LATE,
    .fault = "",
    .patience = 60,
    .leaks = true,
};

void sim_refuse_setting(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "gpusim: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  va_end(arguments);
  fflush(NULL);
  _exit(2);
}

static const char *read_text(const char *name, const char *absent) {
  const char *value = getenv(name);
  return value && *value ? value : absent;
}

static uint64_t read_number(const char *name, uint64_t least, uint64_t most, uint64_t absent) {
  const char *value = read_text(name, NULL);
  if (!value) return absent;
  char *end = NULL;
  errno = 0;
  uint64_t number = strtoull(value, &end, 10);
  if (errno || end == value || *end || number < least || number > most)
    sim_refuse_setting("%s=%s is not a number from %llu to %llu", name, value, (unsigned long long)least,
                       (unsigned long long)most);
  return number;
}

static size_t read_size(const char *name, size_t absent) {
  const char *value = read_text(name, NULL);
  if (!value) return absent;
  char *end = NULL;
  errno = 0;
  uint64_t number = strtoull(value, &end, 10);
  const char *units = "KMG";
  const char *unit = *end ? strchr(units, *end) : NULL;
  int shift = unit ? 10 * (int)(unit - units + 1) : 0;
  if (errno || end == value || (*end && (!unit || end[1])) || number == 0 || number > ((uint64_t)1 << 40 >> shift))
    sim_refuse_setting("%s=%s is not a size such as 512M or 2G", name, value);
  return number << shift;
}

/* "down" of "up down shuffled" is 1. */
static int read_choice(const char *name, const char *const *choices, int count, int absent) {
  const char *value = read_text(name, NULL);
  if (!value) return absent;
  for (int i = 0; i < count; i++)
    if (!strcmp(value, choices[i])) return i;
  sim_refuse_setting("%s=%s is not known here; did you mean %s?", name, value,
                     sim_nearest(value, choices, (size_t)count));
  return absent;
}

/* AMD's widths: 64 up to gfx9, 32 from gfx10 on, which has one digit more. */
static int hip_warp(const char *architecture) {
  size_t length = strcspn(architecture, ":");
  return length >= strlen("gfx1030") ? 32 : 64;
}

/* "sm_90a", with digits in it and at most one letter behind them. */
static bool is_cuda_architecture(const char *name) {
  size_t digits = strncmp(name, "sm_", 3) ? 0 : strspn(name + 3, "0123456789");
  return digits >= 2 && digits <= 3 && (!name[3 + digits] || !name[4 + digits]);
}

/* "gfx90a:xnack-". */
static bool is_hip_architecture(const char *name) {
  size_t digits = strncmp(name, "gfx", 3) ? 0 : strspn(name + 3, "0123456789abcdef");
  return digits >= 3 && digits <= 4 && (!name[3 + digits] || name[3 + digits] == ':');
}

/* "sm_90", "gfx1030" or both with a comma: each is for the vendor that it looks like. */
static void read_architectures(void) {
  const char *value = read_text("GPUSIM_ARCHITECTURE", NULL);
  if (!value) return;
  char *copy = strdup(value), *rest = NULL;
  for (char *name = strtok_r(copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
    if (is_cuda_architecture(name))
      settings.architecture[SIM_CUDA] = name;
    else if (is_hip_architecture(name))
      settings.architecture[SIM_HIP] = name;
    else
      sim_refuse_setting("GPUSIM_ARCHITECTURE=%s: %s is neither like sm_90 nor like gfx90a", value, name);
  }
  /* The copy stays: the settings point into it. */
}

/* All three come up within three seeds. Tests draw other things by the seed's remainder by three, so that a later row
 * of three begins with another pace: within nine seeds every pair is met. */
static sim_pace draw_pace(uint64_t seed) {
  uint64_t turn = seed + 8; /* seed 1 is late, and nothing is below zero */
  return (sim_pace)((turn % 9 + turn % 9 / 3) % 3);
}

/* Kept, because a program may change its environment. */
static void read_visible(void) {
  static const char *const names[SIM_VISIBLE] = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"};
  for (int i = 0; i < SIM_VISIBLE; i++) {
    const char *value = getenv(names[i]); /* empty is a list too, of no device */
    settings.visible[i] = value ? strdup(value) : NULL;
  }
}

/* A name that is misspelt would have no effect, and the test that it is for no meaning. Those of the tests themselves
 * are theirs. */
static void refuse_unknown(void) {
  static const char *const names[] = {"GPUSIM_CUDA",    "GPUSIM_HIP",   "GPUSIM_MEMORY",   "GPUSIM_WARP",
                                      "GPUSIM_DRIVER",  "GPUSIM_PEER",  "GPUSIM_SEED",     "GPUSIM_ORDER",
                                      "GPUSIM_PACE",    "GPUSIM_FAULT", "GPUSIM_PATIENCE", "GPUSIM_CACHE",
                                      "GPUSIM_REPORT",  "GPUSIM_LIBS",  "GPUSIM_COUNTERS", "GPUSIM_ARCHITECTURE",
                                      "GPUSIM_MISSING", "GPUSIM_LEAKS", "GPUSIM_NCCL",     "GPUSIM_INTEGRATED"};
  enum { NAMES = sizeof names / sizeof *names };
  for (char **variable = environ; *variable; variable++) {
    if (strncmp(*variable, "GPUSIM_", 7) != 0 || !strncmp(*variable, "GPUSIM_TEST_", 12)) continue;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(*variable, "="), *variable);
    size_t i = 0;
    while (i < NAMES && strcmp(names[i], name) != 0) i++;
    if (i == NAMES)
      sim_refuse_setting("%s is not a setting; did you mean %s?", *variable, sim_nearest(name, names, NAMES));
  }
}

static void read_all(void) {
  refuse_unknown();
  static const char *const orders[] = {"up", "down", "shuffled"}, *const paces[] = {"late", "behind", "random"};
  settings.devices[SIM_CUDA] = (int)read_number("GPUSIM_CUDA", 0, SIM_MOST_DEVICES, 1);
  settings.devices[SIM_HIP] = (int)read_number("GPUSIM_HIP", 0, SIM_MOST_DEVICES, 0);
  settings.memory = read_size("GPUSIM_MEMORY", settings.memory);
  read_architectures();
  settings.warp[SIM_HIP] = hip_warp(settings.architecture[SIM_HIP]);
  uint64_t warp = read_number("GPUSIM_WARP", 32, 64, 0);
  if (warp != 0 && warp != 32 && warp != 64) sim_refuse_setting("GPUSIM_WARP=%d: it must be 32 or 64", (int)warp);
  if (warp) settings.warp[SIM_CUDA] = settings.warp[SIM_HIP] = (int)warp;
  settings.driver = (int)read_number("GPUSIM_DRIVER", 0, 99999, 13000);
  settings.collectives = (int)read_number("GPUSIM_NCCL", 2700, 99999, 22809);
  settings.peer = read_number("GPUSIM_PEER", 0, 1, 1);
  if (getenv("GPUSIM_INTEGRATED"))
    settings.integrated = (int)read_number("GPUSIM_INTEGRATED", 0, SIM_MOST_DEVICES - 1, 0);
  settings.seed = read_number("GPUSIM_SEED", 0, UINT64_MAX, 1);
  settings.order = (sim_order)read_choice("GPUSIM_ORDER", orders, 3, SIM_UP);
  settings.pace = (sim_pace)read_choice("GPUSIM_PACE", paces, 3, (int)draw_pace(settings.seed));
  settings.patience = (int)read_number("GPUSIM_PATIENCE", 1, 86400, 60);
  settings.leaks = read_number("GPUSIM_LEAKS", 0, 1, 1);
  settings.fault = read_text("GPUSIM_FAULT", "");
  if (strstr(settings.fault, "missing:") && !read_text("GPUSIM_MISSING", NULL))
    sim_refuse_setting("GPUSIM_FAULT=%s: only tests/gpusim/run can take something away", settings.fault);
  sim_faults_read(settings.fault);
  read_visible();
  settings.cache = read_text("GPUSIM_CACHE", NULL);
  settings.report = read_text("GPUSIM_REPORT", NULL);
  settings.counters = read_text("GPUSIM_COUNTERS", NULL);
}

const sim_settings *sim_setup(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_all);
  return &settings;
}
