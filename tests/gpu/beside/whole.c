/* SPDX-License-Identifier: Apache-2.0 */
/* libwhole.so.1, which opens a part of itself by a plain name when it works, as cuDNN and NVRTC do; and libneedy.so.1,
 * which needs the part from the beginning and does not find it. */
#include <dlfcn.h>

int whole_works(void);

int whole_works(void) {
  return dlopen("libpart.so.1", RTLD_NOW | RTLD_LOCAL) != 0;
}
