/* SPDX-License-Identifier: Apache-2.0 */
/* Enough of both vendors' interfaces under one name to run kernels, for programs that are the same on both. Functions
 * that answer nothing end the process when the vendor's call fails. All work but launches goes to the device's own
 * stream. */
#ifndef GPU_H
#define GPU_H

#include "sim.h"

void gpu_open(sim_vendor vendor, int devices); /* and makes the first one current */
void gpu_close(void);
void gpu_select(int device);

void *gpu_allocate(size_t bytes);
void gpu_free(void *address);
void gpu_copy_in(void *to, const void *from, size_t bytes);
void gpu_copy_out(void *to, const void *from, size_t bytes);
void *gpu_copy_of(const void *from, size_t bytes); /* allocated */
int gpu_finish(void);

/* The vendor's status; the image (malloc) if it is 0. `architecture` NULL: that of the device in the default settings.
 */
int gpu_compile(const char *text, const char *architecture, char **image, char **log);
int gpu_load(const char *image, void **module);
void *gpu_module_of(const char *text); /* compiled and loaded; shows what the compiler said if it fails */
void gpu_unload(void *module);
int gpu_kernel(void *module, const char *name, void **kernel);

typedef struct gpu_grid {
  unsigned blocks[3], threads[3], shared;
} gpu_grid;
#define GPU_LINE(blocks, threads) (&(gpu_grid){{blocks, 1, 1}, {threads, 1, 1}, 0})

extern void *gpu_stream; /* that launches go to; NULL: the device's own */
void *gpu_stream_create(void);
void gpu_stream_delete(void *stream);

int gpu_launch(void *kernel, const gpu_grid *grid, void **arguments);
#define GPU_ARGUMENTS(...) ((void *[]){__VA_ARGS__})

/* Macros that make one text of both: see GPU.md's advice, one macro for what differs. */
extern const char gpu_prologue[];

#endif
