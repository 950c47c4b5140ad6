/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of growth for the structs that the core hands to a plugin at every call: what is longer than the plugin
 * knows is refused unless the rest is zero, what is shorter works. Shown on the CPU plugin, called as the core calls
 * it. */
#include <dlfcn.h>

#include "test.h"
#include <helio/plugin.h>

static char last_reason[512];

static void host_log(const helio_host *host, helio_log_level level, const char *format, ...) {
  (void)host, (void)level, (void)format;
}

static helio_status host_fail(const helio_host *host, helio_status status, const char *format, ...) {
  (void)host;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_reason, sizeof last_reason, format, arguments);
  va_end(arguments);
  return status;
}

static const char *host_parameter(const helio_host *host, const char *name) {
  (void)host;
  return strcmp(name, "HELIO_CPU_ISA") == 0 ? "auto" : "";
}

static void *host_allocate(const helio_host *host, size_t bytes) {
  (void)host;
  return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void host_release(const helio_host *host, void *memory) {
  (void)host;
  free(memory);
}

static const helio_host host = {.size = sizeof host,
                                .abi_major = HELIO_ABI_MAJOR,
                                .abi_minor = HELIO_ABI_MINOR,
                                .core_version = "test",
                                .log = host_log,
                                .fail = host_fail,
                                .parameter = host_parameter,
                                .allocate = host_allocate,
                                .release = host_release};

/* The plugin, opened, with a buffer for four 2×2 matrices of float32. */
typedef struct fixture {
  void *library;
  const helio_plugin *plugin;
  helio_plugin_state *state;
  helio_backend_device *device;
  helio_stream *stream;
  helio_buffer *buffer;
  const helio_kernel *matmul;
} fixture;

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  char path[1024];
  const char *build = getenv("HELIO_TEST_BUILD");
  snprintf(path, sizeof path, "%s/backends/cpu/.libs/cpu.so", build ? build : ".");
  *state = f;
  f->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); /* as the core opens it */
  f->plugin = f->library ? dlsym(f->library, HELIO_PLUGIN_SYMBOL) : NULL;
  if (!f->plugin || f->plugin->init(&host, &f->state)) return -1;
  helio_open_options options = {.size = sizeof options, .logical_count = 1, .threads = 1};
  if (f->plugin->devices->open(f->state, 0, &options, &f->device)) return -1;
  if (f->plugin->streams->create(f->device, &f->stream)) return -1;
  if (f->plugin->memory->allocate(f->device, 4 * 4 * sizeof(float), &f->buffer)) return -1;
  for (size_t i = 0; i < f->plugin->kernels->count; i++) {
    if (f->plugin->kernels->kernels[i]->operation == HELIO_OP_MATMUL) f->matmul = f->plugin->kernels->kernels[i];
  }
  return f->matmul ? 0 : -1;
}

static int tear_down(void **state) {
  fixture *f = *state;
  f->plugin->memory->free(f->device, f->buffer);
  f->plugin->streams->destroy(f->device, f->stream);
  f->plugin->devices->close(f->device);
  f->plugin->finish(f->state);
  dlclose(f->library);
  free(f);
  return 0;
}

/* Structs as a newer core would have them: one more word at the end. */
typedef struct longer_call {
  helio_call known;
  uint64_t more;
} longer_call;

typedef struct longer_argument {
  helio_argument known;
  uint64_t more;
} longer_argument;

typedef struct longer_attributes {
  helio_matmul_attributes known;
  uint64_t more;
} longer_attributes;

typedef struct longer_run {
  helio_run known;
  uint64_t more;
} longer_run;

/* A call of MATMUL on 2×2 matrices, made of structs with room for one more word each. */
typedef struct newer_call {
  longer_call call;
  longer_argument matrix;
  longer_attributes attributes;
  const helio_argument *arguments[4];
} newer_call;

static void make_call(newer_call *c) {
  memset(c, 0, sizeof *c);
  c->matrix.known = (helio_argument){sizeof c->matrix, HELIO_FLOAT32, 2, {2, 2}};
  c->attributes.known.size = sizeof c->attributes;
  for (int i = 0; i < 4; i++) c->arguments[i] = i == 2 ? NULL : &c->matrix.known; /* no bias */
  c->call.known = (helio_call){.size = sizeof c->call,
                               .operation = HELIO_OP_MATMUL,
                               .input_count = 3,
                               .output_count = 1,
                               .arguments = c->arguments,
                               .attributes = &c->attributes};
}

static helio_status plan_of(const fixture *f, const newer_call *c, helio_plan **plan) {
  helio_plan_answer answer = {.size = sizeof answer};
  helio_status status = f->matmul->plan(f->device, &c->call.known, &answer);
  *plan = answer.plan;
  return status;
}

static void expect_plan(const fixture *f, const newer_call *c) {
  helio_plan *plan = NULL;
  assert_int_equal(plan_of(f, c, &plan), HELIO_OK);
  f->matmul->plan_free(plan);
}

static void expect_refusal(const fixture *f, const newer_call *c) {
  helio_plan *plan = NULL;
  last_reason[0] = 0;
  assert_int_equal(plan_of(f, c, &plan), HELIO_NOT_SUPPORTED);
  assert_string_not_equal(last_reason, "");
}

static void test_longer_with_zeros_works(void **state) {
  newer_call c;
  make_call(&c);
  expect_plan(*state, &c);
}

static void test_longer_with_more_is_refused(void **state) {
  newer_call c;
  make_call(&c);
  c.call.more = 1;
  expect_refusal(*state, &c);
  make_call(&c);
  c.matrix.more = 1;
  expect_refusal(*state, &c);
  make_call(&c);
  c.attributes.more = UINT64_C(1) << 63;
  expect_refusal(*state, &c);
}

static void test_shorter_works(void **state) {
  newer_call c;
  make_call(&c);
  c.call.known.size = sizeof c.call.known;
  c.matrix.known.size = HELIO_STRUCT_SIZE(helio_argument, rank) + 2 * sizeof(int64_t); /* axes that it has */
  c.attributes.known.size = HELIO_STRUCT_SIZE(helio_matmul_attributes, transpose_b);   /* no activation yet */
  expect_plan(*state, &c);
}

static void multiply(const fixture *f, const longer_run *run, helio_plan *plan, helio_status expected) {
  const float identity[4] = {1, 0, 0, 1}, numbers[4] = {1, 2, 3, 4}, nothing[4] = {0};
  float product[4];
  const helio_memory_table *memory = f->plugin->memory;
  assert_int_equal(memory->copy_in(f->device, f->stream, (helio_place){f->buffer, 0}, numbers, 16), HELIO_OK);
  assert_int_equal(memory->copy_in(f->device, f->stream, (helio_place){f->buffer, 16}, identity, 16), HELIO_OK);
  assert_int_equal(memory->copy_in(f->device, f->stream, (helio_place){f->buffer, 32}, nothing, 16), HELIO_OK);
  assert_int_equal(f->matmul->run(plan, &run->known), expected);
  assert_int_equal(memory->copy_out(f->device, f->stream, product, (helio_place){f->buffer, 32}, 16), HELIO_OK);
  assert_memory_equal(product, expected ? nothing : numbers, 16);
}

static void test_runs(void **state) {
  const fixture *f = *state;
  newer_call c;
  helio_plan *plan = NULL;
  make_call(&c);
  assert_int_equal(plan_of(f, &c, &plan), HELIO_OK);
  const helio_place places[4] = {{f->buffer, 0}, {f->buffer, 16}, {NULL, 0}, {f->buffer, 32}};
  longer_run run = {.known = {.size = sizeof run,
                              .stream = f->stream,
                              .places = places,
                              .place_size = sizeof places[0],
                              .status = {f->buffer, 48}}};
  multiply(f, &run, plan, HELIO_OK);
  run.more = 1;
  multiply(f, &run, plan, HELIO_NOT_SUPPORTED);
  run.more = 0;
  run.known.size = HELIO_STRUCT_SIZE(helio_run, status); /* before there were scalars */
  multiply(f, &run, plan, HELIO_OK);
  f->matmul->plan_free(plan);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_longer_with_zeros_works),
      cmocka_unit_test(test_longer_with_more_is_refused),
      cmocka_unit_test(test_shorter_works),
      cmocka_unit_test(test_runs),
  };
  return cmocka_run_group_tests_name("call abi", tests, set_up, tear_down);
}
