/* SPDX-License-Identifier: Apache-2.0 */
/* Where the known sets of data can be had, and how to tell that a file is the right one. Which sets there are, and
 * where they are looked for, only the library knows: helio_data_names(), helio_data_files(). */
#ifndef DATA_SOURCES_H
#define DATA_SOURCES_H

#include <stdint.h>

typedef struct data_file {
  const char *name;
  uint64_t bytes;
  const char *sha256; /* in small letters, of the file as the source has it */

  /* The same data packed in another way: of a file, or of what a file packed with gzip has inside. NULL: none. */
  uint64_t other_bytes;
  const char *other_sha256;
} data_file;

/* All files of a set in one of its forms. */
typedef struct data_source {
  const char *set;
  const char *form;
  const char *url; /* what stands before a file's name */
  const data_file *files;
  int count;
} data_source;

/* The sources of a set, 0 being the one to take; NULL: there are no more. */
const data_source *data_source_of(const char *set, int number);

/* The file of a set that has this name, with or without an ending ".gz"; NULL: none. */
const data_file *data_file_named(const char *set, const char *name);

/* What is behind the last '/'. */
const char *data_base_name(const char *path);

#endif
