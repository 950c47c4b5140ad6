/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations. Dispatch, the tape, `helio ops` and the conformance check read it; adding an operation is
 * adding a row, its shape rule, its gradient and its kernels. */
#ifndef HI_TABLE_H
#define HI_TABLE_H

#include <helio/helio.h>
#include <helio/plugin.h>

#include "device/status.h"

typedef enum hi_row_kind {
  HI_ROW_KERNEL = 1, /* a backend's kernel computes it */
  HI_ROW_CORE = 2,   /* the core does, with the device vtable or with other rows: every device has it */
  HI_ROW_VIEW = 3,   /* no work: the result shares the input's memory */
} hi_row_kind;

enum { HI_MAX_OUTPUTS = 3, HI_MAX_SCALARS = 8, HI_MAX_INPUTS = 4096, HI_MAX_FIXED_INPUTS = 8 };

typedef struct hi_output {
  helio_type type;
  helio_shape shape;
} hi_output;

/* Attributes of any operation. The struct's own size comes first in each. */
typedef union hi_attributes {
  size_t size; /* 0: it has none */
  helio_slice_attributes slice;
  helio_axis_attributes axis;
  helio_reduce_attributes reduce;
  helio_matmul_attributes matmul;
  helio_transpose_attributes transpose;
  helio_gelu_attributes gelu;
  helio_activation_attributes activation;
  helio_top_k_attributes top_k;
  helio_conv2d_attributes conv2d;
  helio_pool_attributes pool;
  helio_sgd_attributes sgd;
} hi_attributes;

typedef struct hi_row hi_row;

/* A call of an operation: what the caller gives, and what the shape rule adds. */
typedef struct hi_call {
  const hi_row *row;
  helio_tensor *const *inputs; /* an optional one may be NULL */
  int input_count;
  hi_attributes attributes;
  helio_scalar scalars[HI_MAX_SCALARS]; /* as many as the row has */
  uint32_t no_outputs;                  /* bit i: optional output i is not wanted */
  bool keep_dims;                       /* of reductions: for the shape rule alone */
  helio_shape wanted;                   /* the shape asked for, where the inputs do not tell it */
  helio_type wanted_type;               /* likewise the type */
  hi_output outputs[HI_MAX_OUTPUTS];    /* filled by the shape rule */
} hi_call;

/* A gradient is dense or, with `indices`, rows: row i of `values` belongs to row indices[i] of a tensor of `shape`.
 * Both NULL: there is none. */
typedef struct hi_gradient {
  helio_tensor *values, *indices;
  helio_shape shape;
} hi_gradient;

/* A recorded call on its way back. A tensor that the row does not keep is NULL; shapes are always there. */
typedef struct hi_backward {
  const hi_row *row;
  const hi_attributes *attributes;
  const helio_scalar *scalars;
  int input_count;
  helio_tensor *const *inputs, *const *outputs;
  const helio_shape *input_shapes;
  const helio_type *input_types;
  helio_tensor *const *output_gradients; /* NULL: none arrived there */
  uint32_t wanted;                       /* bit i: the gradient by input i is asked for; past 31, all are */
  hi_gradient *input_gradients;          /* to be filled */
} hi_backward;

struct hi_row {
  helio_operation operation;
  hi_row_kind kind;
  helio_operation_info info;
  uint32_t types;      /* that T may be */
  const char *inputs;  /* in plugin.h's letters: "TTt" */
  const char *outputs; /* likewise */
  int scalars;
  size_t attributes_size;               /* 0: it has none */
  helio_status (*shape)(hi_call *call); /* checks the inputs' shapes and fills the outputs */

  /* The way back; NULL: it has none, gradients stop here. */
  helio_status (*gradient)(const hi_backward *call);
  uint32_t keeps_inputs, keeps_outputs; /* which the gradient looks at, a bit each */
};

const hi_row *hi_row_of(helio_operation operation);

/* NULL if no operation has that name. */
const hi_row *hi_row_named(const char *name);

/* Is the gradient of an activation written in its result (else in its input)? */
bool hi_activation_by_output(helio_activation activation);

/* How many outputs the row has, and whether one of them may be left out. */
int hi_row_outputs(const hi_row *row);
bool hi_row_output_optional(const hi_row *row, int output);

/* Which input of an update is the gradient. The indices stand behind it and then, unless the row has none, the squares;
 * weights and slots stand before it. */
int hi_update_gradient_place(const hi_row *row);

/* Checks number, presence and types of inputs, then applies the row's shape rule. */
helio_status hi_call_check(hi_call *call);

/* Which values a call that was checked accepts, where its kernels report others in the status word. */
hi_range hi_call_range(const hi_call *call);

#endif
