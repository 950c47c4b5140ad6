/* SPDX-License-Identifier: Apache-2.0 */
#include "data/pickle_codes.h"

#include <stddef.h>

int hi_pickle_code_width(unsigned code) {
  switch (code) {
  case BININT1:
  case LONG1:
  case BINPUT:
  case BINGET:
  case SHORT_BINSTRING:
  case SHORT_BINBYTES:
  case SHORT_BINUNICODE:
  case PROTO:
    return 1;
  case BININT2:
    return 2;
  case BININT:
  case LONG_BINPUT:
  case LONG_BINGET:
  case BINSTRING:
  case BINBYTES:
  case BINUNICODE:
    return 4;
  case FRAME:
    return 8;
  default:
    return 0;
  }
}

static const struct {
  unsigned char code;
  const char *name;
} refused[] = {
    {'0', "POP"},          {'1', "POP_MARK"},
    {'2', "DUP"},          {'F', "FLOAT"},
    {'G', "BINFLOAT"},     {'I', "INT"},
    {'L', "LONG"},         {'P', "PERSID"},
    {'Q', "BINPERSID"},    {'S', "STRING"},
    {'V', "UNICODE"},      {'d', "DICT"},
    {'g', "GET"},          {'i', "INST"},
    {'l', "LIST"},         {'o', "OBJ"},
    {'p', "PUT"},          {'s', "SETITEM"},
    {'u', "SETITEMS"},     {'}', "EMPTY_DICT"},
    {0x81, "NEWOBJ"},      {0x82, "EXT1"},
    {0x83, "EXT2"},        {0x84, "EXT4"},
    {0x8B, "LONG4"},       {0x8D, "BINUNICODE8"},
    {0x8E, "BINBYTES8"},   {0x8F, "EMPTY_SET"},
    {0x90, "ADDITEMS"},    {0x91, "FROZENSET"},
    {0x92, "NEWOBJ_EX"},   {0x96, "BYTEARRAY8"},
    {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
};

const char *hi_pickle_code_name(unsigned code) {
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    if (refused[i].code == code) return refused[i].name;
  }
  return "an unknown instruction";
}
