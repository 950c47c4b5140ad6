/* SPDX-License-Identifier: Apache-2.0 */
/* A training that is ended at any moment and goes on comes to what it would have come to: to the bit with the same
 * replicas, to the law with others. HELIO_TEST_KILLS says how often it is killed (10). */
#include <math.h>
#include <sys/mman.h>

#include "wrapped.h"

enum { SAMPLES = 60, FEATURES = 6, CLASSES = 4, EPOCHS = 10, BATCH = 8, MOST_NUMBERS = 200 };

/* What a child tells. */
typedef struct outcome {
  double weights[MOST_NUMBERS];
  int count, epochs, signal;
  double losses[EPOCHS];
} outcome;

typedef struct training {
  const char *folder; /* NULL: no checkpoints */
  int replicas;
  int epochs;
  int raise_at;     /* a signal to the process itself behind so many steps; 0: none */
  int signals;      /* how many */
  int stop_at;      /* a callback stops it behind so many steps; 0: none does */
  useconds_t pause; /* behind each step, so that there is time to be killed */
  outcome *result;  /* shared */
} training;

static helio_status behind_batch(void *user, helio_training *t) {
  const training *given = user;
  usleep(given->pause);
  for (int i = 0; t->total_steps == given->raise_at && i < given->signals; i++) raise(SIGINT);
  if (given->stop_at && t->total_steps >= given->stop_at) t->stop = true;
  return HELIO_OK;
}

static helio_model *make_model(void) {
  helio_set_seed(5);
  helio_model *model = helio_sequential({helio_dense(8, .activation = HELIO_TANH), helio_dropout(0.25),
                                         helio_dense(CLASSES, .activation = HELIO_SOFTMAX)},
                                        .input_shape = HELIO_SHAPE(FEATURES), .type = HELIO_FLOAT64);
  helio_compile(model, .optimizer = helio_nadam(0.02), .loss = helio_sparse_categorical_crossentropy(),
                .metric_names = {"accuracy"});
  return model;
}

static bool read_weights(helio_model *model, outcome *result) {
  const helio_variables *weights = helio_weights(model);
  result->count = 0;
  for (int i = 0; weights && i < weights->count; i++) {
    helio_tensor *value = helio_variable_copy(weights->at[i], 0);
    size_t elements = (size_t)helio_tensor_elements(value);
    helio_tensor_read(value, result->weights + result->count, elements * sizeof(double));
    result->count += (int)elements;
  }
  return weights && !helio_error_pending();
}

static bool train(void *argument) {
  const training *t = argument;
  static double x[SAMPLES * FEATURES];
  static int32_t y[SAMPLES];
  for (int i = 0; i < SAMPLES * FEATURES; i++) x[i] = sin(0.7 * i);
  for (int i = 0; i < SAMPLES; i++) y[i] = (i * 7 + i / 3) % CLASSES;
  wrap_devices("");
  CHILD_CHECK(helio_init() == HELIO_OK);
  helio_strategy *strategy =
      t->replicas == 1 ? helio_one_device(device_name()) : mirrored_over(t->replicas, NULL, "reduce-to-one");
  helio_model *model = NULL;
  HELIO_SCOPE(strategy) model = make_model();
  CHILD_CHECK(model);
  helio_callback *pausing = helio_callback(.user = (void *)t, .batch_end = behind_batch);
  helio_history *history =
      helio_fit(model, .x = helio_array_of(x, HELIO_SHAPE(SAMPLES, FEATURES), .type = HELIO_FLOAT64),
                .y = helio_array_of(y, HELIO_SHAPE(SAMPLES), .type = HELIO_INT32), .batch_size = BATCH,
                .epochs = t->epochs, .checkpoint = t->folder, .resume = t->folder != NULL,
                .checkpoint_every_steps = t->folder ? 3 : 0, .callbacks = {pausing}, .verbose = HELIO_QUIET);
  CHILD_CHECK(history && read_weights(model, t->result));
  t->result->signal = helio_history_signal(history);
  t->result->epochs = helio_history_epochs(history);
  for (int i = 0; i < t->result->epochs; i++) t->result->losses[i] = helio_history_value(history, "loss", i);
  helio_release(model);
  return true;
}

static outcome *shared(void) {
  outcome *result = mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(result != MAP_FAILED);
  return result;
}

static void run(const training *t) {
  memset(t->result, 0, sizeof *t->result);
  assert_int_equal(run_in_child(train, (void *)t), 0);
}

static void assert_equal(const outcome *found, const outcome *expected) {
  assert_int_equal(found->count, expected->count);
  assert_int_equal(found->epochs, expected->epochs);
  assert_memory_equal(found->weights, expected->weights, (size_t)expected->count * sizeof(double));
  assert_memory_equal(found->losses, expected->losses, (size_t)expected->epochs * sizeof(double));
}

static void assert_near(const outcome *found, const outcome *expected) {
  double worst = 0, largest = 0;
  for (int i = 0; i < expected->count; i++) {
    worst = fmax(worst, fabs(found->weights[i] - expected->weights[i]));
    largest = fmax(largest, fabs(expected->weights[i]));
  }
  if (!(worst <= 1e-9 * largest)) fail_msg("weights are off by %.3g", worst / largest);
  for (int i = 0; i < expected->epochs; i++) {
    if (fabs(found->losses[i] - expected->losses[i]) > 1e-9 * fabs(expected->losses[i])) {
      fail_msg("epoch %d: %.12g instead of %.12g", i, found->losses[i], expected->losses[i]);
    }
  }
}

static const outcome *expected(void) {
  static outcome *result;
  if (!result) {
    result = shared();
    run(&(training){.replicas = 1, .epochs = EPOCHS, .result = result});
    assert_int_equal(result->epochs, EPOCHS);
  }
  return result;
}

/* ---- killed ---- */

static void kill_once(training *t, unsigned long microseconds) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    _exit(train(t) ? 0 : 1);
  }
  assert_true(child > 0);
  usleep((useconds_t)microseconds);
  kill(child, SIGKILL);
  int status;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
}

static void a_killed_training_goes_on_to_the_bit(void **state) {
  (void)state;
  char folder[64];
  const char *given = getenv("HELIO_TEST_KILLS");
  int kills = given ? atoi(given) : 10, rounds = 0;
  uint64_t seed = 7;
  outcome *found = shared();
  make_folder(folder);
  training t = {.folder = folder, .replicas = 1, .epochs = EPOCHS, .pause = SANITIZED ? 5000 : 1000, .result = found};
  for (int i = 0; i < kills; i++) {
    kill_once(&t, 20000 + next_random(&seed) % (SANITIZED ? 1500000 : 150000));
    if (i % 5 != 4) continue; /* five times killed, then let come to its end */
    run(&t);
    assert_equal(found, expected());
    remove_folder(folder);
    make_folder(folder);
    t.folder = folder;
    rounds++;
  }
  remove_folder(folder);
  printf("%d kills, %d trainings\n", kills, rounds);
}

/* ---- other replicas ---- */

static void other_numbers_of_replicas(void **state) {
  (void)state;
  static const int from_to[][2] = {{1, 3}, {4, 2}};
  for (size_t i = 0; i < COUNT_OF(from_to); i++) {
    char folder[64];
    outcome *found = shared();
    make_folder(folder);
    run(&(training){
        .folder = folder, .replicas = from_to[i][0], .epochs = EPOCHS, .raise_at = 29, .signals = 1, .result = found});
    assert_int_equal(found->signal, SIGINT);
    assert_int_equal(found->epochs, 3); /* eight steps each: it is in the fourth */
    run(&(training){.folder = folder, .replicas = from_to[i][1], .epochs = EPOCHS, .result = found});
    assert_int_equal(found->signal, 0);
    assert_int_equal(found->epochs, EPOCHS);
    assert_near(found, expected());
    remove_folder(folder);
  }
}

/* ---- callbacks ---- */

/* Behind a step inside an epoch, and behind the last one of an epoch. */
static void a_stopped_training_goes_on(void **state) {
  (void)state;
  static const int stops[] = {13, 16};
  for (size_t i = 0; i < COUNT_OF(stops); i++) {
    char folder[64];
    outcome *found = shared();
    make_folder(folder);
    run(&(training){.folder = folder, .replicas = 1, .epochs = EPOCHS, .stop_at = stops[i], .result = found});
    assert_int_equal(found->signal, 0);
    assert_int_equal(found->epochs, 2); /* the one that was cut short is measured too */
    run(&(training){.folder = folder, .replicas = 1, .epochs = EPOCHS, .result = found});
    assert_equal(found, expected());
    remove_folder(folder);
  }
}

/* ---- signals ---- */

static void a_signal_ends_behind_the_step(void **state) {
  (void)state;
  char folder[64];
  outcome *found = shared();
  make_folder(folder);
  run(&(training){.folder = folder, .replicas = 1, .epochs = EPOCHS, .raise_at = 13, .signals = 1, .result = found});
  assert_int_equal(found->signal, SIGINT);
  run(&(training){.folder = folder, .replicas = 1, .epochs = EPOCHS, .result = found});
  assert_equal(found, expected());
  remove_folder(folder);
}

static void a_second_signal_ends_at_once(void **state) {
  (void)state;
  char folder[64];
  outcome *found = shared();
  make_folder(folder);
  int status = run_in_child(
      train,
      &(training){.folder = folder, .replicas = 1, .epochs = EPOCHS, .raise_at = 13, .signals = 2, .result = found});
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
  run(&(training){.folder = folder, .replicas = 1, .epochs = EPOCHS, .result = found});
  assert_equal(found, expected());
  remove_folder(folder);
}

/* ---- the files ---- */

static void flip_last(const char *folder) {
  char path[PATH_MAX], last[PATH_MAX] = "";
  DIR *open = opendir(folder);
  assert_non_null(open);
  for (struct dirent *entry; (entry = readdir(open));) {
    if (strncmp(entry->d_name, "checkpoint-", 11) == 0 && strcmp(entry->d_name, last) > 0)
      snprintf(last, sizeof last, "%s", entry->d_name);
  }
  closedir(open);
  snprintf(path, sizeof path, "%s/%.200s", folder, last);
  FILE *file = fopen(path, "r+");
  assert_non_null(file);
  fseek(file, -20, SEEK_END);
  int byte = getc(file);
  fseek(file, -20, SEEK_END);
  putc(byte ^ 4, file);
  fclose(file);
}

static void a_damaged_checkpoint_is_passed_over(void **state) {
  (void)state;
  char folder[64];
  outcome *found = shared();
  make_folder(folder);
  run(&(training){.folder = folder, .replicas = 1, .epochs = 4, .result = found});
  flip_last(folder);
  run(&(training){.folder = folder, .replicas = 1, .epochs = EPOCHS, .result = found});
  assert_equal(found, expected());
  remove_folder(folder);
}

/* A training that is not to go on does not mix its files with another's. */
static bool start_anew(void *argument) {
  float x[8] = {0};
  wrap_devices("");
  CHILD_CHECK(helio_init() == HELIO_OK);
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_model();
    helio_array *a = helio_array_of(x, HELIO_SHAPE(1, 6)),
                *b = helio_array_of((int32_t[]){1}, HELIO_SHAPE(1), .type = HELIO_INT32);
    CHILD_CHECK(!helio_fit(model, .x = a, .y = b, .checkpoint = argument, .verbose = HELIO_QUIET));
    CHILD_CHECK(helio_error_pending() == HELIO_WRONG_STATE && strstr(helio_error_message(), "set .resume"));
    helio_error_take(NULL);
    helio_release(model);
  }
  return true;
}

static void trainings_do_not_mix(void **state) {
  (void)state;
  char folder[64];
  outcome *found = shared();
  make_folder(folder);
  run(&(training){.folder = folder, .replicas = 1, .epochs = 1, .result = found});
  assert_int_equal(run_in_child(start_anew, folder), 0);
  remove_folder(folder);
}

int main(void) {
  remember_environment();
  const struct CMUnitTest tests[] = {
      TEST(a_killed_training_goes_on_to_the_bit), TEST(other_numbers_of_replicas),
      TEST(a_signal_ends_behind_the_step),        TEST(a_second_signal_ends_at_once),
      TEST(a_damaged_checkpoint_is_passed_over),  TEST(trainings_do_not_mix),
      TEST(a_stopped_training_goes_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
