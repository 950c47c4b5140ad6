
/* SPDX-License-Identifier: Apache-2.0 */
/* The vendors' arithmetic: functions of the host's mathematics library under their names, vectors, conversions, bits.
 */

#define SIM_FUNCTIONS_OF_ONE(X)                                                                                        \
  X(sin)                                                                                                               \
  X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(exp) X(exp2) X(exp10)     \
      X(expm1) X(log) X(log2) X(log10) X(log1p) X(logb) X(sqrt) X(cbrt) X(erf) X(erfc) X(lgamma) X(tgamma) X(fabs)     \
          X(floor) X(ceil) X(trunc) X(round) X(rint) X(nearbyint)
#define SIM_FUNCTIONS_OF_TWO(X) X(pow) X(atan2) X(hypot) X(fmod) X(remainder) X(fmax) X(fmin) X(fdim) X(copysign)

#define SIM_DECLARE(name)                                                                                              \
  extern "C" double name(double);                                                                                      \
  extern "C" float name##f(float);                                                                                     \
  static inline float name(float x) {                                                                                  \
    return name##f(x);                                                                                                 \
  }
SIM_FUNCTIONS_OF_ONE(SIM_DECLARE)
#undef SIM_DECLARE
#define SIM_DECLARE(name)                                                                                              \
  extern "C" double name(double, double);                                                                              \
  extern "C" float name##f(float, float);                                                                              \
  static inline float name(float x, float y) {                                                                         \
    return name##f(x, y);                                                                                              \
  }
SIM_FUNCTIONS_OF_TWO(SIM_DECLARE)
#undef SIM_DECLARE
#undef SIM_FUNCTIONS_OF_ONE
#undef SIM_FUNCTIONS_OF_TWO

extern "C" {
double fma(double, double, double);
float fmaf(float, float, float);
double ldexp(double, int);
float ldexpf(float, int);
double scalbn(double, int);
float scalbnf(float, int);
double frexp(double, int *);
float frexpf(float, int *);
double modf(double, double *);
float modff(float, float *);
void sincosf(float, float *, float *);
void sincos(double, double *, double *);
int printf(const char *, ...);
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
}
static inline float fma(float x, float y, float z) {
  return fmaf(x, y, z);
}

static inline bool isnan(float x) {
  return __builtin_isnan(x);
}
static inline bool isnan(double x) {
  return __builtin_isnan(x);
}
static inline bool isinf(float x) {
  return __builtin_isinf(x);
}
static inline bool isinf(double x) {
  return __builtin_isinf(x);
}
static inline bool isfinite(float x) {
  return __builtin_isfinite(x);
}
static inline bool isfinite(double x) {
  return __builtin_isfinite(x);
}
static inline bool signbit(float x) {
  return __builtin_signbit(x);
}
static inline bool signbit(double x) {
  return __builtin_signbit(x);
}

static inline int abs(int x) {
  return x < 0 ? -x : x;
}
static inline long abs(long x) {
  return x < 0 ? -x : x;
}
static inline long long abs(long long x) {
  return x < 0 ? -x : x;
}
static inline float abs(float x) {
  return fabsf(x);
}
static inline double abs(double x) {
  return fabs(x);
}

#define SIM_EXTREMES(T)                                                                                                \
  static inline T max(T x, T y) {                                                                                      \
    return x < y ? y : x;                                                                                              \
  }                                                                                                                    \
  static inline T min(T x, T y) {                                                                                      \
    return y < x ? y : x;                                                                                              \
  }
SIM_EXTREMES(int)
SIM_EXTREMES(unsigned)
SIM_EXTREMES(long)
SIM_EXTREMES(unsigned long)
SIM_EXTREMES(long long)
SIM_EXTREMES(unsigned long long)
#undef SIM_EXTREMES
static inline float max(float x, float y) {
  return fmaxf(x, y);
}
static inline float min(float x, float y) {
  return fminf(x, y);
}
static inline double max(double x, double y) {
  return fmax(x, y);
}
static inline double min(double x, double y) {
  return fmin(x, y);
}

static inline float rsqrtf(float x) {
  return 1.0f / sqrtf(x);
}
static inline double rsqrt(double x) {
  return 1.0 / sqrt(x);
}
static inline float rcbrtf(float x) {
  return 1.0f / cbrtf(x);
}
static inline float sinpif(float x) {
  return (float)sin(3.14159265358979323846 * fmod((double)x, 2.0));
}
static inline float cospif(float x) {
  return (float)cos(3.14159265358979323846 * fmod((double)x, 2.0));
}

/* The quick ones are as exact as the others here. */
static inline float __expf(float x) {
  return expf(x);
}
static inline float __exp10f(float x) {
  return exp10f(x);
}
static inline float __logf(float x) {
  return logf(x);
}
static inline float __log2f(float x) {
  return log2f(x);
}
static inline float __log10f(float x) {
  return log10f(x);
}
static inline float __powf(float x, float y) {
  return powf(x, y);
}
static inline float __sinf(float x) {
  return sinf(x);
}
static inline float __cosf(float x) {
  return cosf(x);
}
static inline float __tanf(float x) {
  return tanf(x);
}
static inline float __fdividef(float x, float y) {
  return x / y;
}
static inline float __fadd_rn(float x, float y) {
  return x + y;
}
static inline float __fsub_rn(float x, float y) {
  return x - y;
}
static inline float __fmul_rn(float x, float y) {
  return x * y;
}
static inline float __fdiv_rn(float x, float y) {
  return x / y;
}
static inline float __frcp_rn(float x) {
  return 1.0f / x;
}
static inline float __fsqrt_rn(float x) {
  return sqrtf(x);
}
static inline float __fmaf_rn(float x, float y, float z) {
  return fmaf(x, y, z);
}
static inline float __saturatef(float x) {
  return x > 1 ? 1 : x > 0 ? x : 0;
}

template <typename To, typename From> static inline To sim_same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "of the same size");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
static inline float __int_as_float(int x) {
  return sim_same_bits<float>(x);
}
static inline int __float_as_int(float x) {
  return sim_same_bits<int>(x);
}
static inline float __uint_as_float(unsigned x) {
  return sim_same_bits<float>(x);
}
static inline unsigned __float_as_uint(float x) {
  return sim_same_bits<unsigned>(x);
}
static inline double __longlong_as_double(long long x) {
  return sim_same_bits<double>(x);
}
static inline long long __double_as_longlong(double x) {
  return sim_same_bits<long long>(x);
}

/* Numbers that do not fit become the nearest that does, and what is no number becomes 0, as on a device. */
static inline int sim_to_int(float x) {
  return x != x ? 0 : x >= 2147483648.0f ? 2147483647 : x < -2147483648.0f ? -2147483647 - 1 : (int)x;
}
static inline unsigned sim_to_unsigned(float x) {
  return !(x > 0) ? 0u : x >= 4294967296.0f ? ~0u : (unsigned)x;
}
static inline int __float2int_rn(float x) {
  return sim_to_int(rintf(x));
}
static inline int __float2int_rz(float x) {
  return sim_to_int(x);
}
static inline int __float2int_rd(float x) {
  return sim_to_int(floorf(x));
}
static inline int __float2int_ru(float x) {
  return sim_to_int(ceilf(x));
}
static inline unsigned __float2uint_rn(float x) {
  return sim_to_unsigned(rintf(x));
}
static inline unsigned __float2uint_rz(float x) {
  return sim_to_unsigned(x);
}
static inline float __int2float_rn(int x) {
  return (float)x;
}
static inline float __uint2float_rn(unsigned x) {
  return (float)x;
}
static inline float __double2float_rn(double x) {
  return (float)x;
}

static inline unsigned __umulhi(unsigned x, unsigned y) {
  return (unsigned)((unsigned long long)x * y >> 32);
}
static inline int __mulhi(int x, int y) {
  return (int)((long long)x * y >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static inline int __mul24(int x, int y) {
  return (x << 8 >> 8) * (y << 8 >> 8);
}
static inline unsigned __umul24(unsigned x, unsigned y) {
  return (x & 0xFFFFFF) * (y & 0xFFFFFF);
}
/* By hand: for a processor without such an instruction the compiler would call a function that is not linked. */
static inline int __popcll(unsigned long long x) {
  x -= x >> 1 & 0x5555555555555555ull;
  x = (x & 0x3333333333333333ull) + (x >> 2 & 0x3333333333333333ull);
  return (int)(((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0full) * 0x0101010101010101ull >> 56);
}
static inline int __popc(unsigned x) {
  return __popcll(x);
}
static inline int __clz(int x) {
  return x ? __builtin_clz((unsigned)x) : 32;
}
static inline int __clzll(long long x) {
  return x ? __builtin_clzll((unsigned long long)x) : 64;
}
static inline int __ffs(int x) {
  return __builtin_ffs(x);
}
static inline int __ffsll(long long x) {
  return __builtin_ffsll(x);
}
static inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; i++) reversed |= (x >> i & 1) << (31 - i);
  return reversed;
}

template <typename T> static inline T __ldg(const T *address) {
  return *address;
}

/* Vectors. Those of two and four are aligned so that they can be read at once, and must be. */
#define SIM_VECTORS(T, name)                                                                                           \
  struct name##1 {                                                                                                     \
    T x;                                                                                                               \
  };                                                                                                                   \
  struct __attribute__((aligned(2 * sizeof(T)))) name##2 {                                                             \
    T x, y;                                                                                                            \
  };                                                                                                                   \
  struct __attribute__((aligned(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16))) name##4 {                                   \
    T x, y, z, w;                                                                                                      \
  };                                                                                                                   \
  static inline name##1 make_##name##1(T x) {                                                                          \
    return {x};                                                                                                        \
  }                                                                                                                    \
  static inline name##2 make_##name##2(T x, T y) {                                                                     \
    return {x, y};                                                                                                     \
  }                                                                                                                    \
  static inline name##3 make_##name##3(T x, T y, T z) {                                                                \
    return {x, y, z};                                                                                                  \
  }                                                                                                                    \
  static inline name##4 make_##name##4(T x, T y, T z, T w) {                                                           \
    return {x, y, z, w};                                                                                               \
  }
#define SIM_TRIPLE(T, name)                                                                                            \
  struct name##3 {                                                                                                     \
    T x, y, z;                                                                                                         \
  };
SIM_TRIPLE(signed char, char)
SIM_TRIPLE(unsigned char, uchar)
SIM_TRIPLE(short, short)
SIM_TRIPLE(unsigned short, ushort)
SIM_TRIPLE(int, int)
SIM_TRIPLE(long long, longlong)
SIM_TRIPLE(unsigned long long, ulonglong)
SIM_TRIPLE(float, float)
SIM_TRIPLE(double, double)
SIM_VECTORS(signed char, char)
SIM_VECTORS(unsigned char, uchar)
SIM_VECTORS(short, short)
SIM_VECTORS(unsigned short, ushort)
SIM_VECTORS(int, int)
SIM_VECTORS(unsigned, uint)
SIM_VECTORS(long long, longlong)
SIM_VECTORS(unsigned long long, ulonglong)
SIM_VECTORS(float, float)
SIM_VECTORS(double, double)
#undef SIM_VECTORS
#undef SIM_TRIPLE
