/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/printable.h"

#include <string.h>

size_t hi_text_fit(const char *text, size_t size) {
  size_t length = strnlen(text, size);
  if (length < size) return length;
  length = size - 1;
  while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) length--; /* what is left out begins inside one */
  return length;
}

void hi_make_printable(char *text) {
  for (unsigned char *at = (unsigned char *)text; *at; at++) {
    if (at[0] == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0) at[0] = at[1] = '?';
    if (at[0] < 32 || at[0] == 127) at[0] = '?';
  }
}
