/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int hi_terminal_columns(void) {
  struct winsize size;
  if (!isatty(STDOUT_FILENO)) return 0;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool hi_terminal_is_utf8(void) {
  static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  for (int i = 0; i < 3; i++) {
    const char *value = getenv(names[i]);
    if (value && *value) return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
  }
  return false;
}
