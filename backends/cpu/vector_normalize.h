/* SPDX-License-Identifier: Apache-2.0 */
/* Normalization: sums of squares and of products, in double, and the elementwise formulas around them. float32 and
 * float64; halves are widened by the caller. */
#ifndef CPU_VECTOR_NORMALIZE_H
#define CPU_VECTOR_NORMALIZE_H

/* name, element, vector of as many elements as there are doubles in a vector, vector of elements */
#define NORMALIZE_LIST(X)                                                                                              \
  X(f32, float, vector_f32_half, vector_f32)                                                                           \
  X(f64, double, vector_f64, vector_f64)

/* As a vector of doubles. */
#define WIDE(short_vector, address) __builtin_convertvector(*(const short_vector *)(address), vector_f64)

static const size_t doubles = sizeof(vector_f64) / sizeof(double);

static inline double lanes_sum(vector_f64 x) {
  double sum = 0;
  for (size_t lane = 0; lane < doubles; lane++) sum += x[lane];
  return sum;
}

#define SQUARES(name, element, few, vector)                                                                            \
  static double squares_row_##name(const element *x, size_t count, double mean) {                                      \
    vector_f64 s0 = {0}, s1 = {0};                                                                                     \
    size_t i = 0;                                                                                                      \
    for (; i + 2 * doubles <= count; i += 2 * doubles) {                                                               \
      vector_f64 d0 = WIDE(few, x + i) - mean, d1 = WIDE(few, x + i + doubles) - mean;                                 \
      s0 += d0 * d0;                                                                                                   \
      s1 += d1 * d1;                                                                                                   \
    }                                                                                                                  \
    double sum = lanes_sum(s0 + s1);                                                                                   \
    for (; i < count; i++) sum += ((double)x[i] - mean) * ((double)x[i] - mean);                                       \
    return sum;                                                                                                        \
  }                                                                                                                    \
  static void squares_columns_##name(double *totals, const double *mean, const element *x, size_t stride, size_t rows, \
                                     size_t columns) {                                                                 \
    size_t i = 0;                                                                                                      \
    for (; i + doubles <= columns; i += doubles) {                                                                     \
      vector_f64 sum = *(const vector_f64 *)(totals + i), center = *(const vector_f64 *)(mean + i);                    \
      for (size_t r = 0; r < rows; r++) {                                                                              \
        vector_f64 d = WIDE(few, x + r * stride + i) - center;                                                         \
        sum += d * d;                                                                                                  \
      }                                                                                                                \
      *(vector_f64 *)(totals + i) = sum;                                                                               \
    }                                                                                                                  \
    for (; i < columns; i++) {                                                                                         \
      for (size_t r = 0; r < rows; r++) {                                                                              \
        double d = (double)x[r * stride + i] - mean[i];                                                                \
        totals[i] += d * d;                                                                                            \
      }                                                                                                                \
    }                                                                                                                  \
  }
NORMALIZE_LIST(SQUARES)
#undef SQUARES

#define PRODUCTS(name, element, few, vector)                                                                           \
  static void product_columns_##name(double *products, double *sums, const double *mean, const element *dy,            \
                                     const element *x, size_t stride, size_t rows, size_t columns) {                   \
    size_t i = 0;                                                                                                      \
    for (; i + doubles <= columns; i += doubles) {                                                                     \
      vector_f64 product = *(const vector_f64 *)(products + i), sum = *(const vector_f64 *)(sums + i);                 \
      vector_f64 center = *(const vector_f64 *)(mean + i);                                                             \
      for (size_t at = i; at < i + rows * stride; at += stride) {                                                      \
        vector_f64 each = WIDE(few, dy + at);                                                                          \
        product += each * (WIDE(few, x + at) - center);                                                                \
        sum += each;                                                                                                   \
      }                                                                                                                \
      *(vector_f64 *)(products + i) = product;                                                                         \
      *(vector_f64 *)(sums + i) = sum;                                                                                 \
    }                                                                                                                  \
    for (; i < columns; i++) {                                                                                         \
      for (size_t at = i; at < i + rows * stride; at += stride) {                                                      \
        products[i] += (double)dy[at] * ((double)x[at] - mean[i]);                                                     \
        sums[i] += (double)dy[at];                                                                                     \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  static void layer_sums_##name(double totals[2], const element *dy, const element *x, const element *gamma,           \
                                double mean, size_t count) {                                                           \
    vector_f64 sum = {0}, product = {0};                                                                               \
    size_t i = 0;                                                                                                      \
    for (; i + doubles <= count; i += doubles) {                                                                       \
      vector_f64 each = WIDE(few, dy + i) * WIDE(few, gamma + i);                                                      \
      sum += each;                                                                                                     \
      product += each * (WIDE(few, x + i) - mean);                                                                     \
    }                                                                                                                  \
    totals[0] += lanes_sum(sum);                                                                                       \
    totals[1] += lanes_sum(product);                                                                                   \
    for (; i < count; i++) {                                                                                           \
      double each = (double)dy[i] * (double)gamma[i];                                                                  \
      totals[0] += each;                                                                                               \
      totals[1] += each * ((double)x[i] - mean);                                                                       \
    }                                                                                                                  \
  }                                                                                                                    \
  static void layer_columns_##name(double *products, double *sums, const element *dy, const element *x, double mean,   \
                                   double inverse, size_t count) {                                                     \
    size_t i = 0;                                                                                                      \
    for (; i + doubles <= count; i += doubles) {                                                                       \
      vector_f64 each = WIDE(few, dy + i);                                                                             \
      *(vector_f64 *)(products + i) += each * ((WIDE(few, x + i) - mean) * inverse);                                   \
      *(vector_f64 *)(sums + i) += each;                                                                               \
    }                                                                                                                  \
    for (; i < count; i++) {                                                                                           \
      products[i] += (double)dy[i] * (((double)x[i] - mean) * inverse);                                                \
      sums[i] += (double)dy[i];                                                                                        \
    }                                                                                                                  \
  }
NORMALIZE_LIST(PRODUCTS)
#undef PRODUCTS

/* The mean of a row is taken away in two parts, for a float32 does not hold it well enough. */
#define AFFINE(name, element, few, vector)                                                                             \
  static void affine_##name(element *y, const element *x, const element *mean, const element *scale,                   \
                            const element *shift, size_t count) {                                                      \
    const size_t width = sizeof(vector) / sizeof(element);                                                             \
    size_t i = 0;                                                                                                      \
    for (; i + width <= count; i += width) {                                                                           \
      vector centred = *(const vector *)(x + i) - *(const vector *)(mean + i);                                         \
      *(vector *)(y + i) = centred * *(const vector *)(scale + i) + *(const vector *)(shift + i);                      \
    }                                                                                                                  \
    for (; i < count; i++) y[i] = (x[i] - mean[i]) * scale[i] + shift[i];                                              \
  }                                                                                                                    \
  static void affine_gradient_##name(element *dx, const element *dy, const element *x,                                 \
                                     const element *const constants[4], size_t count) {                                \
    const size_t width = sizeof(vector) / sizeof(element);                                                             \
    const element *mean = constants[0], *on_dy = constants[1], *on_x = constants[2], *shift = constants[3];            \
    size_t i = 0;                                                                                                      \
    for (; i + width <= count; i += width) {                                                                           \
      vector centred = *(const vector *)(x + i) - *(const vector *)(mean + i);                                         \
      vector around = *(const vector *)(dy + i) - *(const vector *)(shift + i);                                        \
      *(vector *)(dx + i) = (around - centred * *(const vector *)(on_x + i)) * *(const vector *)(on_dy + i);           \
    }                                                                                                                  \
    for (; i < count; i++) dx[i] = (dy[i] - shift[i] - (x[i] - mean[i]) * on_x[i]) * on_dy[i];                         \
  }                                                                                                                    \
  static void layer_row_##name(element *y, const element *x, const element *gamma, const element *beta, double mean,   \
                               double inverse, size_t count) {                                                         \
    const size_t width = sizeof(vector) / sizeof(element);                                                             \
    const element high = (element)mean, low = (element)(mean - (double)high), scale = (element)inverse;                \
    size_t i = 0;                                                                                                      \
    for (; i + width <= count; i += width) {                                                                           \
      vector normal = (*(const vector *)(x + i) - high - low) * scale;                                                 \
      *(vector *)(y + i) = normal * *(const vector *)(gamma + i) + *(const vector *)(beta + i);                        \
    }                                                                                                                  \
    for (; i < count; i++) y[i] = (x[i] - high - low) * scale * gamma[i] + beta[i];                                    \
  }                                                                                                                    \
  static void layer_gradient_##name(element *dx, const element *dy, const element *x, const element *gamma,            \
                                    const double constants[4], size_t count) {                                         \
    const size_t width = sizeof(vector) / sizeof(element);                                                             \
    const element mean = (element)constants[0], on_dy = (element)constants[1], on_x = (element)constants[2],           \
                  shift = (element)constants[3];                                                                       \
    size_t i = 0;                                                                                                      \
    for (; i + width <= count; i += width) {                                                                           \
      vector each = *(const vector *)(dy + i) * *(const vector *)(gamma + i);                                          \
      *(vector *)(dx + i) = (each - shift - (*(const vector *)(x + i) - mean) * on_x) * on_dy;                         \
    }                                                                                                                  \
    for (; i < count; i++) dx[i] = (dy[i] * gamma[i] - shift - (x[i] - mean) * on_x) * on_dy;                          \
  }
NORMALIZE_LIST(AFFINE)
#undef AFFINE

static double squares_row(helio_type type, const void *x, size_t count, double mean) {
  return type == HELIO_FLOAT32 ? squares_row_f32(x, count, mean) : squares_row_f64(x, count, mean);
}

static void squares_columns(helio_type type, double *totals, const double *mean, const void *x, size_t stride,
                            size_t rows, size_t columns) {
  if (type == HELIO_FLOAT32) {
    squares_columns_f32(totals, mean, x, stride, rows, columns);
  } else {
    squares_columns_f64(totals, mean, x, stride, rows, columns);
  }
}

static void product_columns(helio_type type, double *products, double *sums, const double *mean, const void *dy,
                            const void *x, size_t stride, size_t rows, size_t columns) {
  if (type == HELIO_FLOAT32) {
    product_columns_f32(products, sums, mean, dy, x, stride, rows, columns);
  } else {
    product_columns_f64(products, sums, mean, dy, x, stride, rows, columns);
  }
}

static void affine(helio_type type, void *y, const void *x, const void *mean, const void *scale, const void *shift,
                   size_t count) {
  if (type == HELIO_FLOAT32) {
    affine_f32(y, x, mean, scale, shift, count);
  } else {
    affine_f64(y, x, mean, scale, shift, count);
  }
}

static void affine_gradient(helio_type type, void *dx, const void *dy, const void *x, const void *const constants[4],
                            size_t count) {
  if (type == HELIO_FLOAT32) {
    affine_gradient_f32(dx, dy, x, (const float *const[4]){constants[0], constants[1], constants[2], constants[3]},
                        count);
  } else {
    affine_gradient_f64(dx, dy, x, (const double *const[4]){constants[0], constants[1], constants[2], constants[3]},
                        count);
  }
}

static void layer_row(helio_type type, void *y, const void *x, const void *gamma, const void *beta, double mean,
                      double inverse, size_t count) {
  if (type == HELIO_FLOAT32) {
    layer_row_f32(y, x, gamma, beta, mean, inverse, count);
  } else {
    layer_row_f64(y, x, gamma, beta, mean, inverse, count);
  }
}

static void layer_sums(helio_type type, double totals[2], const void *dy, const void *x, const void *gamma, double mean,
                       size_t count) {
  if (type == HELIO_FLOAT32) {
    layer_sums_f32(totals, dy, x, gamma, mean, count);
  } else {
    layer_sums_f64(totals, dy, x, gamma, mean, count);
  }
}

static void layer_columns(helio_type type, double *products, double *sums, const void *dy, const void *x, double mean,
                          double inverse, size_t count) {
  if (type == HELIO_FLOAT32) {
    layer_columns_f32(products, sums, dy, x, mean, inverse, count);
  } else {
    layer_columns_f64(products, sums, dy, x, mean, inverse, count);
  }
}

static void layer_gradient(helio_type type, void *dx, const void *dy, const void *x, const void *gamma,
                           const double constants[4], size_t count) {
  if (type == HELIO_FLOAT32) {
    layer_gradient_f32(dx, dy, x, gamma, constants, count);
  } else {
    layer_gradient_f64(dx, dy, x, gamma, constants, count);
  }
}

#undef WIDE

#endif
