/* SPDX-License-Identifier: Apache-2.0 */
/* Heliostat: datasets. Included by helio.h; there is no need to include it by itself. A dataset says how elements are
 * made, an iterator makes them; nothing is read before. Transforms act in the order written, as in tf.data.
 */
#ifndef HELIO_DATASETS_H
#define HELIO_DATASETS_H

#include <helio/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct helio_dataset helio_dataset;

/* An element is a tuple: features, labels and, optionally, sample weights; or whatever a model takes. */
#define HELIO_MAX_PARTS 8

typedef struct helio_element {
  int count;
  helio_tensor *part[HELIO_MAX_PARTS];
} helio_element;

#define HELIO_ARRAY_LIST(...)                                                                                          \
  (helio_array *const[]){__VA_ARGS__}, (int)(sizeof((helio_array *[]){__VA_ARGS__}) / sizeof(helio_array *))

/* ---- sources ---- */

/* Cuts arrays with the same number of rows along the first axis: element i is row i of each. Or one element with whole
 * arrays. C++ calls these functions instead of the macros. */
HELIO_EXPORT helio_dataset *helio_dataset_of_slices(helio_array *const *arrays, int count);
HELIO_EXPORT helio_dataset *helio_dataset_of_tensors(helio_array *const *arrays, int count);
#define helio_dataset_from_slices(...)  helio_dataset_of_slices(HELIO_ARRAY_LIST(__VA_ARGS__))
#define helio_dataset_from_tensors(...) helio_dataset_of_tensors(HELIO_ARRAY_LIST(__VA_ARGS__))

/* Element i is sequence i (int32, of its own length) and, with labels, row i of those. For helio_dataset_padded_batch.
 */
HELIO_EXPORT helio_dataset *helio_dataset_from_sequences(helio_sequences *sequences, helio_array *labels);

/* Slices of the arrays in files, mapped where the format allows it: an IDX or .npy file, or a member after a colon,
 * "digits.npz:x_train", "points.safetensors:x", "table.csv:price". */
HELIO_EXPORT helio_dataset *helio_dataset_of_files(const char *const *paths, int count);
#define helio_dataset_from_files(...)                                                                                  \
  helio_dataset_of_files((const char *const[]){__VA_ARGS__},                                                           \
                         (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)))

/* 0, 1, … count − 1 as int64 scalars. */
HELIO_EXPORT helio_dataset *helio_dataset_range(int64_t count);

/* Elements made by a function: an iterator calls start (may be NULL), then next until it gives no element, then stop
 * (may be NULL), on one thread at a time. next writes the parts as arrays and returns HELIO_OK; count 0 means the end.
 * An error that it leaves pending, or another status that it returns, ends the iteration. */
typedef struct helio_generated {
  int count;
  helio_array *part[HELIO_MAX_PARTS];
} helio_generated;

typedef struct helio_dataset_from_generator_options {
  size_t size;
  helio_status (*next)(void *state, helio_generated *element);
  helio_status (*start)(void *argument, void **state); /* NULL: the argument is the state */
  void (*stop)(void *state);
  void *argument;
  int64_t count; /* of elements; 0: unknown */
} helio_dataset_from_generator_options;

HELIO_EXPORT helio_dataset *helio_dataset_from_generator_with(const helio_dataset_from_generator_options *options);
#define helio_dataset_from_generator(...)                                                                              \
  HELIO_MAKE(helio_dataset_from_generator_with, helio_dataset_from_generator_options, __VA_ARGS__)

/* ---- transforms ---- */

/* The function gets an element and writes another (or the same, changed) with operations; it may be called from several
 * threads at once. .parallel: how many calls at a time, 0: one, HELIO_AUTO: as many as there are cores. Elements come
 * in order unless .unordered; a position then counts elements, whichever they were. */
#define HELIO_AUTO (-1)

typedef struct helio_dataset_map_options {
  size_t size;
  helio_dataset *dataset;
  helio_status (*function)(void *argument, helio_element *element);
  void *argument;
  int parallel;
  bool unordered;
} helio_dataset_map_options;

HELIO_EXPORT helio_dataset *helio_dataset_map_with(const helio_dataset_map_options *options);
#define helio_dataset_map(...) HELIO_MAKE(helio_dataset_map_with, helio_dataset_map_options, __VA_ARGS__)

/* Each element is drawn from a buffer of .buffer elements. If the source's length is known and the buffer is at least
 * as large, indices are permuted and no element is held. Every iteration is shuffled anew unless .no_reshuffle. */
typedef struct helio_dataset_shuffle_options {
  size_t size;
  helio_dataset *dataset;
  int64_t buffer;
  int64_t seed; /* 0: of helio_set_seed(), counted by how many datasets have been shuffled since */
  bool no_reshuffle;
} helio_dataset_shuffle_options;

HELIO_EXPORT helio_dataset *helio_dataset_shuffle_with(const helio_dataset_shuffle_options *options);
#define helio_dataset_shuffle(...) HELIO_MAKE(helio_dataset_shuffle_with, helio_dataset_shuffle_options, __VA_ARGS__)

typedef struct helio_dataset_batch_options {
  size_t size;
  helio_dataset *dataset;
  int64_t count; /* of elements */
  bool drop_remainder;
} helio_dataset_batch_options;

HELIO_EXPORT helio_dataset *helio_dataset_batch_with(const helio_dataset_batch_options *options);
#define helio_dataset_batch(...) HELIO_MAKE(helio_dataset_batch_with, helio_dataset_batch_options, __VA_ARGS__)

/* Elements of unequal shapes: each part is filled at its end to the longest of its batch along every axis, or to
 * .shape[i] (extents −1: the longest; rank 0: all −1), with .value[i]. An element that is longer than a shape given is
 * an error.
 */
typedef struct helio_dataset_padded_batch_options {
  size_t size;
  helio_dataset *dataset;
  int64_t count;
  bool drop_remainder;
  helio_shape shape[HELIO_MAX_PARTS];
  double value[HELIO_MAX_PARTS];
} helio_dataset_padded_batch_options;

HELIO_EXPORT helio_dataset *helio_dataset_padded_batch_with(const helio_dataset_padded_batch_options *options);
#define helio_dataset_padded_batch(...)                                                                                \
  HELIO_MAKE(helio_dataset_padded_batch_with, helio_dataset_padded_batch_options, __VA_ARGS__)

HELIO_EXPORT helio_dataset *helio_dataset_repeat(helio_dataset *dataset, int64_t times); /* −1: for ever */
HELIO_EXPORT helio_dataset *helio_dataset_take(helio_dataset *dataset, int64_t count);   /* −1: all */
HELIO_EXPORT helio_dataset *helio_dataset_skip(helio_dataset *dataset, int64_t count);   /* −1: all */
HELIO_EXPORT helio_dataset *helio_dataset_shard(helio_dataset *dataset, int64_t shards, int64_t index);

/* The first whole iteration fills it, later ones read it: transforms before it run only once. */
HELIO_EXPORT helio_dataset *helio_dataset_cache(helio_dataset *dataset);

/* A thread of its own prepares this many elements ahead, on the device where they will be used; HELIO_AUTO, or 0: 2 at
 * first, and more if the iterator has to wait. */
HELIO_EXPORT helio_dataset *helio_dataset_prefetch(helio_dataset *dataset, int count);

/* Element i of all as one tuple, as long as the shortest; all elements of one dataset, then those of the other. */
HELIO_EXPORT helio_dataset *helio_dataset_zip(helio_dataset *const *datasets, int count);
HELIO_EXPORT helio_dataset *helio_dataset_concatenate(helio_dataset *dataset, helio_dataset *behind);

/* How many elements an iteration has: a number, HELIO_INFINITE or HELIO_UNKNOWN. */
#define HELIO_INFINITE (-1)
#define HELIO_UNKNOWN  (-2)
HELIO_EXPORT int64_t helio_dataset_cardinality(const helio_dataset *dataset);

/* ---- iteration ---- */

typedef struct helio_iterator helio_iterator;

/* Begins at the first element; a dataset may have many iterators, each of which counts as an iteration. An iterator
 * belongs to the pool, like everything else; its threads end promptly with it. Elements are made on the thread's
 * current device (HELIO_DEVICE), else on the preferred one. */
HELIO_EXPORT helio_iterator *helio_iterate(helio_dataset *dataset);

/* The next element; its parts belong to the caller's pool. False at the end and on error: see helio_error_pending(). An
 * error ends the iteration, and later calls report it again. Several threads may call this with one iterator: each
 * element goes to one of them. A function of the dataset must not call it with the iterator that it works for: it would
 * wait for itself. */
HELIO_EXPORT bool helio_next(helio_iterator *iterator, helio_element *element);

/* The iterator's position, as a line of text to be freed with free(): small, and without data. A new iterator of a
 * dataset made in the same way, even in another process, continues from it with exactly the elements that would have
 * followed. Generators and maps run again from the start of the iteration if there is no other way. */
HELIO_EXPORT char *helio_iterator_position(helio_iterator *iterator);
HELIO_EXPORT helio_status helio_iterator_restore(helio_iterator *iterator, const char *position);

#ifdef __cplusplus
}
#endif
#endif
