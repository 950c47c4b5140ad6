/* SPDX-License-Identifier: Apache-2.0 */
/* Which device a failed call is blamed on. */
#include "device/guard.h"
#include "support.h"

/* A plugin of two devices, of which some answer that they are lost. */
static hi_device devices[2];
static bool lost[2];

static int number_of(helio_backend_device *handle) {
  return handle == devices[0].handle ? 0 : 1;
}

static helio_status memory_info(helio_backend_device *handle, uint64_t *available, uint64_t *total) {
  *available = *total = 0;
  return lost[number_of(handle)] ? HELIO_DEVICE_FAILURE : HELIO_OK;
}

static helio_status copy_peer(helio_backend_device *handle, helio_stream *stream, helio_place target,
                              helio_backend_device *from, helio_place source, size_t bytes) {
  (void)handle, (void)stream, (void)target, (void)from, (void)source, (void)bytes;
  return HELIO_DEVICE_FAILURE;
}

/* Which is suspected when a copy from device 1 to device 0 fails? */
static void expect_blame(bool first_lost, bool second_lost, int blamed) {
  static char handles[2];
  static hi_plugin plugin = {.devices.memory_info = memory_info, .memory.copy_peer = copy_peer};
  static hi_physical physical = {.plugin = &plugin};
  hi_guard(&plugin);
  for (int i = 0; i < 2; i++) {
    devices[i].handle = (helio_backend_device *)&handles[i];
    devices[i].physical = &physical;
    atomic_store(&devices[i].loss, 0);
  }
  lost[0] = first_lost, lost[1] = second_lost;
  helio_place none = {0};
  assert_int_equal(plugin.shown.memory.copy_peer((helio_backend_device *)&devices[0], NULL, none,
                                                 (helio_backend_device *)&devices[1], none, 4),
                   HELIO_DEVICE_FAILURE);
  assert_int_equal(atomic_load(&devices[blamed].loss), HI_SUSPECT);
  assert_int_equal(atomic_load(&devices[1 - blamed].loss), 0);
  for (int i = 0; i < 2; i++) free(atomic_exchange(&devices[i].cause, NULL));
}

static void test_a_copy_between_devices(void **state) {
  (void)state;
  assert_ok(helio_init());
  expect_blame(false, true, 1);
  expect_blame(true, false, 0);
  expect_blame(false, false, 0); /* it fails, whatever it says */
  expect_blame(true, true, 1);   /* the other tells it with its next call */
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_a_copy_between_devices)};
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
