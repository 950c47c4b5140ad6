/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that allow kernels more: short formats and other last bits from run to run are taken where they are
 * allowed, and nowhere else. The vendors' libraries of gpusim round as TF32 does, and differ from time to time, where
 * real ones may. */
#include "child.h"

static child_end end;

typedef struct liberty {
  const char *backend, *settings, *job, *result;
} liberty;

#define NOT_ALLOWED "HELIO_ALLOW_TF32=0 HELIO_ALLOW_NONDETERMINISTIC=0"

static const liberty liberties[] = {
    /* 2 × (1 + 2⁻¹²), and 72 times that; TF32 has ten bits behind the point. */
    {"cuda", "", "short-matmul", "result: 2.00048828\n"},
    {"cuda", NOT_ALLOWED, "short-matmul", "result: 2.00048828\n"},
    {"cuda", "HELIO_ALLOW_NONDETERMINISTIC=1", "short-matmul", "result: 2.00048828\n"},
    {"cuda", "HELIO_ALLOW_TF32=1", "short-matmul", "result: 2\n"},
    {"cuda", "", "short-conv2d", "result: 144.035156\n"},
    {"cuda", "HELIO_ALLOW_NONDETERMINISTIC=1", "short-conv2d", "result: 144.035156\n"},
    {"cuda", "HELIO_ALLOW_TF32=1", "short-conv2d", "result: 144\n"},
    {"hip", "HELIO_ALLOW_TF32=1", "short-matmul", "result: 2.00048828\n"}, /* AMD's libraries have none such */
    /* MIOpen would round halves to bfloat16. */
    {"hip", "", "half-gradient", "result: 1.00195312\n"},
    {"cuda", "", "half-gradient", "result: 1.00195312\n"},
    /* Sums in another order each time. */
    {"cuda", "", "same-gradient", "result: 0\n"},
    {"cuda", "HELIO_ALLOW_TF32=1", "same-gradient", "result: 0\n"},
    {"cuda", "HELIO_ALLOW_NONDETERMINISTIC=1", "same-gradient", "result: 1\n"},
    {"hip", "", "same-gradient", "result: 0\n"},
    {"hip", "HELIO_ALLOW_NONDETERMINISTIC=1", "same-gradient", "result: 1\n"},
    {"hip", "", "same-matmul", "result: 0\n"},
    {"hip", "HELIO_ALLOW_NONDETERMINISTIC=1", "same-matmul", "result: 1\n"},
    {"cuda", "HELIO_ALLOW_NONDETERMINISTIC=1", "same-matmul", "result: 0\n"}, /* cuBLAS has a workspace of its own */
};

static void test_liberties(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof liberties / sizeof liberties[0]; i++) {
    const char *options = liberties[i].backend[0] == 'c' ? "--cuda 1" : "--hip 1";
    run_job(liberties[i].backend, liberties[i].settings, options, liberties[i].job, &end);
    assert_ended(end, 0);
    assert_says(end, liberties[i].result);
    assert_says_not(end, "unknown variable");
  }
}

/* What a library does not do within its limits is done all the same, and it is told that it is slower. */
static void test_refusal(void **state) {
  (void)state;
  run_job("cuda", "HELIO_CUDA_WORKSPACE=0", "--cuda 1", "same-gradient", &end);
  assert_ended(end, 0);
  assert_says(end, "WARNING:helio:cuda: cuDNN does not make a convolution of images (2, 9, 9, 8)");
  assert_says(end, "it has no deterministic way with 0 MiB of memory for itself (HELIO_CUDA_WORKSPACE)");
  assert_says(end, "result: 0\n");
  run_job("cuda", "HELIO_CUDA_WORKSPACE=1", "--cuda 1", "same-gradient", &end);
  assert_ended(end, 0);
  assert_says_not(end, "does not make a convolution");
  /* MIOpen has nothing for gradients of kernels in one order of sums but its reference. */
  run_job("hip", "", "--hip 1", "same-gradient", &end);
  assert_ended(end, 0);
  assert_says(end, "WARNING:helio:hip: MIOpen does not make a convolution of images (2, 9, 9, 8)");
  assert_says(end, "it has no deterministic way");
  assert_says(end, "result: 0\n");
}

int main(int argc, char **argv) {
  do_job(argc, argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_liberties), cmocka_unit_test(test_refusal)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
