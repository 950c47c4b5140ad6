/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS with cuDNN and rocBLAS with MIOpen under one name, each used as a backend would use it, with its own values
 * and orders of arguments. Functions end the process when a call fails. Tensors are of float32. */
#ifndef LIBRARY_FACES_H
#define LIBRARY_FACES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct product {
  int m, n, k, batch;
  bool transpose_a, transpose_b; /* of column-major matrices without gaps */
  float alpha, beta;
} product;

/* Where elements lie: one after the other, or with rows and images that are followed by something else. */
typedef enum memory_layout { CHANNELS_FIRST, CHANNELS_LAST, WITH_GAPS, LAYOUTS } memory_layout;

typedef struct convolution {
  int x[4], w[4], y[4]; /* sizes; w has the channels of one group */
  int groups, pad[2], stride[2], dilation[2];
  bool flipped;
  memory_layout layout;
} convolution;

typedef enum pass { FORWARD, BACKWARD_DATA, BACKWARD_FILTER, DIRECTIONS } pass;

/* One of the ways that a library lists for a problem. */
typedef struct way {
  bool exact, deterministic;
  float tolerance;
} way;

typedef enum pooling_mode { POOL_MAX, POOL_AVERAGE, POOL_AVERAGE_WITH_PADDING } pooling_mode;

typedef struct pooling {
  pooling_mode mode;
  int x[4], y[4], window[2], pad[2], stride[2];
  memory_layout layout;
} pooling;

typedef struct softmax {
  bool log, by_channel;
  int x[4];
} softmax;

typedef struct library {
  const char *name;
  void (*open)(void); /* on the current device */
  void (*close)(void);
  void (*multiply)(const product *product, void *a, void *b, void *c);
  void (*size)(convolution *convolution); /* sets y */
  int (*ways)(const convolution *convolution, pass direction, way *ways, int most);
  void (*convolve)(const convolution *convolution, pass direction, int way, void *x, void *w, void *y);
  void (*sum)(const convolution *convolution, void *dy, void *db);
  void (*pool)(pooling *pooling, void *x, void *y, void *dy, void *dx); /* forward, then backward; y is set in `size` */
  void (*size_pool)(pooling *pooling);
  void (*softmax)(const softmax *softmax, void *x, void *y, void *dy, void *dx);
} library;

extern const library cuda_library, hip_library;

/* Strides of elements for a layout, and the elements from the first to behind the last. */
void strides_of(const int dims[4], memory_layout layout, int strides[4]);
size_t extent_of(const int dims[4], memory_layout layout);

enum { MOST_WAYS = 16 };

#endif
