/* SPDX-License-Identifier: Apache-2.0 */
/* IDX, the format of MNIST: two zero bytes, the type, the number of axes, each extent in four bytes, then the data. All
 * numbers are big-endian. */
#include <inttypes.h>
#include <string.h>

#include "data/inflate.h"
#include "data/readers.h"
#include "runtime/error.h"

enum { HEADER_LEAST = 4, HEADER_MOST = 4 + 4 * HELIO_MAX_RANK };

static const struct {
  unsigned char code;
  const char *name;
  helio_type type; /* 0: helio has no such type */
} types[] = {
    {0x08, "unsigned byte", HELIO_UINT8}, {0x09, "signed byte", (helio_type)0}, {0x0B, "short", (helio_type)0},
    {0x0C, "int", HELIO_INT32},           {0x0D, "float", HELIO_FLOAT32},       {0x0E, "double", HELIO_FLOAT64},
};

static helio_status read_type(const hi_file *file, helio_type *type) {
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (types[i].code != file->bytes[2]) continue;
    *type = types[i].type;
    if (*type) return HELIO_OK;
    return hi_file_fail(file, HELIO_NOT_SUPPORTED, 2, "the type %s is not supported", types[i].name);
  }
  return hi_file_fail(file, HELIO_BAD_DATA, 2, "0x%02X is not a type", file->bytes[2]);
}

static helio_status read_header(const hi_file *file, hi_layout *layout) {
  if (file->size < HEADER_LEAST || file->bytes[0] || file->bytes[1]) {
    return hi_file_fail(file, HELIO_BAD_DATA, 0,
                        "this is not an IDX file: it does not begin with two zero bytes, "
                        "a type and a number of axes");
  }
  *layout = (hi_layout){.swapped = true};
  helio_status status = read_type(file, &layout->type);
  if (status) return status;
  int rank = file->bytes[3];
  if (rank > HELIO_MAX_RANK) {
    return hi_file_fail(file, HELIO_NOT_SUPPORTED, 3, "%d axes, of which at most %d are supported", rank,
                        HELIO_MAX_RANK);
  }
  layout->shape.rank = rank;
  layout->offset = HEADER_LEAST + 4 * (uint64_t)rank;
  if (file->size < layout->offset) {
    return hi_file_fail(file, HELIO_BAD_DATA, file->size, "the file ends inside its header of %" PRIu64 " bytes",
                        layout->offset);
  }
  for (int i = 0; i < rank; i++) {
    uint32_t extent = hi_be32(file->bytes + HEADER_LEAST + 4 * i);
    layout->shape.extent[i] = extent;
    if (extent <= INT32_MAX) continue;
    return hi_file_fail(file, HELIO_BAD_DATA, HEADER_LEAST + 4 * (uint64_t)i, "extent %d of the shape is negative", i);
  }
  return HELIO_OK;
}

/* Unpacks the header alone to see how much there should be, so that a bomb is not unpacked any further. */
static helio_array *read_packed(hi_file *file) {
  const hi_packed packed = {0, file->size, true};
  hi_layout layout;
  size_t bytes = 0;
  hi_file *begin = hi_inflate(file, &packed, HEADER_MOST, "unpacked");
  if (!begin) return NULL;
  helio_status status = read_header(begin, &layout);
  if (!status) status = hi_layout_bytes(begin, &layout, &bytes);
  if (!status && !hi_can_inflate(file->size, layout.offset + bytes)) {
    status = hi_file_fail(begin, HELIO_BAD_DATA, 0, "%zu bytes of data are promised, which cannot be in %zu", bytes,
                          file->size);
  }
  hi_drop(begin);
  if (status) return NULL;
  hi_file *whole = hi_inflate(file, &packed, layout.offset + bytes, "unpacked");
  if (!whole) return NULL;
  helio_array *array = hi_layout_read(whole, &layout);
  hi_drop(whole);
  return array;
}

helio_array *hi_read_idx(hi_file *file) {
  hi_layout layout;
  if (file->size >= 2 && memcmp(file->bytes, "\x1F\x8B", 2) == 0) return read_packed(file);
  return read_header(file, &layout) ? NULL : hi_layout_read(file, &layout);
}

helio_array *helio_read_idx(const char *path) {
  hi_file *file = hi_enter_unstarted(__func__) ? NULL : hi_file_open(path);
  helio_array *array = file ? hi_read_idx(file) : NULL;
  hi_drop(file);
  return array;
}
