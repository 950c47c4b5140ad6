/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"

#include <glob.h>

#include "support.h"

enum { ROOM = 2200 };

/* A failure of a kind that a device may cause, which says whose it is. */
static bool is_clear(const helio_error *error) {
  bool known = error->status == HELIO_DEVICE_FAILURE || error->status == HELIO_REPLICA_LOST ||
               error->status == HELIO_TIMED_OUT || error->status == HELIO_ABORTED || error->status == HELIO_BAD_DATA ||
               error->status == HELIO_NO_DEVICE || error->status == HELIO_OUT_OF_MEMORY ||
               error->status == HELIO_NOT_SUPPORTED || strstr(error->message, "the ranks' calls differ");
  return known && (strstr(error->message, "/device:GPU:") || strstr(error->message, "replica"));
}

/* NULL if the training under the fault ended as it should. */
static const char *judge(const trial *t, const outcome *found) {
  static char text[ROOM];
  if (!found->finished) {
    if (is_clear(&found->error)) return NULL;
    snprintf(text, sizeof text, "this is no clear error: %s: %s", helio_status_name(found->error.status),
             found->error.message);
    return text;
  }
  const char *wrong = difference(found, t->expected);
  if (!wrong || (t->is_silent && !found->differ)) return NULL;
  snprintf(text, sizeof text, "%s, with %d replicas left", wrong, found->replicas);
  return text;
}

/* A new strategy, on a device that did not fail. */
static const char *train_again(const trial *t) {
  static char text[ROOM];
  const char *wrong = NULL;
  HELIO_POOL {
    outcome again;
    HELIO_DEVICE(t->other) train(helio_one_device(t->other), t->what, &again);
    wrong = again.finished ? difference(&again, t->expected) : again.error.message;
    if (wrong) snprintf(text, sizeof text, "afterwards, on another device: %s", wrong);
  }
  return wrong ? text : NULL;
}

/* Threads of the library, as they are named: sanitizers have some of their own. One that was joined may be seen a
 * moment longer. */
static int own_threads(int expected) {
  int count = 0;
  for (int i = 0; i < (expected < 0 ? 1 : 5000); i++) {
    glob_t names;
    count = 0;
    if (glob("/proc/self/task/*/comm", 0, NULL, &names)) return 0;
    for (size_t k = 0; k < names.gl_pathc; k++) {
      char name[32] = "";
      FILE *file = fopen(names.gl_pathv[k], "r");
      if (file && fgets(name, sizeof name, file)) count += strncmp(name, "helio-", 6) == 0;
      if (file) fclose(file);
    }
    globfree(&names);
    if (count == expected) break;
    usleep(1000);
  }
  return count;
}

static const char *end_library(int threads_before) {
  static char text[ROOM];
  helio_error ending;
  helio_shutdown();
  if (helio_error_take(&ending) && !is_clear(&ending)) { /* a device that fails may say so once more */
    snprintf(text, sizeof text, "helio_shutdown() failed: %s", ending.message);
    return text;
  }
  int abandoned = lines_with("thread is abandoned", "ERROR:");
  int left = own_threads(threads_before + abandoned) - threads_before;
  if (left <= abandoned) return NULL;
  snprintf(text, sizeof text, "%d threads are left, %d are named", left, abandoned);
  return text;
}

const char *run_trial(const trial *t, outcome *found) {
  int threads = own_threads(-1);
  capture_log();
  HELIO_POOL train(t->make(t->plan), t->what, found);
  const char *wrong = judge(t, found);
  if (!wrong) wrong = train_again(t);
  const char *left = end_library(threads);
  return wrong ? wrong : left;
}

void print_trial(void) {
  print_seen();
}

int tell_trial(const outcome *found, const char *wrong) {
  for (int i = 0; i < seen.count; i++) fprintf(stderr, "%s\n", seen.lines[i]);
  fprintf(stderr, "%s: %s\n", found->finished ? "finished" : "ended by an error", found->error.message);
  fprintf(stderr, "%s\n", wrong ? wrong : "as it should be");
  return wrong != NULL;
}
