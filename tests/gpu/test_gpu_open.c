/* SPDX-License-Identifier: Apache-2.0 */
/* Which libraries are opened, and whether they find each other: parts beside a library, runtimes of another version,
 * files that rocBLAS needs, versions of CUDA beside each other. */
#include "child.h"

#include "../../backends/gpu/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static child_end end;

/* Where the libraries of beside/ are. */
static void beside(char folder[PATH_MAX]) {
  snprintf(folder, PATH_MAX, "%.2000s/tests/gpu/beside", test_build_folder());
}

static void touch(const char *folder, const char *file) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  char *slash = strrchr(path, '/');
  *slash = '\0';
  mkdir(path, 0700);
  *slash = '/';
  FILE *made = fopen(path, "w");
  assert_non_null(made);
  fclose(made);
}

static void run_on(const char *libraries, const char *options, const char *job) {
  char settings[PATH_MAX + 64];
  snprintf(settings, sizeof settings, "HELIO_CUDA_CACHE=none HELIO_CUDA_LIBRARIES=%s", libraries);
  run_job("cuda", settings, options, job, &end);
}

/* A library that was found by its path finds its part only if that was opened before it. */
static void test_parts(void **state) {
  (void)state;
  static const char *const names[] = {"libwhole.so.1", NULL}, *const parts[] = {"libpart.so.1", "libnone.so.1", NULL};
  char folder[PATH_MAX], reason[512] = "";
  gpu_places places = {.named = ""};
  beside(folder);
  snprintf(places.usual, sizeof places.usual, "/nowhere:%.2100s", folder);
  void *whole = gpu_library_open(names, &places, reason, sizeof reason);
  assert_non_null(whole);
  int (*works)(void);
  *(void **)&works = dlsym(whole, "whole_works");
  assert_int_equal(works(), 0);
  gpu_library_open_beside(whole, parts);
  assert_int_equal(works(), 1);
  reason[0] = '\0';
  assert_false(gpu_library_open_parts(whole, parts, reason, sizeof reason));
  assert_non_null(strstr(reason, "libnone.so.1: cannot open shared object file"));
  assert_true(gpu_library_open_parts(whole, (const char *const[]){parts[0], NULL}, reason, sizeof reason));
}

/* Named folders come before the loader, and a newer library of a usual one before an older one of the loader's. */
static void test_order(void **state) {
  (void)state;
  static const char *const newer_first[] = {"librocblas.so.5", "libc.so.6", NULL};
  static const char *const older_first[] = {"libc.so.6", "librocblas.so.5", NULL};
  char folder[PATH_MAX];
  beside(folder);
  const struct {
    const char *const *names;
    const char *named, *usual, *found;
  } cases[] = {{newer_first, "/nowhere", "/nowhere", "libc.so.6"},
               {newer_first, "", folder, "librocblas.so.5"},
               {older_first, folder, "", "librocblas.so.5"},
               {older_first, "", folder, "libc.so.6"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char reason[512] = "", path[PATH_MAX];
    gpu_places places;
    snprintf(places.named, sizeof places.named, "%s", cases[i].named);
    snprintf(places.usual, sizeof places.usual, "%s", cases[i].usual);
    void *library = gpu_library_open(cases[i].names, &places, reason, sizeof reason);
    assert_non_null(library);
    gpu_library_path(library, path, sizeof path);
    assert_non_null(strstr(path, cases[i].found));
    if (cases[i].names == newer_first) assert_ptr_equal(gpu_library_opened(newer_first), library);
  }
}

/* A file that is there and cannot be opened is the reason, not those that are not there. */
static void test_reasons(void **state) { /* before libpart.so.1 is open */
  (void)state;
  static const char *const absent[] = {"libnone.so.2", "libnone.so.1", NULL};
  static const char *const needy[] = {"libnone.so.1", "libneedy.so.1", "libnone.so.0", NULL};
  char folder[PATH_MAX], reason[PATH_MAX] = "", expected[PATH_MAX + 128];
  gpu_places places = {.named = ""};
  const char *words = "is there, but cannot be opened: libpart.so.1: cannot open shared object file";
  beside(folder);
  snprintf(places.usual, sizeof places.usual, "/nowhere:%.2100s:/nowhere", folder);
  assert_null(gpu_library_open(absent, &places, reason, sizeof reason));
  assert_string_equal(reason, "libnone.so.2: cannot open shared object file: No such file or directory");
  assert_null(gpu_library_open(needy, &places, reason, sizeof reason));
  snprintf(expected, sizeof expected, "%s/libneedy.so.1 %s", folder, words);
  if (strncmp(reason, expected, strlen(expected)) != 0) fail_msg("%s", reason);
  assert_null(gpu_library_open(absent, &places, reason, sizeof reason));
  assert_int_equal(strncmp(reason, expected, strlen(expected)), 0);
}

/* The same of what the loader finds by a plain name, and of what a named folder has. That there is no compiler either
 * does not matter here; one of the machine's own must not be found, nor another cuBLAS. */
static void test_reasons_told(void **state) {
  (void)state;
  const char *recent = "--cuda 1 --architecture sm_70 --fault missing:libnvrtc.so.12,missing:libnvrtc.so.11.2";
  const char *old = "--cuda 1 --architecture sm_70 --driver 11080 --fault missing:libnvrtc.so.11.2";
  char folder[] = "/tmp/helio-test-XXXXXX", libraries[PATH_MAX], needy[PATH_MAX + 64], path[64], settings[128];
  assert_non_null(mkdtemp(folder));
  beside(libraries);
  touch(folder, "libcublas.so.11");
  snprintf(needy, sizeof needy, "%s/libneedy.so.1", libraries);
  snprintf(path, sizeof path, "%s/libcublas.so.12", folder);
  assert_int_equal(symlink(needy, path), 0);
  snprintf(settings, sizeof settings, "LD_LIBRARY_PATH=%s", folder);
  run_job("cuda", settings, recent, "matmul", &end);
  unlink(path);
  assert_says(end, "(libcublas.so.12 is there, but cannot be opened: libpart.so.1: cannot open shared object file");
  snprintf(settings, sizeof settings, "LD_LIBRARY_PATH=%s HELIO_CUDA_LIBRARIES=%s", folder, folder);
  run_job("cuda", settings, old, "matmul", &end);
  snprintf(path, sizeof path, "%s/libcublas.so.11", folder);
  unlink(path);
  rmdir(folder);
  assert_says(end, "/libcublas.so.11 is there, but cannot be opened: ");
  assert_says(end, "/libcublas.so.11: file too short)");
}

/* A library of another ROCm version is refused, whatever its name, and kernels of our own do its work. */
static void test_other_runtime(void **state) {
  (void)state;
  char folder[PATH_MAX], settings[PATH_MAX + 64];
  beside(folder);
  snprintf(settings, sizeof settings, "HELIO_HIP_LIBRARIES=%s", folder);
  run_job("hip", settings, "--hip 1 --fault missing:libMIOpen.so.1", "conv2d", &end);
  assert_ended(end, 0);
  assert_says(end, "MIOpen cannot be used");
  assert_says(end, "beside/libMIOpen.so.1 was built for another runtime");
  assert_says(end, "beside/older/libamdhip64.so.5");
  assert_says(end, "result: 18");
}

/* rocBLAS has a number for each major version of the runtime: those of others are not even opened. */
static void test_other_number(void **state) {
  (void)state;
  char folder[PATH_MAX], settings[PATH_MAX + 64];
  beside(folder);
  snprintf(settings, sizeof settings, "HELIO_HIP_LIBRARIES=%s", folder);
  run_job("hip", settings, "--hip 1 --fault missing:librocblas.so.4", "matmul", &end);
  assert_ended(end, 0);
  assert_says(end, "rocBLAS cannot be used");
  assert_says_not(end, "was opened");
  assert_says(end, "result: 2");
}

/* What we do not call a library need not have. */
static void test_not_called(void **state) {
  (void)state;
  static const struct {
    const char *backend, *options, *job, *result;
  } cases[] = {
      {"cuda", "--cuda 1 --fault missing:cuCtxGetCurrent,missing:cublasGemmEx", "matmul", "result: 2"},
      {"cuda", "--cuda 1 --fault missing:cudnnGetVersion,missing:cudnnSetPooling2dDescriptor", "conv2d", "result: 18"},
      {"hip", "--hip 1 --fault missing:hipGetDevice,missing:rocblas_gemm_ex", "matmul", "result: 2"},
      {"hip", "--hip 1 --fault missing:hipGetDeviceProperties", "matmul", "result: 2"},
      {"hip", "--hip 1 --fault missing:hipGetDevicePropertiesR0600", "matmul", "result: 2"},
      {"hip", "--hip 1 --fault missing:miopenGetVersion,missing:miopenSet4dTensorDescriptor", "conv2d", "result: 18"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    run_job(cases[i].backend, "", cases[i].options, cases[i].job, &end);
    assert_ended(end, 0);
    assert_says(end, cases[i].result);
    assert_says_not(end, "cannot be used");
  }
}

/* ---- libraries of several CUDA versions ---- */

/* Where gpusim's libraries of CUDA 12 are. */
static void older(char folder[PATH_MAX]) {
  snprintf(folder, PATH_MAX, "%.2000s/tests/gpusim/older", test_build_folder());
}

/* Those of CUDA 13 have no code for a Volta: it gets those of CUDA 12, if they are there as well. */
static void test_older_libraries(void **state) {
  (void)state;
  char folder[PATH_MAX];
  older(folder);
  run_on(folder, "--cuda 1 --architecture sm_70", "matmul");
  assert_ended(end, 0);
  assert_says(end, "result: 2");
  assert_says_not(end, "cuBLAS cannot be used");
}

/* cuBLAS has no products of bfloat16 for a Pascal. */
static void test_older_types(void **state) {
  (void)state;
  char folder[PATH_MAX];
  older(folder);
  run_on(folder, "--cuda 1 --architecture sm_60", "bfloat16-matmul");
  assert_ended(end, 0);
  assert_says(end, "result: 2");
  assert_says_not(end, "cuBLAS cannot be used");
}

/* The newest that knows the GPU is used: that of CUDA 12 would compile for compute_90. */
static void test_newest_compiler(void **state) {
  (void)state;
  char folder[PATH_MAX];
  older(folder);
  run_on(folder, "--cuda 1 --architecture sm_100 --fault compile", "add");
  assert_ended(end, 1);
  assert_says(end, "with --gpu-architecture=sm_100");
}

/* With the compiler of CUDA 12, but not its cuBLAS, kernels of our own do its work. */
static void test_older_compiler_only(void **state) {
  (void)state;
  char folder[] = "/tmp/helio-test-XXXXXX", from[PATH_MAX], file[PATH_MAX + 64], link_path[64];
  assert_non_null(mkdtemp(folder));
  older(from);
  snprintf(file, sizeof file, "%s/libnvrtc.so.12", from);
  snprintf(link_path, sizeof link_path, "%s/libnvrtc.so.12", folder);
  assert_int_equal(symlink(file, link_path), 0);
  run_on(folder, "--cuda 1 --architecture sm_70 --fault missing:libcublas.so.12,missing:libcublas.so.11", "matmul");
  unlink(link_path);
  rmdir(folder);
  assert_ended(end, 0);
  assert_says(end, "result: 2");
  assert_says(end, "cuBLAS cannot be used");
  assert_says(end, "or of CUDA 12 for GPUs before Turing");
  assert_says(end, "libcublas.so.12");
}

/* ---- rocBLAS' files ---- */

typedef struct tensile_case {
  const char *file; /* in the folder; NULL: there is no such folder */
  const char *architecture;
  bool serves;
} tensile_case;

static const tensile_case tensile_cases[] = {
    {"TensileLibrary_lazy_gfx90a.dat", "gfx90a:sramecc+:xnack-", true},
    {"TensileLibrary_gfx90a.dat", "gfx90a:sramecc+:xnack-", true},
    {"gfx90a/TensileLibrary_lazy_gfx90a.dat", "gfx90a:sramecc+:xnack-", true},
    {"TensileLibrary_lazy_gfx1030.dat", "gfx90a:sramecc+:xnack-", false},
    {"TensileLibrary_lazy_gfx90a.dat", "gfx1030", false},
    {"TensileLibrary.dat", "gfx1030", false}, /* for all whose code is there, and there is none */
    {"Kernels.so-000-gfx1030.hsaco", "gfx1030", false},
    {NULL, "gfx1030", false},
};

/* Without files for the card rocBLAS would end the process with its first product, so that none is asked for. */
static void test_tensile(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof tensile_cases / sizeof tensile_cases[0]; i++) {
    const tensile_case *one = &tensile_cases[i];
    char folder[] = "/tmp/helio-test-XXXXXX", settings[256], options[128], command[128];
    assert_non_null(mkdtemp(folder));
    if (one->file != NULL) touch(folder, one->file);
    snprintf(settings, sizeof settings, "ROCBLAS_TENSILE_LIBPATH=%s%s", folder, one->file == NULL ? "/none" : "");
    snprintf(options, sizeof options, "--hip 1 --architecture %s", one->architecture);
    run_job("hip", settings, options, "matmul", &end);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    assert_ended(end, 0);
    assert_says(end, "result: 2");
    if (one->serves) assert_says_not(end, "rocBLAS cannot be used");
    if (!one->serves) assert_says(end, "it has no TensileLibrary file for gfx");
  }
}

int main(int argc, char **argv) {
  do_job(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reasons),
      cmocka_unit_test(test_parts),
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_reasons_told),
      cmocka_unit_test(test_other_runtime),
      cmocka_unit_test(test_other_number),
      cmocka_unit_test(test_not_called),
      cmocka_unit_test(test_older_libraries),
      cmocka_unit_test(test_older_types),
      cmocka_unit_test(test_newest_compiler),
      cmocka_unit_test(test_older_compiler_only),
      cmocka_unit_test(test_tensile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
