/* SPDX-License-Identifier: Apache-2.0 */
/* The handles of the vendor's libraries: one for each stream that uses them, and one of each device's own. */
#include "libraries.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

typedef enum presence { UNKNOWN, PRESENT, ABSENT } presence;

struct gpu_libraries {
  pthread_mutex_t lock; /* of all that follows, of the device's handle in use, and of making those of streams */
  presence has_blas, has_dnn;
  vendor_blas *spare; /* made to see whether it works; the first stream takes it */
  vendor_dnn *dnn;    /* for what plans ask */
};

bool gpu_vendor_library_open(const helio_host *host, const char *const *names, const gpu_symbol *symbols, size_t count,
                             const gpu_symbol *optional, size_t optional_count, void *table, char *reason,
                             size_t size) {
  char folders[PATH_MAX];
  vendor_folders(host, folders, sizeof folders);
  void *library = gpu_library_open(names, folders, reason, size);
  if (library == NULL) return false;
  const char *missing = gpu_library_bind(library, symbols, count, table);
  for (size_t i = 0; i < optional_count; i++) (void)gpu_library_bind(library, &optional[i], 1, table);
  if (missing != NULL) snprintf(reason, size, "the one that was found has no %s", missing);
  return missing == NULL;
}

/* NULL if there is no memory. */
static gpu_libraries *libraries_of(helio_backend_device *device) {
  static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
  const helio_host *host = device->host;
  pthread_mutex_lock(&making);
  if (device->libraries == NULL) {
    gpu_libraries *made = host->allocate(host, sizeof *made);
    if (made != NULL) {
      *made = (gpu_libraries){.has_blas = UNKNOWN};
      pthread_mutex_init(&made->lock, NULL);
      device->libraries = made;
    }
  }
  gpu_libraries *libraries = device->libraries;
  pthread_mutex_unlock(&making);
  return libraries;
}

/* Once for the process: every device would say the same. */
static void warn(helio_backend_device *device, atomic_bool *told, const vendor_library *library, const char *work,
                 const char *reason) {
  if (atomic_exchange(told, true)) return;
  device->host->log(device->host, HELIO_LOG_WARNING,
                    "%s cannot be used, so that %s are made by kernels of our own, which are slower: %s, or say where "
                    "it is by %s (%s)",
                    library->title, work, library->install, vendor.parameter_libraries, reason);
}

bool gpu_has_blas(helio_backend_device *device) {
  static atomic_bool told;
  char reason[512] = "";
  gpu_libraries *libraries = libraries_of(device);
  if (libraries == NULL) return false;
  pthread_mutex_lock(&libraries->lock);
  if (libraries->has_blas == UNKNOWN) {
    if (vendor_blas_open(device->host, reason, sizeof reason))
      libraries->spare = vendor_blas_create(device->host, reason, sizeof reason);
    libraries->has_blas = libraries->spare == NULL ? ABSENT : PRESENT;
    if (libraries->spare == NULL) warn(device, &told, &vendor_blas_library, "products of matrices", reason);
  }
  bool present = libraries->has_blas == PRESENT;
  pthread_mutex_unlock(&libraries->lock);
  return present;
}

/* Under the lock. */
static bool has_dnn(helio_backend_device *device, gpu_libraries *libraries) {
  static atomic_bool told;
  char reason[512] = "";
  if (libraries->has_dnn == UNKNOWN) {
    if (vendor_dnn_open(device->host, reason, sizeof reason))
      libraries->dnn = vendor_dnn_create(device->host, NULL, reason, sizeof reason);
    libraries->has_dnn = libraries->dnn == NULL ? ABSENT : PRESENT;
    if (libraries->dnn == NULL) warn(device, &told, &vendor_dnn_library, "convolutions", reason);
  }
  return libraries->has_dnn == PRESENT;
}

helio_status gpu_dnn_find(helio_backend_device *device, const vendor_convolution *convolution, vendor_way **way,
                          size_t *workspace) {
  helio_status status = HELIO_OK;
  *way = NULL;
  gpu_libraries *libraries = libraries_of(device);
  if (libraries == NULL) return HELIO_OK;
  pthread_mutex_lock(&libraries->lock);
  if (has_dnn(device, libraries)) status = vendor_dnn_find(libraries->dnn, convolution, way, workspace);
  pthread_mutex_unlock(&libraries->lock);
  return status;
}

static helio_status no_handle(helio_backend_device *device, const vendor_library *library, const char *reason) {
  return device->host->fail(device->host, HELIO_DEVICE_FAILURE, "%s gives no handle for a stream: %s", library->title,
                            reason);
}

static helio_status attach_blas(helio_stream *stream, gpu_libraries *libraries) {
  helio_backend_device *device = stream->device;
  char reason[512] = "";
  vendor_blas *blas = libraries->spare;
  libraries->spare = NULL;
  if (blas == NULL) blas = vendor_blas_create(device->host, reason, sizeof reason);
  if (blas == NULL) return no_handle(device, &vendor_blas_library, reason);
  helio_status status = vendor_blas_attach(blas, device->facts, stream->native);
  if (status != HELIO_OK) {
    vendor_blas_destroy(blas);
    return status;
  }
  __atomic_store_n(&stream->blas, blas, __ATOMIC_RELEASE);
  return HELIO_OK;
}

helio_status gpu_stream_blas(helio_stream *stream, vendor_blas **blas) {
  helio_status status = HELIO_OK;
  *blas = __atomic_load_n(&stream->blas, __ATOMIC_ACQUIRE);
  if (*blas != NULL) return HELIO_OK;
  gpu_libraries *libraries = stream->device->libraries; /* there: a plan has asked for it */
  pthread_mutex_lock(&libraries->lock);
  if (stream->blas == NULL) status = attach_blas(stream, libraries);
  *blas = stream->blas;
  pthread_mutex_unlock(&libraries->lock);
  return status;
}

helio_status gpu_stream_dnn(helio_stream *stream, vendor_dnn **dnn) {
  helio_backend_device *device = stream->device;
  char reason[512] = "";
  *dnn = __atomic_load_n(&stream->dnn, __ATOMIC_ACQUIRE);
  if (*dnn != NULL) return HELIO_OK;
  gpu_libraries *libraries = device->libraries; /* there: a plan has asked for it */
  pthread_mutex_lock(&libraries->lock);
  if (stream->dnn == NULL) {
    vendor_dnn *made = vendor_dnn_create(device->host, stream->native, reason, sizeof reason);
    __atomic_store_n(&stream->dnn, made, __ATOMIC_RELEASE);
  }
  *dnn = stream->dnn;
  pthread_mutex_unlock(&libraries->lock);
  return *dnn == NULL ? no_handle(device, &vendor_dnn_library, reason) : HELIO_OK;
}

void gpu_stream_libraries_close(helio_stream *stream) {
  vendor_blas_destroy(stream->blas);
  vendor_dnn_destroy(stream->dnn);
  stream->blas = NULL;
  stream->dnn = NULL;
}

void gpu_libraries_close(helio_backend_device *device) {
  gpu_libraries *libraries = device->libraries;
  if (libraries == NULL) return;
  vendor_blas_destroy(libraries->spare);
  vendor_dnn_destroy(libraries->dnn);
  pthread_mutex_destroy(&libraries->lock);
  device->host->release(device->host, libraries);
  device->libraries = NULL;
}
