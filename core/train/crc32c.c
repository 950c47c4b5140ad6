/* SPDX-License-Identifier: Apache-2.0 */
#include "train/crc32c.h"

/* Bit by bit: what is summed here has some dozens of bytes, for which a table would not pay. */
uint32_t hi_crc32c(const void *data, size_t bytes) {
  const uint32_t polynomial = 0x82F63B78; /* its bits in reverse, as this sum takes the lowest bit first */
  const unsigned char *at = data;
  uint32_t sum = UINT32_MAX;
  for (size_t i = 0; i < bytes; i++) {
    sum ^= at[i];
    for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? polynomial : 0);
  }
  return ~sum;
}
