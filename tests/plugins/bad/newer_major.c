/* SPDX-License-Identifier: Apache-2.0 */
/* Bad: built for an ABI that this core does not know yet. */
#define MINIMAL_NAME  "newer-major"
#define MINIMAL_MAJOR (HELIO_ABI_MAJOR + 1)
#include "minimal.h"
