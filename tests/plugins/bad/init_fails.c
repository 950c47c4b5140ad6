/* SPDX-License-Identifier: Apache-2.0 */
/* Bad: probes well and cannot start. */
#define MINIMAL_NAME "init-fails"
#define MINIMAL_INIT its_init
#include <helio/plugin.h>
static helio_status its_init(const helio_host *host, helio_plugin_state **state);
#include "minimal.h"

static helio_status its_init(const helio_host *host, helio_plugin_state **state) {
  (void)state;
  return host->fail(host, HELIO_DEVICE_FAILURE, "the device was there a moment ago");
}
