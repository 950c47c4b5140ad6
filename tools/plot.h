/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLOT_H
#define PLOT_H

#include <helio/helio.h>

/* Writes a picture of training and validation curves, over epochs: one panel for the loss and one for each metric.
 * NULL, or why it could not be written (a text that lives until the next call). Nothing is left of a file that could
 * not be written whole. */
const char *plot_write(const char *path, const char *title, const helio_history *history);

#endif
