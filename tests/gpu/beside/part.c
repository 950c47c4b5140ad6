/* SPDX-License-Identifier: Apache-2.0 */
/* libpart.so.1. */
int part_number(void);

int part_number(void) {
  return 1;
}
