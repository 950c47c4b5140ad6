/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the vendors, as the shared files see it: backends/cuda and backends/hip each implement all of
 * this, by functions that they look up in the vendor's libraries when they run. A result is the vendor's own number, 0
 * for success. Unless said otherwise the device must be the thread's current one. */
#ifndef GPU_VENDOR_H
#define GPU_VENDOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <helio/plugin.h>

#include "library.h"

typedef uint64_t gpu_address; /* of device memory; 0: none */
typedef int vendor_result;

/* The vendor's objects, never looked into here. */
typedef struct vendor_context vendor_context;
typedef struct vendor_stream vendor_stream;
typedef struct vendor_event vendor_event;
typedef struct vendor_module vendor_module;
typedef struct vendor_function vendor_function;
typedef struct vendor_blas vendor_blas;
typedef struct vendor_dnn vendor_dnn;

typedef struct vendor_names {
  const char *plugin; /* "cuda", "hip": name of the plugin and of its native handles */
  const char *title;  /* "CUDA", "HIP": in messages */
  const char *vendor; /* "NVIDIA", "AMD" */
  const char *parameter_cache, *parameter_libraries, *parameter_workspace; /* see plugin.c */
} vendor_names;
extern const vendor_names vendor;

typedef struct vendor_facts {
  char name[256];
  char architecture[256]; /* "sm_90", "gfx90a:sramecc+:xnack-" */
  char bus_id[32];
  char driver[32]; /* its version */
  uint64_t memory;
  unsigned compute_units;
  unsigned warp;       /* 32 or 64 */
  bool integrated;     /* a part of the processor, with whose memory it works */
  size_t shared_limit; /* bytes of shared memory of a block */
} vendor_facts;

/* --- driver.c --- */

/* Opens the driver once for the process, starts it and counts its devices, of which there is at least one: `reason` is
 * what was found. Else false, with what is missing and how to get it in `reason`. Cheap: no other library is opened. */
bool vendor_driver_open(const helio_host *host, int *count, char *reason, size_t size);
/* Where the vendor's libraries are looked for. */
void vendor_places(const helio_host *host, gpu_places *places);
/* Whether a library that was opened works with this driver: else false, with the reason. */
bool vendor_library_fits(void *library, char *reason, size_t size);
vendor_result vendor_device_facts(int index, vendor_facts *facts);

vendor_result vendor_context_open(int index, vendor_context **context);
void vendor_context_close(int index, vendor_context *context);
vendor_result vendor_context_enter(vendor_context *context); /* makes it current */
void *vendor_context_native(vendor_context *context);        /* see plugin.h: native_device */
vendor_result vendor_context_synchronize(void);
/* How the device is: 0, or what it failed with. Asks no stream, of which the program may be capturing one. */
vendor_result vendor_context_query(void);
vendor_result vendor_memory_info(size_t *free_bytes, size_t *total);
bool vendor_can_reach(int index, int peer);
vendor_result vendor_reach(vendor_context *context, vendor_context *peer); /* enables it; fine if it is already */

vendor_result vendor_allocate(gpu_address *address, size_t bytes);
vendor_result vendor_free(gpu_address address);
vendor_result vendor_host_allocate(void **memory, size_t bytes);
vendor_result vendor_host_free(void *memory);
vendor_result vendor_copy_in(gpu_address target, const void *source, size_t bytes, vendor_stream *stream);
vendor_result vendor_copy_out(void *target, gpu_address source, size_t bytes, vendor_stream *stream);
vendor_result vendor_copy(gpu_address target, gpu_address source, size_t bytes, vendor_stream *stream);
vendor_result vendor_copy_peer(vendor_context *to, gpu_address target, vendor_context *from, gpu_address source,
                               size_t bytes, vendor_stream *stream);
vendor_result vendor_fill(gpu_address target, uint32_t pattern, size_t pattern_bytes, size_t count,
                          vendor_stream *stream); /* patterns of 1 and 4 bytes */

vendor_result vendor_stream_create(vendor_stream **stream);
void vendor_stream_destroy(vendor_stream *stream);
vendor_result vendor_stream_synchronize(vendor_stream *stream);
vendor_result vendor_stream_wait(vendor_stream *stream, vendor_event *event);
vendor_result vendor_event_create(vendor_event **event);
void vendor_event_destroy(vendor_event *event);
vendor_result vendor_event_record(vendor_event *event, vendor_stream *stream);
vendor_result vendor_event_query(vendor_event *event);
vendor_result vendor_event_synchronize(vendor_event *event); /* sleeps meanwhile */
/* Sets how the thread stands to streams that are captured into graphs, a number that both vendors share, and gives how
 * it stood before. */
unsigned vendor_capture_mode_exchange(unsigned mode);

vendor_result vendor_module_load(const void *image, vendor_module **module);
void vendor_module_unload(vendor_module *module);
vendor_result vendor_module_function(vendor_module *module, const char *name, vendor_function **function);
vendor_result vendor_launch(vendor_function *function, unsigned blocks, unsigned threads, vendor_stream *stream,
                            void **arguments);

const char *vendor_result_text(vendor_result result); /* "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access …" */

/* Compiled kernels. */
typedef struct vendor_image {
  void *data; /* from host->allocate */
  size_t bytes;
} vendor_image;

/* compiler.c: see compiler.h; blas.c and dnn.c: see libraries.h. */

#endif
