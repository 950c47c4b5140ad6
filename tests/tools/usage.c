/* SPDX-License-Identifier: Apache-2.0 */
/* usage COMMAND [ARGUMENT...]: runs it and then writes what it took to descriptor 3, or standard error if that is
 * closed: "PEAK_KIB CPU_MS". The exit status is the command's. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static long milliseconds(struct timeval time) {
  return (long)time.tv_sec * 1000 + (long)time.tv_usec / 1000;
}

int main(int count, char **arguments) {
  struct rusage used;
  int status;
  if (count < 2) return EXIT_FAILURE;
  pid_t child = fork();
  if (child == 0) {
    execvp(arguments[1], arguments + 1);
    _exit(127);
  }
  if (child < 0 || wait4(child, &status, 0, &used) != child) return EXIT_FAILURE;
  if (dprintf(3, "%ld %ld\n", used.ru_maxrss, milliseconds(used.ru_utime) + milliseconds(used.ru_stime)) < 0) {
    fprintf(stderr, "%ld %ld\n", used.ru_maxrss, milliseconds(used.ru_utime) + milliseconds(used.ru_stime));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
