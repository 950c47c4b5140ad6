/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of elements that lie dense on one side and strided on the other, and their copies. */
#ifndef CPU_BLOCK_H
#define CPU_BLOCK_H

#include "cpu.h"

/* Axes are counted from the innermost. */
typedef struct cpu_block {
  size_t row;                    /* bytes of the innermost run, contiguous on both sides */
  uint32_t axes;                 /* outside it */
  size_t extent[HELIO_MAX_RANK]; /* rows along each axis */
  size_t stride[HELIO_MAX_RANK]; /* bytes of the strided side */
  size_t offset;                 /* where the block begins on the strided side */
  size_t bytes;                  /* of the dense side */
} cpu_block;

/* Joins the axes of a box of `extent` at `begin` within a whole of `whole`. */
void cpu_block_make(cpu_block *block, uint32_t rank, const int64_t *extent, const int64_t *begin, const int64_t *whole,
                    size_t element);

/* Copies one part of the dense side's bytes, from it (`gather` false) or to it. */
void cpu_block_copy(const cpu_block *block, unsigned char *target, const unsigned char *source, bool gather,
                    unsigned part, unsigned parts);

#endif
