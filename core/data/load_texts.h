/* SPDX-License-Identifier: Apache-2.0 */
/* Keras' datasets of texts, reuters and imdb: its load_data() for a file that is open. */
#ifndef HI_LOAD_TEXTS_H
#define HI_LOAD_TEXTS_H

#include "data/file.h"

/* Keras' arguments, as they are meant: no number stands for a default any more. */
typedef struct hi_text_rules {
  int64_t num_words; /* 0: None */
  int64_t skip_top;
  int64_t maxlen; /* 0: None */
  double test_split;
  uint32_t seed;
  bool start, oov; /* false: None */
  int64_t start_char, oov_char, index_from;
} hi_text_rules;

/* The samples belong to the innermost pool. The status of an error that is set. */
helio_status hi_load_reuters(hi_file *file, const hi_text_rules *rules, helio_samples *train, helio_samples *test);
helio_status hi_load_imdb(hi_file *file, const hi_text_rules *rules, helio_samples *train, helio_samples *test);

#endif
