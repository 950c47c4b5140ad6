/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that plugins may call. */
#include <stdlib.h>

#include "runtime/environment.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/plugins.h"
#include "runtime/turns.h"

static const char *plugin_name(const helio_host *host) {
  return ((const hi_plugin *)host)->report.name;
}

static void host_log(const helio_host *host, helio_log_level level, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  hi_log_plugin(level, plugin_name(host), format, arguments);
  va_end(arguments);
}

static helio_status host_fail(const helio_host *host, helio_status status, const char *format, ...) {
  (void)host;
  va_list arguments;
  va_start(arguments, format);
  hi_reason_set(format, arguments);
  va_end(arguments);
  return status;
}

static const char *host_parameter(const helio_host *host, const char *name) {
  return hi_environment_parameter(plugin_name(host), name);
}

static void *host_allocate(const helio_host *host, size_t bytes) {
  (void)host;
  void *memory = NULL;
  return posix_memalign(&memory, 64, bytes ? bytes : 1) == 0 ? memory : NULL;
}

static void host_release(const helio_host *host, void *memory) {
  (void)host;
  free(memory);
}

static void host_turn_begin(const helio_host *host, helio_turn turn) {
  (void)host;
  if (turn == HELIO_TURN_DRIVER || turn == HELIO_TURN_COLLECTIVE) hi_turn_begin(turn);
}

static void host_turn_end(const helio_host *host, helio_turn turn) {
  (void)host;
  if (turn == HELIO_TURN_DRIVER || turn == HELIO_TURN_COLLECTIVE) hi_turn_end(turn);
}

void hi_host_fill(helio_host *host, const hi_host_services *services) {
  *host = (helio_host){
      .size = sizeof *host,
      .abi_major = HELIO_ABI_MAJOR,
      .abi_minor = HELIO_ABI_MINOR,
      .core_version = helio_version(),
      .log = host_log,
      .fail = host_fail,
      .parameter = host_parameter,
      .allocate = host_allocate,
      .release = host_release,
      .copy = services->copy,
      .accumulate = services->accumulate,
      .turn_begin = host_turn_begin,
      .turn_end = host_turn_end,
  };
}
