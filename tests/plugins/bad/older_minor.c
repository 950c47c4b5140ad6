/* SPDX-License-Identifier: Apache-2.0 */
/* Bad: built for an older ABI; while the major number is 0 every minor number counts. */
#define MINIMAL_NAME  "older-minor"
#define MINIMAL_MINOR (HELIO_ABI_MINOR - 1)
#include "minimal.h"
