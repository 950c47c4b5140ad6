/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the GPU backends share. backends/gpu is compiled twice, into the plugins cuda and hip; what differs
 * between the vendors is behind vendor.h.
 *
 * A kernel of ours is text in kernels/NAME.cu, one source for both vendors, compiled when it is first needed for the
 * device that was found and for one type of elements at a time. A plan finds its kernels (which may compile), and a run
 * hands them to its stream: it allocates nothing and waits for nothing. */
#ifndef GPU_H
#define GPU_H

#include <helio/plugin.h>

#include "../common/call.h"
#include "vendor.h"

/* Alignment of allocations: what the vendors' allocators give at least, and their libraries like best. */
#define GPU_ALIGNMENT 256

/* Threads of a block where nothing else speaks: four or eight warps on every device there is. */
#define GPU_BLOCK 256

typedef struct gpu_physical gpu_physical;   /* a card: context, facts, compiled modules. device.c and module.c */
typedef struct gpu_libraries gpu_libraries; /* what a device keeps of the vendor's libraries. libraries.c */

struct helio_plugin_state {
  const helio_host *host;
  uint32_t count;
  gpu_physical *physical;    /* count of them */
  struct gpu_images *images; /* what the cards share of module.c */
};

/* A logical device. Those cut from one card share its context and its modules. */
struct helio_backend_device {
  const helio_host *host;
  helio_plugin_state *state;
  gpu_physical *physical;
  const vendor_facts *facts; /* of the card */
  uint32_t spin_us;          /* how long a waiting thread may spin before it sleeps */
  gpu_libraries *libraries;  /* NULL before they are first used; gpu_libraries_close() of libraries.h ends them */
};

struct helio_buffer {
  gpu_address address;
  size_t bytes;
};

struct helio_stream {
  helio_backend_device *device;
  vendor_stream *native;
  vendor_event *end; /* of what the stream was handed until it is waited for */
  vendor_blas *blas; /* NULL before they are first used: a library's handle works on one stream at a time. */
  vendor_dnn *dnn;   /* gpu_stream_libraries_close() of libraries.h ends them */
};

struct helio_event {
  vendor_event *native;
};

/* The beginning of every plan. */
struct helio_plan {
  helio_backend_device *device;
  uint32_t operation;
  bool empty;       /* the outputs have no elements: nothing to do */
  size_t workspace; /* bytes that a run must have, as gpu_plan_finish was told */
};

/* --- plugin.c, device.c, memory.c, stream.c --- */
extern const helio_device_table gpu_device_table;
extern const helio_memory_table gpu_memory_table;
extern const helio_stream_table gpu_stream_table;
extern const helio_kernel_table gpu_kernel_table;

/* Makes the device the calling thread's current one. Every entry from the core does so first: threads come and go, and
 * collectives and other libraries change it. */
helio_status gpu_enter(helio_backend_device *device);

/* The same to give something back, which does not fail: false if the device is lost. The vendor has nothing to free
 * then; whoever calls frees the host's part. */
bool gpu_enter_to_free(helio_backend_device *device);

/* What a vendor's result means: HELIO_OK, HELIO_NOT_READY, why a call was refused, or HELIO_DEVICE_FAILURE if the
 * device is good for nothing any more. results.c */
helio_status gpu_status_of(vendor_result result);

/* Tells a failed call of the vendor's and gives the status that it means. */
helio_status gpu_fail(const helio_backend_device *device, vendor_result result, const char *call);

/* The same of work that was handed over before and that a wait tells of: whatever the number, it was not done, and what
 * came behind it has run without it. That is a failure of the device. */
helio_status gpu_fail_late(const helio_backend_device *device, vendor_result result);

/* copy_peer of the memory table. peer.c */
helio_status gpu_copy_peer(helio_backend_device *device, helio_stream *stream, helio_place target,
                           helio_backend_device *from, helio_place source, size_t bytes);

/* --- kernels.c: what plans have in common --- */

/* As call_check; errors name the vendor. It also makes the device current. */
helio_status gpu_call_check(helio_backend_device *device, const helio_call *call, const helio_plan_answer *answer,
                            const call_signature *signature);

/* A zeroed plan of `size` bytes that begins with a helio_plan; NULL, with the failure told, if there is no memory. It
 * is `empty` if the call has outputs and none of them has elements. */
helio_plan *gpu_plan_new(helio_backend_device *device, const helio_call *call, size_t size);
void gpu_plan_free(helio_plan *plan);

/* The end of making a plan: answers it or, if `status` tells a failure, frees it. */
helio_status gpu_plan_finish(helio_plan *plan, helio_status status, size_t workspace, helio_plan_answer *answer);

/* --- module.c: compiled kernels --- */

/* The kernel `name` of kernels/`text`.cu, compiled with elements of `type` (0 for a text that has no T). Compiles, or
 * reads from the cache on disk, when the first kernel of that text and type is asked for: blocks. Valid as long as the
 * device. */
helio_status gpu_kernel_find(helio_backend_device *device, const char *text, uint32_t type, const char *name,
                             vendor_function **function);

/* --- launch.c --- */

/* `struct axes` of kernels/prelude.cu. */
typedef struct gpu_axes {
  int64_t extent[HELIO_MAX_RANK];
  int64_t stride[HELIO_MAX_RANK];
  int32_t rank;
  int32_t unused;
} gpu_axes;

typedef struct gpu_grid {
  unsigned blocks, threads; /* threads of a block; both in one dimension */
} gpu_grid;

/* Blocks of GPU_BLOCK threads for kernels that go over `count` items in a loop that strides over the whole grid
 * (FOR_EACH of kernels/prelude.cu): enough to fill the device, never more than are needed, at least one. The result of
 * a kernel must not depend on how many there are. */
gpu_grid gpu_grid_over(const helio_backend_device *device, size_t count);

/* Hands a kernel to the run's stream. `arguments` points to each argument's value in turn, as the vendors want it. The
 * vendors' limits: up to 2³¹ − 1 blocks, on HIP with less than 2³² threads in all of them. */
helio_status gpu_launch(const helio_plan *plan, const helio_run *run, vendor_function *function, gpu_grid grid,
                        void **arguments);

/* HELIO_OK if run() understands all of `run` and has its workspace, and the device is current. The beginning of every
 * run; a plan that is empty is answered before. */
helio_status gpu_run_begin(const helio_plan *plan, const helio_run *run);

static inline gpu_address gpu_place_address(helio_place place) {
  return place.buffer == NULL ? 0 : place.buffer->address + place.offset;
}
static inline gpu_address gpu_run_address(const helio_run *run, size_t index) {
  return gpu_place_address(run_place(run, index));
}
static inline gpu_address gpu_run_workspace(const helio_run *run) {
  return gpu_place_address(run_workspace(run));
}
/* Of the helio_status_word. */
static inline gpu_address gpu_run_status(const helio_run *run) {
  return gpu_place_address(run->status);
}

#endif
