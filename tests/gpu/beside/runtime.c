/* SPDX-License-Identifier: Apache-2.0 */
/* libamdhip64.so.5, another runtime than the one in use. */
int hipSetDevice(int device);

int hipSetDevice(int device) {
  return device;
}
