/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of cuDNN and MIOpen. */
#include "dnn.h"

#include <stdio.h>

helio_status gpu_dnn_fail(const helio_host *host, abi_enum status, const char *call) {
  return gpu_library_fail(host, &vendor_dnn_library, call, vendor_dnn_meaning(status), vendor_dnn_words(status));
}

helio_status vendor_dnn_create(const helio_host *host, vendor_dnn **result, char *reason, size_t size) {
  static atomic_uint_fast64_t numbers;
  vendor_dnn *dnn = host->allocate(host, sizeof *dnn);
  if (dnn == NULL) {
    snprintf(reason, size, "there is no memory for a handle");
    return HELIO_OUT_OF_MEMORY;
  }
  *dnn = (vendor_dnn){.host = host, .number = atomic_fetch_add(&numbers, 1) + 1};
  abi_enum status = vendor_dnn_make_handle(&dnn->handle);
  if (status != 0) {
    snprintf(reason, size, "a handle cannot be made: %s", vendor_dnn_words(status));
    host->release(host, dnn);
    return vendor_dnn_meaning(status);
  }
  pthread_mutex_init(&dnn->lock, NULL);
  *result = dnn;
  return HELIO_OK;
}

helio_status vendor_dnn_attach(vendor_dnn *dnn, vendor_stream *stream) {
  pthread_mutex_lock(&dnn->lock);
  abi_enum status = vendor_dnn_set_stream(dnn->handle, stream);
  pthread_mutex_unlock(&dnn->lock);
  return status == 0 ? HELIO_OK : gpu_dnn_fail(dnn->host, status, "setting a stream");
}

void vendor_dnn_destroy(vendor_dnn *dnn, bool lost) {
  if (dnn == NULL) return;
  if (!lost) vendor_dnn_end_handle(dnn->handle);
  pthread_mutex_destroy(&dnn->lock);
  dnn->host->release(dnn->host, dnn);
}

abi_enum gpu_dnn_type(uint32_t type) {
  switch (type) {
  case HELIO_FLOAT64:
    return DNN_F64;
  case HELIO_FLOAT16:
    return DNN_F16;
  case HELIO_BFLOAT16:
    return DNN_BF16;
  default:
    return DNN_F32;
  }
}
