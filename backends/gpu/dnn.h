/* SPDX-License-Identifier: Apache-2.0 */
/* What dnn.c of this folder and that of each vendor share: the handles of cuDNN and MIOpen, and their types of numbers,
 * to which dnn_names.h of the vendor's folder gives the names that are used here. */
#ifndef GPU_DNN_H
#define GPU_DNN_H

#include "dnn_names.h"
#include "libraries.h"

struct vendor_dnn {
  const helio_host *host;
  struct dnn_handle *handle;
  uint64_t number;      /* no other handle has or had it */
  pthread_mutex_t lock; /* a handle is one thread's at a time */
};

/* --- dnn.c of each vendor --- */

abi_enum vendor_dnn_make_handle(struct dnn_handle **handle);
void vendor_dnn_end_handle(struct dnn_handle *handle);
abi_enum vendor_dnn_set_stream(struct dnn_handle *handle, vendor_stream *stream);

/* What a status means, and the library's own words for it. */
helio_status vendor_dnn_meaning(abi_enum status);
const char *vendor_dnn_words(abi_enum status);

/* --- dnn.c of this folder --- */

/* Tells that a call has failed, and returns what its status means. */
helio_status gpu_dnn_fail(const helio_host *host, abi_enum status, const char *call);

abi_enum gpu_dnn_type(uint32_t type);

#endif
