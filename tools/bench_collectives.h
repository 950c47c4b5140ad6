/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_COLLECTIVES_H
#define BENCH_COLLECTIVES_H

#include "command.h"

extern const command bench_collectives;

#endif
