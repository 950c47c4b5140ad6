/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPU backends say when a library, a symbol, a driver, a device or a compiler is missing, too old or broken.
 */
#include "child.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

/* Versions that gpusim has not, but the machine may have. */
#define NO_OTHER_HIP                                                                                                   \
  "missing:libamdhip64.so.9,missing:libamdhip64.so.8,missing:libamdhip64.so.7,missing:libamdhip64.so.5"
#define NO_OLDER_NVRTC "missing:libnvrtc.so.12,missing:libnvrtc.so.11.2"
#define NO_OLDER_BLAS  "missing:libcublas.so.12,missing:libcublas.so.11"

static child_end end;

/* ---- probing ---- */

typedef struct probe_case {
  const char *backend, *options;
  const char *status; /* and count of devices, as a report has them */
  const char *reason; /* a part of it */
} probe_case;

static const probe_case probes[] = {
    {"cuda", "--cuda 2", "cuda\tusable\t2", "2 NVIDIA GPUs, CUDA driver 13.0"},
    {"cuda", "--cuda 1 --driver 12040", "cuda\tusable\t1", "1 NVIDIA GPU, CUDA driver 12.4"},
    {"cuda", "--cuda 0", "cuda\tno device\t0", "the driver found none (nvidia-smi shows what it sees)"},
    {"cuda", "--cuda 1 --driver 0", "cuda\tno device\t0", "the stub of the CUDA Toolkit, not a driver"},
    {"cuda", "--cuda 1 --driver 10020", "cuda\tno device\t0", "CUDA 10.2, which is too old"},
    {"cuda", "--cuda 1 --fault missing:libcuda.so.1", "cuda\tno device\t0",
     "there is no driver of CUDA: install NVIDIA's driver ("},
    {"cuda", "--cuda 1 --fault missing:libcuda.so.1", "cuda\tno device\t0", "libcuda.so.1: file too short"},
    {"cuda", "--cuda 1 --fault missing:cuMemGetInfo_v2", "cuda\tno device\t0", "libcuda.so.1 has no cuMemGetInfo_v2"},
    {"hip", "--hip 3", "hip\tusable\t3", "3 AMD GPUs, HIP 6."},
    {"hip", "--hip 0 --cuda 1", "hip\tno device\t0", "AMD GPU"},
    {"hip", "--hip 1 --fault missing:hipMemGetInfo", "hip\tno device\t0", "libamdhip64 has no hipMemGetInfo"},
    /* What a probe does not open it cannot miss. */
    {"cuda", "--cuda 1 --fault missing:libnvrtc.so.13,missing:libcublas.so.13", "cuda\tusable\t1", "1 NVIDIA GPU"},
    {"hip", "--hip 1 --fault missing:librocblas.so.4,missing:libMIOpen.so.1", "hip\tusable\t1", "1 AMD GPU"},
};

static void test_probes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
    run_job(probes[i].backend, "", probes[i].options, "plugins", &end);
    assert_ended(end, 0);
    assert_says(end, probes[i].status);
    assert_says(end, probes[i].reason);
  }
}

/* The vendors' own variables are for their drivers; ours come after them. */
static void test_visible(void **state) {
  (void)state;
  run_job("cuda", "CUDA_VISIBLE_DEVICES=2,0", "--cuda 3", "plugins", &end);
  assert_says(end, "cuda\tusable\t2");
  run_job("cuda", "CUDA_VISIBLE_DEVICES=", "--cuda 3", "plugins", &end);
  assert_says(end, "cuda\tno device\t0");
  assert_says(end, "or CUDA_VISIBLE_DEVICES hides it");
  run_job("hip", "HIP_VISIBLE_DEVICES=1", "--hip 3", "plugins", &end);
  assert_says(end, "hip\tusable\t1");
}

/* On the machine as it is, whatever it has: an answer and a reason. */
static void test_own_machine(void **state) {
  (void)state;
  run_machine_job("cuda", "plugins", &end);
  assert_ended(end, 0);
  run_machine_job("hip", "plugins", &end);
  assert_ended(end, 0);
  const char *line = strstr(end.output, "hip\t");
  assert_non_null(line);
  assert_true(strncmp(line, "hip\tno device\t0\t", 16) == 0 || strncmp(line, "hip\tusable\t", 11) == 0);
}

/* Asked for by its name, the reason is an error. */
static void test_reason_is_the_error(void **state) {
  (void)state;
  run_job("cuda", "", "--cuda 1 --driver 0", "add", &end);
  assert_ended(end, 1);
  assert_says(end, "error: HELIO_NO_DEVICE");
  assert_says(end, "the stub of the CUDA Toolkit, not a driver");
}

static void test_no_hip_library(void **state) {
  (void)state;
  run_job("hip", "", "--hip 1 --fault missing:libamdhip64.so.6," NO_OTHER_HIP, "plugins", &end);
  assert_ended(end, 0);
  assert_says(end, "hip\tno device\t0");
  assert_says(end, "there is no HIP: install ROCm's runtime (Debian: libamdhip64-5), or say where it is by "
                   "HELIO_HIP_LIBRARIES");
}

/* The vendor's own stub, of which every CUDA Toolkit has one. */
static void test_real_stub(void **state) {
  (void)state;
  const char *cuda = getenv("HELIO_TEST_CUDA");
  char stub[PATH_MAX], folder[64], link_path[128], settings[256];
  snprintf(stub, sizeof stub, "%s/lib64/stubs/libcuda.so", cuda == NULL ? "" : cuda);
  if (access(stub, R_OK) != 0) SKIP("there is no %s of the CUDA Toolkit", stub);
  snprintf(folder, sizeof folder, "/tmp/helio-test-XXXXXX");
  assert_non_null(mkdtemp(folder));
  snprintf(link_path, sizeof link_path, "%s/libcuda.so.1", folder);
  assert_int_equal(symlink(stub, link_path), 0);
  /* Before the emulated one: this environment is set behind tests/gpusim/run, by a second env. */
  snprintf(settings, sizeof settings, "--cuda 1 env LD_LIBRARY_PATH=%s:$LD_LIBRARY_PATH", folder);
  run_job("cuda", "", settings, "plugins", &end);
  unlink(link_path);
  rmdir(folder);
  assert_says(end, "cuda\tno device\t0");
  assert_says(end, "the stub of the CUDA Toolkit, not a driver");
}

/* ---- compilers ---- */

typedef struct compile_case {
  const char *backend, *options;
  const char *says; /* NULL: the sum is computed */
} compile_case;

static const compile_case compiles[] = {
    {"cuda", "--cuda 1", NULL},
    {"hip", "--hip 1", NULL},
    {"cuda", "--cuda 1 --fault missing:libnvrtc.so.13," NO_OLDER_NVRTC, "there is no NVRTC of CUDA 13 or older"},
    {"cuda", "--cuda 1 --fault compile", "NVRTC does not compile"},
    {"hip", "--hip 1 --fault compile", "hipRTC does not compile"},
    /* The runtime has the compiler in it. */
    {"hip", "--hip 1 --fault missing:libhiprtc.so.6", NULL},
    {"hip", "--hip 1 --fault missing:libhiprtc.so.6,missing:hiprtcGetCode",
     "there is no libhiprtc.so.6, nor has libamdhip64 hiprtcGetCode"},
    /* A device that is newer than the compiler gets text for its driver, one that is too old an explanation. */
    {"cuda", "--cuda 1 --architecture sm_90", NULL},
    {"cuda", "--cuda 1 --architecture sm_125", NULL},
    {"cuda", "--cuda 1 --architecture sm_70 --fault " NO_OLDER_NVRTC,
     "NVRTC 13.0 does not know sm_70: install that of CUDA 12 as well"},
    {"hip", "--hip 1 --architecture gfx1030", NULL},
};

static void test_compilers(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof compiles / sizeof compiles[0]; i++) {
    const char *setting = compiles[i].backend[0] == 'c' ? "HELIO_CUDA_CACHE=none" : "HELIO_HIP_CACHE=none";
    run_job(compiles[i].backend, setting, compiles[i].options, "add", &end);
    assert_says(end, compiles[i].says == NULL ? "result: 3" : compiles[i].says);
    assert_says(end, "goes on: 5");
    assert_suspect(end, false);
    assert_ended(end, compiles[i].says == NULL ? 0 : 1);
    if (compiles[i].says != NULL) assert_says(end, "error: HELIO_NOT_SUPPORTED");
  }
}

/* That a device cannot compile is no loss of it: whoever may run elsewhere does, and the device goes on. */
static void test_compiles_elsewhere(void **state) {
  (void)state;
  run_job("cuda", "HELIO_SOFT_PLACEMENT=1 HELIO_CUDA_CACHE=none", "--cuda 1 --fault compile", "add", &end);
  assert_ended(end, 0);
  assert_says(end, "NVRTC does not compile");
  assert_says(end, "result: 3");
  assert_says(end, "goes on: 5");
  assert_suspect(end, false);
}

/* Nor has an older one, which the machine may have, what the newest lacks. */
static void test_compiler_without_symbol(void **state) {
  (void)state;
  char folder[] = "/tmp/helio-test-XXXXXX", command[4 * PATH_MAX], settings[128];
  const char *build = test_build_folder();
  assert_non_null(mkdtemp(folder));
  snprintf(command, sizeof command,
           "cd %s && ln -s %.900s/tests/gpusim/libs/lib* . && ln -s %.900s/tests/gpusim/older/libnvrtc.so.12 . && "
           "ln -s libnvrtc.so.12 libnvrtc.so.11.2",
           folder, build, build);
  assert_int_equal(system(command), 0);
  snprintf(settings, sizeof settings, "HELIO_CUDA_CACHE=none GPUSIM_LIBS=%s", folder);
  run_job("cuda", settings, "--cuda 1 --fault missing:nvrtcGetCUBIN", "add", &end);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  assert_ended(end, 1);
  assert_says(end, "NVRTC has no nvrtcGetCUBIN");
  assert_says(end, "error: HELIO_NOT_SUPPORTED");
  assert_says(end, "goes on: 5");
}

/* The compiler of CUDA 13 does not start with a driver of CUDA 12, so it is not even tried. */
static void test_old_driver(void **state) {
  (void)state;
  run_job("cuda", "HELIO_CUDA_CACHE=none", "--cuda 1 --driver 12040 --fault " NO_OLDER_NVRTC, "add", &end);
  assert_says(end, "there is no NVRTC of CUDA 12 or older, as this driver and sm_80 want it");
  assert_says(end, "libnvrtc.so.12: file too short");
  assert_says(end, "goes on: 5");
}

/* ---- faults of a device that works otherwise ---- */

/* What becomes of the device. */
typedef enum outcome {
  GOES_ON,     /* with a fill */
  HAS_NO_ROOM, /* not even for that */
  IS_SUSPECT,
} outcome;

typedef struct fault_case {
  const char *backend, *options, *says;
  outcome device;
} fault_case;

static const fault_case faults[] = {
    {"cuda", "--cuda 1 --fault launch:1=719", "error: HELIO_DEVICE_FAILURE", IS_SUSPECT},
    {"cuda", "--cuda 1 --fault launch:1", "CUDA device 0 (gpusim (CUDA 8.0)): ADD failed: CUDA_ERROR_LAUNCH_", GOES_ON},
    {"hip", "--hip 1 --fault launch:1", "HIP device 0 (gpusim (gfx90a)): ADD failed: hipErrorLaunch", GOES_ON},
    {"cuda", "--cuda 1 --fault lost:launch:1", "error: HELIO_DEVICE_FAILURE", IS_SUSPECT},
    {"cuda", "--cuda 1 --fault late,launch:1", "error: HELIO_DEVICE_FAILURE", IS_SUSPECT},
    {"cuda", "--cuda 1 --fault create:1", "error: HELIO_OUT_OF_MEMORY", GOES_ON},
    /* What is refused, not lost: too many registers, a bad value, another vendor's image, an error of the system. */
    {"cuda", "--cuda 1 --fault launch:1=701", "error: HELIO_NOT_SUPPORTED", GOES_ON},
    {"hip", "--hip 1 --fault launch:1=701", "error: HELIO_NOT_SUPPORTED", GOES_ON},
    {"cuda", "--cuda 1 --fault launch:1=1", "error: HELIO_INVALID_ARGUMENT", GOES_ON},
    {"hip", "--hip 1 --fault launch:1=9", "error: HELIO_INVALID_ARGUMENT", GOES_ON},
    {"cuda", "--cuda 1 --fault allocation:1+=304", "error: HELIO_OUT_OF_MEMORY", HAS_NO_ROOM},
    /* Nor is a device lost by a module that could not be loaded, or by a program that captures a stream. */
    {"cuda", "--cuda 1 --fault launch:1=303", "error: HELIO_NOT_SUPPORTED", GOES_ON},
    {"hip", "--hip 1 --fault launch:1=302", "error: HELIO_NOT_SUPPORTED", GOES_ON},
    {"cuda", "--cuda 1 --fault launch:1=906", "error: HELIO_WRONG_STATE", GOES_ON},
    {"hip", "--hip 1 --fault launch:1=901", "error: HELIO_WRONG_STATE", GOES_ON},
    /* Lost: uncorrectable memory, an illegal address, and whatever nobody knows. */
    {"cuda", "--cuda 1 --fault launch:1=214", "error: HELIO_DEVICE_FAILURE", IS_SUSPECT},
    {"hip", "--hip 1 --fault launch:1=700", "error: HELIO_DEVICE_FAILURE", IS_SUSPECT},
    {"hip", "--hip 1 --fault copy:1=12345", "error: HELIO_DEVICE_FAILURE", IS_SUSPECT},
    {"cuda", "--cuda 1 --fault allocation:1+", "error: HELIO_OUT_OF_MEMORY", HAS_NO_ROOM},
    {"hip", "--hip 1 --fault allocation:1+", "error: HELIO_OUT_OF_MEMORY", HAS_NO_ROOM},
};

/* An error with the device's name, and the process ends as it should: nothing hangs, nothing is left behind. */
static void test_faults(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    run_job(faults[i].backend, "", faults[i].options, "add", &end);
    assert_says(end, faults[i].says);
    assert_ended(end, 1);
    assert_says_not(end, "gpusim: violation");
    assert_says_not(end, "was damaged");
    if (faults[i].device == GOES_ON) assert_says(end, "goes on: 5");
    assert_suspect(end, faults[i].device == IS_SUSPECT);
  }
}

/* ---- captures ---- */

#define CUDA_MODE "missing:cuThreadExchangeStreamCaptureMode"
#define HIP_MODE  "missing:hipThreadExchangeStreamCaptureMode"

typedef struct capture_case {
  const char *backend, *options, *job, *says;
  bool suspect;
} capture_case;

/* Another thread of the program captures a stream into a graph. Where threads cannot say that this is none of their
 * concern it is, but without a capture they do as well. The whole card cannot be waited for meanwhile, and is not lost
 * by that. */
static const capture_case captures[] = {
    {"cuda", "--cuda 1 --fault capture", "add", "result: 3", false},
    {"hip", "--hip 1 --fault capture", "add", "result: 3", false},
    {"cuda", "--cuda 1 --fault capture", "wait", "error: HELIO_WRONG_STATE", false},
    {"hip", "--hip 1 --fault capture", "wait", "error: HELIO_WRONG_STATE", false},
    {"cuda", "--cuda 1 --fault " CUDA_MODE, "wait", "result: 3", false},
    {"hip", "--hip 1 --fault " HIP_MODE, "wait", "result: 3", false},
    {"cuda", "--cuda 1 --fault capture," CUDA_MODE, "add", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", true},
    {"hip", "--hip 1 --fault capture," HIP_MODE, "add", "hipErrorStreamCaptureUnsupported", true},
};

static void test_captures(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof captures / sizeof captures[0]; i++) {
    const capture_case *one = &captures[i];
    run_job(one->backend, "", one->options, one->job, &end);
    assert_says(end, one->says);
    assert_suspect(end, one->suspect);
    if (!one->suspect) assert_says(end, "goes on: 5");
    if (!one->suspect) assert_says_not(end, "gpusim: violation");
  }
}

/* A library that is missing is told, and kernels of our own do its work. */
static void test_missing_libraries(void **state) {
  (void)state;
  run_job("cuda", "", "--cuda 1 --fault missing:libcublas.so.13,missing:libcudnn.so.9," NO_OLDER_BLAS, "matmul", &end);
  assert_says(end, "result: 2");
  assert_ended(end, 0);
  run_job("hip", "", "--hip 1 --fault missing:librocblas.so.4,missing:libMIOpen.so.1", "matmul", &end);
  assert_says(end, "result: 2");
  assert_ended(end, 0);
}

int main(int argc, char **argv) {
  do_job(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_probes),
      cmocka_unit_test(test_own_machine),
      cmocka_unit_test(test_visible),
      cmocka_unit_test(test_reason_is_the_error),
      cmocka_unit_test(test_no_hip_library),
      cmocka_unit_test(test_real_stub),
      cmocka_unit_test(test_compilers),
      cmocka_unit_test(test_compiles_elsewhere),
      cmocka_unit_test(test_compiler_without_symbol),
      cmocka_unit_test(test_old_driver),
      cmocka_unit_test(test_faults),
      cmocka_unit_test(test_captures),
      cmocka_unit_test(test_missing_libraries),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
