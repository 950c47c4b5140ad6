/* SPDX-License-Identifier: Apache-2.0 */
/* The variant's devices, wrapped by the test backend that changes what they do (tests/plugins/wrap). */
#ifndef HELIO_TEST_WRAPPED_H
#define HELIO_TEST_WRAPPED_H

#include "replica_devices.h"

/* For five of them and the rules for them. Sums are the core's own. */
static inline void wrap_devices(const char *rules) {
  char path[PATH_MAX * 8], plugin[PATH_MAX + 64];
  const char *build = build_folder();
  snprintf(path, sizeof path, "%s/tests/plugins/wrap/.libs:%s/backends/cpu/.libs", build, build);
  snprintf(plugin, sizeof plugin, "%s/%s", build,
           on_strict() ? "tests/plugins/strict/.libs/strict.so" : "backends/cpu/.libs/cpu.so");
  setenv("HELIO_PLUGIN_PATH", path, 1);
  setenv("HELIO_BACKEND", "wrap", 1);
  setenv("HELIO_WRAP_PLUGIN", plugin, 1);
  setenv("HELIO_WRAP_RULES", rules, 1);
  setenv("HELIO_LOGICAL_DEVICES", "cpu:0=5", 1);
  if (on_strict()) setenv("HELIO_STRICT_DEVICES", "5", 1);
}

static inline void start_wrapped(const char *rules) {
  wrap_devices(rules);
  assert_ok(helio_init());
}

/* ---- what the rule "tell" says ---- */

enum { MOST_TOLD = 4000 };

typedef struct told {
  int device;
  unsigned long long number; /* of the call */
  char name[32];
  size_t elements;
  void *stream;
} told;

static struct {
  told calls[MOST_TOLD];
  int count;
} heard;

/* The library calls it one line at a time. */
static inline void hear(void *user, helio_log_level level, const char *line) {
  const char *text = strstr(line, "wrap: device ");
  (void)user, (void)level;
  if (!text || heard.count == MOST_TOLD) return;
  told *t = &heard.calls[heard.count];
  int found = sscanf(text, "wrap: device %d, call %llu: %31s of %zu on stream %p", &t->device, &t->number, t->name,
                     &t->elements, &t->stream);
  if (found == 5) heard.count++;
}

static inline void listen(void) {
  heard.count = 0;
  helio_set_log_sink(hear, NULL);
}

#endif
