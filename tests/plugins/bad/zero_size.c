/* SPDX-License-Identifier: Apache-2.0 */
/* Bad: an entry that says it has no bytes at all. */
#define MINIMAL_NAME "zero-size"
#define MINIMAL_SIZE 0
#include "minimal.h"
