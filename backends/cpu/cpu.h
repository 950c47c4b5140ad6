/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the CPU backend share: its objects and small helpers of plans and runs. */
#ifndef CPU_H
#define CPU_H

#include <helio/plugin.h>

#include "../common/call.h"
#include "blas.h"
#include "machine.h"
#include "team.h"
#include "vector.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* Alignment of allocations: a cache line, and the widest vector there is. */
#define CPU_ALIGNMENT 64

struct helio_plugin_state {
  const helio_host *host;
  const cpu_vector_table *vector;
  cpu_blas blas;
  cpu_machine machine;
  char architecture[64];
  char property_text[4][512];
  const char *properties[5];
};

struct helio_backend_device {
  const helio_host *host;
  helio_plugin_state *state;
  const cpu_vector_table *vector;
  cpu_team *team;
};

struct helio_buffer {
  unsigned char *data;
  size_t bytes;  /* as asked for; a canary follows */
  size_t mapped; /* bytes of the mapping; 0 if the memory came from host->allocate */
};

/* The beginning of every kernel's plan. */
struct helio_plan {
  helio_backend_device *device;
  unsigned parts; /* into how many the work is cut: depends on shapes and the size of the team only */
  bool empty;     /* the output has no elements: nothing to do */
};

/* --- device.c, stream.c, memory.c: the device vtable --- */
extern const helio_device_table cpu_device_table;
extern const helio_memory_table cpu_memory_table;
extern const helio_stream_table cpu_stream_table;

/* --- kernels.c: the kernel vtable and what plans have in common --- */
extern const helio_kernel_table cpu_kernel_table;

extern const helio_kernel cpu_kernel_cast;
extern const helio_kernel cpu_kernel_slice;
extern const helio_kernel cpu_kernel_concat;
extern const helio_kernel cpu_kernel_add;
extern const helio_kernel cpu_kernel_sub;
extern const helio_kernel cpu_kernel_mul;
extern const helio_kernel cpu_kernel_div;
extern const helio_kernel cpu_kernel_pow;
extern const helio_kernel cpu_kernel_maximum;
extern const helio_kernel cpu_kernel_minimum;
extern const helio_kernel cpu_kernel_equal;
extern const helio_kernel cpu_kernel_not_equal;
extern const helio_kernel cpu_kernel_less;
extern const helio_kernel cpu_kernel_less_equal;
extern const helio_kernel cpu_kernel_greater;
extern const helio_kernel cpu_kernel_greater_equal;
extern const helio_kernel cpu_kernel_where;
extern const helio_kernel cpu_kernel_add_n;
extern const helio_kernel cpu_kernel_sum;
extern const helio_kernel cpu_kernel_matmul;
extern const helio_kernel cpu_kernel_relu;
extern const helio_kernel cpu_kernel_conv2d;
extern const helio_kernel cpu_kernel_conv2d_grad_input;
extern const helio_kernel cpu_kernel_conv2d_grad_kernel;
extern const helio_kernel cpu_kernel_max_pool;
extern const helio_kernel cpu_kernel_max_pool_grad;
extern const helio_kernel cpu_kernel_average_pool;
extern const helio_kernel cpu_kernel_average_pool_grad;
extern const helio_kernel cpu_kernel_neg;
extern const helio_kernel cpu_kernel_abs;
extern const helio_kernel cpu_kernel_square;
extern const helio_kernel cpu_kernel_sqrt;
extern const helio_kernel cpu_kernel_rsqrt;
extern const helio_kernel cpu_kernel_exp;
extern const helio_kernel cpu_kernel_log;
extern const helio_kernel cpu_kernel_clip;
extern const helio_kernel cpu_kernel_sigmoid;
extern const helio_kernel cpu_kernel_tanh;
extern const helio_kernel cpu_kernel_softplus;
extern const helio_kernel cpu_kernel_swish;
extern const helio_kernel cpu_kernel_gelu;
extern const helio_kernel cpu_kernel_elu;
extern const helio_kernel cpu_kernel_leaky_relu;
extern const helio_kernel cpu_kernel_activation_grad;
extern const helio_kernel cpu_kernel_random_bits;
extern const helio_kernel cpu_kernel_random_uniform;
extern const helio_kernel cpu_kernel_random_normal;
extern const helio_kernel cpu_kernel_dropout;
extern const helio_kernel cpu_kernel_softmax;
extern const helio_kernel cpu_kernel_log_softmax;
extern const helio_kernel cpu_kernel_softmax_grad;
extern const helio_kernel cpu_kernel_log_softmax_grad;
extern const helio_kernel cpu_kernel_sparse_cross_entropy;
extern const helio_kernel cpu_kernel_cross_entropy;
extern const helio_kernel cpu_kernel_transpose;
extern const helio_kernel cpu_kernel_pad;
extern const helio_kernel cpu_kernel_gather;
extern const helio_kernel cpu_kernel_scatter_add;
extern const helio_kernel cpu_kernel_one_hot;
extern const helio_kernel cpu_kernel_combine_rows;
extern const helio_kernel cpu_kernel_mean;
extern const helio_kernel cpu_kernel_max;
extern const helio_kernel cpu_kernel_min;
extern const helio_kernel cpu_kernel_argmax;
extern const helio_kernel cpu_kernel_top_k;
extern const helio_kernel cpu_kernel_in_top_k;
extern const helio_kernel cpu_kernel_moments;
extern const helio_kernel cpu_kernel_normalize;
extern const helio_kernel cpu_kernel_normalize_grad_sums;
extern const helio_kernel cpu_kernel_normalize_grad_input;
extern const helio_kernel cpu_kernel_layer_norm;
extern const helio_kernel cpu_kernel_layer_norm_grad;
extern const helio_kernel cpu_kernel_sgd_update;
extern const helio_kernel cpu_kernel_adam_update;
extern const helio_kernel cpu_kernel_nadam_update;
extern const helio_kernel cpu_kernel_rmsprop_update;
extern const helio_kernel cpu_kernel_adagrad_update;

/* As call_check and call_attributes. */
static inline helio_status cpu_call_check(helio_backend_device *device, const helio_call *call,
                                          const helio_plan_answer *answer, const call_signature *signature) {
  return call_check(device->host, "the CPU", call, answer, signature);
}
static inline helio_status cpu_call_attributes(helio_backend_device *device, const helio_call *call, void *known,
                                               size_t size) {
  return call_attributes(device->host, call, known, size);
}

/* A zeroed plan of `size` bytes that begins with a helio_plan; NULL, with the failure told, if there is no memory. */
helio_plan *cpu_plan_new(helio_backend_device *device, size_t size);
void cpu_plan_free(helio_plan *plan);

/* Into how many parts to cut work that touches so many bytes: waking the team costs about as much as 128 KB of it. */
unsigned cpu_parts_for_bytes(const helio_backend_device *device, size_t bytes);

/* The piece of `count` items that is `part`'s, cut at multiples of `grain`. */
typedef struct cpu_range {
  size_t begin, end;
} cpu_range;
cpu_range cpu_part_range(size_t count, size_t grain, unsigned part, unsigned parts);

static inline helio_status cpu_run_check(const helio_plan *plan, const helio_run *run) {
  return run_check(plan->device->host, run);
}

static inline unsigned char *cpu_place_address(helio_place place) {
  return place.buffer == NULL ? NULL : place.buffer->data + place.offset;
}

static inline unsigned char *cpu_run_address(const helio_run *run, size_t index) {
  return cpu_place_address(run_place(run, index));
}

/* NULL if the core gave no workspace. */
static inline unsigned char *cpu_run_workspace(const helio_run *run) {
  return cpu_place_address(run_workspace(run));
}

/* Reports bad data, unless some was reported before: see helio_status_word. Call it from one thread of a run. */
static inline void cpu_run_report(const helio_run *run, uint32_t operation, int64_t value) {
  helio_status_word *word = (helio_status_word *)cpu_place_address(run->status);
  uint32_t none = 0;
  if (word == NULL || !__atomic_compare_exchange_n(&word->code, &none, (uint32_t)HELIO_BAD_DATA, false,
                                                   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return;
  word->operation = operation;
  word->value = value;
}

/* Runs a kernel's parts. One part, the usual case of small work, costs one call and nobody is woken. */
static inline void cpu_plan_execute(const helio_plan *plan, cpu_team_function *function, void *argument) {
  if (plan->parts <= 1) {
    function(argument, 0, 1);
  } else {
    cpu_team_run(plan->device->team, plan->parts, function, argument);
  }
}

/* Floating-point modes. Arithmetic flushes denormal numbers to zero, which costs hundreds of cycles each otherwise;
 * casts do not, for there they are values like others. Both round to nearest with all exceptions masked, whatever the
 * caller has set, so that results do not depend on the thread. What the caller had is restored. Other processors than
 * x86 are left as they are. */
#define CPU_FLOAT_FLUSH 0x9fc0u
#define CPU_FLOAT_EXACT 0x1f80u

static inline unsigned cpu_float_begin(unsigned mode) {
#if defined(__x86_64__)
  unsigned saved = _mm_getcsr();
  if (saved != mode) _mm_setcsr(mode);
  return saved;
#else
  return mode;
#endif
}

static inline void cpu_float_end(unsigned mode, unsigned saved) {
#if defined(__x86_64__)
  if (saved != mode) _mm_setcsr(saved);
#else
  (void)mode;
  (void)saved;
#endif
}

#endif
