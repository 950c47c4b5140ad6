/* SPDX-License-Identifier: Apache-2.0 */
#include "recipes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "table_file.h"

/* ---------------------------------------------------------------------------------------------------------------------
 * Images of 28 × 28 bytes, 10 classes
 */

/* Images that a device computes at a time: what the first convolution makes of them has 11 MB then, and not 177 as for
 * 4096. It is faster, too. */
enum { AT_A_TIME = 256 };

static bool take_images(sample_set *set, const helio_samples *train, const helio_samples *test) {
  *set = (sample_set){.y = train->y, .test_y = test->y, .type = HELIO_FLOAT32, .divisor = 255};
  set->x = helio_array_reshape(train->x, HELIO_SHAPE(-1, 28, 28, 1));
  set->test_x = helio_array_reshape(test->x, HELIO_SHAPE(-1, 28, 28, 1));
  return set->x && set->test_x;
}

static helio_model *make_image_model(const char *name, const sample_set *set) {
  (void)set;
  return helio_sequential({helio_conv2d(16, 3, .activation = HELIO_RELU), helio_max_pool2d(),
                           helio_conv2d(32, 3, .activation = HELIO_RELU), helio_max_pool2d(), helio_flatten(),
                           helio_dense(10, .activation = HELIO_SOFTMAX)},
                          .input_shape = HELIO_SHAPE(28, 28, 1), .name = name);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Texts of word numbers, 46 topics
 */

enum { TEXT_WORDS = 300, TOPICS = 46, REUTERS_WORDS = 30982 }; /* as many as the whole set has */

static bool take_texts(sample_set *set, const helio_samples *train, const helio_samples *test) {
  int32_t largest = helio_sequences_largest(train->sequences), other = helio_sequences_largest(test->sequences);
  *set = (sample_set){.y = train->y, .test_y = test->y, .words = (int64_t)(largest > other ? largest : other) + 1};
  set->x = helio_pad_sequences(train->sequences, TEXT_WORDS);
  set->test_x = helio_pad_sequences(test->sequences, TEXT_WORDS);
  return set->x && set->test_x;
}

static helio_model *make_text_model(const char *name, const sample_set *set) {
  return helio_sequential({helio_embedding(set->words ? set->words : REUTERS_WORDS, 7),
                           helio_conv1d(64, 5, .activation = HELIO_RELU), helio_max_pool1d(2),
                           helio_conv1d(32, 3, .activation = HELIO_RELU), helio_max_pool1d(2), helio_flatten(),
                           helio_dense(TOPICS, .activation = HELIO_SOFTMAX)},
                          .input_shape = HELIO_SHAPE(TEXT_WORDS), .name = name);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * A line through (1, 1)
 */

static bool make_points(sample_set *set, const helio_samples *train, const helio_samples *test) {
  enum { POINTS = 1000 };
  float ones[POINTS];
  (void)train, (void)test;
  for (int i = 0; i < POINTS; i++) ones[i] = 1;
  *set = (sample_set){.x = helio_array_of(ones, HELIO_SHAPE(POINTS, 1)),
                      .y = helio_array_of(ones, HELIO_SHAPE(POINTS, 1))};
  return set->x && set->y;
}

static helio_model *make_line(const char *name, const sample_set *set) {
  (void)set;
  return helio_sequential({helio_dense(1)}, .input_shape = HELIO_SHAPE(1), .name = name);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The table
 */

const recipe recipes[] = {
    {.name = "fashion-mnist",
     .set = "fashion-mnist",
     .take = take_images,
     .make_model = make_image_model,
     .optimizer = "adam",
     .objective = {.loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}},
     .batch = 128,
     .micro_batch = AT_A_TIME,
     .epochs = 10},
    {.name = "mnist",
     .set = "mnist",
     .take = take_images,
     .make_model = make_image_model,
     .optimizer = "adam",
     .objective = {.loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}},
     .batch = 4096,
     .for_each_replica = true,
     .micro_batch = AT_A_TIME,
     .epochs = 10},
    {.name = "reuters",
     .set = "reuters",
     .take = take_texts,
     .make_model = make_text_model,
     .optimizer = "nadam",
     .objective = {.loss = "sparse_categorical_crossentropy",
                   .metrics = {"accuracy", "sparse_top_k_categorical_accuracy"}},
     .batch = 32,
     .epochs = 10,
     .buffer = 1000},
    {.name = "linear",
     .take = make_points,
     .make_model = make_line,
     .optimizer = "sgd",
     .rate = 0.2,
     .objective = {.loss = "mean_squared_error"},
     .batch = 10,
     .epochs = 2},
    {0},
};

const recipe *recipe_named(const char *name) {
  for (const recipe *r = recipes; r->name; r++) {
    if (strcmp(r->name, name) == 0) return r;
  }
  return NULL;
}

static bool same_layers(const helio_model *one, const helio_model *other) {
  int count = helio_model_layer_count(one);
  bool same = count == helio_model_layer_count(other);
  for (int i = 0; same && i < count; i++) {
    same = strcmp(helio_layer_class(helio_model_layer(one, i)), helio_layer_class(helio_model_layer(other, i))) == 0;
  }
  return same;
}

const recipe *recipe_of_model(const helio_model *model) {
  const recipe *r = recipe_named(helio_layer_name(model));
  helio_model *made = r ? r->make_model(r->name, &(sample_set){0}) : NULL;
  bool same = made && same_layers(model, made);
  helio_release(made);
  return same ? r : NULL;
}

void recipe_add_metrics(const recipe *r, objective *aim) {
  if (strcmp(aim->loss, r->objective.loss) == 0) memcpy(aim->metrics, r->objective.metrics, sizeof aim->metrics);
}

int recipe_unknown(const char *word, const char *path) {
  const char *names[sizeof recipes / sizeof recipes[0]];
  char list[400] = "there are ";
  int count = 0;
  for (; recipes[count].name; count++) {
    size_t length = strlen(list);
    names[count] = recipes[count].name;
    snprintf(list + length, sizeof list - length, "%s%s", count ? ", " : "", names[count]);
  }
  return command_unknown(path, "recipe", word, names, count, list);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Data
 */

/* Where data are asked for and are not, those of another place would be a surprise. */
static int check_place(const recipe *r, const char *data, const char *path) {
  struct stat about;
  bool file = stat(data, &about) == 0 && S_ISREG(about.st_mode);
  if (table_file_is(data) || (file && !command_ends_in(data, ".npz"))) {
    return command_usage_error(path,
                               "--data %s: a recipe takes the folder in which the files of its set are, or its "
                               "archive (.npz); other files are for --model",
                               data);
  }
  if (access(data, R_OK) != 0) {
    return command_failure(path,
                           "--data %s: %s; it names the folder or the archive of %s, which is looked for in the usual "
                           "places without it, and which 'helio data get %s' brings",
                           data, strerror(errno), r->set, r->set);
  }
  char **files = helio_data_files(r->set, data);
  if (!files) return command_library_failure(path);
  size_t length = strlen(data);
  while (length > 1 && data[length - 1] == '/') length--;
  bool there = strncmp(files[0], data, length) == 0 && (!files[0][length] || files[0][length] == '/');
  free(files);
  if (there) return EXIT_SUCCESS;
  return command_failure(path, "%s is not in %s; 'helio data get %s --to %s' brings it there", r->set, data, r->set,
                         data);
}

int recipe_load(const recipe *r, const char *data, sample_set *set, const char *path) {
  helio_samples train = {0}, test = {0};
  if (!r->set && data) return command_usage_error(path, "%s makes its data itself: leave --data out", r->name);
  int status = data ? check_place(r, data, path) : EXIT_SUCCESS;
  if (status != EXIT_SUCCESS) return status;
  if (r->set && helio_load_data(r->set, &train, &test, data) != HELIO_OK) return command_library_failure(path);
  return r->take(set, &train, &test) ? EXIT_SUCCESS : command_library_failure(path);
}
