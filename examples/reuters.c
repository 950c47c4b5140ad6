/* SPDX-License-Identifier: Apache-2.0 */
/* The topics of news, learnt on two logical devices of 1024 MB each: reuters [EPOCHS]. `helio data get reuters` brings
 * the articles; without them the program makes some up. */
#include <helio/helio.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 300, TOPICS = 46, BATCH = 32, MADE_UP = 960, LONGEST = 400 };

/* Of the preferred device, a GPU where there is one. */
static void cut_in_two(void) {
  int physical = 0, logical = 0;
  const helio_device *const *devices = helio_physical_devices(NULL, &physical);
  if (!devices) return;
  const char *type = devices[0]->type;
  uint64_t limits[] = {UINT64_C(1024) << 20, UINT64_C(1024) << 20};
  helio_set_logical_devices(devices[0]->name, limits, 2);
  helio_physical_devices(type, &physical);
  helio_logical_devices(type, &logical);
  printf("%d Physical %s%s, %d Logical %s%s\n", physical, type, physical == 1 ? "" : "s", logical, type,
         logical == 1 ? "" : "s");
}

/* ---- the articles: lists of word numbers, with a topic each ---- */

/* Each topic has four words of its own, which are every third word of its articles. */
static void make_up(helio_samples *samples, int first, int count) {
  static int32_t words[MADE_UP * LONGEST];
  static int64_t lengths[MADE_UP], topics[MADE_UP];
  int64_t total = 0;
  for (int i = 0; i < count; i++) {
    topics[i] = (first + i) % TOPICS;
    lengths[i] = 20 + (first + i) * 37 % (LONGEST - 20);
    for (int w = 0; w < lengths[i]; w++) {
      words[total++] = w % 3 ? 1 + (w * 7 + first + i) % 500 : 501 + (int)topics[i] * 4 + w % 4;
    }
  }
  samples->sequences = helio_sequences_of(words, lengths, count);
  samples->y = helio_array_of(topics, HELIO_SHAPE(count), HELIO_INT64);
}

static void load(helio_samples *training, helio_samples *testing) {
  helio_error missing;
  if (helio_load_data("reuters", training, testing) != HELIO_IO_FAILURE) return;
  helio_error_take(&missing);
  printf("%s\nThe articles that follow are made up.\n", missing.message);
  make_up(training, 0, MADE_UP);
  make_up(testing, MADE_UP, MADE_UP / 4);
}

static helio_dataset *batches_of(const helio_samples *samples) {
  helio_array *articles = helio_pad_sequences(samples->sequences, WORDS);
  helio_dataset *dataset = helio_dataset_from_slices(articles, samples->y);
  dataset = helio_dataset_shuffle(dataset, 1000);
  dataset = helio_dataset_batch(dataset, BATCH);
  dataset = helio_dataset_prefetch(dataset, HELIO_AUTO);
  return helio_dataset_cache(dataset); /* here it keeps the first epoch's order; before the shuffle it would not */
}

/* ---- the model ---- */

static helio_model *make_model(int vocabulary) {
  helio_model *model =
      helio_sequential({helio_embedding(vocabulary, 7), helio_conv1d(64, 5, .activation = HELIO_RELU),
                        helio_max_pool1d(2), helio_conv1d(32, 3, .activation = HELIO_RELU), helio_max_pool1d(2),
                        helio_flatten(), helio_dense(TOPICS, .activation = HELIO_SOFTMAX)},
                       .input_shape = HELIO_SHAPE(WORDS));
  helio_compile(model, .optimizer = helio_nadam(), .loss = helio_sparse_categorical_crossentropy(),
                .metrics = {helio_sparse_categorical_accuracy(), helio_sparse_top_k_categorical_accuracy()});
  return model;
}

static void train(int epochs) {
  helio_samples training = {0}, testing = {0};
  load(&training, &testing);
  int32_t words = helio_sequences_largest(training.sequences), others = helio_sequences_largest(testing.sequences);
  helio_strategy *strategy = helio_mirrored();
  helio_model *model = NULL;
  HELIO_SCOPE(strategy) model = make_model((words > others ? words : others) + 1);
  helio_model_summary(model);
  helio_fit(model, batches_of(&training), .epochs = epochs, .validation = batches_of(&testing));
  helio_release(model);
}

int main(int count, char **arguments) {
  cut_in_two();
  train(count > 1 ? atoi(arguments[1]) : 10);
  if (helio_error_pending()) fprintf(stderr, "%s\n", helio_error_message());
  return helio_error_take(NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
}
