/* SPDX-License-Identifier: Apache-2.0 */
/* Bad: some shared object that has nothing to do with plugins. */
#include <helio/types.h>

HELIO_EXPORT int foreign_add(int a, int b);
HELIO_EXPORT int twin_helper(void);

int foreign_add(int a, int b) {
  return a + b;
}

/* Under the name that two plugins use for helpers of their own. */
int twin_helper(void) {
  return 3;
}
