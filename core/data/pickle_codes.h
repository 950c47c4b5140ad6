/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of pickles: those that are carried out, and the names of all others. */
#ifndef HI_PICKLE_CODES_H
#define HI_PICKLE_CODES_H

enum {
  MARK_CODE = '(',
  STOP = '.',
  BININT = 'J',
  BININT1 = 'K',
  BININT2 = 'M',
  NONE_CODE = 'N',
  REDUCE = 'R',
  BINSTRING = 'T',
  SHORT_BINSTRING = 'U',
  BINUNICODE = 'X',
  APPEND = 'a',
  BUILD = 'b',
  GLOBAL = 'c',
  APPENDS = 'e',
  BINGET = 'h',
  LONG_BINGET = 'j',
  BINPUT = 'q',
  LONG_BINPUT = 'r',
  TUPLE_CODE = 't',
  EMPTY_TUPLE = ')',
  EMPTY_LIST = ']',
  BINBYTES = 'B',
  SHORT_BINBYTES = 'C',
  PROTO = 0x80,
  TUPLE1 = 0x85,
  TUPLE2 = 0x86,
  TUPLE3 = 0x87,
  NEWTRUE = 0x88,
  NEWFALSE = 0x89,
  LONG1 = 0x8A,
  SHORT_BINUNICODE = 0x8C,
  STACK_GLOBAL = 0x93,
  MEMOIZE = 0x94,
  FRAME = 0x95,
};

/* Bytes of the number behind an instruction that has one and is carried out; 0 for all others. */
int hi_pickle_code_width(unsigned code);

/* "NEWOBJ"; "an unknown instruction" for a byte that is none, and for those that are carried out. */
const char *hi_pickle_code_name(unsigned code);

#endif
