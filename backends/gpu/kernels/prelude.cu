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
/* Threads of each block, as gpu.h has it. A compiler that is not told so leaves registers for as many as a card can run. */
#define GPU_BLOCK 256
#define KERNEL    extern "C" __global__ void __launch_bounds__(GPU_BLOCK)

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
 * gpu_pack() of units.h knows how many there are of a type. */
template <typename M, int n> struct alignas(sizeof(M) * n) pack {
  M item[n];
};
#define PACK(M) (sizeof(M) >= 8 ? 2 : 4)

/* What is only moved goes in units of 1 to 16 bytes. This is the largest. */
struct alignas(16) u128 {
  u64 half[2];
};

/* Fills a unit with the lowest bytes of `pattern`; the largest has it twice. */
template <typename U> DEVICE void set_unit(U *unit, u64 pattern) { *unit = (U)pattern; }
DEVICE void set_unit(u128 *unit, u64 pattern) { unit->half[0] = unit->half[1] = pattern; }

/* Of the axes of a tensor, outermost first; passed by value. */
#define MAX_RANK 8
struct axes {
  i64 extent[MAX_RANK];
  i64 stride[MAX_RANK]; /* of elements */
  int rank;
  int unused;
};

/* Whole numbers that are not negative: in 32 bits where both fit, which is several times faster. The other division is
 * long, and no part of every kernel. */
static __device__ __noinline__ i64 long_quotient(i64 number, i64 by) { return number / by; }
DEVICE i64 quotient(i64 number, i64 by) {
  if (((u64)number | (u64)by) >> 32 == 0) return (i64)((u32)number / (u32)by);
  return long_quotient(number, by);
}

/* Where element `i` of a tensor with these extents, counted row by row, lies with these strides. */
DEVICE i64 place_of(const axes &shape, i64 i) {
  i64 place = 0;
#pragma unroll 1
  for (int axis = shape.rank - 1; axis > 0; axis--) {
    i64 extent = shape.extent[axis], next = quotient(i, extent);
    place += (i - next * extent) * shape.stride[axis];
    i = next;
  }
  return shape.rank == 0 ? 0 : place + i * shape.stride[0];
}

/* Element i of indices, which are int64 (`wide`) or int32. */
DEVICE i64 index_at(const void *indices, int wide, i64 i) {
  return wide != 0 ? ((const i64 *)indices)[i] : (i64)((const i32 *)indices)[i];
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

/* An operand's part in a pack of the result: neighbours, or one element for all. */
template <int n, typename M> DEVICE pack<M, n> operand(const M *x, i64 step) {
  if (step != 0) return *(const pack<M, n> *)x;
  pack<M, n> same;
  for (int k = 0; k < n; k++) same.item[k] = *x;
  return same;
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

/* Activations, of products and by themselves alike; `activation` is a helio_activation up to GELU_TANH, 0 for none. */
enum { LINEAR = 1, RELU, SIGMOID, TANH, SOFTPLUS, SWISH, GELU, GELU_TANH };

template <typename V> DEVICE V relu(V x) { return x > (V)0 || x != x ? x : (V)0; }
template <typename V> DEVICE V sigmoid(V x) { return (V)1 / ((V)1 + exp(-x)); }
template <typename V> DEVICE V softplus(V x) { return (x > (V)0 ? x : (V)0) + log1p(exp(x > (V)0 ? -x : x)); }
template <typename V> DEVICE V swish(V x) { return x / ((V)1 + exp(-x)); }
template <typename V> DEVICE V gelu(V x) { return (V)0.5 * x * erfc(x * (V)-0.70710678118654752440); }
/* 0.5 (1 + tanh(a)) is sigmoid(2 a), which does not cancel. */
template <typename V> DEVICE V gelu_tanh(V x) {
  return x / ((V)1 + exp((V)-1.5957691216057307117 * (x + (V)0.044715 * x * x * x)));
}

template <typename V> DEVICE V activate(u32 activation, V x) {
  switch (activation) {
  case RELU: return relu(x);
  case SIGMOID: return sigmoid(x);
  case TANH: return tanh(x);
  case SOFTPLUS: return softplus(x);
  case SWISH: return swish(x);
  case GELU: return gelu(x);
  case GELU_TANH: return gelu_tanh(x);
  default: return x;
  }
}
/* Integers have no more than RELU. */
DEVICE i32 activate(u32 activation, i32 x) { return activation == RELU && x < 0 ? 0 : x; }
DEVICE i64 activate(u32 activation, i64 x) { return activation == RELU && x < 0 ? 0 : x; }

/* ---------------------------------------------------------------------------------------------------------------------
 * Sums and the like over threads of a block, which has GPU_BLOCK of them in these kernels. How many threads share one
 * result follows from shapes alone, so that results are the same on every device.
 */

/* The value of the lane whose number differs in `bits`, which are less than 32: warps of 64 are two of 32 here. */
#ifdef __CUDACC_RTC__
#define OTHER_LANE(value, bits) __shfl_xor_sync(0xffffffffu, value, bits, 32)
#else
#define OTHER_LANE(value, bits) __shfl_xor(value, bits, 32)
#endif
template <typename V> DEVICE V of_other_lane(V value, int bits) { return OTHER_LANE(value, bits); }

struct two_sums {
  double first, second;
};
DEVICE two_sums of_other_lane(two_sums value, int bits) {
  two_sums other = {OTHER_LANE(value.first, bits), OTHER_LANE(value.second, bits)};
  return other;
}

struct addition {
  template <typename V> DEVICE V join(V a, V b) { return a + b; }
  DEVICE two_sums join(two_sums a, two_sums b) {
    two_sums sum = {a.first + b.first, a.second + b.second};
    return sum;
  }
};

/* A team is `lanes` neighbouring threads, a power of 2 up to GPU_BLOCK; the block has GPU_BLOCK / lanes of them. Joins
 * the values of each team and gives the result to all of its threads. All threads of the block come here. `shared` has
 * room for GPU_BLOCK / 32 values. */
template <typename J, typename V> DEVICE V team_join(V value, V *shared, int lanes) {
  for (int bits = (lanes < 32 ? lanes : 32) / 2; bits > 0; bits /= 2)
    value = J::join(value, of_other_lane(value, bits));
  if (lanes <= 32) return value;
  int parts = lanes / 32, first = (int)threadIdx.x / lanes * parts;
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[first];
  for (int part = 1; part < parts; part++) value = J::join(value, shared[first + part]);
  return value;
}

/* Here the block is GPU_BLOCK / width strips of `width` threads, a power of 2: thread i of each strip has a part of
 * result i. Joins these parts and gives the results to the first strip. All threads of the block come here. `shared` has
 * room for GPU_BLOCK values. */
template <typename J, typename V> DEVICE V strips_join(V value, V *shared, int width) {
  __syncthreads();
  shared[threadIdx.x] = value;
  for (int half = GPU_BLOCK / 2; half >= width; half /= 2) {
    __syncthreads();
    if ((int)threadIdx.x < half) shared[threadIdx.x] = J::join(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  return shared[threadIdx.x];
}

/* Σ value(i) for i from `first` in steps up to `end`. Eight at a time are added as a short sum, which is fast and has
 * eight reads under way, then to the long one, which is exact enough. */
template <typename Long, typename Short, typename F> DEVICE Long sum_each(i64 first, i64 end, i64 step, F value) {
  Long total = 0;
  i64 i = first;
  for (; i + 7 * step < end; i += 8 * step) {
    Short some = (Short)value(i);
#pragma unroll
    for (int k = 1; k < 8; k++) some += (Short)value(i + k * step);
    total += (Long)some;
  }
  Short rest = 0;
  for (; i < end; i += step) rest += (Short)value(i);
  return total + (Long)rest;
}

/* Which row a thread works on, and which lane of its team it is. */
struct seat {
  i64 row;
  int lane, lanes;
};
DEVICE seat seat_at(i64 base, int lanes) {
  seat seat = {base + (int)threadIdx.x / lanes, (int)threadIdx.x % lanes, lanes};
  return seat;
}

/* Goes over all rows, so that all threads of a block go round equally often. */
#define FOR_ROWS(at, rows, lanes)                                                                                      \
  for (i64 base = (i64)blockIdx.x * (GPU_BLOCK / lanes); base < rows; base += (i64)gridDim.x * (GPU_BLOCK / lanes))    \
    for (seat at = seat_at(base, lanes), *once = &at; once != 0; once = 0)

#define FOR_COLUMNS(i, at, rows, columns)                                                                              \
  for (i64 i = at.lane; at.row < rows && i < columns; i += at.lanes)

/* Σ value(column) over the row, to all lanes of its team. */
#if TYPE != 0
template <typename F> DEVICE double row_sum(seat at, i64 rows, i64 columns, double *shared, F value) {
  double sum = at.row < rows ? sum_each<double, A>(at.lane, columns, at.lanes, value) : 0;
  return team_join<addition>(sum, shared, at.lanes);
}
#endif
