/* SPDX-License-Identifier: Apache-2.0 */
/* A card: what the logical devices that are cut from it share. */
#ifndef GPU_PHYSICAL_H
#define GPU_PHYSICAL_H

#include "gpu.h"

#include <pthread.h>

/* Whether a card can copy from another one's memory directly; found out once for each pair. */
typedef enum gpu_reach { GPU_REACH_UNKNOWN, GPU_REACH_TRYING, GPU_REACH_YES, GPU_REACH_NO } gpu_reach;

typedef struct gpu_module gpu_module; /* module.c */

struct gpu_physical {
  int index;
  vendor_facts facts;
  char property_text[4][64]; /* shown by `helio devices` */
  const char *properties[5];
  pthread_mutex_t lock; /* of all that follows */
  unsigned open_count;
  vendor_context *context; /* while a logical device is open */
  gpu_module *modules;     /* a list, youngest first */
  gpu_reach *reach;        /* one for each card; atomic instead of under the lock */
};

/* Unloads a card's modules; it is the thread's current one, or lost. */
void gpu_modules_unload(helio_plugin_state *state, gpu_physical *physical, bool lost);

/* Images of compiled texts, which all cards of one architecture share. */
typedef struct gpu_images gpu_images;
helio_status gpu_images_create(const helio_host *host, gpu_images **images);
void gpu_images_destroy(gpu_images *images);

#endif
