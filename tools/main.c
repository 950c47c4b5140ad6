/* SPDX-License-Identifier: Apache-2.0 */
/* The command `helio`: its table of subcommands, and what holds for all of them. */
#include <fcntl.h>
#include <helio/helio.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "command.h"
#include "output.h"

enum { VERSION };

static const command_option options[] = {
    [VERSION] = {"version", NULL, NULL, "print the version and exit"},
    {0},
};

static const command *const subcommands[] = {
    &command_train, &command_eval,  &command_predict,    &command_summary,
    &command_data,  &command_bench, &command_devices,    &command_plugins,
    &command_ops,   &command_env,   &command_completion, &command_help,
    NULL,
};

static int run_root(const command_line *line) {
  if (line->values[VERSION]) printf("helio %s\n", helio_version());
  return EXIT_SUCCESS;
}

const command command_root = {
    .name = "helio",
    .summary = "Trains neural networks on several devices at once",
    .options = options,
    .subcommands = subcommands,
    .run = run_root,
};

/* A program that is started with a standard stream closed would get the next file it opens in its place, and write into
 * that. An open descriptor of the wrong direction keeps the place, and its errors are noticed as before. */
static void hold_standard_streams(void) {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++) {
    if (fcntl(descriptor, F_GETFD) != -1) continue;
    if (open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) != descriptor) exit(EXIT_FAILURE);
  }
}

int main(int argument_count, char **arguments) {
  hold_standard_streams();
  signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error to tell, not to die of with half of it written */
  command_set_log_level(HELIO_LOG_WARNING); /* commands say themselves what they do */
  int status = command_run(&command_root, command_root.name, argument_count, arguments);
  if (helio_shutdown() != HELIO_OK && status == EXIT_SUCCESS) status = command_library_failure(command_root.name);
  return output_finish(status);
}
