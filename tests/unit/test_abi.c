/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin ABI is frozen here: where every field of every struct of plugin.h lies on a 64-bit machine, and the value
 * of every constant. A failure says which number to raise. Who changes the ABI on purpose raises it in plugin.h, enters
 * the new numbers here, and writes down in docs/ what plugins have to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <helio/plugin.h>

/* The ABI whose numbers stand below. */
enum { FROZEN_MAJOR = 0, FROZEN_MINOR = 1 };

#define RAISE                                                                                                          \
  "; plugins built before will misread it. If this is meant, raise HELIO_ABI_MINOR in plugin.h (HELIO_ABI_MAJOR once " \
  "that is not 0, unless fields were only added at the end) and enter the new number and FROZEN_MINOR in test_abi.c"

/* A struct as a whole, then its fields in order. */
typedef struct layout {
  const char *structure, *field; /* no field: the struct itself */
  size_t offset, bytes;          /* as compiled now */
  size_t frozen_offset, frozen_bytes;
} layout;

#define STRUCT(type, bytes)                                                                                            \
  { #type, NULL, 0, sizeof(type), 0, bytes }
#define FIELD(type, field, offset, bytes)                                                                              \
  { #type, #field, offsetof(type, field), sizeof(((type *)0)->field), offset, bytes }

static const layout layouts[] = {
    STRUCT(helio_place, 16),
    FIELD(helio_place, buffer, 0, 8),
    FIELD(helio_place, offset, 8, 8),
    STRUCT(helio_device_description, 80),
    FIELD(helio_device_description, size, 0, 8),
    FIELD(helio_device_description, device_class, 8, 4),
    FIELD(helio_device_description, capabilities, 12, 4),
    FIELD(helio_device_description, native_api, 16, 8),
    FIELD(helio_device_description, name, 24, 8),
    FIELD(helio_device_description, vendor, 32, 8),
    FIELD(helio_device_description, architecture, 40, 8),
    FIELD(helio_device_description, bus_id, 48, 8),
    FIELD(helio_device_description, memory, 56, 8),
    FIELD(helio_device_description, compute_units, 64, 4),
    FIELD(helio_device_description, alignment, 68, 4),
    FIELD(helio_device_description, properties, 72, 8),
    STRUCT(helio_open_options, 32),
    FIELD(helio_open_options, size, 0, 8),
    FIELD(helio_open_options, logical_index, 8, 4),
    FIELD(helio_open_options, logical_count, 12, 4),
    FIELD(helio_open_options, threads, 16, 4),
    FIELD(helio_open_options, spin_us, 20, 4),
    FIELD(helio_open_options, memory_limit, 24, 8),
    STRUCT(helio_host, 96),
    FIELD(helio_host, size, 0, 8),
    FIELD(helio_host, abi_major, 8, 4),
    FIELD(helio_host, abi_minor, 12, 4),
    FIELD(helio_host, core_version, 16, 8),
    FIELD(helio_host, log, 24, 8),
    FIELD(helio_host, fail, 32, 8),
    FIELD(helio_host, parameter, 40, 8),
    FIELD(helio_host, allocate, 48, 8),
    FIELD(helio_host, release, 56, 8),
    FIELD(helio_host, copy, 64, 8),
    FIELD(helio_host, accumulate, 72, 8),
    FIELD(helio_host, turn_begin, 80, 8),
    FIELD(helio_host, turn_end, 88, 8),
    STRUCT(helio_parameter, 48),
    FIELD(helio_parameter, size, 0, 8),
    FIELD(helio_parameter, name, 8, 8),
    FIELD(helio_parameter, kind, 16, 4),
    FIELD(helio_parameter, reserved, 20, 4),
    FIELD(helio_parameter, default_value, 24, 8),
    FIELD(helio_parameter, choices, 32, 8),
    FIELD(helio_parameter, help, 40, 8),
    STRUCT(helio_device_table, 64),
    FIELD(helio_device_table, size, 0, 8),
    FIELD(helio_device_table, count, 8, 8),
    FIELD(helio_device_table, describe, 16, 8),
    FIELD(helio_device_table, open, 24, 8),
    FIELD(helio_device_table, close, 32, 8),
    FIELD(helio_device_table, memory_info, 40, 8),
    FIELD(helio_device_table, synchronize, 48, 8),
    FIELD(helio_device_table, native_device, 56, 8),
    STRUCT(helio_memory_table, 88),
    FIELD(helio_memory_table, size, 0, 8),
    FIELD(helio_memory_table, allocate, 8, 8),
    FIELD(helio_memory_table, free, 16, 8),
    FIELD(helio_memory_table, copy_in, 24, 8),
    FIELD(helio_memory_table, copy_out, 32, 8),
    FIELD(helio_memory_table, copy, 40, 8),
    FIELD(helio_memory_table, fill, 48, 8),
    FIELD(helio_memory_table, copy_peer, 56, 8),
    FIELD(helio_memory_table, host_allocate, 64, 8),
    FIELD(helio_memory_table, host_free, 72, 8),
    FIELD(helio_memory_table, native_buffer, 80, 8),
    STRUCT(helio_stream_table, 88),
    FIELD(helio_stream_table, size, 0, 8),
    FIELD(helio_stream_table, create, 8, 8),
    FIELD(helio_stream_table, destroy, 16, 8),
    FIELD(helio_stream_table, synchronize, 24, 8),
    FIELD(helio_stream_table, event_create, 32, 8),
    FIELD(helio_stream_table, event_destroy, 40, 8),
    FIELD(helio_stream_table, event_record, 48, 8),
    FIELD(helio_stream_table, event_query, 56, 8),
    FIELD(helio_stream_table, event_synchronize, 64, 8),
    FIELD(helio_stream_table, wait, 72, 8),
    FIELD(helio_stream_table, native_stream, 80, 8),
    STRUCT(helio_argument, 80),
    FIELD(helio_argument, size, 0, 8),
    FIELD(helio_argument, type, 8, 4),
    FIELD(helio_argument, rank, 12, 4),
    FIELD(helio_argument, extent, 16, 64),
    STRUCT(helio_slice_attributes, 72),
    FIELD(helio_slice_attributes, size, 0, 8),
    FIELD(helio_slice_attributes, begin, 8, 64),
    STRUCT(helio_axis_attributes, 16),
    FIELD(helio_axis_attributes, size, 0, 8),
    FIELD(helio_axis_attributes, axis, 8, 4),
    FIELD(helio_axis_attributes, reserved, 12, 4),
    STRUCT(helio_reduce_attributes, 16),
    FIELD(helio_reduce_attributes, size, 0, 8),
    FIELD(helio_reduce_attributes, axes, 8, 4),
    FIELD(helio_reduce_attributes, reserved, 12, 4),
    STRUCT(helio_matmul_attributes, 24),
    FIELD(helio_matmul_attributes, size, 0, 8),
    FIELD(helio_matmul_attributes, transpose_a, 8, 4),
    FIELD(helio_matmul_attributes, transpose_b, 12, 4),
    FIELD(helio_matmul_attributes, activation, 16, 4),
    FIELD(helio_matmul_attributes, reserved, 20, 4),
    STRUCT(helio_transpose_attributes, 40),
    FIELD(helio_transpose_attributes, size, 0, 8),
    FIELD(helio_transpose_attributes, permutation, 8, 32),
    STRUCT(helio_gelu_attributes, 16),
    FIELD(helio_gelu_attributes, size, 0, 8),
    FIELD(helio_gelu_attributes, approximate, 8, 4),
    FIELD(helio_gelu_attributes, reserved, 12, 4),
    STRUCT(helio_activation_attributes, 16),
    FIELD(helio_activation_attributes, size, 0, 8),
    FIELD(helio_activation_attributes, activation, 8, 4),
    FIELD(helio_activation_attributes, reserved, 12, 4),
    STRUCT(helio_top_k_attributes, 16),
    FIELD(helio_top_k_attributes, size, 0, 8),
    FIELD(helio_top_k_attributes, k, 8, 4),
    FIELD(helio_top_k_attributes, reserved, 12, 4),
    STRUCT(helio_conv2d_attributes, 48),
    FIELD(helio_conv2d_attributes, size, 0, 8),
    FIELD(helio_conv2d_attributes, stride, 8, 8),
    FIELD(helio_conv2d_attributes, dilation, 16, 8),
    FIELD(helio_conv2d_attributes, padding, 24, 16),
    FIELD(helio_conv2d_attributes, groups, 40, 4),
    FIELD(helio_conv2d_attributes, activation, 44, 4),
    STRUCT(helio_pool_attributes, 40),
    FIELD(helio_pool_attributes, size, 0, 8),
    FIELD(helio_pool_attributes, window, 8, 8),
    FIELD(helio_pool_attributes, stride, 16, 8),
    FIELD(helio_pool_attributes, padding, 24, 16),
    STRUCT(helio_sgd_attributes, 16),
    FIELD(helio_sgd_attributes, size, 0, 8),
    FIELD(helio_sgd_attributes, nesterov, 8, 4),
    FIELD(helio_sgd_attributes, reserved, 12, 4),
    STRUCT(helio_call, 40),
    FIELD(helio_call, size, 0, 8),
    FIELD(helio_call, operation, 8, 4),
    FIELD(helio_call, input_count, 12, 4),
    FIELD(helio_call, output_count, 16, 4),
    FIELD(helio_call, allowed, 20, 4),
    FIELD(helio_call, arguments, 24, 8),
    FIELD(helio_call, attributes, 32, 8),
    STRUCT(helio_plan_answer, 24),
    FIELD(helio_plan_answer, size, 0, 8),
    FIELD(helio_plan_answer, plan, 8, 8),
    FIELD(helio_plan_answer, workspace, 16, 8),
    STRUCT(helio_status_word, 16),
    FIELD(helio_status_word, code, 0, 4),
    FIELD(helio_status_word, operation, 4, 4),
    FIELD(helio_status_word, value, 8, 8),
    STRUCT(helio_run, 80),
    FIELD(helio_run, size, 0, 8),
    FIELD(helio_run, stream, 8, 8),
    FIELD(helio_run, places, 16, 8),
    FIELD(helio_run, place_size, 24, 8),
    FIELD(helio_run, workspace, 32, 16),
    FIELD(helio_run, status, 48, 16),
    FIELD(helio_run, scalars, 64, 8),
    FIELD(helio_run, scalar_count, 72, 8),
    STRUCT(helio_kernel, 40),
    FIELD(helio_kernel, size, 0, 8),
    FIELD(helio_kernel, operation, 8, 4),
    FIELD(helio_kernel, types, 12, 4),
    FIELD(helio_kernel, plan, 16, 8),
    FIELD(helio_kernel, run, 24, 8),
    FIELD(helio_kernel, plan_free, 32, 8),
    STRUCT(helio_kernel_table, 24),
    FIELD(helio_kernel_table, size, 0, 8),
    FIELD(helio_kernel_table, count, 8, 8),
    FIELD(helio_kernel_table, kernels, 16, 8),
    STRUCT(helio_member, 64),
    FIELD(helio_member, size, 0, 8),
    FIELD(helio_member, device, 8, 8),
    FIELD(helio_member, description, 16, 8),
    FIELD(helio_member, devices, 24, 8),
    FIELD(helio_member, memory, 32, 8),
    FIELD(helio_member, streams, 40, 8),
    FIELD(helio_member, name, 48, 8),
    FIELD(helio_member, physical_id, 56, 8),
    STRUCT(helio_collective_offer, 24),
    FIELD(helio_collective_offer, size, 0, 8),
    FIELD(helio_collective_offer, score, 8, 4),
    FIELD(helio_collective_offer, types, 12, 4),
    FIELD(helio_collective_offer, flags, 16, 4),
    FIELD(helio_collective_offer, reserved, 20, 4),
    STRUCT(helio_communicator_options, 40),
    FIELD(helio_communicator_options, size, 0, 8),
    FIELD(helio_communicator_options, id, 8, 8),
    FIELD(helio_communicator_options, rank, 16, 4),
    FIELD(helio_communicator_options, rank_count, 20, 4),
    FIELD(helio_communicator_options, member, 24, 8),
    FIELD(helio_communicator_options, timeout_ms, 32, 4),
    FIELD(helio_communicator_options, spin_us, 36, 4),
    STRUCT(helio_accumulation, 72),
    FIELD(helio_accumulation, size, 0, 8),
    FIELD(helio_accumulation, stream, 8, 8),
    FIELD(helio_accumulation, into, 16, 16),
    FIELD(helio_accumulation, from, 32, 16),
    FIELD(helio_accumulation, type, 48, 4),
    FIELD(helio_accumulation, reduction, 52, 4),
    FIELD(helio_accumulation, count, 56, 8),
    FIELD(helio_accumulation, scale, 64, 8),
    STRUCT(helio_collective_call, 80),
    FIELD(helio_collective_call, size, 0, 8),
    FIELD(helio_collective_call, stream, 8, 8),
    FIELD(helio_collective_call, source, 16, 16),
    FIELD(helio_collective_call, target, 32, 16),
    FIELD(helio_collective_call, type, 48, 4),
    FIELD(helio_collective_call, reduction, 52, 4),
    FIELD(helio_collective_call, root, 56, 4),
    FIELD(helio_collective_call, reserved, 60, 4),
    FIELD(helio_collective_call, count, 64, 8),
    FIELD(helio_collective_call, counts, 72, 8),
    STRUCT(helio_collective_table, 112),
    FIELD(helio_collective_table, size, 0, 8),
    FIELD(helio_collective_table, offer, 8, 8),
    FIELD(helio_collective_table, new_id, 16, 8),
    FIELD(helio_collective_table, create, 24, 8),
    FIELD(helio_collective_table, destroy, 32, 8),
    FIELD(helio_collective_table, abort, 40, 8),
    FIELD(helio_collective_table, poll, 48, 8),
    FIELD(helio_collective_table, all_reduce, 56, 8),
    FIELD(helio_collective_table, broadcast, 64, 8),
    FIELD(helio_collective_table, reduce, 72, 8),
    FIELD(helio_collective_table, all_gather, 80, 8),
    FIELD(helio_collective_table, reduce_scatter, 88, 8),
    FIELD(helio_collective_table, group_start, 96, 8),
    FIELD(helio_collective_table, group_end, 104, 8),
    STRUCT(helio_probe_answer, 512),
    FIELD(helio_probe_answer, size, 0, 8),
    FIELD(helio_probe_answer, devices, 8, 4),
    FIELD(helio_probe_answer, is_host, 12, 4),
    FIELD(helio_probe_answer, inspecting, 16, 4),
    FIELD(helio_probe_answer, no_use, 20, 4),
    FIELD(helio_probe_answer, reason, 24, 488),
    STRUCT(helio_plugin, 120),
    FIELD(helio_plugin, size, 0, 8),
    FIELD(helio_plugin, magic, 8, 8),
    FIELD(helio_plugin, abi_major, 16, 4),
    FIELD(helio_plugin, abi_minor, 20, 4),
    FIELD(helio_plugin, name, 24, 8),
    FIELD(helio_plugin, version, 32, 8),
    FIELD(helio_plugin, description, 40, 8),
    FIELD(helio_plugin, probe, 48, 8),
    FIELD(helio_plugin, init, 56, 8),
    FIELD(helio_plugin, finish, 64, 8),
    FIELD(helio_plugin, devices, 72, 8),
    FIELD(helio_plugin, memory, 80, 8),
    FIELD(helio_plugin, streams, 88, 8),
    FIELD(helio_plugin, kernels, 96, 8),
    FIELD(helio_plugin, collective, 104, 8),
    FIELD(helio_plugin, parameters, 112, 8),
    STRUCT(helio_scalar, 8),
    FIELD(helio_scalar, real, 0, 8),
    FIELD(helio_scalar, integer, 0, 8),
};

enum { LAYOUT_COUNT = sizeof layouts / sizeof layouts[0] };

static bool is_64_bit(void) {
  if (sizeof(void *) == 8 && sizeof(size_t) == 8) return true;
  print_message("SKIP: the numbers are those of 64-bit machines\n");
  return false;
}

/* All differences are printed before the test fails, because one inserted field moves many others. */
static void test_fields_stay_where_they_are(void **state) {
  (void)state;
  int moved = 0;
  if (!is_64_bit()) skip();
  for (size_t i = 0; i < LAYOUT_COUNT; i++) {
    const layout *row = &layouts[i];
    if (row->offset == row->frozen_offset && row->bytes == row->frozen_bytes) continue;
    moved++;
    if (row->field == NULL) {
      print_error("%s has %zu bytes, it had %zu" RAISE "\n", row->structure, row->bytes, row->frozen_bytes);
    } else {
      print_error("%s.%s is %zu bytes at %zu, it was %zu bytes at %zu" RAISE "\n", row->structure, row->field,
                  row->bytes, row->offset, row->frozen_bytes, row->frozen_offset);
    }
  }
  if (moved != 0) fail_msg("%d numbers of the ABI have changed: raise HELIO_ABI_MINOR", moved);
}

static void test_abi_number_is_the_frozen_one(void **state) {
  (void)state;
  if (HELIO_ABI_MAJOR == FROZEN_MAJOR && HELIO_ABI_MINOR == FROZEN_MINOR) return;
  fail_msg("plugin.h says ABI %d.%d, the numbers in test_abi.c are those of %d.%d: check them and set FROZEN_MAJOR and "
           "FROZEN_MINOR",
           HELIO_ABI_MAJOR, HELIO_ABI_MINOR, FROZEN_MAJOR, FROZEN_MINOR);
}

/* Only so does a size tell which fields a struct has. */
static void test_no_struct_ends_in_padding(void **state) {
  (void)state;
  for (size_t i = 0; i < LAYOUT_COUNT; i++) {
    if (layouts[i].field != NULL) continue;
    size_t end = 0, last = i;
    for (size_t k = i + 1; k < LAYOUT_COUNT && layouts[k].field != NULL; k++) {
      if (layouts[k].offset + layouts[k].bytes < end) continue;
      end = layouts[k].offset + layouts[k].bytes;
      last = k;
    }
    if (end == layouts[i].bytes) continue;
    fail_msg("%s has %zu bytes, but its last field %s ends at %zu: add a reserved field, or enter the field that is "
             "missing in test_abi.c, and raise HELIO_ABI_MINOR",
             layouts[i].structure, layouts[i].bytes, layouts[last].field, end);
  }
}

/* Except those that are fixed for ever and used inside of others. */
static void test_structs_begin_with_their_size(void **state) {
  (void)state;
  static const char *const fixed[] = {"helio_place", "helio_status_word", "helio_scalar"};
  for (size_t i = 0; i < LAYOUT_COUNT; i++) {
    if (layouts[i].field != NULL) continue;
    bool is_fixed = false;
    for (size_t k = 0; k < sizeof fixed / sizeof fixed[0]; k++) is_fixed |= strcmp(layouts[i].structure, fixed[k]) == 0;
    if (is_fixed) continue;
    assert_string_equal(layouts[i + 1].field, "size");
    assert_int_equal(layouts[i + 1].offset, 0);
    assert_int_equal(layouts[i + 1].bytes, sizeof(size_t));
  }
}

/* Values of constants. */
typedef struct constant {
  const char *name;
  int64_t value, frozen;
} constant;

#define CONSTANT(name, frozen)                                                                                         \
  { #name, name, frozen }

static const constant constants[] = {
    CONSTANT(HELIO_CAPABLE_SYNCHRONOUS, 1),
    CONSTANT(HELIO_CAPABLE_HOST_MEMORY, 2),
    CONSTANT(HELIO_CAPABLE_INTEGRATED, 4),
    CONSTANT(HELIO_TURN_DRIVER, 1),
    CONSTANT(HELIO_TURN_COLLECTIVE, 2),
    CONSTANT(HELIO_PARAMETER_TEXT, 1),
    CONSTANT(HELIO_PARAMETER_FLAG, 2),
    CONSTANT(HELIO_PARAMETER_INTEGER, 3),
    CONSTANT(HELIO_PARAMETER_CHOICE, 4),
    CONSTANT(HELIO_COLLECTIVE_IN_PLACE, 1),
    CONSTANT(HELIO_COLLECTIVE_ORDERED, 2),
    CONSTANT(HELIO_COLLECTIVE_ASYNCHRONOUS, 4),
    CONSTANT(HELIO_REDUCTION_SUM, 1),
    CONSTANT(HELIO_REDUCTION_MAX, 2),
    CONSTANT(HELIO_REDUCTION_MIN, 3),
    CONSTANT(HELIO_CLASS_CPU, 1),
    CONSTANT(HELIO_CLASS_GPU, 2),
    CONSTANT(HELIO_LINEAR, 1),
    CONSTANT(HELIO_RELU, 2),
    CONSTANT(HELIO_SIGMOID, 3),
    CONSTANT(HELIO_TANH, 4),
    CONSTANT(HELIO_SOFTPLUS, 5),
    CONSTANT(HELIO_SWISH, 6),
    CONSTANT(HELIO_GELU, 7),
    CONSTANT(HELIO_GELU_TANH, 8),
    CONSTANT(HELIO_ELU, 9),
    CONSTANT(HELIO_LEAKY_RELU, 10),
    CONSTANT(HELIO_LOG_DEBUG, 1),
    CONSTANT(HELIO_LOG_INFO, 2),
    CONSTANT(HELIO_LOG_WARNING, 3),
    CONSTANT(HELIO_LOG_ERROR, 4),
    CONSTANT(HELIO_LOG_OFF, 5),
    CONSTANT(HELIO_MAX_RANK, 8),
    CONSTANT(HELIO_COLLECTIVE_ID_SIZE, 256),
    CONSTANT(HELIO_OK, 0),
    CONSTANT(HELIO_INVALID_ARGUMENT, 1),
    CONSTANT(HELIO_NOT_SUPPORTED, 2),
    CONSTANT(HELIO_NO_DEVICE, 3),
    CONSTANT(HELIO_OUT_OF_MEMORY, 4),
    CONSTANT(HELIO_DEVICE_FAILURE, 5),
    CONSTANT(HELIO_ABI_MISMATCH, 6),
    CONSTANT(HELIO_NOT_READY, 7),
    CONSTANT(HELIO_BAD_DATA, 8),
    CONSTANT(HELIO_WRONG_STATE, 9),
    CONSTANT(HELIO_TIMED_OUT, 10),
    CONSTANT(HELIO_ABORTED, 11),
    CONSTANT(HELIO_REPLICA_LOST, 12),
    CONSTANT(HELIO_IO_FAILURE, 13),
    CONSTANT(HELIO_FLOAT32, 1),
    CONSTANT(HELIO_FLOAT64, 2),
    CONSTANT(HELIO_FLOAT16, 3),
    CONSTANT(HELIO_BFLOAT16, 4),
    CONSTANT(HELIO_INT32, 5),
    CONSTANT(HELIO_INT64, 6),
    CONSTANT(HELIO_UINT8, 7),
    CONSTANT(HELIO_BOOL, 8),
    CONSTANT(HELIO_OP_FILL, 1),
    CONSTANT(HELIO_OP_COPY, 2),
    CONSTANT(HELIO_OP_CAST, 3),
    CONSTANT(HELIO_OP_RESHAPE, 4),
    CONSTANT(HELIO_OP_EXPAND_DIMS, 5),
    CONSTANT(HELIO_OP_SQUEEZE, 6),
    CONSTANT(HELIO_OP_SLICE, 7),
    CONSTANT(HELIO_OP_CONCAT, 8),
    CONSTANT(HELIO_OP_ADD, 9),
    CONSTANT(HELIO_OP_SUB, 10),
    CONSTANT(HELIO_OP_MUL, 11),
    CONSTANT(HELIO_OP_ADD_N, 12),
    CONSTANT(HELIO_OP_SUM, 13),
    CONSTANT(HELIO_OP_MATMUL, 14),
    CONSTANT(HELIO_OP_RELU, 15),
    CONSTANT(HELIO_OP_TRANSPOSE, 16),
    CONSTANT(HELIO_OP_SPLIT, 17),
    CONSTANT(HELIO_OP_PAD, 18),
    CONSTANT(HELIO_OP_GATHER, 19),
    CONSTANT(HELIO_OP_SCATTER_ADD, 20),
    CONSTANT(HELIO_OP_WHERE, 21),
    CONSTANT(HELIO_OP_ONE_HOT, 22),
    CONSTANT(HELIO_OP_DIV, 23),
    CONSTANT(HELIO_OP_POW, 24),
    CONSTANT(HELIO_OP_MAXIMUM, 25),
    CONSTANT(HELIO_OP_MINIMUM, 26),
    CONSTANT(HELIO_OP_EQUAL, 27),
    CONSTANT(HELIO_OP_NOT_EQUAL, 28),
    CONSTANT(HELIO_OP_LESS, 29),
    CONSTANT(HELIO_OP_LESS_EQUAL, 30),
    CONSTANT(HELIO_OP_GREATER, 31),
    CONSTANT(HELIO_OP_GREATER_EQUAL, 32),
    CONSTANT(HELIO_OP_NEG, 33),
    CONSTANT(HELIO_OP_ABS, 34),
    CONSTANT(HELIO_OP_SQUARE, 35),
    CONSTANT(HELIO_OP_SQRT, 36),
    CONSTANT(HELIO_OP_RSQRT, 37),
    CONSTANT(HELIO_OP_EXP, 38),
    CONSTANT(HELIO_OP_LOG, 39),
    CONSTANT(HELIO_OP_CLIP, 40),
    CONSTANT(HELIO_OP_SIGMOID, 41),
    CONSTANT(HELIO_OP_TANH, 42),
    CONSTANT(HELIO_OP_SOFTPLUS, 43),
    CONSTANT(HELIO_OP_SWISH, 44),
    CONSTANT(HELIO_OP_GELU, 45),
    CONSTANT(HELIO_OP_ELU, 46),
    CONSTANT(HELIO_OP_LEAKY_RELU, 47),
    CONSTANT(HELIO_OP_ACTIVATION_GRAD, 48),
    CONSTANT(HELIO_OP_MEAN, 49),
    CONSTANT(HELIO_OP_MAX, 50),
    CONSTANT(HELIO_OP_MIN, 51),
    CONSTANT(HELIO_OP_ARGMAX, 52),
    CONSTANT(HELIO_OP_TOP_K, 53),
    CONSTANT(HELIO_OP_IN_TOP_K, 54),
    CONSTANT(HELIO_OP_CONV2D, 55),
    CONSTANT(HELIO_OP_CONV2D_GRAD_INPUT, 56),
    CONSTANT(HELIO_OP_CONV2D_GRAD_KERNEL, 57),
    CONSTANT(HELIO_OP_MAX_POOL, 58),
    CONSTANT(HELIO_OP_MAX_POOL_GRAD, 59),
    CONSTANT(HELIO_OP_AVERAGE_POOL, 60),
    CONSTANT(HELIO_OP_AVERAGE_POOL_GRAD, 61),
    CONSTANT(HELIO_OP_SOFTMAX, 62),
    CONSTANT(HELIO_OP_LOG_SOFTMAX, 63),
    CONSTANT(HELIO_OP_SOFTMAX_GRAD, 64),
    CONSTANT(HELIO_OP_LOG_SOFTMAX_GRAD, 65),
    CONSTANT(HELIO_OP_SPARSE_CROSS_ENTROPY, 66),
    CONSTANT(HELIO_OP_CROSS_ENTROPY, 67),
    CONSTANT(HELIO_OP_MOMENTS, 68),
    CONSTANT(HELIO_OP_NORMALIZE, 69),
    CONSTANT(HELIO_OP_NORMALIZE_GRAD_SUMS, 70),
    CONSTANT(HELIO_OP_NORMALIZE_GRAD_INPUT, 71),
    CONSTANT(HELIO_OP_LAYER_NORM, 72),
    CONSTANT(HELIO_OP_LAYER_NORM_GRAD, 73),
    CONSTANT(HELIO_OP_RANDOM_BITS, 74),
    CONSTANT(HELIO_OP_RANDOM_UNIFORM, 75),
    CONSTANT(HELIO_OP_RANDOM_NORMAL, 76),
    CONSTANT(HELIO_OP_DROPOUT, 77),
    CONSTANT(HELIO_OP_COMBINE_ROWS, 78),
    CONSTANT(HELIO_OP_SGD_UPDATE, 79),
    CONSTANT(HELIO_OP_ADAM_UPDATE, 80),
    CONSTANT(HELIO_OP_NADAM_UPDATE, 81),
    CONSTANT(HELIO_OP_RMSPROP_UPDATE, 82),
    CONSTANT(HELIO_OP_ADAGRAD_UPDATE, 83),
    CONSTANT(HELIO_OP_ALL_REDUCE, 84),
};

static void test_constants_keep_their_values(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
    if (constants[i].value == constants[i].frozen) continue;
    fail_msg("%s is %lld, it was %lld" RAISE, constants[i].name, (long long)constants[i].value,
             (long long)constants[i].frozen);
  }
  assert_int_equal(sizeof(helio_status), 4);
  assert_string_equal(HELIO_PLUGIN_SYMBOL, "helio_plugin_entry");
  uint64_t magic = HELIO_PLUGIN_MAGIC;
  const unsigned char first = *(const unsigned char *)&magic;
  if (first == 'H') assert_memory_equal(&magic, "HLIOPLG1", sizeof magic);
  assert_true(magic == UINT64_C(0x31474C504F494C48));
}

/* New rows go to the end with the next value: a new status, type or operation has to be entered above. */
#define COUNT_ROW(...)               +1
#define ROW_VALUE(name, value, ...)  value,
#define OPERATION_VALUE(name, value) value,

static void check_list(const char *list, const int *values, size_t count, size_t frozen, int first) {
  for (size_t i = 0; i < count; i++) {
    if (values[i] != first + (int)i)
      fail_msg("row %zu of %s has the value %d, not %d", i, list, values[i], first + (int)i);
  }
  if (count < frozen) fail_msg("%s has lost rows: there were %zu, there are %zu" RAISE, list, frozen, count);
  if (count > frozen) {
    fail_msg("%s has %zu rows, %zu are entered in test_abi.c: enter the new ones; the ABI number may stay", list, count,
             frozen);
  }
}

static void test_lists_only_grow_at_the_end(void **state) {
  (void)state;
  static const int statuses[] = {HELIO_STATUS_LIST(ROW_VALUE)};
  static const int types[] = {HELIO_TYPE_LIST(ROW_VALUE)};
  static const int operations[] = {HELIO_OPERATION_LIST(OPERATION_VALUE)};
  check_list("HELIO_STATUS_LIST", statuses, 0 HELIO_STATUS_LIST(COUNT_ROW), 14, 0);
  check_list("HELIO_TYPE_LIST", types, 0 HELIO_TYPE_LIST(COUNT_ROW), 8, 1);
  check_list("HELIO_OPERATION_LIST", operations, 0 HELIO_OPERATION_LIST(COUNT_ROW), 84, 1);
}

static void test_types_keep_names_and_sizes(void **state) {
  (void)state;
#define TYPE_NAME(name, value, text, bytes)  text,
#define TYPE_BYTES(name, value, text, bytes) bytes,
  static const char *const names[] = {HELIO_TYPE_LIST(TYPE_NAME)};
  static const int sizes[] = {HELIO_TYPE_LIST(TYPE_BYTES)};
  static const char *const frozen_names[] = {"float32", "float64", "float16", "bfloat16",
                                             "int32",   "int64",   "uint8",   "bool"};
  static const int frozen_sizes[] = {4, 8, 2, 2, 4, 8, 1, 1};
  for (size_t i = 0; i < sizeof frozen_names / sizeof frozen_names[0]; i++) {
    assert_string_equal(names[i], frozen_names[i]);
    assert_int_equal(sizes[i], frozen_sizes[i]);
  }
  assert_int_equal(HELIO_TYPE_BIT(HELIO_BOOL), 256);
}

/* A struct as a later version might have it: what a reader of today knows, and a tail. */
typedef struct longer {
  size_t size;
  uint64_t known;
  unsigned char tail[24];
} longer;

enum { KNOWN = offsetof(longer, tail) };

static void test_known_part_never_matters(void **state) {
  (void)state;
  longer object;
  memset(&object, 0xFF, sizeof object);
  /* Shorter or equal: whatever lies behind its end belongs to others. */
  for (size_t size = 0; size <= KNOWN; size++) {
    object.size = size;
    assert_true(helio_struct_fits(&object, KNOWN));
  }
}

static void test_zero_tail_fits(void **state) {
  (void)state;
  longer object = {.known = UINT64_MAX};
  for (size_t size = KNOWN; size <= sizeof object; size++) {
    object.size = size;
    assert_true(helio_struct_fits(&object, KNOWN));
  }
}

static void test_each_byte_of_the_tail_counts(void **state) {
  (void)state;
  for (size_t at = 0; at < sizeof((longer *)0)->tail; at++) {
    for (int bit = 0; bit < 8; bit++) {
      longer object = {.size = sizeof object};
      object.tail[at] = (unsigned char)(1u << bit);
      assert_false(helio_struct_fits(&object, KNOWN));
      /* A reader that knows this byte takes it. */
      assert_true(helio_struct_fits(&object, KNOWN + at + 1));
      /* A struct that ends before it does not have it. */
      object.size = KNOWN + at;
      assert_true(helio_struct_fits(&object, KNOWN));
    }
  }
}

static void test_struct_size_goes_up_to_a_field(void **state) {
  (void)state;
  assert_int_equal(HELIO_STRUCT_SIZE(longer, size), sizeof(size_t));
  assert_int_equal(HELIO_STRUCT_SIZE(longer, known), KNOWN);
  assert_int_equal(HELIO_STRUCT_SIZE(helio_plugin, parameters), sizeof(helio_plugin));
  assert_int_equal(HELIO_STRUCT_SIZE(helio_run, scalar_count), sizeof(helio_run));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fields_stay_where_they_are),
      cmocka_unit_test(test_abi_number_is_the_frozen_one),
      cmocka_unit_test(test_no_struct_ends_in_padding),
      cmocka_unit_test(test_structs_begin_with_their_size),
      cmocka_unit_test(test_constants_keep_their_values),
      cmocka_unit_test(test_lists_only_grow_at_the_end),
      cmocka_unit_test(test_types_keep_names_and_sizes),
      cmocka_unit_test(test_known_part_never_matters),
      cmocka_unit_test(test_zero_tail_fits),
      cmocka_unit_test(test_each_byte_of_the_tail_counts),
      cmocka_unit_test(test_struct_size_goes_up_to_a_field),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
