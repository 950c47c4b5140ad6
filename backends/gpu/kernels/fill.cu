/* SPDX-License-Identifier: Apache-2.0 */
/* Fills with patterns that the vendors have no function for. */

KERNEL fill_2(u16 *target, u64 pattern, i64 count) {
  FOR_EACH(i, count) target[i] = (u16)pattern;
}

KERNEL fill_8(u64 *target, u64 pattern, i64 count) {
  FOR_EACH(i, count) target[i] = pattern;
}
