/* SPDX-License-Identifier: Apache-2.0 */
#include "output_paths.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "whole_file.h"

/* What is written has a name with more to it until it is whole. */
enum { ROOM_FOR_TEMPORARY = 40 };

/* Does the command print to it: does `helio … --log /dev/stdout >file` name the file a second time? */
static bool is_printed_to(const struct stat *about) {
  struct stat printed;
  bool same = false;
  for (int stream = STDOUT_FILENO; stream <= STDERR_FILENO && !same; stream++) {
    same = fstat(stream, &printed) == 0 && printed.st_dev == about->st_dev && printed.st_ino == about->st_ino;
  }
  return same;
}

/* Cuts the last part off: "a/b" becomes "a", "b" becomes ".", "/b" becomes "/". */
static void go_up(char *folder) {
  char *slash = strrchr(folder, '/');
  if (!slash) {
    strcpy(folder, ".");
  } else {
    slash[slash == folder] = '\0';
  }
}

/* Rights alone do not tell: a file system may be read-only, or full. */
static int try_file(const char *option, const char *file, const char *path) {
  const char *problem = whole_file_check(file);
  return problem ? command_failure(path, "--%s %s; choose another place", option, problem) : EXIT_SUCCESS;
}

int output_path_check_file(const char *option, const char *file, bool in_place, const char *path) {
  char folder[PATH_MAX];
  struct stat about;
  if (!file) return EXIT_SUCCESS;
  size_t length = strlen(file);
  if (file[length - 1] == '/' || command_is_folder(file)) {
    return command_usage_error(path, "--%s takes the name of a file, not of a folder: '%s'", option, file);
  }
  bool there = stat(file, &about) == 0;
  if (there && !S_ISREG(about.st_mode)) {
    return command_failure(path, "--%s %s is not a regular file; name another", option, file);
  }
  if (there && is_printed_to(&about)) {
    return command_usage_error(path, "--%s %s: the command prints to this file; name another", option, file);
  }
  if (there && in_place && access(file, W_OK) == 0) return EXIT_SUCCESS;
  const char *slash = strrchr(file, '/');
  if (strlen(slash ? slash + 1 : file) > NAME_MAX - ROOM_FOR_TEMPORARY) {
    return command_usage_error(path, "--%s: a name of a file has at most %d bytes", option,
                               NAME_MAX - ROOM_FOR_TEMPORARY);
  }
  snprintf(folder, sizeof folder, "%s", file);
  go_up(folder);
  if (access(folder, F_OK) == 0 || errno != ENOENT) return try_file(option, file, path);
  return command_failure(path, "--%s %s: there is no folder %s; 'mkdir -p %s' makes it", option, file, folder, folder);
}

/* In the nearest folder above that is there. */
int output_path_check_folder(const char *option, const char *folder, const char *path) {
  char above[PATH_MAX], file[PATH_MAX + 48];
  if (!folder) return EXIT_SUCCESS;
  snprintf(above, sizeof above, "%s", folder);
  while (access(above, F_OK) != 0 && errno == ENOENT && strcmp(above, ".") != 0) go_up(above);
  snprintf(file, sizeof file, "%s/.helio-%ld", above, (long)getpid()); /* nobody's: what has the name is in the way */
  const char *problem = whole_file_check(file);
  return problem ? command_failure(path, "--%s %s: nothing can be written there (%s); choose another place", option,
                                   folder, problem)
                 : EXIT_SUCCESS;
}

/* Without links and detours, also of what is not there yet; NULL: the folder is not there either, or no memory. */
static char *whole_name(const char *place) {
  char folder[PATH_MAX], *whole = realpath(place, NULL), *above;
  if (whole) return whole;
  const char *slash = strrchr(place, '/');
  snprintf(folder, sizeof folder, "%s", place);
  go_up(folder);
  above = realpath(folder, NULL);
  if (!above || asprintf(&whole, "%s/%s", above, slash ? slash + 1 : place) < 0) whole = NULL;
  free(above);
  return whole;
}

bool output_path_is_same(const char *one, const char *other) {
  struct stat of_one, of_other;
  if (stat(one, &of_one) == 0 && stat(other, &of_other) == 0) {
    return of_one.st_dev == of_other.st_dev && of_one.st_ino == of_other.st_ino;
  }
  char *first = whole_name(one), *second = whole_name(other);
  bool same = first && second ? strcmp(first, second) == 0 : strcmp(one, other) == 0;
  free(first);
  free(second);
  return same;
}
