/* SPDX-License-Identifier: Apache-2.0 */
/* What a user is told of device memory: when it runs out, and what is still held at the end. */
#ifndef HI_ARENA_REPORT_H
#define HI_ARENA_REPORT_H

#include "device/arena.h"

/* Sets the error: device, request, limit, what is in use, and the largest holders among the `live` blocks. `elsewhere`:
 * what the rest of the process holds, where that counts. */
void hi_report_out_of_memory(const hi_arena_source *source, size_t bytes, const char *holder, const helio_memory *info,
                             uint64_t elsewhere, const hi_block *live);

/* At the end of the library: what is in use and by whom, if anything is. */
void hi_report_held(const char *device, const helio_memory *info, const hi_block *live);

/* "1.5 GiB" in a buffer of at least 24 bytes. */
const char *hi_bytes_text(uint64_t bytes, char *text);

#endif
