/* SPDX-License-Identifier: Apache-2.0 */
/* A training that is ended at any moment and goes on comes to what it would have come to: to the bit with the same
 * replicas, to the law with others. HELIO_TEST_KILLS says how often it is killed (10). */
#include <math.h>
#include <sys/mman.h>

#include "wrapped.h"

enum { SAMPLES = 60, FEATURES = 6, CLASSES = 4, EPOCHS = 10, BATCH = 8, MOST_NUMBERS = 400 };

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
  int accumulate, steps_per_epoch; /* 0: as usual */
  int raise_at;                    /* signals to the process itself behind so many steps; 0: none */
  bool in_validation;              /* only in the validation behind that step */
  int signals[3];                  /* up to the first 0 */
  int stop_at;                     /* a callback stops it behind so many steps; 0: none does */
  int hold_at;                     /* behind so many steps it waits to be killed; 0: it does not */
  bool normalizes;                 /* has a layer of which each replica has its own statistics */
  useconds_t pause;                /* behind each step, so that there is time to be killed */
  outcome *result;                 /* shared */
} training;

static void raise_signals(const training *given, const helio_training *t) {
  for (int i = 0; t->total_steps == given->raise_at && i < 3 && given->signals[i]; i++) raise(given->signals[i]);
}

static helio_status behind_batch(void *user, helio_training *t) {
  const training *given = user;
  usleep(given->pause);
  while (given->hold_at && t->total_steps >= given->hold_at) pause();
  if (!given->in_validation) raise_signals(given, t);
  if (given->stop_at && t->total_steps >= given->stop_at) t->stop = true;
  return HELIO_OK;
}

static helio_status behind_validation(void *user, helio_training *t) {
  const training *given = user;
  if (given->in_validation) raise_signals(given, t);
  return HELIO_OK;
}

static helio_model *model_with(helio_layer *middle) {
  helio_model *model = helio_sequential(
      {helio_dense(8, .activation = HELIO_TANH), middle, helio_dense(CLASSES, .activation = HELIO_SOFTMAX)},
      .input_shape = HELIO_SHAPE(FEATURES), .type = HELIO_FLOAT64);
  helio_compile(model, .optimizer = helio_nadam(0.02), .loss = helio_sparse_categorical_crossentropy(),
                .metric_names = {"accuracy"});
  return model;
}

static helio_model *make_model(void) {
  helio_set_seed(5);
  return model_with(helio_dropout(0.25));
}

/* Of the first replica, or, where they differ, of all. */
static bool read_weights(helio_model *model, bool all, outcome *result) {
  const helio_variables *weights = helio_weights(model);
  result->count = 0;
  for (int i = 0; weights && i < weights->count; i++) {
    for (int copy = 0; copy < (all ? helio_variable_copies(weights->at[i]) : 1); copy++) {
      helio_tensor *value = helio_variable_copy(weights->at[i], copy);
      size_t elements = (size_t)helio_tensor_elements(value);
      CHILD_CHECK(result->count + (int)elements <= MOST_NUMBERS);
      helio_tensor_read(value, result->weights + result->count, elements * sizeof(double));
      result->count += (int)elements;
    }
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
  HELIO_SCOPE(strategy) {
    helio_set_seed(5);
    model = model_with(t->normalizes ? helio_batch_normalization() : helio_dropout(0.25));
  }
  CHILD_CHECK(model);
  helio_array *all_x = helio_array_of(x, HELIO_SHAPE(SAMPLES, FEATURES), .type = HELIO_FLOAT64);
  helio_array *all_y = helio_array_of(y, HELIO_SHAPE(SAMPLES), .type = HELIO_INT32);
  helio_fit_options o = {.size = sizeof o,
                         .model = model,
                         .epochs = t->epochs,
                         .accumulate_steps = t->accumulate,
                         .checkpoint = t->folder,
                         .resume = t->folder != NULL,
                         .checkpoint_every_steps = t->folder ? 3 : 0,
                         .verbose = HELIO_QUIET};
  o.callbacks[0] = helio_callback(.user = (void *)t, .batch_end = behind_batch, .test_end = behind_validation);
  o.validation_x = helio_array_part(all_x, 0, 5), o.validation_y = helio_array_part(all_y, 0, 5);
  if (t->steps_per_epoch) { /* of an iteration that goes on through epochs, and begins anew within them */
    helio_dataset *shuffled = helio_dataset_shuffle(helio_dataset_from_slices(all_x, all_y), .buffer = SAMPLES);
    o.dataset = helio_dataset_batch(helio_dataset_repeat(shuffled, -1), BATCH);
    o.steps_per_epoch = t->steps_per_epoch;
  } else {
    o.x = all_x, o.y = all_y, o.batch_size = BATCH;
  }
  helio_history *history = helio_fit_with(&o);
  CHILD_CHECK(history && read_weights(model, t->normalizes, t->result));
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

static bool has_checkpoint(const char *folder) {
  bool found = false;
  DIR *open = opendir(folder);
  assert_non_null(open);
  for (struct dirent *entry; (entry = readdir(open));) found |= strncmp(entry->d_name, "checkpoint-", 11) == 0;
  closedir(open);
  return found;
}

/* Was it in the midst of a training that had written something to go on from? One that holds is: the time begins when
 * it has. */
static bool kill_once(training *t, unsigned long microseconds) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    _exit(train(t) ? 0 : 1);
  }
  assert_true(child > 0);
  for (int i = 0; t->hold_at && !has_checkpoint(t->folder) && i < 100000; i++) usleep(1000);
  usleep((useconds_t)microseconds);
  kill(child, SIGKILL);
  int status;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFSIGNALED(status) && has_checkpoint(t->folder);
}

static void a_killed_training_goes_on_to_the_bit(void **state) {
  (void)state;
  char folder[64];
  const char *given = getenv("HELIO_TEST_KILLS");
  int kills = given ? atoi(given) : 10, rounds = 0, hits = 0;
  uint64_t seed = 7;
  outcome *found = shared();
  make_folder(folder);
  training t = {.folder = folder, .replicas = 1, .epochs = EPOCHS, .pause = SANITIZED ? 5000 : 1000, .result = found};
  for (int i = 0; i < kills; i++) {
    t.hold_at = i % 5 == 0 ? 20 : 0; /* so that there is one such in each round, however quick or slow the machine is */
    hits += kill_once(&t, (t.hold_at ? 0 : 20000) + next_random(&seed) % (SANITIZED ? 1500000 : 150000));
    if (i % 5 != 4 && i < kills - 1) continue; /* five times killed, then let come to its end */
    t.hold_at = 0;
    run(&t);
    assert_equal(found, expected());
    remove_folder(folder);
    make_folder(folder);
    t.folder = folder;
    rounds++;
  }
  remove_folder(folder);
  printf("%d kills, %d of them behind a checkpoint, %d trainings\n", kills, hits, rounds);
  assert_true(hits >= rounds);
}

/* ---- other replicas ---- */

static void other_numbers_of_replicas(void **state) {
  (void)state;
  static const int from_to[][2] = {{1, 3}, {4, 2}};
  for (size_t i = 0; i < COUNT_OF(from_to); i++) {
    char folder[64];
    outcome *found = shared();
    make_folder(folder);
    run(&(training){.folder = folder,
                    .replicas = from_to[i][0],
                    .epochs = EPOCHS,
                    .raise_at = 29,
                    .signals = {SIGINT},
                    .result = found});
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
  run(&(training){
      .folder = folder, .replicas = 1, .epochs = EPOCHS, .raise_at = 13, .signals = {SIGINT}, .result = found});
  assert_int_equal(found->signal, SIGINT);
  run(&(training){
      .folder = folder, .replicas = 1, .epochs = EPOCHS, .raise_at = 14, .signals = {SIGTERM}, .result = found});
  assert_int_equal(found->signal, SIGTERM);
  run(&(training){
      .folder = folder, .replicas = 1, .epochs = EPOCHS, .raise_at = 15, .signals = {SIGHUP}, .result = found});
  assert_int_equal(found->signal, SIGHUP);
  run(&(training){.folder = folder, .replicas = 1, .epochs = EPOCHS, .result = found});
  assert_equal(found, expected());
  remove_folder(folder);
}

/* Also the last one, behind which there is no step. */
static void a_signal_in_validation_is_not_lost(void **state) {
  (void)state;
  static const int steps[] = {16, EPOCHS * 8};
  for (size_t i = 0; i < COUNT_OF(steps); i++) {
    char folder[64];
    outcome *found = shared();
    make_folder(folder);
    run(&(training){.folder = folder,
                    .replicas = 1,
                    .epochs = EPOCHS,
                    .raise_at = steps[i],
                    .in_validation = true,
                    .signals = {SIGTERM},
                    .result = found});
    assert_int_equal(found->signal, SIGTERM);
    assert_int_equal(found->epochs, steps[i] / 8); /* no step was taken after it */
    run(&(training){.folder = folder, .replicas = 1, .epochs = EPOCHS, .result = found});
    assert_int_equal(found->signal, 0);
    assert_equal(found, expected());
    remove_folder(folder);
  }
}

static void a_second_signal_ends_at_once(void **state) {
  (void)state;
  static const int signals[][3] = {{SIGINT, SIGINT}, {SIGINT, SIGTERM, SIGINT}};
  for (size_t i = 0; i < COUNT_OF(signals); i++) {
    char folder[64];
    outcome *found = shared();
    make_folder(folder);
    training t = {.folder = folder, .replicas = 1, .epochs = EPOCHS, .raise_at = 13, .result = found};
    memcpy(t.signals, signals[i], sizeof t.signals);
    int status = run_in_child(train, &t);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    run(&(training){.folder = folder, .replicas = 1, .epochs = EPOCHS, .result = found});
    assert_equal(found, expected());
    remove_folder(folder);
  }
}

/* Such as those of a job in the background. */
static bool train_deaf(void *argument) {
  signal(SIGINT, SIG_IGN);
  return train(argument);
}

static void an_ignored_signal_stays_ignored(void **state) {
  (void)state;
  char folder[64];
  outcome *found = shared();
  make_folder(folder);
  training t = {
      .folder = folder, .replicas = 1, .epochs = EPOCHS, .raise_at = 13, .signals = {SIGINT, SIGINT}, .result = found};
  assert_int_equal(run_in_child(train_deaf, &t), 0);
  assert_int_equal(found->signal, 0);
  assert_equal(found, expected());
  remove_folder(folder);
}

/* ---- in the midst of things ---- */

/* Of gradients that are gathered, and of an iteration that lasts longer than an epoch. */
static void other_ways_to_train_go_on_to_the_bit(void **state) {
  (void)state;
  static const int ways[][2] = {{3, 0}, {0, 5}, {4, 5}};
  for (size_t i = 0; i < COUNT_OF(ways); i++) {
    char folder[64];
    outcome *whole = shared(), *found = shared();
    training t = {
        .replicas = 1, .epochs = EPOCHS, .accumulate = ways[i][0], .steps_per_epoch = ways[i][1], .result = whole};
    run(&t);
    make_folder(folder);
    t.folder = folder, t.result = found;
    for (int at = 7; at < 50; at += 6) {
      t.raise_at = at, t.signals[0] = SIGINT;
      run(&t);
    }
    t.raise_at = 0;
    run(&t);
    assert_equal(found, whole);
    remove_folder(folder);
  }
}

/* As many replicas go on with the statistics of each, others with what they are together. */
static void statistics_of_replicas_go_on_to_the_bit(void **state) {
  (void)state;
  char folder[64];
  outcome *whole = shared(), *found = shared();
  training t = {.replicas = 2, .epochs = 4, .normalizes = true, .result = whole};
  run(&t);
  make_folder(folder);
  t.folder = folder, t.result = found;
  for (int at = 3; at < 32; at += 9) {
    t.raise_at = at, t.signals[0] = SIGINT;
    run(&t);
    assert_int_equal(found->signal, SIGINT);
  }
  t.raise_at = 0;
  run(&t);
  assert_equal(found, whole);
  t.replicas = 3, t.epochs = 5;
  run(&t);
  assert_int_equal(found->epochs, 5);
  remove_folder(folder);
}

/* A rate that each epoch changes is changed once, whenever the training goes on. */
static double smaller(void *user, int epoch, double rate) {
  (void)user, (void)epoch;
  return 0.8 * rate;
}

typedef struct rerun {
  const char *folder;
  int64_t batch;
  int epochs, stop_at; /* behind so many steps; 0: none */
  bool sgd, bad;       /* another optimizer; data that have NaN */
  helio_callback *callback;
} rerun;

static helio_status stop_behind(void *user, helio_training *t) {
  const rerun *r = user;
  if (t->total_steps == r->stop_at) raise(SIGINT);
  return HELIO_OK;
}

/* In this process; NULL with the error set if it is refused. */
static helio_history *rerun_with(helio_model *model, const rerun *r) {
  static double x[SAMPLES * FEATURES];
  static int32_t y[SAMPLES];
  for (int i = 0; i < SAMPLES * FEATURES; i++) x[i] = r->bad ? NAN : sin(0.7 * i);
  for (int i = 0; i < SAMPLES; i++) y[i] = (i * 7 + i / 3) % CLASSES;
  if (r->sgd)
    helio_compile(model, .optimizer = helio_sgd(0.02), .loss_name = "sparse_categorical_crossentropy",
                  .metric_names = {"accuracy"});
  helio_array *all_x = helio_array_of(x, HELIO_SHAPE(SAMPLES, FEATURES), .type = HELIO_FLOAT64);
  helio_array *all_y = helio_array_of(y, HELIO_SHAPE(SAMPLES), .type = HELIO_INT32);
  return helio_fit(model, .x = all_x, .y = all_y, .batch_size = r->batch ? r->batch : BATCH, .epochs = r->epochs,
                   .checkpoint = r->folder, .resume = r->folder != NULL, .verbose = HELIO_QUIET,
                   .callbacks = {helio_callback(.user = (void *)r, .batch_end = stop_behind), r->callback});
}

static void start_for_reruns(char folder[64]) {
  make_folder(folder);
  wrap_devices("");
  assert_ok(helio_init());
}

static double first_weight(helio_model *model) {
  return helio_item(helio_sum(helio_value(helio_weights(model)->at[0])));
}

/* Interrupted, and gone on with in the same process, which has made other shuffles since. */
static void the_same_process_goes_on(void **state) {
  (void)state;
  char folder[64];
  start_for_reruns(folder);
  HELIO_DEVICE(device_name()) {
    helio_model *whole = make_model();
    rerun r = {.epochs = 3, .callback = helio_learning_rate_scheduler(smaller, NULL)};
    assert_made(rerun_with(whole, &r));
    helio_model *model = make_model(); /* sets the seed anew */
    r.folder = folder, r.stop_at = 11;
    helio_history *history = rerun_with(model, &r);
    assert_made(history);
    assert_int_equal(helio_history_signal(history), SIGINT);
    r.stop_at = 0;
    helio_model *other = make_model();
    assert_made(rerun_with(other, &(rerun){.epochs = 1}));
    helio_release(other);
    history = rerun_with(model, &r);
    assert_made(history);
    assert_int_equal(helio_history_epochs(history), 3);
    double rate = helio_optimizer_learning_rate(helio_model_optimizer(model));
    assert_true(fabs(rate - 0.02 * 0.8 * 0.8 * 0.8) < 1e-12);
    assert_true(first_weight(model) == first_weight(whole));
    helio_release(model);
    helio_release(whole);
  }
  remove_folder(folder);
}

/* Another batch size can follow behind an epoch, and not within; what is refused has changed nothing. */
static void another_batch_size(void **state) {
  (void)state;
  char folder[64];
  start_for_reruns(folder);
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_model();
    assert_made(rerun_with(model, &(rerun){.folder = folder, .epochs = 2, .stop_at = 3}));
    helio_model *fresh = make_model();
    double before = first_weight(fresh);
    assert_null(rerun_with(fresh, &(rerun){.folder = folder, .epochs = 2, .batch = 20}));
    expect_error(HELIO_INVALID_ARGUMENT, "the checkpoint is of step 3 of an epoch");
    assert_true(first_weight(fresh) == before);
    assert_made(rerun_with(fresh, &(rerun){.folder = folder, .epochs = 2}));
    helio_history *history = rerun_with(fresh, &(rerun){.folder = folder, .epochs = 4, .batch = 20});
    assert_made(history);
    assert_int_equal(helio_history_epochs(history), 4);
    assert_logged("WARNING:helio:the data are not those that the training was begun with", "");
    assert_null(rerun_with(fresh, &(rerun){.folder = folder, .epochs = 5, .sgd = true}));
    expect_error(HELIO_INVALID_ARGUMENT, "it was written by a training with nadam, and this is one with sgd");
    helio_release(fresh);
    helio_release(model);
  }
  remove_folder(folder);
}

/* A model of another name is another model, also if its variables are alike. Without a name it may be the same. */
static helio_model *make_named(const char *name) {
  helio_model *model = helio_sequential({helio_dense(CLASSES, .activation = HELIO_SOFTMAX)}, .name = name,
                                        .input_shape = HELIO_SHAPE(FEATURES), .type = HELIO_FLOAT64);
  helio_compile(model, .optimizer = helio_adam(), .loss_name = "sparse_categorical_crossentropy");
  return model;
}

static void another_model(void **state) {
  (void)state;
  char folder[64];
  start_for_reruns(folder);
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_named("first"), *other = make_named("second"), *nameless = make_named(NULL);
    assert_made(rerun_with(model, &(rerun){.folder = folder, .epochs = 1}));
    double before = first_weight(other);
    assert_null(rerun_with(other, &(rerun){.folder = folder, .epochs = 2}));
    expect_error(HELIO_INVALID_ARGUMENT, "it was written by a training of first, and this is one of second");
    assert_true(first_weight(other) == before);
    assert_made(rerun_with(nameless, &(rerun){.folder = folder, .epochs = 2}));
    assert_made(rerun_with(other, &(rerun){.folder = folder, .epochs = 3}));
    helio_release(nameless);
    helio_release(other);
    helio_release(model);
  }
  remove_folder(folder);
}

/* Keras writes the name that it has counted into an architecture: the next export of the same model has another. */
static void the_same_model_counted_anew(void **state) {
  (void)state;
  char folder[64];
  start_for_reruns(folder);
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_named("sequential"), *again = make_named("sequential_12");
    helio_model *mine = make_named("sequential_mine"), *yours = make_named("sequential_yours");
    assert_made(rerun_with(model, &(rerun){.folder = folder, .epochs = 1}));
    assert_made(rerun_with(again, &(rerun){.folder = folder, .epochs = 2}));
    assert_made(rerun_with(mine, &(rerun){.folder = folder, .epochs = 3}));
    assert_null(rerun_with(yours, &(rerun){.folder = folder, .epochs = 4}));
    expect_error(HELIO_INVALID_ARGUMENT, "a training of sequential_mine, and this is one of sequential_yours");
    helio_release(yours);
    helio_release(mine);
    helio_release(again);
    helio_release(model);
  }
  remove_folder(folder);
}

/* What has gone wrong takes no place of what was right. */
static void nothing_is_written_of_what_is_no_number(void **state) {
  (void)state;
  char folder[64];
  start_for_reruns(folder);
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_model();
    assert_made(rerun_with(model, &(rerun){.folder = folder, .epochs = 2}));
    for (int i = 0; i < 4; i++) {
      rerun r = {.folder = folder, .epochs = 3, .bad = true, .callback = helio_terminate_on_nan()};
      assert_made(rerun_with(model, &r));
    }
    assert_logged("WARNING:helio:the loss is ", "no checkpoint is written");
    helio_history *history = rerun_with(model, &(rerun){.folder = folder, .epochs = 3});
    assert_made(history);
    assert_true(isfinite(helio_history_value(history, "loss", 2)));
    helio_release(model);
  }
  remove_folder(folder);
}

static void a_stopped_training_stays_stopped(void **state) {
  (void)state;
  char folder[64];
  start_for_reruns(folder);
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_model();
    for (int i = 0; i < 3; i++) {
      rerun r = {.folder = folder, .epochs = 9};
      r.callback = helio_early_stopping(.monitor = "loss", .min_delta = 1e9, .patience = 2);
      helio_history *history = rerun_with(model, &r);
      assert_made(history);
      assert_int_equal(helio_history_epochs(history), 3);
    }
    helio_release(model);
  }
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
    CHILD_CHECK(helio_error_pending() == HELIO_WRONG_STATE &&
                strstr(helio_error_message(), "resume it (.resume, --resume)"));
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
  signal(SIGHUP, SIG_DFL);
  signal(SIGINT, SIG_DFL); /* a shell ignores it for what it runs beside itself, and what is ignored stays so */
  remember_environment();
  const struct CMUnitTest tests[] = {
      TEST(a_killed_training_goes_on_to_the_bit),
      TEST(other_numbers_of_replicas),
      TEST(a_signal_ends_behind_the_step),
      TEST(a_second_signal_ends_at_once),
      TEST(a_signal_in_validation_is_not_lost),
      TEST(an_ignored_signal_stays_ignored),
      TEST(other_ways_to_train_go_on_to_the_bit),
      TEST(statistics_of_replicas_go_on_to_the_bit),
      TEST(the_same_process_goes_on),
      TEST(another_batch_size),
      TEST(another_model),
      TEST(the_same_model_counted_anew),
      TEST(nothing_is_written_of_what_is_no_number),
      TEST(a_stopped_training_stays_stopped),
      TEST(a_damaged_checkpoint_is_passed_over),
      TEST(trainings_do_not_mix),
      TEST(a_stopped_training_goes_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
