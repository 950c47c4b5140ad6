/* SPDX-License-Identifier: Apache-2.0 */
/* Known sets of data, and where their files are. */
#ifndef HI_PLACES_H
#define HI_PLACES_H

#include <helio/helio.h>

typedef struct hi_known_set {
  const char *name;    /* "fashion-mnist", also of its folder */
  const char *archive; /* Keras' file */
  bool texts;          /* else images, which also come as four IDX files */
  bool one_part;       /* not yet split for training and test */
  const char *package; /* of Debian that has it, NULL: none */
} hi_known_set;

/* NULL, with the error set, if there is none of that name. */
const hi_known_set *hi_known_set_named(const char *name);

/* In the order of IDX files. */
enum { HI_TRAIN_IMAGES, HI_TRAIN_LABELS, HI_TEST_IMAGES, HI_TEST_LABELS, HI_IDX_FILES };

/* The files of a set, NULL behind the last: one archive, or HI_IDX_FILES. To be freed with free(). Looks in `folder`
 * (NULL: none), HELIO_DATA_DIR, the cache folder and Debian's, in each of them for the folder of the set's name and
 * then in itself. NULL with an error that says where it looked and what to do. */
char **hi_known_set_files(const hi_known_set *set, const char *folder);

#endif
