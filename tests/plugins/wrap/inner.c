/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside: opened as the core would open it. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wrap.h"

enum { MESSAGE = 1000 };

static const helio_host *real_of(const helio_host *host) {
  return ((const wrap_inner *)host)->real;
}

static void inner_log(const helio_host *host, helio_log_level level, const char *format, ...) {
  char text[MESSAGE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  real_of(host)->log(real_of(host), level, "%s", text);
}

static helio_status inner_fail(const helio_host *host, helio_status status, const char *format, ...) {
  char text[MESSAGE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return real_of(host)->fail(real_of(host), status, "%s", text);
}

static const char *inner_parameter(const helio_host *host, const char *name) {
  const helio_parameter *const *known = ((const wrap_inner *)host)->plugin->parameters;
  while (known && *known && strcmp((*known)->name, name) != 0) known++;
  if (!known || !*known) return NULL;
  const char *given = getenv(name);
  return given ? given : (*known)->default_value;
}

static void *inner_allocate(const helio_host *host, size_t bytes) {
  return real_of(host)->allocate(real_of(host), bytes);
}

static void inner_release(const helio_host *host, void *memory) {
  real_of(host)->release(real_of(host), memory);
}

static helio_status inner_copy(const helio_host *host, const helio_member *to, helio_stream *stream, helio_place target,
                               const helio_member *from, helio_place source, size_t bytes) {
  return real_of(host)->copy(real_of(host), to, stream, target, from, source, bytes);
}

static helio_status inner_accumulate(const helio_host *host, const helio_member *member,
                                     const helio_accumulation *what) {
  return real_of(host)->accumulate(real_of(host), member, what);
}

static void inner_turn_begin(const helio_host *host, helio_turn turn) {
  real_of(host)->turn_begin(real_of(host), turn);
}

static void inner_turn_end(const helio_host *host, helio_turn turn) {
  real_of(host)->turn_end(real_of(host), turn);
}

/* It comes out of the same tree, so all its tables are of this version. */
static bool fits(const helio_plugin *plugin, bool collective) {
  if (!plugin || plugin->magic != HELIO_PLUGIN_MAGIC || plugin->size != sizeof *plugin ||
      plugin->abi_major != HELIO_ABI_MAJOR || plugin->abi_minor != HELIO_ABI_MINOR) {
    return false;
  }
  if (collective) return plugin->collective;
  return plugin->devices && plugin->memory && plugin->streams && plugin->kernels;
}

/* Opened, but not started. HELIO_NO_DEVICE: there is none. */
static helio_status open_inner(wrap_inner *inner, const helio_host *real, const wrap_settings *settings) {
  bool collective = settings->collective;
  const char *path = real->parameter(real, settings->plugin);
  *inner = (wrap_inner){.real = real};
  if (!path[0]) return real->fail(real, HELIO_NO_DEVICE, "no plugin is named that could be wrapped");
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return real->fail(real, HELIO_NO_DEVICE, "%s", dlerror());
  const helio_plugin *plugin = dlsym(library, HELIO_PLUGIN_SYMBOL);
  dlclose(library); /* its code stays */
  if (!fits(plugin, collective)) {
    return real->fail(real, HELIO_ABI_MISMATCH, "%s is no %s of this version", path,
                      collective ? "collective" : "backend");
  }
  inner->plugin = plugin;
  inner->host = (helio_host){.size = sizeof(helio_host),
                             .abi_major = HELIO_ABI_MAJOR,
                             .abi_minor = HELIO_ABI_MINOR,
                             .core_version = real->core_version,
                             .log = inner_log,
                             .fail = inner_fail,
                             .parameter = inner_parameter,
                             .allocate = inner_allocate,
                             .release = inner_release,
                             .copy = inner_copy,
                             .accumulate = inner_accumulate,
                             .turn_begin = inner_turn_begin,
                             .turn_end = inner_turn_end};
  return HELIO_OK;
}

helio_status wrap_inner_probe(const helio_host *real, const wrap_settings *settings, helio_probe_answer *answer) {
  wrap_inner inner;
  helio_status status = open_inner(&inner, real, settings);
  if (status != HELIO_NO_DEVICE) return status ? status : inner.plugin->probe(&inner.host, answer);
  snprintf(answer->reason, sizeof answer->reason, "%s names no plugin that can be opened", settings->plugin);
  return HELIO_OK;
}

static void release_rules(wrap_inner *inner) {
  if (inner->rules) inner->real->release(inner->real, inner->rules);
}

helio_status wrap_inner_start(wrap_inner *inner, const helio_host *real, const wrap_settings *settings) {
  helio_status status = open_inner(inner, real, settings);
  if (!status) status = wrap_rules_read(inner, real->parameter(real, settings->rules));
  if (!status) status = inner->plugin->init(&inner->host, &inner->state);
  if (status) release_rules(inner);
  return status;
}

void wrap_inner_stop(wrap_inner *inner) {
  inner->plugin->finish(inner->state);
  release_rules(inner);
}

size_t wrap_type_bytes(uint32_t type) {
  static const size_t bytes[] = {[HELIO_FLOAT32] = 4, [HELIO_FLOAT64] = 8, [HELIO_INT32] = 4,   [HELIO_INT64] = 8,
                                 [HELIO_UINT8] = 1,   [HELIO_BOOL] = 1,    [HELIO_FLOAT16] = 2, [HELIO_BFLOAT16] = 2};
  return bytes[type];
}
