/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of channels added to other rows, with or without a product: what convolutions need besides matrix products. */
#ifndef CPU_VECTOR_CONV_H
#define CPU_VECTOR_CONV_H

#define CONV_LIST(X)                                                                                                   \
  X(f32, float, vector_f32)                                                                                            \
  X(f64, double, vector_f64)

/* Rows of y may overlap, so each is finished before the next is begun. */
#define ADD_ROWS(name, element, vector)                                                                                \
  static void add_rows_##name(element *y, size_t y_stride, const element *x, size_t x_stride, size_t rows,             \
                              size_t columns) {                                                                        \
    const size_t width = sizeof(vector) / sizeof(element);                                                             \
    for (size_t row = 0; row < rows; row++, y += y_stride, x += x_stride) {                                            \
      size_t i = 0;                                                                                                    \
      for (; i + width <= columns; i += width) *(vector *)(y + i) += *(const vector *)(x + i);                         \
      for (; i < columns; i++) y[i] += x[i];                                                                           \
    }                                                                                                                  \
  }
CONV_LIST(ADD_ROWS)
#undef ADD_ROWS

static void add_rows(helio_type type, void *y, size_t y_stride, const void *x, size_t x_stride, size_t rows,
                     size_t columns) {
  if (type == HELIO_FLOAT32) {
    add_rows_f32(y, y_stride, x, x_stride, rows, columns);
  } else {
    add_rows_f64(y, y_stride, x, x_stride, rows, columns);
  }
}

/* Columns first: what does not move from row to row stays in a register. The sum of these rows is made by itself before
 * it is added, which keeps the error of long sums small. */
#define MULTIPLY_ROWS(name, element, vector)                                                                           \
  static void multiply_rows_##name(const cpu_row_product *p) {                                                         \
    const size_t width = sizeof(vector) / sizeof(element), rows = p->rows;                                             \
    element *y = p->y;                                                                                                 \
    const element *a = p->a, *b = p->b;                                                                                \
    size_t i = 0;                                                                                                      \
    for (; i + width <= p->columns && p->y_stride == 0; i += width) {                                                  \
      vector sum = {0};                                                                                                \
      for (size_t row = 0; row < rows; row++)                                                                          \
        sum += *(const vector *)(a + row * p->a_stride + i) * *(const vector *)(b + row * p->b_stride + i);            \
      *(vector *)(y + i) += sum;                                                                                       \
    }                                                                                                                  \
    for (; i + width <= p->columns && p->b_stride == 0; i += width) {                                                  \
      const vector factor = *(const vector *)(b + i);                                                                  \
      for (size_t row = 0; row < rows; row++)                                                                          \
        *(vector *)(y + row * p->y_stride + i) += *(const vector *)(a + row * p->a_stride + i) * factor;               \
    }                                                                                                                  \
    for (size_t row = 0; row < rows; row++) {                                                                          \
      for (size_t j = i; j < p->columns; j++)                                                                          \
        y[row * p->y_stride + j] += a[row * p->a_stride + j] * b[row * p->b_stride + j];                               \
    }                                                                                                                  \
  }
CONV_LIST(MULTIPLY_ROWS)
#undef MULTIPLY_ROWS

static void multiply_rows(helio_type type, const cpu_row_product *p) {
  if (type == HELIO_FLOAT32) {
    multiply_rows_f32(p);
  } else {
    multiply_rows_f64(p);
  }
}

#endif
