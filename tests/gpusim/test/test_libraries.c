/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-ins for cuBLAS, cuDNN, rocBLAS and MIOpen. Their tests run on gpusim, in processes of their own, under
 * several seeds; and where the real cuDNN is installed, its descriptors are compared with the stand-in's. */

/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* and then itself */
#include <cmocka.h>

#include "library_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[4096]; /* where run and this program are */

/* ---------------------------------------------------------------------------------------------------------------------
 * On gpusim
 */

static void expect_success(const char *settings, const char *cases) {
  char line[16384];
  snprintf(line, sizeof line, "cd '%s' && env GPUSIM_CUDA=1 GPUSIM_HIP=1 %s ./run ./test_gpusim_libraries %s '%s'",
           folder, settings, cases, golden_path);
  fflush(NULL);
  int status = system(line);
  if (status != 0) fail_msg("%s: ended with status %d", line, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void test_numbers(void **state) {
  (void)state;
  const char *value = getenv("GPUSIM_TEST_SEEDS");
  for (int seed = 1; seed <= (value ? atoi(value) : 3); seed++) {
    char settings[64];
    snprintf(settings, sizeof settings, "GPUSIM_SEED=%d", seed);
    expect_success(settings, "--numbers");
  }
}

static void test_statuses(void **state) {
  (void)state;
  expect_success("GPUSIM_SEED=3", "--statuses");
}

static void test_faults(void **state) {
  (void)state;
  expect_success("GPUSIM_FAULT=library:3", "--faults");
  expect_success("GPUSIM_FAULT=lost:library:2", "--losses");
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Against the real cuDNN
 */

enum { DESCRIPTORS = 5000 };

/* "" if there is none. */
static const char *real_cudnn(void) {
  static char path[1024];
  static const char *const parts[] = {"lib64", "lib", "lib/x86_64-linux-gnu"};
  const char *sdk = CUDA_FOLDER;
  for (size_t i = 0; i < sizeof parts / sizeof *parts && *sdk; i++) {
    snprintf(path, sizeof path, "%s/%s/libcudnn.so.9", sdk, parts[i]);
    if (access(path, R_OK) == 0) return path;
  }
  return "";
}

/* The real library must not find stand-ins for those that it needs. */
static FILE *open_answers(const char *library) {
  char line[16384];
  snprintf(line, sizeof line, "exec env -u LD_LIBRARY_PATH '%s/cudnn_descriptors' '%s' %d", folder, library,
           DESCRIPTORS);
  fflush(NULL);
  FILE *answers = popen(line, "r");
  assert_non_null(answers);
  return answers;
}

static void test_real_cudnn(void **state) {
  (void)state;
  char ours_path[5000], ours[256], theirs[256];
  if (!*real_cudnn()) {
    print_message("SKIP: no real cuDNN to compare with (configure --with-cuda=DIR says where it is)\n");
    skip();
  }
  snprintf(ours_path, sizeof ours_path, "%s/libs/libcudnn.so.9", folder);
  FILE *of_ours = open_answers(ours_path), *of_theirs = open_answers(real_cudnn());
  int lines = 0;
  while (fgets(theirs, sizeof theirs, of_theirs)) {
    lines++;
    if (!fgets(ours, sizeof ours, of_ours)) fail_msg("the stand-in stopped at line %d", lines);
    if (strcmp(ours, theirs) != 0) fail_msg("line %d: cuDNN says %sthe stand-in %s", lines, theirs, ours);
  }
  assert_int_equal(pclose(of_theirs), 0);
  assert_int_equal(pclose(of_ours), 0);
  assert_true(lines > 5 * DESCRIPTORS);
}

static void find_folder(void) {
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  if (length < 0) exit(2);
  folder[length] = 0;
  *strrchr(folder, '/') = 0;
}

int main(int count, char **arguments) {
  golden_path = count == 3 ? arguments[2] : GOLDEN_FOLDER "/libraries.txt";
  if (count >= 2 && !strcmp(arguments[1], "--numbers")) return run_library_cases();
  if (count >= 2 && !strcmp(arguments[1], "--statuses")) return run_library_statuses();
  if (count >= 2 && !strcmp(arguments[1], "--faults")) return run_library_faults();
  if (count >= 2 && !strcmp(arguments[1], "--losses")) return run_library_losses();
  find_folder();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_statuses),
      cmocka_unit_test(test_faults),
      cmocka_unit_test(test_real_cudnn),
  };
  return cmocka_run_group_tests_name("gpusim libraries", tests, NULL, NULL);
}
