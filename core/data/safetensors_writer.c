/* SPDX-License-Identifier: Apache-2.0 */
/* Writing safetensors files. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data/json.h"
#include "data/replacement.h"
#include "data/safetensors.h"
#include "data/safetensors_format.h"
#include "device/copy.h"
#include "tensor/tensor.h"

/* Where the digits of the checksum stand, whose pair is the first. */
enum { CHECKSUM_PLACE = LENGTH_BYTES + sizeof "{\"" METADATA_KEY "\":{\"" CHECKSUM_KEY "\":\"0x" - 1 };

typedef struct addition {
  char *name; /* quoted */
  helio_type type;
  helio_shape shape;
  uint64_t bytes;
  const void *data; /* NULL: from the source */
  hi_safetensors_source *source;
  void *user;
} addition;

struct hi_safetensors_writer {
  char *path;
  helio_status status; /* of the first thing that went wrong */
  addition *tensors;
  pair *metadata; /* both quoted; the checksum is the first */
  int count, pairs;
};

hi_safetensors_writer *hi_safetensors_begin(const char *path) {
  if (!path || !*path) {
    hi_fail(HELIO_INVALID_ARGUMENT, "path is %s", path ? "empty" : "NULL");
    return NULL;
  }
  hi_safetensors_writer *writer = calloc(1, sizeof *writer);
  if (writer) writer->path = strdup(path);
  if (writer && writer->path &&
      append_pair(&writer->metadata, &writer->pairs,
                  (pair){strdup("\"" CHECKSUM_KEY "\""), strdup("\"" CHECKSUM_ZERO "\"")})) {
    return writer;
  }
  hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for a list of tensors", path);
  hi_safetensors_abandon(writer);
  return NULL;
}

void hi_safetensors_abandon(hi_safetensors_writer *writer) {
  if (!writer) return;
  for (int i = 0; i < writer->count; i++) free(writer->tensors[i].name);
  free_pairs(writer->metadata, writer->pairs);
  free(writer->tensors);
  free(writer->path);
  free(writer);
}

/* NULL with the error set. */
static char *quoted(const hi_safetensors_writer *writer, const char *text, const char *what) {
  char *copy = NULL;
  helio_status status = text ? hi_json_quoted(text, &copy) : HELIO_INVALID_ARGUMENT;
  if (status == HELIO_OUT_OF_MEMORY) no_memory(writer->path);
  if (status) hi_fail(status, "%s: %s is %s", writer->path, what, text ? "not UTF-8" : "NULL");
  return copy;
}

static helio_status add(hi_safetensors_writer *writer, const char *name, addition added) {
  size_t bytes;
  if (name && strcmp(name, METADATA_KEY) == 0) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: no tensor can have the name %s", writer->path, name);
  }
  if (!hi_type_valid(added.type) || !hi_shape_bytes(&added.shape, added.type, &bytes)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: a tensor has no valid type or shape", writer->path);
  }
  if (!added.data && !added.source && bytes) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: a tensor's data are NULL", writer->path);
  }
  added.bytes = bytes;
  added.name = quoted(writer, name, "the name of a tensor");
  if (!added.name) return helio_error_pending();
  addition *larger = grown(writer->tensors, writer->count, sizeof added);
  if (!larger) {
    free(added.name);
    return no_memory(writer->path);
  }
  writer->tensors = larger;
  larger[writer->count++] = added;
  return HELIO_OK;
}

/* A writer that refused something must not make a file that looks complete. */
static helio_status note(hi_safetensors_writer *writer, helio_status status) {
  if (!writer->status) writer->status = status;
  return status;
}

helio_status hi_safetensors_add(hi_safetensors_writer *writer, const char *name, helio_type type,
                                const helio_shape *shape, const void *data) {
  return note(writer, add(writer, name, (addition){.type = type, .shape = *shape, .data = data}));
}

helio_status hi_safetensors_add_source(hi_safetensors_writer *writer, const char *name, helio_type type,
                                       const helio_shape *shape, hi_safetensors_source *source, void *user) {
  return note(writer, add(writer, name, (addition){.type = type, .shape = *shape, .source = source, .user = user}));
}

static helio_status read_from_device(void *user, uint64_t offset, void *buffer, size_t bytes) {
  const helio_tensor *tensor = user;
  helio_place place = hi_tensor_place(tensor);
  place.offset += offset;
  return hi_copy_out(tensor->device, buffer, place, bytes);
}

helio_status hi_safetensors_add_tensor(hi_safetensors_writer *writer, const char *name, helio_tensor *tensor) {
  return hi_safetensors_add_source(writer, name, tensor->type, &tensor->shape, read_from_device, tensor);
}

helio_status hi_safetensors_add_metadata(hi_safetensors_writer *writer, const char *key, const char *value) {
  pair added = {quoted(writer, key, "a key of the metadata"), quoted(writer, value, "a value of the metadata")};
  if (append_pair(&writer->metadata, &writer->pairs, added)) return HELIO_OK;
  no_memory(writer->path); /* unless the error is set */
  return note(writer, helio_error_pending());
}

static int by_quoted_name(const void *left, const void *right) {
  return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Sorts the names. */
static helio_status refuse_duplicates(const hi_safetensors_writer *writer, const char **names, int count) {
  qsort(names, (size_t)count, sizeof *names, by_quoted_name);
  for (int i = 1; i < count; i++) {
    if (strcmp(names[i - 1], names[i]) != 0) continue;
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: %.200s was added twice", writer->path, names[i]);
  }
  return HELIO_OK;
}

static helio_status check_names(const hi_safetensors_writer *writer) {
  int most = writer->count > writer->pairs ? writer->count : writer->pairs;
  const char **names = malloc(((size_t)most + 1) * sizeof *names);
  if (!names) return no_memory(writer->path);
  for (int i = 0; i < writer->count; i++) names[i] = writer->tensors[i].name;
  helio_status status = refuse_duplicates(writer, names, writer->count);
  for (int i = 0; i < writer->pairs; i++) names[i] = writer->metadata[i].key;
  if (!status) status = refuse_duplicates(writer, names, writer->pairs);
  free(names);
  return status;
}

/* Elements of eight bytes first, then those of four, two and one; among themselves as they were added. */
static void sort_by_alignment(hi_safetensors_writer *writer, const addition **order) {
  int placed = 0;
  for (size_t bytes = 8; bytes > 0; bytes /= 2) {
    for (int i = 0; i < writer->count; i++) {
      if (helio_type_bytes(writer->tensors[i].type) == bytes) order[placed++] = &writer->tensors[i];
    }
  }
}

static void print_header(FILE *text, const hi_safetensors_writer *writer, const addition *const *order) {
  uint64_t offset = 0;
  fprintf(text, "{\"%s\":{", METADATA_KEY);
  for (int i = 0; i < writer->pairs; i++) {
    fprintf(text, "%s%s:%s", i ? "," : "", writer->metadata[i].key, writer->metadata[i].value);
  }
  fputs("}", text);
  for (int i = 0; i < writer->count; i++) {
    fprintf(text, ",%s:{\"dtype\":\"%s\",\"shape\":[", order[i]->name, hi_safetensors_type_name(order[i]->type));
    for (int axis = 0; axis < order[i]->shape.rank; axis++) {
      fprintf(text, "%s%" PRId64, axis ? "," : "", order[i]->shape.extent[axis]);
    }
    fprintf(text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", offset, offset + order[i]->bytes);
    offset += order[i]->bytes;
  }
  fputs("}", text);
}

/* The header with its length before it, in `bytes` bytes, which the caller frees. */
static helio_status make_header(const hi_safetensors_writer *writer, const addition *const *order, char **header,
                                size_t *bytes) {
  uint64_t length = 0;
  FILE *text = open_memstream(header, bytes);
  if (!text) return no_memory(writer->path);
  fwrite(&length, sizeof length, 1, text); /* the place of it */
  print_header(text, writer, order);
  while (fflush(text) == 0 && *bytes % 8) fputc(' ', text);
  bool failed = ferror(text);
  if (fclose(text) != 0 || failed || !*header) return no_memory(writer->path);
  length = *bytes - LENGTH_BYTES;
  memcpy(*header, &length, sizeof length);
  if (length <= LARGEST_HEADER) return HELIO_OK;
  return hi_fail(HELIO_NOT_SUPPORTED, "%s: the header would have %" PRIu64 " bytes, more than %d", writer->path, length,
                 LARGEST_HEADER);
}

typedef struct output {
  hi_replacement file;
  uint64_t written;
  uint32_t checksum; /* of what was written */
  void *piece;       /* of a tensor that comes from a source */
} output;

static helio_status write_bytes(output *out, const void *data, uint64_t bytes) {
  helio_status status = hi_replacement_write(&out->file, out->written, data, bytes);
  out->written += bytes;
  out->checksum = (uint32_t)crc32_z(out->checksum, data, bytes);
  return status;
}

static helio_status write_checksum(output *out) {
  char digits[CHECKSUM_DIGITS + 1];
  snprintf(digits, sizeof digits, "%08" PRIx32, out->checksum);
  return hi_replacement_write(&out->file, CHECKSUM_PLACE, digits, CHECKSUM_DIGITS);
}

static helio_status write_tensor(output *out, const addition *tensor) {
  helio_status status = HELIO_OK;
  if (tensor->data) return write_bytes(out, tensor->data, tensor->bytes);
  for (uint64_t done = 0; done < tensor->bytes && !status;) {
    size_t bytes = tensor->bytes - done < PIECE ? (size_t)(tensor->bytes - done) : PIECE;
    status = tensor->source(tensor->user, done, out->piece, bytes);
    /* Only if the source did not set an error itself. */
    if (status) return hi_fail(status, "%s: tensor %.200s could not be read", out->file.path, tensor->name);
    status = write_bytes(out, out->piece, bytes);
    done += bytes;
  }
  return status;
}

static helio_status write_file(const hi_safetensors_writer *writer, const addition *const *order, const char *header,
                               size_t header_bytes) {
  output out = {.piece = malloc(PIECE)};
  if (!out.piece) return no_memory(writer->path);
  helio_status status = hi_replacement_begin(&out.file, writer->path);
  if (!status) status = write_bytes(&out, header, header_bytes);
  for (int i = 0; i < writer->count && !status; i++) status = write_tensor(&out, order[i]);
  if (!status) status = write_checksum(&out);
  if (!status) status = hi_replacement_finish(&out.file);
  if (out.file.problem[0]) status = hi_fail(status, "%s", out.file.problem);
  hi_replacement_end(&out.file);
  free(out.piece);
  return status;
}

helio_status hi_safetensors_finish(hi_safetensors_writer *writer) {
  char *header = NULL;
  size_t bytes = 0;
  const addition **order = malloc(((size_t)writer->count + 1) * sizeof *order);
  helio_status status = writer->status;
  if (!status && !order) status = no_memory(writer->path);
  if (!status) status = check_names(writer);
  if (!status) {
    sort_by_alignment(writer, order);
    status = make_header(writer, order, &header, &bytes);
  }
  if (!status) status = write_file(writer, order, header, bytes);
  free(header);
  free(order);
  hi_safetensors_abandon(writer);
  return status;
}
