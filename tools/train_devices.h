/* SPDX-License-Identifier: Apache-2.0 */
/* The strategy that the options of a command line ask for. */
#ifndef TRAIN_DEVICES_H
#define TRAIN_DEVICES_H

#include <helio/helio.h>

typedef struct device_options { /* as they were written; NULL: not given */
  const char *strategy, *devices, *logical, *collective, *weights;
} device_options;

/* Starts the library. Where no strategy is named it is mirrored if several devices are named, or none and there are
 * several of the preferred kind, or if weights or a collective are; else it is one device. The exit status, after a
 * message that begins with `path`. */
int devices_choose(const device_options *o, const char *path, helio_strategy **strategy);

/* The same for one device, NULL: the preferred one. */
int devices_choose_one(const char *device, const char *path, helio_strategy **strategy);

/* "mirrored" or "one-device", as the option has it. */
const char *devices_kind(const helio_strategy *strategy);

#endif
