/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations. Dispatch, `helio ops` and the tests read it; adding an operation is adding a row, its shape
 * rule and its kernels. */
#ifndef HI_TABLE_H
#define HI_TABLE_H

#include <helio/helio.h>
#include <helio/plugin.h>

typedef enum hi_row_kind {
  HI_ROW_KERNEL = 1, /* a backend's kernel computes it */
  HI_ROW_MEMORY = 2, /* the device vtable's fill or copy does: every device has it */
  HI_ROW_VIEW = 3,   /* no work: the result shares the input's memory */
} hi_row_kind;

enum { HI_MAX_OUTPUTS = 2, HI_ANY_NUMBER = 1 << 12 };

typedef struct hi_output {
  helio_type type;
  helio_shape shape;
} hi_output;

/* Attributes of any operation. The struct's own size comes first in each. */
typedef union hi_attributes {
  size_t size; /* 0: it has none */
  helio_slice_attributes slice;
  helio_concat_attributes concat;
  helio_reduce_attributes reduce;
  helio_matmul_attributes matmul;
} hi_attributes;

typedef struct hi_row hi_row;

/* A call of an operation: what the caller gives, and what the shape rule adds. */
typedef struct hi_call {
  const hi_row *row;
  helio_tensor *const *inputs; /* an optional one may be NULL */
  int input_count;
  hi_attributes attributes;
  bool keep_dims;                    /* of reductions: for the shape rule alone */
  helio_shape wanted;                /* the shape asked for, of slices and fills */
  helio_type wanted_type;            /* of casts and fills */
  hi_output outputs[HI_MAX_OUTPUTS]; /* filled by the shape rule */
} hi_call;

struct hi_row {
  helio_operation operation;
  hi_row_kind kind;
  helio_operation_info info;
  uint32_t types; /* of the inputs; all inputs have one type */
  int least_inputs, most_inputs;
  int outputs;
  helio_status (*shape)(hi_call *call); /* checks the inputs' shapes and fills the outputs */
};

const hi_row *hi_row_of(helio_operation operation);

/* Checks number, presence and types of inputs, then applies the row's shape rule. */
helio_status hi_call_check(hi_call *call);

#endif
