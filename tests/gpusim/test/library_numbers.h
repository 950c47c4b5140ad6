/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for the tests of libraries: inputs by a formula, what golden/libraries.txt says of them, and tensors in
 * device memory in one of the layouts. */
#ifndef LIBRARY_NUMBERS_H
#define LIBRARY_NUMBERS_H

#include "library_faces.h"

#include <stdio.h>

/* The `which`-th input of a problem; golden/libraries.py has the same formula. */
void fill_input(float *to, size_t count, int which);

size_t count_of(const int dims[4]);

/* A tensor in device memory. What lies between its elements is filled with a number, and must be the same when it is
 * read back. */
void *put_tensor(const float *values, const int dims[4], memory_layout layout);
void *put_nothing(const int dims[4], memory_layout layout); /* no number anywhere */
/* Reads it into memory of malloc, dense, and frees it on the device. */
float *take_tensor(void *from, const int dims[4], memory_layout layout);

/* Words and numbers of the golden file, one after the other. */
typedef struct golden {
  FILE *file;
  char word[32];
} golden;

golden golden_open(const char *path);
int golden_next(golden *golden); /* the next problem, whose kind is in `word`; 0: there is none */
int golden_integer(golden *golden);
float golden_number(golden *golden);
float *golden_values(golden *golden, const char *name, size_t count); /* malloc */

/* Ends the test if they differ by more than the tolerance, relative to the greatest. */
void expect_equal(const float *found, const float *expected, size_t count, float tolerance, const char *what);

#endif
