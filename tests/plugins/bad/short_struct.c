/* SPDX-License-Identifier: Apache-2.0 */
/* Bad: an entry that ends before the required functions. They stand there all the same, so a core that
 * reads past the size would not notice. */
#define MINIMAL_NAME "short-struct"
#define MINIMAL_SIZE HELIO_STRUCT_SIZE(helio_plugin, version)
#include "minimal.h"
