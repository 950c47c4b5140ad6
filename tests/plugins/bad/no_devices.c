/* SPDX-License-Identifier: Apache-2.0 */
/* Well behaved, but there is no such hardware here: an answer, not an error. */
#define MINIMAL_NAME  "no-devices"
#define MINIMAL_PROBE its_probe
#include <helio/plugin.h>
static helio_status its_probe(const helio_host *host, helio_probe_answer *answer);
#include "minimal.h"

static helio_status its_probe(const helio_host *host, helio_probe_answer *answer) {
  (void)host;
  answer->devices = 0;
  snprintf(answer->reason, sizeof answer->reason, "no such card is built in; get one from the shop");
  return HELIO_OK;
}
