/* SPDX-License-Identifier: Apache-2.0 */
/* The axes of a picture: which part of the numbers they show, where each number lies and which are written beside them.
 * Numbers are written as the locale of the thread has them. */
#ifndef AXIS_H
#define AXIS_H

#include <stdbool.h>

enum { AXIS_MOST_TICKS = 16, AXIS_TEXT = 32 };

typedef struct axis {
  double first, last; /* what lies at its ends; powers of 10 if it is logarithmic */
  bool logarithmic;
  int tick_count;
  double ticks[AXIS_MOST_TICKS]; /* like the ends */
  double step;                   /* from one to the next */
} axis;

/* What can be drawn: all numbers but those so large that their differences are none. */
bool axis_takes(double value);

/* Whole numbers, each epoch at its own. One alone lies in the middle. */
axis axis_of_epochs(double first, double last);

/* Ends at ticks, 1, 2 or 5 of a power of 10 apart. If the values may be logarithmic, are positive and lie far apart,
 * the axis is. Both must be numbers that axis_takes(). */
axis axis_of_values(double least, double most, bool may_be_logarithmic);

/* From 0 at the first end to 1 at the last. */
double axis_place(const axis *self, double value);

/* What stands beside a tick: no more digits than tell it from the next one. */
void axis_tick_text(const axis *self, int tick, char text[AXIS_TEXT]);

/* With the four digits that count. */
void axis_value_text(double value, char text[AXIS_TEXT]);

#endif
