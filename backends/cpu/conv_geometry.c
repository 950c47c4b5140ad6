/* SPDX-License-Identifier: Apache-2.0 */
/* The geometry of convolutions, and tiles of the matrix of columns: made of x, added back to x. */
#include "conv.h"

#include <limits.h>
#include <string.h>

/* Bytes of a tile and of the rows of y that belong to it: small tiles stay near, and small products OpenBLAS makes
 * without packing, which is faster (up to about a million multiplications). But where it does pack the kernel, anew for
 * each tile, that should be little beside the product: for ENOUGH_ROWS rows a tile may have the larger size. It has
 * more only if a single position and tap do. */
#define NEAR_BYTES  ((size_t)128 << 10)
#define MOST_BYTES  ((size_t)512 << 10)
#define ENOUGH_ROWS ((size_t)128)

/* Multiplications that one part should have at least: about what waking a thread costs. */
#define PART_WORK 0x1p20

/* How many places a window has along one axis; −1 if none. Extents are bounded first, so that nothing overflows. */
static int64_t places(int64_t input, uint32_t before, uint32_t behind, int64_t window, uint32_t stride,
                      uint32_t dilation) {
  if (input > INT64_MAX / 4 || window < 1 || window > INT32_MAX || stride < 1 || dilation < 1) return -1;
  int64_t span = (window - 1) * (int64_t)dilation + 1, room = input + before + behind;
  return span > room ? -1 : (room - span) / stride + 1;
}

static bool shapes_fit(const helio_argument *x, const helio_argument *kernel, const helio_argument *y,
                       const helio_conv2d_attributes *how) {
  if (x->rank != 4 || kernel->rank != 4 || y->rank != 4 || how->groups < 1) return false;
  if (x->extent[3] % how->groups != 0 || kernel->extent[2] != x->extent[3] / how->groups) return false;
  if (kernel->extent[3] % how->groups != 0 || kernel->extent[3] != y->extent[3]) return false;
  for (int i = 0; i < 2; i++) {
    int64_t found = places(x->extent[1 + i], how->padding[2 * i], how->padding[2 * i + 1], kernel->extent[i],
                           how->stride[i], how->dilation[i]);
    if (found < 0 || y->extent[1 + i] != found) return false;
  }
  return y->extent[0] == x->extent[0];
}

/* How large a tile is: as many positions as there is room for, and of a very large kernel only some taps. */
static void choose_tile(cpu_conv *conv) {
  size_t each = conv->element + (conv->half ? conv->stored : 0);
  size_t tap = conv->group_in * each, row = conv->out_channels * conv->element;
  size_t taps = tap == 0 ? conv->taps : MOST_BYTES / tap;
  conv->tile_taps = taps < 1 ? 1 : taps < conv->taps ? taps : conv->taps;
  size_t each_row = conv->tile_taps * tap + row + 1, rows = NEAR_BYTES / each_row, most = MOST_BYTES / each_row;
  if (rows < ENOUGH_ROWS) rows = most < ENOUGH_ROWS ? most : ENOUGH_ROWS;
  if (rows > 16) rows = rows / 16 * 16;
  if (rows > conv->positions) rows = conv->positions;
  conv->tile_rows = rows < 1 ? 1 : rows;
  size_t elements = conv->tile_rows * conv->tile_taps * conv->group_in;
  conv->tile_bytes = cpu_conv_padded(elements * conv->element);
  conv->gathered_bytes = conv->half ? cpu_conv_padded(elements * conv->stored) : 0;
  conv->rows_bytes = conv->half ? cpu_conv_padded(conv->tile_rows * row) : 0;
}

/* OpenBLAS counts in int. What is longer is left to our own product. */
static bool blas_can(const helio_backend_device *device, const cpu_conv *conv) {
  if (device->state->blas.sgemm == NULL || conv->channels > INT_MAX || conv->out_channels > INT_MAX) return false;
  return conv->tile_rows <= INT_MAX && conv->group_in <= INT_MAX / conv->tile_taps;
}

static void describe_type(cpu_conv *conv, helio_type type) {
  conv->type = type;
  conv->half = type == HELIO_FLOAT16 || type == HELIO_BFLOAT16;
  conv->compute = conv->half ? HELIO_FLOAT32 : type;
  conv->stored = call_type_size(type);
  conv->element = call_type_size(conv->compute);
}

helio_status cpu_conv_describe(helio_backend_device *device, const helio_call *call, const helio_argument *x,
                               const helio_argument *kernel, const helio_argument *y,
                               const helio_conv2d_attributes *how, cpu_conv *conv) {
  const helio_host *host = device->host;
  if (!shapes_fit(x, kernel, y, how))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "CONV2D: the shapes do not fit each other and the attributes");
  describe_type(conv, (helio_type)call_input(call, 0)->type);
  conv->images = (size_t)x->extent[0];
  conv->height = (size_t)x->extent[1];
  conv->width = (size_t)x->extent[2];
  conv->channels = (size_t)x->extent[3];
  conv->out_height = (size_t)y->extent[1];
  conv->out_width = (size_t)y->extent[2];
  conv->out_channels = (size_t)y->extent[3];
  conv->groups = how->groups;
  conv->group_in = conv->channels / conv->groups;
  conv->group_out = conv->out_channels / conv->groups;
  for (int i = 0; i < 2; i++) {
    conv->kernel[i] = (size_t)kernel->extent[i];
    conv->stride[i] = how->stride[i];
    conv->dilation[i] = how->dilation[i];
    conv->before[i] = how->padding[2 * i];
  }
  conv->taps = conv->kernel[0] * conv->kernel[1];
  conv->positions = conv->images * conv->out_height * conv->out_width;
  bool padded = (how->padding[0] | how->padding[1] | how->padding[2] | how->padding[3]) != 0;
  conv->pointwise = conv->taps == 1 && conv->stride[0] == 1 && conv->stride[1] == 1 && !padded;
  conv->depthwise = conv->groups > 1 && conv->group_in == 1 && conv->group_out > 0;
  choose_tile(conv);
  conv->blas = blas_can(device, conv);
  return HELIO_OK;
}

unsigned cpu_conv_parts(const helio_backend_device *device, const cpu_conv *conv, size_t units) {
  double work = (double)conv->positions * (double)(conv->taps * conv->group_in) * (double)conv->out_channels;
  size_t threads = cpu_team_size(device->team), parts = threads;
  if (work < PART_WORK * (double)threads) parts = (size_t)(work / PART_WORK);
  if (parts > units) parts = units;
  return parts < 1 ? 1 : (unsigned)parts;
}

size_t cpu_conv_padded(size_t bytes) {
  return (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

helio_status cpu_conv_workspace(helio_backend_device *device, unsigned parts, size_t each, size_t shared,
                                size_t *workspace) {
  size_t bytes;
  if (__builtin_mul_overflow(parts, each, &bytes) || __builtin_add_overflow(bytes, shared, &bytes))
    return device->host->fail(device->host, HELIO_NOT_SUPPORTED, "CONV2D: the workspace does not fit in memory");
  *workspace = bytes;
  return HELIO_OK;
}

/* --- columns --- */

/* Positions of one row of the output, from `begin` to before `end`, and the rows of the tile that are theirs. */
typedef struct segment {
  size_t image, row, begin, end;
  size_t first; /* row of the tile */
} segment;

static segment segment_at(const cpu_conv *conv, const cpu_range *positions, size_t at) {
  size_t column = at % conv->out_width, row = at / conv->out_width, left = positions->end - at;
  segment s = {.image = row / conv->out_height, .row = row % conv->out_height, .first = at - positions->begin};
  s.begin = column;
  s.end = left < conv->out_width - column ? column + left : conv->out_width;
  return s;
}

/* A run: neighbouring taps of one kernel row which lie side by side in x too, for all positions of a segment. */
typedef struct run {
  size_t taps;
  int64_t start; /* the column of x that the first tap has for the position in column 0 of y */
  size_t source; /* the first element of x's row, in this group */
  size_t target; /* the first element in the tile's row */
} run;

typedef struct columns_work {
  const helio_plan *plan;
  const cpu_conv *conv;
  const cpu_tile *tile;
  const unsigned char *x; /* gather */
  unsigned char *columns;
  unsigned char *sum; /* scatter: x of one image */
  const unsigned char *addend;
  size_t stride; /* elements of a row of the tile */
} columns_work;

typedef void run_function(const columns_work *work, const segment *s, const run *r, bool inside);

/* Calls `each` for all runs of a tile, one segment of positions after the other; for those in the padding above or
 * below x with `inside` false. */
static void for_each_run(const columns_work *work, run_function *each) {
  const cpu_conv *conv = work->conv;
  const cpu_tile *tile = work->tile;
  size_t width = conv->kernel[1], image = conv->height * conv->width * conv->channels;
  bool joined = conv->dilation[1] == 1 && conv->groups == 1;
  for (size_t at = tile->positions.begin; at < tile->positions.end;) {
    segment s = segment_at(conv, &tile->positions, at);
    at += s.end - s.begin;
    for (size_t tap = tile->taps.begin; tap < tile->taps.end;) {
      size_t column = tap % width, left = tile->taps.end - tap;
      size_t taps = !joined ? 1 : left < width - column ? left : width - column;
      int64_t row = (int64_t)(s.row * conv->stride[0] + tap / width * conv->dilation[0]) - (int64_t)conv->before[0];
      bool inside = row >= 0 && (size_t)row < conv->height;
      run r = {.taps = taps, .target = (tap - tile->taps.begin) * conv->group_in};
      r.start = (int64_t)(column * conv->dilation[1]) - (int64_t)conv->before[1];
      if (inside)
        r.source = (work->sum == NULL ? s.image * image : 0) + (size_t)row * conv->width * conv->channels +
                   tile->group * conv->group_in;
      each(work, &s, &r, inside);
      tap += taps;
    }
  }
}

/* The positions of a segment for which all taps of a run lie within x's row. */
static cpu_range whole_positions(const cpu_conv *conv, const segment *s, const run *r) {
  int64_t stride = (int64_t)conv->stride[1], last = (int64_t)conv->width - (int64_t)r->taps - r->start;
  int64_t begin = r->start >= 0 ? 0 : (-r->start + stride - 1) / stride, end = last < 0 ? 0 : last / stride + 1;
  if (begin < (int64_t)s->begin) begin = (int64_t)s->begin;
  if (begin > (int64_t)s->end) begin = (int64_t)s->end;
  if (end > (int64_t)s->end) end = (int64_t)s->end;
  return (cpu_range){(size_t)begin, (size_t)(end < begin ? begin : end)};
}

/* The taps of a run that lie within x's row for one position. */
static cpu_range taps_inside(const cpu_conv *conv, const run *r, size_t position) {
  int64_t start = r->start + (int64_t)(position * conv->stride[1]), taps = (int64_t)r->taps;
  int64_t begin = start < 0 ? -start : 0, end = (int64_t)conv->width - start;
  if (begin > taps) begin = taps;
  if (end > taps) end = taps;
  return (cpu_range){(size_t)begin, (size_t)(end < begin ? begin : end)};
}

/* `count` copies of `bytes`. For the smallest ones a call of memcpy would cost more than the copy. */
static void copy_strided(unsigned char *target, size_t target_step, const unsigned char *source, size_t source_step,
                         size_t bytes, size_t count) {
#define COPY_OF(size)                                                                                                  \
  case size:                                                                                                           \
    for (size_t i = 0; i < count; i++) memcpy(target + i * target_step, source + i * source_step, size);               \
    break;
  switch (bytes) {
    COPY_OF(4)
    COPY_OF(8)
    COPY_OF(12)
    COPY_OF(16)
    COPY_OF(20)
    COPY_OF(32)
    COPY_OF(64)
  default:
    for (size_t i = 0; i < count; i++) memcpy(target + i * target_step, source + i * source_step, bytes);
    break;
  }
#undef COPY_OF
}

/* One position at the edge: the taps outside are zeros. */
static void gather_edge(const columns_work *work, const run *r, size_t position, unsigned char *target) {
  const cpu_conv *conv = work->conv;
  size_t tap = conv->group_in * conv->stored;
  cpu_range taps = taps_inside(conv, r, position);
  memset(target, 0, r->taps * tap);
  if (taps.begin == taps.end) return;
  size_t column = (size_t)(r->start + (int64_t)(position * conv->stride[1]) + (int64_t)taps.begin);
  memcpy(target + taps.begin * tap, work->x + (r->source + column * conv->channels) * conv->stored,
         (taps.end - taps.begin) * tap);
}

static void gather_run(const columns_work *work, const segment *s, const run *r, bool inside) {
  const cpu_conv *conv = work->conv;
  size_t step = work->stride * conv->stored, bytes = r->taps * conv->group_in * conv->stored;
  unsigned char *target = work->columns + s->first * step + r->target * conv->stored;
  if (!inside) {
    for (size_t i = s->begin; i < s->end; i++, target += step) memset(target, 0, bytes);
    return;
  }
  cpu_range whole = whole_positions(conv, s, r);
  size_t i = s->begin;
  for (; i < whole.begin; i++, target += step) gather_edge(work, r, i, target);
  if (whole.begin < whole.end) {
    size_t column = (size_t)(r->start + (int64_t)(i * conv->stride[1]));
    copy_strided(target, step, work->x + (r->source + column * conv->channels) * conv->stored,
                 conv->stride[1] * conv->channels * conv->stored, bytes, whole.end - whole.begin);
    target += (whole.end - whole.begin) * step;
    i = whole.end;
  }
  for (; i < s->end; i++, target += step) gather_edge(work, r, i, target);
}

cpu_matrix cpu_conv_columns(const helio_plan *plan, const cpu_conv *conv, const cpu_tile *tile, const unsigned char *x,
                            unsigned char *scratch) {
  size_t rows = tile->positions.end - tile->positions.begin;
  if (conv->group_in == 0) return (cpu_matrix){NULL, 0};
  if (conv->pointwise && !conv->half) {
    size_t first = tile->positions.begin * conv->channels + tile->group * conv->group_in;
    return (cpu_matrix){x + first * conv->element, conv->channels};
  }
  size_t stride = (tile->taps.end - tile->taps.begin) * conv->group_in;
  columns_work work = {.plan = plan, .conv = conv, .tile = tile, .x = x, .columns = scratch, .stride = stride};
  for_each_run(&work, gather_run);
  return (cpu_matrix){cpu_conv_widen(plan, conv, scratch, rows * stride, scratch + conv->gathered_bytes), stride};
}

static void scatter_run(const columns_work *work, const segment *s, const run *r, bool inside) {
  const cpu_conv *conv = work->conv;
  const cpu_vector_table *vector = work->plan->device->vector;
  size_t step = work->stride * conv->element, channels = conv->group_in;
  if (!inside) return;
  cpu_range whole = whole_positions(conv, s, r);
  for (size_t i = s->begin; i < s->end;) {
    bool is_whole = i == whole.begin && whole.begin < whole.end;
    size_t count = is_whole ? whole.end - whole.begin : 1;
    cpu_range taps = taps_inside(conv, r, i);
    int64_t column = r->start + (int64_t)(i * conv->stride[1]) + (int64_t)taps.begin;
    if (taps.begin < taps.end)
      vector->add_rows(conv->compute, work->sum + (r->source + (size_t)column * conv->channels) * conv->element,
                       conv->stride[1] * conv->channels,
                       work->addend + (s->first + i - s->begin) * step +
                           (r->target + taps.begin * channels) * conv->element,
                       work->stride, count, (taps.end - taps.begin) * channels);
    i += count;
  }
}

void cpu_conv_scatter(const helio_plan *plan, const cpu_conv *conv, const cpu_tile *tile, unsigned char *x,
                      const unsigned char *columns) {
  size_t stride = (tile->taps.end - tile->taps.begin) * conv->group_in;
  columns_work work = {.plan = plan, .conv = conv, .tile = tile, .sum = x, .addend = columns, .stride = stride};
  for_each_run(&work, scatter_run);
}

/* --- products --- */

const unsigned char *cpu_conv_widen(const helio_plan *plan, const cpu_conv *conv, const unsigned char *given,
                                    size_t count, unsigned char *scratch) {
  if (!conv->half) return given;
  plan->device->vector->cast(conv->compute, conv->type, scratch, given, count);
  return scratch;
}

void cpu_conv_multiply(const helio_plan *plan, const cpu_conv *conv, const cpu_product *p) {
  if (p->m == 0 || p->n == 0 || (p->k == 0 && p->accumulate)) return;
  if (p->k == 0) {
    for (size_t i = 0; i < p->m; i++)
      memset((unsigned char *)p->c + i * p->c_stride * conv->element, 0, p->n * conv->element);
  } else if (conv->blas) {
    cpu_blas_multiply(&plan->device->state->blas, conv->compute, p);
  } else {
    plan->device->vector->product(conv->compute, p);
  }
}
