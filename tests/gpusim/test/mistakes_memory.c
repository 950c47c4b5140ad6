/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes with device memory, of one device and of two, through CUDA's driver. */
#include "driver.h"
#include "sim.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 1000 }; /* no multiple of the alignment */

/* ---------------------------------------------------------------------------------------------------------------------
 * Device memory
 */

static volatile char sink; /* so that a read is made */

static void host_reads(bool wrong) {
  cuda_open(1);
  cuda_abi_address address = cuda_allocate(BYTES);
  if (wrong) sink = *(char *)(uintptr_t)address;
  NEED(cuMemFree_v2(address));
  cuda_close(1);
}

static void host_writes(bool wrong) {
  cuda_open(1);
  cuda_abi_address address = cuda_allocate(BYTES);
  if (wrong) memset((void *)(uintptr_t)address, 0, 4);
  NEED(cuMemFree_v2(address));
  cuda_close(1);
}

static void copy_too_long(bool wrong) {
  cuda_open(1);
  cuda_abi_address address = cuda_allocate(BYTES);
  char host[2 * BYTES] = {0};
  cuMemcpyHtoDAsync_v2(address, host, wrong ? BYTES + 1 : BYTES, NULL);
  NEED(cuMemFree_v2(address));
  cuda_close(1);
}

static void fill_before(bool wrong) {
  cuda_open(1);
  cuda_abi_address address = cuda_allocate(BYTES);
  cuMemsetD8Async(wrong ? address - 1 : address, 0, BYTES, NULL);
  NEED(cuMemFree_v2(address));
  cuda_close(1);
}

static void fill_misaligned(bool wrong) {
  cuda_open(1);
  cuda_abi_address address = cuda_allocate(BYTES);
  cuMemsetD32Async(wrong ? address + 2 : address, 0, 4, NULL);
  NEED(cuMemFree_v2(address));
  cuda_close(1);
}

static void copy_after_free(bool wrong) {
  cuda_open(1);
  cuda_abi_address address = cuda_allocate(BYTES);
  char host[BYTES];
  if (!wrong) cuMemcpyDtoHAsync_v2(host, address, BYTES, NULL);
  NEED(cuMemFree_v2(address));
  if (wrong) cuMemcpyDtoHAsync_v2(host, address, BYTES, NULL);
  cuda_close(1);
}

static void free_twice(bool wrong) {
  cuda_open(1);
  cuda_abi_address address = cuda_allocate(BYTES);
  NEED(cuMemFree_v2(address));
  if (wrong) cuMemFree_v2(address);
  cuda_close(1);
}

static void free_the_middle(bool wrong) {
  cuda_open(1);
  cuda_abi_address address = cuda_allocate(BYTES);
  if (wrong) cuMemFree_v2(address + 256);
  NEED(cuMemFree_v2(address));
  cuda_close(1);
}

static void free_host_memory(bool wrong) {
  cuda_open(1);
  char *host = malloc(BYTES);
  if (wrong) cuMemFree_v2((uintptr_t)host);
  free(host);
  cuda_close(1);
}

static void host_for_device(bool wrong) {
  cuda_open(1);
  char host[BYTES] = {0}, other[BYTES] = {0};
  cuda_abi_address address = cuda_allocate(BYTES);
  cuMemcpyHtoDAsync_v2(wrong ? (uintptr_t)other : address, host, BYTES, NULL);
  NEED(cuMemFree_v2(address));
  cuda_close(1);
}

static void device_for_host(bool wrong) {
  cuda_open(1);
  char host[BYTES] = {0};
  cuda_abi_address address = cuda_allocate(BYTES), other = cuda_allocate(BYTES);
  cuMemcpyHtoDAsync_v2(address, wrong ? (char *)(uintptr_t)other : host, BYTES, NULL);
  NEED(cuMemFree_v2(address));
  NEED(cuMemFree_v2(other));
  cuda_close(1);
}

static void copy_onto_itself(bool wrong) {
  cuda_open(1);
  cuda_abi_address address = cuda_allocate(BYTES);
  cuMemcpyDtoDAsync_v2(address, address + (wrong ? 100 : 500), 500, NULL);
  NEED(cuMemFree_v2(address));
  cuda_close(1);
}

static void leak_memory(bool wrong) {
  cuda_open(1);
  cuda_abi_address address = cuda_allocate(BYTES);
  if (!wrong) NEED(cuMemFree_v2(address));
  cuda_close(1);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Two devices
 */

static void other_devices_memory(bool wrong) {
  cuda_open(2);
  cuda_abi_address address = cuda_allocate(BYTES);
  NEED(cuCtxSetCurrent(cuda_contexts[wrong]));
  cuMemsetD8Async(address, 0, BYTES, NULL);
  NEED(cuCtxSetCurrent(cuda_contexts[0]));
  NEED(cuMemFree_v2(address));
  cuda_close(2);
}

static void other_devices_event(bool wrong) {
  cuda_open(2);
  struct CUevent_st *event = cuda_event();
  NEED(cuCtxSetCurrent(cuda_contexts[wrong]));
  cuEventRecord(event, NULL);
  NEED(cuCtxSetCurrent(cuda_contexts[0]));
  NEED(cuEventDestroy_v2(event));
  cuda_close(2);
}

static void time_between_devices(bool wrong) {
  cuda_open(2);
  struct CUevent_st *events[2];
  for (int i = 0; i < 2; i++) {
    NEED(cuCtxSetCurrent(cuda_contexts[wrong && i]));
    NEED(cuEventCreate(&events[i], 0));
    NEED(cuEventRecord(events[i], NULL));
    NEED(cuEventSynchronize(events[i]));
  }
  float milliseconds;
  cuEventElapsedTime(&milliseconds, events[0], events[1]);
  for (int i = 0; i < 2; i++) NEED(cuEventDestroy_v2(events[i]));
  cuda_close(2);
}

static void peer_of_wrong_context(bool wrong) {
  cuda_open(2);
  cuda_abi_address one = cuda_allocate(BYTES);
  NEED(cuCtxSetCurrent(cuda_contexts[1]));
  cuda_abi_address other = cuda_allocate(BYTES);
  cuMemcpyPeerAsync(other, cuda_contexts[!wrong], one, cuda_contexts[0], BYTES, NULL);
  NEED(cuMemFree_v2(other));
  NEED(cuCtxSetCurrent(cuda_contexts[0]));
  NEED(cuMemFree_v2(one));
  cuda_close(2);
}

static void write_canary(bool wrong) {
  cuda_open(1);
  CORE(sim_device_at);
  CORE(sim_twin);
  cuda_abi_address address = cuda_allocate(BYTES);
  char *twin = core_sim_twin(core_sim_device_at(SIM_CUDA, 0), (void *)(uintptr_t)address, BYTES, "memory");
  memset(twin, 0, wrong ? BYTES + 1 : BYTES);
  NEED(cuMemFree_v2(address));
  cuda_close(1);
}

/* The room behind one allocation goes along when it is copied, with what was there to guard it. */
static void copy_canary(bool wrong) {
  cuda_open(1);
  CORE(sim_device_at);
  CORE(sim_twin);
  cuda_abi_address addresses[2];
  char *twins[2];
  for (int i = 0; i < 2; i++) {
    addresses[i] = cuda_allocate(BYTES);
    twins[i] = core_sim_twin(core_sim_device_at(SIM_CUDA, 0), (void *)(uintptr_t)addresses[i], BYTES, "memory");
  }
  memcpy(twins[1], twins[0], wrong ? BYTES + 24 : BYTES);
  for (int i = 0; i < 2; i++) NEED(cuMemFree_v2(addresses[i]));
  cuda_close(1);
}

const mistake memory_mistakes[] = {
    {"host-reads", "host touches device memory", host_reads, NULL},
    {"host-writes", "host touches device memory", host_writes, NULL},
    {"copy-too-long", "out of bounds", copy_too_long, NULL},
    {"fill-before", "out of bounds", fill_before, NULL},
    {"fill-misaligned", "misaligned", fill_misaligned, NULL},
    {"copy-after-free", "use after free", copy_after_free, NULL},
    {"free-twice", "double free", free_twice, NULL},
    {"free-the-middle", "free of no allocation", free_the_middle, NULL},
    {"free-host-memory", "not device memory", free_host_memory, NULL},
    {"host-for-device", "not device memory", host_for_device, NULL},
    {"device-for-host", "not host memory", device_for_host, NULL},
    {"copy-onto-itself", "overlapping copy", copy_onto_itself, NULL},
    {"leak-memory", "leak", leak_memory, NULL},
    {"other-devices-memory", "wrong device", other_devices_memory, "GPUSIM_CUDA=2"},
    {"other-devices-event", "wrong device", other_devices_event, "GPUSIM_CUDA=2"},
    {"time-between-devices", "wrong device", time_between_devices, "GPUSIM_CUDA=2"},
    {"peer-of-wrong-context", "wrong device", peer_of_wrong_context, "GPUSIM_CUDA=2"},
    {"write-canary", "out of bounds", write_canary, NULL},
    {"copy-canary", "out of bounds", copy_canary, NULL},
    {0},
};
