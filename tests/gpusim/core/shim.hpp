/* SPDX-License-Identifier: Apache-2.0 */
/* What a run-time compiler of a vendor knows without any #include: threads, shared memory, barriers, warps, atomics. It
 * stands between kernel.h and the kernel text. What a vendor's compiler does not know must be unknown here too: nothing
 * is declared that only one vendor has, unless for that one. */

typedef decltype(sizeof(0)) size_t;
typedef decltype((char *)0 - (char *)0) ptrdiff_t;
#define NULL __null

/* Markers, which text.c finds after macros are replaced; compile.c gives them a meaning then. */
#define __global__             sim_marker_global
#define __shared__             sim_marker_shared
#define __launch_bounds__(...) sim_marker_bounds(__VA_ARGS__)

#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
#define __align__(n)    __attribute__((aligned(n)))
#ifdef __CUDACC_RTC__
#define __grid_constant__
#endif

/* ---------------------------------------------------------------------------------------------------------------------
 * Where a thread is
 */

typedef sim_index uint3;
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(const uint3 &index) : x(index.x), y(index.y), z(index.z) {}
};

/* The only thread-local variable with an initial value, so that it is the first of them and shared memory follows it.
 */
__attribute__((used)) thread_local sim_block sim_current = {{{0, 0, 0}, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, 32};

#define threadIdx ((const uint3 &)sim_current.thread.index)
#define blockIdx  ((const uint3 &)sim_current.block)
#define blockDim  ((const uint3 &)sim_current.block_size)
#define gridDim   ((const uint3 &)sim_current.grid_size)
#define warpSize  ((int)sim_current.warp)

/* ---------------------------------------------------------------------------------------------------------------------
 * Barriers
 */

#define SIM_PLACE(operation)                                                                                           \
  (__extension__({                                                                                                     \
    static const sim_text_place place = {operation, __LINE__};                                                              \
    &place;                                                                                                            \
  }))

static inline unsigned sim_barrier(const sim_text_place *place, int vote) {
  return sim_current.services->barrier(&sim_current, place, vote);
}

#define __syncthreads()        ((void)sim_barrier(SIM_PLACE("__syncthreads"), 0))
#define __syncthreads_count(p) ((int)sim_barrier(SIM_PLACE("__syncthreads_count"), (p) != 0))
#define __syncthreads_or(p)    ((int)(sim_barrier(SIM_PLACE("__syncthreads_or"), (p) != 0) > 0))
#define __syncthreads_and(p)   ((int)(sim_barrier(SIM_PLACE("__syncthreads_and"), (p) == 0) == 0))

static inline void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_block() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_system() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void sim_trap(const char *what, unsigned line) {
  sim_current.services->mistake(&sim_current, "trap in a kernel", what, line);
}
#define assert(condition) ((condition) ? (void)0 : sim_trap("assertion failed: " #condition, __LINE__))
#ifdef __CUDACC_RTC__
#define __trap() sim_trap("__trap", __LINE__)
#endif

/* Called by code that the compiler adds to accesses of arrays whose size it knows, and of types that must be aligned.
 */
struct sim_source {
  const char *file;
  unsigned line, column;
};
extern "C" void __ubsan_handle_out_of_bounds_abort(const sim_source *source, unsigned long) {
  sim_current.services->mistake(&sim_current, "index out of bounds", "an array", source->line);
}
extern "C" void __ubsan_handle_type_mismatch_v1_abort(const sim_source *source, unsigned long) {
  sim_current.services->mistake(&sim_current, "misaligned address", "an access", source->line);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Warps
 */

static inline unsigned sim_lane_number() {
  return sim_current.thread.number % sim_current.warp;
}

/* CUDA names the lanes that take part. Its masks have 32 bits; all of them mean the whole warp, however wide it is. */
static inline unsigned long long sim_full_mask(unsigned mask) {
  return mask == ~0u ? ~0ull : mask;
}

static inline sim_lane sim_meet(const sim_text_place *place, sim_gather gather, unsigned long long mask,
                                unsigned long long value, unsigned source) {
  sim_lane lane = {place, gather, mask, value, 0, source};
  sim_current.services->warp(&sim_current, &lane);
  return lane;
}

template <typename T>
static inline T sim_shuffle(const sim_text_place *place, unsigned long long mask, T value, unsigned source) {
  static_assert(sizeof(T) <= 8, "a shuffle is for types of at most 8 bytes");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = sim_meet(place, SIM_GATHER_SHUFFLE, mask, bits, source).value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

/* Lanes are in segments of `width`; a lane whose source would lie in another segment keeps its own value. */
static inline unsigned sim_from(int lane, int width = warpSize) {
  unsigned own = sim_lane_number();
  return (own & ~(width - 1u)) | ((unsigned)lane & (width - 1u));
}
static inline unsigned sim_from_above(unsigned delta, int width = warpSize) {
  unsigned own = sim_lane_number(), within = own & (width - 1u);
  return within + delta < (unsigned)width ? own + delta : own;
}
static inline unsigned sim_from_below(unsigned delta, int width = warpSize) {
  unsigned own = sim_lane_number(), within = own & (width - 1u);
  return within >= delta ? own - delta : own;
}
static inline unsigned sim_from_other(int bits, int width = warpSize) {
  unsigned own = sim_lane_number(), other = own ^ (unsigned)bits;
  return other < ((own + width) & ~(width - 1u)) ? other : own;
}

static inline unsigned long long sim_ballot(const sim_text_place *place, unsigned long long mask, int vote) {
  return sim_meet(place, SIM_GATHER_VOTE, mask, vote != 0, 0).value;
}
static inline int sim_all(const sim_text_place *place, unsigned long long mask, int vote) {
  sim_lane lane = sim_meet(place, SIM_GATHER_VOTE, mask, vote != 0, 0);
  return lane.value == lane.took_part;
}

#ifdef __CUDACC_RTC__
#define SIM_MASK(mask)            sim_full_mask(mask)
#define __shfl_sync(m, v, ...)    sim_shuffle(SIM_PLACE("__shfl_sync"), SIM_MASK(m), v, sim_from(__VA_ARGS__))
#define __shfl_up_sync(m, v, ...) sim_shuffle(SIM_PLACE("__shfl_up_sync"), SIM_MASK(m), v, sim_from_below(__VA_ARGS__))
#define __shfl_down_sync(m, v, ...)                                                                                    \
  sim_shuffle(SIM_PLACE("__shfl_down_sync"), SIM_MASK(m), v, sim_from_above(__VA_ARGS__))
#define __shfl_xor_sync(m, v, ...)                                                                                     \
  sim_shuffle(SIM_PLACE("__shfl_xor_sync"), SIM_MASK(m), v, sim_from_other(__VA_ARGS__))
#define __ballot_sync(m, p) ((unsigned)sim_ballot(SIM_PLACE("__ballot_sync"), SIM_MASK(m), (p) != 0))
#define __any_sync(m, p)    ((int)(sim_ballot(SIM_PLACE("__any_sync"), SIM_MASK(m), (p) != 0) != 0))
#define __all_sync(m, p)    sim_all(SIM_PLACE("__all_sync"), SIM_MASK(m), (p) != 0)
static inline void sim_wait(const sim_text_place *place, unsigned mask = ~0u) {
  sim_meet(place, SIM_GATHER_NOTHING, SIM_MASK(mask), 0, 0);
}
#define __syncwarp(...) sim_wait(SIM_PLACE("__syncwarp") __VA_OPT__(, ) __VA_ARGS__)
/* Which lanes are together is nothing that a program may rely on: here each is alone. */
static inline unsigned __activemask() {
  return 1u << (sim_lane_number() & 31);
}
#else
#define __shfl(v, ...)      sim_shuffle(SIM_PLACE("__shfl"), 0, v, sim_from(__VA_ARGS__))
#define __shfl_up(v, ...)   sim_shuffle(SIM_PLACE("__shfl_up"), 0, v, sim_from_below(__VA_ARGS__))
#define __shfl_down(v, ...) sim_shuffle(SIM_PLACE("__shfl_down"), 0, v, sim_from_above(__VA_ARGS__))
#define __shfl_xor(v, ...)  sim_shuffle(SIM_PLACE("__shfl_xor"), 0, v, sim_from_other(__VA_ARGS__))
#define __ballot(p)         sim_ballot(SIM_PLACE("__ballot"), 0, (p) != 0)
#define __any(p)            ((int)(sim_ballot(SIM_PLACE("__any"), 0, (p) != 0) != 0))
#define __all(p)            sim_all(SIM_PLACE("__all"), 0, (p) != 0)
static inline unsigned __lane_id() {
  return sim_lane_number();
}
#endif

/* ---------------------------------------------------------------------------------------------------------------------
 * Atomic operations, in any memory. Blocks run in several threads of the host, so they must be.
 */

template <typename T, typename F> static inline T sim_update(T *address, F next) {
  T old, fresh;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  do {
    fresh = next(old);
  } while (!__atomic_compare_exchange(address, &old, &fresh, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  return old;
}

#define SIM_ATOMIC(T, name, expression)                                                                                \
  static inline T name(T *address, T value) {                                                                          \
    return sim_update(address, [value](T old) -> T { return expression; });                                            \
  }
#define SIM_ATOMICS(T)                                                                                                 \
  SIM_ATOMIC(T, atomicAdd, old + value)                                                                                \
  SIM_ATOMIC(T, atomicMin, old < value ? old : value)                                                                  \
  SIM_ATOMIC(T, atomicMax, old > value ? old : value)                                                                  \
  SIM_ATOMIC(T, atomicExch, (void(old), value))                                                                        \
  SIM_ATOMIC(T, atomicAnd, old &value)                                                                                 \
  SIM_ATOMIC(T, atomicOr, old | value)                                                                                 \
  SIM_ATOMIC(T, atomicXor, old ^ value)                                                                                \
  static inline T atomicCAS(T *address, T compare, T value) {                                                          \
    return sim_update(address, [=](T old) { return old == compare ? value : old; });                                   \
  }

SIM_ATOMICS(int)
SIM_ATOMICS(unsigned)
SIM_ATOMICS(unsigned long long)
SIM_ATOMIC(int, atomicSub, old - value)
SIM_ATOMIC(unsigned, atomicSub, old - value)
SIM_ATOMIC(unsigned, atomicInc, old >= value ? 0 : old + 1)
SIM_ATOMIC(unsigned, atomicDec, old == 0 || old > value ? value : old - 1)
SIM_ATOMIC(float, atomicAdd, old + value)
SIM_ATOMIC(double, atomicAdd, old + value)
SIM_ATOMIC(float, atomicExch, (void(old), value))

/* ---------------------------------------------------------------------------------------------------------------------
 * How a launch calls a kernel: one sim_run per kernel, which knows the types of its arguments
 */

template <typename T> struct sim_kind {
  static constexpr sim_argument_kind value = sizeof(T) >= 8 ? SIM_ARGUMENT_WORDS : SIM_ARGUMENT_VALUE;
};
template <typename T> struct sim_kind<T *> { static constexpr sim_argument_kind value = SIM_ARGUMENT_POINTER; };

template <unsigned... i> struct sim_numbers {};
template <unsigned n, unsigned... i> struct sim_up_to : sim_up_to<n - 1, n - 1, i...> {};
template <unsigned... i> struct sim_up_to<0, i...> { typedef sim_numbers<i...> type; };

template <typename... T> struct sim_layout {
  static constexpr unsigned count = sizeof...(T);
  sim_argument argument[count + 1];
  unsigned bytes;
  constexpr sim_layout() : argument{}, bytes(0) {
    unsigned i = 0;
    (void)((place(i++, sizeof(T), alignof(T), sim_kind<T>::value), 0) + ... + 0);
  }
  constexpr void place(unsigned i, unsigned size, unsigned alignment, sim_argument_kind kind) {
    unsigned offset = (bytes + alignment - 1) / alignment * alignment;
    argument[i] = {offset, size, kind};
    bytes = offset + size;
  }
};

template <auto kernel> struct sim_kernel_of;
template <typename... T, void (*kernel)(T...)> struct sim_kernel_of<kernel> {
  static constexpr sim_layout<T...> layout{};
  static_assert(layout.bytes <= SIM_ARGUMENT_BYTES, "the arguments of a kernel are too many");

  template <unsigned... i> static inline void run_with(const unsigned char *arguments, sim_numbers<i...>) {
    sim_block &block = sim_current;
    while (block.next < block.count) {
      block.thread = block.order[block.next++];
      kernel(*(const T *)(arguments + layout.argument[i].offset)...);
      block.ended[block.thread.number] = true;
    }
  }
  static void run(const unsigned char *arguments) { run_with(arguments, typename sim_up_to<sizeof...(T)>::type{}); }

  static constexpr sim_entry entry(const char *name, const void *function, unsigned thread_limit = 0, unsigned = 0,
                                   unsigned = 0) {
    return {name, function, run, layout.argument, layout.count, layout.bytes, thread_limit};
  }
};

static sim_block *sim_this_block() {
  return &sim_current;
}
