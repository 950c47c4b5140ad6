/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel texts, as embed.sh puts them into each plugin. */
#ifndef GPU_TEXT_H
#define GPU_TEXT_H

typedef struct gpu_text {
  const char *name; /* "broadcast" is kernels/broadcast.cu */
  const char *text;
} gpu_text;

/* The last one has no name. */
extern const gpu_text gpu_texts[];

#endif
