/* SPDX-License-Identifier: Apache-2.0 */
/* What the convolutions share: their geometry, and tiles of the matrix of columns. That matrix has a row for each
 * position of the output and a column for each element of the kernel (kernel row, kernel column, channel of the group);
 * times the kernel it is the output. It is never made as a whole: each part of the team makes a tile of it at a time.
 */
#ifndef CPU_CONV_H
#define CPU_CONV_H

#include "cpu.h"

#define CPU_CONV_TYPES                                                                                                 \
  (HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64) | HELIO_TYPE_BIT(HELIO_FLOAT16) |                     \
   HELIO_TYPE_BIT(HELIO_BFLOAT16))

typedef struct cpu_conv {
  helio_type type, compute; /* of the arguments; of the arithmetic */
  size_t stored, element;   /* bytes of an element of the arguments; of the arithmetic */
  bool half;                /* the two differ */
  bool blas;
  bool pointwise;                             /* the matrix of columns is x itself */
  bool depthwise;                             /* every channel of x is a group of its own, and there are several */
  size_t images, height, width, channels;     /* of x */
  size_t out_height, out_width, out_channels; /* of y */
  size_t kernel[2], stride[2], dilation[2];   /* of height and width */
  size_t before[2];                           /* the padding above and to the left */
  size_t groups, group_in, group_out;         /* channels of one group */
  size_t taps;                                /* places of the kernel: its height × width */
  size_t positions;                           /* of the output: images × height × width */
  size_t tile_rows, tile_taps;                /* positions and taps of the largest tile */
  size_t gathered_bytes, tile_bytes,
      rows_bytes; /* of a tile as stored (halves), of a tile, of its rows of y (halves) */
} cpu_conv;

/* Checks that x, kernel and y fit each other and the attributes, and fills in `conv`. */
helio_status cpu_conv_describe(helio_backend_device *device, const helio_call *call, const helio_argument *x,
                               const helio_argument *kernel, const helio_argument *y,
                               const helio_conv2d_attributes *attributes, cpu_conv *conv);

/* Into how many parts to cut the work, of which there are `units` that cannot be cut. */
unsigned cpu_conv_parts(const helio_backend_device *device, const cpu_conv *conv, size_t units);

size_t cpu_conv_padded(size_t bytes);

/* The workspace: `parts` pieces of `each` bytes behind `shared` bytes. HELIO_NOT_SUPPORTED if no size_t holds that. */
helio_status cpu_conv_workspace(helio_backend_device *device, unsigned parts, size_t each, size_t shared,
                                size_t *workspace);

/* A matrix in memory, rows `stride` elements apart. */
typedef struct cpu_matrix {
  const unsigned char *data;
  size_t stride;
} cpu_matrix;

/* A tile of the matrix of columns: positions, taps, and one group. */
typedef struct cpu_tile {
  cpu_range positions, taps;
  size_t group;
} cpu_tile;

/* The tile of x, in the type of the arithmetic: x itself, or made in `scratch`, which is gathered_bytes + tile_bytes.
 */
cpu_matrix cpu_conv_columns(const helio_plan *plan, const cpu_conv *conv, const cpu_tile *tile, const unsigned char *x,
                            unsigned char *scratch);

/* Adds a tile to the places of x that it was, or would have been, taken from. All positions are of one image, and x is
 * that image, in the type of the arithmetic. */
void cpu_conv_scatter(const helio_plan *plan, const cpu_conv *conv, const cpu_tile *tile, unsigned char *x,
                      const unsigned char *columns);

/* `count` elements in the type of the arithmetic: the given ones, or made in `scratch`. */
const unsigned char *cpu_conv_widen(const helio_plan *plan, const cpu_conv *conv, const unsigned char *given,
                                    size_t count, unsigned char *scratch);

/* c = a × b or c += a × b on the calling thread, also where there is nothing to multiply. */
void cpu_conv_multiply(const helio_plan *plan, const cpu_conv *conv, const cpu_product *product);

/* --- conv_depthwise.c: every channel by itself, without a matrix --- */

/* Bytes of the longest row, of x or y, in the type of the arithmetic. `scratch` below is three such rows. */
size_t cpu_conv_depthwise_row_bytes(const cpu_conv *conv);

/* One row of y, in the type of the arithmetic. `y` has room for it and may be the third row of `scratch`; x is as
 * given, the kernel is widened. */
void cpu_conv_depthwise_row(const helio_plan *plan, const cpu_conv *conv, size_t row, unsigned char *y,
                            const unsigned char *x, const unsigned char *kernel, unsigned char *scratch);

/* One row of dx, as it is stored, of dy as given and the widened kernel. */
void cpu_conv_depthwise_input_row(const helio_plan *plan, const cpu_conv *conv, size_t row, unsigned char *dx,
                                  const unsigned char *dy, const unsigned char *kernel, unsigned char *scratch);

/* Adds what one row of dy, with the whole of x, gives to the kernel's gradient. */
void cpu_conv_depthwise_kernel_row(const helio_plan *plan, const cpu_conv *conv, size_t row, unsigned char *gradient,
                                   const unsigned char *x, const unsigned char *dy, unsigned char *scratch);

#endif
