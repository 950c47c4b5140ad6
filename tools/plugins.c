/* SPDX-License-Identifier: Apache-2.0 */
/* helio plugins: every plugin file, and what became of it. Each is opened in a child process of its own, so that one
 * that crashes or hangs is reported like any other. The library is not started in this process. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "output.h"

enum { JSON };

static const command_option options[] = {
    [JSON] = {"json", NULL, NULL, "print JSON"},
    {0},
};

enum { TIME_LIMIT = 20 }; /* seconds for one plugin */

/* ---------------------------------------------------------------------------------------------------------------------
 * Asking one plugin
 */

/* In the child: does not return. */
static void inspect(const char *path, int answer) {
  helio_plugin_report report = {.status = 0};
  helio_error error = {.message = ""};
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  dup2(STDERR_FILENO, STDOUT_FILENO); /* what a plugin prints must not get into our output */
  if (helio_plugin_inspect(path, &report) != HELIO_OK && report.status == 0) {
    helio_error_take(&error);
    report.status = HELIO_PLUGIN_CANNOT_OPEN;
    snprintf(report.reason, sizeof report.reason, "%.*s", (int)sizeof report.reason - 1, error.message);
  }
  const char *from = (const char *)&report;
  for (size_t done = 0; done < sizeof report;) {
    ssize_t written = write(answer, from + done, sizeof report - done);
    if (written < 0 && errno != EINTR) break;
    if (written > 0) done += (size_t)written;
  }
  _exit(EXIT_SUCCESS); /* not exit(): buffers and handlers belong to the parent */
}

static int milliseconds_until(time_t deadline) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  long left = (long)(deadline - now.tv_sec) * 1000 - now.tv_nsec / 1000000;
  return left > 0 ? (int)left : 0;
}

typedef enum answer_state { ANSWERED, ENDED_EARLY, TIMED_OUT } answer_state;

static answer_state receive(int answer, helio_plugin_report *report) {
  struct timespec start;
  clock_gettime(CLOCK_MONOTONIC, &start);
  struct pollfd waiting = {.fd = answer, .events = POLLIN};
  char *to = (char *)report;
  size_t done = 0;
  while (done < sizeof *report) {
    int left = milliseconds_until(start.tv_sec + TIME_LIMIT);
    if (left == 0) return TIMED_OUT;
    if (poll(&waiting, 1, left) <= 0) continue;
    ssize_t got = read(answer, to + done, sizeof *report - done);
    if (got == 0 || (got < 0 && errno != EINTR)) return ENDED_EARLY;
    if (got > 0) done += (size_t)got;
  }
  return ANSWERED;
}

/* What can be said of a plugin that did not answer. `how` is from waitpid(). */
static void report_crash(helio_plugin_report *report, const char *path, answer_state state, int how) {
  *report = (helio_plugin_report){.status = HELIO_PLUGIN_CRASHED};
  const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  snprintf(report->name, sizeof report->name, "%.*s", (int)strcspn(file, "."), file);
  if (state == TIMED_OUT) {
    snprintf(report->reason, sizeof report->reason, "timed out: no answer within %d seconds", TIME_LIMIT);
  } else if (WIFSIGNALED(how)) {
    snprintf(report->reason, sizeof report->reason, "ended by signal %d (%s) while it was opened and probed",
             WTERMSIG(how), strsignal(WTERMSIG(how)));
  } else {
    snprintf(report->reason, sizeof report->reason, "ended its process with status %d while it was opened and probed",
             WIFEXITED(how) ? WEXITSTATUS(how) : -1);
  }
}

/* false, with errno, only if no child could be made. */
static bool inspect_in_child(const char *path, helio_plugin_report *report) {
  int ends[2], how = 0;
  if (pipe(ends) != 0) return false;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    inspect(path, ends[1]);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return false;
  }
  answer_state state = receive(ends[0], report);
  close(ends[0]);
  /* One that has answered has nothing left to do; one that ended early must keep its own cause of death. */
  if (state != ENDED_EARLY) kill(child, SIGKILL);
  while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
  }
  if (state != ANSWERED) report_crash(report, path, state, how);
  snprintf(report->path, sizeof report->path, "%s", path);
  return true;
}

/* As the library decides it: the name goes to the first plugin that can be probed, whatever becomes of it afterwards,
 * and a later one that could be opened and has the name too is not even probed. */
static bool took_its_name(const helio_plugin_report *report) {
  return report->status == HELIO_PLUGIN_USABLE || report->status == HELIO_PLUGIN_NO_DEVICES ||
         report->status == HELIO_PLUGIN_NO_USE || report->status == HELIO_PLUGIN_INIT_FAILED;
}

static bool could_be_opened(const helio_plugin_report *report) {
  return took_its_name(report) || report->status == HELIO_PLUGIN_PROBE_FAILED;
}

static void mark_shadowed(helio_plugin_report *reports, int count) {
  for (int i = 0; i < count; i++) {
    for (int earlier = 0; earlier < i && could_be_opened(&reports[i]); earlier++) {
      if (!took_its_name(&reports[earlier]) || strcmp(reports[earlier].name, reports[i].name) != 0) continue;
      reports[i].status = HELIO_PLUGIN_SHADOWED;
      snprintf(reports[i].reason, sizeof reports[i].reason, "%.960s, found first, has the same name",
               reports[earlier].path);
    }
  }
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Printing
 */

static const char *kind(const helio_plugin_report *report) {
  if (report->is_backend && report->is_collective) return "backend, collective";
  if (report->is_backend) return "backend";
  return report->is_collective ? "collective" : "unknown";
}

static void print_json(const helio_plugin_report *reports, int count) {
  json_t *array = json_array();
  for (int i = 0; i < count; i++) {
    const helio_plugin_report *report = &reports[i];
    json_t *object = json_object();
    output_set(object, "name", output_text(report->name));
    output_set(object, "path", output_text(report->path));
    output_set(object, "status", output_text(helio_plugin_status_text(report->status)));
    output_set(object, "reason", output_text(report->reason));
    output_set(object, "version", output_text(report->version));
    output_set(object, "description", output_text(report->description));
    output_set(object, "backend", json_boolean(report->is_backend));
    output_set(object, "collective", json_boolean(report->is_collective));
    output_set(object, "devices", json_integer(report->devices));
    output_append(array, object);
  }
  output_json(array);
}

static void print_text(const helio_plugin_report *reports, int count) {
  output_table *table = output_table_new(6);
  output_cell(table, "PLUGIN");
  output_cell(table, "STATUS");
  output_cell(table, "KIND");
  output_cell(table, "VERSION");
  output_cell(table, "DEVICES");
  output_cell(table, "FILE");
  for (int i = 0; i < count; i++) {
    const helio_plugin_report *report = &reports[i];
    output_cell(table, "%s", report->name);
    output_cell(table, "%s", helio_plugin_status_text(report->status));
    output_cell(table, "%s", kind(report));
    output_cell(table, "%s", report->version);
    output_cell(table, "%d", report->devices);
    output_cell(table, "%s", report->path);
    if (report->description[0]) output_note(table, "%s", report->description);
    if (report->reason[0]) output_note(table, "%s", report->reason);
  }
  output_table_print(table);
  if (count == 0) printf("no plugin was found; HELIO_PLUGIN_PATH names folders to look in\n");
}

static int run_plugins(const command_line *line) {
  int count = 0, status = EXIT_SUCCESS;
  char **files = helio_plugin_files(&count);
  if (!files) return command_library_failure(line->path);
  helio_plugin_report *reports = calloc((size_t)count + 1, sizeof *reports);
  if (!reports) status = command_failure(line->path, "out of memory");
  for (int i = 0; i < count && status == EXIT_SUCCESS; i++) {
    if (inspect_in_child(files[i], &reports[i])) continue;
    status = command_failure(line->path, "cannot make a process to look at %s: %s", files[i], strerror(errno));
  }
  if (status == EXIT_SUCCESS) {
    mark_shadowed(reports, count);
    if (line->values[JSON]) {
      print_json(reports, count);
    } else {
      print_text(reports, count);
    }
  }
  free(reports);
  free(files);
  return status;
}

const command command_plugins = {
    .name = "plugins",
    .summary = "Lists the plugin files that were found, and what became of each",
    .description = "Each file is opened and probed in a process of its own; one that crashes is reported.",
    .options = options,
    .run = run_plugins,
};
