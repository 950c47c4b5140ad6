/* SPDX-License-Identifier: Apache-2.0 */
/* Training is TensorFlow's, step by step: from the same weights, with the samples in their order, on 1, 2 and 3
 * devices. make check trains on the small sets of golden/train/traces, with each pair of set, batch size and number of
 * devices; HELIO_TEST_TRACES=all takes everything with everything, and the real sets as well, where they are found. */
#include "data_files.h"
#include "golden.h"
#include "replica_devices.h"

enum { STEPS = 40, SIZES = 3, MOST_TRACED_DEVICES = 3, TEXT_LENGTH = 300 };

static const int batch_sizes[SIZES] = {512, 256, 32};

/* ---- samples and models, as in make_traces.py ---- */

typedef struct lesson {
  helio_array *x, *y, *test_x, *test_y;
  int32_t words; /* that texts are made of; 0: images */
} lesson;

static helio_array *images_of(const helio_samples *samples) {
  helio_array *images = helio_array_reshape(samples->x, HELIO_SHAPE(-1, 28, 28, 1));
  return helio_array_cast(images, HELIO_FLOAT32, .scale = 1.0 / 255);
}

static helio_array *texts_of(const helio_samples *samples) {
  return helio_pad_sequences(samples->sequences, TEXT_LENGTH);
}

/* False if the set is not there: an error is pending then. */
static bool load(lesson *l, const char *name, const char *folder) {
  helio_samples train, test;
  if (helio_load_data(name, &train, &test, folder)) return false;
  bool images = train.x != NULL;
  *l = (lesson){.y = train.y, .test_y = test.y};
  l->x = images ? images_of(&train) : texts_of(&train);
  l->test_x = images ? images_of(&test) : texts_of(&test);
  if (!images) {
    int32_t most = helio_sequences_largest(train.sequences), other = helio_sequences_largest(test.sequences);
    l->words = (other > most ? other : most) + 1;
  }
  assert_true(l->x && l->test_x);
  return true;
}

static helio_model *make_model(int32_t words) {
  if (words) {
    return helio_sequential({helio_embedding(words, 7), helio_conv1d(64, 5, .activation = HELIO_RELU),
                             helio_max_pool1d(2), helio_conv1d(32, 3, .activation = HELIO_RELU), helio_max_pool1d(2),
                             helio_flatten(), helio_dense(46, .activation = HELIO_SOFTMAX)},
                            .input_shape = HELIO_SHAPE(TEXT_LENGTH));
  }
  return helio_sequential({helio_conv2d(16, 3, .activation = HELIO_RELU), helio_max_pool2d(),
                           helio_conv2d(32, 3, .activation = HELIO_RELU), helio_max_pool2d(), helio_flatten(),
                           helio_dense(10, .activation = HELIO_SOFTMAX)},
                          .input_shape = HELIO_SHAPE(28, 28, 1));
}

/* ---- start values, as in make_traces.py ---- */

/* Between which a weight begins, on both sides of 0. */
static double limit_of(const helio_variable *weight) {
  helio_shape shape = helio_variable_shape(weight);
  double window = 1;
  if (shape.rank == 1) return 0;
  if (strstr(helio_variable_name(weight), "embedding")) return 0.05;
  for (int i = 0; i < shape.rank - 2; i++) window *= (double)shape.extent[i];
  return sqrt(6 / (window * (double)(shape.extent[shape.rank - 2] + shape.extent[shape.rank - 1])));
}

static helio_tensor *start_value(const helio_variable *weight, uint64_t *seed) {
  helio_shape shape = helio_variable_shape(weight);
  double limit = limit_of(weight);
  size_t count = 1;
  for (int i = 0; i < shape.rank; i++) count *= (size_t)shape.extent[i];
  float *values = calloc(count, sizeof *values);
  assert_non_null(values);
  for (size_t i = 0; limit > 0 && i < count; i++) {
    values[i] = (float)((next_random(seed) / 1073741824.0 - 1) * limit); /* of 31 bits */
  }
  helio_tensor *tensor = helio_constant(values, shape);
  free(values);
  return tensor;
}

static void set_start(helio_model *model) {
  uint64_t seed = 1;
  const helio_variables *weights = helio_weights(model);
  assert_made(weights);
  for (int i = 0; i < weights->count; i++) assert_ok(helio_assign(weights->at[i], start_value(weights->at[i], &seed)));
}

static helio_model *make_trained(helio_strategy *strategy, int32_t words) {
  helio_model *model = NULL;
  HELIO_SCOPE(strategy) {
    model = make_model(words);
    helio_compile(model, .optimizer = words ? helio_nadam() : helio_adam(),
                  .loss = helio_sparse_categorical_crossentropy(), .metrics = {helio_sparse_categorical_accuracy()});
  }
  assert_made(model);
  assert_ok(helio_error_pending());
  set_start(model);
  return model;
}

/* ---- 40 steps, in each way that there is ---- */

typedef struct trace {
  double losses[STEPS];
  double evaluated[2]; /* loss and accuracy of the samples for testing, behind these steps */
  int count;
} trace;

static helio_status note_loss(void *user, helio_training *training) {
  trace *t = user;
  t->losses[t->count++] = helio_logs_get(training->batch_logs, "loss");
  if (t->count == STEPS) training->stop = true;
  return helio_error_pending();
}

static void fit_arrays(helio_model *model, const lesson *l, int batch, trace *t) {
  assert_made(helio_fit(model, .x = l->x, .y = l->y, .batch_size = batch, .no_shuffle = true, .epochs = STEPS,
                        .callbacks = {helio_callback(.user = t, .batch_end = note_loss)}, .verbose = HELIO_QUIET));
}

static void fit_dataset(helio_model *model, const lesson *l, int batch, trace *t) {
  helio_dataset *batches = helio_dataset_batch(helio_dataset_from_slices(l->x, l->y), batch);
  assert_made(helio_fit(model, helio_dataset_repeat(batches, -1), .steps_per_epoch = STEPS,
                        .callbacks = {helio_callback(.user = t, .batch_end = note_loss)}, .verbose = HELIO_QUIET));
}

static void train_on_batches(helio_model *model, const lesson *l, int batch, trace *t) {
  int64_t samples = helio_array_shape(l->x).extent[0], begin = 0;
  for (; t->count < STEPS; t->count++) {
    int64_t left = samples - begin, count = left < batch ? left : batch;
    HELIO_POOL {
      helio_logs *logs = helio_train_on_batch(model, .x = helio_array_part(l->x, begin, count),
                                              .y = helio_array_part(l->y, begin, count));
      assert_made(logs);
      t->losses[t->count] = helio_logs_get(logs, "loss");
    }
    begin = (begin + count) % samples;
  }
}

static void evaluate(helio_model *model, const lesson *l, int batch, trace *t) {
  helio_logs *logs = helio_evaluate(model, .x = l->test_x, .y = l->test_y, .batch_size = batch, .verbose = HELIO_QUIET);
  assert_made(logs);
  t->evaluated[0] = helio_logs_get(logs, "loss");
  t->evaluated[1] = helio_logs_get(logs, "sparse_categorical_accuracy");
}

/* ---- TensorFlow's ---- */

/* The numbers of a line of traces.txt that begins so. */
static HELIO_PRINTF(3, 4) void read_numbers(double *numbers, int count, const char *format, ...) {
  char line[2000], key[80], *end = NULL;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(key, sizeof key, format, arguments);
  va_end(arguments);
  FILE *file = fopen(golden_data("train/traces.txt"), "r");
  assert_non_null(file);
  while (!end && fgets(line, sizeof line, file)) {
    if (strncmp(line, key, (size_t)length) == 0 && line[length] == ' ') end = line + length;
  }
  fclose(file);
  for (int i = 0; end && i < count; i++) numbers[i] = strtod(end, &end);
  if (!end || *end != '\n') fail_msg("traces.txt has no line of \"%s\" and %d numbers", key, count);
}

/* ---- the comparison ---- */

typedef struct subject {
  const char *name;
  void (*train)(helio_model *model, const lesson *l, int batch, trace *t);
  double tolerance;
  int large_batch, large_devices; /* that make check takes beside batches of 32; 0: none */
} subject;

static const subject subjects[] = {
    {"mnist", fit_arrays, 1e-4, 512, 2},
    {"fashion-mnist", train_on_batches, 3e-4, 256, 3},
    {"reuters", fit_dataset, 1e-4, 0, 0},
};

enum { SUBJECTS = COUNT_OF(subjects) };

static bool is_long(void) {
  const char *asked = getenv("HELIO_TEST_TRACES");
  return asked && strcmp(asked, "all") == 0;
}

static bool is_wanted(const subject *s, int batch, int devices) {
  bool large = batch == s->large_batch && devices == s->large_devices;
  return is_long() || batch == 32 || (large && !SANITIZED);
}

static void train_and_evaluate(const subject *s, const lesson *l, int batch, int devices, trace *found) {
  HELIO_POOL {
    helio_strategy *strategy = devices == 1 ? helio_one_device(device_name()) : mirrored_over(devices, NULL, NULL);
    assert_made(strategy);
    helio_model *model = make_trained(strategy, l->words);
    s->train(model, l, batch, found);
    evaluate(model, l, batch, found);
    helio_release(model);
  }
  assert_int_equal(found->count, STEPS);
}

/* Some trainings magnify rounding so much that TensorFlow's own, which float64 shows, is as large as the tolerance:
 * then it is twice that. The evaluation sees how far the weights have come apart, the accuracy is that of few samples.
 */
static void check_trace(const subject *s, const lesson *l, const char *form, int batch, int devices) {
  trace found = {.count = 0};
  double expected[STEPS + 2], rounding[3], samples = (double)helio_array_elements(l->test_y);
  read_numbers(expected, STEPS + 2, "%s %s %d", form, s->name, batch);
  read_numbers(rounding, 3, "float64 %s %s %d", form, s->name, batch);
  train_and_evaluate(s, l, batch, devices, &found);
  double tolerance = fmax(s->tolerance, 2 * rounding[0]), tolerated = fmax(1, samples / 500) + 0.01;
  double losses = distance_of_numbers(found.losses, expected, STEPS);
  double loss = distance_of_numbers(found.evaluated, expected + STEPS, 1);
  double tipped = fabs(found.evaluated[1] - expected[STEPS + 1]) * samples;
  print_message("batches of %d on %d devices: losses differ by %.2g, the evaluation's by %.2g, %.0f of %.0f tipped\n",
                batch, devices, losses, loss, tipped, samples);
  assert_true(losses <= tolerance && loss <= 3 * tolerance && tipped <= tolerated);
}

static void check_traces(const subject *s, const char *form, const char *folder) {
  lesson l;
  bool there = false;
  start_replica_devices();
  HELIO_POOL {
    there = load(&l, s->name, folder);
    for (int size = 0; size < SIZES && there; size++) {
      for (int devices = 1; devices <= MOST_TRACED_DEVICES; devices++) {
        if (is_wanted(s, batch_sizes[size], devices)) check_trace(s, &l, form, batch_sizes[size], devices);
      }
    }
  }
  if (!there) SKIP("%s", helio_error_message());
}

/* ---- what they rest on ---- */

static void check_updates(const char *name, helio_type type) {
  double expected[10], found[10];
  read_numbers(expected, 10, "update %s %s", name, helio_type_name(type));
  helio_optimizer *optimizer = helio_optimizer_named(name);
  helio_variable *weight = helio_variable(helio_fill(HELIO_SHAPE(1), 0, type));
  for (int i = 0; i < 10; i++) {
    helio_tape *tape = helio_tape_new();
    helio_tensor *sum = NULL;
    HELIO_TAPE(tape) sum = helio_sum(helio_value(weight));
    assert_ok(helio_minimize(optimizer, tape, sum, HELIO_VARIABLES(weight)));
    found[i] = helio_item(helio_sum(helio_value(weight)));
  }
  double off = distance_of_numbers(found, expected, 10);
  if (!(off <= 1e-6)) fail_msg("%s in %s differs by %g", name, helio_type_name(type), off);
}

/* Where nothing but the update itself can be seen: of a weight that was 0, by a gradient of 1. */
static void updates_from_zero(void **state) {
  static const char *const names[] = {"SGD", "Adam", "AdamW", "Nadam", "RMSprop", "Adagrad"};
  (void)state;
  assert_ok(helio_init());
  HELIO_DEVICE(device_name()) {
    for (size_t i = 0; i < COUNT_OF(names); i++) {
      check_updates(names[i], HELIO_FLOAT32);
      check_updates(names[i], HELIO_FLOAT64);
    }
  }
}

/* All places of a flat image look alike, so all results are alike, to the bit: max pooling meets ties there, as it does
 * in TensorFlow, and the first one wins. */
static void check_flat(helio_shape image, helio_shape kernel) {
  helio_tensor *y = helio_nn_conv2d(helio_fill(image, 0.3), helio_random_uniform(kernel, .key = 7));
  assert_made(y);
  helio_array *results = helio_tensor_array(y);
  assert_made(results);
  const float *first = helio_array_data(results);
  int64_t channels = kernel.extent[3], places = helio_array_elements(results) / channels;
  for (int64_t i = 1; i < places; i++) {
    bool same = memcmp(first + i * channels, first, (size_t)channels * sizeof *first) == 0;
    if (!same) fail_msg("place %d of %d differs", (int)i, (int)places);
  }
}

static void flat_images_stay_flat(void **state) {
  (void)state;
  assert_ok(helio_init());
  HELIO_DEVICE(device_name()) {
    check_flat(HELIO_SHAPE(3, 28, 28, 1), HELIO_SHAPE(3, 3, 1, 16));
    check_flat(HELIO_SHAPE(3, 13, 13, 16), HELIO_SHAPE(3, 3, 16, 32));
    check_flat(HELIO_SHAPE(3, 1, 300, 7), HELIO_SHAPE(1, 5, 7, 64));
    check_flat(HELIO_SHAPE(3, 1, 148, 64), HELIO_SHAPE(1, 3, 64, 32));
    check_flat(HELIO_SHAPE(2, 9, 9, 130), HELIO_SHAPE(2, 2, 130, 46));
  }
}

/* ---- all that there is ---- */

static void small_set(void **state) {
  check_traces(*state, "small", golden_data("train/traces"));
}

static void real_set(void **state) {
  check_traces(*state, "real", real_data());
}

static struct CMUnitTest tests[2 + 2 * SUBJECTS];
static char names[COUNT_OF(tests)][40];
static size_t test_count;

static void add_test(const char *name, const char *of, CMUnitTestFunction function, const subject *s) {
  snprintf(names[test_count], sizeof names[0], "%s%s", name, of);
  tests[test_count] = (struct CMUnitTest){names[test_count], function, set_up, tear_down, (void *)(uintptr_t)s};
  test_count++;
}

int main(void) {
  remember_environment();
  add_test("updates_from_zero", "", updates_from_zero, NULL);
  add_test("flat_images_stay_flat", "", flat_images_stay_flat, NULL);
  for (int i = 0; i < SUBJECTS; i++) add_test("small_", subjects[i].name, small_set, &subjects[i]);
  for (int i = 0; i < SUBJECTS && is_long(); i++) add_test("real_", subjects[i].name, real_set, &subjects[i]);
  return _cmocka_run_group_tests("tests", tests, test_count, NULL, NULL);
}
