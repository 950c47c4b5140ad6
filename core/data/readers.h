/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of files that are open. Each takes the file for hostile: NULL with an error that names file and byte. */
#ifndef HI_READERS_H
#define HI_READERS_H

#include "data/file.h"
#include "data/layout.h"

helio_array *hi_read_idx(hi_file *file); /* plain, or compressed with gzip */
helio_array *hi_read_npy(hi_file *file);
helio_array *hi_read_npz(hi_file *file, const char *name);
helio_sequences *hi_read_npz_sequences(hi_file *file, const char *name);
char **hi_npz_names(hi_file *file);
helio_csv *hi_read_csv(hi_file *file, const helio_read_csv_options *options);

/* What the header of an .npy file says. */
typedef struct hi_npy {
  hi_layout layout; /* with the place of the data; the type is 0 where they are Python's objects */
  bool objects;
} hi_npy;

helio_status hi_npy_header(const hi_file *file, hi_npy *npy);

/* Texts behind each other in one piece of memory that free() frees, NULL behind the last. NULL with the error set. */
char **hi_list_of(const char *const *texts, int count);

#endif
