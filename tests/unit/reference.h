/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of doubles that tests compute with, plainly, and compare with what a device made of the same values. Nothing
 * here calls the library's own conversions or kernels. */
#ifndef HELIO_REFERENCE_H
#define HELIO_REFERENCE_H

#include <math.h>

#include "test.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

/* A helio_shape as an initializer. */
/* clang-format off */
#define SHAPE(...) {(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}}
#define NO_AXES    {0, {0}}
/* clang-format on */

/* One, primes, nothing, no axis, all axes, and enough for several threads. */
static const helio_shape odd_shapes[] = {
    NO_AXES,        SHAPE(1),        SHAPE(0),    SHAPE(7),       SHAPE(13, 17),
    SHAPE(0, 5),    SHAPE(5, 0),     SHAPE(1, 1), SHAPE(3, 1, 5), SHAPE(2, 1, 3, 1, 2, 1, 3, 2),
    SHAPE(2, 0, 3), SHAPE(401, 503),
};

typedef struct array {
  helio_type type;
  helio_shape shape;
  int64_t elements;
  double *values; /* all of them values of the type */
} array;

typedef struct type_facts {
  helio_type type;
  bool is_float;
  double low, high;   /* of random values */
  double reduced;     /* error that sums and products may have */
  int bits, smallest; /* of the significand after the point; exponent of the least normal number */
  double largest;
} type_facts;

static const type_facts all_types[] = {
    {HELIO_FLOAT32, true, -1, 1, 3e-6, 23, -126, 0x1.fffffep127},
    {HELIO_FLOAT64, true, -1, 1, 1e-14, 52, -1022, 0},
    {HELIO_FLOAT16, true, -1, 1, 6e-4, 10, -14, 65504},
    {HELIO_BFLOAT16, true, -1, 1, 5e-3, 7, -126, 0x1.fep127},
    {HELIO_INT32, false, -50, 50, 0, 0, 0, 0},
    {HELIO_INT64, false, -50, 50, 0, 0, 0, 0},
    {HELIO_UINT8, false, 0, 255, 0, 0, 0, 0},
    {HELIO_BOOL, false, 0, 1, 0, 0, 0, 0},
};

/* The first of all_types that can be calculated with. */
enum { NUMBER_TYPES = 6 };

static inline const type_facts *facts_of(helio_type type) {
  return &all_types[type - 1];
}

/* The nearest value of a floating type, ties to even. */
static inline double round_float(const type_facts *facts, double value) {
  if (facts->type == HELIO_FLOAT64 || value == 0 || !isfinite(value)) return value;
  int exponent = ilogb(value) > facts->smallest ? ilogb(value) : facts->smallest;
  double rounded = ldexp(nearbyint(ldexp(value, facts->bits - exponent)), exponent - facts->bits);
  return fabs(rounded) > facts->largest ? copysign(INFINITY, value) : rounded;
}

/* What a value becomes in a type: integers towards zero, to the nearest end of the range, NaN to 0. */
static inline double as_type(helio_type type, double value) {
  const type_facts *facts = facts_of(type);
  if (facts->is_float) return round_float(facts, value);
  if (type == HELIO_BOOL) return value != 0;
  double low = type == HELIO_INT32 ? INT32_MIN : type == HELIO_INT64 ? -0x1p63 : 0;
  double high = type == HELIO_INT32 ? INT32_MAX : type == HELIO_INT64 ? 0x1p63 : UINT8_MAX;
  if (isnan(value)) return 0;
  return value < low ? low : value > high ? high : trunc(value);
}

static inline uint16_t half_bits(double value) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  double size = fabs(value);
  if (isnan(value)) return 0x7E00;
  if (isinf(value)) return sign | 0x7C00;
  if (size < 0x1p-14) return sign | (uint16_t)(size * 0x1p24);
  int exponent = ilogb(size);
  return (uint16_t)(sign | (exponent + 15) << 10 | (int)((ldexp(size, -exponent) - 1) * 1024));
}

static inline double half_value(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double size = exponent == 0 ? fraction * 0x1p-24 : (1 + fraction / 1024.0) * ldexp(1, exponent - 15);
  if (exponent == 31) size = fraction ? NAN : INFINITY;
  return bits & 0x8000 ? -size : size;
}

/* Writes element `at` of data; `value` is one of the type. */
static inline void store(helio_type type, void *data, int64_t at, double value) {
  float single = (float)value;
  uint32_t bits;
  memcpy(&bits, &single, sizeof bits);
  if (type == HELIO_FLOAT32) ((float *)data)[at] = single;
  if (type == HELIO_FLOAT64) ((double *)data)[at] = value;
  if (type == HELIO_FLOAT16) ((uint16_t *)data)[at] = half_bits(value);
  if (type == HELIO_BFLOAT16) ((uint16_t *)data)[at] = isnan(value) ? 0x7FC0 : (uint16_t)(bits >> 16);
  if (type == HELIO_INT32) ((int32_t *)data)[at] = (int32_t)value;
  if (type == HELIO_INT64) ((int64_t *)data)[at] = value >= 0x1p63 ? INT64_MAX : (int64_t)value;
  if (type == HELIO_UINT8 || type == HELIO_BOOL) ((uint8_t *)data)[at] = (uint8_t)value;
}

static inline double load(helio_type type, const void *data, int64_t at) {
  if (type == HELIO_FLOAT32) return ((const float *)data)[at];
  if (type == HELIO_FLOAT64) return ((const double *)data)[at];
  if (type == HELIO_FLOAT16) return half_value(((const uint16_t *)data)[at]);
  if (type == HELIO_INT32) return ((const int32_t *)data)[at];
  if (type == HELIO_INT64) return (double)((const int64_t *)data)[at];
  if (type == HELIO_UINT8 || type == HELIO_BOOL) return ((const uint8_t *)data)[at];
  uint32_t bits = (uint32_t)((const uint16_t *)data)[at] << 16;
  float single;
  memcpy(&single, &bits, sizeof single);
  return single;
}

/* Steele and Vigna's splitmix64: the same numbers on every machine. */
static inline double random_between(uint64_t *state, double low, double high) {
  uint64_t z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return low + (high - low) * ((double)((z ^ z >> 31) >> 11) * 0x1p-53);
}

static inline array array_new(helio_type type, helio_shape shape) {
  array a = {.type = type, .shape = shape, .elements = 1};
  for (int i = 0; i < shape.rank; i++) a.elements *= shape.extent[i];
  a.values = calloc((size_t)a.elements + 1, sizeof *a.values);
  assert_non_null(a.values);
  return a;
}

static inline array array_between(helio_type type, helio_shape shape, uint64_t seed, double low, double high) {
  array a = array_new(type, shape);
  for (int64_t i = 0; i < a.elements; i++) a.values[i] = as_type(type, nearbyint(random_between(&seed, low, high)));
  if (!facts_of(type)->is_float) return a;
  for (int64_t i = 0; i < a.elements; i++) a.values[i] = as_type(type, random_between(&seed, low, high));
  return a;
}

static inline array array_random(helio_type type, helio_shape shape, uint64_t seed) {
  return array_between(type, shape, seed, facts_of(type)->low, facts_of(type)->high);
}

static inline helio_tensor *tensor_of(const array *a) {
  void *data = malloc((size_t)a->elements * 8 + 1);
  assert_non_null(data);
  for (int64_t i = 0; i < a->elements; i++) store(a->type, data, i, a->values[i]);
  helio_tensor *tensor = helio_constant(data, a->shape, .type = a->type);
  free(data);
  assert_made(tensor);
  return tensor;
}

/* The bytes of a tensor, to be freed. */
static inline void *bytes_of(const helio_tensor *tensor, size_t *bytes) {
  *bytes = (size_t)helio_tensor_elements(tensor) * helio_type_bytes(helio_tensor_type(tensor));
  void *data = malloc(*bytes + 1);
  assert_non_null(data);
  assert_ok(helio_tensor_read(tensor, data, *bytes));
  return data;
}

/* max|a−b| / max|b|; a NaN or an infinity of one side alone is an infinite error. */
static inline double error_of(const array *want, const void *data) {
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < want->elements; i++) {
    double a = load(want->type, data, i), b = want->values[i];
    if (isfinite(b) && fabs(b) > largest) largest = fabs(b);
    if ((isnan(a) && isnan(b)) || a == b) continue;
    if (!isfinite(a) || !isfinite(b)) return INFINITY;
    if (fabs(a - b) > worst) worst = fabs(a - b);
  }
  return worst == 0 ? 0 : worst / largest;
}

static inline const char *shape_words(helio_shape shape, char words[200]) {
  int length = snprintf(words, 200, "(");
  for (int i = 0; i < shape.rank; i++) {
    length += snprintf(words + length, (size_t)(200 - length), i ? ", %lld" : "%lld", (long long)shape.extent[i]);
  }
  snprintf(words + length, (size_t)(200 - length), ")");
  return words;
}

/* The tensor is what was computed, in type, shape and, up to a relative error, value. Frees what was wanted. */
static inline void expect_array_at(const helio_tensor *tensor, array want, double allowed, const char *file, int line) {
  char seen_words[200], words[200];
  if (!tensor) {
    print_error("%s:%d: %s: %s\n", file, line, helio_status_name(helio_error_pending()), helio_error_message());
    _fail(file, line);
  }
  helio_shape shape = helio_tensor_shape(tensor);
  bool same = shape.rank == want.shape.rank && helio_tensor_type(tensor) == want.type;
  for (int i = 0; same && i < shape.rank; i++) same = shape.extent[i] == want.shape.extent[i];
  if (!same || helio_tensor_elements(tensor) != want.elements) {
    print_error("%s:%d: %s of shape %s, not %s of shape %s\n", file, line, helio_type_name(helio_tensor_type(tensor)),
                shape_words(shape, seen_words), helio_type_name(want.type), shape_words(want.shape, words));
    _fail(file, line);
  }
  size_t bytes;
  void *data = bytes_of(tensor, &bytes);
  double error = error_of(&want, data);
  free(data);
  free(want.values);
  if (error <= allowed) return;
  print_error("%s:%d: %s of shape %s: error %g, allowed %g\n", file, line, helio_type_name(want.type),
              shape_words(want.shape, words), error, allowed);
  _fail(file, line);
}
#define expect_array(tensor, want, allowed) expect_array_at(tensor, want, allowed, __FILE__, __LINE__)

/* The same bits in both: what is computed twice from the same values must not differ. */
static inline void expect_same_bits_at(const helio_tensor *a, const helio_tensor *b, const char *file, int line) {
  size_t bytes_a, bytes_b;
  void *data_a = bytes_of(a, &bytes_a), *data_b = bytes_of(b, &bytes_b);
  bool same = bytes_a == bytes_b && memcmp(data_a, data_b, bytes_a) == 0;
  free(data_a);
  free(data_b);
  if (same) return;
  print_error("%s:%d: the same call gave other bits\n", file, line);
  _fail(file, line);
}
#define expect_same_bits(a, b) expect_same_bits_at(a, b, __FILE__, __LINE__)

/* Element `at` of a shape as an index into `of`, which broadcasts to it. */
static inline int64_t broadcast_index(const helio_shape *of, const helio_shape *shape, int64_t at) {
  int64_t index = 0, stride = 1;
  for (int i = shape->rank - 1; i >= 0; i--) {
    int axis = i - (shape->rank - of->rank);
    if (axis >= 0) {
      if (of->extent[axis] != 1) index += at % shape->extent[i] * stride;
      stride *= of->extent[axis];
    }
    at /= shape->extent[i];
  }
  return index;
}

static inline helio_tensor *filled(helio_shape shape, helio_type type) {
  return helio_fill(shape, 1, type);
}
#define F32(...) filled(HELIO_SHAPE(__VA_ARGS__), HELIO_FLOAT32)
#define I32(...) filled(HELIO_SHAPE(__VA_ARGS__), HELIO_INT32)

/* The call failed with this status; its message has all three parts in it. */
static inline void expect_refusal_at(helio_tensor *made, helio_status status, const char *const *parts,
                                     const char *file, int line) {
  char message[2000];
  snprintf(message, sizeof message, "%s", helio_error_message());
  expect_error_at(status, parts[0], file, line);
  for (int i = 1; i < 3; i++) {
    if (strstr(message, parts[i])) continue;
    print_error("%s:%d: \"%s\" is not in \"%s\"\n", file, line, parts[i], message);
    _fail(file, line);
  }
  if (made) _fail(file, line);
}
#define expect_refusal(made, status, first, second, third)                                                             \
  expect_refusal_at(made, status, (const char *[]){first, second, third}, __FILE__, __LINE__)

/* Error lines of the log, which the strict device writes when it is closed with something left over. */
static int errors_logged;

static inline void count_errors(void *user, helio_log_level level, const char *line) {
  (void)user;
  errors_logged += level == HELIO_LOG_ERROR;
  if (level >= HELIO_LOG_WARNING) fprintf(stderr, "%s\n", line);
}

static inline int end_cleanly(void **state) {
  int result = start_afresh(state);
  helio_set_log_sink(NULL, NULL);
  return errors_logged ? -1 : result;
}

/* Threads are the same whatever the vector code is, and the thread sanitizer is slow. */
#if defined(__SANITIZE_THREAD__)
#define SANITIZES_THREADS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SANITIZES_THREADS 1
#endif
#endif
#ifndef SANITIZES_THREADS
#define SANITIZES_THREADS 0
#endif

/* Runs the tests once for each vector code that the processor has, the best first, and all but that one without
 * OpenBLAS. The kernels of the strict device are the same. */
static inline int run_with_each_code(const struct CMUnitTest *tests, size_t count) {
  static const char *const codes[] = {"auto", "avx2", "portable"};
  int failed = 0;
  for (size_t i = 0; i < (SANITIZES_THREADS ? 1 : COUNT(codes)); i++) {
    helio_set_log_sink(count_errors, NULL);
    setenv("HELIO_CPU_ISA", codes[i], 1);
    if (i > 0) setenv("HELIO_CPU_BLAS", "none", 1);
    bool usable = helio_init() == HELIO_OK;
    helio_error_take(NULL);
    if (!usable && i > 0) continue;
    failed += _cmocka_run_group_tests(codes[i], tests, count, NULL, end_cleanly);
  }
  unsetenv("HELIO_CPU_ISA");
  unsetenv("HELIO_CPU_BLAS");
  return failed;
}

#endif
