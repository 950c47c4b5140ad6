/* SPDX-License-Identifier: Apache-2.0 */
/* helio bench ops, what networks are made of: products of matrices, convolution and pooling of images, softmax, losses
 * and normalization. */
#include <stdio.h>

#include "bench_rows.h"

/* ---------------------------------------------------------------------------------------------------------------------
 * Products of matrices: counted for each product of two elements
 */

#define HOW(...) BENCH_ATTRIBUTES(helio_matmul_attributes, __VA_ARGS__)
#define PLAIN    HOW(.activation = 0)

static const bench_row products[] = {
    {"matmul", "", "ab-", .flops = 2, PLAIN, .product = {1, 128, 128, 128}},
    {"matmul", "", "ab-", .flops = 2, PLAIN, .product = {1, 512, 512, 512}},
    {"matmul", "", "ab-", .flops = 2, PLAIN, .product = {1, 1024, 1024, 1024}, .long_only = true},
    {"matmul", "left transposed ", "ab-", .flops = 2, HOW(.transpose_a = 1), .product = {1, 512, 512, 512},
     .long_only = true},
    {"matmul", "right transposed ", "ab-", .flops = 2, HOW(.transpose_b = 1), .product = {1, 512, 512, 512},
     .long_only = true},
    {"matmul", "bias and relu ", "abr", .flops = 2, HOW(.activation = HELIO_RELU), .product = {1, 512, 512, 512}},
    {"matmul", "one row ", "ab-", .flops = 2, PLAIN, .product = {1, 1, 1024, 1024}, .long_only = true},
    {"matmul", "batch of 32 ", "ab-", .flops = 2, PLAIN, .product = {32, 64, 64, 64}, .long_only = true},
    {0},
};

static helio_shape product_shape(const bench_row *row, int size, char letter) {
  const bench_product *of = &row->product;
  (void)size;
  if (letter == 'r') return HELIO_SHAPE(of->columns);
  int rows = letter == 'a' ? of->rows : of->inner, columns = letter == 'a' ? of->inner : of->columns;
  return of->batch == 1 ? HELIO_SHAPE(rows, columns) : HELIO_SHAPE(of->batch, rows, columns);
}

static void describe_product(const bench_row *row, int size, bench_case *one) {
  const bench_product *of = &row->product;
  (void)size;
  snprintf(one->label, sizeof one->label, "%s%dx%dx%d", row->variant, of->rows, of->inner, of->columns);
  one->elements = (double)of->batch * of->rows * of->inner * of->columns;
}

const bench_family bench_products = {products, {1}, 1, product_shape, describe_product};

/* ---------------------------------------------------------------------------------------------------------------------
 * Images: counted for each element of each window and each filter that looks at it
 */

#define DENSE                                                                                                          \
  { .extent = 28, .channels = 32, .window = 3, .stride = 1, .filters = 64, .groups = 1 }
#define DENSE_RELU                                                                                                     \
  { .extent = 28, .channels = 32, .window = 3, .stride = 1, .filters = 64, .groups = 1, .activation = HELIO_RELU }
#define DENSE_HALF                                                                                                     \
  { .extent = 28, .channels = 32, .window = 3, .stride = 2, .filters = 64, .groups = 1 }
#define POINTWISE                                                                                                      \
  { .extent = 28, .channels = 64, .window = 1, .stride = 1, .filters = 64, .groups = 1 }
#define DEPTHWISE                                                                                                      \
  { .extent = 28, .channels = 64, .window = 3, .stride = 1, .filters = 64, .groups = 64 }
#define POOL                                                                                                           \
  { .extent = 28, .channels = 64, .window = 2, .stride = 2 }

static const bench_row images[] = {
    {"conv2d", "3x3 ", "xk-", .flops = 2, .image = DENSE},
    {"conv2d", "3x3 bias relu ", "xkf", .flops = 2, .image = DENSE_RELU},
    {"conv2d", "3x3 stride 2 ", "xk-", .flops = 2, .image = DENSE_HALF},
    {"conv2d", "1x1 ", "xk-", .flops = 2, .image = POINTWISE},
    {"conv2d", "depthwise 3x3 ", "xk-", .flops = 2, .image = DEPTHWISE},
    {"conv2d_grad_input", "3x3 ", "yk", .flops = 2, .result = 'x', .image = DENSE},
    {"conv2d_grad_input", "depthwise 3x3 ", "yk", .flops = 2, .result = 'x', .image = DEPTHWISE},
    {"conv2d_grad_kernel", "3x3 ", "xy", .flops = 2, .result = 'k', .image = DENSE},
    {"conv2d_grad_kernel", "depthwise 3x3 ", "xy", .flops = 2, .result = 'k', .image = DEPTHWISE},
    {"max_pool", "2x2 ", "x", .flops = 1, .image = POOL},
    {"max_pool_grad", "2x2 ", "yw", .flops = 0.25, .result = 'x', .image = POOL},
    {"average_pool", "2x2 ", "x", .flops = 1.25, .image = POOL},
    {"average_pool_grad", "2x2 ", "y", .flops = 1.25, .result = 'x', .image = POOL},
    {0},
};

static int places(const bench_image *image) {
  return (image->extent + image->stride - 1) / image->stride;
}

static helio_shape image_shape(const bench_row *row, int size, char letter) {
  const bench_image *image = &row->image;
  switch (letter) {
  case 'x':
    return HELIO_SHAPE(size, image->extent, image->extent, image->channels);
  case 'k':
    return HELIO_SHAPE(image->window, image->window, image->channels / image->groups, image->filters);
  case 'f':
    return HELIO_SHAPE(image->filters);
  default: /* what convolution or pooling gives */
    return HELIO_SHAPE(size, places(image), places(image), image->filters ? image->filters : image->channels);
  }
}

/* As many places as strides fit in, the odd element of padding behind. */
static void pad(const bench_image *image, uint32_t padding[4]) {
  int all = (places(image) - 1) * image->stride + image->window - image->extent;
  for (int i = 0; i < 4 && all > 0; i++) padding[i] = (uint32_t)(i % 2 ? all - all / 2 : all / 2);
}

static void describe_image(const bench_row *row, int size, bench_case *one) {
  const bench_image *image = &row->image;
  uint32_t stride = (uint32_t)image->stride, window = (uint32_t)image->window;
  double windows = (double)size * places(image) * places(image) * window * window;
  int length = snprintf(one->label, sizeof one->label, "%s%dx%dx%dx%d", row->variant, size, image->extent,
                        image->extent, image->channels);
  if (!image->filters) {
    one->elements = windows * image->channels;
    one->attributes.pool =
        (helio_pool_attributes){sizeof one->attributes.pool, {window, window}, {stride, stride}, {0}};
    pad(image, one->attributes.pool.padding);
    return;
  }
  snprintf(one->label + length, sizeof one->label - (size_t)length, " to %d", image->filters);
  one->elements = windows * image->channels / image->groups * image->filters;
  one->attributes.conv2d = (helio_conv2d_attributes){.size = sizeof one->attributes.conv2d,
                                                     .stride = {stride, stride},
                                                     .dilation = {1, 1},
                                                     .groups = (uint32_t)image->groups,
                                                     .activation = image->activation};
  pad(image, one->attributes.conv2d.padding);
}

const bench_family bench_images = {images, {1, 8, 32}, 1, image_shape, describe_image};

/* ---------------------------------------------------------------------------------------------------------------------
 * Layers of matrices: counted for each element
 */

#define EPSILON BENCH_SCALARS(BENCH_REAL(1e-3))

static const bench_row layers[] = {
    {"softmax", "", "a", .flops = 4, .one = helio_softmax},
    {"softmax_grad", "", "ap", .flops = 4},
    {"log_softmax", "", "a", .flops = 4, .one = helio_log_softmax},
    {"log_softmax_grad", "", "ab", .flops = 4},
    {"sparse_cross_entropy", "", "al", .flops = 4},
    {"cross_entropy", "", "ap", .flops = 7},
    {"moments", "", "a", .flops = 4},
    {"normalize", "", "arrrr", .flops = 4, EPSILON},
    {"normalize_grad_sums", "", "abrr", .flops = 5, EPSILON},
    {"normalize_grad_input", "", "abrrrrr", .flops = 6, BENCH_SCALARS(BENCH_REAL(1e-3), BENCH_REAL(1.0 / 64))},
    {"layer_norm", "", "arr", .flops = 8, EPSILON},
    {"layer_norm_grad", "", "abrnn", .flops = 13},
    {0},
};

const bench_family bench_layers = {layers, {1, 64, 4096}, 2, bench_matrix_shape, bench_matrix_describe};
