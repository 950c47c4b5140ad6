/* SPDX-License-Identifier: Apache-2.0 */
#include "data/layout.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/error.h"

helio_status hi_layout_bytes(const hi_file *file, const hi_layout *layout, size_t *bytes) {
  char text[HI_SHAPE_TEXT];
  if (hi_shape_bytes(&layout->shape, layout->type, bytes)) return HELIO_OK;
  return hi_file_fail(file, HELIO_BAD_DATA, 0, "the shape %s is negative or has more elements than fit into memory",
                      hi_shape_text(&layout->shape, text));
}

static helio_status check_extent(const hi_file *file, const hi_layout *layout, size_t *bytes) {
  char text[HI_SHAPE_TEXT];
  helio_status status = hi_layout_bytes(file, layout, bytes);
  if (status) return status;
  if (!hi_file_has(file, layout->offset, *bytes)) {
    return hi_file_fail(file, HELIO_BAD_DATA, file->size,
                        "the file ends here; the data of type %s and shape %s need %zu bytes from byte %" PRIu64 " on",
                        helio_type_name(layout->type), hi_shape_text(&layout->shape, text), *bytes, layout->offset);
  }
  if (layout->followed || layout->offset + *bytes == file->size) return HELIO_OK;
  return hi_file_fail(file, HELIO_BAD_DATA, layout->offset + *bytes,
                      "the data of type %s and shape %s end here, but %" PRIu64 " bytes follow",
                      helio_type_name(layout->type), hi_shape_text(&layout->shape, text),
                      file->size - layout->offset - *bytes);
}

/* `count` elements that lie `stride` elements apart, packed. */
static void gather(char *to, const unsigned char *from, size_t stride, size_t count, size_t width) {
  for (size_t i = 0; i < count && width == 1; i++) memcpy(to + i, from + i * stride, 1);
  for (size_t i = 0; i < count && width == 2; i++) memcpy(to + i * 2, from + i * stride * 2, 2);
  for (size_t i = 0; i < count && width == 4; i++) memcpy(to + i * 4, from + i * stride * 4, 4);
  for (size_t i = 0; i < count && width == 8; i++) memcpy(to + i * 8, from + i * stride * 8, 8);
}

/* Row after row of the result, of a shape that has elements and at least two axes. */
static void copy_fortran(char *to, const unsigned char *from, const helio_shape *shape, size_t width) {
  int last = shape->rank - 1;
  size_t strides[HELIO_MAX_RANK] = {1}, rows = 1, at = 0;
  int64_t place[HELIO_MAX_RANK] = {0};
  for (int i = 1; i <= last; i++) {
    strides[i] = strides[i - 1] * (size_t)shape->extent[i - 1];
    rows *= (size_t)shape->extent[i - 1];
  }
  size_t count = (size_t)shape->extent[last];
  for (size_t row = 0; row < rows; row++) {
    gather(to + row * count * width, from + at * width, strides[last], count, width);
    for (int i = last - 1; i >= 0; i--) {
      at += strides[i];
      if (++place[i] < shape->extent[i]) break;
      at -= strides[i] * (size_t)shape->extent[i];
      place[i] = 0;
    }
  }
}

static void swap_bytes(char *data, size_t elements, size_t width) {
  for (size_t i = 0; i < elements; i++, data += width) {
    for (size_t j = 0; j < width / 2; j++) {
      char byte = data[j];
      data[j] = data[width - 1 - j];
      data[width - 1 - j] = byte;
    }
  }
}

static helio_array *convert(const hi_layout *layout, const unsigned char *source, bool fortran) {
  size_t width = helio_type_bytes(layout->type);
  void *data;
  helio_array *array = hi_array_new(layout->type, &layout->shape, &data);
  if (!array || array->elements == 0) return array;
  if (fortran) {
    copy_fortran(data, source, &layout->shape, width);
  } else {
    memcpy(data, source, hi_array_bytes(array));
  }
  if (layout->swapped) swap_bytes(data, (size_t)array->elements, width);
  return array;
}

static helio_status check_bools(const hi_file *file, const hi_layout *layout, size_t bytes) {
  const unsigned char *data = file->bytes + layout->offset;
  for (size_t i = 0; i < bytes && layout->type == HELIO_BOOL; i++) {
    if (data[i] <= 1) continue;
    return hi_file_fail(file, HELIO_BAD_DATA, layout->offset + i, "%d is not a bool", data[i]);
  }
  return HELIO_OK;
}

helio_array *hi_layout_read(hi_file *file, const hi_layout *layout) {
  size_t bytes, width = helio_type_bytes(layout->type);
  if (check_extent(file, layout, &bytes) || check_bools(file, layout, bytes)) return NULL;
  const unsigned char *data = file->bytes + layout->offset;
  bool fortran = layout->fortran && layout->shape.rank > 1;
  bool ready = !fortran && (!layout->swapped || width == 1) && (uintptr_t)data % width == 0;
  return ready ? hi_array_over(file, data, layout->type, &layout->shape) : convert(layout, data, fortran);
}
