/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/topology.h"

const char *test_build_folder(void) {
  const char *folder = getenv("HELIO_TEST_BUILD");
  if (folder == NULL) fail_msg("HELIO_TEST_BUILD is not set: the runner does that");
  return folder;
}

/* The program itself, or libtool's wrapper around it. */
static void own_path(char path[PATH_MAX]) {
  char self[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = '\0';
  const char *name = strrchr(self, '/') + 1;
  if (strncmp(name, "lt-", 3) == 0) name += 3;
  snprintf(path, PATH_MAX, "%.2000s/tests/gpu/%.200s", test_build_folder(), name);
}

static void run_command(const char *command, child_end *end) {
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  size_t length = fread(end->output, 1, sizeof end->output - 1, pipe);
  end->output[length] = '\0';
  while (fgetc(pipe) != EOF) {
  }
  int status = pclose(pipe);
  end->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void run_job(const char *backend, const char *settings, const char *options, const char *job, child_end *end) {
  char self[PATH_MAX], command[4 * PATH_MAX];
  own_path(self);
  const char *build = test_build_folder();
  snprintf(command, sizeof command,
           "env HELIO_PLUGIN_PATH=%.900s/backends/%s/.libs:%.900s/backends/cpu/.libs HELIO_LOG=debug "
           "HELIO_CUDA_LIBRARIES=/nowhere HELIO_HIP_LIBRARIES=/nowhere XDG_CACHE_HOME=%.900s/tests/gpusim/cache %s "
           "%.900s/tests/gpusim/run %s %s %s %s 2>&1",
           build, backend, build, build, settings, build, options, self, job, backend);
  run_command(command, end);
}

void run_machine_job(const char *backend, const char *job, child_end *end) {
  char self[PATH_MAX], command[4 * PATH_MAX];
  own_path(self);
  const char *build = test_build_folder();
  snprintf(command, sizeof command,
           "env HELIO_PLUGIN_PATH=%.900s/backends/%s/.libs:%.900s/backends/cpu/.libs HELIO_LOG=info %s %s %s 2>&1",
           build, backend, build, self, job, backend);
  run_command(command, end);
}

/* ---- the other side ---- */

static int tell_plugins(void) {
  int count = 0;
  const helio_plugin_report *const *reports = helio_plugins(&count);
  for (int i = 0; reports != NULL && i < count; i++) {
    printf("%s\t%s\t%d\t%s\n", reports[i]->name, helio_plugin_status_text(reports[i]->status), reports[i]->devices,
           reports[i]->reason);
  }
  return reports == NULL;
}

static int tell_error(void) {
  helio_error error;
  helio_status status = helio_error_take(&error);
  printf("error: %s: %s\n", helio_status_name(status), error.message);
  return 1;
}

/* Suspect is what a strategy would give up; by itself it goes on as long as the vendor lets it. */
static void tell_suspicion(void) {
  const hi_device *device = hi_device_named("gpu:0");
  if (device != NULL && atomic_load(&device->loss) != HI_IN_ORDER) printf("gpu:0 is suspect\n");
  helio_error_take(NULL);
}

/* A process goes on after an error: a fill, which needs no kernel. */
static int tell_result(helio_tensor *result) {
  int failed = 0;
  if (result == NULL || helio_error_pending() != HELIO_OK) {
    failed = tell_error();
  } else {
    printf("result: %.9g\n", helio_item(result));
    if (helio_error_pending() != HELIO_OK) failed = tell_error();
  }
  helio_tensor *filled = NULL;
  HELIO_DEVICE("gpu:0") filled = helio_fill(HELIO_SCALAR, 5);
  if (filled != NULL) printf("goes on: %g\n", helio_item(filled));
  helio_error_take(NULL);
  tell_suspicion();
  return failed;
}

/* A product of matrices, drawn from a seed. */
static helio_tensor *draw_product(void) {
  return helio_matmul(helio_random_normal(HELIO_SHAPE(16, 64), .key = 1),
                      helio_random_normal(HELIO_SHAPE(64, 16), .key = 2));
}

/* The gradient of a convolution by its kernel, the operation that libraries are loosest with. */
static helio_tensor *kernel_gradient(helio_tensor *x, helio_tensor *kernel) {
  helio_tensor *y = NULL;
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) {
    helio_tape_watch(tape, kernel);
    y = helio_nn_conv2d(x, kernel);
  }
  helio_gradients *gradients = helio_gradient(tape, y, .tensors = &kernel, .tensor_count = 1);
  return gradients == NULL ? NULL : helio_gradients_at(gradients, 0);
}

static helio_tensor *draw_gradient(void) {
  return kernel_gradient(helio_random_normal(HELIO_SHAPE(2, 9, 9, 8), .key = 1),
                         helio_random_normal(HELIO_SHAPE(3, 3, 8, 16), .key = 2));
}

static helio_tensor *half_gradient(void) {
  helio_tensor *x = helio_cast(helio_fill(HELIO_SHAPE(1, 3, 3, 8), 1 + 1.0 / 512), HELIO_FLOAT16);
  helio_tensor *kernel = helio_cast(helio_fill(HELIO_SHAPE(3, 3, 8, 8), 1), HELIO_FLOAT16);
  return helio_max(helio_cast(kernel_gradient(x, kernel), HELIO_FLOAT32));
}

/* 0 if it has the same bits each time, else 1. */
static helio_tensor *compare_bits(helio_tensor *make(void)) {
  static float first[2048], again[2048];
  int differ = 0;
  for (int i = 0; i < 8; i++) {
    helio_tensor *made = make();
    size_t bytes = made == NULL ? 0 : (size_t)helio_tensor_elements(made) * sizeof first[0];
    if (bytes == 0 || bytes > sizeof first || helio_tensor_read(made, i == 0 ? first : again, bytes) != HELIO_OK)
      return NULL;
    if (i > 0 && memcmp(first, again, bytes) != 0) differ = 1;
  }
  return helio_fill(HELIO_SCALAR, differ);
}

/* Σ w × x for w that differ from each other: elements that change places change it. */
static helio_tensor *weigh(helio_tensor *x) {
  int64_t count = helio_tensor_elements(x);
  helio_tensor *weights = helio_random_uniform(HELIO_SHAPE(count), .key = 9);
  return helio_sum(helio_mul(helio_reshape(x, HELIO_SHAPE(count)), weights));
}

/* Of 12 products that share operands along one axis of batches or another, so that a library is called several times.
 */
static helio_tensor *weigh_batches(void) {
  return weigh(helio_matmul(helio_random_normal(HELIO_SHAPE(3, 1, 5, 7), .key = 1),
                            helio_random_normal(HELIO_SHAPE(3, 4, 7, 6), .key = 2)));
}

/* A convolution by a kernel of 1 × 1 with bias and activation, and its gradients. */
static helio_tensor *weigh_pointwise(void) {
  helio_tensor *x = helio_random_normal(HELIO_SHAPE(2, 5, 5, 8), .key = 1), *y = NULL;
  helio_tensor *kernel = helio_random_normal(HELIO_SHAPE(1, 1, 8, 16), .key = 2), *sum = NULL;
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) {
    helio_tape_watch(tape, x);
    helio_tape_watch(tape, kernel);
    y = helio_nn_conv2d(x, kernel, .bias = helio_random_normal(HELIO_SHAPE(16), .key = 3), .activation = HELIO_TANH);
    sum = weigh(y);
  }
  helio_tensor *of[] = {x, kernel};
  helio_gradients *gradients = helio_gradient(tape, sum, .tensors = of, .tensor_count = 2);
  if (gradients == NULL) return NULL;
  return helio_add(sum, helio_add(weigh(helio_gradients_at(gradients, 0)), weigh(helio_gradients_at(gradients, 1))));
}

static int compute(const char *job) {
  helio_tensor *result = NULL;
  HELIO_DEVICE("gpu:0") {
    helio_tensor *a = helio_fill(HELIO_SHAPE(1, 1), 1), *b = helio_fill(HELIO_SHAPE(1, 1), 2);
    if (strcmp(job, "add") == 0) result = helio_add(a, b);
    if (strcmp(job, "wait") == 0 && helio_synchronize("gpu:0") == HELIO_OK) result = helio_add(a, b);
    if (strcmp(job, "matmul") == 0) result = helio_matmul(a, b);
    if (strcmp(job, "bfloat16-matmul") == 0)
      result = helio_cast(helio_matmul(helio_cast(a, HELIO_BFLOAT16), helio_cast(b, HELIO_BFLOAT16)), HELIO_FLOAT32);
    if (strcmp(job, "conv2d") == 0)
      result = helio_nn_conv2d(helio_fill(HELIO_SHAPE(1, 3, 3, 1), 1), helio_fill(HELIO_SHAPE(3, 3, 1, 1), 2));
    double longer = 1 + 1.0 / 4096; /* TF32 has 10 bits behind the point */
    if (strcmp(job, "short-matmul") == 0) result = helio_matmul(helio_fill(HELIO_SHAPE(1, 1), longer), b);
    if (strcmp(job, "short-conv2d") == 0)
      result = helio_max(
          helio_nn_conv2d(helio_fill(HELIO_SHAPE(1, 3, 3, 8), longer), helio_fill(HELIO_SHAPE(3, 3, 8, 8), 2)));
    if (strcmp(job, "half-gradient") == 0) result = half_gradient();
    if (strcmp(job, "matmul-again") == 0) {
      if (helio_matmul(a, b) == NULL) tell_error();
      result = helio_matmul(a, b);
    }
    if (strcmp(job, "batches") == 0) result = weigh_batches();
    if (strcmp(job, "pointwise") == 0) result = weigh_pointwise();
    if (strcmp(job, "same-matmul") == 0) result = compare_bits(draw_product);
    if (strcmp(job, "same-gradient") == 0) result = compare_bits(draw_gradient);
  }
  return tell_result(result);
}

void do_job(int argc, char **argv) {
  if (argc < 3) return;
  int failed;
  if (strcmp(argv[1], "plugins") == 0) {
    failed = tell_plugins();
  } else {
    setenv("HELIO_BACKEND", argv[2], 1);
    failed = compute(argv[1]);
  }
  helio_shutdown();
  fflush(stdout);
  exit(failed);
}
