/* SPDX-License-Identifier: Apache-2.0 */
#include "outlets.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"

/* Rights alone do not tell: a file system may be read-only or full of files. 0, or errno. */
static int try_folder(const char *folder) {
  char name[PATH_MAX];
  if (snprintf(name, sizeof name, "%s/.helio-XXXXXX", folder) >= (int)sizeof name) return ENAMETOOLONG;
  int descriptor = mkstemp(name);
  if (descriptor < 0) return errno;
  close(descriptor);
  unlink(name);
  return 0;
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

static bool is_folder(const char *name) {
  struct stat about;
  return stat(name, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool is_plain(const char *name) {
  struct stat about;
  return stat(name, &about) == 0 && S_ISREG(about.st_mode);
}

static int refuse(const char *option, const char *place, const char *folder, int cause, const char *path) {
  if (cause == ENOENT && !is_folder(folder)) {
    return command_failure(path, "--%s %s: there is no folder %s; 'mkdir -p %s' makes it", option, place, folder,
                           folder);
  }
  return command_failure(path, "--%s %s: files cannot be written in %s: %s; choose another place", option, place,
                         folder, strerror(cause == ENOENT ? EROFS : cause)); /* what /proc says of new files */
}

int outlet_check_file(const char *option, const char *file, const char *path) {
  char folder[PATH_MAX];
  if (!file) return EXIT_SUCCESS;
  size_t length = strlen(file);
  if (length == 0 || file[length - 1] == '/' || is_folder(file)) {
    return command_usage_error(path, "--%s takes the name of a file, not of a folder: '%s'", option, file);
  }
  if (access(file, F_OK) == 0 && !is_plain(file)) {
    return command_usage_error(path, "--%s takes a file, and %s is none that could be replaced", option, file);
  }
  if (length >= sizeof folder) return refuse(option, file, file, ENAMETOOLONG, path);
  memcpy(folder, file, length + 1);
  go_up(folder);
  int cause = try_folder(folder);
  return cause ? refuse(option, file, folder, cause, path) : EXIT_SUCCESS;
}

int outlet_check_folder(const char *option, const char *folder, const char *path) {
  char above[PATH_MAX];
  if (!folder) return EXIT_SUCCESS;
  size_t length = strlen(folder);
  if (length == 0) return command_usage_error(path, "--%s takes the name of a folder", option);
  if (length >= sizeof above) return refuse(option, folder, folder, ENAMETOOLONG, path);
  memcpy(above, folder, length + 1);
  while (access(above, F_OK) != 0 && errno == ENOENT && strcmp(above, ".") != 0 && strcmp(above, "/") != 0)
    go_up(above);
  int cause = try_folder(above);
  return cause ? refuse(option, folder, above, cause, path) : EXIT_SUCCESS;
}
