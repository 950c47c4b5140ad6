/* SPDX-License-Identifier: Apache-2.0 */
/* Stands before every kernel text. There is no #include: neither vendor's run-time compiler has headers everywhere. TYPE is
 * a helio_type, or 0 for texts without elements of a type of their own.
 *
 * T is what memory holds, A what is computed with: float for the floats of up to 32 bits, else T itself. Values are read
 * by load() and written by store(), which rounds to nearest. */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

/* Floats of 16 bits: only storage. */
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
/* A bool of one byte, which is 0 or 1. */
struct b8 {
  u8 bits;
};

#define DEVICE static __device__ __forceinline__
#define KERNEL extern "C" __global__ void

DEVICE float f16_to_float(u16 half) {
  u32 sign = (u32)(half & 0x8000u) << 16, exponent = (half >> 10) & 31u, fraction = half & 1023u;
  if (exponent == 31) return __int_as_float((int)(sign | 0x7f800000u | fraction << 13));
  if (exponent == 0) { /* zero and denormal numbers, exact in float */
    float magnitude = (float)fraction * 5.9604644775390625e-8f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return __int_as_float((int)(sign | (exponent + 112u) << 23 | fraction << 13));
}

DEVICE u16 float_to_f16(float value) {
  u32 bits = (u32)__float_as_int(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (u16)(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return (u16)(sign | 0x7c00u); /* rounds past the largest */
  if (magnitude < 0x38800000u) {                              /* denormal: rounds at 2⁻²⁴ */
    if (magnitude < 0x33000000u) return (u16)sign;
    u32 shift = 126u - (magnitude >> 23), fraction = (magnitude & 0x7fffffu) | 0x800000u;
    u32 kept = fraction >> shift, rest = fraction & ((1u << shift) - 1u), half = 1u << (shift - 1u);
    return (u16)(sign | (kept + (rest > half || (rest == half && (kept & 1u) != 0))));
  }
  u32 rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return (u16)(sign | (rounded - 0x38000000u) >> 13);
}

DEVICE float bf16_to_float(u16 half) {
  return __int_as_float((int)((u32)half << 16));
}

DEVICE u16 float_to_bf16(float value) {
  u32 bits = (u32)__float_as_int(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (u16)(bits >> 16 | 0x40u);
  return (u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* What a type of memory is computed in. */
template <typename M> struct arithmetic { typedef M type; };
template <> struct arithmetic<f16> { typedef float type; };
template <> struct arithmetic<bf16> { typedef float type; };
template <> struct arithmetic<b8> { typedef u8 type; };

/* What integers are added, subtracted and multiplied in so that they wrap; floats stay what they are. */
template <typename V> struct wrapping { typedef V type; };
template <> struct wrapping<i32> { typedef u32 type; };
template <> struct wrapping<i64> { typedef u64 type; };

template <typename M> DEVICE M load(const M *address) { return *address; }
DEVICE float load(const f16 *address) { return f16_to_float(address->bits); }
DEVICE float load(const bf16 *address) { return bf16_to_float(address->bits); }
DEVICE u8 load(const b8 *address) { return address->bits; }

/* A double as the float that rounds to the same half as the double would: where something is lost, the last bit is 1. */
DEVICE float float_before_half(double value) {
  float nearest = (float)value;
  double back = (double)nearest;
  if (back == value || value != value) return nearest;
  u32 bits = (u32)__float_as_int(nearest);
  bool negative = back < 0 || (back == 0 && value < 0), beyond = negative ? back < value : back > value;
  return __int_as_float((int)((bits - (beyond ? 1u : 0u)) | 1u));
}

template <typename M, typename V> DEVICE void store(M *address, V value) { *address = (M)value; }
template <typename V> DEVICE void store(f16 *address, V value) { address->bits = float_to_f16((float)value); }
template <typename V> DEVICE void store(bf16 *address, V value) { address->bits = float_to_bf16((float)value); }
template <typename V> DEVICE void store(b8 *address, V value) { address->bits = value != 0; }
DEVICE void store(f16 *address, double value) { address->bits = float_to_f16(float_before_half(value)); }
DEVICE void store(bf16 *address, double value) { address->bits = float_to_bf16(float_before_half(value)); }

/* As store(), but a float that does not fit an integer becomes the nearest one that does, and NaN 0: see CAST in
 * plugin.h. The limits are powers of two, which floats hold exactly. */
template <typename M, typename V> DEVICE void store_as(M *address, V value) { store(address, value); }
#define STORE_AS(M, V, above, highest, lowest)                                                                         \
  DEVICE void store_as(M *address, V value) {                                                                          \
    *address = value != value ? 0 : value >= above ? highest : value <= lowest ? lowest : (M)value;                    \
  }
STORE_AS(i32, float, 2147483648.0f, 2147483647, (-2147483647 - 1))
STORE_AS(i32, double, 2147483648.0, 2147483647, (-2147483647 - 1))
STORE_AS(i64, float, 9223372036854775808.0f, 9223372036854775807LL, (-9223372036854775807LL - 1))
STORE_AS(i64, double, 9223372036854775808.0, 9223372036854775807LL, (-9223372036854775807LL - 1))
STORE_AS(u8, float, 256.0f, 255, 0)
STORE_AS(u8, double, 256.0, 255, 0)
#undef STORE_AS

#if TYPE == 1
typedef float T;
#elif TYPE == 2
typedef double T;
#elif TYPE == 3
typedef f16 T;
#elif TYPE == 4
typedef bf16 T;
#elif TYPE == 5
typedef i32 T;
#elif TYPE == 6
typedef i64 T;
#elif TYPE == 7
typedef u8 T;
#elif TYPE == 8
typedef b8 T;
#endif
#if TYPE != 0
typedef arithmetic<T>::type A;
typedef wrapping<A>::type W;
#define IS_FLOAT (TYPE >= 1 && TYPE <= 4)
#endif

/* Goes over items so that all threads of the grid share them, whatever its size. */
#define FOR_EACH(i, count)                                                                                             \
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < (count); i += (i64)gridDim.x * blockDim.x)

/* Neighbours that a thread reads or writes at a time, 16 bytes at most, where the address is a multiple of their size.
 * gpu_pack() of pack.h knows how many there are of a type. */
template <typename M, int n> struct alignas(sizeof(M) * n) pack {
  M item[n];
};
#define PACK(M) (sizeof(M) >= 8 ? 2 : 4)

/* Division of numbers that are not negative: most fit 32 bits, where it costs a fraction. */
static __device__ __noinline__ i64 long_quotient(i64 value, i64 by) { return value / by; }
DEVICE i64 quotient(i64 value, i64 by) {
  return ((value | by) >> 32) == 0 ? (i64)((u32)value / (u32)by) : long_quotient(value, by);
}

/* Of the axes of a tensor, outermost first; passed by value. */
#define MAX_RANK 8
struct axes {
  i64 extent[MAX_RANK];
  i64 stride[MAX_RANK]; /* of elements */
  int rank;
  int unused;
};

/* Where element `i` of a tensor with these extents, counted row by row, lies with these strides. */
DEVICE i64 place_of(const axes &shape, i64 i) {
  i64 place = 0;
#pragma unroll 1
  for (int axis = shape.rank - 1; axis >= 0; axis--) {
    i64 extent = shape.extent[axis], next = axis == 0 ? 0 : quotient(i, extent);
    place += (i - next * extent) * shape.stride[axis];
    i = next;
  }
  return place;
}

/* The axes of a result and how its operands walk through them, innermost first; passed by value. */
#define MAX_OPERANDS 3
struct broadcast {
  i64 extent[MAX_RANK];
  i64 stride[MAX_OPERANDS][MAX_RANK]; /* of elements, 0 where an operand is repeated */
  int rank;
  int wide; /* packs may be read and written */
};

/* Where the operands' elements for element `i` of the result lie. */
template <int operands> DEVICE void places_of(const broadcast &shape, i64 i, i64 *places) {
  for (int o = 0; o < operands; o++) places[o] = 0;
#pragma unroll 1
  for (int axis = 0; axis < shape.rank; axis++) {
    i64 next = axis + 1 == shape.rank ? 0 : quotient(i, shape.extent[axis]);
    i64 at = i - next * shape.extent[axis];
    for (int o = 0; o < operands; o++) places[o] += at * shape.stride[o][axis];
    i = next;
  }
}

/* See helio_status_word: of several threads the one that changes `code` writes. */
struct status_word {
  u32 code, operation;
  i64 value;
};
/* BAD_DATA is HELIO_BAD_DATA, given when this is compiled. */

DEVICE void report(status_word *word, u32 operation, i64 value) {
  if (atomicCAS(&word->code, 0u, (u32)BAD_DATA) != 0) return;
  word->operation = operation;
  word->value = value;
}

DEVICE float not_a_number(float) { return __int_as_float(0x7fc00000); }
DEVICE double not_a_number(double) { return (double)__int_as_float(0x7fc00000); }
DEVICE float infinity(float) { return __int_as_float(0x7f800000); }
DEVICE double infinity(double) { return (double)__int_as_float(0x7f800000); }
