/* SPDX-License-Identifier: Apache-2.0 */
/* The variant's devices, wrapped by the test backend that changes what they do (tests/plugins/wrap). */
#ifndef HELIO_TEST_WRAPPED_H
#define HELIO_TEST_WRAPPED_H

#include "replica_devices.h"

/* Starts the library with five of them and the rules for them. Sums are the core's own. */
static inline void start_wrapped(const char *rules) {
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
  assert_ok(helio_init());
}

#endif
