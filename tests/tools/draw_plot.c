/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the history of a training that never was:
 *
 *   draw_plot FILE.svg TITLE <TABLE
 *
 * The table has a line of names and a line for each epoch, its number (from 0) and a value for each name, all with tabs
 * between them; "nan" and "inf" are values too. The locale is the user's. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"
#include "train/history.h"
#include "train/logs.h"

enum { MOST_NAMES = 64 };

typedef struct table {
  char *names[MOST_NAMES];
  int count;
} table;

static void read_names(table *self, char *line) {
  for (char *name; self->count < MOST_NAMES && (name = strsep(&line, "\t"));) self->names[self->count++] = name;
}

static helio_status add_epoch(helio_history *history, const table *names, char *line) {
  helio_status status = HELIO_OK;
  helio_logs *logs = hi_logs_new(NULL);
  int epoch = atoi(strsep(&line, "\t"));
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  for (int i = 0; i < names->count && line && !status; i++) {
    status = hi_logs_add_value(logs, "", names->names[i], strtod_l(strsep(&line, "\t"), NULL, plain));
  }
  freelocale(plain);
  return status ? status : hi_history_add(history, epoch, logs);
}

static bool read_line(char **line, size_t *room) {
  if (getline(line, room, stdin) < 0) return false;
  (*line)[strcspn(*line, "\n")] = 0;
  return true;
}

static int draw(const char *path, const char *title) {
  char *head = NULL, *line = NULL;
  size_t head_room = 0, room = 0;
  table names = {.count = 0};
  helio_history *history = hi_history_new();
  helio_status status = history ? HELIO_OK : helio_error_pending();
  if (read_line(&head, &head_room)) read_names(&names, head);
  while (!status && read_line(&line, &room)) HELIO_POOL {
      status = add_epoch(history, &names, line);
    }
  const char *problem = status ? helio_error_message() : plot_write(path, title, history);
  if (problem) fprintf(stderr, "%s\n", problem);
  free(head);
  free(line);
  return problem ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int count, char **arguments) {
  int result = EXIT_FAILURE;
  if (count != 3) return EXIT_FAILURE;
  setlocale(LC_ALL, "");
  HELIO_POOL {
    result = draw(arguments[1], arguments[2]);
  }
  return result;
}
