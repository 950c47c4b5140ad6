/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of rows of bytes between a side that is dense and one that is strided; the dense side is counted through and
 * cut into parts. */
#include "block.h"

#include <string.h>

void cpu_block_make(cpu_block *b, uint32_t rank, const int64_t *extent, const int64_t *begin, const int64_t *whole,
                    size_t element) {
  size_t step = element;
  bool dense = true; /* so far every axis was taken whole, so the next one joins the run */
  memset(b, 0, sizeof *b);
  b->row = b->bytes = element;
  for (uint32_t axis = rank; axis-- > 0;) {
    size_t taken = (size_t)extent[axis];
    b->offset += (size_t)begin[axis] * step;
    b->bytes *= taken;
    if (dense) {
      b->row *= taken;
    } else if (taken != 1) {
      b->extent[b->axes] = taken;
      b->stride[b->axes++] = step;
    }
    dense = dense && extent[axis] == whole[axis];
    step *= (size_t)whole[axis];
  }
}

static size_t block_row_offset(const cpu_block *b, size_t row) {
  size_t offset = b->offset;
  for (uint32_t axis = 0; axis < b->axes; axis++) {
    offset += row % b->extent[axis] * b->stride[axis];
    row /= b->extent[axis];
  }
  return offset;
}

/* A call of memcpy for each single element would cost more than the element. */
static inline void copy_row(unsigned char *target, const unsigned char *source, size_t bytes) {
  switch (bytes) {
  case 1:
    *target = *source;
    break;
  case 2:
    memcpy(target, source, 2);
    break;
  case 4:
    memcpy(target, source, 4);
    break;
  case 8:
    memcpy(target, source, 8);
    break;
  default:
    memcpy(target, source, bytes);
    break;
  }
}

void cpu_block_copy(const cpu_block *b, unsigned char *target, const unsigned char *source, bool gather, unsigned part,
                    unsigned parts) {
  cpu_range range = cpu_part_range(b->bytes, 64, part, parts);
  size_t row = range.begin / b->row, column = range.begin % b->row;
  size_t inner = b->axes > 0 ? b->extent[0] : 1, step = b->axes > 0 ? b->stride[0] : 0;
  size_t at = range.begin;
  while (at < range.end) {
    size_t strided = block_row_offset(b, row);
    for (size_t i = row % inner; i < inner && at < range.end; i++, row++, strided += step, column = 0) {
      size_t bytes = b->row - column < range.end - at ? b->row - column : range.end - at;
      size_t to = gather ? at : strided + column, from = gather ? strided + column : at;
      copy_row(target + to, source + from, bytes);
      at += bytes;
    }
  }
}
