/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, its logarithm, their gradients, and the cross entropy, a row at a time. The largest element is taken from
 * all first, so that no exponential overflows; a row that holds NaN or +inf, or -inf alone, becomes NaN. Sums are kept
 * in double; their order depends on the length of the row alone. */
#ifndef CPU_VECTOR_SOFTMAX_H
#define CPU_VECTOR_SOFTMAX_H

/* ---- float32 ---- */

static inline vector_f32 load_some_f32(const float *x, size_t left) {
  return left >= VECTOR_LANES ? *(const vector_f32 *)x : load_part_f32(x, left);
}

static inline void store_some_f32(float *y, vector_f32 value, size_t left) {
  if (left >= VECTOR_LANES) {
    *(vector_f32 *)y = value;
  } else {
    store_part_f32(y, value, left);
  }
}

/* All bits in the lanes that belong to the row, none in those behind its end. */
static inline vector_i32 lanes_f32(size_t left) {
#if VECTOR_BYTES == 64
  const vector_i32 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif VECTOR_BYTES == 32
  const vector_i32 lane = {0, 1, 2, 3, 4, 5, 6, 7};
#else
  const vector_i32 lane = {0, 1, 2, 3};
#endif
  return (vector_i32)(lane < (int32_t)(left < VECTOR_LANES ? left : VECTOR_LANES));
}

static inline vector_f64 lower_wide(vector_f32 x) {
  return __builtin_convertvector(__builtin_shufflevector(x, x, LOWER_LANES), vector_f64);
}

static inline vector_f64 upper_wide(vector_f32 x) {
  return __builtin_convertvector(__builtin_shufflevector(x, x, UPPER_LANES), vector_f64);
}

static inline double total_f64(vector_f64 x) {
  double total = 0;
  for (int lane = 0; lane < VECTOR_LANES / 2; lane++) total += x[lane];
  return total;
}

static float largest_f32(const float *x, size_t count) {
  const vector_f32 lowest = all_f32(-__builtin_inff());
  vector_f32 best = lowest;
  for (size_t i = 0; i < count; i += VECTOR_LANES) {
    vector_f32 value = select_f32(lanes_f32(count - i), load_some_f32(x + i, count - i), lowest);
    best = select_f32((vector_i32)(value > best), value, best);
  }
  float result = best[0];
  for (int lane = 1; lane < VECTOR_LANES; lane++) result = best[lane] > result ? best[lane] : result;
  return result;
}

/* y = exp(x − shift), which is not stored if y is NULL; gives the sum. */
static double exp_sum_f32(float *y, const float *x, float shift, size_t count) {
  vector_f64 lower = {0}, upper = {0};
  for (size_t i = 0; i < count; i += VECTOR_LANES) {
    vector_f32 value = exp_f32(load_some_f32(x + i, count - i) - shift);
    if (y != NULL) store_some_f32(y + i, value, count - i);
    value = (vector_f32)((vector_i32)value & lanes_f32(count - i));
    lower += lower_wide(value);
    upper += upper_wide(value);
  }
  return total_f64(lower + upper);
}

/* Σ a × b */
static double dot_f32(const float *a, const float *b, size_t count) {
  vector_f64 lower = {0}, upper = {0};
  for (size_t i = 0; i < count; i += VECTOR_LANES) {
    vector_f32 left = load_some_f32(a + i, count - i), right = load_some_f32(b + i, count - i);
    lower += lower_wide(left) * lower_wide(right);
    upper += upper_wide(left) * upper_wide(right);
  }
  return total_f64(lower + upper);
}

static double total_f32(const float *x, size_t count) {
  vector_f64 lower = {0}, upper = {0};
  for (size_t i = 0; i < count; i += VECTOR_LANES) {
    vector_f32 value = load_some_f32(x + i, count - i);
    lower += lower_wide(value);
    upper += upper_wide(value);
  }
  return total_f64(lower + upper);
}

static void softmax_f32(void *target, const void *source, const void *unused, size_t count) {
  float *y = target;
  (void)unused;
  float scale = (float)(1.0 / exp_sum_f32(y, source, largest_f32(source, count), count));
  for (size_t i = 0; i < count; i += VECTOR_LANES)
    store_some_f32(y + i, load_some_f32(y + i, count - i) * scale, count - i);
}

static void log_softmax_f32(void *target, const void *source, const void *unused, size_t count) {
  float *y = target;
  const float *x = source;
  (void)unused;
  float largest = largest_f32(x, count);
  float rest = (float)log(exp_sum_f32(NULL, x, largest, count));
  for (size_t i = 0; i < count; i += VECTOR_LANES)
    store_some_f32(y + i, load_some_f32(x + i, count - i) - largest - rest, count - i);
}

static void softmax_gradient_f32(void *target, const void *above, const void *result, size_t count) {
  float *dx = target;
  const float *dy = above, *y = result;
  float mean = (float)dot_f32(dy, y, count);
  for (size_t i = 0; i < count; i += VECTOR_LANES) {
    vector_f32 value = load_some_f32(y + i, count - i);
    store_some_f32(dx + i, (load_some_f32(dy + i, count - i) - mean) * value, count - i);
  }
}

static void log_softmax_gradient_f32(void *target, const void *above, const void *result, size_t count) {
  float *dx = target;
  const float *dy = above, *y = result;
  float sum = (float)total_f32(dy, count);
  for (size_t i = 0; i < count; i += VECTOR_LANES) {
    vector_f32 value = exp_f32(load_some_f32(y + i, count - i));
    store_some_f32(dx + i, load_some_f32(dy + i, count - i) - value * sum, count - i);
  }
}

/* Both terms of the loss are positive where the labels are. */
static double cross_entropy_f32(float *gradient, const float *x, const float *labels, size_t label, size_t count) {
  float largest = largest_f32(x, count);
  double sum = exp_sum_f32(gradient, x, largest, count), weight = labels == NULL ? 1 : total_f32(labels, count);
  double below = labels == NULL ? (double)x[label] - largest : 0;
  vector_f64 lower = {0}, upper = {0};
  for (size_t i = 0; labels != NULL && i < count; i += VECTOR_LANES) {
    vector_f32 distance = load_some_f32(x + i, count - i) - largest, part = load_some_f32(labels + i, count - i);
    distance = (vector_f32)((vector_i32)distance & lanes_f32(count - i));
    lower += lower_wide(distance) * lower_wide(part);
    upper += upper_wide(distance) * upper_wide(part);
  }
  const float scale = (float)(weight / sum);
  for (size_t i = 0; gradient != NULL && i < count; i += VECTOR_LANES) {
    vector_f32 value = load_some_f32(gradient + i, count - i) * scale;
    if (labels != NULL) value -= load_some_f32(labels + i, count - i);
    store_some_f32(gradient + i, value, count - i);
  }
  if (gradient != NULL && labels == NULL) gradient[label] -= 1.0f;
  return log(sum) * weight - (below + total_f64(lower + upper));
}

/* ---- float64 ---- */

static double largest_f64(const double *x, size_t count) {
  double best = -__builtin_inf();
  for (size_t i = 0; i < count; i++) best = x[i] > best ? x[i] : best;
  return best;
}

static double exp_sum_f64(double *y, const double *x, double shift, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) {
    double value = exp(x[i] - shift);
    if (y != NULL) y[i] = value;
    sum += value;
  }
  return sum;
}

static void softmax_f64(void *target, const void *source, const void *unused, size_t count) {
  double *y = target;
  (void)unused;
  double sum = exp_sum_f64(y, source, largest_f64(source, count), count);
  for (size_t i = 0; i < count; i++) y[i] /= sum;
}

static void log_softmax_f64(void *target, const void *source, const void *unused, size_t count) {
  double *y = target;
  const double *x = source;
  (void)unused;
  double largest = largest_f64(x, count), rest = log(exp_sum_f64(NULL, x, largest, count));
  for (size_t i = 0; i < count; i++) y[i] = x[i] - largest - rest;
}

static void softmax_gradient_f64(void *target, const void *above, const void *result, size_t count) {
  double *dx = target, mean = 0;
  const double *dy = above, *y = result;
  for (size_t i = 0; i < count; i++) mean += dy[i] * y[i];
  for (size_t i = 0; i < count; i++) dx[i] = (dy[i] - mean) * y[i];
}

static void log_softmax_gradient_f64(void *target, const void *above, const void *result, size_t count) {
  double *dx = target, sum = 0;
  const double *dy = above, *y = result;
  for (size_t i = 0; i < count; i++) sum += dy[i];
  for (size_t i = 0; i < count; i++) dx[i] = dy[i] - exp(y[i]) * sum;
}

static double cross_entropy_f64(double *gradient, const double *x, const double *labels, size_t label, size_t count) {
  double largest = largest_f64(x, count), sum = exp_sum_f64(gradient, x, largest, count);
  double weight = labels == NULL ? 1 : 0, below = labels == NULL ? x[label] - largest : 0;
  for (size_t i = 0; labels != NULL && i < count; i++) {
    weight += labels[i];
    below += labels[i] * (x[i] - largest);
  }
  for (size_t i = 0; gradient != NULL && i < count; i++)
    gradient[i] = gradient[i] / sum * weight - (labels != NULL ? labels[i] : i == label ? 1 : 0);
  return log(sum) * weight - below;
}

/* ---- the table's functions ---- */

typedef void softmax_function(void *y, const void *a, const void *b, size_t count);

static void softmax(cpu_softmax which, helio_type type, void *y, const void *a, const void *b, size_t count) {
  static softmax_function *const table[][2] = {
      [CPU_SOFTMAX] = {softmax_f32, softmax_f64},
      [CPU_LOG_SOFTMAX] = {log_softmax_f32, log_softmax_f64},
      [CPU_SOFTMAX_GRADIENT] = {softmax_gradient_f32, softmax_gradient_f64},
      [CPU_LOG_SOFTMAX_GRADIENT] = {log_softmax_gradient_f32, log_softmax_gradient_f64},
  };
  table[which][type == HELIO_FLOAT64](y, a, b, count);
}

static double cross_entropy(helio_type type, void *gradient, const void *x, const void *labels, size_t label,
                            size_t count) {
  return type == HELIO_FLOAT64 ? cross_entropy_f64(gradient, x, labels, label, count)
                               : cross_entropy_f32(gradient, x, labels, label, count);
}

#endif
