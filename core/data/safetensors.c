/* SPDX-License-Identifier: Apache-2.0 */
/* Reading safetensors files. */
#include "data/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "data/json.h"
#include "data/safetensors_format.h"
#include "runtime/printable.h"
#include "tensor/tensor.h"

/* A tensor's description is some 300 bytes at the most, unless there are keys in it that we do not know. */
enum { LARGEST_DESCRIPTION = 4096 };

static const struct {
  const char *name;
  helio_type type;
} types[] = {{"F32", HELIO_FLOAT32}, {"F64", HELIO_FLOAT64}, {"F16", HELIO_FLOAT16}, {"BF16", HELIO_BFLOAT16},
             {"I32", HELIO_INT32},   {"I64", HELIO_INT64},   {"U8", HELIO_UINT8},    {"BOOL", HELIO_BOOL}};

/* Of the format, but not of helio. */
static const char *const foreign_types[] = {"I8",      "I16",     "U16",         "U32",        "U64",
                                            "C64",     "F4",      "F6_E2M3",     "F6_E3M2",    "F8_E4M3",
                                            "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"};

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

struct hi_safetensors {
  char *path;
  int descriptor;
  uint64_t size;
  uint64_t data;            /* where the header ends */
  uint64_t checksum_digits; /* where they are; 0: there are none */
  bool has_metadata;
  int count, pairs;
  hi_safetensors_entry *entries;         /* in the order of their data */
  const hi_safetensors_entry **by_names; /* the same, sorted by name */
  pair *metadata;                        /* sorted by key */
};

const char *hi_safetensors_type_name(helio_type type) {
  int i = 0;
  while (i < COUNT_OF(types) - 1 && types[i].type != type) i++;
  return types[i].name;
}

static helio_status HELIO_PRINTF(4, 5)
    fail_at(const hi_safetensors *file, helio_status status, uint64_t byte, const char *format, ...) {
  char cause[500];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(cause, sizeof cause, format, arguments);
  va_end(arguments);
  hi_make_printable(cause);
  return hi_fail(status, "%s, byte %" PRIu64 ": %s", file->path, byte, cause);
}

static helio_status read_bytes(const hi_safetensors *file, uint64_t offset, void *data, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    uint64_t left = bytes - done;
    ssize_t got = pread(file->descriptor, (char *)data + done, left < INT_MAX ? left : INT_MAX, (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_at(file, HELIO_IO_FAILURE, offset + done, "reading failed: %s", strerror(errno));
    if (got == 0) {
      return fail_at(file, HELIO_IO_FAILURE, offset + done, "the file had %" PRIu64 " bytes and has become shorter",
                     file->size);
    }
    done += (uint64_t)got;
  }
  return HELIO_OK;
}

static helio_status measure(hi_safetensors *file) {
  struct stat about;
  if (fstat(file->descriptor, &about) != 0) {
    return hi_fail(HELIO_IO_FAILURE, "%s cannot be opened: %s", file->path, strerror(errno));
  }
  if (!S_ISREG(about.st_mode)) return hi_fail(HELIO_INVALID_ARGUMENT, "%s is not a regular file", file->path);
  file->size = (uint64_t)about.st_size;
  return HELIO_OK;
}

/* Also notes where the data begin. The caller frees the text. */
static helio_status read_header(hi_safetensors *file, char **text, uint64_t *length) {
  if (file->size < LENGTH_BYTES) {
    return fail_at(
        file, HELIO_BAD_DATA, file->size,
        "this is not a .safetensors file, or it is cut off: it ends inside its first eight bytes, which hold "
        "the length of the header");
  }
  helio_status status = read_bytes(file, 0, length, sizeof *length);
  if (status) return status;
  if (*length == 0 || *length > LARGEST_HEADER || *length > file->size - LENGTH_BYTES) {
    return fail_at(file, HELIO_BAD_DATA, 0,
                   "this is not a .safetensors file, or it is damaged: a header of %" PRIu64
                   " bytes is announced; the file has %" PRIu64 " in all, and no header has more than %d",
                   *length, file->size, LARGEST_HEADER);
  }
  file->data = LENGTH_BYTES + *length;
  *text = malloc(*length);
  return *text ? read_bytes(file, LENGTH_BYTES, *text, *length) : no_memory(file->path);
}

static helio_status fail_json(const hi_safetensors *file, const hi_json_walk *walk) {
  if (walk->no_memory) return no_memory(file->path);
  return fail_at(file, HELIO_BAD_DATA, LENGTH_BYTES + walk->at, "the header is not as it should be: %s", walk->problem);
}

/* The value that begins there and that the walk has just left is that of the checksum. */
static helio_status note_checksum(hi_safetensors *file, const hi_json_walk *walk, uint64_t begin) {
  static const size_t length = sizeof CHECKSUM_ZERO + 1; /* with quotes */
  const char *value = walk->text + (begin - LENGTH_BYTES);
  bool right = LENGTH_BYTES + walk->at - begin == length && memcmp(value, "\"0x", 3) == 0 &&
               strspn(value + 3, "0123456789abcdef") == CHECKSUM_DIGITS; /* the quote ends it */
  if (!right) {
    return fail_at(file, HELIO_BAD_DATA, begin, "the value of %s is not 0x and %d digits (0 to 9, a to f)",
                   CHECKSUM_KEY, CHECKSUM_DIGITS);
  }
  file->checksum_digits = begin + 3;
  return HELIO_OK;
}

static helio_status read_metadata(hi_safetensors *file, hi_json_walk *walk) {
  json_t *key;
  if (file->has_metadata) {
    return fail_at(file, HELIO_BAD_DATA, LENGTH_BYTES + walk->at, "%s stands twice", METADATA_KEY);
  }
  file->has_metadata = true;
  if (!hi_json_enter(walk)) return fail_json(file, walk);
  while ((key = hi_json_key(walk))) {
    uint64_t begin = LENGTH_BYTES + walk->at;
    bool string = walk->at < walk->length && walk->text[walk->at] == '"';
    json_t *value = string ? hi_json_value(walk, walk->length) : NULL;
    bool kept = value && append_pair(&file->metadata, &file->pairs,
                                     (pair){strdup(json_string_value(key)), strdup(json_string_value(value))});
    bool checksum = strcmp(json_string_value(key), CHECKSUM_KEY) == 0;
    json_decref(key);
    json_decref(value);
    if (!string) return fail_at(file, HELIO_BAD_DATA, begin, "a value of %s is not a string", METADATA_KEY);
    if (!value) return fail_json(file, walk);
    if (!kept) return no_memory(file->path);
    helio_status status = checksum ? note_checksum(file, walk, begin) : HELIO_OK;
    if (status) return status;
  }
  return walk->problem[0] ? fail_json(file, walk) : HELIO_OK;
}

/* What is being read of a tensor, for functions that check one part each. `begin` is where it stands in the header. */
typedef struct description {
  const hi_safetensors *file;
  uint64_t begin;
  json_t *value;
  hi_safetensors_entry *entry;
} description;

#define fail_tensor(d, status, format, ...)                                                                            \
  fail_at((d)->file, status, (d)->begin, "tensor \"%.100s\": " format, (d)->entry->name, __VA_ARGS__)

static helio_status check_type(const description *d) {
  const char *name = json_string_value(json_object_get(d->value, "dtype")); /* NULL of NULL and of what is no string */
  if (!name) return fail_tensor(d, HELIO_BAD_DATA, "%s", "dtype is missing or not a string");
  for (int i = 0; i < COUNT_OF(types); i++) {
    if (strcmp(types[i].name, name) != 0) continue;
    d->entry->type = types[i].type;
    return HELIO_OK;
  }
  for (int i = 0; i < COUNT_OF(foreign_types); i++) {
    if (strcmp(foreign_types[i], name) != 0) continue;
    return fail_tensor(d, HELIO_NOT_SUPPORTED, "the dtype %s is not supported", name);
  }
  return fail_tensor(d, HELIO_BAD_DATA, "\"%.100s\" is not a dtype", name);
}

static helio_status check_shape(const description *d) {
  json_t *list = json_object_get(d->value, "shape");
  if (!json_is_array(list)) return fail_tensor(d, HELIO_BAD_DATA, "%s", "shape is missing or not an array");
  if (json_array_size(list) > HELIO_MAX_RANK) {
    return fail_tensor(d, HELIO_NOT_SUPPORTED, "it has %zu axes, of which at most %d are supported",
                       json_array_size(list), HELIO_MAX_RANK);
  }
  d->entry->shape.rank = (int)json_array_size(list);
  for (int i = 0; i < d->entry->shape.rank; i++) {
    json_t *extent = json_array_get(list, (size_t)i);
    d->entry->shape.extent[i] = json_integer_value(extent);
    if (!json_is_integer(extent) || json_integer_value(extent) < 0) {
      return fail_tensor(d, HELIO_BAD_DATA, "extent %d of the shape is not a whole number from 0 on", i);
    }
  }
  return HELIO_OK;
}

static helio_status check_offsets(const description *d) {
  char text[HI_SHAPE_TEXT];
  size_t bytes;
  json_t *list = json_object_get(d->value, "data_offsets");
  json_t *from = json_array_get(list, 0), *to = json_array_get(list, 1); /* NULL of NULL and of what is no array */
  json_int_t begin = json_integer_value(from), end = json_integer_value(to);
  if (json_array_size(list) != 2 || !json_is_integer(from) || !json_is_integer(to) || begin < 0 || end < begin) {
    return fail_tensor(d, HELIO_BAD_DATA, "%s", "data_offsets is not a pair of whole numbers in order");
  }
  if ((uint64_t)end > d->file->size - d->file->data) {
    return fail_tensor(d, HELIO_BAD_DATA, "its data would end at byte %" PRIu64 ", the file ends at byte %" PRIu64,
                       d->file->data + (uint64_t)end, d->file->size);
  }
  d->entry->offset = d->file->data + (uint64_t)begin;
  d->entry->bytes = (uint64_t)(end - begin);
  const char *shape = hi_shape_text(&d->entry->shape, text);
  if (!hi_shape_bytes(&d->entry->shape, d->entry->type, &bytes)) {
    return fail_tensor(d, HELIO_BAD_DATA, "the shape %s has more elements than fit into memory", shape);
  }
  if (bytes != d->entry->bytes) {
    return fail_tensor(d, HELIO_BAD_DATA, "%" PRIu64 " bytes of data for the type %s and the shape %s, which need %zu",
                       d->entry->bytes, helio_type_name(d->entry->type), shape, bytes);
  }
  return HELIO_OK;
}

static helio_status read_tensor(hi_safetensors *file, hi_json_walk *walk, const char *name) {
  hi_safetensors_entry *entry = grown(file->entries, file->count, sizeof *entry);
  if (!entry) return no_memory(file->path);
  file->entries = entry;
  entry += file->count;
  *entry = (hi_safetensors_entry){.name = strdup(name)};
  if (!entry->name) return no_memory(file->path);
  file->count++;
  description d = {.file = file, .begin = LENGTH_BYTES + walk->at, .entry = entry};
  if (walk->at < walk->length && walk->text[walk->at] != '{') {
    return fail_tensor(&d, HELIO_BAD_DATA, "%s", "its description is not an object");
  }
  d.value = hi_json_value(walk, LARGEST_DESCRIPTION);
  if (!d.value) return fail_json(file, walk);
  helio_status status = check_type(&d);
  if (!status) status = check_shape(&d);
  if (!status) status = check_offsets(&d);
  json_decref(d.value);
  return status;
}

static helio_status read_members(hi_safetensors *file, hi_json_walk *walk) {
  if (!hi_json_enter(walk)) return fail_json(file, walk);
  json_t *key;
  while ((key = hi_json_key(walk))) {
    const char *name = json_string_value(key);
    helio_status status = strcmp(name, METADATA_KEY) == 0 ? read_metadata(file, walk) : read_tensor(file, walk, name);
    json_decref(key);
    if (status) return status;
  }
  return walk->problem[0] || !hi_json_end(walk) ? fail_json(file, walk) : HELIO_OK;
}

/* Tensors without data come before the one that begins at the same place. */
static int by_place(const void *left, const void *right) {
  const hi_safetensors_entry *a = left, *b = right;
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
  return strcmp(a->name, b->name);
}

static int by_name(const void *left, const void *right) {
  return strcmp((*(const hi_safetensors_entry *const *)left)->name,
                (*(const hi_safetensors_entry *const *)right)->name);
}

static int by_key(const void *left, const void *right) {
  return strcmp(((const pair *)left)->key, ((const pair *)right)->key);
}

static helio_status sort_names(hi_safetensors *file) {
  file->by_names = malloc(((size_t)file->count + 1) * sizeof *file->by_names);
  if (!file->by_names) return no_memory(file->path);
  for (int i = 0; i < file->count; i++) file->by_names[i] = &file->entries[i];
  qsort(file->by_names, (size_t)file->count, sizeof *file->by_names, by_name);
  for (int i = 1; i < file->count; i++) {
    if (by_name(&file->by_names[i - 1], &file->by_names[i]) != 0) continue;
    return fail_at(file, HELIO_BAD_DATA, file->by_names[i]->offset, "the data of a second tensor \"%.100s\" begin here",
                   file->by_names[i]->name);
  }
  if (file->pairs) qsort(file->metadata, (size_t)file->pairs, sizeof *file->metadata, by_key);
  for (int i = 1; i < file->pairs; i++) {
    if (by_key(&file->metadata[i - 1], &file->metadata[i]) != 0) continue;
    return fail_at(file, HELIO_BAD_DATA, LENGTH_BYTES, "the key \"%.100s\" stands twice in %s", file->metadata[i].key,
                   METADATA_KEY);
  }
  return HELIO_OK;
}

/* Data that belong to nobody could be another file inside this one. */
static helio_status check_places(hi_safetensors *file) {
  uint64_t end = file->data;
  if (file->count) qsort(file->entries, (size_t)file->count, sizeof *file->entries, by_place);
  for (int i = 0; i < file->count; i++) {
    const hi_safetensors_entry *entry = &file->entries[i];
    if (entry->offset != end) {
      return fail_at(file, HELIO_BAD_DATA, entry->offset,
                     "the data of tensor \"%.100s\" begin here instead of at byte %" PRIu64, entry->name, end);
    }
    end += entry->bytes;
  }
  if (end == file->size) return HELIO_OK;
  return fail_at(file, HELIO_BAD_DATA, end, "what lies from here to the end belongs to no tensor");
}

static helio_status load(hi_safetensors *file) {
  char *text = NULL;
  uint64_t length;
  helio_status status = measure(file);
  if (!status) status = read_header(file, &text, &length);
  if (!status) status = read_members(file, &(hi_json_walk){.text = text, .length = length});
  free(text);
  if (!status) status = check_places(file);
  return status ? status : sort_names(file);
}

static hi_safetensors *read_opened(const char *path, int descriptor) {
  hi_safetensors *file = calloc(1, sizeof *file);
  if (file) *file = (hi_safetensors){.path = strdup(path), .descriptor = descriptor};
  if (!file || !file->path) {
    no_memory(path);
    if (!file) close(descriptor);
  } else if (!load(file)) {
    return file;
  }
  hi_safetensors_close(file);
  return NULL;
}

/* Without O_NONBLOCK a pipe would wait for somebody who writes to it. */
hi_safetensors *hi_safetensors_open_if_there(const char *path, bool *there) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  *there = descriptor >= 0 || errno != ENOENT;
  if (descriptor >= 0) return read_opened(path, descriptor);
  hi_fail(HELIO_IO_FAILURE, "%s cannot be opened: %s", path, strerror(errno));
  return NULL;
}

hi_safetensors *hi_safetensors_open(const char *path) {
  bool there;
  if (path) return hi_safetensors_open_if_there(path, &there);
  hi_fail(HELIO_INVALID_ARGUMENT, "path is NULL");
  return NULL;
}

/* Digits that lie among these bytes of the file become zeros. */
static void clear_digits(unsigned char *bytes, uint64_t offset, size_t count, uint64_t digits) {
  for (uint64_t at = digits; at < digits + CHECKSUM_DIGITS; at++) {
    if (at >= offset && at - offset < count) bytes[at - offset] = '0';
  }
}

static helio_status compute_checksum(const hi_safetensors *file, uint32_t *sum) {
  unsigned char *piece = malloc(PIECE);
  helio_status status = piece ? HELIO_OK : hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for checking it", file->path);
  *sum = 0;
  for (uint64_t done = 0; done < file->size && !status;) {
    size_t bytes = file->size - done < PIECE ? (size_t)(file->size - done) : PIECE;
    status = read_bytes(file, done, piece, bytes);
    if (status) break;
    clear_digits(piece, done, bytes, file->checksum_digits);
    *sum = (uint32_t)crc32_z(*sum, piece, bytes);
    done += bytes;
  }
  free(piece);
  return status;
}

static helio_status verify(const hi_safetensors *file) {
  uint32_t sum;
  char text[sizeof CHECKSUM_ZERO];
  helio_status status = compute_checksum(file, &sum);
  if (status) return status;
  snprintf(text, sizeof text, "0x%08" PRIx32, sum);
  const char *promised = hi_safetensors_metadata(file, CHECKSUM_KEY);
  if (strcmp(text, promised) == 0) return HELIO_OK;
  return fail_at(file, HELIO_BAD_DATA, file->checksum_digits,
                 "the file is damaged: its checksum is %s and should be %s (a program that changes the file on purpose "
                 "must leave %s out of %s)",
                 text, promised, CHECKSUM_KEY, METADATA_KEY);
}

bool hi_safetensors_has_checksum(const hi_safetensors *file) {
  return file->checksum_digits;
}

hi_safetensors *hi_safetensors_verified(hi_safetensors *file) {
  if (!file || !hi_safetensors_has_checksum(file) || !verify(file)) return file;
  hi_safetensors_close(file);
  return NULL;
}

hi_safetensors *hi_safetensors_open_verified(const char *path) {
  return hi_safetensors_verified(hi_safetensors_open(path));
}

void hi_safetensors_close(hi_safetensors *file) {
  if (!file) return;
  if (file->descriptor >= 0) close(file->descriptor);
  for (int i = 0; i < file->count; i++) free((char *)(uintptr_t)file->entries[i].name);
  free_pairs(file->metadata, file->pairs);
  free(file->by_names);
  free(file->entries);
  free(file->path);
  free(file);
}

const char *hi_safetensors_path(const hi_safetensors *file) {
  return file->path;
}

int hi_safetensors_count(const hi_safetensors *file) {
  return file->count;
}

const hi_safetensors_entry *hi_safetensors_at(const hi_safetensors *file, int index) {
  return index >= 0 && index < file->count ? &file->entries[index] : NULL;
}

const hi_safetensors_entry *hi_safetensors_find(const hi_safetensors *file, const char *name) {
  const hi_safetensors_entry wanted = {.name = name}, *key = &wanted;
  const hi_safetensors_entry **found =
      bsearch(&key, file->by_names, (size_t)file->count, sizeof *file->by_names, by_name);
  return found ? *found : NULL;
}

const char *hi_safetensors_metadata(const hi_safetensors *file, const char *key) {
  const pair wanted = {.key = (char *)(uintptr_t)key};
  const pair *found = file->pairs ? bsearch(&wanted, file->metadata, (size_t)file->pairs, sizeof wanted, by_key) : NULL;
  return found ? found->value : NULL;
}

helio_status hi_safetensors_read(const hi_safetensors *file, const hi_safetensors_entry *entry, void *data) {
  helio_status status = read_bytes(file, entry->offset, data, entry->bytes);
  if (status || entry->type != HELIO_BOOL) return status;
  const unsigned char *bytes = data;
  for (uint64_t i = 0; i < entry->bytes; i++) {
    if (bytes[i] <= 1) continue;
    return fail_at(file, HELIO_BAD_DATA, entry->offset + i, "%d in tensor \"%.100s\" is not a bool", bytes[i],
                   entry->name);
  }
  return HELIO_OK;
}
