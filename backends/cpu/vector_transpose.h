/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes of planes. Squares of 16-byte vectors are turned in registers: interleaving the first half of the rows
 * with the second, as often as it takes, leaves the columns. Tiles of squares, a cache line wide and high, are put
 * together on the stack, so that every line of y is written once, whole: with strides that are powers of two the lines
 * would push each other out of the cache. At the edges there are squares, and elements that move one by one. */
#ifndef CPU_VECTOR_TRANSPOSE_H
#define CPU_VECTOR_TRANSPOSE_H

typedef uint8_t square_u8 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t square_u16 __attribute__((vector_size(16), aligned(2), may_alias));
typedef uint32_t square_u32 __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t square_u64 __attribute__((vector_size(16), aligned(8), may_alias));

#define LOW_u8   0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_u8  8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_u16  0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_u16 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_u32  0, 4, 1, 5
#define HIGH_u32 2, 6, 3, 7
#define LOW_u64  0, 2
#define HIGH_u64 1, 3

/* name, element */
#define TRANSPOSE_LIST(X)                                                                                              \
  X(u8, uint8_t)                                                                                                       \
  X(u16, uint16_t)                                                                                                     \
  X(u32, uint32_t)                                                                                                     \
  X(u64, uint64_t)

#define TRANSPOSE_FUNCTION(name, element)                                                                              \
  static inline void turn_##name(element *y, size_t y_stride, const element *x, size_t x_stride) {                     \
    enum { SIDE = 16 / sizeof(element), TURNS = SIDE == 16 ? 4 : SIDE == 8 ? 3 : SIDE / 2 };                           \
    square_##name from[SIDE], to[SIDE];                                                                                \
    UNROLLED                                                                                                           \
    for (size_t i = 0; i < SIDE; i++) from[i] = *(const square_##name *)(x + i * x_stride);                            \
    UNROLLED                                                                                                           \
    for (size_t turn = 0; turn < TURNS; turn++) {                                                                      \
      UNROLLED                                                                                                         \
      for (size_t i = 0; i < SIDE / 2; i++) {                                                                          \
        to[2 * i] = __builtin_shufflevector(from[i], from[i + SIDE / 2], LOW_##name);                                  \
        to[2 * i + 1] = __builtin_shufflevector(from[i], from[i + SIDE / 2], HIGH_##name);                             \
      }                                                                                                                \
      UNROLLED                                                                                                         \
      for (size_t i = 0; i < SIDE; i++) from[i] = to[i];                                                               \
    }                                                                                                                  \
    UNROLLED                                                                                                           \
    for (size_t i = 0; i < SIDE; i++) *(square_##name *)(y + i * y_stride) = from[i];                                  \
  }                                                                                                                    \
  static void turn_tile_##name(element *y, size_t y_stride, const element *x, size_t x_stride) {                       \
    enum { SIDE = 16 / sizeof(element), LINE = 64 / sizeof(element) };                                                 \
    _Alignas(64) element tile[LINE * LINE];                                                                            \
    for (size_t j = 0; j < LINE; j += SIDE) {                                                                          \
      for (size_t i = 0; i < LINE; i += SIDE) turn_##name(tile + i * LINE + j, LINE, x + j * x_stride + i, x_stride);  \
    }                                                                                                                  \
    for (size_t i = 0; i < LINE; i++) memcpy(y + i * y_stride, tile + i * LINE, 64);                                   \
  }                                                                                                                    \
  static void turn_rest_##name(element *y, size_t y_stride, const element *x, size_t x_stride, size_t rows,            \
                               size_t columns) {                                                                       \
    const size_t side = 16 / sizeof(element);                                                                          \
    size_t whole_rows = columns < side ? 0 : rows / side * side, whole_columns = columns / side * side;                \
    for (size_t j = 0; j < whole_columns; j += side) {                                                                 \
      for (size_t i = 0; i < whole_rows; i += side)                                                                    \
        turn_##name(y + i * y_stride + j, y_stride, x + j * x_stride + i, x_stride);                                   \
    }                                                                                                                  \
    for (size_t i = 0; i < rows; i++) {                                                                                \
      for (size_t j = i < whole_rows ? whole_columns : 0; j < columns; j++) y[i * y_stride + j] = x[j * x_stride + i]; \
    }                                                                                                                  \
  }                                                                                                                    \
  static void transpose_##name(void *target, size_t y_stride, const void *source, size_t x_stride, size_t rows,        \
                               size_t columns) {                                                                       \
    const size_t line = 64 / sizeof(element);                                                                          \
    element *y = target;                                                                                               \
    const element *x = source;                                                                                         \
    size_t whole_rows = columns < line ? 0 : rows / line * line, whole_columns = columns / line * line;                \
    for (size_t j = 0; j < whole_columns; j += line) {                                                                 \
      for (size_t i = 0; i < whole_rows; i += line)                                                                    \
        turn_tile_##name(y + i * y_stride + j, y_stride, x + j * x_stride + i, x_stride);                              \
    }                                                                                                                  \
    turn_rest_##name(y + whole_columns, y_stride, x + whole_columns * x_stride, x_stride, whole_rows,                  \
                     columns - whole_columns);                                                                         \
    turn_rest_##name(y + whole_rows * y_stride, y_stride, x + whole_rows, x_stride, rows - whole_rows, columns);       \
  }
TRANSPOSE_LIST(TRANSPOSE_FUNCTION)
#undef TRANSPOSE_FUNCTION

static void transpose(size_t element, void *y, size_t y_stride, const void *x, size_t x_stride, size_t rows,
                      size_t columns) {
  switch (element) {
  case 1:
    transpose_u8(y, y_stride, x, x_stride, rows, columns);
    break;
  case 2:
    transpose_u16(y, y_stride, x, x_stride, rows, columns);
    break;
  case 4:
    transpose_u32(y, y_stride, x, x_stride, rows, columns);
    break;
  default:
    transpose_u64(y, y_stride, x, x_stride, rows, columns);
    break;
  }
}

#endif
