/* SPDX-License-Identifier: Apache-2.0 */
/* Bad: something is broken, and its probe says so. */
#define MINIMAL_NAME  "probe-fails"
#define MINIMAL_PROBE its_probe
#include <helio/plugin.h>
static helio_status its_probe(const helio_host *host, helio_probe_answer *answer);
#include "minimal.h"

static helio_status its_probe(const helio_host *host, helio_probe_answer *answer) {
  (void)answer;
  return host->fail(host, HELIO_DEVICE_FAILURE, "the driver answers, but not with anything that makes sense");
}
