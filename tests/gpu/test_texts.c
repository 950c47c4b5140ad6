/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the vendor's own run-time compiler, where it is installed, takes the kernel texts: the backend's compiler,
 * with stand-ins for what it needs of the rest. Compiled twice, for CUDA and for HIP. */
#include "test.h"

#include "compiler.h"
#include "driver.h"
#include "text.h"

#include <dlfcn.h>

#if defined(TEXTS_CUDA)
static const char *const architectures[] = {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};
const vendor_names vendor = {.plugin = "cuda", .title = "CUDA", .parameter_libraries = "HELIO_CUDA_LIBRARIES"};

int cuda_driver_version(void) {
  return 99000;
}

void vendor_places(const helio_host *host, gpu_places *places) {
  const char *cuda = getenv("HELIO_TEST_CUDA");
  (void)host;
  *places = (gpu_places){.named = ""};
  snprintf(places->usual, sizeof places->usual, "%s/lib64", cuda == NULL ? "" : cuda);
}
#else
static const char *const architectures[] = {"gfx906", "gfx90a", "gfx1030"};
const vendor_names vendor = {.plugin = "hip", .title = "HIP", .parameter_libraries = "HELIO_HIP_LIBRARIES"};

static const char *const runtimes[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", NULL};
static int runtime_major;

void *hip_runtime_library(void) {
  for (int i = 0; runtimes[i] != NULL; i++) {
    void *library = dlopen(runtimes[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) continue;
    runtime_major = 7 - i;
    return library;
  }
  return NULL;
}

int hip_runtime_major(void) {
  if (runtime_major == 0) hip_runtime_library();
  return runtime_major;
}

void vendor_places(const helio_host *host, gpu_places *places) {
  const char *rocm = getenv("HELIO_TEST_ROCM");
  (void)host;
  *places = (gpu_places){.named = ""};
  snprintf(places->usual, sizeof places->usual, "%s/lib", rocm == NULL ? "" : rocm);
}
#endif

#define ARCHITECTURES (sizeof architectures / sizeof architectures[0])

/* ---- the host ---- */

static char failure[1 << 16];

static helio_status host_fail(const helio_host *host, helio_status status, const char *format, ...) {
  va_list arguments;
  (void)host;
  va_start(arguments, format);
  vsnprintf(failure, sizeof failure, format, arguments);
  va_end(arguments);
  return status;
}

static void *host_allocate(const helio_host *host, size_t bytes) {
  (void)host;
  return malloc(bytes);
}

static void host_release(const helio_host *host, void *memory) {
  (void)host;
  free(memory);
}

static const helio_host host = {
    .size = sizeof host, .fail = host_fail, .allocate = host_allocate, .release = host_release};

/* ---- texts ---- */

/* Types that a text is used with, where these are not the four floats; 0 stands for a text without elements of a type
 * of its own. */
static const struct {
  const char *text, *types;
} types_of[] = {
    {"fill", "0"},          {"concat", "0"},      {"movement", "0"},    {"pad", "0"},        {"rows", "0"},
    {"sort", "0"},          {"where", "0"},       {"update", "12"},     {"random", "12345"}, {"add_n", "123456"},
    {"gradient", "123456"}, {"order", "123456"},  {"reduce", "123456"}, {"unary", "123456"}, {"scatter_add", "123456"},
    {"binary", "12345678"}, {"cast", "12345678"},
};

static const char *types_for(const char *text) {
  for (size_t i = 0; i < sizeof types_of / sizeof types_of[0]; i++) {
    if (strcmp(types_of[i].text, text) == 0) return types_of[i].types;
  }
  return "1234";
}

static bool unknown[ARCHITECTURES]; /* to this compiler, which is an older one */

static void compile(const gpu_text *text, char type, size_t which) {
  const char *architecture = architectures[which];
  static char whole[1 << 20];
  char define[32];
  vendor_facts facts = {.warp = 32};
  vendor_image image = {0};
  snprintf(facts.architecture, sizeof facts.architecture, "%s", architecture);
  snprintf(whole, sizeof whole, "#line 1 \"prelude.cu\"\n%s#line 1 \"%s.cu\"\n%s", gpu_texts[0].text, text->name,
           text->text);
  snprintf(define, sizeof define, "-DTYPE=%c", type);
  const char *const defines[] = {define, "-DBAD_DATA=1", NULL};
  failure[0] = '\0';
  const gpu_compiler *compiler;
  unknown[which] = gpu_compiler_find(&host, &facts, &compiler) != HELIO_OK;
  if (unknown[which]) return;
  if (gpu_compile(&host, compiler, &facts, text->name, whole, defines, &image) != HELIO_OK)
    fail_msg("%s, type %c, %s: %s", text->name, type, architecture, failure);
  assert_true(image.bytes > 0);
  free(image.data);
}

static void need_compiler(void) {
  const gpu_compiler *compiler;
  vendor_facts facts = {.warp = 32};
  snprintf(facts.architecture, sizeof facts.architecture, "%s", architectures[ARCHITECTURES - 1]);
  if (gpu_compiler_find(&host, &facts, &compiler) != HELIO_OK)
    SKIP("%s's own compiler is not there: %s", vendor.title, failure);
  if (strstr(compiler->identity, "gpusim") != NULL) SKIP("%s's compiler is the emulated one", vendor.title);
}

/* What was not compiled did not pass. */
static void skip_unknown(void) {
  for (size_t i = 0; i < ARCHITECTURES; i++) {
    if (unknown[i]) SKIP("%s's own compiler does not know %s", vendor.title, architectures[i]);
  }
}

/* Every text, by turns for the oldest and the newest architecture: each of the two makes work for a minute. */
static void test_texts(void **state) {
  (void)state;
  size_t which = 0;
  need_compiler();
  assert_string_equal(gpu_texts[0].name, "prelude");
  for (const gpu_text *text = gpu_texts + 1; text->name != NULL; text++) {
    compile(text, types_for(text->name)[0], which);
    which = ARCHITECTURES - 1 - which;
  }
  skip_unknown();
}

/* Every text with every type for every architecture: minutes. */
static void test_all(void **state) {
  (void)state;
  need_compiler();
  for (const gpu_text *text = gpu_texts + 1; text->name != NULL; text++) {
    for (const char *type = types_for(text->name); *type != '\0'; type++) {
      for (size_t i = 0; i < ARCHITECTURES; i++) compile(text, *type, i);
    }
  }
  skip_unknown();
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts)}, all[] = {cmocka_unit_test(test_all)};
  if (argc > 1 && strcmp(argv[1], "--long") == 0) return cmocka_run_group_tests(all, NULL, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
