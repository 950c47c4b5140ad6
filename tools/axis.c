/* SPDX-License-Identifier: Apache-2.0 */
#include "axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double LARGEST = 1e300, SMALLEST = 1e-300;
static const double SAME = 1e-9;           /* what differs by a smaller part of itself is drawn as one value */
static const double FAR_APART = 100;       /* the ratio from which an axis is logarithmic */
static const double ROUNDING = 1e-6;       /* of a step: what lies so near to a tick is at it */
enum { INTERVALS = 5, LOG_INTERVALS = 6 }; /* that are aimed at */

bool axis_takes(double value) {
  return fabs(value) <= LARGEST; /* not NaN either */
}

/* The next of 1, 2, 5, 10, 20 … and 0.5, 0.2, 0.1 … */
static double round_step(double least) {
  double power = pow(10, floor(log10(least))), factor = least / power;
  return power * (factor <= 1 + ROUNDING ? 1 : factor <= 2 + ROUNDING ? 2 : factor <= 5 + ROUNDING ? 5 : 10);
}

static void add_tick(axis *self, double value) {
  if (self->tick_count < AXIS_MOST_TICKS) self->ticks[self->tick_count++] = value;
}

/* Multiples of the step from end to end. */
static void add_ticks(axis *self) {
  double from = ceil(self->first / self->step - ROUNDING), to = floor(self->last / self->step + ROUNDING);
  for (double i = from; i <= to; i++) add_tick(self, i * self->step + 0.0); /* not −0 */
}

/* ---- epochs ---- */

/* Long numbers need more room. */
static double epoch_intervals(double last) {
  return last < 1000 ? 9 : last < 100000 ? 6 : 4;
}

axis axis_of_epochs(double first, double last) {
  if (first >= last) return (axis){.first = first - 1, .last = first + 1, .tick_count = 1, .ticks = {first}, .step = 1};
  axis self = {.first = first, .last = last, .step = round_step((last - first) / epoch_intervals(last))};
  if (self.step < 1) self.step = 1;
  /* The first epoch is worth a tick where it does not crowd the next. */
  double next = ceil(first / self.step) * self.step;
  if (next - first >= self.step / 2) add_tick(&self, first);
  add_ticks(&self);
  return self;
}

/* ---- values ---- */

static axis logarithmic(double least, double most) {
  axis self = {.logarithmic = true, .first = floor(log10(least) + ROUNDING), .last = ceil(log10(most) - ROUNDING)};
  self.step = round_step((self.last - self.first) / LOG_INTERVALS);
  if (self.step < 1) self.step = 1;
  self.first = floor(self.first / self.step) * self.step;
  self.last = ceil(self.last / self.step) * self.step;
  add_ticks(&self);
  return self;
}

/* What is all the same lies in the middle. */
static void widen(double *least, double *most) {
  double magnitude = fmax(fabs(*least), fabs(*most));
  if (*most - *least > fmax(SAME * magnitude, SMALLEST)) return;
  double middle = *least / 2 + *most / 2, room = magnitude > SMALLEST ? magnitude / 10 : 1;
  *least = middle - room;
  *most = middle + room;
}

axis axis_of_values(double least, double most, bool may_be_logarithmic) {
  if (may_be_logarithmic && least > SMALLEST && most / FAR_APART >= least * (1 - ROUNDING))
    return logarithmic(least, most);
  widen(&least, &most);
  axis self = {.step = round_step((most - least) / INTERVALS)};
  self.first = floor(least / self.step + ROUNDING) * self.step;
  self.last = ceil(most / self.step - ROUNDING) * self.step;
  add_ticks(&self);
  return self;
}

double axis_place(const axis *self, double value) {
  double at = self->logarithmic ? log10(value) : value;
  return (at - self->first) / (self->last - self->first);
}

/* ---- texts ---- */

/* "1.5e+06" becomes "1.5e6", "1e-07" becomes "1e-7". */
static void shorten_exponent(char *text) {
  char *from = strchr(text, 'e');
  if (!from) return;
  char *to = ++from;
  if (*from == '-') to++;
  from += strspn(from, "+-0");
  memmove(to, from, strlen(from) + 1);
}

void axis_value_text(double value, char text[AXIS_TEXT]) {
  snprintf(text, AXIS_TEXT, "%.4g", value);
  shorten_exponent(text);
}

void axis_tick_text(const axis *self, int tick, char text[AXIS_TEXT]) {
  double value = self->ticks[tick];
  if (self->logarithmic) {
    axis_value_text(pow(10, value), text);
    return;
  }
  int step_power = (int)floor(log10(self->step) + ROUNDING);
  double largest = fmax(fabs(self->first), fabs(self->last));
  if (largest < 1e6 && (step_power >= -5 || largest >= 1e-4)) {
    snprintf(text, AXIS_TEXT, "%.*f", step_power < 0 ? -step_power : 0, value);
  } else {
    int power = value != 0 ? (int)floor(log10(fabs(value)) + ROUNDING) : step_power;
    snprintf(text, AXIS_TEXT, "%.*e", power > step_power ? power - step_power : 0, value);
    if (value == 0) snprintf(text, AXIS_TEXT, "0");
    shorten_exponent(text);
  }
}
