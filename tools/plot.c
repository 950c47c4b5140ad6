/* SPDX-License-Identifier: Apache-2.0 */
#include "plot.h"
const char *plot_write(const char *path, const char *title, const helio_history *history) {
  (void)path, (void)title, (void)history;
  return "not merged yet";
}
