/* SPDX-License-Identifier: Apache-2.0 */
/* Opens libraries of the vendors and looks up their functions. Once open they stay: they keep threads, and functions
 * that run when the process ends. */
#ifndef GPU_LIBRARY_H
#define GPU_LIBRARY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* A function of a library, and where its pointer lies in a table of the backend's. */
typedef struct gpu_symbol {
  const char *name;
  size_t offset;
} gpu_symbol;

/* For the lists of abi/: the pointers of a table, and its symbols. The second wants GPU_TABLE, the table's type. */
#define GPU_POINTER(result, name, arguments) result(*name) arguments;
#define GPU_SYMBOL(result, name, arguments)  {#name, offsetof(GPU_TABLE, name)},

/* Where a vendor's libraries are if the loader does not find them: what both its backend and its collective look at. A
 * folder may begin with a variable of the environment. */
#define GPU_CUDA_FOLDERS "$CUDA_PATH/lib64:$CUDA_HOME/lib64:$CONDA_PREFIX/lib:/usr/local/cuda/lib64"
#define GPU_CUDA_DRIVERS "libcuda.so.1"

/* The number is that of HIP. Ones that are not there yet cost nothing, and functions keep their meaning. */
#define GPU_HIP_FOLDERS "$ROCM_PATH/lib:$CONDA_PREFIX/lib:/opt/rocm/lib"
#define GPU_HIP_DRIVERS                                                                                                \
  "libamdhip64.so.9", "libamdhip64.so.8", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"

/* Where libraries are looked for besides where the loader looks: folders, separated by ':'. */
typedef struct gpu_places {
  char named[PATH_MAX]; /* by the user, who wants them to come first */
  char usual[PATH_MAX]; /* those of an installation that has not told the loader; "" if some are named */
} gpu_places;

/* `named` may be NULL. Of the usual folders those are left out whose variable is not set. */
void gpu_library_places(const char *named, const char *usual, gpu_places *places);

/* Opens the first of `names` (the last one NULL) that is in a named folder; else the first that the loader finds or
 * that is in a usual folder, so that a newer one there is not missed for an older one of the loader's. `places` NULL:
 * only the loader looks. NULL if there is none; then `reason`, which is "" before or what was said of other names, has
 * the loader's word on the first file that is there and cannot be opened, else that on the first name that was tried.
 */
void *gpu_library_open(const char *const *names, const gpu_places *places, char *reason, size_t size);

/* The first of `names` that the process has open already, wherever it was found; NULL: none is. */
void *gpu_library_opened(const char *const *names);

/* Some libraries open others, parts of themselves, by plain names while they work. The loader does not find those if it
 * did not find the library either, unless they are open already. `parts` ends with NULL.
 *
 * open_parts  opens all that lie beside the library, or else that the loader finds: false if there is one that it
 *             cannot open, with the reason as above. For those without which the library ends the process.
 * open_beside opens what lies beside it, and nothing where the library looks there itself: they may be large. */
bool gpu_library_open_parts(void *library, const char *const *parts, char *reason, size_t size);
void gpu_library_open_beside(void *library, const char *const *parts);

/* Fills `table`. The name of the first symbol that the library lacks, NULL if it has all of them. */
const char *gpu_library_bind(void *library, const gpu_symbol *symbols, size_t count, void *table);

/* Some names of AMD's libraries are the same for all versions of ROCm. One of another version brings its own runtime
 * along, which knows nothing of our streams and memory. Does `library` call the same function `name` as we do, or none?
 * If not, why it cannot be used. */
bool gpu_library_shares(void *library, const char *name, const void *ours, char *reason, size_t size);

/* The path of the file that a function came from: which of several installed libraries it is. */
void gpu_library_path(void *library, char *path, size_t size);

#endif
