/* SPDX-License-Identifier: Apache-2.0 */
/* Five devices of the variant's kind, and strategies over them. */
#ifndef HELIO_TEST_REPLICA_DEVICES_H
#define HELIO_TEST_REPLICA_DEVICES_H

#include <glob.h>

#include "support.h"

enum { MOST_REPLICAS = 5 };

/* Starts the library with them and with all collectives of the build tree. */
static inline void start_replica_devices(void) {
  char path[PATH_MAX * 8], pattern[PATH_MAX + 32];
  glob_t folders;
  size_t length = (size_t)snprintf(path, sizeof path, "%s", given_path);
  snprintf(pattern, sizeof pattern, "%s/collectives/*/.libs", build_folder());
  assert_int_equal(glob(pattern, 0, NULL, &folders), 0);
  for (size_t i = 0; i < folders.gl_pathc && length < sizeof path; i++) {
    length += (size_t)snprintf(path + length, sizeof path - length, ":%s", folders.gl_pathv[i]);
  }
  globfree(&folders);
  setenv("HELIO_PLUGIN_PATH", path, 1);
  setenv("HELIO_LOGICAL_DEVICES", "cpu:0=5", 1);
  if (on_strict()) setenv("HELIO_STRICT_DEVICES", "5", 1);
  assert_ok(helio_init());
}

/* NULL if the collective does not serve these devices: an error is pending then. */
static inline helio_strategy *mirrored_on(const char *const *devices, int replicas, const double *weights,
                                          const char *collective) {
  helio_mirrored_options options = {.size = sizeof options, .collective = collective};
  for (int i = 0; i < replicas; i++) {
    options.devices[i] = devices[i];
    if (weights) options.weights[i] = weights[i];
  }
  return helio_mirrored_with(&options);
}

/* Over devices of the variant's kind. */
static inline helio_strategy *mirrored_over(int replicas, const double *weights, const char *collective) {
  static const char *const names[2][MOST_REPLICAS] = {{"cpu:0", "cpu:1", "cpu:2", "cpu:3", "cpu:4"},
                                                      {"gpu:0", "gpu:1", "gpu:2", "gpu:3", "gpu:4"}};
  return mirrored_on(names[on_gpu()], replicas, weights, collective);
}

#endif
