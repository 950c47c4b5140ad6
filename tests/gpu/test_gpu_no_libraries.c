/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of products and convolutions where a library is missing, broken or fails: kernels of our own and one
 * warning that says what to install or who refused, or an error that says who failed. */
#include "child.h"

#include <math.h>

static child_end end;

typedef struct absence {
  const char *backend, *fault, *job, *warning, *install;
} absence;

/* Those that the machine may have. */
#define NO_OLDER "missing:libcublas.so.12,missing:libcublas.so.11,missing:libcudnn.so.8"

static const absence absences[] = {
    {"cuda", "missing:cublasSgemm_v2," NO_OLDER, "matmul", "cuBLAS cannot be used",
     "install that of your driver's CUDA version"},
    {"cuda", "missing:cudnnConvolutionForward," NO_OLDER, "conv2d", "cuDNN cannot be used", "install cuDNN 9 or 8"},
    {"cuda", "missing:libcudnn.so.9," NO_OLDER, "conv2d", "cuDNN cannot be used", "HELIO_CUDA_LIBRARIES"},
    {"cuda", "missing:libcudnn_cnn.so.9," NO_OLDER, "conv2d", "cuDNN cannot be used", "libcudnn_cnn.so.9"},
    {"hip", "missing:librocblas.so.4", "matmul", "rocBLAS cannot be used", "install that of your ROCm version"},
    {"hip", "missing:libMIOpen.so.1", "conv2d", "MIOpen cannot be used", "install that of your ROCm version"},
    {"hip", "missing:miopenConvolutionForwardImmediate", "conv2d", "MIOpen cannot be used", "HELIO_HIP_LIBRARIES"},
};

static void run_with_fault(const char *backend, const char *fault, const char *job) {
  char options[200];
  snprintf(options, sizeof options, "--%s 1%s%s", backend, fault[0] == '\0' ? "" : " --fault ", fault);
  run_job(backend, "HELIO_CUDA_CACHE=none HELIO_HIP_CACHE=none", options, job, &end);
}

static void test_with_libraries(void **state) {
  (void)state;
  static const char *const backends[] = {"cuda", "hip"}, *const jobs[] = {"matmul", "conv2d"};
  for (int i = 0; i < 4; i++) {
    run_with_fault(backends[i / 2], "", jobs[i % 2]);
    assert_ended(end, 0);
    assert_says_not(end, "cannot be used");
  }
}

static void test_without(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof absences / sizeof absences[0]; i++) {
    run_with_fault(absences[i].backend, absences[i].fault, absences[i].job);
    assert_ended(end, 0);
    assert_says(end, absences[i].install);
    const char *first = strstr(end.output, absences[i].warning);
    assert_non_null(first);
    assert_null(strstr(first + 1, absences[i].warning)); /* once */
  }
}

typedef struct failure {
  const char *backend, *fault, *job, *status, *says;
} failure;

/* A call that fails names the library. Only the device itself tells that it was lost, whatever the library calls it. If
 * our own kernel cannot be had either, the device is as well as before. */
static const failure failures[] = {
    {"cuda", "library:1,compile:1", "matmul", "HELIO_NOT_SUPPORTED", "cuBLAS: a product of matrices failed"},
    {"hip", "library:1,compile:1", "matmul", "HELIO_NOT_SUPPORTED", "rocBLAS: a product of matrices failed"},
    {"cuda", "lost:library:1", "matmul", "HELIO_DEVICE_FAILURE",
     "because the device was lost: CUDA_ERROR_LAUNCH_FAILED"},
    {"hip", "lost:library:1", "conv2d", "HELIO_DEVICE_FAILURE", "because the device was lost: hipErrorLaunchFailure"},
};

static void test_failures(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
    const failure *one = &failures[i];
    run_with_fault(one->backend, one->fault, one->job);
    assert_ended(end, 1);
    assert_says(end, one->status);
    assert_says(end, one->says);
    bool lost = strcmp(one->status, "HELIO_DEVICE_FAILURE") == 0;
    if (!lost) assert_says(end, "goes on: 5");
    assert_suspect(end, lost);
  }
}

typedef struct refusal {
  const char *backend, *fault, *job, *says, *warning, *result;
} refusal;

#define OF_PRODUCT      "refuses a product of matrices, so that a kernel of our own makes it"
#define OF_CONVOLUTION  "refuses a convolution that it had planned itself"
#define SHORT_OF_MEMORY "cannot make a product of matrices, so that a kernel of our own makes it this time"

/* What the library was thought to take and then refuses, for a reason of its own, is made without it. */
static const refusal refusals[] = {
    {"cuda", "library:1", "conv2d", "failed: CUDNN_STATUS_EXECUTION_FAILED", OF_CONVOLUTION, "result: 18\n"},
    {"cuda", "library:1=801", "conv2d", "failed: CUDNN_STATUS_NOT_SUPPORTED", OF_CONVOLUTION, "result: 18\n"},
    {"cuda", "library:1=2", "conv2d", "DEVICE_ALLOCATION_FAILED", "cannot make a convolution", "result: 18\n"},
    {"hip", "library:1=2", "conv2d", "MIOpen: a convolution failed", "cannot make a convolution", "result: 18\n"},
    {"hip", "library:1=801", "conv2d", "MIOpen: a convolution failed", OF_CONVOLUTION, "result: 18\n"},
    {"hip", "library:1", "conv2d", "MIOpen: a convolution failed", OF_CONVOLUTION, "result: 18\n"},
    {"cuda", "library:1", "matmul", "the function failed to launch on the GPU", OF_PRODUCT, "result: 2\n"},
    {"cuda", "library:1=801", "matmul", "the functionality requested is not supported", OF_PRODUCT, "result: 2\n"},
    {"cuda", "library:1=2", "matmul", "the resource allocation failed", SHORT_OF_MEMORY, "result: 2\n"},
    {"hip", "library:1", "matmul", "rocBLAS: a product of matrices failed", OF_PRODUCT, "result: 2\n"},
    /* Short memory is of today: the library is asked again. */
    {"cuda", "library:1=2,library:2", "matmul-again", SHORT_OF_MEMORY, OF_PRODUCT, "result: 2\n"},
    {"hip", "library:1=2,library:2", "matmul-again", SHORT_OF_MEMORY, OF_PRODUCT, "result: 2\n"},
    {"hip", "library:1=801", "matmul", "rocBLAS: a product of matrices failed", OF_PRODUCT, "result: 2\n"},
    {"hip", "library:1=2", "matmul", "rocBLAS: a product of matrices failed", SHORT_OF_MEMORY, "result: 2\n"},
};

static void test_late_refusals(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    run_with_fault(refusals[i].backend, refusals[i].fault, refusals[i].job);
    assert_ended(end, 0);
    assert_says(end, refusals[i].says);
    assert_says(end, refusals[i].warning);
    assert_says(end, refusals[i].result);
  }
}

static double result_of(const char *backend, const char *fault, const char *job) {
  run_with_fault(backend, fault, job);
  assert_ended(end, 0);
  const char *result = strstr(end.output, "result: ");
  assert_non_null(result);
  return strtod(result + strlen("result: "), NULL);
}

/* Products of several kinds, each refused from the first, the second or the third call on: our kernel comes to what the
 * library comes to. */
static void test_refused_products(void **state) {
  (void)state;
  static const char *const backends[] = {"cuda", "hip"}, *const jobs[] = {"batches", "pointwise"};
  for (int i = 0; i < 4; i++) {
    double expected = result_of(backends[i / 2], "", jobs[i % 2]);
    assert_says_not(end, OF_PRODUCT);
    for (int first = 1; first <= 3; first++) {
      char fault[32];
      snprintf(fault, sizeof fault, "library:%d+", first);
      double found = result_of(backends[i / 2], fault, jobs[i % 2]);
      assert_says(end, OF_PRODUCT);
      if (fabs(found - expected) > 1e-4) fail_msg("%s %s: %g, not %g", jobs[i % 2], fault, found, expected);
    }
  }
}

/* Its text takes long to compile: only if it is needed. */
static void test_nothing_in_reserve(void **state) {
  (void)state;
  static const char *const jobs[] = {"matmul", "pointwise"};
  for (int i = 0; i < 4; i++) {
    run_with_fault("cuda", i / 2 == 0 ? "" : "library:1", jobs[i % 2]);
    assert_ended(end, 0);
    assert_int_equal(strstr(end.output, "compiling product.cu") != NULL, i / 2);
  }
}

/* For want of memory for a handle there is no plan, rather than one without the library that would be kept for good:
 * the next has it again. */
static void test_no_memory(void **state) {
  (void)state;
  run_with_fault("cuda", "allocation:2", "matmul-again");
  assert_ended(end, 0);
  assert_says(end, "error: HELIO_OUT_OF_MEMORY");
  assert_says(end, "cuBLAS: making a handle failed: no workspace of 4 MiB");
  assert_says(end, "result: 2\n");
  assert_says_not(end, "kernels of our own");
  assert_says_not(end, "compiling product.cu");
}

/* Whichever stream, event, module or handle cannot be made: done all the same, or an error, but nothing is left. Nobody
 * is told to install what is there. */
static void test_handles(void **state) {
  (void)state;
  static const char *const backends[] = {"cuda", "hip"};
  int refused[2] = {0, 0}; /* the library's own handles */
  for (int i = 0; i < 2 * 24; i++) {
    char fault[32];
    snprintf(fault, sizeof fault, "create:%d", i / 2 + 1);
    run_with_fault(backends[i % 2], fault, "conv2d");
    if (end.status != 0 && end.status != 1) fail_msg("%s %s: %d: %s", backends[i % 2], fault, end.status, end.output);
    assert_says_not(end, "install");
    refused[i % 2] += strstr(end.output, "does not start, so that convolutions are made by kernels of our own") != NULL;
  }
  assert_true(refused[0] > 0 && refused[1] > 0);
}

int main(int argc, char **argv) {
  do_job(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_with_libraries),   cmocka_unit_test(test_without),
      cmocka_unit_test(test_failures),         cmocka_unit_test(test_late_refusals),
      cmocka_unit_test(test_refused_products), cmocka_unit_test(test_nothing_in_reserve),
      cmocka_unit_test(test_no_memory),        cmocka_unit_test(test_handles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
