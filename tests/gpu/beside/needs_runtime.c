/* SPDX-License-Identifier: Apache-2.0 */
/* libMIOpen.so.1 and librccl.so.1, built for another runtime. */
int hipSetDevice(int device);
int call_another_runtime(void);

int call_another_runtime(void) {
  return hipSetDevice(0);
}
