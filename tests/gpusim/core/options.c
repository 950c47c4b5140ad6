/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the vendors' run-time compilers: what they know is taken, what they do not know is refused in their
 * words. Most of what they know changes nothing here. */
#define _GNU_SOURCE
#include "compile.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum meaning { FLAG, TRUE_OR_FALSE, VALUE, DEFINE, UNDEFINE, STANDARD, ARCHITECTURE } meaning;

typedef struct option {
  const char *name, *short_name;
  meaning meaning;
} option;

static const option cuda_options[] = {
    {"--gpu-architecture", "-arch", ARCHITECTURE},
    {"--std", "-std", STANDARD},
    {"--define-macro", "-D", DEFINE},
    {"--undefine-macro", "-U", UNDEFINE},
    {"--include-path", "-I", VALUE},
    {"--fmad", "-fmad", TRUE_OR_FALSE},
    {"--ftz", "-ftz", TRUE_OR_FALSE},
    {"--prec-div", "-prec-div", TRUE_OR_FALSE},
    {"--prec-sqrt", "-prec-sqrt", TRUE_OR_FALSE},
    {"--use_fast_math", "-use_fast_math", FLAG},
    {"--extra-device-vectorization", "-extra-device-vectorization", FLAG},
    {"--maxrregcount", "-maxrregcount", VALUE},
    {"--device-debug", "-G", FLAG},
    {"--generate-line-info", "-lineinfo", FLAG},
    {"--restrict", "-restrict", FLAG},
    {"--device-as-default-execution-space", "-default-device", FLAG},
    {"--disable-warnings", "-w", FLAG},
    {"--dopt", "-dopt", VALUE},
    {"--ptxas-options", "-Xptxas", VALUE},
    {"--modify-stack-limit", "-modify-stack-limit", TRUE_OR_FALSE},
    {"--display-error-number", "-err-no", FLAG},
    {"--no-display-error-number", "-no-err-no", FLAG},
    {"--diag-error", "-diag-error", VALUE},
    {"--diag-suppress", "-diag-suppress", VALUE},
    {"--diag-warn", "-diag-warn", VALUE},
    {"--minimal", "-minimal", FLAG},
    {0},
};

/* hipRTC hands its options to clang, which knows families of them. */
static const option hip_options[] = {
    {"--offload-arch", "--gpu-architecture", ARCHITECTURE},
    {"-D", "-D", DEFINE},
    {"-U", "-U", UNDEFINE},
    {"-I", "-I", VALUE},
    {"-std", "--std", STANDARD},
    {"-w", "-w", FLAG},
    {"-O0", "-O1", FLAG},
    {"-O2", "-O3", FLAG},
    {"-ffast-math", "-fno-fast-math", FLAG},
    {"-ffp-contract", "-ffp-contract", VALUE},
    {"-fgpu-rdc", "-fno-gpu-rdc", FLAG},
    {"-mcumode", "-mno-cumode", FLAG},
    {"-munsafe-fp-atomics", "-mno-unsafe-fp-atomics", FLAG},
    {"-Wall", "-Wextra", FLAG},
    {"-g", "-ggdb", FLAG},
    {0},
};

static const int cuda_architectures[] = {50, 52, 53, 60, 61,  62,  70,  72,  75,  80, 86,
                                         87, 88, 89, 90, 100, 103, 110, 120, 121, 0};

static const char *const hip_architectures[] = {
    "gfx900",  "gfx902",  "gfx904",  "gfx906",  "gfx908",  "gfx909",  "gfx90a",  "gfx90c",  "gfx940",
    "gfx941",  "gfx942",  "gfx950",  "gfx1010", "gfx1011", "gfx1012", "gfx1013", "gfx1030", "gfx1031",
    "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036", "gfx1100", "gfx1101", "gfx1102", "gfx1103",
    "gfx1150", "gfx1151", "gfx1152", "gfx1200", "gfx1201", NULL};

char *sim_print(const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *text = NULL;
  if (vasprintf(&text, format, list) < 0) text = NULL;
  va_end(list);
  return text;
}

/* Is it this option? Then where its value begins: after "=", or right behind a single letter, or NULL: the next option.
 */
static bool matches(const char *given, const char *name, bool has_value, const char **value) {
  size_t length = strlen(name);
  if (strncmp(given, name, length) != 0) return false;
  *value = NULL;
  if (!given[length]) return true;
  if (!has_value) return false;
  bool is_letter = length == 2;
  if (given[length] != '=' && !is_letter) return false;
  *value = given + length + (given[length] == '=' && !is_letter);
  return true;
}

static const option *find(const option *table, const char *given, const char **value) {
  for (const option *o = table; o->name; o++) {
    bool has_value = o->meaning != FLAG;
    if (matches(given, o->name, has_value, value) || matches(given, o->short_name, has_value, value)) return o;
  }
  return NULL;
}

/* "sm_90a", "compute_80": a number that is known, with a or f behind it from 90 on. */
static bool take_cuda_architecture(const char *value, sim_target *target) {
  target->is_virtual = !strncmp(value, "compute_", 8);
  if (!target->is_virtual && strncmp(value, "sm_", 3) != 0) return false;
  char *end;
  long number = strtol(strchr(value, '_') + 1, &end, 10);
  bool has_suffix = number >= 90 && (*end == 'a' || (*end == 'f' && number >= 100));
  if (end[has_suffix]) return false;
  for (const int *known = cuda_architectures; *known; known++)
    if (*known == number) {
      snprintf(target->architecture, sizeof target->architecture, "%s", value);
      return true;
    }
  return false;
}

/* "gfx90a", "gfx90a:sramecc+:xnack-". */
static bool take_hip_architecture(const char *value, sim_target *target) {
  static const char *const features[] = {"sramecc+", "sramecc-", "xnack+", "xnack-", NULL};
  char text[sizeof target->architecture], *rest = text;
  if (snprintf(text, sizeof text, "%s", value) >= (int)sizeof text) return false;
  for (bool is_name = true; rest; is_name = false) {
    const char *part = strsep(&rest, ":");
    const char *const *known = is_name ? hip_architectures : features;
    while (*known && strcmp(*known, part) != 0) known++;
    if (!*known) return false;
  }
  snprintf(target->architecture, sizeof target->architecture, "%s", value);
  return true;
}

static bool is_standard(const char *value) {
  static const char *const known[] = {"c++03", "c++11", "c++14", "c++17", "c++20", NULL};
  for (const char *const *k = known; *k; k++)
    if (!strcmp(value, *k)) return true;
  return false;
}

static bool add(sim_target *target, const char *argument) {
  if (target->argument_count + 2 >= SIM_COMPILE_ARGUMENTS) return false;
  target->arguments[target->argument_count++] = argument;
  return true;
}

/* NULL if the value is one that the option can have; else the compiler's words about it. */
static const char *take(sim_vendor vendor, meaning what, const char *value, sim_target *target) {
  switch (what) {
  case ARCHITECTURE:
    if (vendor == SIM_CUDA ? take_cuda_architecture(value, target) : take_hip_architecture(value, target)) return NULL;
    return vendor == SIM_CUDA ? "invalid value for --gpu-architecture (-arch)" : "invalid target ID";
  case STANDARD: {
    /* The shim needs 17, and what an older standard allows is allowed by it too. */
    return is_standard(value) ? NULL : "invalid value for --std(-std)";
  }
  case TRUE_OR_FALSE:
    return !strcmp(value, "true") || !strcmp(value, "false") ? NULL : "expects true or false";
  case DEFINE:
    return add(target, "-D") && add(target, value) ? NULL : "too many macros";
  case UNDEFINE:
    return add(target, "-U") && add(target, value) ? NULL : "too many macros";
  case FLAG:
  case VALUE:
    break;
  }
  return NULL;
}

static char *refuse(sim_vendor vendor, const char *given, const char *why) {
  if (vendor == SIM_HIP) return sim_print("error: %s: '%s'\n", why, given);
  return sim_print("nvrtc: error: %s (%s)\n", why, given);
}

static bool take_default_architecture(sim_vendor vendor, sim_target *target, char **log) {
  if (vendor == SIM_CUDA) return take_cuda_architecture("compute_75", target);
  sim_device *device = sim_current(SIM_HIP) ? sim_current(SIM_HIP) : sim_device_at(SIM_HIP, 0);
  if (device) return take_hip_architecture(sim_setup()->architecture[SIM_HIP], target);
  *log = sim_print("error: no device to compile for, and no --offload-arch\n");
  return false;
}

bool sim_options_parse(sim_vendor vendor, const char *const *options, int count, sim_target *target, char **log) {
  *target = (sim_target){0};
  *log = NULL;
  for (int i = 0; i < count; i++) {
    const char *value, *given = options[i];
    if (!given) given = "";
    const option *known = find(vendor == SIM_CUDA ? cuda_options : hip_options, given, &value);
    if (!known) {
      *log = vendor == SIM_CUDA ? sim_print("nvrtc: error: unrecognized option %s found\n", given)
                                : refuse(vendor, given, "unknown argument");
      return false;
    }
    if (!value && known->meaning != FLAG) value = i + 1 < count && options[i + 1] ? options[++i] : "";
    const char *why = take(vendor, known->meaning, value, target);
    if (why) {
      *log = refuse(vendor, given, why);
      return false;
    }
  }
  return *target->architecture || take_default_architecture(vendor, target, log);
}
