/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance program: every operation and type that a backend plugin offers, and the gradients of operations.
 *
 *   conformance [--plugin PATH] [--operation NAME] [--type NAME] [--long] [--list]
 *
 * See README.md. It prints what a cmocka program prints, because tests/run-tests reads it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conformance.h"
#include "device/topology.h"
#include "reference_random.h"
#include "runtime/plugins.h"

session run;

typedef struct options {
  const char *plugin, *operation, *type;
  bool list;
} options;

static struct { int passed, failed, skipped; } total;

/* ---- families ---- */

const family *family_of(helio_operation operation) {
  static const family *const lists[] = {elementwise_families, movement_families, reduce_families, window_families,
                                        network_families,     random_families,   update_families};
  for (int i = 0; i < COUNT(lists); i++) {
    for (const family *f = lists[i]; f->operation; f++) {
      if (f->operation == operation) return f;
    }
  }
  return NULL;
}

/* ---- one test ---- */

void failed(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("  ");
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
  run.failures++;
}

static void begin(const char *name) {
  printf("[ RUN      ] %s\n", name);
  fflush(stdout);
  run.examples = run.refused = run.failures = 0;
  run.reason[0] = 0;
  random_seed(name);
}

/* A plugin may refuse single calls, but not all of what it says it offers. */
static void end(const char *name) {
  if (run.examples == 0) failed("no cases");
  if (run.refused > 0 && run.refused >= run.examples) failed("every call was refused: %s", run.reason);
  if (run.failures == 0 && run.refused > 0) printf("  %d calls were refused: %s\n", run.refused, run.reason);
  printf("%s %s\n", run.failures ? "[  FAILED  ]" : "[       OK ]", name);
  fflush(stdout);
  total.failed += run.failures > 0;
  total.passed += run.failures == 0;
}

static void skip(const char *name, const char *reason) {
  printf("[ RUN      ] %s\nSKIP: %s\n[  SKIPPED ] %s\n", name, reason, name);
  total.skipped++;
}

/* ---- all tests ---- */

static bool offers(helio_operation operation, helio_type type) {
  return run.device->physical->plugin->kernel_of[operation][type] != NULL;
}

static void test_kernel(const hi_row *row, helio_type type, const options *o) {
  const family *f = family_of(row->operation);
  char name[100];
  bool offered = offers(row->operation, type);
  if (o->type && strcasecmp(o->type, helio_type_name(type)) != 0) return;
  if (!offered && !(run.is_host && row->types >> type & 1)) return;
  snprintf(name, sizeof name, "conformance.%s.%s", row->info.name, helio_type_name(type));
  if (o->list) {
    printf("%s\n", name);
    return;
  }
  begin(name);
  if (!offered) failed("the host's plugin has no kernel for it");
  if (offered && !(row->types >> type & 1)) failed("the operation is not defined for this type");
  if (offered && f && f->examples) f->examples(f, type);
  run.examples += !offered;
  end(name);
}

static void test_gradient(const hi_row *row, const options *o) {
  char name[100];
  if (!row->gradient || (o->type && strcasecmp(o->type, "float64") != 0)) return;
  snprintf(name, sizeof name, "gradient.%s", row->info.name);
  if (o->list) {
    printf("%s\n", name);
  } else if (row->kind == HI_ROW_KERNEL && !offers(row->operation, HELIO_FLOAT64)) {
    if (!run.is_host) skip(name, "the plugin has no kernel in float64");
  } else {
    begin(name);
    check_gradient(row);
    end(name);
  }
}

static void test_all(const options *o) {
  int count;
  const helio_operation_info *const *operations = helio_operations(&count);
  if (!o->list && !o->operation && !o->type) {
    begin("conformance.philox");
    check_philox();
    end("conformance.philox");
  }
  for (int i = 0; operations && i < count; i++) {
    const hi_row *row = hi_row_of((helio_operation)(i + 1));
    if (o->operation && strcasecmp(o->operation, row->info.name) != 0) continue;
    for (int type = HELIO_FLOAT32; row->kind == HI_ROW_KERNEL && type <= HELIO_BOOL; type++) {
      test_kernel(row, (helio_type)type, o);
    }
    test_gradient(row, o);
  }
}

/* ---- the device ---- */

static int usage(const char *wrong) {
  fprintf(stderr,
          "conformance: %s\n"
          "usage: conformance [--plugin PATH] [--operation NAME] [--type NAME] [--long] [--list]\n",
          wrong);
  return 2;
}

/* Fills the options; 0 if that is in order. */
static int read_arguments(int count, char **arguments, options *o) {
  for (int i = 1; i < count; i++) {
    const char *value = i + 1 < count ? arguments[i + 1] : NULL;
    const char **text = strcmp(arguments[i], "--plugin") == 0      ? &o->plugin
                        : strcmp(arguments[i], "--operation") == 0 ? &o->operation
                        : strcmp(arguments[i], "--type") == 0      ? &o->type
                                                                   : NULL;
    if (text) {
      if (!value) return usage("the last argument needs a value");
      *text = value;
      i++;
    } else if (strcmp(arguments[i], "--long") == 0) {
      run.lengthy = true;
    } else if (strcmp(arguments[i], "--list") == 0) {
      o->list = true;
    } else {
      return usage(arguments[i]);
    }
  }
  return 0;
}

/* Makes the library load the plugin at `path` and prefer it. The host's own is found as ever. */
static bool choose_plugin(const char *path) {
  static helio_plugin_report report;
  char all[8192];
  const char *before = getenv("HELIO_PLUGIN_PATH");
  if (helio_plugin_inspect(path, &report) || report.status != HELIO_PLUGIN_USABLE) {
    fprintf(stderr, "conformance: %s: %s\n", path, helio_error_pending() ? helio_error_message() : report.reason);
    return false;
  }
  snprintf(all, sizeof all, "%s%s%s", path, before && *before ? ":" : "", before ? before : "");
  setenv("HELIO_PLUGIN_PATH", all, 1);
  setenv("HELIO_BACKEND", report.name, 1);
  return true;
}

/* The first device of the backend that is preferred. Nothing may run anywhere else. */
static bool find_device(void) {
  int backend_count = 0, device_count = 0;
  if (helio_init() || helio_set_soft_placement(false) || helio_set_strict_placement(true)) return false;
  hi_plugin *const *backends = hi_backends(&backend_count);
  hi_device *const *devices = hi_devices(&device_count);
  for (int i = 0; i < device_count && !run.device; i++) {
    if (devices[i]->physical->plugin == backends[0]) run.device = devices[i];
  }
  if (!run.device) return false;
  run.is_host = run.device->physical->plugin->is_host;
  return true;
}

static void report_totals(void) {
  printf("[==========] %d test(s) run.\n", total.passed + total.failed + total.skipped);
  printf("[  PASSED  ] %d test(s).\n", total.passed);
  if (total.skipped) printf("[  SKIPPED ] %d test(s)\n", total.skipped);
  if (total.failed) printf("[  FAILED  ] %d test(s)\n", total.failed);
}

int main(int count, char **arguments) {
  options o = {0};
  int wrong = read_arguments(count, arguments, &o);
  if (wrong) return wrong;
  setenv("HELIO_ARENA_DEBUG", "1", 0); /* exact sizes: a write past the end of a tensor is noticed */
  if (o.plugin && !choose_plugin(o.plugin)) return 1;
  if (!find_device()) {
    fprintf(stderr, "conformance: no device: %s\n", helio_error_message());
    return 1;
  }
  if (!o.list) printf("[==========] %s on %s.\n", run.device->info.description, run.device->name);
  HELIO_DEVICE(run.device->name) {
    test_all(&o);
  }
  if (!o.list) report_totals();
  if (!o.list && total.passed + total.failed + total.skipped == 0) return usage("no test has that operation and type");
  if (helio_shutdown()) {
    fprintf(stderr, "conformance: %s\n", helio_error_message());
    return 1;
  }
  return total.failed ? 1 : 0;
}
