/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a training that are made to fail, one after another, in children: a crash, a hang or a leak of one is its
 * own.
 *
 * HELIO_TEST_FAULTS=all takes every call, "tenth" every tenth, which is usual, "few" every 200th, which is usual with
 * sanitizers. Anything else is a rule that the program runs alone. */
#ifndef HELIO_TEST_SWEEP_H
#define HELIO_TEST_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

enum { MOST_CHILDREN = 80, RULE_ROOM = 120 };

typedef struct sweep {
  const void *plan; /* what the functions below are given */
  int devices;
  const unsigned *calls; /* how many a device makes, by device */
  unsigned first;        /* each way to fail begins elsewhere, so that together they come by all calls */
  unsigned sparse;       /* 0 or 1: all that the variable asks for, n: every n-th of those */
  int children;          /* at once */
  bool is_one_each;      /* a child takes one call and ends, else it goes on with others */
  /* NULL: the training ended as it should. */
  const char *(*run)(const void *plan, unsigned call, int device);
  /* What HELIO_TEST_FAULTS has to be for this one alone. */
  void (*describe)(const void *plan, unsigned call, int device, char text[RULE_ROOM]);
} sweep;

/* How many did not end as they should, which were told. */
int sweep_calls(const sweep *s);

/* The rule that is to be run alone; NULL: none. */
const char *sweep_alone(void);

#endif
