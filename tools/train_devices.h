/* SPDX-License-Identifier: Apache-2.0 */
/* The strategy that the options of a command line ask for. */
#ifndef TRAIN_DEVICES_H
#define TRAIN_DEVICES_H

#include <helio/helio.h>

typedef struct device_options { /* as they were written; NULL: not given */
  const char *strategy, *devices, *logical, *collective, *weights;
} device_options;

/* Starts the library. Several devices, ways to cut them, weights and a collective ask for a mirrored strategy; else it
 * is one device. The exit status, after a message that begins with `path`. */
int devices_choose(const device_options *o, const char *path, helio_strategy **strategy);

/* "mirrored" or "one-device", as the option has it. */
const char *devices_kind(const helio_strategy *strategy);

#endif
