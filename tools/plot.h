/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of trainings. */
#ifndef PLOT_H
#define PLOT_H

#include <helio/helio.h>

/* Writes a picture (SVG) of training and validation curves, over epochs: one panel for the loss and one for each
 * metric; one for the learning rate if it changes. Both curves end with their last values; the best value of
 * validation, or of training if there is none, has a ring around it. NULL, or why it could not be written (a text that
 * lives until the next call). Nothing is left of a file that could not be written whole; whole_file_check() tells
 * beforehand whether one can be. */
const char *plot_write(const char *path, const char *title, const helio_history *history);

#endif
