/* SPDX-License-Identifier: Apache-2.0 */
/* Bad: ends the program with SIGSEGV when it is probed. */
#define MINIMAL_NAME  "crashes-in-probe"
#define MINIMAL_PROBE its_probe
#include <helio/plugin.h>
static helio_status its_probe(const helio_host *host, helio_probe_answer *answer);
#include "minimal.h"

#include <signal.h>

static helio_status its_probe(const helio_host *host, helio_probe_answer *answer) {
  raise(SIGSEGV);
  return minimal_probe(host, answer);
}
