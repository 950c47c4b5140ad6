/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix product of our own, blocked for the first cache: panels of b, two vectors wide, are packed on the stack, and
 * tiles of six rows run along them, which keep both multipliers busy. The sum of an element runs along k from the
 * front, wherever it stands: equal rows of a have equal results to the bit. BLAS is faster where k and n are large;
 * this one always works, also in integers. */
#ifndef CPU_VECTOR_PRODUCT_H
#define CPU_VECTOR_PRODUCT_H

#define TILE_ROWS   6
#define PANEL_BYTES (2 * VECTOR_BYTES)    /* of one row of the panel */
#define PANEL_ROWS  (16384 / PANEL_BYTES) /* so that the first cache has room for rows of a, too */

/* A tile of the result that lies in a dense buffer: c += a × panel. `a` is the tile's first element. */
typedef void tile_function(void *tile, const void *a, size_t a_row, size_t a_column, const void *panel, size_t rows,
                           size_t depth);

static inline vector_f32 multiply_add_f32(float a, vector_f32 b, vector_f32 c) {
#if defined(__AVX512F__)
  return (vector_f32)_mm512_fmadd_ps(_mm512_set1_ps(a), (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (vector_f32)_mm256_fmadd_ps(_mm256_set1_ps(a), (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

static inline vector_f64 multiply_add_f64(double a, vector_f64 b, vector_f64 c) {
#if defined(__AVX512F__)
  return (vector_f64)_mm512_fmadd_pd(_mm512_set1_pd(a), (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
  return (vector_f64)_mm256_fmadd_pd(_mm256_set1_pd(a), (__m256d)b, (__m256d)c);
#else
  return a * b + c;
#endif
}

static inline vector_u32 multiply_add_i32(uint32_t a, vector_u32 b, vector_u32 c) {
  return a * b + c;
}
static inline vector_u64 multiply_add_i64(uint64_t a, vector_u64 b, vector_u64 c) {
  return a * b + c;
}

#define TILE_LIST(X)                                                                                                   \
  X(f32, float, vector_f32)                                                                                            \
  X(f64, double, vector_f64)                                                                                           \
  X(i32, uint32_t, vector_u32)                                                                                         \
  X(i64, uint64_t, vector_u64)

/* A tile with fewer rows than six computes its last row again for the others. */
#define TILE_FUNCTION(name, element, vector)                                                                           \
  static void tile_##name(void *tile, const void *source, size_t a_row, size_t a_column, const void *packed,           \
                          size_t rows, size_t depth) {                                                                 \
    const element *a0 = source;                                                                                        \
    const element *a1 = a0 + (rows > 1 ? 1 : rows - 1) * a_row;                                                        \
    const element *a2 = a0 + (rows > 2 ? 2 : rows - 1) * a_row;                                                        \
    const element *a3 = a0 + (rows > 3 ? 3 : rows - 1) * a_row;                                                        \
    const element *a4 = a0 + (rows > 4 ? 4 : rows - 1) * a_row;                                                        \
    const element *a5 = a0 + (rows > 5 ? 5 : rows - 1) * a_row;                                                        \
    const vector *panel = packed;                                                                                      \
    vector *c = tile;                                                                                                  \
    vector c00 = c[0], c01 = c[1], c10 = c[2], c11 = c[3], c20 = c[4], c21 = c[5];                                     \
    vector c30 = c[6], c31 = c[7], c40 = c[8], c41 = c[9], c50 = c[10], c51 = c[11];                                   \
    for (size_t k = 0; k < depth; k++) {                                                                               \
      const vector b0 = panel[2 * k], b1 = panel[2 * k + 1];                                                           \
      const size_t at = k * a_column;                                                                                  \
      c00 = multiply_add_##name(a0[at], b0, c00), c01 = multiply_add_##name(a0[at], b1, c01);                          \
      c10 = multiply_add_##name(a1[at], b0, c10), c11 = multiply_add_##name(a1[at], b1, c11);                          \
      c20 = multiply_add_##name(a2[at], b0, c20), c21 = multiply_add_##name(a2[at], b1, c21);                          \
      c30 = multiply_add_##name(a3[at], b0, c30), c31 = multiply_add_##name(a3[at], b1, c31);                          \
      c40 = multiply_add_##name(a4[at], b0, c40), c41 = multiply_add_##name(a4[at], b1, c41);                          \
      c50 = multiply_add_##name(a5[at], b0, c50), c51 = multiply_add_##name(a5[at], b1, c51);                          \
    }                                                                                                                  \
    c[0] = c00, c[1] = c01, c[2] = c10, c[3] = c11, c[4] = c20, c[5] = c21;                                            \
    c[6] = c30, c[7] = c31, c[8] = c40, c[9] = c41, c[10] = c50, c[11] = c51;                                          \
  }
TILE_LIST(TILE_FUNCTION)
#undef TILE_FUNCTION

/* Packs `depth` × `width` elements of b; what the panel is wider is zeros, whose results are not stored. */
static void pack_panel(unsigned char *panel, const unsigned char *b, size_t row_stride, size_t column_stride,
                       size_t depth, size_t width, size_t element) {
  for (size_t k = 0; k < depth; k++, panel += PANEL_BYTES) {
    const unsigned char *row = b + k * row_stride * element;
    if (column_stride == 1) {
      memcpy(panel, row, width * element);
    } else if (element == 4) {
      for (size_t j = 0; j < width; j++) memcpy(panel + j * 4, row + j * column_stride * 4, 4);
    } else {
      for (size_t j = 0; j < width; j++) memcpy(panel + j * 8, row + j * column_stride * 8, 8);
    }
    memset(panel + width * element, 0, PANEL_BYTES - width * element);
  }
}

/* One panel times all rows of a. The first panel of a column of panels writes c, unless it is to add, the others add to
 * it. */
static void panel_product(tile_function *compute, const cpu_product *p, const unsigned char *panel, size_t column,
                          size_t width, size_t from, size_t depth, size_t element) {
  _Alignas(64) unsigned char tile[TILE_ROWS * PANEL_BYTES];
  size_t a_row = p->transpose_a ? 1 : p->a_stride, a_column = p->transpose_a ? p->a_stride : 1;
  for (size_t i = 0; i < p->m; i += TILE_ROWS) {
    size_t rows = p->m - i < TILE_ROWS ? p->m - i : TILE_ROWS;
    unsigned char *c = (unsigned char *)p->c + (i * p->c_stride + column) * element;
    const unsigned char *a = (const unsigned char *)p->a + (i * a_row + from * a_column) * element;
    memset(tile, 0, sizeof tile);
    for (size_t r = 0; r < rows && (from > 0 || p->accumulate); r++)
      memcpy(tile + r * PANEL_BYTES, c + r * p->c_stride * element, width * element);
    compute(tile, a, a_row, a_column, panel, rows, depth);
    for (size_t r = 0; r < rows; r++) memcpy(c + r * p->c_stride * element, tile + r * PANEL_BYTES, width * element);
  }
}

static void product(helio_type type, const cpu_product *p) {
  static tile_function *const tiles[HELIO_INT64 + 1] = {
      [HELIO_FLOAT32] = tile_f32, [HELIO_FLOAT64] = tile_f64, [HELIO_INT32] = tile_i32, [HELIO_INT64] = tile_i64};
  _Alignas(64) unsigned char panel[PANEL_ROWS * PANEL_BYTES];
  size_t element = type_bytes[type], widest = PANEL_BYTES / element;
  size_t b_row = p->transpose_b ? 1 : p->b_stride, b_column = p->transpose_b ? p->b_stride : 1;
  for (size_t column = 0; column < p->n; column += widest) {
    size_t width = p->n - column < widest ? p->n - column : widest;
    for (size_t from = 0; from < p->k; from += PANEL_ROWS) {
      size_t depth = p->k - from < PANEL_ROWS ? p->k - from : PANEL_ROWS;
      const unsigned char *b = (const unsigned char *)p->b + (from * b_row + column * b_column) * element;
      pack_panel(panel, b, b_row, b_column, depth, width, element);
      panel_product(tiles[type], p, panel, column, width, from, depth, element);
    }
  }
}

#endif
