/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin whose memory and kernels are used, as a rule the CPU's. It is opened as the core would open it and sees a
 * host of its own, which hands everything on to the real one but keeps back the causes of failures: those of a queued
 * command are told later, by another call. */
#include "strict.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Has a lock of its own: a kernel may fail on one of its helper threads. */
static struct {
  pthread_mutex_t lock;
  char text[STRICT_MESSAGE / 2];
} last_failure = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void inner_log(const helio_host *host, helio_log_level level, const char *format, ...) {
  const helio_host *real = ((const strict_inner_host *)host)->real;
  char text[STRICT_MESSAGE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  real->log(real, level, "inside: %s", text);
}

static helio_status inner_fail(const helio_host *host, helio_status status, const char *format, ...) {
  (void)host;
  va_list arguments;
  pthread_mutex_lock(&last_failure.lock);
  va_start(arguments, format);
  vsnprintf(last_failure.text, sizeof last_failure.text, format, arguments);
  va_end(arguments);
  pthread_mutex_unlock(&last_failure.lock);
  return status;
}

/* The real host knows only this plugin's own parameters; the inner plugin gets the defaults of its own. */
static const char *inner_parameter(const helio_host *host, const char *name) {
  const helio_plugin *plugin = ((const strict_inner_host *)host)->plugin;
  for (size_t i = 0; plugin->parameters != NULL && plugin->parameters[i] != NULL; i++) {
    if (strcmp(plugin->parameters[i]->name, name) == 0) return plugin->parameters[i]->default_value;
  }
  return NULL;
}

static void *inner_allocate(const helio_host *host, size_t bytes) {
  const helio_host *real = ((const strict_inner_host *)host)->real;
  return real->allocate(real, bytes);
}

static void inner_release(const helio_host *host, void *memory) {
  const helio_host *real = ((const strict_inner_host *)host)->real;
  real->release(real, memory);
}

void strict_inner_message(char *text, size_t size) {
  pthread_mutex_lock(&last_failure.lock);
  snprintf(text, size, "%s", last_failure.text);
  pthread_mutex_unlock(&last_failure.lock);
}

helio_status strict_inner_fail(strict_call *call, helio_status status, const char *doing) {
  char text[STRICT_MESSAGE / 2];
  strict_inner_message(text, sizeof text);
  return strict_fail(call, status, "%s: %s", doing, text);
}

/* The host for collectives is left out: the inner plugin is a backend. */
static void fill_host(strict_inner *inner) {
  const helio_host *real = strict_current->host;
  inner->host.real = real;
  inner->host.plugin = inner->plugin;
  inner->host.table = (helio_host){
      .size = sizeof(helio_host),
      .abi_major = HELIO_ABI_MAJOR,
      .abi_minor = HELIO_ABI_MINOR,
      .core_version = real->core_version,
      .log = inner_log,
      .fail = inner_fail,
      .parameter = inner_parameter,
      .allocate = inner_allocate,
      .release = inner_release,
  };
}

/* All its tables must be of this build; it comes out of the same tree. */
static helio_status check_entry(strict_call *call, const helio_plugin *plugin, const char *path) {
  if (plugin->size != sizeof *plugin || plugin->magic != HELIO_PLUGIN_MAGIC || plugin->abi_major != HELIO_ABI_MAJOR ||
      plugin->abi_minor != HELIO_ABI_MINOR) {
    return strict_fail(call, HELIO_ABI_MISMATCH, "%s was built for another ABI", path);
  }
  if (plugin->devices == NULL || plugin->memory == NULL || plugin->streams == NULL ||
      plugin->memory->native_buffer == NULL) {
    return strict_fail(call, HELIO_ABI_MISMATCH, "%s is no backend on host memory", path);
  }
  return HELIO_OK;
}

static helio_status check_device(strict_call *call, const strict_inner *inner) {
  helio_device_description description = {.size = sizeof description};
  helio_status status = inner->plugin->devices->describe(inner->state, 0, &description);
  if (status != HELIO_OK) return strict_inner_fail(call, status, "describe");
  if ((description.capabilities & HELIO_CAPABLE_HOST_MEMORY) != 0 && STRICT_GUARD % description.alignment == 0) {
    return HELIO_OK;
  }
  return strict_fail(call, HELIO_NOT_SUPPORTED, "%s: its memory is not the host's, or is aligned to %u bytes",
                     inner->plugin->name, description.alignment);
}

static helio_status start(strict_call *call, strict_inner *inner) {
  helio_probe_answer answer = {.size = sizeof answer};
  helio_status status = inner->plugin->probe(&inner->host.table, &answer);
  if (status != HELIO_OK) return strict_inner_fail(call, status, "probe");
  if (answer.devices == 0) return strict_fail(call, HELIO_NO_DEVICE, "inside: %.400s", answer.reason);
  status = inner->plugin->init(&inner->host.table, &inner->state);
  if (status != HELIO_OK) return strict_inner_fail(call, status, "init");
  status = check_device(call, inner);
  if (status != HELIO_OK) inner->plugin->finish(inner->state);
  return status;
}

helio_status strict_inner_open(strict_call *call, const char *path) {
  strict_inner *inner = &strict_current->inner;
  inner->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (inner->library == NULL) return strict_fail(call, HELIO_NO_DEVICE, "HELIO_STRICT_INNER: %.400s", dlerror());
  inner->plugin = dlsym(inner->library, HELIO_PLUGIN_SYMBOL);
  helio_status status = HELIO_OK;
  if (inner->plugin == NULL) status = strict_fail(call, HELIO_ABI_MISMATCH, "%.400s is no plugin", path);
  if (status == HELIO_OK) status = check_entry(call, inner->plugin, path);
  if (status == HELIO_OK) {
    fill_host(inner);
    status = start(call, inner);
  }
  if (status != HELIO_OK) dlclose(inner->library);
  return status;
}

void strict_inner_close(void) {
  strict_inner *inner = &strict_current->inner;
  inner->plugin->finish(inner->state);
  dlclose(inner->library);
}

const helio_kernel *strict_inner_kernel(uint32_t operation) {
  const helio_kernel_table *table = strict_current->inner.plugin->kernels;
  for (size_t i = 0; table != NULL && i < table->count; i++) {
    if (table->kernels[i]->operation == operation) return table->kernels[i];
  }
  return NULL;
}
