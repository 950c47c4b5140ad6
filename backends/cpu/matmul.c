/* SPDX-License-Identifier: Apache-2.0 */
/* matmul: products of the last two axes, batches broadcast. Each part of the team computes a rectangle of the result by
 * a product of its own, single-threaded, then adds the bias and applies the activation to it. Halves are widened to a
 * workspace and computed in float32. */
#include "cpu.h"

#include <limits.h>
#include <string.h>

#define MATMUL_TYPES CALL_ARITHMETIC_TYPES

/* Multiplications that one part should have at least: about what waking a thread costs. */
#define PART_WORK ((size_t)1 << 20)

/* Bytes that one part should have at least to read where there is little to multiply with them. */
#define PART_BYTES ((size_t)512 << 10)

/* Rectangles are cut at multiples of this, so that the inner kernels of a BLAS have no rest. */
#define CUT 16

typedef struct matmul_plan {
  helio_plan base;
  helio_type type, compute; /* of the arguments; of the arithmetic */
  size_t element;           /* of the arithmetic */
  size_t m, n, k;
  bool transpose_a, transpose_b, bias, blas;
  uint32_t activation; /* helio_activation; 0: none */
  bool has_bias_place; /* there is a third input, be it absent */
  size_t batches;
  uint32_t batch_rank;
  size_t extent[HELIO_MAX_RANK];    /* batch axes, from the innermost */
  size_t step[2][HELIO_MAX_RANK];   /* of a and b, in matrices; 0 where repeated */
  size_t count[2];                  /* matrices in a and b */
  unsigned row_parts, column_parts; /* how one product is cut; 1, 1: batches are shared out */
  size_t block_rows;                /* rows that are finished before the next are begun */
} matmul_plan;

typedef struct matmul_work {
  const matmul_plan *plan;
  const unsigned char *operand[2], *bias; /* as they are computed with */
  unsigned char *c;                       /* the result as it is computed */
  const unsigned char *given[3];          /* halves: as they were given, and */
  unsigned char *y;                       /* the result as it was asked for */
} matmul_work;

static bool is_half(helio_type type) {
  return type == HELIO_FLOAT16 || type == HELIO_BFLOAT16;
}

/* The extent of a batch axis, counted from the right, in an operand; those it does not have count as 1. */
static int64_t batch_extent(const helio_argument *x, uint32_t from_right) {
  return from_right + 2 < x->rank ? x->extent[x->rank - 3 - from_right] : 1;
}

static bool batches_fit(const helio_argument *a, const helio_argument *b, const helio_argument *y) {
  uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
  if (y->rank != rank) return false;
  for (uint32_t i = 0; i + 2 < rank; i++) {
    int64_t in_a = batch_extent(a, i), in_b = batch_extent(b, i);
    if (y->extent[rank - 3 - i] != (in_a == 1 ? in_b : in_a) || (in_a != in_b && in_a != 1 && in_b != 1)) return false;
  }
  return true;
}

static bool shapes_fit(matmul_plan *plan, const helio_argument *a, const helio_argument *b, const helio_argument *bias,
                       const helio_argument *y) {
  if (a->rank < 2 || b->rank < 2 || y->rank < 2 || !batches_fit(a, b, y)) return false;
  const int64_t *of_a = a->extent + a->rank - 2, *of_b = b->extent + b->rank - 2, *of_y = y->extent + y->rank - 2;
  plan->m = (size_t)of_a[plan->transpose_a];
  plan->k = (size_t)of_a[!plan->transpose_a];
  plan->n = (size_t)of_b[!plan->transpose_b];
  if (plan->k != (size_t)of_b[plan->transpose_b]) return false;
  if (bias != NULL && (bias->rank != 1 || (size_t)bias->extent[0] != plan->n)) return false;
  return plan->m == (size_t)of_y[0] && plan->n == (size_t)of_y[1];
}

static void arrange_batches(matmul_plan *plan, const helio_argument *const operands[2], const helio_argument *y) {
  plan->batch_rank = y->rank - 2;
  plan->batches = 1;
  for (int o = 0; o < 2; o++) plan->count[o] = 1;
  for (uint32_t i = 0; i < plan->batch_rank; i++) {
    plan->extent[i] = (size_t)y->extent[y->rank - 3 - i];
    plan->batches *= plan->extent[i];
    for (int o = 0; o < 2; o++) {
      size_t extent = (size_t)batch_extent(operands[o], i);
      plan->step[o][i] = extent == 1 ? 0 : plan->count[o];
      plan->count[o] *= extent;
    }
  }
  /* One matrix b for all: the rows of all batches of a are the rows of one product. */
  if (plan->count[1] == 1 && plan->count[0] == plan->batches && !plan->transpose_a) {
    plan->m *= plan->batches;
    plan->batches = plan->count[0] = 1;
    plan->batch_rank = 0;
  }
}

/* Batches are shared out where there are enough of them. Else each product is cut into a grid, chosen so that the parts
 * have the least of a and b to read. */
static void choose_grid(matmul_plan *plan) {
  size_t elements = plan->count[0] * plan->m * plan->k + plan->count[1] * plan->k * plan->n;
  size_t parts = plan->m * plan->n * plan->k * plan->batches / PART_WORK;
  if (parts < elements * plan->element / PART_BYTES) parts = elements * plan->element / PART_BYTES;
  unsigned threads = cpu_team_size(plan->base.device->team);
  if (parts > threads) parts = threads;
  plan->row_parts = plan->column_parts = 1;
  plan->base.parts = parts < 1 ? 1 : (unsigned)parts;
  if (parts <= 1 || plan->batches >= 4 * parts || plan->batches % parts == 0) return;
  size_t least = SIZE_MAX;
  for (unsigned rows = 1; rows <= parts; rows++) {
    if (parts % rows != 0) continue;
    unsigned columns = (unsigned)parts / rows;
    size_t reads = (plan->m + rows - 1) / rows + (plan->n + columns - 1) / columns;
    if (reads >= least) continue;
    least = reads;
    plan->row_parts = rows;
    plan->column_parts = columns;
  }
}

/* OpenBLAS counts in int. Longer matrices than that are left to our own code. */
static bool blas_can(const matmul_plan *plan) {
  const cpu_blas *blas = &plan->base.device->state->blas;
  if (blas->sgemm == NULL || (plan->compute != HELIO_FLOAT32 && plan->compute != HELIO_FLOAT64)) return false;
  return plan->m <= INT_MAX && plan->n <= INT_MAX && plan->k <= INT_MAX;
}

static size_t padded(size_t bytes) {
  return (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

/* Bytes of the widened a, b, bias and result. */
static size_t workspace_bytes(const matmul_plan *plan, size_t bytes[4]) {
  bytes[0] = padded(plan->count[0] * plan->m * plan->k * plan->element);
  bytes[1] = padded(plan->count[1] * plan->k * plan->n * plan->element);
  bytes[2] = plan->bias ? padded(plan->n * plan->element) : 0;
  bytes[3] = padded(plan->batches * plan->m * plan->n * plan->element);
  return bytes[0] + bytes[1] + bytes[2] + bytes[3];
}

static helio_status check_attributes(helio_backend_device *device, const helio_matmul_attributes *attributes,
                                     uint32_t type) {
  const helio_host *host = device->host;
  if (attributes->reserved != 0) return host->fail(host, HELIO_NOT_SUPPORTED, "MATMUL: a reserved attribute is set");
  if (attributes->transpose_a > 1 || attributes->transpose_b > 1)
    return host->fail(host, HELIO_INVALID_ARGUMENT, "MATMUL: transposes are 0 or 1");
  bool real = type != HELIO_INT32 && type != HELIO_INT64;
  if (attributes->activation > (real ? HELIO_GELU_TANH : HELIO_RELU))
    return host->fail(host, HELIO_NOT_SUPPORTED, "MATMUL: activation %u is unknown here", attributes->activation);
  return HELIO_OK;
}

static void fill_plan(matmul_plan *plan, const helio_argument *const operands[2], const helio_argument *y) {
  plan->type = (helio_type)y->type;
  plan->compute = is_half(plan->type) ? HELIO_FLOAT32 : plan->type;
  plan->element = call_type_size(plan->compute);
  arrange_batches(plan, operands, y);
  plan->base.empty = plan->m == 0 || plan->n == 0 || plan->batches == 0;
  choose_grid(plan);
  plan->blas = blas_can(plan);
  /* What follows the product is done to a block while it is still near, but a block has to be long enough to be worth
   * that the product packs b for it anew. */
  size_t row = plan->n * plan->element, near = row == 0 ? 1 : ((size_t)1 << 20) / row;
  plan->block_rows = near < 1024 ? 1024 : near / CUT * CUT;
  if (!plan->bias && plan->activation == 0 && !is_half(plan->type)) plan->block_rows = SIZE_MAX;
}

static helio_status matmul_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {"TTt", "T", MATMUL_TYPES};
  helio_matmul_attributes attributes;
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = cpu_call_attributes(device, call, &attributes, sizeof attributes);
  if (status == HELIO_OK) status = check_attributes(device, &attributes, call_output(call)->type);
  if (status != HELIO_OK) return status;
  const helio_argument *const operands[2] = {call_input(call, 0), call_input(call, 1)};
  const helio_argument *bias = call->input_count > 2 ? call_input(call, 2) : NULL;
  matmul_plan *plan = (matmul_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->transpose_a = attributes.transpose_a == 1;
  plan->transpose_b = attributes.transpose_b == 1;
  plan->bias = bias != NULL;
  plan->activation = attributes.activation == HELIO_LINEAR ? 0 : attributes.activation;
  if (!shapes_fit(plan, operands[0], operands[1], bias, call_output(call))) {
    cpu_plan_free(&plan->base);
    return host->fail(host, HELIO_INVALID_ARGUMENT, "MATMUL: the shapes do not fit each other");
  }
  fill_plan(plan, operands, call_output(call));
  plan->has_bias_place = call->input_count > 2;
  size_t bytes[4];
  answer->plan = &plan->base;
  answer->workspace = is_half(plan->type) && !plan->base.empty ? workspace_bytes(plan, bytes) : 0;
  return HELIO_OK;
}

/* The sum of no products is zero. */
static void multiply_nothing(const matmul_plan *plan, const cpu_product *p) {
  for (size_t i = 0; i < p->m; i++)
    memset((unsigned char *)p->c + i * p->c_stride * plan->element, 0, p->n * plan->element);
}

/* Bias, activation and narrowing of a rectangle whose first element has number `first`. */
static void finish_rectangle(const matmul_work *work, const cpu_product *p, size_t column, size_t first) {
  const matmul_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  const unsigned char *bias = plan->bias ? work->bias + column * plan->element : NULL;
  size_t narrow = call_type_size(plan->type);
  if (bias != NULL || plan->activation != 0)
    vector->epilogue(plan->compute, plan->activation, p->c, p->c_stride, p->m, p->n, bias);
  for (size_t i = 0; i < p->m && work->y != work->c; i++) {
    const unsigned char *row = (const unsigned char *)p->c + i * p->c_stride * plan->element;
    vector->cast(plan->type, plan->compute, work->y + (first + i * plan->n) * narrow, row, p->n);
  }
}

static size_t batch_offset(const matmul_plan *plan, int operand, size_t batch) {
  size_t offset = 0;
  for (uint32_t i = 0; i < plan->batch_rank; i++) {
    offset += batch % plan->extent[i] * plan->step[operand][i];
    batch /= plan->extent[i];
  }
  return offset;
}

/* One rectangle of one product. */
static void rectangle(const matmul_work *work, size_t batch, cpu_range rows, cpu_range columns) {
  const matmul_plan *plan = work->plan;
  size_t m = plan->m, n = plan->n, k = plan->k, element = plan->element;
  size_t first = batch * m * n + rows.begin * n + columns.begin;
  cpu_product p = {.transpose_a = plan->transpose_a,
                   .transpose_b = plan->transpose_b,
                   .m = rows.end - rows.begin,
                   .n = columns.end - columns.begin,
                   .k = k,
                   .c = work->c + first * element,
                   .a_stride = plan->transpose_a ? m : k,
                   .b_stride = plan->transpose_b ? k : n,
                   .c_stride = n};
  if (k == 0) {
    multiply_nothing(plan, &p);
  } else {
    size_t a = batch_offset(plan, 0, batch) * m * k + rows.begin * (plan->transpose_a ? 1 : k);
    size_t b = batch_offset(plan, 1, batch) * k * n + columns.begin * (plan->transpose_b ? k : 1);
    p.a = work->operand[0] + a * element;
    p.b = work->operand[1] + b * element;
    if (plan->blas) {
      cpu_blas_multiply(&plan->base.device->state->blas, plan->compute, &p);
    } else {
      plan->base.device->vector->product(plan->compute, &p);
    }
  }
  if (plan->bias || plan->activation != 0 || work->y != work->c) finish_rectangle(work, &p, columns.begin, first);
}

static void matmul_part(void *argument, unsigned part, unsigned parts) {
  const matmul_work *work = argument;
  const matmul_plan *plan = work->plan;
  bool grid = plan->row_parts * plan->column_parts > 1;
  cpu_range batches = grid ? (cpu_range){0, plan->batches} : cpu_part_range(plan->batches, 1, part, parts);
  cpu_range rows = cpu_part_range(plan->m, CUT, part / plan->column_parts % plan->row_parts, plan->row_parts);
  cpu_range columns = cpu_part_range(plan->n, CUT, part % plan->column_parts, plan->column_parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t batch = batches.begin; batch < batches.end; batch++) {
    for (size_t row = rows.begin; row < rows.end && columns.begin < columns.end;) {
      size_t some = rows.end - row < plan->block_rows ? rows.end - row : plan->block_rows;
      rectangle(work, batch, (cpu_range){row, row + some}, columns);
      row += some;
    }
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

/* Widens this part's share of a, b and bias. */
static void widen_part(void *argument, unsigned part, unsigned parts) {
  const matmul_work *work = argument;
  const matmul_plan *plan = work->plan;
  const size_t counts[3] = {plan->count[0] * plan->m * plan->k, plan->count[1] * plan->k * plan->n,
                            plan->bias ? plan->n : 0};
  const unsigned char *targets[3] = {work->operand[0], work->operand[1], work->bias};
  for (int i = 0; i < 3; i++) {
    cpu_range range = cpu_part_range(counts[i], 64, part, parts);
    if (range.begin == range.end) continue;
    plan->base.device->vector->cast(plan->compute, plan->type,
                                    (unsigned char *)targets[i] + range.begin * plan->element,
                                    work->given[i] + range.begin * call_type_size(plan->type), range.end - range.begin);
  }
}

static helio_status use_workspace(matmul_work *work, const helio_run *run) {
  const helio_host *host = work->plan->base.device->host;
  unsigned char *at = cpu_run_workspace(run);
  if (at == NULL) return host->fail(host, HELIO_INVALID_ARGUMENT, "MATMUL: the workspace is missing");
  size_t bytes[4];
  workspace_bytes(work->plan, bytes);
  work->operand[0] = at;
  work->operand[1] = at += bytes[0];
  work->bias = at += bytes[1];
  work->c = at + bytes[2];
  return HELIO_OK;
}

static helio_status matmul_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const matmul_plan *plan = (const matmul_plan *)base;
  matmul_work work = {.plan = plan};
  for (int i = 0; i < 2; i++) work.given[i] = work.operand[i] = cpu_run_address(run, (size_t)i);
  if (plan->bias) work.given[2] = work.bias = cpu_run_address(run, 2);
  work.y = work.c = cpu_run_address(run, plan->has_bias_place ? 3 : 2);
  if (is_half(plan->type)) {
    status = use_workspace(&work, run);
    if (status != HELIO_OK) return status;
    cpu_plan_execute(base, widen_part, &work);
  }
  cpu_plan_execute(base, matmul_part, &work);
  return HELIO_OK;
}

const helio_kernel cpu_kernel_matmul = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_MATMUL,
    .types = MATMUL_TYPES,
    .plan = matmul_plan_make,
    .run = matmul_run,
    .plan_free = cpu_plan_free,
};
