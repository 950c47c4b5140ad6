/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies on emulated GPUs: parts of one card with memory of their own, cards of two vendors and the processor in
 * one training, and cards that are lost in the middle of a step. What is wanted of the emulator is settled when it
 * starts, so each of these is a child: this program with the name of a job, which is a cmocka test of its own. */
#include "child.h"
#include "counters.h"
#include "law.h"

static child_end end;

static const char *const vendors[] = {"cuda", "hip"};

/* ---- both sides ---- */

static const uint64_t MEGABYTE = 1 << 20;

enum { SEEDS = SANITIZED ? 1 : 3 }; /* of what depends on how streams take turns */

/* In f64 replicas give what one device gives, nearly to the bit; in f32 rounding moves weights. */
static const tolerances in_f32 = {.loss = 1e-5, .gradient = 1e-5, .weight = 1e-2, .mean = 1e-5, .accuracy = 0.02};
static const tolerances in_f64 = {.loss = 1e-9, .gradient = 1e-9, .weight = 1e-9, .mean = 1e-9, .accuracy = 0};

/* All backends and collectives, whichever are asked for. */
static void run_strategy_job(const char *backend, const char *settings, const char *options, const char *job) {
  char all[8 * PATH_MAX];
  const char *b = getenv("HELIO_TEST_BUILD");
  assert_non_null(b);
  snprintf(all, sizeof all,
           "HELIO_PLUGIN_PATH=%.500s/backends/cuda/.libs:%.500s/backends/hip/.libs:%.500s/backends/cpu/.libs:"
           "%.500s/collectives/nccl/.libs:%.500s/collectives/ring/.libs HELIO_BACKEND=%s HELIO_LOG=info %s",
           b, b, b, b, b, backend, settings);
  run_job(backend, all, options, job, &end);
}

/* ---- in a child: what the emulator has counted ---- */

static sim_counters counters_of(sim_vendor vendor, int index) {
  sim_counters counters = {0};
  read_counters(vendor, index, &counters);
  return counters;
}

static sim_vendor own_vendor(void) {
  return strcmp(getenv("HELIO_BACKEND"), "hip") == 0 ? SIM_HIP : SIM_CUDA;
}

/* ---- in a child: training ---- */

/* Copies of a weight are one; to rounding, where backends of several kinds add the numbers of a norm in orders of their
 * own. */
static void note_copies(const lesson *l, record *r, const trainer *t) {
  const helio_variables *variables = helio_trainable_variables(t->net.model);
  assert_made(variables);
  for (int i = 0; i < variables->count; i++) {
    double copy[MOST_NUMBERS], *own = r->weights + r->start[i];
    int count = r->start[i + 1] - r->start[i];
    read_numbers(helio_value(variables->at[i]), own, count);
    for (int k = 0; k < helio_variable_copies(variables->at[i]); k++) {
      read_numbers(helio_variable_copy(variables->at[i], k), copy, count);
      double error = error_of(copy, own, count);
      if (error > 0) print_message("copy %d of weight %d differs by %.1e\n", k, i, error);
      assert_close(l, "a copy of weight", i, error, l->place == MIRRORED ? 0 : l->type == HELIO_FLOAT64 ? 1e-12 : 1e-5);
    }
  }
}

typedef void step_function(helio_strategy *strategy, trainer *t, helio_distributed_iterator *batches, record *r);

/* Ten of them. */
static void take_steps(helio_strategy *strategy, const lesson *l, step_function *step, record *r) {
  trainer t;
  assert_made(strategy);
  memset(r, 0, sizeof *r);
  HELIO_POOL {
    HELIO_SCOPE(strategy) make_trainer(&t, l, l->way);
    helio_distributed_iterator *batches = helio_iterate_distributed(helio_distribute(strategy, make_samples(l)));
    assert_made(batches);
    for (; t.step < STEPS; t.step++) {
      HELIO_POOL step(strategy, &t, batches, r);
    }
    assert_null(helio_next_values(batches));
    assert_ok(helio_error_pending());
    note_copies(l, r, &t);
    helio_release(t.net.model);
  }
}

/* What one processor gives. */
static void train_on_cpu(const lesson *l, record *r) {
  HELIO_DEVICE("cpu:0") train_plainly(l, r);
}

/* ---- two parts of one card ---- */

static void expect_no_room(const char *device, uint64_t bytes) {
  helio_tensor *large = NULL;
  HELIO_DEVICE(device) large = helio_fill(HELIO_SHAPE((int64_t)(bytes / sizeof(float))), 0);
  assert_null(large);
  printf("no room: %s\n", helio_error_message());
  expect_error(HELIO_OUT_OF_MEMORY, "out of memory on ");
}

static void job_parts(void **state) {
  const lesson l = {IMAGES, SEQUENTIAL, ADAM, HELIO_FLOAT64, 7, 2, false, 0, NULL, MIRRORED};
  record expected, found;
  helio_memory memory;
  (void)state;
  train_on_cpu(&l, &expected);
  for (int i = 0; i < 2; i++) {
    HELIO_POOL {
      helio_strategy *strategy = helio_mirrored(.devices = {"gpu:0", "gpu:1"});
      assert_made(strategy);
      assert_string_equal(helio_strategy_collective(strategy), "reduce-to-one");
      take_steps(strategy, &l, step_by_replicas, &found);
      assert_law(&l, &found, &expected, &in_f64);
    }
    /* more than a part has, though the card has it; the second round is trained behind that */
    for (int k = 0; k < 2; k++) {
      expect_no_room(k ? "gpu:1" : "gpu:0", 1100 * MEGABYTE);
      assert_ok(helio_memory_info(k ? "gpu:1" : "gpu:0", &memory));
      assert_int_equal(memory.limit, 1024 * MEGABYTE);
    }
  }
  assert_in_range(counters_of(own_vendor(), 0).memory_peak, 1, 2048 * MEGABYTE);
}

static void test_parts(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    char options[60];
    snprintf(options, sizeof options, "--%s 1 --memory 4G", vendors[i]);
    run_strategy_job(vendors[i], "HELIO_LOGICAL_DEVICES=gpu:0=1024M,1024M", options, "parts");
    assert_ended(end, 0);
    assert_says(end,
                i ? "rccl: RCCL is not supported when using virtual GPUs, falling back to reduction to one device"
                  : "nccl: NCCL is not supported when using virtual GPUs, falling back to reduction to one device");
    assert_says(end, "limit 1.0 GiB");
  }
}

/* ---- memory ---- */

static void fill_and_tell(const char *device, const char *what, double megabytes) {
  helio_tensor *filled = NULL;
  HELIO_DEVICE(device) filled = helio_fill(HELIO_SHAPE((int64_t)(megabytes * 1048576 / sizeof(float))), 5);
  if (filled) {
    helio_synchronize(device);
    printf("%s: %llu bytes\n", what, (unsigned long long)counters_of(own_vendor(), 0).memory_used);
  } else {
    printf("%s: %s: %s\n", what, helio_status_name(helio_error_pending()), helio_error_message());
    helio_error_take(NULL);
  }
}

/* A little and much on the first GPU, a little on the second if there is one, more than there may be, and a sum. */
static void job_memory(void **state) {
  int count;
  (void)state;
  assert_made(helio_logical_devices("GPU", &count));
  HELIO_POOL {
    fill_and_tell("gpu:0", "little", 0.001);
    fill_and_tell("gpu:0", "much", 96);
    if (count > 1) fill_and_tell("gpu:1", "other", 0.001);
    fill_and_tell("gpu:0", "too much", atof(getenv("HELIO_TEST_MEGABYTES")));
    fill_and_tell("gpu:0", "goes on", 1);
    HELIO_DEVICE("gpu:0") {
      assert_true(helio_item(helio_sum(helio_fill(HELIO_SHAPE(100), 3))) == 300);
    }
  }
}

/* What the child has told of its fill, in megabytes. */
static double told_megabytes(const char *what) {
  char begin[40];
  unsigned long long bytes = 0;
  snprintf(begin, sizeof begin, "\n%s: ", what);
  const char *line = strstr(end.output, begin);
  if (!line || sscanf(line + strlen(begin), "%llu bytes", &bytes) != 1) fail_msg("no %s in: %s", what, end.output);
  return (double)bytes / 1048576;
}

/* Of a card: what is taken for a little, for 96 MB, and for a little of another part; from … to. */
typedef struct memory_case {
  const char *card, *settings;
  double little[2], much[2], other[2];
  int too_much;
  const char *error;
} memory_case;

static const memory_case memory_cases[] = {
    {"1G", "HELIO_MEMORY_GROWTH=1", {0.001, 64}, {96, 200}, {0}, 1000, "limit none"},
    {"1G", "HELIO_MEMORY_GROWTH=0", {900, 1024}, {900, 1024}, {0}, 1000, "limit "},
    {"1G", "HELIO_MEMORY_LIMIT=256M", {0.001, 64}, {96, 256}, {0}, 200, "limit 256.0 MiB"},
    {"1G", "HELIO_MEMORY_LIMIT=256M HELIO_MEMORY_GROWTH=0", {255, 256}, {255, 256}, {0}, 200, "limit 256.0 MiB"},
    {"1G", "HELIO_MEMORY_FRACTION=0.4", {0.001, 64}, {96, 409.6}, {0}, 400, "limit 409.6 MiB"},
    {"1G", "HELIO_MEMORY_FRACTION=0.4 HELIO_MEMORY_GROWTH=0", {409, 409.6}, {409, 409.6}, {0}, 400, "limit 409.6 MiB"},
    {"1G",
     "HELIO_MEMORY_FRACTION=0.4 HELIO_MEMORY_GROWTH=0 HELIO_LOGICAL_DEVICES=gpu:0=2",
     {204, 204.8},
     {204, 204.8},
     {409, 409.6},
     200,
     "limit 204.8 MiB"},
    {"4G",
     "HELIO_MEMORY_GROWTH=0 HELIO_LOGICAL_DEVICES=gpu:0=1024M,1024M",
     {1023, 1024},
     {1023, 1024},
     {2047, 2048},
     1000,
     "limit 1.0 GiB"},
};

static void expect_between(const char *what, const double range[2], const memory_case *c) {
  double told = told_megabytes(what);
  if (told < range[0] || told > range[1])
    fail_msg("%s: %g MB for %s, not %g to %g", c->settings, told, what, range[0], range[1]);
}

static void test_memory(void **state) {
  (void)state;
  for (size_t i = 0; i < 2 * COUNT_OF(memory_cases); i++) {
    const memory_case *c = &memory_cases[i / 2];
    char settings[300], options[60];
    snprintf(settings, sizeof settings, "%s HELIO_TEST_MEGABYTES=%d", c->settings, c->too_much);
    snprintf(options, sizeof options, "--%s 1 --memory %s", vendors[i % 2], c->card);
    run_strategy_job(vendors[i % 2], settings, options, "memory");
    assert_ended(end, 0);
    expect_between("little", c->little, c);
    expect_between("much", c->much, c);
    if (c->other[1] > 0) expect_between("other", c->other, c);
    assert_says(end, "too much: HELIO_OUT_OF_MEMORY: out of memory on ");
    assert_says(end, c->error);
    assert_true(told_megabytes("goes on") <= (c->other[1] > 0 ? c->other[1] : c->much[1]));
  }
}

/* ---- two vendors and the processor ---- */

static void job_mixed(void **state) {
  static const char *const devices[] = {"cuda:0", "hip:0", "cpu:0"};
  static const double weights[] = {3, 2, 1};
  static const lesson lessons[] = {
      {IMAGES, SEQUENTIAL, ADAM, HELIO_FLOAT64, 12, 3, true, 0, "reduce-to-one", MIXED},
      {WORDS, FUNCTIONAL, MOMENTUM, HELIO_FLOAT64, 7, 3, true, 0, "reduce-to-one", MIXED},
      {REGULARIZED, OWN, CLIPPED, HELIO_FLOAT64, 10, 3, true, 0, "reduce-to-one", MIXED},
      {NORMALIZED, LATE, ACCUMULATED, HELIO_FLOAT64, 12, 3, true, 0, "reduce-to-one", MIXED},
  };
  record expected, found;
  (void)state;
  for (size_t i = 0; i < 2 * COUNT_OF(lessons); i++) {
    lesson l = lessons[i / 2];
    if (i % 2) l.type = HELIO_FLOAT32;
    HELIO_POOL {
      train_on_cpu(&l, &expected);
      helio_strategy *strategy = mirrored_on(devices, 3, weights, l.collective);
      take_steps(strategy, &l, step_by_replicas, &found);
      assert_int_equal(helio_num_replicas(strategy), 3);
      assert_law(&l, &found, &expected, i % 2 ? &in_f32 : &in_f64);
    }
  }
}

static void test_mixed(void **state) {
  (void)state;
  for (int seed = 1; seed <= 2; seed++) {
    char options[60];
    snprintf(options, sizeof options, "--cuda 1 --hip 1 --seed %d", seed);
    run_strategy_job("cuda,hip", "", options, "mixed");
    assert_ended(end, 0);
  }
}

/* ---- lost devices ---- */

/* Of each device, so that a test knows when to lose one: "step 3: cuda:1 launch 240 copy 80". */
static void tell_counts(int step) {
  for (int i = 0; i < 6; i++) {
    sim_counters c = counters_of(i < 3 ? SIM_CUDA : SIM_HIP, i % 3);
    printf("step %d: %s:%d launch %llu copy %llu\n", step, i < 3 ? "cuda" : "hip", i % 3,
           (unsigned long long)c.occasions[SIM_LAUNCH], (unsigned long long)c.occasions[SIM_COPY]);
  }
}

/* A call that failed because a device did left the strategy without it, and nothing else is wrong. */
static void go_on(helio_strategy *strategy) {
  helio_retry(strategy, NULL);
  assert_ok(helio_error_pending());
}

/* Over and over until it was taken. Its loss is not a number if a device was lost behind it. */
static void step_through_losses(helio_strategy *strategy, trainer *t, helio_distributed_iterator *batches, record *r) {
  helio_values *batch = helio_next_values(batches), *results;
  while (!batch && helio_retry(strategy, NULL)) batch = helio_next_values(batches);
  assert_made(batch);
  do {
    results = helio_run(strategy, train_step, t, batch);
  } while (!results && helio_retry(strategy, &batch));
  assert_ok(helio_error_pending());
  helio_tensor *loss = results ? helio_reduce(strategy, HELIO_SUM, helio_values_part(results, 0)) : NULL;
  r->losses[t->step] = loss ? helio_item(loss) : NAN;
  if (helio_error_pending()) {
    r->losses[t->step] = NAN;
    go_on(strategy);
  }
  if (t->step == 0) note_variables(r, t);
  tell_counts(t->step);
}

/* All weights, and the losses that were not lost. */
static void assert_same_weights(const lesson *l, const record *found, const record *expected) {
  int known = 0;
  for (int i = 0; i < expected->variables; i++) {
    int start = expected->start[i], count = expected->start[i + 1] - start;
    assert_close(l, "weight", i, error_of(found->weights + start, expected->weights + start, count), in_f64.weight);
  }
  for (int i = 0; i < STEPS; i++) {
    if (isnan(found->losses[i])) continue;
    assert_close(l, "loss", i, error_of(&found->losses[i], &expected->losses[i], 1), in_f64.loss);
    known++;
  }
  assert_true(known >= STEPS - 1);
}

/* On three devices, HELIO_TEST_DEVICES with commas between them. */
static void job_lose(void **state) {
  char names[3][20];
  const char *devices[] = {names[0], names[1], names[2]};
  lesson l = {IMAGES, SEQUENTIAL, ADAM, HELIO_FLOAT64, 12, 3, false, 0, getenv("HELIO_COLLECTIVE"), MIXED};
  record expected, found;
  (void)state;
  assert_int_equal(sscanf(getenv("HELIO_TEST_DEVICES"), "%19[^,],%19[^,],%19s", names[0], names[1], names[2]), 3);
  if (!strstr(getenv("HELIO_TEST_DEVICES"), "cpu")) l.place = MIRRORED;
  train_on_cpu(&l, &expected);
  HELIO_POOL {
    helio_strategy *strategy = mirrored_on(devices, 3, NULL, l.collective);
    take_steps(strategy, &l, step_through_losses, &found);
    printf("%d replicas are left\n", helio_num_replicas(strategy));
  }
  assert_same_weights(&l, &found, &expected);
}

typedef struct loss_case {
  const char *backends, *gpus, *devices, *collective, *lost;
} loss_case;

static const loss_case loss_cases[] = {
    {"cuda", "--cuda 3", "cuda:0,cuda:1,cuda:2", "nccl", "cuda:1"},
    {"cuda", "--cuda 3", "cuda:0,cuda:1,cuda:2", "reduce-to-one", "cuda:0"},
    {"hip", "--hip 3", "hip:0,hip:1,hip:2", "rccl", "hip:2"},
    {"cuda,hip", "--cuda 1 --hip 1", "cuda:0,hip:0,cpu:0", "reduce-to-one", "hip:0"},
    {"cuda,hip", "--cuda 1 --hip 1", "cuda:0,hip:0,cpu:0", "reduce-to-one", "cuda:0"},
};

static void run_loss(const loss_case *c, const char *fault) {
  char settings[200], options[200];
  snprintf(settings, sizeof settings, "HELIO_TEST_DEVICES=%s HELIO_COLLECTIVE=%s HELIO_LOG=warning", c->devices,
           c->collective);
  snprintf(options, sizeof options, "%s%s%s", c->gpus, fault[0] ? " --fault " : "", fault);
  run_strategy_job(c->backends, settings, options, "lose");
  assert_ended(end, 0);
}

/* How many there were at the end of a step. */
static int told_count(const loss_case *c, int step, bool copies) {
  char begin[60];
  int launches, copied;
  snprintf(begin, sizeof begin, "step %d: %s launch ", step, c->lost);
  const char *line = strstr(end.output, begin);
  if (!line || sscanf(line + strlen(begin), "%d copy %d", &launches, &copied) != 2)
    fail_msg("no \"%s\" in: %s", begin, end.output);
  return copies ? copied : launches;
}

/* At several places of a step in the middle of a training. */
static void check_losses(const loss_case *c) {
  enum { STEP = 4, PLACES = 3 };
  int first[2], last[2];
  run_loss(c, "");
  assert_says(end, "3 replicas are left");
  for (int copies = 0; copies < 2; copies++) {
    first[copies] = told_count(c, STEP - 1, copies) + 1;
    last[copies] = told_count(c, STEP, copies);
    assert_true(last[copies] - first[copies] >= PLACES);
  }
  for (int i = 0; i < 2 * PLACES; i++) {
    bool copies = i % 2;
    int number = first[copies] + (last[copies] - first[copies]) * (i / 2) / (PLACES - 1);
    char fault[60];
    snprintf(fault, sizeof fault, "lost:%s:%d@%s", copies ? "copy" : "launch", number, c->lost);
    run_loss(c, fault);
    if (!strstr(end.output, "2 replicas are left")) fail_msg("%s: %s", fault, end.output);
    assert_says(end, "lost replica ");
  }
}

static void test_losses(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(loss_cases); i++) check_losses(&loss_cases[i]);
}

/* ---- communicators that cannot be made for all ranks ---- */

/* The first group cannot be made, the next can; what is left of the first gpusim would tell at the end. By itself
 * another collective takes its place, but for none that was named. */
static void job_unmade(void **state) {
  const char *named = getenv("HELIO_TEST_NAMED");
  (void)state;
  HELIO_POOL {
    if (*named) {
      assert_null(helio_mirrored(.devices = {"gpu:0", "gpu:1", "gpu:2"}, .collective = named));
      printf("%s: %s\n", helio_status_name(helio_error_pending()), helio_error_message());
      helio_error_take(NULL);
    } else {
      helio_strategy *second = helio_mirrored(.devices = {"gpu:0", "gpu:1", "gpu:2"});
      assert_made(second);
      printf("first %s for %s", helio_strategy_collective(second), helio_strategy_fallbacks(second));
    }
    helio_strategy *strategy = helio_mirrored(.devices = {"gpu:0", "gpu:1", "gpu:2"});
    assert_made(strategy);
    printf("then %s\n", helio_strategy_collective(strategy));
  }
}

/* The library's text speaks of memory, its code does not: any text may be an older one. */
static void test_communicators_that_cannot_be_made(void **state) {
  static const char *const ways[][2] = {{"cuda", "nccl"}, {"hip", "rccl"}};
  (void)state;
  for (size_t i = 0; i < 2 * COUNT_OF(ways); i++) {
    const char *backend = ways[i / 2][0], *collective = ways[i / 2][1];
    bool named = i % 2;
    char options[60], setting[40], first[40], then[20];
    snprintf(options, sizeof options, "--%s 3 --fault communicator:1@2", backend);
    snprintf(setting, sizeof setting, "HELIO_TEST_NAMED=%s", named ? collective : "");
    snprintf(first, sizeof first, named ? "HELIO_NOT_SUPPORTED: " : "first ring for %s: ", collective);
    snprintf(then, sizeof then, "then %s", collective);
    run_strategy_job(backend, setting, options, "unmade");
    assert_ended(end, 0);
    assert_says(end, first);
    assert_says(end, "unhandled cuda error (gpusim) (its last message: out of memory: device 2");
    if (!named) assert_says(end, "; ring takes its place");
    assert_says(end, then);
  }
}

/* ---- graphics of a processor beside cards ---- */

static void job_all(void **state) {
  int count = 0;
  (void)state;
  HELIO_POOL {
    const helio_device *const *devices = helio_physical_devices("GPU", &count);
    for (int i = 0; i < count; i++) {
      bool integrated = false;
      for (const char *const *fact = devices[i]->properties; *fact; fact++)
        integrated |= strcmp(*fact, "integrated=yes") == 0;
      printf("GPU:%d is %s:%d%s\n", i, devices[i]->backend, devices[i]->backend_index,
             integrated ? ", integrated" : "");
    }
    helio_strategy *strategy = helio_mirrored();
    assert_made(strategy);
    for (int i = 0; i < helio_num_replicas(strategy); i++)
      printf("%s|", strrchr(helio_strategy_device(strategy, i), '/'));
    printf("\n");
  }
}

static void test_graphics_of_a_processor(void **state) {
  (void)state;
  run_strategy_job("cuda,hip", "", "--hip 3 --cuda 1 --integrated 0", "all");
  assert_ended(end, 0);
  assert_says(end, "GPU:0 is cuda:0, integrated\nGPU:1 is hip:0\nGPU:2 is hip:1\nGPU:3 is hip:2, integrated\n");
  run_strategy_job("hip", "", "--hip 3 --integrated 0", "all");
  assert_ended(end, 0);
  assert_says(end, "GPU:0 is hip:0\nGPU:1 is hip:1\nGPU:2 is hip:2, integrated\n");
  assert_says(end, "/device:GPU:2 (gpusim");
  assert_says(end, "is left out, because it is a part of the processor; it can be named");
  assert_says(end, "/device:GPU:0|/device:GPU:1|\n");
  run_strategy_job("cuda", "", "--cuda 1 --integrated 0", "all"); /* there is no other */
  assert_ended(end, 0);
  assert_says(end, "/device:GPU:0|\n");
}

/* ---- a failure of the last step, which nobody waits for with HELIO_STOP ---- */

static helio_status look(const char *where, helio_strategy *strategy, trainer *t, helio_values *results,
                         helio_values *batch) {
  float numbers[MOST_NUMBERS];
  if (strcmp(where, "weight") == 0) {
    const helio_variables *variables = helio_trainable_variables(t->net.model);
    helio_tensor *value = helio_value(variables->at[0]);
    helio_tensor_read(value, numbers, (size_t)helio_tensor_elements(value) * sizeof(float));
  } else if (strcmp(where, "loss") == 0) {
    helio_item(helio_reduce(strategy, HELIO_SUM, helio_values_part(results, 0)));
  } else if (strcmp(where, "synchronize") == 0) {
    helio_synchronize(NULL);
  } else if (strcmp(where, "run") == 0) {
    helio_run(strategy, train_step, t, batch);
  }
  return helio_error_pending();
}

/* Some steps whose results are looked at only behind the last one, where HELIO_TEST_LOOK says. */
static void job_last(void **state) {
  enum { STEPS_TAKEN = 3 };
  const char *where = getenv("HELIO_TEST_LOOK");
  const lesson l = {IMAGES, SEQUENTIAL, ADAM, HELIO_FLOAT32, 12, 3, false, 0, NULL, MIRRORED};
  trainer t;
  (void)state;
  HELIO_POOL {
    helio_strategy *strategy = helio_mirrored(.devices = {"gpu:0", "gpu:1", "gpu:2"}, .on_failure = HELIO_STOP);
    assert_made(strategy);
    HELIO_SCOPE(strategy) make_trainer(&t, &l, l.way);
    helio_distributed_iterator *batches = helio_iterate_distributed(helio_distribute(strategy, make_samples(&l)));
    helio_values *batch = NULL, *results = NULL;
    for (; t.step < STEPS_TAKEN; t.step++) {
      batch = helio_next_values(batches);
      results = helio_run(strategy, train_step, &t, batch);
      if (!results) break;
    }
    printf("%d steps, %llu collectives\n", t.step,
           (unsigned long long)counters_of(own_vendor(), 1).occasions[SIM_COLLECTIVE]);
    for (int i = 0; results && i < 2; i++) { /* whoever looks again is told again */
      helio_status status = look(where, strategy, &t, results, batch);
      printf("%s: %s: %s\n", where, helio_status_name(status), helio_error_message());
      helio_error_take(NULL);
    }
    if (!results) printf("in the step: %s\n", helio_error_message());
    helio_error_take(NULL);
    helio_release(t.net.model);
  }
}

static void run_last(const char *backend, const char *where, int seed, unsigned long long failing) {
  char settings[100], options[100], fault[60] = "";
  snprintf(settings, sizeof settings, "HELIO_TEST_LOOK=%s", where);
  if (failing) snprintf(fault, sizeof fault, " --fault collective:%llu@1", failing);
  snprintf(options, sizeof options, "--%s 3 --seed %d%s", backend, seed, fault);
  run_strategy_job(backend, settings, options, "last");
  assert_ended(end, 0);
}

/* The step may notice it by itself, if it is quick; else whoever looks at what it left behind is told, each time. At
 * the release only the log is left. */
static void check_last(const char *backend, const char *where, unsigned long long last, int *unnoticed) {
  static const char cause[] = "the device of rank 1 failed in a collective";
  char told[60], log[] = "ERROR:helio:";
  snprintf(told, sizeof told, "\n%s: HELIO_", where);
  for (int seed = 1; seed <= SEEDS; seed++) {
    run_last(backend, where, seed, last);
    if (!strstr(end.output, "3 steps, ")) {
      assert_says(end, "2 steps, ");
      assert_says(end, "in the step: replica 1: ");
      assert_says(end, cause);
      continue;
    }
    assert_says(end, cause); /* also where the next step's own call of the library was told first */
    (*unnoticed)++;
    const char *first = strstr(end.output, told), *second = first ? strstr(first + 1, told) : NULL;
    assert_true(first && second);
    bool released = strcmp(where, "release") == 0;
    if (released != (strncmp(first + strlen(told), "OK", 2) == 0)) fail_msg("%s", end.output);
    if (!released && strcmp(where, "run") && strncmp(second + strlen(told), "OK", 2) == 0) fail_msg("%s", end.output);
    if (released) assert_says(end, log);
  }
}

static void test_the_last_step_of_all(void **state) {
  static const char *const places[] = {"weight", "loss", "synchronize", "run", "release"};
  (void)state;
  for (size_t v = 0; v < COUNT_OF(vendors); v++) {
    unsigned long long last = 0;
    int unnoticed = 0;
    run_last(vendors[v], "weight", 1, 0);
    const char *line = strstr(end.output, "3 steps, ");
    if (!line || sscanf(line, "3 steps, %llu", &last) != 1) fail_msg("%s", end.output);
    assert_says(end, "weight: HELIO_OK");
    for (size_t i = 0; i < COUNT_OF(places); i++) check_last(vendors[v], places[i], last, &unnoticed);
    assert_true(SEEDS == 1 || unnoticed > 0); /* else this has shown nothing */
  }
}

/* A step whose collective failed, and others behind it that nobody waits for: it may be their calls of the library that
 * are told first, and it is the same failure. */
static void test_steps_behind_a_failure(void **state) {
  (void)state;
  for (size_t v = 0; v < COUNT_OF(vendors); v++) {
    for (int seed = 1; seed <= SEEDS; seed++) {
      run_last(vendors[v], "run", seed, 1);
      assert_says(end, "the device of rank 1 failed in a collective");
    }
  }
}

/* ---- a step that the program refuses while those before it are under way ---- */

/* One replica takes no part, so that the sums of the others come to nothing. */
static helio_status refuse(void *argument, const helio_element *inputs, helio_element *outputs) {
  return helio_replica_context()->id == 1 ? HELIO_INVALID_ARGUMENT : train_step(argument, inputs, outputs);
}

/* The weights behind some steps that nobody has waited for. */
static void train_and_note(const lesson *l, bool refused, record *r) {
  enum { STEPS_TAKEN = 3 };
  trainer t;
  HELIO_POOL {
    helio_strategy *strategy = helio_mirrored(.devices = {"gpu:0", "gpu:1", "gpu:2"}, .on_failure = HELIO_STOP);
    assert_made(strategy);
    HELIO_SCOPE(strategy) make_trainer(&t, l, l->way);
    helio_distributed_iterator *batches = helio_iterate_distributed(helio_distribute(strategy, make_samples(l)));
    for (; t.step < STEPS_TAKEN; t.step++) assert_made(helio_run(strategy, train_step, &t, helio_next_values(batches)));
    if (refused) {
      assert_null(helio_run(strategy, refuse, &t, helio_next_values(batches)));
      expect_error(HELIO_INVALID_ARGUMENT, "the step returned");
    }
    note_variables(r, &t);
    note_copies(l, r, &t);
    helio_release(t.net.model);
  }
}

static void job_refuse(void **state) {
  const lesson l = {IMAGES, SEQUENTIAL, ADAM, HELIO_FLOAT32, 12, 3, false, 0, NULL, MIRRORED};
  record expected = {0}, found = {0};
  (void)state;
  train_and_note(&l, false, &expected);
  train_and_note(&l, true, &found);
  assert_memory_equal(&found, &expected, sizeof found);
}

static void test_a_refused_step(void **state) {
  (void)state;
  for (size_t v = 0; v < COUNT_OF(vendors); v++) {
    for (int seed = 1; seed <= SEEDS; seed++) {
      char options[60];
      snprintf(options, sizeof options, "--%s 3 --seed %d", vendors[v], seed);
      run_strategy_job(vendors[v], "", options, "refuse");
      assert_ended(end, 0);
    }
  }
}

int main(int argc, char **argv) {
  static const struct CMUnitTest jobs[] = {
      {"parts", job_parts, NULL, NULL, NULL},   {"memory", job_memory, NULL, NULL, NULL},
      {"mixed", job_mixed, NULL, NULL, NULL},   {"lose", job_lose, NULL, NULL, NULL},
      {"unmade", job_unmade, NULL, NULL, NULL}, {"last", job_last, NULL, NULL, NULL},
      {"refuse", job_refuse, NULL, NULL, NULL}, {"all", job_all, NULL, NULL, NULL},
  };
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_parts),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_mixed),
      cmocka_unit_test(test_communicators_that_cannot_be_made),
      cmocka_unit_test(test_graphics_of_a_processor),
      cmocka_unit_test(test_the_last_step_of_all),
      cmocka_unit_test(test_steps_behind_a_failure),
      cmocka_unit_test(test_a_refused_step),
      cmocka_unit_test(test_losses),
  };
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (size_t i = 0; argc > 1 && i < COUNT_OF(jobs); i++) {
    const struct CMUnitTest one[] = {jobs[i]};
    if (strcmp(argv[1], jobs[i].name) == 0) return cmocka_run_group_tests(one, NULL, start_afresh);
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
