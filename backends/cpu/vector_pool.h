/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling of one row of windows, a vector of channels at a time. */
#ifndef CPU_VECTOR_POOL_H
#define CPU_VECTOR_POOL_H

typedef uint8_t vector_u8_of_32 __attribute__((vector_size(VECTOR_BYTES / 4), aligned(1), may_alias));
typedef uint8_t vector_u8_of_64 __attribute__((vector_size(VECTOR_BYTES / 8), aligned(1), may_alias));

/* name, element, vector of it, an integer as wide and the vector of that, as many int32, as many uint8 */
#define POOL_LIST(X)                                                                                                   \
  X(f32, float, vector_f32, int32_t, vector_i32, vector_i32, vector_u8_of_32)                                          \
  X(f64, double, vector_f64, int64_t, vector_i64, vector_i32_half, vector_u8_of_64)

/* The first element wins until a larger one comes, or a NaN; after a NaN nothing does. One channel at a time, for the
 * channels that do not fill a vector. */
#define MAX_POOL_ONE(name, element, vector, number, numbers, words, bytes)                                             \
  static void max_pool_one_##name(const cpu_pool_row *w, element *y, void *winner, const element *x) {                 \
    element best = *x;                                                                                                 \
    uint32_t place = w->first;                                                                                         \
    for (size_t row = 0; row < w->rows; row++) {                                                                       \
      for (size_t column = 0; column < w->columns; column++) {                                                         \
        const element value = x[row * w->row_step + column * w->channels];                                             \
        if (best != best || value <= best) continue;                                                                   \
        best = value;                                                                                                  \
        place = w->first + (uint32_t)(row * w->places + column);                                                       \
      }                                                                                                                \
    }                                                                                                                  \
    *y = best;                                                                                                         \
    if (winner != NULL && w->winner_type == HELIO_UINT8) *(uint8_t *)winner = (uint8_t)place;                          \
    if (winner != NULL && w->winner_type == HELIO_INT32) *(int32_t *)winner = (int32_t)place;                          \
  }
POOL_LIST(MAX_POOL_ONE)
#undef MAX_POOL_ONE

#define MAX_POOL_VECTOR(name, element, vector, number, numbers, words, bytes)                                          \
  static inline void max_pool_vector_##name(const cpu_pool_row *w, element *y, void *winner, const element *x) {       \
    vector best = *(const vector *)x;                                                                                  \
    numbers place = (numbers){0} + (number)w->first;                                                                   \
    for (size_t row = 0; row < w->rows; row++) {                                                                       \
      numbers here = (numbers){0} + (number)(w->first + row * w->places);                                              \
      const element *from = x + row * w->row_step;                                                                     \
      for (size_t column = 0; column < w->columns; column++, from += w->channels, here += 1) {                         \
        const vector value = *(const vector *)from;                                                                    \
        const numbers stays = (numbers)(value <= best) | (numbers)(best != best);                                      \
        best = (vector)(((numbers)best & stays) | ((numbers)value & ~stays));                                          \
        place = (place & stays) | (here & ~stays);                                                                     \
      }                                                                                                                \
    }                                                                                                                  \
    *(vector *)y = best;                                                                                               \
    if (winner != NULL && w->winner_type == HELIO_UINT8) *(bytes *)winner = __builtin_convertvector(place, bytes);     \
    if (winner != NULL && w->winner_type == HELIO_INT32) *(words *)winner = __builtin_convertvector(place, words);     \
  }                                                                                                                    \
  static void max_pool_##name(const cpu_pool_row *w) {                                                                 \
    const size_t width = sizeof(vector) / sizeof(element), winner_size = w->winner_type == HELIO_UINT8 ? 1 : 4;        \
    for (size_t p = 0; p < w->positions; p++) {                                                                        \
      const element *x = (const element *)w->x + p * w->position_step;                                                 \
      element *y = (element *)w->y + p * w->channels;                                                                  \
      unsigned char *winners =                                                                                         \
          w->winners == NULL ? NULL : (unsigned char *)w->winners + p * w->channels * winner_size;                     \
      size_t i = 0;                                                                                                    \
      for (; i + width <= w->channels; i += width)                                                                     \
        max_pool_vector_##name(w, y + i, winners == NULL ? NULL : winners + i * winner_size, x + i);                   \
      for (; i < w->channels; i++)                                                                                     \
        max_pool_one_##name(w, y + i, winners == NULL ? NULL : winners + i * winner_size, x + i);                      \
    }                                                                                                                  \
  }
POOL_LIST(MAX_POOL_VECTOR)
#undef MAX_POOL_VECTOR

static void max_pool(helio_type type, const cpu_pool_row *row) {
  if (type == HELIO_FLOAT32) {
    max_pool_f32(row);
  } else {
    max_pool_f64(row);
  }
}

/* Where element `place` of the whole window lies in the part of it that is not padding: false if it does not. */
static inline bool pool_place(const cpu_pool_row *w, int64_t place, size_t *row, size_t *column) {
  place -= (int64_t)w->first;
  if (place < 0) return false;
  *row = (size_t)place / w->places;
  *column = (size_t)place % w->places;
  return *row < w->rows && *column < w->columns;
}

static int64_t pool_winner(const cpu_pool_row *w, size_t at) {
  return w->winner_type == HELIO_UINT8 ? ((const uint8_t *)w->winners)[at] : ((const int32_t *)w->winners)[at];
}

static size_t first_bad_winner(const cpu_pool_row *w) {
  size_t row, column, at = 0;
  while (pool_place(w, pool_winner(w, at), &row, &column)) at++;
  return at;
}

/* Each window gives to the one element that won in it. All elements of the window are gone through: that costs no more
 * than to look for the place of each channel by itself. */
#define MAX_POOL_GRAD(name, element, vector, number, numbers, words, bytes)                                            \
  static inline numbers max_pool_grad_vector_##name(const cpu_pool_row *w, element *x, const element *y,               \
                                                    numbers winner) {                                                  \
    const numbers gradient = *(const numbers *)y;                                                                      \
    numbers found = {0};                                                                                               \
    for (size_t row = 0; row < w->rows; row++) {                                                                       \
      numbers here = (numbers){0} + (number)(w->first + row * w->places);                                              \
      element *to = x + row * w->row_step;                                                                             \
      for (size_t column = 0; column < w->columns; column++, to += w->channels, here += 1) {                           \
        const numbers won = (numbers)(winner == here);                                                                 \
        *(vector *)to += (vector)(gradient & won);                                                                     \
        found |= won;                                                                                                  \
      }                                                                                                                \
    }                                                                                                                  \
    return found;                                                                                                      \
  }                                                                                                                    \
  static bool max_pool_grad_##name(const cpu_pool_row *w) {                                                            \
    const size_t width = sizeof(vector) / sizeof(element);                                                             \
    numbers found = {0};                                                                                               \
    bool good = true;                                                                                                  \
    found = ~found;                                                                                                    \
    for (size_t p = 0; p < w->positions; p++) {                                                                        \
      element *x = (element *)w->x + p * w->position_step;                                                             \
      const element *y = (const element *)w->y + p * w->channels;                                                      \
      const uint8_t *small = (const uint8_t *)w->winners + p * w->channels;                                            \
      const int32_t *large = (const int32_t *)w->winners + p * w->channels;                                            \
      size_t i = 0, row, column;                                                                                       \
      for (; i + width <= w->channels; i += width) {                                                                   \
        numbers winner = w->winner_type == HELIO_UINT8                                                                 \
                             ? __builtin_convertvector(*(const bytes *)(small + i), numbers)                           \
                             : __builtin_convertvector(*(const words *)(large + i), numbers);                          \
        found &= max_pool_grad_vector_##name(w, x + i, y + i, winner);                                                 \
      }                                                                                                                \
      for (; i < w->channels; i++) {                                                                                   \
        bool here = pool_place(w, pool_winner(w, p * w->channels + i), &row, &column);                                 \
        if (here) x[row * w->row_step + column * w->channels + i] += y[i];                                             \
        good = good && here;                                                                                           \
      }                                                                                                                \
    }                                                                                                                  \
    for (size_t lane = 0; lane < width; lane++) good = good && found[lane] != 0;                                       \
    return good;                                                                                                       \
  }
POOL_LIST(MAX_POOL_GRAD)
#undef MAX_POOL_GRAD

static size_t max_pool_grad(helio_type type, const cpu_pool_row *row) {
  bool good = type == HELIO_FLOAT32 ? max_pool_grad_f32(row) : max_pool_grad_f64(row);
  return good ? SIZE_MAX : first_bad_winner(row);
}

/* A window's rows are summed each by itself first, which keeps the error of large windows small. */
#define AVERAGE_POOL(name, element, vector, number, numbers, words, bytes)                                             \
  static void average_pool_##name(const cpu_pool_row *w) {                                                             \
    const size_t width = sizeof(vector) / sizeof(element);                                                             \
    const element count = (element)(w->rows * w->columns);                                                             \
    for (size_t p = 0; p < w->positions; p++) {                                                                        \
      const element *x = (const element *)w->x + p * w->position_step;                                                 \
      element *y = (element *)w->y + p * w->channels;                                                                  \
      size_t i = 0;                                                                                                    \
      for (; i + width <= w->channels; i += width) {                                                                   \
        vector total = {0};                                                                                            \
        for (size_t row = 0; row < w->rows; row++) {                                                                   \
          const element *from = x + row * w->row_step + i;                                                             \
          vector sum = *(const vector *)from;                                                                          \
          for (size_t column = 1; column < w->columns; column++)                                                       \
            sum += *(const vector *)(from + column * w->channels);                                                     \
          total += sum;                                                                                                \
        }                                                                                                              \
        *(vector *)(y + i) = total / count;                                                                            \
      }                                                                                                                \
      for (; i < w->channels; i++) {                                                                                   \
        element total = 0;                                                                                             \
        for (size_t row = 0; row < w->rows; row++) {                                                                   \
          const element *from = x + row * w->row_step + i;                                                             \
          element sum = *from;                                                                                         \
          for (size_t column = 1; column < w->columns; column++) sum += from[column * w->channels];                    \
          total += sum;                                                                                                \
        }                                                                                                              \
        y[i] = total / count;                                                                                          \
      }                                                                                                                \
    }                                                                                                                  \
  }
POOL_LIST(AVERAGE_POOL)
#undef AVERAGE_POOL

static void average_pool(helio_type type, const cpu_pool_row *row) {
  if (type == HELIO_FLOAT32) {
    average_pool_f32(row);
  } else {
    average_pool_f64(row);
  }
}

#define AVERAGE_POOL_GRAD(name, element, vector, number, numbers, words, bytes)                                        \
  static void average_pool_grad_##name(const cpu_pool_row *w) {                                                        \
    const size_t width = sizeof(vector) / sizeof(element);                                                             \
    const element count = (element)(w->rows * w->columns);                                                             \
    for (size_t p = 0; p < w->positions; p++) {                                                                        \
      element *x = (element *)w->x + p * w->position_step;                                                             \
      const element *y = (const element *)w->y + p * w->channels;                                                      \
      size_t i = 0;                                                                                                    \
      for (; i + width <= w->channels; i += width) {                                                                   \
        const vector share = *(const vector *)(y + i) / count;                                                         \
        for (size_t row = 0; row < w->rows; row++) {                                                                   \
          element *to = x + row * w->row_step + i;                                                                     \
          for (size_t column = 0; column < w->columns; column++, to += w->channels) *(vector *)to += share;            \
        }                                                                                                              \
      }                                                                                                                \
      for (; i < w->channels; i++) {                                                                                   \
        const element share = y[i] / count;                                                                            \
        for (size_t row = 0; row < w->rows; row++) {                                                                   \
          element *to = x + row * w->row_step + i;                                                                     \
          for (size_t column = 0; column < w->columns; column++, to += w->channels) *to += share;                      \
        }                                                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
  }
POOL_LIST(AVERAGE_POOL_GRAD)
#undef AVERAGE_POOL_GRAD

static void average_pool_grad(helio_type type, const cpu_pool_row *row) {
  if (type == HELIO_FLOAT32) {
    average_pool_grad_f32(row);
  } else {
    average_pool_grad_f64(row);
  }
}

#endif
