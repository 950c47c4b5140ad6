/* SPDX-License-Identifier: Apache-2.0 */
#include "train/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"

struct helio_history {
  hi_object object;
  int signal;       /* that ended the training; 0: none */
  int64_t saved;    /* steps taken before the last checkpoint; −1: there is none */
  int count, room;  /* epochs */
  int *epochs;      /* their numbers */
  int names;        /* of what is measured */
  char **name;      /* in the order in which they came up */
  double **columns; /* by name, then by epoch */
};

static void end(void *object) {
  helio_history *history = object;
  for (int i = 0; i < history->names; i++) {
    free(history->name[i]);
    free(history->columns[i]);
  }
  free(history->name);
  free(history->columns);
  free(history->epochs);
  free(history);
}

helio_history *hi_history_new(void) {
  helio_history *history = hi_object_new(sizeof *history, end, "a history");
  if (history) history->saved = -1;
  return history;
}

static helio_status no_memory(void) {
  return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the history of a training");
}

/* Makes room for an epoch more. */
static helio_status grow(helio_history *history) {
  if (history->count < history->room) return HELIO_OK;
  int room = history->room ? 2 * history->room : 16;
  int *epochs = realloc(history->epochs, (size_t)room * sizeof *epochs);
  if (!epochs) return no_memory();
  history->epochs = epochs;
  for (int i = 0; i < history->names; i++) {
    double *column = realloc(history->columns[i], (size_t)room * sizeof *column);
    if (!column) return no_memory();
    history->columns[i] = column;
  }
  history->room = room;
  return HELIO_OK;
}

static int find(const helio_history *history, const char *name) {
  for (int i = 0; i < history->names; i++) {
    if (strcmp(history->name[i], name) == 0) return i;
  }
  return -1;
}

static helio_status add_name(helio_history *history, const char *name) {
  size_t count = (size_t)history->names + 1;
  char **names = realloc(history->name, count * sizeof *names);
  if (!names) return no_memory();
  history->name = names;
  double **columns = realloc(history->columns, count * sizeof *columns);
  if (!columns) return no_memory();
  history->columns = columns;
  double *column = malloc((size_t)history->room * sizeof *column);
  char *copy = strdup(name);
  if (!column || !copy) {
    free(column);
    free(copy);
    return no_memory();
  }
  for (int i = 0; i < history->count; i++) column[i] = NAN;
  history->columns[history->names] = column;
  history->name[history->names++] = copy;
  return HELIO_OK;
}

helio_status hi_history_add(helio_history *history, int epoch, helio_logs *logs) {
  helio_status status = grow(history);
  for (int i = 0; i < helio_logs_count(logs) && !status; i++) {
    if (find(history, helio_logs_name(logs, i)) < 0) status = add_name(history, helio_logs_name(logs, i));
  }
  if (status) return status;
  for (int i = 0; i < history->names; i++) history->columns[i][history->count] = NAN;
  for (int i = 0; i < helio_logs_count(logs); i++) {
    double value = helio_logs_value(logs, i);
    if (helio_error_pending()) return helio_error_pending();
    history->columns[find(history, helio_logs_name(logs, i))][history->count] = value;
  }
  history->epochs[history->count++] = epoch;
  return HELIO_OK;
}

void hi_history_set_signal(helio_history *history, int number) {
  history->signal = number;
}

/* ---- the user's ---- */

void hi_history_set_saved(helio_history *history, int64_t steps) {
  history->saved = steps;
}

int64_t helio_history_checkpoint_step(const helio_history *history) {
  return history ? history->saved : -1;
}

int helio_history_signal(const helio_history *history) {
  return history ? history->signal : 0;
}

int helio_history_epochs(const helio_history *history) {
  return history ? history->count : 0;
}

int helio_history_epoch(const helio_history *history, int index) {
  return history && index >= 0 && index < history->count ? history->epochs[index] : -1;
}

int helio_history_count(const helio_history *history) {
  return history ? history->names : 0;
}

const char *helio_history_name(const helio_history *history, int i) {
  return history && i >= 0 && i < history->names ? history->name[i] : "";
}

double helio_history_value(const helio_history *history, const char *name, int index) {
  int column = history && name ? find(history, name) : -1;
  return column >= 0 && index >= 0 && index < history->count ? history->columns[column][index] : NAN;
}
