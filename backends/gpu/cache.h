/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled kernels on disk, so that a program compiles them once and not each time that it starts. Nothing here is an
 * error: a folder that cannot be written, or an entry that is damaged, costs time only. */
#ifndef GPU_CACHE_H
#define GPU_CACHE_H

#include "vendor.h"

/* The folder, "" if nothing is to be kept. */
void gpu_cache_folder(const helio_host *host, char *folder, size_t size);

/* The image that was kept under `key`, which is a text that has in it all that the image depends on; `name` is the
 * beginning of the file's name. false if there is none. */
bool gpu_cache_read(const helio_host *host, const char *name, const char *key, vendor_image *image);
void gpu_cache_write(const helio_host *host, const char *name, const char *key, const vendor_image *image);

/* For keys: of a long text. */
uint64_t gpu_cache_hash(const void *data, size_t bytes);

#endif
