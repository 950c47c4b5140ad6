/* SPDX-License-Identifier: Apache-2.0 */
/* Files of named tensors in the safetensors format: eight bytes with the length of a JSON header (little-endian, as all
 * that follows), the header, then the tensors' data without gaps. Files are taken for hostile until they are checked.
 */
#ifndef HI_SAFETENSORS_H
#define HI_SAFETENSORS_H

#include <helio/helio.h>
#include <stdbool.h>

/* The key of the metadata that only checkpoints have, files with the state of a training. */
#define HI_SAFETENSORS_TRAINING "helio_training"

/* A file that is open for reading and whose header holds what it promises. Threads may share it. */
typedef struct hi_safetensors hi_safetensors;

typedef struct hi_safetensors_entry {
  const char *name; /* UTF-8 */
  helio_type type;
  helio_shape shape;
  uint64_t offset; /* of the data, from the beginning of the file */
  uint64_t bytes;
} hi_safetensors_entry;

/* Opens a file and checks all of its header; the data are not read. NULL with the error set, which names the file, the
 * byte and the cause: HELIO_IO_FAILURE if the system refuses, HELIO_NOT_SUPPORTED for a type or rank that helio does
 * not have, HELIO_BAD_DATA for all else that is wrong with the file. */
hi_safetensors *hi_safetensors_open(const char *path);
/* The same, and says whether there was a file, for those who must tell one that is gone from one that is damaged. */
hi_safetensors *hi_safetensors_open_if_there(const char *path, bool *there);
void hi_safetensors_close(hi_safetensors *file); /* NULL is fine */

/* A file that has a checksum, as all have that helio writes, is read once from its beginning to its end, 1 MiB at a
 * time. If a byte of it is not as it was written it is closed: NULL, HELIO_BAD_DATA. One without is taken as it is;
 * NULL stays NULL. */
hi_safetensors *hi_safetensors_verified(hi_safetensors *file);
hi_safetensors *hi_safetensors_open_verified(const char *path); /* both */
bool hi_safetensors_has_checksum(const hi_safetensors *file);

const char *hi_safetensors_path(const hi_safetensors *file); /* as it was given */

/* Tensors in the order of their data. Entries, names and values live until the file is closed, as its path does. */
int hi_safetensors_count(const hi_safetensors *file);
const hi_safetensors_entry *hi_safetensors_at(const hi_safetensors *file, int index);

/* NULL, without an error, if there is none of that name. */
const hi_safetensors_entry *hi_safetensors_find(const hi_safetensors *file, const char *name);
const char *hi_safetensors_metadata(const hi_safetensors *file, const char *key);

/* Copies all data of one of the file's own entries to host memory. A byte of a bool other than 0 and 1 is an error:
 * each kernel would make something else of it. */
helio_status hi_safetensors_read(const hi_safetensors *file, const hi_safetensors_entry *entry, void *data);

/* A file that is to be written. Nothing is on disk before hi_safetensors_finish(). */
typedef struct hi_safetensors_writer hi_safetensors_writer;

/* Fills `buffer` with a tensor's bytes from `offset` on. Called in the order of the offsets, for at most 1 MiB at a
 * time and for nothing outside the tensor. A failure ends the writing; its status is passed on. */
typedef helio_status hi_safetensors_source(void *user, uint64_t offset, void *buffer, size_t bytes);

hi_safetensors_writer *hi_safetensors_begin(const char *path); /* NULL with the error set */

/* Each copies what it is given but `data` and `user`, which must live until the writer is finished or abandoned. A
 * writer that refused something will not finish. */
helio_status hi_safetensors_add(hi_safetensors_writer *writer, const char *name, helio_type type,
                                const helio_shape *shape, const void *data);
helio_status hi_safetensors_add_source(hi_safetensors_writer *writer, const char *name, helio_type type,
                                       const helio_shape *shape, hi_safetensors_source *source, void *user);
helio_status hi_safetensors_add_tensor(hi_safetensors_writer *writer, const char *name, helio_tensor *tensor);
helio_status hi_safetensors_add_metadata(hi_safetensors_writer *writer, const char *key, const char *value);

/* Writes the file and frees the writer. The data lie in the order of addition, those of wide elements first, so that
 * all are aligned for readers that map the file. The metadata have a checksum ("helio_crc32"). The file takes the place
 * of one of that name as data/replacement.h says: after an error that one is as it was, and the error names the file
 * and the cause. */
helio_status hi_safetensors_finish(hi_safetensors_writer *writer);

/* Frees the writer and writes nothing. NULL is fine. */
void hi_safetensors_abandon(hi_safetensors_writer *writer);

#endif
