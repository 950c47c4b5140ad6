/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), the checksum of iSCSI (RFC 3720) and of TFRecord files. */
#ifndef HI_CRC32C_H
#define HI_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t hi_crc32c(const void *data, size_t bytes);

#endif
