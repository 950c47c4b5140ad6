/* SPDX-License-Identifier: Apache-2.0 */
/* helio help COMMAND: the same as helio COMMAND --help. */
#include <stdio.h>
#include <stdlib.h>

#include "command.h"

static int run_help(const command_line *line) {
  const command *chosen = &command_root;
  char path[200];
  size_t length = (size_t)snprintf(path, sizeof path, "%s", chosen->name);
  for (int i = 0; i < line->operand_count; i++) {
    chosen = command_find(chosen, path, line->operands[i]);
    if (!chosen) return EXIT_USAGE;
    length += (size_t)snprintf(path + length, sizeof path - length, " %s", chosen->name);
  }
  command_print_help(chosen, path);
  return EXIT_SUCCESS;
}

const command command_help = {
    .name = "help",
    .summary = "Prints the help of a command",
    .operands = "[COMMAND...]",
    .run = run_help,
};
