/* SPDX-License-Identifier: Apache-2.0 */
#include "mistakes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const mistake *const tables[] = {memory_mistakes,  pinned_mistakes,      stream_mistakes,
                                        wait_mistakes,    hip_mistakes,         kernel_mistakes,
                                        library_mistakes, hip_library_mistakes, collective_mistakes};

static const mistake *find(const char *name) {
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
    for (const mistake *m = tables[t]; m->name; m++)
      if (!strcmp(m->name, name)) return m;
  fprintf(stderr, "mistakes: there is no mistake called \"%s\"; --list tells all\n", name);
  exit(2);
}

static void list(void) {
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
    for (const mistake *m = tables[t]; m->name; m++)
      printf("%s\t%s\t%s\n", m->name, m->kind, m->settings ? m->settings : "GPUSIM_CUDA=1 GPUSIM_HIP=1");
}

int main(int count, char **arguments) {
  if (count == 2 && !strcmp(arguments[1], "--list")) {
    list();
  } else if (count == 3 && !strcmp(arguments[1], "--right")) {
    find(arguments[2])->run(false);
  } else if (count == 2 && arguments[1][0] != '-') {
    find(arguments[1])->run(true);
  } else {
    fprintf(stderr, "usage: mistakes [--right] NAME\n       mistakes --list\n");
    return 2;
  }
  return 0;
}
