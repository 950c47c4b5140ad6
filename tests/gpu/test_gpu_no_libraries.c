/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of products and convolutions where a library is missing, broken or fails: kernels of our own and one
 * warning that says what to install, or an error that says who failed. */
#include "child.h"

static child_end end;

typedef struct absence {
  const char *backend, *fault, *job, *warning, *install;
} absence;

static const absence absences[] = {
    {"cuda", "missing:cublasSgemm_v2", "matmul", "cuBLAS cannot be used", "install that of your driver's CUDA version"},
    {"cuda", "missing:cudnnConvolutionForward", "conv2d", "cuDNN cannot be used", "install cuDNN 9 or 8"},
    {"cuda", "missing:libcudnn.so.9", "conv2d", "cuDNN cannot be used", "HELIO_CUDA_LIBRARIES"},
    {"hip", "missing:librocblas.so.4", "matmul", "rocBLAS cannot be used", "install that of your ROCm version"},
    {"hip", "missing:libMIOpen.so.1", "conv2d", "MIOpen cannot be used", "install that of your ROCm version"},
    {"hip", "missing:miopenConvolutionForwardImmediate", "conv2d", "MIOpen cannot be used", "HELIO_HIP_LIBRARIES"},
};

static void run_with_fault(const char *backend, const char *fault, const char *job) {
  char options[200];
  snprintf(options, sizeof options, "--%s 1%s%s", backend, fault[0] == '\0' ? "" : " --fault ", fault);
  run_job(backend, "", options, job, &end);
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

/* A call that fails names the library. What it refuses, has no memory for, or cannot explain does not lose the device,
 * nor does what it could not execute: only the device itself tells that it was lost, whatever the library calls it. */
static const failure failures[] = {
    {"cuda", "library:1", "matmul", "HELIO_NOT_SUPPORTED", "cuBLAS: a product of matrices failed"},
    {"hip", "library:1", "matmul", "HELIO_NOT_SUPPORTED", "rocBLAS: a product of matrices failed"},
    {"cuda", "library:1=801", "matmul", "HELIO_NOT_SUPPORTED", "the functionality requested is not supported"},
    {"hip", "library:1=801", "matmul", "HELIO_NOT_SUPPORTED", "rocBLAS: a product of matrices failed"},
    {"cuda", "library:1=2", "matmul", "HELIO_OUT_OF_MEMORY", "the resource allocation failed"},
    {"hip", "library:1=2", "matmul", "HELIO_OUT_OF_MEMORY", "rocBLAS: a product of matrices failed"},
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
    if (strcmp(one->status, "HELIO_DEVICE_FAILURE") != 0) assert_says(end, "goes on: 5");
  }
}

/* A convolution that the library has planned and then refuses, for a reason of its own, is made without it. */
static void test_late_refusals(void **state) {
  (void)state;
  static const char *const refusals[][3] = {{"cuda", "library:1", "failed: CUDNN_STATUS_EXECUTION_FAILED"},
                                            {"cuda", "library:1=801", "failed: CUDNN_STATUS_NOT_SUPPORTED"},
                                            {"cuda", "library:1=2", "DEVICE_ALLOCATION_FAILED"},
                                            {"hip", "library:1=2", "MIOpen: a convolution failed"},
                                            {"hip", "library:1=801", "MIOpen: a convolution failed"},
                                            {"hip", "library:1", "MIOpen: a convolution failed"}};
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    run_with_fault(refusals[i][0], refusals[i][1], "conv2d");
    assert_ended(end, 0);
    assert_says(end, refusals[i][2]);
    assert_says(end, "refuses a convolution that it had planned itself");
    assert_says(end, "result: 18\n");
  }
}

/* Whichever stream, event, module or handle cannot be made: done all the same, or an error, but nothing is left. */
static void test_handles(void **state) {
  (void)state;
  static const char *const backends[] = {"cuda", "hip"};
  for (int i = 0; i < 2 * 24; i++) {
    char fault[32];
    snprintf(fault, sizeof fault, "create:%d", i / 2 + 1);
    run_with_fault(backends[i % 2], fault, "conv2d");
    if (end.status != 0 && end.status != 1) fail_msg("%s %s: %d: %s", backends[i % 2], fault, end.status, end.output);
  }
}

int main(int argc, char **argv) {
  do_job(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_with_libraries), cmocka_unit_test(test_without), cmocka_unit_test(test_failures),
      cmocka_unit_test(test_late_refusals),  cmocka_unit_test(test_handles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
