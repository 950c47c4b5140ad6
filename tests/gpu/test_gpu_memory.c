/* SPDX-License-Identifier: Apache-2.0 */
/* The device vtable of a GPU backend, called as the core does: fills of every pattern, copies between cards, pinned
 * memory, memory that there is not, threads, and native handles. The variant says which backend, and on how many cards.
 */
#include "test.h"

#include <helio/plugin.h>

#include "../../backends/gpu/abi/cuda_driver.h"
#include "../../backends/gpu/library.h"
#include "settings.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>

static const helio_plugin *plugin;
static helio_plugin_state *plugin_state;
static uint32_t card_count;

/* ---- the host ---- */

static char failure[1024], told[1024];

static void host_log(const helio_host *host, helio_log_level level, const char *format, ...) {
  va_list arguments;
  (void)host;
  if (level < HELIO_LOG_WARNING) return;
  va_start(arguments, format);
  vsnprintf(told, sizeof told, format, arguments);
  va_end(arguments);
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
  return parameter_of_environment(name);
}

static void *host_allocate(const helio_host *host, size_t bytes) {
  (void)host;
  return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void host_release(const helio_host *host, void *memory) {
  (void)host;
  free(memory);
}

/* There are no collectives. */
static void host_turn(const helio_host *host, helio_turn turn) {
  (void)host, (void)turn;
}

static const helio_host host = {
    .size = sizeof host,
    .abi_major = HELIO_ABI_MAJOR,
    .abi_minor = HELIO_ABI_MINOR,
    .core_version = "test",
    .log = host_log,
    .fail = host_fail,
    .parameter = host_parameter,
    .allocate = host_allocate,
    .release = host_release,
    .turn_begin = host_turn,
    .turn_end = host_turn,
};

#define OK(call)                                                                                                       \
  do {                                                                                                                 \
    helio_status status_ = (call);                                                                                     \
    if (status_ != HELIO_OK) fail_msg("%s: %d: %s", #call, status_, failure);                                          \
  } while (0)

/* ---- a device with a stream ---- */

typedef struct place {
  helio_backend_device *device;
  helio_stream *stream;
} place;

static place open_place(uint32_t card) {
  place made;
  helio_open_options options = {.size = sizeof options, .logical_count = 1};
  OK(plugin->devices->open(plugin_state, card, &options, &made.device));
  OK(plugin->streams->create(made.device, &made.stream));
  return made;
}

static void close_place(place *used) {
  plugin->streams->destroy(used->device, used->stream);
  plugin->devices->close(used->device);
}

static helio_buffer *allocate(const place *at, size_t bytes) {
  helio_buffer *buffer;
  OK(plugin->memory->allocate(at->device, bytes, &buffer));
  return buffer;
}

static void read_back(const place *at, helio_buffer *buffer, size_t offset, void *data, size_t bytes) {
  OK(plugin->memory->copy_out(at->device, at->stream, data, (helio_place){buffer, offset}, bytes));
  OK(plugin->streams->synchronize(at->device, at->stream));
}

/* ---- fills ---- */

enum { FILL_BYTES = 4096 };

/* `count` patterns at `offset`, and nothing before or behind them. */
static void check_fill(const place *at, helio_buffer *buffer, const void *pattern, size_t width, size_t offset,
                       size_t count) {
  unsigned char got[FILL_BYTES], zero = 0;
  OK(plugin->memory->fill(at->device, at->stream, (helio_place){buffer, 0}, &zero, 1, FILL_BYTES));
  OK(plugin->memory->fill(at->device, at->stream, (helio_place){buffer, offset}, pattern, width, count));
  read_back(at, buffer, 0, got, FILL_BYTES);
  for (size_t i = 0; i < FILL_BYTES; i++) {
    bool inside = i >= offset && i < offset + width * count;
    unsigned char wanted = inside ? ((const unsigned char *)pattern)[(i - offset) % width] : 0;
    if (got[i] != wanted)
      fail_msg("byte %zu is %u, not %u: %zu patterns of %zu bytes at %zu", i, got[i], wanted, count, width, offset);
  }
}

static void test_fills(void **state) {
  (void)state;
  static const unsigned char patterns[][8] = {
      {0, 0, 0, 0, 0, 0, 0, 0},
      {1, 2, 3, 4, 5, 6, 7, 8},
      {9, 9, 9, 9, 9, 9, 9, 9},
      {1, 2, 1, 2, 1, 2, 1, 2},
      {1, 2, 3, 4, 1, 2, 3, 4},
      {0, 0, 0, 0, 0, 0, 0xf0, 0x3f},
      {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
  };
  static const size_t counts[] = {1, 2, 3, 7, 64, 257};
  place at = open_place(0);
  helio_buffer *buffer = allocate(&at, FILL_BYTES);
  for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
    for (size_t width = 1; width <= 8; width *= 2) {
      for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
        check_fill(&at, buffer, patterns[p], width, width * (c % 3) + (c % 2) * 256, counts[c]);
    }
  }
  assert_int_equal(plugin->memory->fill(at.device, at.stream, (helio_place){buffer, 0}, patterns[0], 3, 1),
                   HELIO_INVALID_ARGUMENT);
  OK(plugin->memory->free(at.device, buffer));
  close_place(&at);
}

/* ---- copies ---- */

static void test_pinned_copies(void **state) {
  (void)state;
  place at = open_place(0);
  helio_buffer *buffer = allocate(&at, 1000), *other = allocate(&at, 1000);
  unsigned char *pinned;
  OK(plugin->memory->host_allocate(at.device, 1000, (void **)&pinned));
  for (int i = 0; i < 1000; i++) pinned[i] = (unsigned char)(i * 7);
  OK(plugin->memory->copy_in(at.device, at.stream, (helio_place){buffer, 0}, pinned, 1000));
  OK(plugin->memory->copy(at.device, at.stream, (helio_place){other, 8}, (helio_place){buffer, 0}, 900));
  OK(plugin->streams->synchronize(at.device, at.stream));
  memset(pinned, 0, 1000);
  read_back(&at, other, 8, pinned, 900);
  for (int i = 0; i < 900; i++) assert_int_equal(pinned[i], (unsigned char)(i * 7));
  plugin->memory->host_free(at.device, pinned);
  OK(plugin->memory->free(at.device, other));
  OK(plugin->memory->free(at.device, buffer));
  close_place(&at);
}

/* Whether a copy from one card to another must be refused, or may be: emulated cards reach each other unless they are
 * told not to, real ones if they can. */
static bool check_refusal(uint32_t to, uint32_t from, helio_status status) {
  const char *peer = getenv("GPUSIM_PEER");
  if (to == from) return false;
  if (is_emulated() && (peer == NULL || strcmp(peer, "0") != 0)) return false;
  if (is_emulated()) assert_int_equal(status, HELIO_NOT_SUPPORTED);
  bool refused = status == HELIO_NOT_SUPPORTED;
  print_message("card %u %s the memory of card %u\n", to, refused ? "does not reach" : "reaches", from);
  return refused;
}

/* From one card to another, directly if they reach each other; the core goes through the host if they do not. */
static void check_peer(uint32_t to, uint32_t from) {
  place target = open_place(to), source = open_place(from);
  helio_buffer *here = allocate(&target, 4096), *there = allocate(&source, 4096);
  unsigned char sent[4096], got[4096];
  for (size_t i = 0; i < sizeof sent; i++) sent[i] = (unsigned char)(i * 11 + to * 3 + from);
  OK(plugin->memory->copy_in(source.device, source.stream, (helio_place){there, 0}, sent, sizeof sent));
  helio_event *written;
  OK(plugin->streams->event_create(source.device, &written));
  OK(plugin->streams->event_record(source.device, written, source.stream));
  OK(plugin->streams->wait(target.device, target.stream, written));
  helio_status status = plugin->memory->copy_peer(target.device, target.stream, (helio_place){here, 0}, source.device,
                                                  (helio_place){there, 0}, sizeof sent);
  if (!check_refusal(to, from, status)) {
    OK(status);
    read_back(&target, here, 0, got, sizeof got);
    assert_memory_equal(sent, got, sizeof got);
  }
  OK(plugin->streams->synchronize(source.device, source.stream));
  plugin->streams->event_destroy(source.device, written);
  OK(plugin->memory->free(source.device, there));
  OK(plugin->memory->free(target.device, here));
  close_place(&source);
  close_place(&target);
}

static void test_peers(void **state) {
  (void)state;
  for (uint32_t to = 0; to < card_count && to < 3; to++) {
    for (uint32_t from = 0; from < card_count && from < 3; from++) check_peer(to, from);
  }
}

/* Emulated cards can be told that they do not reach each other. */
static void test_no_peers(void **state) {
  (void)state;
  if (!is_emulated()) SKIP("real cards reach each other or do not");
  assert_int_equal(system("GPUSIM_PEER=0 \"$(readlink /proc/$PPID/exe)\" peers >&2"), 0);
}

/* ---- memory that there is not ---- */

/* Puts a function of the driver that the plugin has opened into `function`. */
static void find_in_driver(const char *name, void *function) {
  static const char *const drivers[] = {GPU_CUDA_DRIVERS, GPU_HIP_DRIVERS};
  void *found = NULL;
  for (size_t i = 0; i < sizeof drivers / sizeof drivers[0] && found == NULL; i++) {
    void *driver = dlopen(drivers[i], RTLD_NOW | RTLD_NOLOAD);
    if (driver != NULL) found = dlsym(driver, name);
  }
  assert_non_null(found);
  memcpy(function, &found, sizeof found);
}

/* HIP keeps a thread's last error until it is read, and AMD's libraries read it behind their own launches: what failed
 * here, and was told, must not be found there. */
static void check_no_last_error(void) {
  int (*last_error)(void);
  if (strcmp(plugin->name, "hip") != 0) return;
  find_in_driver("hipGetLastError", &last_error);
  assert_int_equal(last_error(), 0);
}

static void test_out_of_memory(void **state) {
  (void)state;
  place at = open_place(0);
  uint64_t free_bytes, total;
  OK(plugin->devices->memory_info(at.device, &free_bytes, &total));
  assert_true(free_bytes <= total);
  helio_buffer *buffer = NULL;
  assert_int_equal(plugin->memory->allocate(at.device, (size_t)total * 2, &buffer), HELIO_OUT_OF_MEMORY);
  assert_null(buffer);
  assert_non_null(strstr(failure, "no room for a buffer of"));
  assert_non_null(strstr(failure, "bytes are free"));
  check_no_last_error();
  OK(plugin->devices->synchronize(at.device)); /* the device goes on */
  buffer = allocate(&at, 64);
  helio_buffer *another = allocate(&at, FILL_BYTES);
  check_fill(&at, another, "abcd", 4, 8, 9);
  OK(plugin->memory->free(at.device, another));
  OK(plugin->memory->free(at.device, buffer));
  close_place(&at);
}

/* ---- threads and handles ---- */

typedef struct worker {
  uint32_t card;
  bool right;
} worker;

/* Threads come without a current device; cards come and go under them. cmocka's asserts stay out of here. */
static void *work(void *argument) {
  worker *self = argument;
  helio_open_options options = {.size = sizeof options, .logical_count = 1};
  self->right = true;
  for (int round = 0; round < 5; round++) {
    helio_backend_device *device;
    helio_stream *stream;
    helio_buffer *buffer;
    double value = self->card + 0.5, got[100] = {0};
    bool right = plugin->devices->open(plugin_state, self->card, &options, &device) == HELIO_OK &&
                 plugin->streams->create(device, &stream) == HELIO_OK &&
                 plugin->memory->allocate(device, sizeof got, &buffer) == HELIO_OK &&
                 plugin->memory->fill(device, stream, (helio_place){buffer, 0}, &value, 8, 100) == HELIO_OK &&
                 plugin->memory->copy_out(device, stream, got, (helio_place){buffer, 0}, sizeof got) == HELIO_OK &&
                 plugin->streams->synchronize(device, stream) == HELIO_OK && got[0] == value && got[99] == value &&
                 plugin->memory->free(device, buffer) == HELIO_OK;
    if (right) plugin->streams->destroy(device, stream);
    if (right) plugin->devices->close(device);
    self->right = self->right && right;
  }
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  worker workers[6];
  pthread_t threads[6];
  for (uint32_t i = 0; i < 6; i++) {
    workers[i].card = i % card_count;
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < 6; i++) {
    pthread_join(threads[i], NULL);
    assert_true(workers[i].right);
  }
}

static void test_handles(void **state) {
  (void)state;
  for (uint32_t card = 0; card < card_count && card < 2; card++) {
    place at = open_place(card), same = open_place(card);
    helio_buffer *buffer = allocate(&at, 64);
    void *native = plugin->devices->native_device(at.device);
    assert_non_null(native);
    assert_ptr_equal(native, plugin->devices->native_device(same.device)); /* one card, one context */
    if (strcmp(plugin->name, "hip") == 0) assert_int_equal(*(int *)native, card);
    assert_non_null(plugin->streams->native_stream(at.stream));
    assert_non_null(plugin->memory->native_buffer(buffer));
    OK(plugin->memory->free(at.device, buffer));
    close_place(&same);
    close_place(&at);
  }
}

/* What the program has said of captures in its thread still holds behind every question and every wait. */
static void test_capture_mode(void **state) {
  bool on_hip = strcmp(plugin->name, "hip") == 0;
  const helio_stream_table *streams = plugin->streams;
  abi_enum (*exchange)(abi_enum * mode), mode = CUDA_ABI_CAPTURE_MODE_THREAD_LOCAL;
  helio_event *event;
  (void)state;
  find_in_driver(on_hip ? "hipThreadExchangeStreamCaptureMode" : "cuThreadExchangeStreamCaptureMode", &exchange);
  place at = open_place(0);
  OK(streams->event_create(at.device, &event));
  assert_int_equal(exchange(&mode), 0);
  assert_int_equal(mode, CUDA_ABI_CAPTURE_MODE_GLOBAL);
  OK(streams->event_record(at.device, event, at.stream));
  OK(streams->event_synchronize(at.device, event));
  OK(streams->event_query(at.device, event));
  OK(streams->synchronize(at.device, at.stream));
  assert_int_equal(exchange(&mode), 0);
  assert_int_equal(mode, CUDA_ABI_CAPTURE_MODE_THREAD_LOCAL);
  streams->event_destroy(at.device, event);
  close_place(&at);
}

static void test_description(void **state) {
  (void)state;
  helio_device_description about = {.size = sizeof about};
  OK(plugin->devices->describe(plugin_state, 0, &about));
  assert_int_equal(about.device_class, HELIO_CLASS_GPU);
  assert_string_equal(about.native_api, plugin->name);
  assert_int_equal(about.alignment, 256);
  assert_true(about.memory > 0 && about.compute_units > 0);
  assert_int_equal(strlen(about.bus_id), strlen("0000:3b:00.0"));
  assert_int_equal(plugin->devices->describe(plugin_state, card_count, &about), HELIO_NO_DEVICE);
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
  if (plugin == NULL || plugin->probe(&host, &answer) != HELIO_OK || answer.devices == 0) {
    print_error("%s: %s %s\n", path, library == NULL ? dlerror() : "", answer.reason);
    return -1;
  }
  return plugin->init(&host, &plugin_state) == HELIO_OK && plugin->devices->count(plugin_state, &card_count) == HELIO_OK
             ? 0
             : -1;
}

static int finish(void **state) {
  (void)state;
  plugin->finish(plugin_state);
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest peers[] = {cmocka_unit_test(test_peers)};
  if (argc > 1 && strcmp(argv[1], "peers") == 0) return cmocka_run_group_tests(peers, start, finish);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_description),   cmocka_unit_test(test_fills),    cmocka_unit_test(test_pinned_copies),
      cmocka_unit_test(test_peers),         cmocka_unit_test(test_threads),  cmocka_unit_test(test_handles),
      cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_no_peers), cmocka_unit_test(test_capture_mode),
  };
  return cmocka_run_group_tests(tests, start, finish);
}
