/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations against the vendors' headers. The compiler has compared them already (abi/abi.h): this tells with
 * which versions, and skips where there was nothing to compare with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "abi/abi.h"

static void test_declarations(void **state) {
  const abi_check *check = *state;
  if (check->absent) {
    printf("SKIP: %s: %s\n", check->library, check->absent);
    skip();
  }
  printf("%s: declarations equal those of version %d.%d.%d\n", check->library, check->version[0], check->version[1],
         check->version[2]);
  assert_true(check->version[0] > 0);
}

static void test_stand_ins_have_all(void **state) {
  (void)state;
  char folder[4096];
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - sizeof "/libs");
  assert_true(length > 0);
  folder[length] = 0;
  strcpy(strrchr(folder, '/'), "/libs");
  assert_int_equal(functions_missing(folder), 0);
}

#define DECLARATIONS(check)                                                                                            \
  { #check, test_declarations, NULL, NULL, (void *)&check }

int main(void) {
  const struct CMUnitTest tests[] = {
      DECLARATIONS(cuda_driver_check),
      DECLARATIONS(nvrtc_check),
      DECLARATIONS(cublas_check),
      DECLARATIONS(cudnn_check),
      DECLARATIONS(nccl_check),
      DECLARATIONS(hip_check),
      DECLARATIONS(hiprtc_check),
      DECLARATIONS(rocblas_check),
      DECLARATIONS(miopen_check),
      DECLARATIONS(rccl_check),
      cmocka_unit_test(test_stand_ins_have_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
