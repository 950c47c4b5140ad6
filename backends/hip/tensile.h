/* SPDX-License-Identifier: Apache-2.0 */
/* rocBLAS reads its products' code from files, by architecture, when it first multiplies, and ends the process if there
 * are none for the device. So they are looked for before. */
#ifndef HIP_TENSILE_H
#define HIP_TENSILE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether rocBLAS, opened as `library`, has files for an architecture such as "gfx90a:sramecc+:xnack-": false, with the
 * reason, if the folder that it reads is known and has none. */
bool hip_tensile_serves(void *library, const char *architecture, char *reason, size_t size);

#endif
