/* SPDX-License-Identifier: Apache-2.0 */
/* Heliostat: data. Included by helio.h; there is no need to include it by itself. Files become arrays in host memory.
 */
#ifndef HELIO_DATA_H
#define HELIO_DATA_H

#include <helio/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------------------------------
 * Arrays: data on the host. Files are mapped where the format allows it, not copied.
 */

typedef struct helio_array helio_array;

/* A copy of host data or, with .borrow, the data themselves, which must then outlive the array. */
typedef struct helio_array_options {
  size_t size;
  const void *data;
  helio_shape shape;
  helio_type type; /* 0: float32 */
  bool borrow;
} helio_array_options;

HELIO_EXPORT helio_array *helio_array_of_with(const helio_array_options *options);
#define helio_array_of(...) HELIO_MAKE(helio_array_of_with, helio_array_options, __VA_ARGS__)

HELIO_EXPORT helio_type helio_array_type(const helio_array *array);
HELIO_EXPORT helio_shape helio_array_shape(const helio_array *array);
HELIO_EXPORT int64_t helio_array_elements(const helio_array *array);
HELIO_EXPORT const void *helio_array_data(const helio_array *array); /* valid as long as the array */

/* The whole array as a tensor on the device; and back. */
HELIO_EXPORT helio_tensor *helio_array_tensor(const helio_array *array);
HELIO_EXPORT helio_array *helio_tensor_array(const helio_tensor *tensor);

/* Without a copy: a part along the first axis (count −1: the rest), and another shape with the same number of elements
 * (one extent may be −1). */
HELIO_EXPORT helio_array *helio_array_part(helio_array *array, int64_t begin, int64_t count);
HELIO_EXPORT helio_array *helio_array_reshape(helio_array *array, helio_shape shape);

/* In another type, as by helio_cast(); with scale or offset, value × scale + offset, computed in double, is cast:
 * helio_array_cast(images, HELIO_FLOAT32, .scale = 1.0 / 255). */
typedef struct helio_array_cast_options {
  size_t size;
  helio_array *array;
  helio_type type;
  double scale; /* 0: 1 */
  double offset;
} helio_array_cast_options;

HELIO_EXPORT helio_array *helio_array_cast_with(const helio_array_cast_options *options);
#define helio_array_cast(...) HELIO_MAKE(helio_array_cast_with, helio_array_cast_options, __VA_ARGS__)

/* 1 at the label, 0 elsewhere; classes 0: the largest label plus one; type 0: float32. A label outside of 0 to
 * classes − 1 is an error (HELIO_BAD_DATA). */
HELIO_EXPORT helio_array *helio_array_one_hot(helio_array *labels, int64_t classes, helio_type type);

/* "(60000, 28, 28, 1)", as Python prints it, to be freed with free(). */
HELIO_EXPORT char *helio_shape_text(helio_shape shape);

/* ---- sequences of integers of unequal length: texts as word numbers ---- */

typedef struct helio_sequences helio_sequences;

HELIO_EXPORT int64_t helio_sequences_count(const helio_sequences *sequences);
HELIO_EXPORT const int32_t *helio_sequences_at(const helio_sequences *sequences, int64_t index, int64_t *length);
HELIO_EXPORT int32_t helio_sequences_largest(const helio_sequences *sequences); /* −1: there is no element */

/* Sequence i is the next `lengths[i]` elements of `values`; copied. */
HELIO_EXPORT helio_sequences *helio_sequences_of(const int32_t *values, const int64_t *lengths, int64_t count);

/* `count` of them from `begin` on, copied; count −1: the rest. */
HELIO_EXPORT helio_sequences *helio_sequences_part(const helio_sequences *sequences, int64_t begin, int64_t count);

/* Keras' pad_sequences: an array (sequences, maxlen), padded and cut at the front unless said otherwise; maxlen 0: the
 * length of the longest. */
typedef struct helio_pad_sequences_options {
  size_t size;
  const helio_sequences *sequences;
  int64_t maxlen;
  bool pad_behind, cut_behind;
  double value;
  helio_type type; /* 0: int32 */
} helio_pad_sequences_options;

HELIO_EXPORT helio_array *helio_pad_sequences_with(const helio_pad_sequences_options *options);
#define helio_pad_sequences(...) HELIO_MAKE(helio_pad_sequences_with, helio_pad_sequences_options, __VA_ARGS__)

/* ---------------------------------------------------------------------------------------------------------------------
 * Files. No file is trusted: what is wrong is an error that names file and place, and memory grows with the data that
 * are really there, never with a number in a header. As in every program that maps files, a file that is truncated
 * while one of its arrays lives ends the process.
 */

HELIO_EXPORT helio_array *helio_read_idx(const char *path); /* plain, or compressed with gzip */
HELIO_EXPORT helio_array *helio_read_npy(const char *path); /* '<V2' is taken for bfloat16, which numpy lacks */

/* A member of an .npz or .safetensors file; and the names of all, NULL after the last, freed together with free(). */
HELIO_EXPORT helio_array *helio_read_npz(const char *path, const char *name);
HELIO_EXPORT helio_array *helio_read_safetensors(const char *path, const char *name);
HELIO_EXPORT char **helio_npz_names(const char *path);
HELIO_EXPORT char **helio_safetensors_names(const char *path);

/* The member of an .npz file that is a pickled array of lists of integers, as in Keras' reuters.npz. */
HELIO_EXPORT helio_sequences *helio_read_npz_sequences(const char *path, const char *name);

/* Columns of a text file with commas, as in RFC 4180; empty lines are skipped. An empty cell is NaN in a column of
 * floats. */
typedef struct helio_csv helio_csv;

typedef struct helio_read_csv_options {
  size_t size;
  const char *path;
  char separator;          /* 0: ',' */
  bool no_header;          /* columns are then called "0", "1", … */
  const helio_type *types; /* of each column; 0, or NULL for all: int64 where all are integers, float32 where all are
                              numbers or empty, else text */
  int type_count;
} helio_read_csv_options;

HELIO_EXPORT helio_csv *helio_read_csv_with(const helio_read_csv_options *options);
#define helio_read_csv(...) HELIO_MAKE(helio_read_csv_with, helio_read_csv_options, __VA_ARGS__)
HELIO_EXPORT int helio_csv_columns(const helio_csv *csv);
HELIO_EXPORT int64_t helio_csv_rows(const helio_csv *csv);
HELIO_EXPORT const char *helio_csv_name(const helio_csv *csv, int column);
HELIO_EXPORT helio_type helio_csv_type(const helio_csv *csv, int column);     /* 0: text */
HELIO_EXPORT helio_array *helio_csv_column(helio_csv *csv, const char *name); /* an error for a column of text */
HELIO_EXPORT helio_array *helio_csv_column_at(helio_csv *csv, int column);    /* likewise */
HELIO_EXPORT const char *helio_csv_text(const helio_csv *csv, int64_t row, int column); /* of any column */

/* ---------------------------------------------------------------------------------------------------------------------
 * Known data sets: Keras' load_data. They are looked for in .folder, HELIO_DATA_DIR, the cache folder and Debian's
 * folder; in each of these first in the subfolder with the set's name (mnist/train-images-idx3-ubyte.gz), then directly
 * (reuters.npz; IDX files only in .folder, because all image sets use the same file names). A .folder that is a file is
 * the set's archive, whatever its name. The command `helio data get NAME` downloads them.
 */

/* Integers where 0 stands for the default: a real zero, Python's None, and all there are. */
#define HELIO_INTEGER_ZERO INT32_MIN
#define HELIO_NONE         (-1)
#define HELIO_ALL          (-1)

typedef struct helio_samples {
  helio_array *x;             /* images (n, 28, 28) uint8; NULL for texts */
  helio_sequences *sequences; /* texts; NULL for images */
  helio_array *y;             /* labels: uint8 for images, int64 for texts, as in Keras */
} helio_samples;

typedef struct helio_load_data_options {
  size_t size;
  const char *name;            /* "mnist", "fashion-mnist", "reuters", "imdb" */
  helio_samples *train, *test; /* written only on success; NULL: not wanted */
  const char *folder;
  /* of reuters and imdb, with Keras' defaults and Keras' meaning */
  int32_t num_words, skip_top; /* known words: from skip_top to num_words − 1; num_words 0: up to the largest */
  int64_t maxlen;              /* only texts shorter than this, counting the start; 0: all */
  double test_split;           /* of reuters; 0: 0.2, HELIO_ZERO: 0 */
  int64_t seed;                /* 0: 113 */
  int32_t start_char, oov_char, index_from; /* 0: 1, 2, 3; HELIO_NONE: none */
} helio_load_data_options;

HELIO_EXPORT helio_status helio_load_data_with(const helio_load_data_options *options);
#define helio_load_data(...) HELIO_MAKE(helio_load_data_with, helio_load_data_options, __VA_ARGS__)

/* Keras' validation_split: the last part of all samples, ⌈count × fraction⌉ of them, is for validation, the rest for
 * training. Both are written only on success; images and labels are not copied. */
HELIO_EXPORT helio_status helio_split_samples(const helio_samples *all, double fraction, helio_samples *training,
                                              helio_samples *validation);

/* The folders that are searched for sets, and the files that would be read of a set: lists with NULL after the last,
 * freed together with free(). `folder` as above, or NULL. HELIO_BAD_DATA: one of the set's files is missing. */
HELIO_EXPORT char **helio_data_folders(const char *folder);
HELIO_EXPORT char **helio_data_files(const char *name, const char *folder);

/* The names of all known sets, as above, and the cache folder, to be freed with free(): "" if the user has no home. */
HELIO_EXPORT char **helio_data_names(void);
HELIO_EXPORT char *helio_data_cache(void);

#ifdef __cplusplus
}
#endif
#endif
