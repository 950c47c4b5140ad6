/* SPDX-License-Identifier: Apache-2.0 */
/* Good: exports a helper besides its entry, under the same name as the other twin. Each must find its own, because the
 * core opens plugins with RTLD_LOCAL. */
#define MINIMAL_NAME  "twin-first"
#define MINIMAL_PROBE its_probe
#include <helio/plugin.h>
static helio_status its_probe(const helio_host *host, helio_probe_answer *answer);
#include "minimal.h"

HELIO_EXPORT int twin_helper(void);

int twin_helper(void) {
  return 1;
}

static helio_status its_probe(const helio_host *host, helio_probe_answer *answer) {
  /* Through a volatile pointer, so that the call goes to whatever the loader has bound the name to. */
  int (*volatile helper)(void) = twin_helper;
  int number = helper();
  if (number != 1) return host->fail(host, HELIO_WRONG_STATE, "called the helper of plugin %d", number);
  return minimal_probe(host, answer);
}
