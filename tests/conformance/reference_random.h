/* SPDX-License-Identifier: Apache-2.0 */
/* Philox 4×32-10, and whether it is the published one. */
#ifndef CONFORMANCE_REFERENCE_RANDOM_H
#define CONFORMANCE_REFERENCE_RANDOM_H

#include "conformance.h"

void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t block[4]);

/* The published known answers. */
void check_philox(void);

#endif
