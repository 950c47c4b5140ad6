/* SPDX-License-Identifier: Apache-2.0 */
/* Bad: a name that no setting could hold. */
#define MINIMAL_NAME "Bad Name!"
#include "minimal.h"
