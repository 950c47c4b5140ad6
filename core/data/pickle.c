/* SPDX-License-Identifier: Apache-2.0 */
#include "data/pickle.h"

#include <stdlib.h>
#include <string.h>

#include "data/pickle_codes.h"
#include "data/sequences.h"
#include "runtime/error.h"

/* What can lie on the stack. */
typedef enum kind {
  MARK,
  NONE,
  FLAG,
  INTEGER,
  TEXT,
  TUPLE,
  LIST,
  RECONSTRUCT,
  NDARRAY,
  DTYPE,
  ELEMENT_TYPE,
  ARRAY
} kind;

typedef struct value {
  kind kind;
  uint32_t length; /* of a text or tuple */
  union {
    int64_t number; /* of an integer or flag; of a list: 0 is the array's own, 1, 2, … are its elements */
    size_t at;      /* of a text in the file, of a tuple among all their items */
  };
} value;

/* Enough for what numpy writes: a thousand elements of a list at a time, a few dozen names and tuples before the lists.
 * So memory grows with the lists alone. */
enum { DEEPEST = 4096, MOST_REMEMBERED = 256, MOST_ITEMS = 256, LONGEST_NAME = 1000 };

typedef struct machine {
  const hi_file *file;
  size_t at;   /* the next byte */
  size_t code; /* where the instruction began that is being carried out */
  value stack[DEEPEST];
  size_t depth;
  value memo[MOST_REMEMBERED]; /* MARK: nothing was remembered there */
  size_t remembered;           /* how often, which is the next number */
  value items[MOST_ITEMS];     /* of all tuples */
  size_t item_count;
  hi_sequences_writer lists; /* but the outermost */
  int64_t begun, taken;      /* lists in all; those that are in the outermost one */
  int64_t extent;            /* that the array says of itself, −1: it has not */
  bool made;                 /* there is an array */
} machine;

static helio_status fail(const machine *m, const char *cause) {
  return hi_file_fail(m->file, HELIO_BAD_DATA, m->code, "%s", cause);
}

/* ---- the stack ---- */

static helio_status push(machine *m, value v) {
  if (m->depth == DEEPEST) return fail(m, "the stack grows higher than numpy's pickles need");
  m->stack[m->depth++] = v;
  return HELIO_OK;
}

/* The uppermost value, NULL with the error set if there is none above the last mark. */
static const value *top(const machine *m) {
  if (m->depth > 0 && m->stack[m->depth - 1].kind != MARK) return &m->stack[m->depth - 1];
  fail(m, "the stack is empty");
  return NULL;
}

static const value *pop(machine *m) {
  const value *v = top(m);
  if (v) m->depth--;
  return v;
}

/* Where the values above the last mark begin; the mark is below. */
static helio_status find_mark(const machine *m, size_t *above) {
  for (*above = m->depth; *above > 0; --*above) {
    if (m->stack[*above - 1].kind == MARK) return HELIO_OK;
  }
  return fail(m, "there is no mark on the stack");
}

/* Of all from `first` on; what was above `bottom` goes. */
static helio_status make_tuple(machine *m, size_t first, size_t bottom) {
  size_t length = m->depth - first;
  value tuple = {.kind = TUPLE, .length = (uint32_t)length, .at = m->item_count};
  if (length > MOST_ITEMS - m->item_count) return fail(m, "there are more tuples than numpy's pickles have");
  memcpy(m->items + m->item_count, m->stack + first, length * sizeof(value));
  m->item_count += length;
  m->depth = bottom;
  return push(m, tuple);
}

static helio_status make_short_tuple(machine *m, size_t length) {
  for (size_t i = 1; i <= length; i++) {
    if (m->depth < i || m->stack[m->depth - i].kind == MARK) return fail(m, "the stack is empty");
  }
  return make_tuple(m, m->depth - length, m->depth - length);
}

static helio_status remember(machine *m, size_t index) {
  const value *v = top(m);
  if (!v) return helio_error_pending();
  if (index < MOST_REMEMBERED) m->memo[index] = *v;
  m->remembered++;
  return HELIO_OK;
}

/* What comes late in a pickle are lists, which must not be used twice. */
static helio_status recall(machine *m, size_t index) {
  if (index >= MOST_REMEMBERED || m->memo[index].kind == MARK) return fail(m, "nothing of this number is remembered");
  return push(m, m->memo[index]);
}

/* ---- lists ---- */

/* Lists are written one behind the other, so that only the one that was begun last can grow: that is how a pickle has
 * them. The first is the array's own. */
static helio_status begin_list(machine *m) {
  if (m->begun > 0 && !hi_sequences_begin(&m->lists)) return helio_error_pending();
  return push(m, (value){.kind = LIST, .number = m->begun++});
}

static helio_status append(machine *m, int64_t list, value v) {
  if (v.kind == LIST && list == 0) {
    if (v.number != m->taken + 1) return fail(m, "a list is in the array twice, in itself or in another order");
    m->taken++;
    return HELIO_OK;
  }
  if (v.kind != INTEGER) return fail(m, "an element of a list is neither an integer nor a list in the array's own");
  if (list == 0) return fail(m, "an element of the array is an integer, not a list");
  if (list != m->begun - 1) return fail(m, "a list grows after another has begun");
  if (v.number < INT32_MIN || v.number > INT32_MAX) return fail(m, "an integer does not fit into 32 bits");
  return hi_sequences_add(&m->lists, (int32_t)v.number) ? HELIO_OK : helio_error_pending();
}

/* Appends all from `first` on to the list that lies below `bottom`, which stays. */
static helio_status append_from(machine *m, size_t first, size_t bottom) {
  helio_status status = HELIO_OK;
  if (bottom == 0 || m->stack[bottom - 1].kind != LIST) return fail(m, "there is no list to append to");
  int64_t list = m->stack[bottom - 1].number;
  for (size_t i = first; i < m->depth && !status; i++) status = append(m, list, m->stack[i]);
  m->depth = bottom;
  return status;
}

/* ---- functions ---- */

static bool is_text(const machine *m, const value *v, const char *text) {
  return v->kind == TEXT && v->length == strlen(text) && memcmp(m->file->bytes + v->at, text, v->length) == 0;
}

/* A letter for each item of a tuple: i(nteger), t(ext), n(one), f(lag, which was an integer once), and what stands for
 * itself. */
static bool is_tuple(const machine *m, const value *v, const char *form) {
  static const char letters[] = {
      [NONE] = 'n',    [FLAG] = 'f',         [INTEGER] = 'i', [TEXT] = 't', [TUPLE] = '(',     [LIST] = '[',
      [NDARRAY] = 'A', [ELEMENT_TYPE] = 'T', [ARRAY] = 0,     [MARK] = 0,   [RECONSTRUCT] = 0, [DTYPE] = 0};
  if (v->kind != TUPLE || v->length != strlen(form)) return false;
  for (uint32_t i = 0; i < v->length; i++) {
    kind k = m->items[v->at + i].kind;
    if (letters[k] != form[i] && !(k == INTEGER && form[i] == 'f')) return false;
  }
  return true;
}

static const value *item(const machine *m, const value *tuple, size_t index) {
  return &m->items[tuple->at + index];
}

static const struct {
  const char *module, *name;
  kind kind;
} globals[] = {{"numpy.core.multiarray", "_reconstruct", RECONSTRUCT},
               {"numpy._core.multiarray", "_reconstruct", RECONSTRUCT},
               {"numpy", "ndarray", NDARRAY},
               {"numpy", "dtype", DTYPE}};

static helio_status push_global(machine *m, value module, value name) {
  for (size_t i = 0; i < sizeof globals / sizeof globals[0]; i++) {
    if (is_text(m, &module, globals[i].module) && is_text(m, &name, globals[i].name)) {
      return push(m, (value){.kind = globals[i].kind});
    }
  }
  if (module.kind != TEXT || name.kind != TEXT) return fail(m, "the name of a global is not text");
  const char *text = (const char *)m->file->bytes;
  return hi_file_fail(m->file, HELIO_BAD_DATA, m->code,
                      "the pickle asks for %.*s.%.*s; only numpy's constructors of arrays are accepted",
                      module.length < 100 ? (int)module.length : 100, text + module.at,
                      name.length < 100 ? (int)name.length : 100, text + name.at);
}

/* _reconstruct(ndarray, (0,), b"b") is an array that is yet empty, dtype("O8", False, True) the type of objects. */
static helio_status call(machine *m) {
  const value *arguments = pop(m), *function = arguments ? pop(m) : NULL;
  if (!function) return helio_error_pending();
  if (function->kind == RECONSTRUCT && is_tuple(m, arguments, "A(t")) {
    if (m->made) return fail(m, "there is a second array");
    m->made = true;
    return push(m, (value){.kind = ARRAY});
  }
  if (function->kind == DTYPE && is_tuple(m, arguments, "tff")) {
    const value *name = item(m, arguments, 0);
    if (is_text(m, name, "O8") || is_text(m, name, "O4")) return push(m, (value){.kind = ELEMENT_TYPE});
    return fail(m, "the array is not one of objects");
  }
  return fail(m, "something is called in another way than numpy calls its constructors of arrays");
}

/* What makes the empty array whole: version, shape, type, order, elements. */
static helio_status build(machine *m) {
  const value *state = pop(m), *object = state ? pop(m) : NULL;
  if (!object) return helio_error_pending();
  if (object->kind == ELEMENT_TYPE) {
    return is_tuple(m, state, "itnnniii") && is_text(m, item(m, state, 1), "|")
               ? push(m, *object)
               : fail(m, "this is not the type of objects");
  }
  if (object->kind != ARRAY || !is_tuple(m, state, "i(Tf[") || item(m, state, 4)->number != 0) {
    return fail(m, "this is not what an array of lists is made of");
  }
  if (!is_tuple(m, item(m, state, 1), "i")) return fail(m, "the array has not one axis");
  if (m->extent >= 0) return fail(m, "the array is made twice");
  m->extent = item(m, item(m, state, 1), 0)->number;
  return m->extent >= 0 ? push(m, *object) : fail(m, "the array has a negative extent");
}

/* ---- instructions ---- */

/* So many bytes behind the instruction; NULL with the error set if the pickle ends before. */
static const unsigned char *take(machine *m, uint64_t count) {
  const unsigned char *bytes = m->file->bytes + m->at;
  if (count > m->file->size - m->at) {
    fail(m, "the pickle ends inside an instruction");
    return NULL;
  }
  m->at += (size_t)count;
  return bytes;
}

static helio_status push_integer(machine *m, int64_t number) {
  return push(m, (value){.kind = INTEGER, .number = number});
}

/* Little-endian, with a sign, in as few bytes as will do. */
static helio_status push_long(machine *m, size_t length) {
  const unsigned char *bytes = take(m, length);
  uint64_t number = 0;
  if (!bytes) return helio_error_pending();
  if (length > 8) return fail(m, "an integer does not fit into 32 bits");
  for (size_t i = 0; i < length; i++) number |= (uint64_t)bytes[i] << (8 * i);
  if (length > 0 && length < 8 && bytes[length - 1] & 0x80) number |= UINT64_MAX << (8 * length);
  return push_integer(m, (int64_t)number);
}

static helio_status push_text(machine *m, uint64_t length) {
  value text = {.kind = TEXT, .length = (uint32_t)length, .at = m->at};
  return take(m, length) ? push(m, text) : helio_error_pending();
}

/* The rest of the line, whose end is skipped. */
static helio_status take_line(machine *m, value *line) {
  const unsigned char *begin = m->file->bytes + m->at, *end = memchr(begin, '\n', m->file->size - m->at);
  if (!end || end - begin > LONGEST_NAME) return fail(m, "the name of a global does not end");
  *line = (value){.kind = TEXT, .length = (uint32_t)(end - begin), .at = m->at};
  m->at += line->length + 1;
  return HELIO_OK;
}

static helio_status read_global(machine *m) {
  value module, name;
  helio_status status = take_line(m, &module);
  if (!status) status = take_line(m, &name);
  return status ? status : push_global(m, module, name);
}

static helio_status read_stack_global(machine *m) {
  const value *name = pop(m), *module = name ? pop(m) : NULL;
  return module ? push_global(m, *module, *name) : helio_error_pending();
}

/* Frames only say how much a reader may fetch at once. */
static helio_status check_frame(const machine *m, uint64_t length) {
  return length <= m->file->size - m->at ? HELIO_OK : fail(m, "a frame goes beyond the end");
}

static helio_status refuse(const machine *m, unsigned code) {
  const char *name = hi_pickle_code_name(code);
  return hi_file_fail(m->file, HELIO_BAD_DATA, m->code, "%s (0x%02X) is not accepted in a pickle of lists of integers",
                      name, code);
}

static helio_status run_marked(machine *m, unsigned code) {
  size_t above;
  helio_status status = find_mark(m, &above);
  if (status) return status;
  return code == TUPLE_CODE ? make_tuple(m, above, above - 1) : append_from(m, above, above - 1);
}

/* An instruction with a number in the `width` bytes behind it. */
static helio_status run_with_number(machine *m, unsigned code, int width) {
  const unsigned char *bytes = take(m, (uint64_t)width);
  if (!bytes) return helio_error_pending();
  uint64_t number = width == 1 ? bytes[0] : width == 2 ? hi_le16(bytes) : width == 4 ? hi_le32(bytes) : hi_le64(bytes);
  switch (code) {
  case BININT:
    return push_integer(m, (int32_t)number);
  case BININT1:
  case BININT2:
    return push_integer(m, (int64_t)number);
  case LONG1:
    return push_long(m, number);
  case BINPUT:
  case LONG_BINPUT:
    return remember(m, number);
  case BINGET:
  case LONG_BINGET:
    return recall(m, number);
  case FRAME:
    return check_frame(m, number);
  case PROTO:
    return fail(m, "the protocol is named twice");
  default:
    return push_text(m, number);
  }
}

static helio_status run_plain(machine *m, unsigned code) {
  switch (code) {
  case MARK_CODE:
    return push(m, (value){.kind = MARK});
  case NONE_CODE:
    return push(m, (value){.kind = NONE});
  case NEWTRUE:
  case NEWFALSE:
    return push(m, (value){.kind = FLAG, .number = code == NEWTRUE});
  case EMPTY_LIST:
    return begin_list(m);
  case APPEND:
    return top(m) ? append_from(m, m->depth - 1, m->depth - 1) : helio_error_pending();
  case APPENDS:
  case TUPLE_CODE:
    return run_marked(m, code);
  case EMPTY_TUPLE:
    return make_short_tuple(m, 0);
  case TUPLE1:
  case TUPLE2:
  case TUPLE3:
    return make_short_tuple(m, code - TUPLE1 + 1);
  case MEMOIZE:
    return remember(m, m->remembered);
  case GLOBAL:
    return read_global(m);
  case STACK_GLOBAL:
    return read_stack_global(m);
  case REDUCE:
    return call(m);
  case BUILD:
    return build(m);
  default:
    return refuse(m, code);
  }
}

/* The pickle begins with its protocol. */
static helio_status begin(machine *m) {
  const unsigned char *bytes = take(m, 2);
  if (!bytes) return helio_error_pending();
  if (bytes[0] == PROTO && bytes[1] >= 2 && bytes[1] <= 5) return HELIO_OK;
  return fail(m, "this is not a pickle of protocol 2, 3, 4 or 5");
}

/* Nothing is left but the array, and it is as it said. */
static helio_status check_result(machine *m, int64_t count) {
  const value *result = pop(m);
  if (!result || result->kind != ARRAY || m->depth || m->extent < 0) return fail(m, "the result is not an array");
  if (m->at != m->file->size) return fail(m, "something follows the end of the pickle");
  if (m->taken == count && m->extent == count && m->begun == count + 1) return HELIO_OK;
  return hi_file_fail(m->file, HELIO_BAD_DATA, m->code,
                      "the array should have %lld lists; it says that it has %lld, and there are %lld",
                      (long long)count, (long long)m->extent, (long long)m->taken);
}

static helio_status run(machine *m, int64_t count) {
  helio_status status = begin(m);
  while (!status) {
    m->code = m->at;
    const unsigned char *code = take(m, 1);
    if (!code) return helio_error_pending();
    if (*code == STOP) return check_result(m, count);
    int width = hi_pickle_code_width(*code);
    status = width ? run_with_number(m, *code, width) : run_plain(m, *code);
  }
  return status;
}

helio_sequences *hi_unpickle(const hi_file *file, size_t offset, int64_t count) {
  machine *m = calloc(1, sizeof *m);
  if (!m) {
    hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for unpickling it", file->name);
    return NULL;
  }
  m->file = file;
  m->at = m->code = offset;
  m->extent = -1;
  helio_sequences *sequences = run(m, count) ? NULL : hi_sequences_finish(&m->lists);
  hi_sequences_abandon(&m->lists);
  free(m);
  return sequences;
}
