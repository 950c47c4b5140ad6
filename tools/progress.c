/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "output.h"

enum {
  USUAL_WIDTH = 80,
  LEAST_BAR = 10, /* with its ends; a shorter one tells nothing */
  MOST_BAR = 72,
  LEAST_NAME = 6,
  LINE = 512,
  REDRAW_MS = 100,
};

static double seconds_between(const struct timespec *from, const struct timespec *to) {
  return (double)(to->tv_sec - from->tv_sec) + (double)(to->tv_nsec - from->tv_nsec) * 1e-9;
}

void progress_begin(progress *self, const char *name, bool wanted) {
  const char *terminal = getenv("TERM"), *no_color = getenv("NO_COLOR");
  *self = (progress){.name = name, .shown = wanted && isatty(STDERR_FILENO)};
  self->colored = !(no_color && *no_color) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
  progress_start(self, 0);
}

void progress_start(progress *self, uint64_t first) {
  self->first = first;
  clock_gettime(CLOCK_MONOTONIC, &self->begin);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The line
 */

/* The characters of a line, asked for each time: windows change. The last column stays free, because some terminals go
 * on to the next line as soon as it is written. */
static int line_width(void) {
  struct winsize window;
  int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : USUAL_WIDTH;
  return (width < LINE / 2 ? width : LINE / 2) - 1;
}

/* "12.2/25.2 MiB": both in the unit of the whole. */
static int write_amounts(char *text, size_t size, uint64_t done, uint64_t total) {
  char all[OUTPUT_BYTES];
  double amount = (double)done;
  const char *unit = strchr(output_bytes(all, total), ' ');
  for (uint64_t rest = total; rest >= 1024; rest /= 1024) amount /= 1024;
  return snprintf(text, size, total >= 1024 && amount < 100 ? "  %.1f/%.*s%s" : "  %.0f/%.*s%s", amount,
                  (int)(unit - all), all, unit);
}

static int write_time(char *text, size_t size, double seconds) {
  int whole = seconds < 360000 ? (int)seconds : 359999;
  if (whole < 3600) return snprintf(text, size, "  %d:%02d left", whole / 60, whole % 60);
  return snprintf(text, size, "  %d:%02d:%02d left", whole / 3600, whole / 60 % 60, whole % 60);
}

/* " 48%  12.2/25.2 MiB  7.5 MiB/s  0:01 left", of which `detail` says how much: 0 is the percentage alone. */
static int write_figures(char text[LINE], int detail, uint64_t done, uint64_t total, double speed) {
  char each[OUTPUT_BYTES];
  int length = total ? snprintf(text, LINE, "%3d%%", (int)((double)done * 100 / (double)total))
                     : snprintf(text, LINE, "%s", output_bytes(each, done));
  if (detail >= 1 && total) length += write_amounts(text + length, (size_t)(LINE - length), done, total);
  if (detail < 2 || !(speed > 0)) return length;
  length += snprintf(text + length, (size_t)(LINE - length), "  %s/s", output_bytes(each, (uint64_t)speed));
  if (detail < 3 || !total) return length;
  return length + write_time(text + length, (size_t)(LINE - length), (double)(total - done) / speed);
}

/* The name in at most so many characters. File names here are ASCII. */
static void print_name(const char *name, int most) {
  int length = (int)strlen(name);
  if (length <= most) {
    fputs(name, stderr);
  } else {
    fprintf(stderr, "%.*s..", most - 2, name);
  }
}

static void print_bar(const progress *self, int width, uint64_t done, uint64_t total) {
  int room = width - 2, full = (int)((double)room * (double)done / (double)total);
  fputs(self->colored ? " [\033[32m" : " [", stderr);
  for (int i = 0; i < room; i++) fputc(i < full ? '=' : i == full && done < total ? '>' : ' ', stderr);
  fputs(self->colored ? "\033[0m] " : "] ", stderr);
}

/* Name, bar and figures. Where there is little room the figures become fewer first, then the name is cut, then the bar
 * and at last the name are left out. Returns the width. */
static int draw(const progress *self, int width, uint64_t done, uint64_t total, double speed) {
  char figures[LINE];
  int name = (int)strlen(self->name), needed = 0, bar = 0;
  for (int detail = 3; detail >= 0; detail--) {
    needed = write_figures(figures, detail, done, total, speed) + 2;
    bar = width - needed - name;
    if (bar >= LEAST_BAR) break;
  }
  if (bar < LEAST_BAR && name > LEAST_NAME) {
    name = width - needed - LEAST_BAR < LEAST_NAME ? LEAST_NAME : width - needed - LEAST_BAR;
    bar = width - needed - name;
  }
  if (bar > MOST_BAR) bar = MOST_BAR;
  if (total == 0 || bar < LEAST_BAR) bar = 0;
  bool named = bar > 0 || name + needed <= width + 1;
  if (named) print_name(self->name, name);
  if (bar) print_bar(self, bar, done, total);
  fprintf(stderr, "%s%.*s", named && !bar ? " " : "", width, figures);
  int drawn = (int)strlen(figures) + (named ? (bar ? name + bar + 2 : name + 1) : 0);
  return drawn < width ? drawn : width;
}

void progress_show(progress *self, uint64_t done, uint64_t total) {
  struct timespec now;
  if (!self->shown) return;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (self->width && seconds_between(&self->latest, &now) * 1000 < REDRAW_MS) return;
  if (total && done > total) total = done;
  double elapsed = seconds_between(&self->begin, &now);
  double speed = elapsed > 0.5 && done > self->first ? (double)(done - self->first) / elapsed : 0;
  int width = line_width(), before = self->width < width ? self->width : width;
  fputc('\r', stderr);
  self->width = draw(self, width, done, total, speed);
  if (before > self->width) fprintf(stderr, "%*s", before - self->width, "");
  fflush(stderr);
  self->latest = now;
}

void progress_end(progress *self) {
  if (!self->width) return;
  int width = line_width();
  fprintf(stderr, "\r%*s\r", self->width < width ? self->width : width, "");
  fflush(stderr);
  self->width = 0;
}
