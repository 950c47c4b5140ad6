/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that are a plugin's host: what they run on, and what they answer for its settings. */
#ifndef GPU_SETTINGS_H
#define GPU_SETTINGS_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* tests/gpusim/run was told how many cards of some vendor there are. */
static inline bool is_emulated(void) {
  return getenv("GPUSIM_CUDA") != NULL || getenv("GPUSIM_HIP") != NULL;
}

/* What the environment says, be it where a real card's libraries are. An emulated one has nothing to do with those that
 * the machine has in the usual folders. */
static inline const char *parameter_of_environment(const char *name) {
  const char *given = getenv(name);
  if (given != NULL) return given;
  return is_emulated() && strstr(name, "LIBRARIES") != NULL ? "/nowhere" : "";
}

#endif
