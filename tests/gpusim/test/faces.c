/* SPDX-License-Identifier: Apache-2.0 */
/* How the programs of the tests find a vendor's functions and end. */
#include "mistakes.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void *face_function(const char *soname, const char *name) {
  void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL); /* never closed, as vendors' libraries must not be */
  void *function = library ? dlsym(library, name) : NULL;
  if (!function) {
    fprintf(stderr, "gpusim test: %s\n", dlerror());
    exit(2);
  }
  return function;
}

void need(int status, const char *call, const char *file, int line) {
  if (status == 0) return;
  fprintf(stderr, "gpusim test: %s:%d: %s answered %d\n", file, line, call, status);
  exit(3);
}

void fail_numbers(void) {
  fprintf(stderr, "gpusim test: %s\n", WRONG_NUMBERS);
  exit(WRONG_NUMBERS_EXIT);
}
