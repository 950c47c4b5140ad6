/* SPDX-License-Identifier: Apache-2.0 */
/* The k-th allocation of host memory fails, for each k, once alone and once with all behind it until the call is over:
 * in starting, making models and strategies, a step, data, metrics, saving and loading. Each time the error says so,
 * what was there is to the bit as before, or the step was taken on all replicas alike; and the same again works and
 * comes to what it comes to without failures.
 *
 * `make check` takes a sample of k where there are many, HELIO_TEST_NO_MEMORY=all takes each. */
#include "failing_memory.h"
#include "replica_devices.h"

/* Which failure is tried, for messages. */
static struct {
  const char *name;
  long k;
  bool later;
} current;

#define fail_here(format, ...)                                                                                         \
  fail_msg("%s, allocation %ld%s: " format, current.name, current.k, current.later ? " and all later" : "", __VA_ARGS__)

enum { ROWS = 6, PIXELS = 5, WORDS = 3, VOCABULARY = 7, CLASSES = 3, MOST_BYTES = 1 << 16 };

/* ---- what is attempted ---- */

typedef struct world {
  helio_strategy *strategy; /* NULL: none */
  helio_model *model;
  helio_optimizer *optimizer;
  bool unbuilt; /* the optimizer makes its slots when it takes its first step */
  helio_metric *metric;
  helio_values *batch; /* of the strategy */
  helio_tensor *x, *y; /* where there is none */
  helio_distributed_iterator *batches;
  char folder[64];
} world;

typedef struct phase {
  const char *name;
  void (*begin)(world *w);           /* what is there before; nothing fails in it */
  helio_status (*attempt)(world *w); /* in which allocations fail */
  void (*end)(world *w);             /* may be NULL */
  int replicas;                      /* 0: no strategy */
  int sample;                        /* how many k are taken in make check, about; 0: all */
  bool unstarted;                    /* the library itself is started in the attempt */
} phase;

/* ---- all that a world has come to ---- */

typedef struct state {
  size_t length;
  char bytes[MOST_BYTES];
} state;

static void note(state *s, const void *data, size_t bytes) {
  assert_true(s->length + bytes <= sizeof s->bytes);
  memcpy(s->bytes + s->length, data, bytes);
  s->length += bytes;
}

/* All copies are equal, but for variables that each replica has its own part of. */
static void note_variables(state *s, const helio_variables *variables, bool mirrored) {
  assert_made(variables);
  for (int i = 0; i < variables->count; i++) {
    helio_variable *variable = variables->at[i];
    size_t first = 0;
    note(s, helio_variable_name(variable), strlen(helio_variable_name(variable)));
    for (int copy = 0; copy < helio_variable_copies(variable); copy++) {
      helio_tensor *tensor = helio_variable_copy(variable, copy);
      size_t bytes = (size_t)helio_tensor_elements(tensor) * helio_type_bytes(helio_tensor_type(tensor));
      assert_true(s->length + bytes <= sizeof s->bytes);
      assert_ok(helio_tensor_read(tensor, s->bytes + s->length, bytes));
      if (copy == 0) first = s->length;
      if (mirrored && memcmp(s->bytes + first, s->bytes + s->length, bytes) != 0) {
        fail_here("copy %d of %s differs", copy, helio_variable_name(variable));
      }
      s->length += bytes;
    }
  }
}

static void note_world(const world *w, state *s) {
  s->length = 0;
  if (w->model) note_variables(s, helio_trainable_variables(w->model), true);
  if (w->model) note_variables(s, helio_non_trainable_variables(w->model), false);
  if (w->optimizer) {
    int64_t iterations = helio_optimizer_iterations(w->optimizer);
    note(s, &iterations, sizeof iterations);
    if (!w->unbuilt || iterations) note_variables(s, helio_optimizer_variables(w->optimizer), true);
  }
  if (w->metric) note_variables(s, helio_metric_variables(w->metric), false);
}

static bool same(const state *a, const state *b) {
  return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* ---- one k after the other ---- */

static bool all_wanted(void) {
  const char *wanted = getenv("HELIO_TEST_NO_MEMORY");
  return wanted && strcmp(wanted, "all") == 0;
}

static void start(const phase *p) {
  static void *unused;
  assert_int_equal(set_up(&unused), 0);
  setenv("HELIO_TIMEOUT", "20", 1); /* a replica that waits in vain shall not do so for long */
  if (p->unstarted) return;
  start_replica_devices();
  assert_ok(helio_set_seed(7));
}

static void begin(const phase *p, world *w) {
  *w = (world){0};
  start(p);
  if (p->replicas) assert_made(w->strategy = mirrored_over(p->replicas, NULL, NULL));
  if (p->begin) p->begin(w);
  assert_ok(helio_error_pending());
}

static void end(const phase *p, world *w) {
  if (p->end) p->end(w);
  if (w->model) helio_release(w->model);
  w->model = NULL;
}

static uint64_t blocks_in_use(const phase *p) {
  uint64_t sum = 0;
  int count = 0;
  if (p->unstarted) return 0;
  const helio_device *const *devices = helio_logical_devices(NULL, &count);
  assert_made(devices);
  for (int i = 0; i < count; i++) {
    helio_memory info;
    assert_ok(helio_memory_info(devices[i]->name, &info));
    sum += info.allocations;
  }
  return sum;
}

/* What it comes to if nothing fails, once and twice; and how many allocations there are. */
static long rehearse(const phase *p, state *once, state *twice) {
  world w;
  long count = 0;
  HELIO_POOL {
    begin(p, &w);
    fail_allocation(0, false);
    helio_status status = p->attempt(&w);
    count = atomic_load(&failing.seen);
    fail_no_more();
    assert_ok(status);
    note_world(&w, once);
    assert_ok(p->attempt(&w));
    note_world(&w, twice);
    end(p, &w);
  }
  return count;
}

typedef struct tally {
  long reached, errors, taken; /* attempts in which an allocation failed; that failed; whose step was taken */
} tally;

static helio_status attempt_failing(const phase *p, world *w, tally *t) {
  helio_status status = HELIO_OK;
  uint64_t blocks = blocks_in_use(p);
  HELIO_POOL {
    fail_allocation(current.k, current.later);
    status = p->attempt(w);
    t->reached += fail_no_more() > 0;
  }
  helio_error error;
  helio_status pending = helio_error_take(&error);
  if (pending != status)
    fail_here("%s was returned, %s is pending", helio_status_name(status), helio_status_name(pending));
  if (!status) return status;
  t->errors++;
  if (status != HELIO_OUT_OF_MEMORY) fail_here("%s: %s", helio_status_name(status), error.message);
  if (!w->unbuilt && blocks_in_use(p) > blocks) fail_here("blocks of memory are left behind \"%s\"", error.message);
  return status;
}

/* False if there are fewer allocations. */
static bool check_failure(const phase *p, const state *once, const state *twice, tally *t) {
  world w;
  static state before, after, again;
  long reached = t->reached;
  HELIO_POOL {
    begin(p, &w);
    note_world(&w, &before);
    helio_status status = attempt_failing(p, &w, t);
    note_world(&w, &after);
    bool taken = same(&after, once) && !same(&before, once);
    if (!status && !same(&after, once)) fail_here("%s", "it succeeded, but not wholly");
    if (status && !taken && !same(&after, &before)) fail_here("%s", "what was there before has changed");
    t->taken += status && taken;
    helio_status second = HELIO_OK;
    HELIO_POOL second = p->attempt(&w);
    if (second) fail_here("the second attempt: %s: %s", helio_status_name(second), helio_error_message());
    note_world(&w, &again);
    if (!same(&again, !status || taken ? twice : once)) fail_here("%s", "the second attempt came to something else");
    end(p, &w);
  }
  return t->reached > reached;
}

static void check_phase(const phase *p) {
  static state once, twice;
  for (int later = 0; later < 2; later++) {
    tally t = {0};
    long count = rehearse(p, &once, &twice), taken = 0;
    long stride = p->sample && !all_wanted() && count > p->sample ? count / p->sample : 1;
    current.name = p->name;
    current.later = later;
    for (current.k = 1; check_failure(p, &once, &twice, &t); current.k += stride) taken++;
    print_message("%s, %s: %ld allocations, %ld failed in turn, %ld errors, %ld steps taken all the same\n", p->name,
                  later ? "and all later" : "only one", count, taken, t.errors, t.taken);
    assert_true(t.errors > 0);
  }
}

/* ---- models ---- */

static helio_model *make_images(void) {
  return helio_sequential({helio_conv2d(2, 3), helio_batch_normalization(.synchronized = true),
                           helio_activation_layer(HELIO_TANH), helio_flatten(), helio_dropout(0.3),
                           helio_dense(CLASSES)},
                          .input_shape = HELIO_SHAPE(PIXELS, PIXELS, 1));
}

static helio_model *make_words(void) {
  return helio_sequential({helio_embedding(VOCABULARY, 2), helio_flatten(), helio_dense(CLASSES)},
                          .input_shape = HELIO_SHAPE(WORDS));
}

static helio_model *make_functional(void) {
  helio_node *input = helio_input(HELIO_SHAPE(PIXELS));
  helio_node *wide = helio_apply(helio_dense(4, .activation = HELIO_RELU), input);
  helio_node *both = helio_apply(helio_add_layer(), helio_apply(helio_dense(4), wide), wide);
  return helio_model(input, helio_apply(helio_dense(CLASSES), both));
}

/* ---- batches ---- */

static helio_array *make_pixels(void) {
  float pixels[ROWS * PIXELS * PIXELS];
  uint64_t seed = 5;
  for (size_t i = 0; i < COUNT_OF(pixels); i++) pixels[i] = (float)((double)next_random(&seed) / 1e9 - 1);
  return helio_array_of(pixels, HELIO_SHAPE(ROWS, PIXELS, PIXELS, 1));
}

static helio_array *make_words_of(void) {
  int32_t words[ROWS * WORDS];
  uint64_t seed = 5;
  for (size_t i = 0; i < COUNT_OF(words); i++) words[i] = (int32_t)(next_random(&seed) % VOCABULARY);
  return helio_array_of(words, HELIO_SHAPE(ROWS, WORDS), .type = HELIO_INT32);
}

static helio_dataset *make_dataset(helio_array *x) {
  int32_t labels[ROWS];
  for (int i = 0; i < ROWS; i++) labels[i] = i % CLASSES;
  helio_array *y = helio_array_of(labels, HELIO_SHAPE(ROWS), .type = HELIO_INT32);
  return helio_dataset_repeat(helio_dataset_batch(helio_dataset_from_slices(x, y), ROWS), 3);
}

/* ---- steps ---- */

static helio_tensor *losses_of(world *w, helio_tensor *x, helio_tensor *y) {
  helio_loss *loss = helio_sparse_categorical_crossentropy(.from_logits = true, .reduction = HELIO_LOSS_NONE);
  return helio_compute_loss(loss, y, helio_call(w->model, x, .training = true));
}

static helio_status train(void *argument, const helio_element *inputs, helio_element *outputs) {
  world *w = argument;
  helio_tape *tape = helio_tape_new();
  helio_tensor *losses = NULL, *loss = NULL;
  HELIO_TAPE(tape) {
    losses = losses_of(w, inputs->part[0], inputs->part[1]);
    loss = helio_compute_average_loss(losses);
  }
  helio_metric_update(w->metric, losses);
  outputs->part[outputs->count++] = loss;
  return helio_minimize(w->optimizer, tape, loss, helio_trainable_variables(w->model));
}

static helio_status run_step(world *w) {
  return helio_run(w->strategy, train, w, w->batch) ? HELIO_OK : helio_error_pending();
}

static void make_batch(world *w, helio_array *x) {
  w->batches = helio_iterate_distributed(helio_distribute(w->strategy, make_dataset(x), .prefetch = HELIO_NONE));
  w->batch = helio_next_values(w->batches);
  assert_made(w->batch);
}

static void make_trainer(world *w, helio_model *(*make)(void), int accumulate) {
  HELIO_SCOPE(w->strategy) {
    w->model = make();
    w->optimizer = helio_adam(0.1, .accumulate_steps = accumulate);
    w->metric = helio_metric_mean();
    assert_made(helio_metric_variables(w->metric));
  }
  assert_made(w->metric);
  assert_ok(helio_optimizer_build(w->optimizer, helio_trainable_variables(w->model)));
}

static void begin_images(world *w) {
  make_trainer(w, make_images, 0);
  make_batch(w, make_pixels());
}

static void begin_words(world *w) {
  make_trainer(w, make_words, 0);
  make_batch(w, make_words_of());
}

static void begin_unbuilt(world *w) {
  begin_words(w);
  HELIO_SCOPE(w->strategy) w->optimizer = helio_adam(0.1);
  w->unbuilt = true;
}

static void begin_waiting(world *w) {
  make_trainer(w, make_words, 2);
  make_batch(w, make_words_of());
}

static void begin_taking(world *w) {
  begin_waiting(w);
  assert_ok(run_step(w));
}

static void begin_later_images(world *w) {
  begin_images(w);
  for (int i = 0; i < 2; i++) HELIO_POOL assert_ok(run_step(w));
}

static void begin_later_words(world *w) {
  begin_words(w);
  for (int i = 0; i < 2; i++) HELIO_POOL assert_ok(run_step(w));
}

static void steps_of_replicas(void **unused) {
  static const phase phases[] = {
      {"the first step with images", begin_images, run_step, .replicas = 2, .sample = 100},
      {"a later step with images", begin_later_images, run_step, .replicas = 2, .sample = 100},
      {"the first step with words", begin_words, run_step, .replicas = 2, .sample = 100},
      {"a later step with words", begin_later_words, run_step, .replicas = 2, .sample = 100},
      {"a step that makes slots", begin_unbuilt, run_step, .replicas = 3, .sample = 100},
      {"a step that accumulates", begin_waiting, run_step, .replicas = 2, .sample = 100},
      {"a step that takes what was accumulated", begin_taking, run_step, .replicas = 2, .sample = 100},
  };
  (void)unused;
  for (size_t i = 0; i < COUNT_OF(phases); i++) check_phase(&phases[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(steps_of_replicas),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, start_afresh, start_afresh);
}
