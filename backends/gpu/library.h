/* SPDX-License-Identifier: Apache-2.0 */
/* Opens libraries of the vendors and looks up their functions. Once open they stay: they keep threads, and functions
 * that run when the process ends. */
#ifndef GPU_LIBRARY_H
#define GPU_LIBRARY_H

#include <stddef.h>

/* A function of a library, and where its pointer lies in a table of the backend's. */
typedef struct gpu_symbol {
  const char *name;
  size_t offset;
} gpu_symbol;

/* For the lists of abi/: the pointers of a table, and its symbols. The second wants GPU_TABLE, the table's type. */
#define GPU_POINTER(result, name, arguments) result(*name) arguments;
#define GPU_SYMBOL(result, name, arguments)  {#name, offsetof(GPU_TABLE, name)},

/* Opens the first of `names` (the last one NULL) that the loader finds, else that is in one of `folders`, which are
 * separated by ':'; NULL if there is none, with the loader's word on the first name in `reason`. */
void *gpu_library_open(const char *const *names, const char *folders, char *reason, size_t size);

/* Fills `table`. The name of the first symbol that the library lacks, NULL if it has all of them. */
const char *gpu_library_bind(void *library, const gpu_symbol *symbols, size_t count, void *table);

/* The path of the file that a function came from: which of several installed libraries it is. */
void gpu_library_path(void *library, char *path, size_t size);

#endif
