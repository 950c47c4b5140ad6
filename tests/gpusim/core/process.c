/* SPDX-License-Identifier: Apache-2.0 */
/* Files, and the host's compiler as a process of its own. */
#define _GNU_SOURCE
#include "compile.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 128 };

extern char **environ;

char *sim_file_read(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  char *data = NULL;
  long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  if (size >= 0 && fseek(file, 0, SEEK_SET) == 0) data = malloc((size_t)size + 1);
  if (data && fread(data, 1, (size_t)size, file) == (size_t)size) {
    data[size] = 0;
    *bytes = (size_t)size;
  } else {
    free(data);
    data = NULL;
  }
  fclose(file);
  return data;
}

bool sim_file_write(const char *path, const void *data, size_t bytes) {
  FILE *file = fopen(path, "wb");
  if (!file) return false;
  bool good = fwrite(data, 1, bytes, file) == bytes;
  return fclose(file) == 0 && good;
}

/* A sanitizer that the program was started with is none of the compiler's business, and its words shall be English. */
static char **child_environment(void) {
  size_t count = 0, kept = 0;
  while (environ[count]) count++;
  char **copy = calloc(count + 2, sizeof *copy);
  if (!copy) return NULL;
  for (size_t i = 0; i < count; i++)
    if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0 && strncmp(environ[i], "LC_ALL=", 7) != 0)
      copy[kept++] = environ[i];
  copy[kept] = "LC_ALL=C";
  return copy;
}

static int run(char **command, const char *output) {
  posix_spawn_file_actions_t actions;
  char **environment = child_environment();
  if (!environment || posix_spawn_file_actions_init(&actions)) {
    free(environment);
    return -1;
  }
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child;
  int status = -1;
  if (posix_spawnp(&child, command[0], &actions, NULL, command, environment) == 0)
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  posix_spawn_file_actions_destroy(&actions);
  free(environment);
  return status;
}

static void append(char **log, const char *more) {
  char *joined = sim_print("%s%s", *log ? *log : "", more);
  free(*log);
  *log = joined;
}

bool sim_run_compiler(const char *folder, const char *const *arguments, char **log) {
  char compiler[] = SIM_COMPILER, *rest = compiler, *command[WORDS] = {0};
  int count = 0;
  for (char *part; count < WORDS / 2 && (part = strsep(&rest, " "));)
    if (*part) command[count++] = part;
  for (; *arguments && count < WORDS - 1; arguments++) command[count++] = (char *)*arguments;
  char *output = sim_print("%s/output", folder);
  if (!output) return false;
  int status = run(command, output);
  size_t bytes;
  char *words = sim_file_read(output, &bytes);
  if (words && *words) append(log, words);
  if (status == -1) append(log, "gpusim: the compiler \"" SIM_COMPILER "\" cannot be run\n");
  free(words);
  unlink(output);
  free(output);
  return status == 0;
}
