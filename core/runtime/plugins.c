/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/plugins.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "runtime/environment.h"
#include "runtime/error.h"
#include "runtime/leaks.h"
#include "runtime/log.h"
#include "runtime/nearest.h"

/* Written only while the library starts or ends, under runtime.c's lock. */
static hi_plugin **plugins;
static const helio_plugin_report **reports;
static int plugin_count;
static hi_plugin **backends;
static int backend_count;
static hi_plugin **collectives;
static int collective_count;
static bool ordered;

static bool refuse(hi_plugin *plugin, helio_plugin_status status, const char *format, ...) HELIO_PRINTF(3, 4);

static bool refuse(hi_plugin *plugin, helio_plugin_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(plugin->report.reason, sizeof plugin->report.reason, format, arguments);
  va_end(arguments);
  plugin->report.status = status;
  return false;
}

/* Until the plugin has told its name, the file's stands in for it. */
static void name_by_file(helio_plugin_report *report, const char *path) {
  const char *base = strrchr(path, '/');
  base = base ? base + 1 : path;
  snprintf(report->path, sizeof report->path, "%s", path);
  snprintf(report->name, sizeof report->name, "%.*s", (int)strcspn(base, "."), base);
}

/* Opens the file and reads what it says of itself, without calling anything in it. Its code stays for good: threads
 * that it or a vendor's library has started, and destructors of what they keep, may still run when it has been closed.
 */
static bool open_file(hi_plugin *plugin) {
  struct stat about;
  /* Opening a pipe would wait for its other end. */
  if (stat(plugin->report.path, &about) == 0 && !S_ISREG(about.st_mode)) {
    return refuse(plugin, HELIO_PLUGIN_CANNOT_OPEN, "it is not a file");
  }
  hi_log(HELIO_LOG_DEBUG, "opening plugin %s", plugin->report.path);
  plugin->library = dlopen(plugin->report.path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!plugin->library) return refuse(plugin, HELIO_PLUGIN_CANNOT_OPEN, "%s", dlerror());
  const helio_plugin *entry = dlsym(plugin->library, HELIO_PLUGIN_SYMBOL);
  if (!entry) return refuse(plugin, HELIO_PLUGIN_NO_SYMBOL, "it does not export " HELIO_PLUGIN_SYMBOL);
  if (entry->size < HELIO_STRUCT_SIZE(helio_plugin, abi_minor)) {
    return refuse(plugin, HELIO_PLUGIN_MALFORMED, "its entry is %zu bytes long, too short for an ABI number",
                  entry->size);
  }
  if (entry->magic != HELIO_PLUGIN_MAGIC) return refuse(plugin, HELIO_PLUGIN_NOT_A_PLUGIN, "its magic number is wrong");
  if (entry->abi_major != HELIO_ABI_MAJOR || entry->abi_minor != HELIO_ABI_MINOR) {
    bool newer = entry->abi_major > HELIO_ABI_MAJOR ||
                 (entry->abi_major == HELIO_ABI_MAJOR && entry->abi_minor > HELIO_ABI_MINOR);
    return refuse(plugin, newer ? HELIO_PLUGIN_TOO_NEW : HELIO_PLUGIN_TOO_OLD,
                  "it was built for ABI %u.%u, this library has %d.%d: take the plugin that came with the library",
                  entry->abi_major, entry->abi_minor, HELIO_ABI_MAJOR, HELIO_ABI_MINOR);
  }
  return hi_plugin_read_tables(plugin, entry);
}

/* Its settings are known from now on, whether it is used or not. */
static bool read_settings(hi_plugin *plugin) {
  char reason[600];
  helio_status status = hi_environment_add(plugin->report.name, plugin->entry.parameters, reason, sizeof reason);
  plugin->no_memory = status == HELIO_OUT_OF_MEMORY;
  if (!status) return true;
  return refuse(plugin, status == HELIO_ABI_MISMATCH ? HELIO_PLUGIN_MALFORMED : HELIO_PLUGIN_PROBE_FAILED, "%s",
                reason);
}

static bool probe(hi_plugin *plugin, bool inspecting) {
  plugin->unprobed = false;
  helio_probe_answer answer = {.size = sizeof answer, .inspecting = inspecting};
  hi_log(HELIO_LOG_DEBUG, "probing plugin %s (%s)", plugin->report.name, plugin->report.path);
  hi_reason_clear();
  helio_status status = plugin->entry.probe(&plugin->host, &answer);
  plugin->no_memory = status == HELIO_OUT_OF_MEMORY;
  if (status) return refuse(plugin, HELIO_PLUGIN_PROBE_FAILED, "%s", hi_reason(status));
  answer.reason[sizeof answer.reason - 1] = 0;
  plugin->report.devices = (int)answer.devices;
  plugin->is_host = answer.is_host;
  if (plugin->report.is_backend && answer.devices == 0) {
    return refuse(plugin, HELIO_PLUGIN_NO_DEVICES, "%s", answer.reason[0] ? answer.reason : "it found no device");
  }
  if (answer.no_use) return refuse(plugin, HELIO_PLUGIN_NO_USE, "%s", answer.reason);
  plugin->report.status = HELIO_PLUGIN_USABLE;
  snprintf(plugin->report.reason, sizeof plugin->report.reason, "%s", answer.reason);
  return true;
}

static bool start(hi_plugin *plugin) {
  hi_log(HELIO_LOG_DEBUG, "starting plugin %s", plugin->report.name);
  hi_reason_clear();
  helio_status status = plugin->entry.init(&plugin->host, &plugin->state);
  plugin->no_memory = status == HELIO_OUT_OF_MEMORY;
  if (status) return refuse(plugin, HELIO_PLUGIN_INIT_FAILED, "%s", hi_reason(status));
  plugin->started = true;
  return true;
}

static void plugin_free(hi_plugin *plugin) {
  if (!plugin) return;
  if (atomic_load(&plugin->stuck)) {
    hi_keep_for_ever(plugin);
    return;
  }
  if (plugin->started) plugin->entry.finish(plugin->state);
  if (plugin->library) dlclose(plugin->library);
  free(plugin->kernels);
  free(plugin);
}

static hi_plugin *plugin_new(const char *path, const hi_host_services *services) {
  hi_plugin *plugin = calloc(1, sizeof *plugin);
  if (!plugin) return NULL;
  name_by_file(&plugin->report, path);
  hi_host_fill(&plugin->host, services);
  return plugin;
}

/* Nothing is wrong with the plugin, whether or not the machine has what it needs. */
static bool is_sound(const hi_plugin *plugin) {
  helio_plugin_status status = plugin->report.status;
  return status == HELIO_PLUGIN_USABLE || status == HELIO_PLUGIN_NO_DEVICES || status == HELIO_PLUGIN_NO_USE ||
         status == HELIO_PLUGIN_NOT_CHOSEN;
}

/* A sound plugin of this name that came earlier in the search. */
static const hi_plugin *earlier(const hi_plugin *plugin) {
  for (int i = 0; i < plugin_count && plugins[i] != plugin; i++) {
    if (is_sound(plugins[i]) && strcmp(plugins[i]->report.name, plugin->report.name) == 0) return plugins[i];
  }
  return NULL;
}

static bool is_automatic(const char *wanted) {
  return !*wanted || strcasecmp(wanted, "auto") == 0;
}

/* Is it in the list of HELIO_BACKEND, with or without the mark of what may be absent? */
static bool is_named(const hi_plugin *plugin, const char *list) {
  size_t length = strlen(plugin->report.name);
  while (*list) {
    size_t span = strcspn(list, ",");
    bool marked = span == length + 1 && list[length] == '?';
    if ((span == length || marked) && strncasecmp(list, plugin->report.name, length) == 0) return true;
    list += span + (list[span] == ',');
  }
  return false;
}

/* A backend that nobody asked for is not even probed: what its driver does at that, and how long it takes, concerns
 * only those who want it. */
static void load(hi_plugin *plugin) {
  const char *wanted = hi_environment_text(HI_BACKEND);
  if (open_file(plugin)) {
    const hi_plugin *first = earlier(plugin);
    if (first) {
      refuse(plugin, HELIO_PLUGIN_SHADOWED, "%s, found first, has the same name", first->report.path);
    } else if (read_settings(plugin)) {
      plugin->unprobed = plugin->report.is_backend && !is_automatic(wanted) && !is_named(plugin, wanted);
      if (plugin->unprobed) {
        refuse(plugin, HELIO_PLUGIN_NOT_CHOSEN, "HELIO_BACKEND=%s does not name it", wanted);
      } else {
        probe(plugin, false);
      }
    }
  }
  bool expected = is_sound(plugin) || plugin->report.status == HELIO_PLUGIN_SHADOWED;
  if (plugin->report.status != HELIO_PLUGIN_USABLE && !plugin->unprobed) {
    hi_log(expected ? HELIO_LOG_DEBUG : HELIO_LOG_WARNING, "plugin %s (%s) is not used, %s: %s", plugin->report.name,
           plugin->report.path, helio_plugin_status_text(plugin->report.status), plugin->report.reason);
  }
}

static helio_status load_all(const hi_host_services *services) {
  int file_count = 0;
  char **files = hi_plugin_search(hi_environment_text(HI_PLUGIN_PATH), &file_count);
  size_t room = (size_t)file_count + 1;
  plugins = files ? calloc(room, sizeof *plugins) : NULL;
  reports = plugins ? calloc(room, sizeof *reports) : NULL;
  backends = reports ? calloc(room, sizeof *backends) : NULL;
  collectives = backends ? calloc(room, sizeof *collectives) : NULL;
  helio_status status = collectives ? HELIO_OK : hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the list of plugins");
  for (int i = 0; !status && i < file_count; i++) {
    hi_plugin *plugin = plugin_new(files[i], services);
    if (!plugin) {
      status = hi_fail(HELIO_OUT_OF_MEMORY, "no memory for plugin %s", files[i]);
      break;
    }
    reports[plugin_count] = &plugin->report;
    plugins[plugin_count++] = plugin;
    load(plugin);
  }
  free(files);
  return status;
}

static hi_plugin *find_backend(const char *name, size_t length) {
  hi_plugin *unusable = NULL;
  for (int i = 0; i < plugin_count; i++) {
    const helio_plugin_report *report = &plugins[i]->report;
    if (strlen(report->name) != length || strncasecmp(report->name, name, length) != 0) continue;
    if (report->status == HELIO_PLUGIN_USABLE && report->is_backend) return plugins[i];
    unusable = plugins[i];
  }
  return unusable;
}

static bool is_backend_in_use(const hi_plugin *plugin) {
  for (int i = 0; i < backend_count; i++) {
    if (backends[i] == plugin) return true;
  }
  return false;
}

static void start_or_warn(hi_plugin *plugin) {
  if (start(plugin)) return;
  hi_log(HELIO_LOG_WARNING, "plugin %s (%s) is not used, init failed: %s", plugin->report.name, plugin->report.path,
         plugin->report.reason);
}

static void take(hi_plugin *plugin) {
  if (is_backend_in_use(plugin)) return;
  start_or_warn(plugin);
  if (plugin->started) backends[backend_count++] = plugin;
}

static void list_usable(char *text, size_t size) {
  size_t length = 0;
  text[0] = 0;
  for (int i = 0; i < plugin_count && length < size; i++) {
    const helio_plugin_report *report = &plugins[i]->report;
    if (plugins[i]->unprobed) probe(plugins[i], false);
    if (!report->is_backend || report->status != HELIO_PLUGIN_USABLE) continue;
    length += (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "", report->name);
  }
  if (!length) snprintf(text, size, "none");
}

/* Asked for and impossible: the reason, and what there is. */
static helio_status cannot_have(const char *name, size_t length, const hi_plugin *plugin) {
  char usable[400], near_text[100] = "";
  const char *names[64];
  list_usable(usable, sizeof usable);
  if (plugin) {
    bool wrong_kind = plugin->report.status == HELIO_PLUGIN_USABLE;
    return hi_fail(plugin->no_memory ? HELIO_OUT_OF_MEMORY : HELIO_NO_DEVICE,
                   "HELIO_BACKEND asks for %.*s, but plugin %s is not usable: %s%s%s. Usable: %s", (int)length, name,
                   plugin->report.path, helio_plugin_status_text(plugin->report.status),
                   plugin->report.reason[0] || wrong_kind ? ": " : "",
                   wrong_kind ? "it is no backend" : plugin->report.reason, usable);
  }
  int count = 0;
  char word[64];
  snprintf(word, sizeof word, "%.*s", (int)length, name);
  for (int i = 0; i < plugin_count && count < 64; i++) {
    if (plugins[i]->report.is_backend) names[count++] = plugins[i]->report.name;
  }
  const char *near = hi_nearest(word, names, count);
  if (near) snprintf(near_text, sizeof near_text, "; did you mean %s?", near);
  return hi_fail(HELIO_NO_DEVICE, "HELIO_BACKEND asks for %s, but no plugin of that name was found%s Usable: %s", word,
                 near ? near_text : ".", usable);
}

static helio_status choose_named(const char *list) {
  ordered = true;
  while (*list) {
    size_t span = strcspn(list, ","), length = span;
    bool optional = length > 0 && list[length - 1] == '?';
    if (optional) length--;
    if (length > 0) {
      hi_plugin *plugin = find_backend(list, length);
      bool usable = plugin && plugin->report.status == HELIO_PLUGIN_USABLE && plugin->report.is_backend;
      if (usable) take(plugin);
      bool works = usable && plugin->started;
      if (!works && !optional) return cannot_have(list, length, plugin);
    }
    list += span + (list[span] == ',');
  }
  return HELIO_OK;
}

static bool have_host(void) {
  for (int i = 0; i < backend_count; i++) {
    if (backends[i]->is_host) return true;
  }
  return false;
}

/* The host's own backend is used in any case: it is looked for among those that nobody asked for. */
static void take_host(const char *wanted) {
  for (int i = 0; i < plugin_count && !have_host(); i++) {
    hi_plugin *plugin = plugins[i];
    if (!plugin->unprobed || !probe(plugin, false)) continue;
    if (plugin->is_host) {
      take(plugin);
    } else {
      refuse(plugin, HELIO_PLUGIN_NOT_CHOSEN, "HELIO_BACKEND=%s does not name it", wanted);
    }
  }
}

static helio_status choose(void) {
  const char *wanted = hi_environment_text(HI_BACKEND);
  ordered = false;
  helio_status status = is_automatic(wanted) ? HELIO_OK : choose_named(wanted);
  if (status) return status;
  for (int i = 0; i < plugin_count; i++) {
    hi_plugin *plugin = plugins[i];
    if (plugin->report.status != HELIO_PLUGIN_USABLE) continue;
    if (plugin->report.is_backend) {
      take(plugin);
    } else {
      start_or_warn(plugin);
    }
    if (plugin->started && plugin->report.is_collective) collectives[collective_count++] = plugin;
  }
  take_host(wanted);
  return have_host() ? HELIO_OK : HELIO_NO_DEVICE;
}

/* Without the host's backend nothing can run: say what was found in its place. */
static helio_status no_host(void) {
  char found[1200] = "";
  size_t length = 0;
  bool no_memory = false;
  for (int i = 0; i < plugin_count && length < sizeof found; i++) {
    const helio_plugin_report *report = &plugins[i]->report;
    no_memory = no_memory || plugins[i]->no_memory;
    length += (size_t)snprintf(found + length, sizeof found - length, "; %s: %s, %s", report->path,
                               helio_plugin_status_text(report->status), report->reason);
  }
  return hi_fail(no_memory ? HELIO_OUT_OF_MEMORY : HELIO_NO_DEVICE,
                 "no usable plugin for the host's CPU in HELIO_PLUGIN_PATH or %s%s", HELIO_PLUGIN_DIR,
                 plugin_count ? found : "; no plugin was found at all: is the installation complete?");
}

helio_status hi_plugins_start(const hi_host_services *services) {
  helio_status status = load_all(services);
  if (!status) {
    hi_environment_warn_unknown();
    status = choose();
    if (status && !helio_error_pending()) status = no_host();
  }
  if (status) hi_plugins_finish();
  return status;
}

helio_status hi_plugin_inspect(const char *path, const hi_host_services *services, helio_plugin_report *report) {
  hi_plugin *plugin = plugin_new(path, services);
  if (!plugin) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for plugin %s", path);
  if (open_file(plugin) && read_settings(plugin) && probe(plugin, true)) start(plugin);
  *report = plugin->report;
  plugin_free(plugin);
  return HELIO_OK;
}

void hi_plugins_finish(void) {
  while (plugin_count > 0) plugin_free(plugins[--plugin_count]);
  free(plugins);
  free(reports);
  free(backends);
  plugins = NULL;
  reports = NULL;
  backends = NULL;
  backend_count = 0;
  free(collectives);
  collectives = NULL;
  collective_count = 0;
}

hi_plugin *const *hi_backends(int *count) {
  *count = backend_count;
  return backends;
}

hi_plugin *const *hi_collectives(int *count) {
  *count = collective_count;
  return collectives;
}

bool hi_backends_ordered(void) {
  return ordered;
}

const char *helio_plugin_status_text(helio_plugin_status status) {
  switch (status) {
#define TEXT(name, value, text)                                                                                        \
  case HELIO_PLUGIN_##name:                                                                                            \
    return text;
    HELIO_PLUGIN_STATE_LIST(TEXT)
#undef TEXT
  }
  return "unknown";
}

const helio_plugin_report *const *helio_plugins(int *count) {
  if (hi_enter(__func__)) return NULL;
  if (!count) {
    hi_fail(HELIO_INVALID_ARGUMENT, "count is NULL");
    return NULL;
  }
  *count = plugin_count;
  return reports;
}
