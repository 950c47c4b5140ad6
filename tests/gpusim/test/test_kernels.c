/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that are right give the right numbers in every order of threads, with both widths of a warp and under several
 * seeds; the faces of the run-time compilers answer as the vendors' do; and the texts of these tests are taken and
 * refused by the real NVRTC as they are by gpusim. Each program runs in a process of its own, this one with --inside
 * NAME, through `run`. */

/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* and then itself */
#include <cmocka.h>

#include "compiler_cases.h"
#include "kernel_cases.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CUDA_FOLDER
#define CUDA_FOLDER ""
#endif

static char folder[4096], self[4096]; /* of this program, where run is too */

static void find_self(void) {
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = 0;
  strcpy(folder, self);
  dirname(folder);
}

/* Runs this program inside of gpusim. */
static void run_inside(const char *options, const char *name) {
  char line[5 * 4096];
  snprintf(line, sizeof line, "mkdir -p '%s/cache' && exec '%s/run' --cache '%s/cache' %s '%s' --inside %s", folder,
           folder, folder, options, self, name);
  int status = system(line);
  if (status != 0) fail_msg("%s: status %d", line, WIFEXITED(status) ? WEXITSTATUS(status) : status);
}

static const char *const orders[] = {"up", "down", "shuffled"};

static void run_orders(const char *vendor) {
  char options[256];
  for (int i = 0; i < 6; i++) {
    snprintf(options, sizeof options, "--%s 1 --order %s --warp %d", vendor, orders[i % 3], i < 3 ? 32 : 64);
    run_inside(options, vendor);
  }
}

static void test_orders_cuda(void **state) {
  (void)state;
  run_orders("cuda");
}

static void test_orders_hip(void **state) {
  (void)state;
  run_orders("hip");
}

static void test_seeds(void **state) {
  (void)state;
  const char *setting = getenv("GPUSIM_TEST_SEEDS");
  int seeds = setting ? atoi(setting) : 5;
  char options[256];
  for (int seed = 1; seed <= seeds; seed++) {
    const char *vendor = seed % 2 ? "hip" : "cuda";
    snprintf(options, sizeof options, "--%s 1 --order shuffled --seed %d", vendor, seed);
    run_inside(options, vendor);
  }
}

static void test_compilers(void **state) {
  (void)state;
  run_inside("--cuda 1", "nvrtc");
  run_inside("--hip 1", "hiprtc");
  run_inside("--cuda 1 --driver 12080", "old-driver");
  run_inside("--cuda 1 --fault compile", "no-compiler");
  run_inside("--cuda 1", "compile-once");
}

static int run_inner(const char *name);

/* A program that is not there must not pass. */
static void test_unknown_program(void **state) {
  (void)state;
  assert_int_equal(run_inner("nothing"), 2);
}

static void test_real_compiler(void **state) {
  (void)state;
  const char *reason = real_compiler_open(CUDA_FOLDER);
  if (reason) {
    printf("SKIP: %s\n", reason);
    skip();
  }
  real_compiler_check();
}

static void run_cuda(void) {
  run_kernel_cases(SIM_CUDA);
}

static void run_hip(void) {
  run_kernel_cases(SIM_HIP);
}

static int run_inner(const char *name) {
  static const struct {
    const char *name;
    void (*run)(void);
  } programs[] = {{"nvrtc", check_nvrtc},
                  {"hiprtc", check_hiprtc},
                  {"old-driver", check_old_driver},
                  {"no-compiler", check_no_compiler},
                  {"compile-once", check_compile_once},
                  {"cuda", run_cuda},
                  {"hip", run_hip}};
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    if (strcmp(name, programs[i].name) != 0) continue;
    programs[i].run();
    return 0;
  }
  fprintf(stderr, "test_gpusim_kernels: there is no program called \"%s\"\n", name);
  return 2;
}

int main(int count, char **arguments) {
  if (count == 3 && !strcmp(arguments[1], "--inside")) return run_inner(arguments[2]);
  find_self();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_orders_cuda), cmocka_unit_test(test_orders_hip),      cmocka_unit_test(test_seeds),
      cmocka_unit_test(test_compilers),   cmocka_unit_test(test_unknown_program), cmocka_unit_test(test_real_compiler),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
