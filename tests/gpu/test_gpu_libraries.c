/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a GPU backend that its vendor's libraries are behind, called as the core calls them: what a call
 * allows is taken only then, streams, threads and plans do not get into each other's way, and what a lost device cannot
 * free is freed on the host. The variant says which backend.
 */
#include "../gpusim/core/sim.h"
#include "settings.h"
#include "test.h"

#include <helio/plugin.h>

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

static const helio_plugin *plugin;
static helio_plugin_state *plugin_state;
static bool emulated_cuda; /* whose short formats really are short */

/* ---- the host ---- */

static _Thread_local char failure[1024];
static char limit[16] = "256"; /* MiB for a convolution */

static void host_log(const helio_host *host, helio_log_level level, const char *format, ...) {
  (void)host, (void)level, (void)format;
}

static helio_status host_fail(const helio_host *host, helio_status status, const char *format, ...) {
  va_list arguments;
  (void)host;
  va_start(arguments, format);
  vsnprintf(failure, sizeof failure, format, arguments);
  va_end(arguments);
  return status;
}

static const char *host_parameter(const helio_host *host, const char *name) {
  (void)host;
  return strstr(name, "WORKSPACE") != NULL ? limit : parameter_of_environment(name);
}

static atomic_int taken, held; /* from the host: how often, and how many that were not given back */

static void *host_allocate(const helio_host *host, size_t bytes) {
  (void)host;
  atomic_fetch_add(&taken, 1);
  atomic_fetch_add(&held, 1);
  return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void host_release(const helio_host *host, void *memory) {
  (void)host;
  atomic_fetch_sub(&held, 1);
  free(memory);
}

/* There are no collectives: what a test lets happen where a run would wait for them. */
static void (*at_turn)(void);

static void host_turn_begin(const helio_host *host, helio_turn turn) {
  (void)host, (void)turn;
  if (at_turn != NULL) at_turn();
}

static void host_turn_end(const helio_host *host, helio_turn turn) {
  (void)host, (void)turn;
}

static const helio_host host = {.size = sizeof host,
                                .abi_major = HELIO_ABI_MAJOR,
                                .abi_minor = HELIO_ABI_MINOR,
                                .core_version = "test",
                                .log = host_log,
                                .fail = host_fail,
                                .parameter = host_parameter,
                                .allocate = host_allocate,
                                .release = host_release,
                                .turn_begin = host_turn_begin,
                                .turn_end = host_turn_end};

#define OK(call)                                                                                                       \
  do {                                                                                                                 \
    helio_status status_ = (call);                                                                                     \
    if (status_ != HELIO_OK) fail_msg("%s: %d: %s", #call, status_, failure);                                          \
  } while (0)

static helio_backend_device *open_device(void) {
  helio_backend_device *device;
  helio_open_options options = {.size = sizeof options, .logical_count = 1};
  OK(plugin->devices->open(plugin_state, 0, &options, &device));
  return device;
}

static const helio_kernel *kernel_of(uint32_t operation) {
  for (size_t i = 0; i < plugin->kernels->count; i++) {
    if (plugin->kernels->kernels[i]->operation == operation) return plugin->kernels->kernels[i];
  }
  fail_msg("there is no kernel for operation %u", operation);
  return NULL;
}

/* ---- two calls of float32: a product of 24 by 40 by 32, and a convolution of (2, 9, 9, 8) by (3, 3, 8, 16) ---- */

enum { M = 24, K = 40, N = 32, IMAGES = 2, SIDE = 9, TAPS = 3, IN = 8, OUT = 16 };
enum { PIXELS = IMAGES * SIDE * SIDE, BATCHES = 66000, ROWS = (1 << 19) + 5, MOST = ROWS };

typedef struct problem {
  uint32_t operation;
  helio_argument a, b, y;
  helio_matmul_attributes matmul;
  helio_conv2d_attributes conv2d;
  size_t counts[3];
  float values[2][MOST];
  double expected[MOST];
} problem;

static helio_argument tensor(uint32_t rank, int64_t a, int64_t b, int64_t c, int64_t d) {
  return (helio_argument){.size = sizeof(helio_argument), .type = HELIO_FLOAT32, .rank = rank, .extent = {a, b, c, d}};
}

static void fill_values(problem *p) {
  uint32_t word = 1;
  for (int i = 0; i < 2; i++) {
    for (size_t k = 0; k < p->counts[i]; k++) {
      word = word * 1664525u + 1013904223u;
      p->values[i][k] = (float)(word >> 8) / 8388608.0f - 1;
    }
  }
}

static problem *new_matmul(void) {
  problem *p = calloc(1, sizeof *p);
  assert_non_null(p);
  p->operation = HELIO_OP_MATMUL;
  p->a = tensor(2, M, K, 0, 0);
  p->b = tensor(2, K, N, 0, 0);
  p->y = tensor(2, M, N, 0, 0);
  p->matmul = (helio_matmul_attributes){.size = sizeof p->matmul};
  p->counts[0] = M * K, p->counts[1] = K * N, p->counts[2] = M * N;
  fill_values(p);
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++)
      for (int k = 0; k < K; k++)
        p->expected[m * N + n] += (double)p->values[0][m * K + k] * (double)p->values[1][k * N + n];
  return p;
}

/* More products of 2 by 1 by 1 than a library takes in one call. */
static problem *new_batches(void) {
  problem *p = calloc(1, sizeof *p);
  assert_non_null(p);
  p->operation = HELIO_OP_MATMUL;
  p->a = p->y = tensor(3, BATCHES, 2, 1, 0);
  p->b = tensor(3, BATCHES, 1, 1, 0);
  p->matmul = (helio_matmul_attributes){.size = sizeof p->matmul};
  p->counts[0] = p->counts[2] = 2 * BATCHES, p->counts[1] = BATCHES;
  fill_values(p);
  for (int i = 0; i < 2 * BATCHES; i++) p->expected[i] = (double)p->values[0][i] * (double)p->values[1][i / 2];
  return p;
}

/* More rows than rocBLAS makes right in one call. */
static problem *new_rows(void) {
  problem *p = calloc(1, sizeof *p);
  assert_non_null(p);
  p->operation = HELIO_OP_MATMUL;
  p->a = p->y = tensor(2, ROWS, 1, 0, 0);
  p->b = tensor(2, 1, 1, 0, 0);
  p->matmul = (helio_matmul_attributes){.size = sizeof p->matmul};
  p->counts[0] = p->counts[2] = ROWS, p->counts[1] = 1;
  fill_values(p);
  for (int i = 0; i < ROWS; i++) p->expected[i] = (double)p->values[0][i] * (double)p->values[1][0];
  return p;
}

/* What one tap of a pixel adds to all its channels. */
static void add_tap(problem *p, int pixel, int tap) {
  int row = pixel / SIDE % SIDE + tap / TAPS - 1, column = pixel % SIDE + tap % TAPS - 1;
  if (row < 0 || row >= SIDE || column < 0 || column >= SIDE) return;
  const float *x = p->values[0] + ((pixel / (SIDE * SIDE) * SIDE + row) * SIDE + column) * IN;
  for (int in = 0; in < IN; in++)
    for (int out = 0; out < OUT; out++)
      p->expected[pixel * OUT + out] += (double)x[in] * (double)p->values[1][(tap * IN + in) * OUT + out];
}

static problem *new_conv2d(void) {
  problem *p = calloc(1, sizeof *p);
  assert_non_null(p);
  p->operation = HELIO_OP_CONV2D;
  p->a = tensor(4, IMAGES, SIDE, SIDE, IN);
  p->b = tensor(4, TAPS, TAPS, IN, OUT);
  p->y = tensor(4, IMAGES, SIDE, SIDE, OUT);
  p->conv2d = (helio_conv2d_attributes){
      .size = sizeof p->conv2d, .stride = {1, 1}, .dilation = {1, 1}, .padding = {1, 1, 1, 1}, .groups = 1};
  p->counts[0] = PIXELS * IN, p->counts[1] = TAPS * TAPS * IN * OUT, p->counts[2] = PIXELS * OUT;
  fill_values(p);
  for (int pixel = 0; pixel < PIXELS; pixel++)
    for (int tap = 0; tap < TAPS * TAPS; tap++) add_tap(p, pixel, tap);
  return p;
}

/* ---- plans and runs ---- */

static helio_plan *make_plan(helio_backend_device *device, const problem *p, uint32_t allowed, size_t *workspace) {
  const helio_argument *arguments[] = {&p->a, &p->b, NULL, &p->y};
  helio_call call = {.size = sizeof call,
                     .operation = p->operation,
                     .input_count = 3,
                     .output_count = 1,
                     .allowed = allowed,
                     .arguments = arguments,
                     .attributes = p->operation == HELIO_OP_MATMUL ? (const void *)&p->matmul : &p->conv2d};
  helio_plan_answer answer = {.size = sizeof answer};
  OK(kernel_of(p->operation)->plan(device, &call, &answer));
  *workspace = answer.workspace;
  return answer.plan;
}

/* A stream, and memory for a run of a plan on it. */
typedef struct bench {
  helio_backend_device *device;
  helio_stream *stream;
  helio_buffer *buffers[5]; /* a, b, y, the workspace, the status word */
  helio_place places[4];
  helio_run run;
} bench;

static void bench_open(bench *made, helio_backend_device *device, const problem *p, size_t workspace) {
  helio_buffer **buffers = made->buffers;
  *made = (bench){.device = device};
  OK(plugin->streams->create(device, &made->stream));
  for (int i = 0; i < 3; i++) OK(plugin->memory->allocate(device, p->counts[i] * sizeof(float), &buffers[i]));
  OK(plugin->memory->allocate(device, workspace + 256, &buffers[3]));
  OK(plugin->memory->allocate(device, sizeof(helio_status_word), &buffers[4]));
  for (int i = 0; i < 2; i++)
    OK(plugin->memory->copy_in(device, made->stream, (helio_place){buffers[i], 0}, p->values[i],
                               p->counts[i] * sizeof(float)));
  made->places[0].buffer = buffers[0];
  made->places[1].buffer = buffers[1];
  made->places[3].buffer = buffers[2];
  made->run = (helio_run){.size = sizeof made->run, .stream = made->stream, .place_size = sizeof made->places[0]};
  made->run.places = made->places;
  made->run.status = (helio_place){buffers[4], 0};
  if (workspace > 0) made->run.workspace = (helio_place){buffers[3], 0};
}

static void bench_close(bench *used) {
  for (int i = 0; i < 5; i++) OK(plugin->memory->free(used->device, used->buffers[i]));
  plugin->streams->destroy(used->device, used->stream);
}

/* Runs the plan on a stream of its own, with memory of its own: max|seen − expected| ÷ max|expected|. */
static double run_plan(helio_backend_device *device, const problem *p, helio_plan *plan, size_t workspace, int times) {
  static _Thread_local float result[MOST], before[MOST];
  size_t bytes = p->counts[2] * sizeof(float);
  bench used;
  bench_open(&used, device, p, workspace);
  for (int i = 0; i < times; i++) {
    OK(kernel_of(p->operation)->run(plan, &used.run));
    OK(plugin->memory->copy_out(device, used.stream, result, (helio_place){used.buffers[2], 0}, bytes));
    OK(plugin->streams->synchronize(device, used.stream));
    if (i > 0) assert_memory_equal(result, before, bytes);
    memcpy(before, result, sizeof before);
  }
  bench_close(&used);
  double largest = 0, error = 0;
  for (size_t i = 0; i < p->counts[2]; i++) {
    largest = fmax(largest, fabs(p->expected[i]));
    error = fmax(error, fabs(p->expected[i] - (double)result[i]));
  }
  return error / largest;
}

static double error_of(helio_backend_device *device, const problem *p, uint32_t allowed, int times) {
  size_t workspace;
  helio_plan *plan = make_plan(device, p, allowed, &workspace);
  double error = run_plan(device, p, plan, workspace, times);
  kernel_of(p->operation)->plan_free(plan);
  return error;
}

/* ---- tests ---- */

/* Short formats only where they are allowed, in turn on one device. */
static void test_liberties(void **state) {
  (void)state;
  helio_backend_device *device = open_device();
  problem *problems[] = {new_matmul(), new_conv2d()};
  for (int i = 0; i < 2; i++) {
    assert_true(error_of(device, problems[i], 0, 3) < 1e-6);
    double short_error = error_of(device, problems[i], HELIO_ALLOWED_REDUCED_PRECISION, 2);
    assert_true(short_error < 2e-3);
    if (emulated_cuda) assert_true(short_error > 1e-5);
    assert_true(error_of(device, problems[i], 0, 2) < 1e-6);
    assert_true(error_of(device, problems[i], HELIO_ALLOWED_NONDETERMINISTIC, 1) < 1e-6);
    free(problems[i]);
  }
  plugin->devices->close(device);
}

/* No call has more than 65535 batches, which is as far as all versions of cuBLAS count, and rocBLAS is not asked for
 * more than 2¹⁹ rows at once: the emulator would report it. */
static void test_products_in_parts(void **state) {
  (void)state;
  problem *problems[] = {new_batches(), new_rows()};
  helio_backend_device *device = open_device();
  for (int i = 0; i < 2; i++) {
    assert_true(error_of(device, problems[i], 0, 1) < 1e-6);
    free(problems[i]);
  }
  plugin->devices->close(device);
}

/* Without memory for it a convolution is done all the same. */
static void test_no_workspace(void **state) {
  (void)state;
  problem *p = new_conv2d();
  helio_backend_device *device = open_device();
  strcpy(limit, "0");
  double error = error_of(device, p, 0, 2);
  strcpy(limit, "256");
  assert_true(error < 1e-6);
  plugin->devices->close(device);
  free(p);
}

/* One plan on streams of several threads at once, and more streams than a plan remembers. */
typedef struct worker {
  helio_backend_device *device;
  const problem *problem;
  helio_plan *plan;
  size_t workspace;
  double error;
} worker;

static void *work(void *argument) {
  worker *w = argument;
  for (int i = 0; i < 10; i++) w->error = fmax(w->error, run_plan(w->device, w->problem, w->plan, w->workspace, 2));
  return NULL;
}

static void test_streams(void **state) {
  (void)state;
  helio_backend_device *device = open_device();
  problem *problems[] = {new_matmul(), new_conv2d()};
  for (int i = 0; i < 2; i++) {
    worker workers[3];
    pthread_t threads[3];
    size_t workspace;
    helio_plan *plan = make_plan(device, problems[i], 0, &workspace);
    for (int k = 0; k < 3; k++) {
      workers[k] = (worker){device, problems[i], plan, workspace, 0};
      assert_int_equal(pthread_create(&threads[k], NULL, work, &workers[k]), 0);
    }
    for (int k = 0; k < 3; k++) {
      assert_int_equal(pthread_join(threads[k], NULL), 0);
      assert_true(workers[k].error < 1e-6);
    }
    kernel_of(problems[i]->operation)->plan_free(plan);
    free(problems[i]);
  }
  plugin->devices->close(device);
}

/* What the emulator has counted so far; all 0 on a real card, which does not tell. */
static sim_counters count(void) {
  sim_counters counters = {0};
  void *library = dlopen("libgpusim.so", RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL) return counters;
  void (*read_counters)(const sim_device *device, sim_counters *counters);
  *(void **)&read_counters = dlsym(library, "sim_counters_read");
  assert_non_null(read_counters);
  read_counters(NULL, &counters);
  dlclose(library);
  return counters;
}

/* Allocations, and handles, streams, events and modules. */
static uint64_t count_made(void) {
  sim_counters counters = count();
  return counters.occasions[SIM_ALLOCATION] + counters.occasions[SIM_CREATION];
}

/* The first stream finds all that its runs need already there, from its very first run on: plans have made it. */
static void test_run_makes_nothing(void **state) {
  (void)state;
  helio_backend_device *device = open_device();
  problem *problems[] = {new_matmul(), new_conv2d()};
  for (int i = 0; i < 2; i++) {
    bench used;
    size_t workspace;
    helio_plan *plan = make_plan(device, problems[i], 0, &workspace);
    bench_open(&used, device, problems[i], workspace);
    uint64_t made = count_made();
    int from_host = atomic_load(&taken);
    OK(kernel_of(problems[i]->operation)->run(plan, &used.run));
    assert_int_equal(count_made(), made);
    assert_int_equal(atomic_load(&taken), from_host);
    OK(plugin->streams->synchronize(device, used.stream));
    bench_close(&used);
    kernel_of(problems[i]->operation)->plan_free(plan);
    free(problems[i]);
  }
  plugin->devices->close(device);
}

/* Who waits for the driver's turn must not hold up one whose turn it is, such as who plans: each would wait for the
 * other, if a collective stood between them. */
static worker planner;
static int plans_in_time;

static void *plan_beside(void *argument) {
  size_t workspace;
  (void)argument;
  kernel_of(planner.problem->operation)->plan_free(make_plan(planner.device, planner.problem, 0, &workspace));
  return NULL;
}

static void plan_meanwhile(void) {
  pthread_t thread;
  struct timespec end;
  assert_int_equal(pthread_create(&thread, NULL, plan_beside, NULL), 0);
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 60;
  if (pthread_timedjoin_np(thread, NULL, &end) != 0) fail_msg("a plan waits for a run that waits for its turn");
  plans_in_time++;
}

static void test_turns(void **state) {
  (void)state;
  helio_backend_device *device = open_device();
  problem *problems[] = {new_matmul(), new_conv2d()};
  for (int i = 0; i < 2; i++) {
    size_t workspace;
    helio_plan *plan = make_plan(device, problems[i], 0, &workspace);
    planner = (worker){.device = device, .problem = problems[i]};
    plans_in_time = 0;
    at_turn = plan_meanwhile;
    double error = run_plan(device, problems[i], plan, workspace, 1);
    at_turn = NULL;
    assert_true(plans_in_time > 0);
    assert_true(error < 1e-6);
    kernel_of(problems[i]->operation)->plan_free(plan);
    free(problems[i]);
  }
  plugin->devices->close(device);
}

/* Nor may who prepares a convolution again, which MIOpen wants where a plan has forgotten a handle over many others. */
static void test_turns_again(void **state) {
  (void)state;
  helio_backend_device *device = open_device();
  problem *p = new_conv2d();
  size_t workspace;
  bench first;
  helio_plan *plan = make_plan(device, p, 0, &workspace);
  bench_open(&first, device, p, workspace);
  OK(kernel_of(p->operation)->run(plan, &first.run));
  for (int i = 0; i < 20; i++) run_plan(device, p, plan, workspace, 1);
  planner = (worker){.device = device, .problem = p};
  at_turn = plan_meanwhile;
  OK(kernel_of(p->operation)->run(plan, &first.run));
  at_turn = NULL;
  OK(plugin->streams->synchronize(device, first.stream));
  bench_close(&first);
  kernel_of(p->operation)->plan_free(plan);
  plugin->devices->close(device);
  free(p);
}

/* In a process whose device is lost by the second call of a library: what the host holds for it is freed. */
static void test_lost_device(void **state) {
  (void)state;
  helio_backend_device *device = open_device();
  problem *problems[] = {new_matmul(), new_conv2d()};
  bench used[2];
  helio_plan *plans[2];
  helio_event *event;
  void *pinned;
  for (int i = 0; i < 2; i++) {
    size_t workspace;
    plans[i] = make_plan(device, problems[i], 0, &workspace);
    bench_open(&used[i], device, problems[i], workspace);
  }
  OK(plugin->streams->event_create(device, &event));
  OK(plugin->memory->host_allocate(device, 4096, &pinned));
  OK(kernel_of(HELIO_OP_MATMUL)->run(plans[0], &used[0].run));
  assert_int_equal(kernel_of(HELIO_OP_CONV2D)->run(plans[1], &used[1].run), HELIO_DEVICE_FAILURE);
  assert_int_equal(plugin->devices->synchronize(device), HELIO_DEVICE_FAILURE);
  plugin->memory->host_free(device, pinned);
  plugin->streams->event_destroy(device, event);
  for (int i = 0; i < 2; i++) {
    bench_close(&used[i]);
    kernel_of(problems[i]->operation)->plan_free(plans[i]);
    free(problems[i]);
  }
  plugin->devices->close(device);
  plugin->finish(plugin_state);
  assert_int_equal(atomic_load(&held), 0);
}

/* In a process in which the first handle cannot be made: the first plan goes without the library, the next with it. */
static void test_handle_again(void **state) {
  (void)state;
  helio_backend_device *device = open_device();
  problem *p = new_matmul();
  assert_true(error_of(device, p, 0, 1) < 1e-6);
  assert_int_equal(count().occasions[SIM_LIBRARY], 0);
  assert_true(error_of(device, p, 0, 1) < 1e-6);
  assert_int_equal(count().occasions[SIM_LIBRARY], 1);
  plugin->devices->close(device);
  free(p);
}

/* In a process in which libraries refuse whatever they are to run, of which one plan's threads hear at the same time:
 * one finds out, and all go on without. */
static void test_refused(void **state) {
  test_streams(state);
  assert_in_range(count().occasions[SIM_LIBRARY], 2,
                  2 * 3); /* of two plans, each of whose threads may have asked once */
}

static void test_faults(void **state) {
  (void)state;
  if (!is_emulated()) SKIP("a real card does not fail on demand");
  assert_int_equal(system("GPUSIM_FAULT=lost:library:2 \"$(readlink /proc/$PPID/exe)\" lost >&2"), 0);
  assert_int_equal(system("GPUSIM_FAULT=create:1 \"$(readlink /proc/$PPID/exe)\" again >&2"), 0);
  assert_int_equal(system("GPUSIM_FAULT=library:1+ \"$(readlink /proc/$PPID/exe)\" refused >&2"), 0);
}

/* ---- the plugin ---- */

static int start(void **state) {
  (void)state;
  const char *backend = getenv("HELIO_BACKEND"), *build = getenv("HELIO_TEST_BUILD");
  char path[PATH_MAX];
  if (backend == NULL || build == NULL) return -1;
  snprintf(path, sizeof path, "%.2000s/backends/%.20s/.libs/%.20s.so", build, backend, backend);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  plugin = library == NULL ? NULL : dlsym(library, HELIO_PLUGIN_SYMBOL);
  helio_probe_answer answer = {.size = sizeof answer};
  helio_device_description about = {.size = sizeof about};
  if (plugin == NULL || plugin->probe(&host, &answer) != HELIO_OK || answer.devices == 0 ||
      plugin->init(&host, &plugin_state) != HELIO_OK ||
      plugin->devices->describe(plugin_state, 0, &about) != HELIO_OK) {
    print_error("%s: %s %s\n", path, library == NULL ? dlerror() : "", answer.reason);
    return -1;
  }
  emulated_cuda = strncmp(about.name, "gpusim (CUDA", 12) == 0;
  return 0;
}

static int finish(void **state) {
  (void)state;
  plugin->finish(plugin_state);
  return atomic_load(&held);
}

int main(int argc, char **argv) {
  const struct CMUnitTest lost[] = {cmocka_unit_test(test_lost_device)};
  const struct CMUnitTest again[] = {cmocka_unit_test(test_handle_again)};
  const struct CMUnitTest refused[] = {cmocka_unit_test(test_refused)};
  if (argc > 1 && strcmp(argv[1], "lost") == 0) return cmocka_run_group_tests(lost, start, NULL);
  if (argc > 1 && strcmp(argv[1], "again") == 0) return cmocka_run_group_tests(again, start, finish);
  if (argc > 1 && strcmp(argv[1], "refused") == 0) return cmocka_run_group_tests(refused, start, finish);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_liberties),         cmocka_unit_test(test_products_in_parts),
      cmocka_unit_test(test_no_workspace),      cmocka_unit_test(test_streams),
      cmocka_unit_test(test_run_makes_nothing), cmocka_unit_test(test_turns),
      cmocka_unit_test(test_turns_again),       cmocka_unit_test(test_faults),
  };
  return cmocka_run_group_tests(tests, start, finish);
}
