/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes with pinned memory, through CUDA's driver. */
#include "driver.h"

#include <string.h>

enum { BYTES = 1000 }; /* no multiple of the alignment */

static void free_while_copied(bool wrong) {
  cuda_open(1);
  char *host = cuda_pin(BYTES);
  cuda_abi_address address = cuda_allocate(BYTES);
  NEED(cuMemcpyHtoDAsync_v2(address, host, BYTES, NULL));
  if (!wrong) NEED(cuStreamSynchronize(NULL));
  cuMemFreeHost(host);
  NEED(cuMemFree_v2(address));
  if (wrong) NEED(cuMemFreeHost(host));
  cuda_close(1);
}

static void overwrite_while_copied(bool wrong) {
  cuda_open(1);
  char *host = cuda_pin(BYTES);
  cuda_abi_address address = cuda_allocate(BYTES);
  memset(host, 1, BYTES);
  NEED(cuMemcpyHtoDAsync_v2(address, host, BYTES, NULL));
  if (!wrong) NEED(cuStreamSynchronize(NULL));
  host[BYTES / 2] = 2;
  NEED(cuStreamSynchronize(NULL));
  NEED(cuMemFreeHost(host));
  NEED(cuMemFree_v2(address));
  cuda_close(1);
}

/* Many copies later the device may have done it, but nobody has asked. */
static void overwrite_much_later(bool wrong) {
  cuda_open(1);
  char *host = cuda_pin(BYTES);
  cuda_abi_address address = cuda_allocate(BYTES), other = cuda_allocate(BYTES);
  struct CUevent_st *event = cuda_event();
  memset(host, 1, BYTES);
  NEED(cuMemcpyHtoDAsync_v2(address, host, BYTES, NULL));
  NEED(cuEventRecord(event, NULL));
  for (int i = 0; i < 100; i++) NEED(cuMemcpyDtoDAsync_v2(other, address, BYTES, NULL));
  if (!wrong) NEED(cuEventSynchronize(event));
  host[BYTES / 2] = 2;
  NEED(cuStreamSynchronize(NULL));
  NEED(cuEventDestroy_v2(event));
  NEED(cuMemFreeHost(host));
  NEED(cuMemFree_v2(address));
  NEED(cuMemFree_v2(other));
  cuda_close(1);
}

/* The same with the copy's destination. */
static void read_much_later(bool wrong) {
  cuda_open(1);
  char *host = cuda_pin(BYTES);
  cuda_abi_address address = cuda_allocate(BYTES), other = cuda_allocate(BYTES);
  NEED(cuMemsetD8Async(address, 5, BYTES, NULL));
  NEED(cuMemcpyDtoHAsync_v2(host, address, BYTES, NULL));
  for (int i = 0; i < 100; i++) NEED(cuMemcpyDtoDAsync_v2(other, address, BYTES, NULL));
  if (!wrong) NEED(cuStreamSynchronize(NULL));
  char seen = host[BYTES / 2];
  NEED(cuMemFree_v2(address));
  NEED(cuMemFree_v2(other));
  NEED(cuMemFreeHost(host));
  cuda_close(1);
  if (seen != 5) fail_numbers();
}

static void write_into_destination(bool wrong) {
  cuda_open(1);
  char *host = cuda_pin(BYTES);
  cuda_abi_address address = cuda_allocate(BYTES);
  NEED(cuMemcpyDtoHAsync_v2(host, address, BYTES, NULL));
  if (!wrong) NEED(cuStreamSynchronize(NULL));
  host[0] = 7;
  NEED(cuStreamSynchronize(NULL));
  NEED(cuMemFreeHost(host));
  NEED(cuMemFree_v2(address));
  cuda_close(1);
}

static void pinned_overrun(bool wrong) {
  cuda_open(1);
  char *host = cuda_pin(BYTES);
  memset(host, 0, wrong ? BYTES + 1 : BYTES); /* into the canary */
  NEED(cuMemFreeHost(host));
  cuda_close(1);
}

static void copy_pinned_canary(bool wrong) {
  cuda_open(1);
  char *from = cuda_pin(BYTES), *to = cuda_pin(BYTES);
  memcpy(to, from, wrong ? BYTES + 24 : BYTES);
  NEED(cuMemFreeHost(from));
  NEED(cuMemFreeHost(to));
  cuda_close(1);
}

static void pinned_far_overrun(bool wrong) {
  cuda_open(1);
  char *host = cuda_pin(BYTES);
  memset(host, 0, wrong ? BYTES + 64 : BYTES); /* into the guard */
  NEED(cuMemFreeHost(host));
  cuda_close(1);
}

static void pinned_copy_too_long(bool wrong) {
  cuda_open(1);
  char *host = cuda_pin(BYTES);
  cuda_abi_address address = cuda_allocate(2 * BYTES);
  cuMemcpyHtoDAsync_v2(address, host, wrong ? BYTES + 1 : BYTES, NULL);
  NEED(cuMemFree_v2(address));
  NEED(cuMemFreeHost(host));
  cuda_close(1);
}

static void free_pinned_twice(bool wrong) {
  cuda_open(1);
  char *host = cuda_pin(BYTES);
  NEED(cuMemFreeHost(host));
  if (wrong) cuMemFreeHost(host);
  cuda_close(1);
}

static void pinned_use_after_free(bool wrong) {
  cuda_open(1);
  char *host = cuda_pin(BYTES);
  if (!wrong) host[0] = 1;
  NEED(cuMemFreeHost(host));
  if (wrong) host[0] = 1;
  cuda_close(1);
}

/* GPUSIM_FAULT=lost:copy:1@1: what was made on a healthy device is a leak, whatever became of another. */
static void leak_beside_lost(bool wrong) {
  cuda_open(2);
  char *host = cuda_pin(BYTES);
  if (!wrong) NEED(cuMemFreeHost(host));
  NEED(cuCtxSetCurrent(cuda_contexts[1]));
  (void)cuda_pin(BYTES); /* goes with the device */
  cuda_abi_address address = cuda_allocate(BYTES);
  (void)cuMemsetD8Async(address, 0, BYTES, NULL);
  cuda_close(2);
}

static void leak_pinned(bool wrong) {
  cuda_open(1);
  char *host = cuda_pin(BYTES);
  if (!wrong) NEED(cuMemFreeHost(host));
  cuda_close(1);
}

const mistake pinned_mistakes[] = {
    {"free-while-copied", "pinned memory in use", free_while_copied, NULL},
    {"overwrite-while-copied", "pinned memory in use", overwrite_while_copied, NULL},
    {"overwrite-much-later", "pinned memory in use", overwrite_much_later, NULL},
    {"read-much-later", WRONG_NUMBERS, read_much_later, NULL},
    {"write-into-destination", "pinned memory in use", write_into_destination, NULL},
    {"pinned-overrun", "out of bounds", pinned_overrun, NULL},
    {"copy-pinned-canary", "out of bounds", copy_pinned_canary, NULL},
    {"pinned-far-overrun", "out of bounds", pinned_far_overrun, NULL},
    {"pinned-copy-too-long", "out of bounds", pinned_copy_too_long, NULL},
    {"free-pinned-twice", "double free", free_pinned_twice, NULL},
    {"pinned-use-after-free", "use after free", pinned_use_after_free, NULL},
    {"leak-beside-lost", "leak", leak_beside_lost, "GPUSIM_CUDA=2 GPUSIM_FAULT=lost:copy:1@1"},
    {"leak-pinned", "leak", leak_pinned, NULL},
    {0},
};
