/* SPDX-License-Identifier: Apache-2.0 */
/* The handles of the vendor's libraries: one for each stream that uses them, and one of each device's own. */
#include "libraries.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

typedef enum presence { UNKNOWN, PRESENT, ABSENT } presence; /* whether the library could be opened */

struct gpu_libraries {
  pthread_mutex_t lock; /* of all that follows, and of making and handing out handles */
  presence has_blas, has_dnn;
  vendor_blas *blas;     /* made for plans; the first stream that runs one takes it away */
  unsigned blas_streams; /* how many have one */
  vendor_dnn *dnn;       /* for what plans ask, and for the first stream that runs what came of it */
  helio_stream *dnn_stream;
};

static void *open_wanted(const helio_host *host, const gpu_wanted *wanted, char *reason, size_t size) {
  gpu_places places;
  vendor_places(host, &places);
  void *library = gpu_library_open(wanted->names, &places, reason, size);
  if (library == NULL || !vendor_library_fits(library, reason, size)) return NULL;
  if (wanted->parts != NULL && !gpu_library_open_parts(library, wanted->parts, reason, size)) return NULL;
  const char *missing = gpu_library_bind(library, wanted->symbols, wanted->symbol_count, wanted->table);
  for (size_t i = 0; i < wanted->optional_count; i++)
    (void)gpu_library_bind(library, &wanted->optional[i], 1, wanted->table);
  if (missing == NULL) return library;
  snprintf(reason, size, "the one that was found has no %s", missing);
  return NULL;
}

bool gpu_vendor_library_open(gpu_opened *opened, const helio_host *host, const gpu_wanted *wanted, char *reason,
                             size_t size) {
  pthread_mutex_lock(&opened->lock);
  if (opened->library == NULL) opened->library = open_wanted(host, wanted, reason, size);
  bool there = opened->library != NULL;
  pthread_mutex_unlock(&opened->lock);
  return there;
}

helio_status gpu_library_fail(const helio_host *host, const vendor_library *library, const char *call,
                              helio_status meaning, const char *words) {
  vendor_result device = vendor_context_query();
  host->log(host, HELIO_LOG_DEBUG, "%s: %s failed: %s", library->title, call, words); /* it may be done without it */
  if (gpu_status_of(device) != HELIO_DEVICE_FAILURE)
    return host->fail(host, meaning, "%s: %s failed: %s", library->title, call, words);
  return host->fail(host, HELIO_DEVICE_FAILURE, "%s: %s failed: %s, because the device was lost: %s", library->title,
                    call, words, vendor_result_text(device));
}

/* NULL if there is no memory: that is told. */
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
  if (libraries == NULL) host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the handles of libraries");
  return libraries;
}

/* Once for the process: every device would say the same. */
static void warn(helio_backend_device *device, atomic_bool *told, const vendor_library *library, const char *work,
                 const char *reason) {
  if (atomic_exchange(told, true)) return;
  device->host->log(device->host, HELIO_LOG_WARNING,
                    "%s cannot be used, so that %s are made by kernels of our own, which are slower: %s, and say where "
                    "it is by %s if the loader does not find it (%s)",
                    library->title, work, library->install, vendor.parameter_libraries, reason);
}

static helio_status no_handle(helio_backend_device *device, const vendor_library *library, helio_status status,
                              const char *reason) {
  helio_status meaning = status == HELIO_OUT_OF_MEMORY ? status : HELIO_NOT_SUPPORTED;
  return gpu_library_fail(device->host, library, "making a handle", meaning, reason);
}

/* The library is there, so that nobody is told to install it. A plan without it would be kept for good: where memory is
 * short there is none, and the next one may have better luck. */
static helio_status no_first_handle(helio_backend_device *device, atomic_bool *told, const vendor_library *library,
                                    const char *work, helio_status status, const char *reason) {
  status = no_handle(device, library, status, reason);
  if (status != HELIO_NOT_SUPPORTED) return status;
  if (!atomic_exchange(told, true))
    device->host->log(device->host, HELIO_LOG_WARNING,
                      "%s does not start, so that %s are made by kernels of our own, which are slower: %s",
                      library->title, work, reason);
  return HELIO_OK;
}

/* Here and not in a run, which allocates nothing: one handle, of which the first stream will have the use. One that
 * cannot be made now may be made for the next plan; a library that cannot be opened stays so. */
helio_status gpu_blas_find(helio_backend_device *device, bool *present) {
  static atomic_bool told;
  static const char work[] = "products of matrices";
  char reason[512] = "";
  helio_status status = HELIO_OK;
  gpu_libraries *libraries = libraries_of(device);
  if (libraries == NULL) return HELIO_OUT_OF_MEMORY;
  pthread_mutex_lock(&libraries->lock);
  if (libraries->has_blas == UNKNOWN) {
    libraries->has_blas = vendor_blas_open(device->host, device->facts, reason, sizeof reason) ? PRESENT : ABSENT;
    if (libraries->has_blas == ABSENT) warn(device, &told, &vendor_blas_library, work, reason);
  }
  if (libraries->has_blas == PRESENT && libraries->blas == NULL && libraries->blas_streams == 0) {
    status = vendor_blas_create(device->host, device->facts, &libraries->blas, reason, sizeof reason);
    if (status != HELIO_OK) status = no_first_handle(device, &told, &vendor_blas_library, work, status, reason);
  }
  *present = libraries->blas != NULL || libraries->blas_streams > 0;
  pthread_mutex_unlock(&libraries->lock);
  return status;
}

/* The same, under the lock: there is a handle then. */
static helio_status dnn_handle_find(helio_backend_device *device, gpu_libraries *libraries) {
  static atomic_bool told;
  static const char work[] = "convolutions";
  char reason[512] = "";
  if (libraries->has_dnn == UNKNOWN) {
    libraries->has_dnn = vendor_dnn_open(device->host, reason, sizeof reason) ? PRESENT : ABSENT;
    if (libraries->has_dnn == ABSENT) warn(device, &told, &vendor_dnn_library, work, reason);
  }
  if (libraries->has_dnn == ABSENT || libraries->dnn != NULL) return HELIO_OK;
  helio_status status = vendor_dnn_create(device->host, &libraries->dnn, reason, sizeof reason);
  return status == HELIO_OK ? status : no_first_handle(device, &told, &vendor_dnn_library, work, status, reason);
}

/* The first time aloud: from then on it is known that some are slower. */
static void tell_refusal(helio_backend_device *device, const vendor_convolution *c, const char *words) {
  static atomic_bool told;
  char limits[160];
  snprintf(limits, sizeof limits, "it has no%s way with %zu MiB of memory for itself (%s)",
           c->nondeterministic ? "" : " deterministic", c->workspace_limit >> 20, vendor.parameter_workspace);
  device->host->log(device->host, atomic_exchange(&told, true) ? HELIO_LOG_DEBUG : HELIO_LOG_WARNING,
                    "%s does not make a convolution of images (%d, %d, %d, %d) by a kernel (%d, %d, %d, %d) of %s, "
                    "so that a kernel of our own does, which is slower: %s",
                    vendor_dnn_library.title, c->images, c->height, c->width, c->channels, c->kernel[0], c->kernel[1],
                    c->channels / c->groups, c->out_channels, call_type_name(c->type), words == NULL ? limits : words);
}

helio_status gpu_dnn_find(helio_backend_device *device, const vendor_convolution *convolution, vendor_way **way,
                          size_t *workspace) {
  *way = NULL;
  gpu_libraries *libraries = libraries_of(device);
  if (libraries == NULL) return HELIO_OUT_OF_MEMORY;
  pthread_mutex_lock(&libraries->lock);
  helio_status status = dnn_handle_find(device, libraries);
  vendor_dnn *dnn = libraries->dnn;
  pthread_mutex_unlock(&libraries->lock);
  if (status != HELIO_OK || dnn == NULL) return status;
  const char *words = NULL;
  status = vendor_dnn_find(dnn, convolution, way, workspace, &words);
  if (status == HELIO_OK && *way == NULL) tell_refusal(device, convolution, words);
  return status;
}

/* A lost device does no work of any kind. Short memory, and captures of the program's, pass: then the library has its
 * next chance with the next run. */
bool gpu_library_refuses(helio_backend_device *device, helio_status status, const vendor_library *library,
                         const char *work, atomic_bool *refused) {
  static atomic_bool told;
  bool passes = status == HELIO_OUT_OF_MEMORY || status == HELIO_WRONG_STATE;
  if (status == HELIO_OK || status == HELIO_DEVICE_FAILURE) return false;
  if (!atomic_exchange(passes ? &told : refused, true))
    device->host->log(device->host, HELIO_LOG_WARNING,
                      "%s %s %s, so that a kernel of our own makes it%s, which is slower", library->title,
                      passes ? "cannot make" : "refuses", work, passes ? " this time" : "");
  return true;
}

/* A handle takes memory of the device, and loads kernels. The turn comes before the lock: who waits for it holds
 * nothing that a thread may want whose turn it is, and which others wait for. */
static helio_status attach_in_turn(helio_stream *stream, helio_status (*attach)(helio_stream *, gpu_libraries *)) {
  const helio_host *host = stream->device->host;
  gpu_libraries *libraries = stream->device->libraries; /* there: a plan has asked for it */
  host->turn_begin(host, HELIO_TURN_DRIVER);
  pthread_mutex_lock(&libraries->lock);
  helio_status status = attach(stream, libraries);
  pthread_mutex_unlock(&libraries->lock);
  host->turn_end(host, HELIO_TURN_DRIVER);
  return status;
}

static helio_status attach_blas(helio_stream *stream, gpu_libraries *libraries) {
  if (stream->blas != NULL) return HELIO_OK; /* another thread was first */
  helio_backend_device *device = stream->device;
  char reason[512] = "";
  vendor_blas *blas = libraries->blas;
  libraries->blas = NULL;
  helio_status status = HELIO_OK;
  if (blas == NULL) status = vendor_blas_create(device->host, device->facts, &blas, reason, sizeof reason);
  if (status != HELIO_OK) return no_handle(device, &vendor_blas_library, status, reason);
  status = vendor_blas_attach(blas, stream->native);
  if (status != HELIO_OK) {
    vendor_blas_destroy(blas, false);
    return status;
  }
  libraries->blas_streams++;
  __atomic_store_n(&stream->blas, blas, __ATOMIC_RELEASE);
  return HELIO_OK;
}

helio_status gpu_stream_blas(helio_stream *stream, vendor_blas **blas) {
  *blas = __atomic_load_n(&stream->blas, __ATOMIC_ACQUIRE);
  if (*blas != NULL) return HELIO_OK;
  helio_status status = attach_in_turn(stream, attach_blas);
  *blas = __atomic_load_n(&stream->blas, __ATOMIC_ACQUIRE);
  return status;
}

static helio_status attach_dnn(helio_stream *stream, gpu_libraries *libraries) {
  if (stream->dnn != NULL) return HELIO_OK; /* another thread was first */
  helio_backend_device *device = stream->device;
  char reason[512] = "";
  bool first = libraries->dnn_stream == NULL;
  vendor_dnn *dnn = libraries->dnn;
  helio_status status = HELIO_OK;
  if (!first) status = vendor_dnn_create(device->host, &dnn, reason, sizeof reason);
  if (status != HELIO_OK) return no_handle(device, &vendor_dnn_library, status, reason);
  status = vendor_dnn_attach(dnn, stream->native);
  if (status != HELIO_OK) {
    if (!first) vendor_dnn_destroy(dnn, false);
    return status;
  }
  if (first) libraries->dnn_stream = stream;
  __atomic_store_n(&stream->dnn, dnn, __ATOMIC_RELEASE);
  return HELIO_OK;
}

helio_status gpu_stream_dnn(helio_stream *stream, vendor_dnn **dnn) {
  *dnn = __atomic_load_n(&stream->dnn, __ATOMIC_ACQUIRE);
  if (*dnn != NULL) return HELIO_OK;
  helio_status status = attach_in_turn(stream, attach_dnn);
  *dnn = __atomic_load_n(&stream->dnn, __ATOMIC_ACQUIRE);
  return status;
}

void gpu_stream_libraries_close(helio_stream *stream, bool lost) {
  gpu_libraries *libraries = stream->device->libraries;
  if (libraries == NULL) return;
  pthread_mutex_lock(&libraries->lock);
  if (stream->blas != NULL) libraries->blas_streams--;
  vendor_blas_destroy(stream->blas, lost);
  if (libraries->dnn_stream == stream) {
    if (!lost) (void)vendor_dnn_attach(stream->dnn, NULL);
    libraries->dnn_stream = NULL;
  } else {
    vendor_dnn_destroy(stream->dnn, lost);
  }
  pthread_mutex_unlock(&libraries->lock);
  stream->blas = NULL;
  stream->dnn = NULL;
}

void gpu_libraries_close(helio_backend_device *device, bool lost) {
  gpu_libraries *libraries = device->libraries;
  if (libraries == NULL) return;
  vendor_blas_destroy(libraries->blas, lost);
  vendor_dnn_destroy(libraries->dnn, lost);
  pthread_mutex_destroy(&libraries->lock);
  device->host->release(device->host, libraries);
  device->libraries = NULL;
}
