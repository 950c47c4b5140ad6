/* SPDX-License-Identifier: Apache-2.0 */
/* librocblas.so.5, which says that it was opened. */
#include <stdio.h>

static void __attribute__((constructor)) tell(void) {
  puts("librocblas.so.5 was opened");
}
