/* SPDX-License-Identifier: Apache-2.0 */
/* Bad: the symbol is there but what it names is something else. */
#define MINIMAL_NAME  "wrong-magic"
#define MINIMAL_MAGIC UINT64_C(0x4F5552204D414749)
#include "minimal.h"
