/* SPDX-License-Identifier: Apache-2.0 */
/* numpy's .npy: a mark, a version, the length of a header, the header, which is a dict as Python would print it, then
 * the data. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/readers.h"
#include "runtime/error.h"

static const char mark[] = "\x93NUMPY";
enum { MARK = 6, VERSION = 2 };

/* numpy has no bfloat16; that of ml_dtypes (JAX, TensorFlow) is written as two bytes without meaning. */
static const struct {
  const char *code;
  helio_type type;
} types[] = {{"f4", HELIO_FLOAT32}, {"f8", HELIO_FLOAT64}, {"f2", HELIO_FLOAT16}, {"V2", HELIO_BFLOAT16},
             {"i4", HELIO_INT32},   {"i8", HELIO_INT64},   {"u1", HELIO_UINT8},   {"b1", HELIO_BOOL}};

/* ---- the words of the dict ---- */

typedef struct words {
  const hi_file *file;
  const char *text; /* of the whole file */
  size_t at, end;
} words;

static helio_status fail(const words *w, const char *expected) {
  return hi_file_fail(w->file, HELIO_BAD_DATA, w->at, "the header is not as it should be: %s is expected here",
                      expected);
}

static void skip_space(words *w) {
  while (w->at < w->end && (w->text[w->at] == ' ' || w->text[w->at] == '\n')) w->at++;
}

static bool take(words *w, const char *word) {
  size_t length = strlen(word);
  skip_space(w);
  if (w->end - w->at < length || memcmp(w->text + w->at, word, length) != 0) return false;
  w->at += length;
  return true;
}

/* A string in quotes of either kind, without escapes. */
static bool take_string(words *w, const char **string, size_t *length) {
  skip_space(w);
  if (w->at == w->end || (w->text[w->at] != '\'' && w->text[w->at] != '"')) return false;
  const char *begin = w->text + w->at + 1, *end = memchr(begin, begin[-1], w->end - w->at - 1);
  if (!end || memchr(begin, '\\', (size_t)(end - begin))) return false;
  *string = begin;
  *length = (size_t)(end - begin);
  w->at += *length + 2;
  return true;
}

/* Digits; Python 2 put an L behind some. */
static bool take_number(words *w, int64_t *number) {
  int64_t value = 0;
  skip_space(w);
  size_t begin = w->at;
  for (; w->at < w->end && w->text[w->at] >= '0' && w->text[w->at] <= '9'; w->at++) {
    if (value > (INT64_MAX - 9) / 10) return false;
    value = value * 10 + (w->text[w->at] - '0');
  }
  if (w->at == begin) return false;
  if (w->at < w->end && w->text[w->at] == 'L') w->at++;
  *number = value;
  return true;
}

/* ---- the values of the dict ---- */

static helio_status refuse_type(const words *w, size_t at, const char *descr, size_t length) {
  char list[200] = "";
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    size_t end = strlen(list);
    snprintf(list + end, sizeof list - end, "%s%s", i ? ", " : "", helio_type_name(types[i].type));
  }
  return hi_file_fail(w->file, HELIO_NOT_SUPPORTED, at,
                      "the type '%.*s' is not supported; there are %s: convert the array before it is saved, as with "
                      ".astype('int32')",
                      length < 40 ? (int)length : 40, descr, list);
}

static helio_status read_descr(words *w, hi_npy *npy) {
  const char *descr;
  size_t length, begin = (skip_space(w), w->at);
  if (w->at < w->end && w->text[w->at] == '[') {
    return hi_file_fail(w->file, HELIO_NOT_SUPPORTED, begin, "elements that are records are not supported");
  }
  if (!take_string(w, &descr, &length) || length < 2) return fail(w, "a type such as '<f4'");
  npy->layout.swapped = descr[0] == '>';
  npy->objects = length == 2 && memcmp(descr, "|O", 2) == 0;
  if (npy->objects) return HELIO_OK;
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    bool any_order = helio_type_bytes(types[i].type) == 1 || types[i].type == HELIO_BFLOAT16;
    bool known_order = descr[0] == '<' || descr[0] == '>' || (descr[0] == '|' && any_order);
    if (!known_order || length != 3 || memcmp(descr + 1, types[i].code, 2) != 0) continue;
    npy->layout.type = types[i].type;
    return HELIO_OK;
  }
  return refuse_type(w, begin, descr, length);
}

static helio_status read_order(words *w, hi_npy *npy) {
  npy->layout.fortran = take(w, "True");
  return npy->layout.fortran || take(w, "False") ? HELIO_OK : fail(w, "True or False");
}

/* "()", "(3,)", "(2, 3)", with a comma behind the last or not. */
static helio_status read_shape(words *w, hi_npy *npy) {
  helio_shape *shape = &npy->layout.shape;
  if (!take(w, "(")) return fail(w, "a shape in round brackets");
  while (!take(w, ")")) {
    int64_t extent;
    size_t begin = w->at;
    if (!take_number(w, &extent)) return fail(w, "an extent from 0 on, and not too large,");
    if (shape->rank == HELIO_MAX_RANK) {
      return hi_file_fail(w->file, HELIO_NOT_SUPPORTED, begin, "more than %d axes are not supported", HELIO_MAX_RANK);
    }
    shape->extent[shape->rank++] = extent;
    if (take(w, ",")) continue;
    if (shape->rank == 1 || !take(w, ")")) return fail(w, "a comma");
    break;
  }
  return HELIO_OK;
}

static const struct {
  const char *name;
  helio_status (*read)(words *w, hi_npy *npy);
} keys[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};
enum { KEYS = 3 };

static helio_status read_entry(words *w, hi_npy *npy, unsigned *seen) {
  const char *name;
  size_t length;
  words begin = *w;
  if (!take_string(w, &name, &length)) return fail(w, "a key in quotes");
  for (int i = 0; i < KEYS; i++) {
    if (strlen(keys[i].name) != length || memcmp(keys[i].name, name, length) != 0 || *seen >> i & 1) continue;
    *seen |= 1u << i;
    return take(w, ":") ? keys[i].read(w, npy) : fail(w, "a colon");
  }
  return fail(&begin, "'descr', 'fortran_order' or 'shape', each once,");
}

static helio_status read_dict(words *w, hi_npy *npy) {
  unsigned seen = 0;
  if (!take(w, "{")) return fail(w, "'{'");
  while (!take(w, "}")) {
    helio_status status = read_entry(w, npy, &seen);
    if (status) return status;
    if (take(w, ",")) continue;
    if (!take(w, "}")) return fail(w, "a comma");
    break;
  }
  if (seen != (1u << KEYS) - 1) return fail(w, "what is missing of 'descr', 'fortran_order' and 'shape'");
  skip_space(w);
  return w->at == w->end ? HELIO_OK : fail(w, "nothing but blanks");
}

/* ---- the file ---- */

helio_status hi_npy_header(const hi_file *file, hi_npy *npy) {
  *npy = (hi_npy){.objects = false};
  if (file->size < MARK + VERSION || memcmp(file->bytes, mark, MARK) != 0) {
    return hi_file_fail(file, HELIO_BAD_DATA, 0, "this is not an .npy file: it does not begin with \\x93NUMPY");
  }
  int major = file->bytes[MARK], minor = file->bytes[MARK + 1];
  if (major < 1 || major > 3 || minor != 0) {
    return hi_file_fail(file, HELIO_NOT_SUPPORTED, MARK, "version %d.%d of the format is not supported", major, minor);
  }
  size_t begin = MARK + VERSION + (major == 1 ? 2 : 4);
  uint64_t length = 0;
  if (file->size >= begin) length = (major == 1 ? hi_le16 : hi_le32)(file->bytes + MARK + VERSION);
  if (!hi_file_has(file, begin, length)) {
    return hi_file_fail(file, HELIO_BAD_DATA, file->size, "the file ends inside its header");
  }
  words w = {file, (const char *)file->bytes, begin, begin + length};
  npy->layout.offset = begin + length;
  return read_dict(&w, npy);
}

helio_array *hi_read_npy(hi_file *file) {
  hi_npy npy;
  if (hi_npy_header(file, &npy)) return NULL;
  if (!npy.objects) return hi_layout_read(file, &npy.layout);
  hi_file_fail(file, HELIO_NOT_SUPPORTED, npy.layout.offset,
               "the elements are Python's objects, such as lists of unequal length, and not numbers: bring them to one "
               "length before they are saved (a program reads lists of integers by helio_read_npz_sequences())");
  return NULL;
}

helio_array *helio_read_npy(const char *path) {
  hi_file *file = hi_enter_unstarted(__func__) ? NULL : hi_file_open(path);
  helio_array *array = file ? hi_read_npy(file) : NULL;
  hi_drop(file);
  return array;
}
