/* SPDX-License-Identifier: Apache-2.0 */
/* Good: the minimal backend itself. */
#define MINIMAL_NAME "minimal"
#include "minimal.h"
