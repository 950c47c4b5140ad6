/* SPDX-License-Identifier: Apache-2.0 */
#include "train/event_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "data/folder.h"
#include "data/json.h"
#include "runtime/clock.h"
#include "runtime/error.h"
#include "train/crc32c.h"
#include "train/output_file.h"

struct hi_event_file {
  hi_output_file output;
};

/* ---- records ---- */

/* How protobuf says what follows a field's number. */
enum { VARINT = 0, FIXED64 = 1, COUNTED = 2, FIXED32 = 5 };

/* Numbers of the fields in event.proto and summary.proto. A scalar is a simple_value, not a tensor with the metadata of
 * the plugin "scalars" as TensorFlow 2 writes it: TensorBoard turns the first into the second wherever it loads events,
 * and the programs of others that read event files know the first (so does TensorBoard's own EventAccumulator.Scalars,
 * which passes the second by). Both are float32: TensorBoard's data server takes no other tensor for a scalar. */
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE_VALUE = 2 };

/* A record grows from its end to its beginning, because every length stands before what it counts. */
typedef struct record {
  unsigned char *room;  /* freed in the end */
  unsigned char *first; /* byte so far */
  unsigned char *end;   /* of the message; the checksum has its place there */
} record;

/* The room is more than all needs but the text. */
enum { ROOM = 100, LENGTH_BYTES = 8, CHECKSUM_BYTES = 4 };

/* False if memory is out. */
static bool begin_record(record *r, size_t text) {
  r->room = malloc(ROOM + text);
  if (!r->room) return false;
  r->first = r->end = r->room + ROOM + text - CHECKSUM_BYTES;
  return true;
}

static void put_bytes(record *r, const void *bytes, size_t count) {
  r->first -= count;
  memcpy(r->first, bytes, count);
}

/* Little-endian. */
static void store(unsigned char *at, uint64_t bits, int bytes) {
  for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(bits >> 8 * i);
}

static void put_fixed(record *r, uint64_t bits, int bytes) {
  r->first -= bytes;
  store(r->first, bits, bytes);
}

/* Seven bits a byte, the lowest first; all but the last byte say that another follows. */
static void put_varint(record *r, uint64_t value) {
  unsigned char bytes[10];
  size_t count = 0;
  for (; value > 127; value >>= 7) bytes[count++] = (unsigned char)(value | 128);
  bytes[count++] = (unsigned char)value;
  put_bytes(r, bytes, count);
}

static void put_field(record *r, int number, int kind) {
  put_varint(r, (uint64_t)(number << 3 | kind));
}

static void put_text(record *r, int number, const char *text, size_t length) {
  put_bytes(r, text, length);
  put_varint(r, length);
  put_field(r, number, COUNTED);
}

/* All so far becomes a message in that field. */
static void enclose(record *r, int number) {
  put_varint(r, (uint64_t)(r->end - r->first));
  put_field(r, number, COUNTED);
}

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static uint32_t bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Protobuf leaves out a field that is 0, but for one of several that could stand there, such as the simple_value. */
static void put_wall_time(record *r, double wall_time) {
  if (bits_of(wall_time) == 0) return;
  put_fixed(r, bits_of(wall_time), 8);
  put_field(r, EVENT_WALL_TIME, FIXED64);
}

static void put_step(record *r, int64_t step) {
  if (step == 0) return;
  put_varint(r, (uint64_t)step);
  put_field(r, EVENT_STEP, VARINT);
}

static void put_scalar(record *r, const char *tag, float value) {
  put_fixed(r, bits_of_float(value), 4);
  put_field(r, VALUE_SIMPLE_VALUE, FIXED32);
  put_text(r, VALUE_TAG, tag, strlen(tag));
  enclose(r, SUMMARY_VALUE);
  enclose(r, EVENT_SUMMARY);
}

/* As TFRecord has it, so that the sum of data that hold sums is as good as of others. */
static uint32_t masked_checksum(const unsigned char *data, size_t bytes) {
  uint32_t sum = hi_crc32c(data, bytes);
  return (sum >> 15 | sum << 17) + 0xA282EAD8;
}

/* The frame around a message: length, checksum of the length, message, checksum of the message. */
static void put_frame(record *r) {
  size_t length = (size_t)(r->end - r->first);
  store(r->end, masked_checksum(r->first, length), CHECKSUM_BYTES);
  r->first -= LENGTH_BYTES + CHECKSUM_BYTES;
  store(r->first, length, LENGTH_BYTES);
  store(r->first + LENGTH_BYTES, masked_checksum(r->first, LENGTH_BYTES), CHECKSUM_BYTES);
}

/* And ends the record. */
static helio_status write_record(hi_event_file *file, record *r) {
  put_frame(r);
  helio_status status = hi_output_file_put(&file->output, r->first, (size_t)(r->end + CHECKSUM_BYTES - r->first));
  free(r->room);
  return status;
}

static helio_status no_memory(const hi_event_file *file) {
  return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for an event", file->output.path);
}

/* ---- the file ---- */

/* Of the machine, fit to be part of a file's name. */
static void read_host_name(char *name, size_t size) {
  if (gethostname(name, size) != 0 || !*name) snprintf(name, size, "localhost");
  name[size - 1] = 0;
  for (char *c = name; *c; c++) {
    if ((unsigned char)*c <= ' ' || *c == '/' || *c == 127) *c = '_';
  }
}

/* A descriptor, negative if errno explains why there is none; a path that is NULL if memory is out. Beside the file of
 * a process with the same number elsewhere, say in another container, this one takes the next name. */
static int make_file(const char *folder, char **path) {
  static atomic_uint number;
  char host[100];
  int descriptor;
  read_host_name(host, sizeof host);
  *path = NULL;
  do {
    free(*path);
    if (asprintf(path, "%s/events.out.tfevents.%010lld.%s.%ld.%u", folder, (long long)time(NULL), host, (long)getpid(),
                 atomic_fetch_add(&number, 1)) < 0) {
      *path = NULL;
      return -1;
    }
    descriptor = open(*path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EEXIST);
  return descriptor;
}

/* The first record, at once, so that a reader knows the file for what it is. */
static helio_status write_version(hi_event_file *file) {
  static const char version[] = "brain.Event:2";
  record r;
  if (!begin_record(&r, sizeof version)) return no_memory(file);
  put_text(&r, EVENT_FILE_VERSION, version, sizeof version - 1);
  put_wall_time(&r, hi_wall_seconds());
  helio_status status = write_record(file, &r);
  return status ? status : hi_output_file_flush(&file->output);
}

static helio_status open_in(hi_event_file *file, const char *folder) {
  char *path;
  int descriptor = make_file(folder, &path);
  if (!path) return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for a file in it", folder);
  helio_status status = hi_output_file_open(&file->output, path, descriptor, true);
  if (status) return status;
  status = write_version(file);
  if (!status) return HELIO_OK;
  unlink(file->output.path);
  hi_output_file_close(&file->output);
  return status;
}

static helio_status make_folder_and_open(hi_event_file *file, const char *folder) {
  int made;
  helio_status status = hi_folder_make(folder, &made);
  if (!status) status = open_in(file, folder);
  if (status) hi_folders_remove_empty(folder, made);
  return status;
}

hi_event_file *hi_event_file_open(const char *folder) {
  if (!folder || !*folder) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the folder for events is %s", folder ? "\"\"" : "NULL");
    return NULL;
  }
  hi_event_file *file = malloc(sizeof *file);
  if (!file) hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for a file in it", folder);
  if (file && !make_folder_and_open(file, folder)) return file;
  free(file);
  return NULL;
}

/* TensorBoard gives up a file at text that is not UTF-8. JSON has the same rule and is asked. */
static helio_status check_tag(const hi_event_file *file, const char *tag) {
  char *quoted = NULL;
  if (!tag || !*tag) return hi_fail(HELIO_INVALID_ARGUMENT, "%s: a scalar has no tag", file->output.path);
  helio_status status = hi_json_quoted(tag, &quoted);
  free(quoted);
  if (!status) return HELIO_OK;
  if (status == HELIO_OUT_OF_MEMORY) return no_memory(file);
  return hi_fail(status, "%s: the tag of a scalar is not UTF-8", file->output.path);
}

helio_status hi_event_file_scalar(hi_event_file *file, const char *tag, int64_t step, double wall_time, double value) {
  record r;
  helio_status status = check_tag(file, tag);
  if (status) return status;
  if (!isfinite(wall_time)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: the wall time of a scalar is not finite", file->output.path);
  }
  if (!begin_record(&r, strlen(tag))) return no_memory(file);
  put_scalar(&r, tag, (float)value);
  put_step(&r, step);
  put_wall_time(&r, wall_time);
  return write_record(file, &r);
}

helio_status hi_event_file_flush(hi_event_file *file) {
  return hi_output_file_flush(&file->output);
}

helio_status hi_event_file_close(hi_event_file *file) {
  if (!file) return HELIO_OK;
  helio_status status = hi_output_file_close(&file->output);
  free(file);
  return status;
}
