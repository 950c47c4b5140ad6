/* SPDX-License-Identifier: Apache-2.0 */
/* What runs on gpusim: the errors that vendors document are answered, and are no violation; arithmetic is of the type
 * that was asked for; alpha and beta are read when a call is made; calls are counted, and fail on demand. */

/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* and then itself */
#include <cmocka.h>

#include "library_cases.h"

#include "cublas.h"
#include "cudnn.h"
#include "gpu.h"
#include "miopen.h"
#include "mistakes.h"
#include "rocblas.h"

#include <math.h>
#include <string.h>

CUBLAS_FUNCTIONS(FACE_POINTER)
CUBLAS_OPTIONAL_FUNCTIONS(FACE_POINTER)
CUDNN_FUNCTIONS(FACE_POINTER)
CUDNN_OPTIONAL_FUNCTIONS(FACE_POINTER)
ROCBLAS_FUNCTIONS(FACE_POINTER)
MIOPEN_FUNCTIONS(FACE_POINTER)

static const float one = 1, zero = 0;

static void look_up(void) {
#define X(result, name, arguments) FACE_LOOKUP("libcublas.so.13", name)
  CUBLAS_FUNCTIONS(X)
  CUBLAS_OPTIONAL_FUNCTIONS(X)
#undef X
#define X(result, name, arguments) FACE_LOOKUP("libcudnn.so.9", name)
  CUDNN_FUNCTIONS(X)
  CUDNN_OPTIONAL_FUNCTIONS(X)
#undef X
#define X(result, name, arguments) FACE_LOOKUP("librocblas.so.4", name)
  ROCBLAS_FUNCTIONS(X)
#undef X
#define X(result, name, arguments) FACE_LOOKUP("libMIOpen.so.1", name)
  MIOPEN_FUNCTIONS(X)
#undef X
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Products
 */

enum { SIDE = 4, SQUARE = SIDE * SIDE };

typedef struct squares {
  float *a, *b, *c;
} squares;

static squares open_squares(sim_vendor vendor) {
  float values[SQUARE];
  for (int i = 0; i < SQUARE; i++) values[i] = 1 + (float)i / 3;
  gpu_open(vendor, 1);
  look_up();
  return (squares){gpu_copy_of(values, sizeof values), gpu_copy_of(values, sizeof values), gpu_allocate(sizeof values)};
}

static void close_squares(squares *s) {
  gpu_free(s->a);
  gpu_free(s->b);
  gpu_free(s->c);
  gpu_close();
}

static double exact_corner(void) {
  double sum = 0;
  for (int i = 0; i < SIDE; i++) sum += (double)(1 + (float)(SIDE * i) / 3) * (double)(1 + (float)i / 3);
  return sum;
}

static abi_enum multiply_cuda(struct cublasContext *handle, const squares *s, int lda, const float *alpha) {
  return cublasSgemm_v2(handle, CUBLAS_ABI_OP_N, CUBLAS_ABI_OP_N, SIDE, SIDE, SIDE, alpha, s->a, lda, s->b, SIDE, &zero,
                        s->c, SIDE);
}

static void test_cublas_statuses(void **state) {
  (void)state;
  squares s = open_squares(SIM_CUDA);
  struct cublasContext *handle;
  int version = 0;
  NEED(cublasCreate_v2(&handle));
  NEED(cublasGetVersion_v2(handle, &version));
  assert_true(version >= 130000);
  assert_int_equal(multiply_cuda(NULL, &s, SIDE, &one), CUBLAS_ABI_NOT_INITIALIZED);
  assert_int_equal(multiply_cuda(handle, &s, SIDE - 1, &one), CUBLAS_ABI_INVALID_VALUE);
  assert_int_equal(multiply_cuda(handle, &s, SIDE, NULL), CUBLAS_ABI_INVALID_VALUE);
  assert_int_equal(cublasSgemm_v2(handle, 7, 0, 1, 1, 1, &one, s.a, 1, s.b, 1, &zero, s.c, 1),
                   CUBLAS_ABI_INVALID_VALUE);
  assert_int_equal(cublasSgemm_v2(handle, 0, 0, -1, 1, 1, &one, s.a, 1, s.b, 1, &zero, s.c, 1),
                   CUBLAS_ABI_INVALID_VALUE);
  assert_int_equal(cublasSgemm_v2(handle, 0, 0, 0, 1, 1, &one, NULL, 1, NULL, 1, &zero, NULL, 1), 0);
  assert_int_equal(cublasGemmEx(handle, 0, 0, 1, 1, 1, &one, s.a, CUBLAS_ABI_R_32F, 1, s.b, CUBLAS_ABI_R_16F, 1, &zero,
                                s.c, CUBLAS_ABI_R_32F, 1, CUBLAS_ABI_COMPUTE_32F, CUBLAS_ABI_GEMM_DEFAULT),
                   CUBLAS_ABI_NOT_SUPPORTED);
  assert_int_equal(cublasSetWorkspace_v2(handle, (char *)s.c + 4, 8), CUBLAS_ABI_INVALID_VALUE);
  assert_non_null(strstr(cublasGetStatusString(CUBLAS_ABI_NOT_SUPPORTED), "not supported"));
  NEED(cublasDestroy_v2(handle));
  close_squares(&s);
}

static void test_rocblas_statuses(void **state) {
  (void)state;
  squares s = open_squares(SIM_HIP);
  struct _rocblas_handle *handle;
  abi_enum none = ROCBLAS_ABI_OPERATION_NONE;
  NEED(rocblas_create_handle(&handle));
  assert_int_equal(rocblas_sgemm(NULL, none, none, 1, 1, 1, &one, s.a, 1, s.b, 1, &zero, s.c, 1),
                   ROCBLAS_ABI_INVALID_HANDLE);
  assert_int_equal(rocblas_sgemm(handle, 0, none, 1, 1, 1, &one, s.a, 1, s.b, 1, &zero, s.c, 1),
                   ROCBLAS_ABI_INVALID_VALUE); /* CUDA's value */
  assert_int_equal(rocblas_sgemm(handle, none, none, 2, 1, 1, &one, s.a, 1, s.b, 1, &zero, s.c, 2),
                   ROCBLAS_ABI_INVALID_SIZE);
  assert_int_equal(rocblas_sgemm(handle, none, none, 1, 1, 1, &one, NULL, 1, s.b, 1, &zero, s.c, 1),
                   ROCBLAS_ABI_INVALID_POINTER);
  assert_string_equal(rocblas_status_to_string(ROCBLAS_ABI_INVALID_SIZE), "rocblas_status_invalid_size");
  NEED(rocblas_destroy_handle(handle));
  close_squares(&s);
}

/* TF32 is used if asked for, and only then; it has 11 bits. */
static void test_tf32(void **state) {
  (void)state;
  squares s = open_squares(SIM_CUDA);
  struct cublasContext *handle;
  float corner[2];
  NEED(cublasCreate_v2(&handle));
  for (int i = 0; i < 2; i++) {
    NEED(cublasSetMathMode(handle, i ? CUBLAS_ABI_TF32_TENSOR_OP_MATH : CUBLAS_ABI_DEFAULT_MATH));
    NEED(multiply_cuda(handle, &s, SIDE, &one));
    gpu_copy_out(&corner[i], s.c, sizeof corner[i]);
  }
  assert_true(fabs((double)corner[0] - exact_corner()) < 1e-6 * exact_corner());
  double off = fabs((double)corner[1] - exact_corner()) / exact_corner();
  assert_true(off > 1e-6 && off < 1e-3);
  NEED(cublasDestroy_v2(handle));
  close_squares(&s);
}

/* Half precision and bfloat16 in, single precision out, on both. 1.5 is 0x3E00 and 0x3FC0, 2 is 0x4000 in both. */
static void test_short_types(void **state) {
  (void)state;
  static const uint16_t half[2] = {0x3E00, 0x4000}, brain[2] = {0x3FC0, 0x4000};
  static const abi_enum types[2][2] = {{CUBLAS_ABI_R_16F, CUBLAS_ABI_R_16BF}, {ROCBLAS_ABI_F16, ROCBLAS_ABI_BF16}};
  for (int i = 0; i < 4; i++) {
    bool is_hip = i / 2;
    squares s = open_squares(is_hip ? SIM_HIP : SIM_CUDA);
    uint16_t *pair = gpu_copy_of(i % 2 ? brain : half, sizeof half);
    struct cublasContext *cublas = NULL;
    struct _rocblas_handle *rocblas = NULL;
    float result;
    if (is_hip) {
      NEED(rocblas_create_handle(&rocblas));
      NEED(rocblas_set_atomics_mode(rocblas, ROCBLAS_ABI_ATOMICS_NOT_ALLOWED));
      NEED(rocblas_gemm_ex(rocblas, ROCBLAS_ABI_OPERATION_NONE, ROCBLAS_ABI_OPERATION_NONE, 1, 1, 2, &one, pair,
                           types[1][i % 2], 1, pair, types[1][i % 2], 2, &zero, s.c, ROCBLAS_ABI_F32, 1, s.c,
                           ROCBLAS_ABI_F32, 1, ROCBLAS_ABI_F32, ROCBLAS_ABI_GEMM_STANDARD, 0, 0));
    } else {
      NEED(cublasCreate_v2(&cublas));
      NEED(cublasGemmEx(cublas, CUBLAS_ABI_OP_N, CUBLAS_ABI_OP_N, 1, 1, 2, &one, pair, types[0][i % 2], 1, pair,
                        types[0][i % 2], 2, &zero, s.c, CUBLAS_ABI_R_32F, 1, CUBLAS_ABI_COMPUTE_32F,
                        CUBLAS_ABI_GEMM_DEFAULT));
    }
    gpu_copy_out(&result, s.c, sizeof result);
    assert_true(result == 1.5f * 1.5f + 4);
    if (is_hip)
      NEED(rocblas_destroy_handle(rocblas));
    else
      NEED(cublasDestroy_v2(cublas));
    gpu_free(pair);
    close_squares(&s);
  }
}

/* A call is done later, but with what alpha was then. */
static void test_alpha_is_read_at_once(void **state) {
  (void)state;
  squares s = open_squares(SIM_CUDA);
  struct cublasContext *handle;
  float alpha = 2, corner;
  NEED(cublasCreate_v2(&handle));
  NEED(multiply_cuda(handle, &s, SIDE, &alpha));
  alpha = 100;
  gpu_copy_out(&corner, s.c, sizeof corner);
  assert_true(fabs((double)corner - 2 * exact_corner()) < 1e-5);
  NEED(cublasDestroy_v2(handle));
  close_squares(&s);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * cuDNN
 */

typedef struct layer {
  struct cudnnContext *handle;
  struct cudnnTensorStruct *x, *y;
  struct cudnnFilterStruct *w;
  struct cudnnConvolutionStruct *convolution;
} layer;

static layer open_layer(void) {
  layer l;
  gpu_open(SIM_CUDA, 1);
  look_up();
  NEED(cudnnCreate(&l.handle));
  NEED(cudnnCreateTensorDescriptor(&l.x));
  NEED(cudnnCreateTensorDescriptor(&l.y));
  NEED(cudnnCreateFilterDescriptor(&l.w));
  NEED(cudnnCreateConvolutionDescriptor(&l.convolution));
  NEED(cudnnSetTensor4dDescriptor(l.x, CUDNN_ABI_NCHW, CUDNN_ABI_FLOAT, 2, 4, 8, 8));
  NEED(cudnnSetTensor4dDescriptor(l.y, CUDNN_ABI_NCHW, CUDNN_ABI_FLOAT, 2, 3, 6, 6));
  NEED(cudnnSetFilter4dDescriptor(l.w, CUDNN_ABI_FLOAT, CUDNN_ABI_NCHW, 3, 4, 3, 3));
  NEED(cudnnSetConvolution2dDescriptor(l.convolution, 0, 0, 1, 1, 1, 1, CUDNN_ABI_CROSS_CORRELATION, CUDNN_ABI_FLOAT));
  return l;
}

static void close_layer(layer *l) {
  NEED(cudnnDestroyTensorDescriptor(l->x));
  NEED(cudnnDestroyTensorDescriptor(l->y));
  NEED(cudnnDestroyFilterDescriptor(l->w));
  NEED(cudnnDestroyConvolutionDescriptor(l->convolution));
  NEED(cudnnDestroy(l->handle));
  gpu_close();
}

static abi_enum size(const layer *l, abi_enum algorithm) {
  size_t bytes;
  return cudnnGetConvolutionForwardWorkspaceSize(l->handle, l->x, l->w, l->convolution, l->y, algorithm, &bytes);
}

static void test_cudnn_statuses(void **state) {
  (void)state;
  layer l = open_layer();
  char message[64] = "";
  assert_int_equal(cudnnGetVersion() / 10000, 9);
  assert_int_equal(size(&l, CUDNN_ABI_FORWARD_IMPLICIT_GEMM), 0);
  assert_int_equal(size(&l, CUDNN_ABI_FORWARD_DIRECT), CUDNN_ABI_NOT_SUPPORTED);
  assert_int_equal(size(&l, 99), CUDNN_ABI_NOT_SUPPORTED);
  NEED(cudnnSetTensor4dDescriptor(l.y, CUDNN_ABI_NCHW, CUDNN_ABI_FLOAT, 2, 3, 8, 8)); /* does not fit */
  assert_int_equal(size(&l, CUDNN_ABI_FORWARD_IMPLICIT_GEMM), CUDNN_ABI_BAD_PARAM);
  cudnnGetLastErrorString(message, sizeof message);
  assert_non_null(strstr(message, "fit"));
  NEED(cudnnSetTensor4dDescriptor(l.y, CUDNN_ABI_NHWC, CUDNN_ABI_FLOAT, 2, 3, 6, 6)); /* a layout of its own */
  assert_int_equal(size(&l, CUDNN_ABI_FORWARD_IMPLICIT_GEMM), CUDNN_ABI_NOT_SUPPORTED);
  NEED(cudnnSetTensor4dDescriptor(l.y, CUDNN_ABI_NCHW, CUDNN_ABI_DOUBLE, 2, 3, 6, 6)); /* a type of its own */
  assert_int_equal(size(&l, CUDNN_ABI_FORWARD_IMPLICIT_GEMM), CUDNN_ABI_NOT_SUPPORTED);
  assert_string_equal(cudnnGetErrorString(CUDNN_ABI_BAD_PARAM), "CUDNN_STATUS_BAD_PARAM");
  close_layer(&l);
}

/* Algorithms with conditions are only listed where those hold; each is in the list, with a status. */
static void test_cudnn_lists(void **state) {
  (void)state;
  layer l = open_layer();
  cudnn_abi_performance results[CUDNN_ABI_FORWARD_COUNT];
  int count, works = 0;
  NEED(cudnnGetConvolutionForwardAlgorithm_v7(l.handle, l.x, l.w, l.convolution, l.y, CUDNN_ABI_FORWARD_COUNT, &count,
                                              (void *)results));
  assert_int_equal(count, CUDNN_ABI_FORWARD_COUNT);
  for (int i = 0; i < count; i++) works += results[i].status == 0;
  assert_int_equal(works, CUDNN_ABI_FORWARD_COUNT - 1); /* all but the direct one */
  for (int i = 1; i < works; i++) assert_true(results[i - 1].time <= results[i].time);
  /* channels last: two take it */
  NEED(cudnnSetTensor4dDescriptor(l.x, CUDNN_ABI_NHWC, CUDNN_ABI_FLOAT, 2, 4, 8, 8));
  NEED(cudnnSetTensor4dDescriptor(l.y, CUDNN_ABI_NHWC, CUDNN_ABI_FLOAT, 2, 3, 6, 6));
  NEED(cudnnSetFilter4dDescriptor(l.w, CUDNN_ABI_FLOAT, CUDNN_ABI_NHWC, 3, 4, 3, 3));
  NEED(cudnnGetConvolutionForwardAlgorithm_v7(l.handle, l.x, l.w, l.convolution, l.y, CUDNN_ABI_FORWARD_COUNT, &count,
                                              (void *)results));
  assert_true(results[0].status == 0 && results[1].status == 0 && results[2].status == CUDNN_ABI_NOT_SUPPORTED);
  close_layer(&l);
}

/* In double precision, where alpha and beta are doubles as well: y = 2 * 9 + 3 * 1 for ones everywhere. The workspace
 * is no place to keep anything. */
static void test_cudnn_adds(void **state) {
  (void)state;
  enum { PIXELS = 8 * 8, CHANNELS = 3, FILTER = CHANNELS * CHANNELS * 9, ELEMENTS = 2 * CHANNELS * PIXELS };
  layer l = open_layer();
  double ones[ELEMENTS], two = 2, three = 3, found[ELEMENTS];
  size_t bytes;
  for (int i = 0; i < ELEMENTS; i++) ones[i] = 1;
  NEED(cudnnSetTensor4dDescriptor(l.x, CUDNN_ABI_NCHW, CUDNN_ABI_DOUBLE, 2, CHANNELS, 8, 8));
  NEED(cudnnSetTensor4dDescriptor(l.y, CUDNN_ABI_NCHW, CUDNN_ABI_DOUBLE, 2, CHANNELS, 6, 6));
  NEED(cudnnSetFilter4dDescriptor(l.w, CUDNN_ABI_DOUBLE, CUDNN_ABI_NCHW, CHANNELS, 1, 3, 3));
  NEED(cudnnSetConvolution2dDescriptor(l.convolution, 0, 0, 1, 1, 1, 1, CUDNN_ABI_CROSS_CORRELATION, CUDNN_ABI_DOUBLE));
  NEED(cudnnSetConvolutionGroupCount(l.convolution, CHANNELS));
  NEED(cudnnSetConvolutionMathType(l.convolution, CUDNN_ABI_FMA_MATH));
  abi_enum by = CUDNN_ABI_FORWARD_GEMM;
  NEED(cudnnGetConvolutionForwardWorkspaceSize(l.handle, l.x, l.w, l.convolution, l.y, by, &bytes));
  assert_true(bytes > 0 && bytes < sizeof ones);
  double *x = gpu_copy_of(ones, sizeof ones), *w = gpu_copy_of(ones, FILTER * sizeof *ones);
  double *y = gpu_copy_of(ones, sizeof ones), *workspace = gpu_copy_of(ones, bytes);
  NEED(cudnnConvolutionForward(l.handle, &two, l.x, x, l.w, w, l.convolution, by, workspace, bytes, &three, l.y, y));
  gpu_copy_out(found, y, sizeof found);
  for (int i = 0; i < 2 * CHANNELS * 36; i++) assert_true(found[i] == 2 * 9 + 3);
  gpu_copy_out(found, workspace, bytes);
  for (size_t i = 0; i < bytes; i++) assert_int_equal(((unsigned char *)found)[i], 0xFF);
  gpu_free(x);
  gpu_free(w);
  gpu_free(y);
  gpu_free(workspace);
  close_layer(&l);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * MIOpen
 */

static void test_miopen_statuses(void **state) {
  (void)state;
  gpu_open(SIM_HIP, 1);
  look_up();
  struct miopenTensorDescriptor *tensor;
  struct miopenConvolutionDescriptor *convolution;
  size_t major = 0;
  NEED(miopenGetVersion(&major, NULL, NULL));
  assert_int_equal(major, 3);
  NEED(miopenCreateTensorDescriptor(&tensor));
  NEED(miopenCreateConvolutionDescriptor(&convolution));
  assert_int_equal(miopenSet4dTensorDescriptor(tensor, 99, 1, 1, 1, 1), MIOPEN_ABI_BAD_PARM);
  assert_int_equal(miopenSet4dTensorDescriptor(tensor, MIOPEN_ABI_FLOAT, 1, 0, 1, 1), MIOPEN_ABI_BAD_PARM);
  assert_int_equal(miopenInitConvolutionDescriptor(convolution, 0, -1, 0, 1, 1, 1, 1), MIOPEN_ABI_BAD_PARM);
  assert_int_equal(miopenInitConvolutionDescriptor(convolution, 0, 0, 0, 0, 1, 1, 1), MIOPEN_ABI_BAD_PARM);
  assert_int_equal(miopenSetConvolutionAttribute(convolution, MIOPEN_ABI_ATTRIBUTE_DETERMINISTIC, 2),
                   MIOPEN_ABI_BAD_PARM);
  assert_string_equal(miopenGetErrorString(MIOPEN_ABI_BAD_PARM), "miopenStatusBadParm");
  NEED(miopenDestroyTensorDescriptor(tensor));
  NEED(miopenDestroyConvolutionDescriptor(convolution));
  gpu_close();
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Counters and faults
 */

static uint64_t library_calls(void) {
  static void (*read_counters)(const sim_device *, sim_counters *);
  *(void **)&read_counters = face_function("libgpusim.so", "sim_counters_read");
  sim_counters counters;
  read_counters(NULL, &counters);
  return counters.occasions[SIM_LIBRARY];
}

static void test_calls_are_counted(void **state) {
  (void)state;
  squares s = open_squares(SIM_CUDA);
  struct cublasContext *handle;
  NEED(cublasCreate_v2(&handle));
  uint64_t before = library_calls();
  for (int i = 0; i < 5; i++) NEED(multiply_cuda(handle, &s, SIDE, &one));
  assert_int_equal(library_calls() - before, 5);
  gpu_finish();
  NEED(cublasDestroy_v2(handle));
  close_squares(&s);
}

/* The third call fails, the others do not. */
static void test_faults(void **state) {
  (void)state;
  squares s = open_squares(SIM_CUDA);
  struct cublasContext *handle;
  struct cudnnContext *dnn;
  struct cudnnTensorStruct *tensor;
  NEED(cublasCreate_v2(&handle));
  NEED(cudnnCreate(&dnn));
  NEED(cudnnCreateTensorDescriptor(&tensor));
  NEED(cudnnSetTensor4dDescriptor(tensor, CUDNN_ABI_NCHW, CUDNN_ABI_FLOAT, 1, SIDE, SIDE, 1));
  assert_int_equal(multiply_cuda(handle, &s, SIDE, &one), 0);
  assert_int_equal(multiply_cuda(handle, &s, SIDE, &one), 0);
  assert_int_equal(cudnnSoftmaxForward(dnn, CUDNN_ABI_SOFTMAX_ACCURATE, CUDNN_ABI_SOFTMAX_CHANNEL, &one, tensor, s.a,
                                       &zero, tensor, s.c),
                   CUDNN_ABI_EXECUTION_FAILED);
  assert_int_equal(multiply_cuda(handle, &s, SIDE, &one), 0);
  gpu_finish();
  NEED(cudnnDestroyTensorDescriptor(tensor));
  NEED(cudnnDestroy(dnn));
  NEED(cublasDestroy_v2(handle));
  close_squares(&s);
}

/* From the second call on every one fails, and all can be put away. */
static void test_lost(void **state) {
  (void)state;
  squares s = open_squares(SIM_HIP);
  struct _rocblas_handle *handle;
  struct miopenHandle *dnn, *other;
  abi_enum none = ROCBLAS_ABI_OPERATION_NONE;
  NEED(rocblas_create_handle(&handle));
  NEED(miopenCreateWithStream(&dnn, NULL));
  for (int i = 0; i < 4; i++) {
    abi_enum status = rocblas_sgemm(handle, none, none, SIDE, SIDE, SIDE, &one, s.a, SIDE, s.b, SIDE, &zero, s.c, SIDE);
    assert_int_equal(status, i == 0 ? 0 : ROCBLAS_ABI_INTERNAL_ERROR);
  }
  assert_int_not_equal(miopenCreateWithStream(&other, NULL), 0);
  NEED(miopenDestroy(dnn));
  NEED(rocblas_destroy_handle(handle));
}

int run_library_statuses(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cublas_statuses),   cmocka_unit_test(test_rocblas_statuses),
      cmocka_unit_test(test_cudnn_statuses),    cmocka_unit_test(test_cudnn_lists),
      cmocka_unit_test(test_miopen_statuses),   cmocka_unit_test(test_tf32),
      cmocka_unit_test(test_short_types),       cmocka_unit_test(test_alpha_is_read_at_once),
      cmocka_unit_test(test_calls_are_counted), cmocka_unit_test(test_cudnn_adds),
  };
  return cmocka_run_group_tests_name("statuses of libraries", tests, NULL, NULL);
}

int run_library_faults(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_faults)};
  return cmocka_run_group_tests_name("faults of libraries", tests, NULL, NULL);
}

int run_library_losses(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lost)};
  return cmocka_run_group_tests_name("lost devices and libraries", tests, NULL, NULL);
}
