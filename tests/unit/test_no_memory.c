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
  bool keeps;   /* optimizer and metric, out of their pool */
  bool unbuilt; /* the optimizer makes its slots when it takes its first step */
  helio_metric *metric;
  helio_values *batch; /* of the strategy */
  helio_tensor *x, *y; /* where there is none */
  double number;       /* that came out */
  bool started;        /* the library, in the attempt */
  const char *file;    /* in the folder, which the attempt writes or reads; NULL: none */
  char folder[64];
  char *text; /* JSON of a model */
} world;

typedef struct phase {
  const char *name;
  void (*begin)(world *w);           /* what is there before; nothing fails in it */
  helio_status (*attempt)(world *w); /* in which allocations fail */
  int replicas;                      /* 0: no strategy */
  int sample;                        /* how many k are taken in make check, about; 0: all */
  bool unstarted;                    /* the library itself is started in the attempt */
  bool undone;                       /* nothing of it is final before its end */
  bool needs_none;                   /* it succeeds without memory */
  bool opens;                        /* devices, or makes slots, which stay if it fails later */
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

/* Which are usable, and the devices. */
static void note_plugins(state *s) {
  int count = 0;
  const helio_plugin_report *const *plugins = helio_plugins(&count);
  for (int i = 0; i < count; i++) {
    note(s, plugins[i]->name, strlen(plugins[i]->name));
    note(s, &plugins[i]->status, sizeof plugins[i]->status);
  }
  const helio_device *const *devices = helio_logical_devices(NULL, &count);
  for (int i = 0; i < count; i++) note(s, devices[i]->name, strlen(devices[i]->name));
}

/* How many files there are, and what is in the one. */
static void note_folder(state *s, const world *w) {
  char path[PATH_MAX], bytes[4096];
  int entries = entries_of(w->folder);
  note(s, &entries, sizeof entries);
  snprintf(path, sizeof path, "%s/%s", w->folder, w->file);
  FILE *file = fopen(path, "r");
  for (size_t got; file && (got = fread(bytes, 1, sizeof bytes, file)) > 0;) note(s, bytes, got);
  if (file) fclose(file);
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
  note(s, &w->number, sizeof w->number);
  if (w->started) note_plugins(s);
  if (w->file) note_folder(s, w);
}

static bool same(const state *a, const state *b) {
  return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* ---- one k after the other ---- */

static bool all_wanted(void) {
  const char *wanted = getenv("HELIO_TEST_NO_MEMORY");
  return wanted && strcmp(wanted, "all") == 0;
}

/* What a device takes for itself when it is first used is no part of the phase. */
static void open_devices(void) {
  static const char *const names[2][4] = {{"cpu:0", "cpu:1", "cpu:2"}, {"cpu:0", "gpu:0", "gpu:1", "gpu:2"}};
  for (int i = 0; i < 4 && names[on_strict()][i]; i++) {
    HELIO_POOL HELIO_DEVICE(names[on_strict()][i]) assert_made(helio_fill(HELIO_SCALAR, 1));
  }
}

static void start(const phase *p) {
  static void *unused;
  assert_int_equal(set_up(&unused), 0);
  setenv("HELIO_TIMEOUT", "20", 1); /* a replica that waits in vain shall not do so for long */
  if (p->unstarted) return;
  start_replica_devices();
  if (!p->opens) open_devices();
  assert_ok(helio_set_seed(7));
}

static void begin(const phase *p, world *w) {
  *w = (world){0};
  start(p);
  if (p->replicas) assert_made(w->strategy = mirrored_over(p->replicas, NULL, NULL));
  if (p->begin) p->begin(w);
  assert_ok(helio_error_pending());
}

static void end(world *w) {
  helio_release(w->model);
  if (w->keeps) helio_release(w->optimizer);
  if (w->keeps) helio_release(w->metric);
  if (w->folder[0]) remove_folder(w->folder);
  free(w->text);
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
    end(&w);
  }
  return count;
}

typedef struct tally {
  long reached, errors, taken; /* attempts in which an allocation failed; that failed; whose step was taken */
  helio_error error;           /* of the latest */
} tally;

static helio_status attempt_failing(const phase *p, world *w, tally *t) {
  helio_status status = HELIO_OK;
  uint64_t blocks = blocks_in_use(p);
  HELIO_POOL {
    fail_allocation(current.k, current.later);
    status = p->attempt(w);
    t->reached += fail_no_more() > 0;
  }
  helio_status pending = helio_error_take(&t->error);
  if (pending != status)
    fail_here("%s was returned, %s is pending", helio_status_name(status), helio_status_name(pending));
  if (!status) return status;
  t->errors++;
  if (status != HELIO_OUT_OF_MEMORY) fail_here("%s: %s", helio_status_name(status), t->error.message);
  if (!p->opens && blocks_in_use(p) > blocks) fail_here("blocks of memory are left behind \"%s\"", t->error.message);
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
    bool without = p->unstarted && lines_with("is not used", "");
    if (!status && !same(&after, once) && !without) fail_here("%s", "it succeeded, but not wholly");
    if (status && !taken && !same(&after, &before))
      fail_here("what was there has changed behind \"%s\"", t->error.message);
    t->taken += status && taken;
    if (p->undone && status && taken) fail_here("it stays, though it failed by \"%s\"", t->error.message);
    helio_status second = HELIO_OK;
    HELIO_POOL second = p->attempt(&w);
    if (second) fail_here("the second attempt: %s: %s", helio_status_name(second), helio_error_message());
    note_world(&w, &again);
    if (!same(&again, !status || taken ? twice : once)) fail_here("%s", "the second attempt came to something else");
    end(&w);
  }
  return t->reached > reached;
}

/* Of starting, which happens for every k: each takes half of the sample. */
static int slowness(void) {
  const char *sanitizers = getenv("HELIO_TEST_SANITIZERS");
  return on_strict() + SANITIZED + (sanitizers && strcmp(sanitizers, "thread") == 0);
}

static void check_phase(const phase *p) {
  static state once, twice;
  for (int later = 0; later < 2; later++) {
    tally t = {0};
    long count = rehearse(p, &once, &twice), taken = 0;
    long sample = p->sample >> slowness();
    long stride = sample && !all_wanted() && count > sample ? count / sample : 1;
    current.name = p->name;
    current.later = later;
    for (current.k = 1; check_failure(p, &once, &twice, &t); current.k += stride) taken++;
    print_message("%s, %s: %ld allocations, %ld failed in turn, %ld errors, %ld steps taken all the same\n", p->name,
                  later ? "and all later" : "only one", count, taken, t.errors, t.taken);
    if (p->needs_none == (t.errors > 0)) fail_here("%ld allocations, %ld errors", count, t.errors);
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

/* No update makes what it writes final before it is done. */
static helio_status count(void *argument, const helio_element *inputs, helio_element *outputs) {
  world *w = argument;
  helio_tensor *losses = losses_of(w, inputs->part[0], inputs->part[1]);
  helio_metric_update(w->metric, losses);
  outputs->part[outputs->count++] = losses;
  return helio_error_pending();
}

static helio_status run_count(world *w) {
  return helio_run(w->strategy, count, w, w->batch) ? HELIO_OK : helio_error_pending();
}

static helio_status run_step(world *w) {
  return helio_run(w->strategy, train, w, w->batch) ? HELIO_OK : helio_error_pending();
}

static void make_batch(world *w, helio_array *x) {
  helio_distributed *distributed = helio_distribute(w->strategy, make_dataset(x), .prefetch = HELIO_NONE);
  w->batch = helio_next_values(helio_iterate_distributed(distributed));
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
      {"a step that only counts", begin_images, run_count, .replicas = 2, .sample = 100, .undone = true},
      {"the first step with words", begin_words, run_step, .replicas = 2, .sample = 100},
      {"a later step with words", begin_later_words, run_step, .replicas = 2, .sample = 100},
      {"a step that makes slots", begin_unbuilt, run_step, .replicas = 3, .sample = 100, .opens = true},
      {"a step that accumulates", begin_waiting, run_step, .replicas = 2, .sample = 100},
      {"a step that takes what was accumulated", begin_taking, run_step, .replicas = 2, .sample = 100},
  };
  (void)unused;
  for (size_t i = 0; i < COUNT_OF(phases); i++) check_phase(&phases[i]);
}

/* ---- steps without a strategy ---- */

static void begin_alone(world *w) {
  helio_element batch;
  w->model = make_words();
  w->optimizer = helio_adam(0.1);
  assert_true(helio_next(helio_iterate(make_dataset(make_words_of())), &batch));
  w->x = batch.part[0];
  w->y = batch.part[1];
  assert_ok(helio_optimizer_build(w->optimizer, helio_trainable_variables(w->model)));
}

static helio_status minimize(world *w) {
  helio_tape *tape = helio_tape_new();
  helio_tensor *loss = NULL;
  HELIO_TAPE(tape) loss = helio_mean(losses_of(w, w->x, w->y));
  return helio_minimize(w->optimizer, tape, loss, helio_trainable_variables(w->model));
}

static helio_status apply(world *w) {
  helio_tape *tape = helio_tape_new();
  helio_tensor *loss = NULL;
  HELIO_TAPE(tape) loss = helio_mean(losses_of(w, w->x, w->y));
  const helio_variables *variables = helio_trainable_variables(w->model);
  return helio_apply_gradients(w->optimizer, helio_gradient(tape, loss, variables), variables);
}

static void begin_alone_later(world *w) {
  begin_alone(w);
  HELIO_POOL assert_ok(minimize(w));
}

static void steps_alone(void **unused) {
  static const phase phases[] = {
      {"minimize", begin_alone, minimize, .sample = 100},
      {"minimize later", begin_alone_later, minimize, .sample = 100},
      {"apply gradients", begin_alone, apply, .sample = 100},
      {"apply gradients later", begin_alone_later, apply, .sample = 100},
  };
  (void)unused;
  for (size_t i = 0; i < COUNT_OF(phases); i++) check_phase(&phases[i]);
}

/* ---- starting ---- */

static helio_status start_library(world *w) {
  helio_shutdown();
  helio_status status = helio_init();
  w->started = !status;
  return status;
}

static void starting(void **unused) {
  static const phase starts = {"helio_init", NULL, start_library, .unstarted = true, .sample = 150};
  (void)unused;
  check_phase(&starts);
}

/* ---- strategies ---- */

static helio_status give_one(void *unused, const helio_element *inputs, helio_element *outputs) {
  (void)unused, (void)inputs;
  outputs->part[outputs->count++] = helio_fill(HELIO_SCALAR, 1);
  return helio_error_pending();
}

static helio_status make_strategy(world *w, int replicas) {
  helio_strategy *strategy = mirrored_over(replicas, NULL, NULL);
  helio_values *ones = helio_run(strategy, give_one);
  double number = helio_item(helio_reduce(strategy, HELIO_SUM, ones));
  if (!helio_error_pending()) w->number = number;
  return helio_error_pending();
}

static helio_status make_two(world *w) {
  return make_strategy(w, 2);
}

static helio_status make_three(world *w) {
  return make_strategy(w, 3);
}

static void strategies(void **unused) {
  static const phase phases[] = {
      {"a strategy of two", NULL, make_two, .sample = 100, .opens = true},
      {"a strategy of three", NULL, make_three, .sample = 100, .opens = true},
  };
  (void)unused;
  for (size_t i = 0; i < COUNT_OF(phases); i++) check_phase(&phases[i]);
}

/* ---- making models ---- */

/* What an earlier attempt has made goes. */
static helio_status build(world *w, helio_model *(*make)(void)) {
  helio_model *model = NULL;
  helio_optimizer *optimizer = NULL;
  helio_metric *metric = NULL;
  helio_scope scope = w->strategy ? helio_strategy_enter(w->strategy) : (helio_scope){0};
  helio_set_seed(7); /* what a model draws that is not made is used up */
  model = make();
  optimizer = helio_keep(helio_adam(0.1));
  metric = helio_keep(helio_sparse_categorical_accuracy());
  helio_metric_variables(metric);
  if (model) helio_optimizer_build(optimizer, helio_trainable_variables(model));
  if (w->strategy) helio_strategy_leave(&scope);
  bool failed = helio_error_pending();
  helio_release(failed ? model : w->model);
  helio_release(failed ? optimizer : w->optimizer);
  helio_release(failed ? metric : w->metric);
  if (failed) return helio_error_pending();
  w->model = model;
  w->optimizer = optimizer;
  w->metric = metric;
  w->keeps = true;
  return HELIO_OK;
}

static helio_status build_images(world *w) {
  return build(w, make_images);
}

static helio_status build_words(world *w) {
  return build(w, make_words);
}

static helio_status build_functional(world *w) {
  return build(w, make_functional);
}

static helio_status read_config(world *w) {
  static const char config[] = "{\"name\": \"wide\", \"units\": 7, \"activation\": \"relu\", \"use_bias\": true, "
                               "\"kernel_regularizer\": {\"class_name\": \"L2\", \"config\": {\"l2\": 0.5}}}";
  helio_layer *layer = helio_layer_from_config("Dense", config);
  if (!layer) return helio_error_pending();
  w->number = strcmp(helio_layer_name(layer), "wide") == 0;
  return HELIO_OK;
}

/* ---- architectures ---- */

static helio_model *make_nested(void) {
  helio_model *inner = make_functional();
  helio_node *input = helio_input(HELIO_SHAPE(PIXELS));
  helio_node *both = helio_apply(helio_concatenate(), helio_apply(inner, input), helio_apply(inner, input));
  helio_model *middle = helio_model(input, both, .name = "middle");
  helio_model *outer = helio_sequential({helio_dense(PIXELS), middle}, .input_shape = HELIO_SHAPE(2));
  helio_release(inner);
  helio_release(middle);
  return outer;
}

static void begin_architecture(world *w) {
  helio_model *model = make_nested();
  assert_made(w->text = helio_model_to_json(model));
  helio_release(model);
}

static void begin_nested(world *w) {
  assert_made(w->model = make_nested());
}

/* What an earlier attempt has made goes. */
static helio_status replace_model(world *w, helio_model *model) {
  if (!model) return helio_error_pending();
  helio_release(w->model);
  w->model = model;
  return HELIO_OK;
}

static helio_status read_architecture(world *w) {
  helio_set_seed(7); /* what a model draws that is not made is used up */
  return replace_model(w, helio_model_from_json(w->text));
}

static helio_status write_architecture(world *w) {
  char *text = helio_model_to_json(w->model);
  if (text) w->number = (double)strlen(text);
  free(text);
  return helio_error_pending();
}

static void architectures(void **unused) {
  static const phase phases[] = {
      {"a model from its JSON", begin_architecture, read_architecture, .sample = 200},
      {"the JSON of a model", begin_nested, write_architecture, .sample = 0},
      {"a mirrored model from its JSON", begin_architecture, read_architecture, .replicas = 2, .sample = 100},
  };
  (void)unused;
  for (size_t i = 0; i < COUNT_OF(phases); i++) check_phase(&phases[i]);
}

static void models(void **unused) {
  static const phase phases[] = {
      {"making a model of images", NULL, build_images, .sample = 100},
      {"making a model of words", NULL, build_words, .sample = 100},
      {"making a functional model", NULL, build_functional, .sample = 100},
      {"a layer from its config", NULL, read_config, .sample = 100},
      {"making a mirrored model of images", NULL, build_images, .replicas = 2, .sample = 100},
      {"making a mirrored model of words", NULL, build_words, .replicas = 3, .sample = 100},
      {"making a mirrored functional model", NULL, build_functional, .replicas = 2, .sample = 100},
  };
  (void)unused;
  for (size_t i = 0; i < COUNT_OF(phases); i++) check_phase(&phases[i]);
}

/* ---- data ---- */

/* All batches, and the sum of what is in them. */
static helio_status read_all(world *w) {
  double sum = 0;
  helio_dataset *dataset = make_dataset(make_words_of());
  helio_distributed *distributed = helio_distribute(w->strategy, helio_dataset_shuffle(dataset, 2, .seed = 3));
  helio_distributed_iterator *batches = helio_iterate_distributed(distributed);
  for (helio_values *batch; (batch = helio_next_values(batches));) {
    helio_values *words = helio_values_part(batch, 0);
    sum += helio_item(helio_sum(helio_reduce(w->strategy, HELIO_SUM, words)));
  }
  if (!helio_error_pending()) w->number = sum;
  return helio_error_pending();
}

static void data(void **unused) {
  static const phase reads = {"reading data", NULL, read_all, .replicas = 2, .sample = 100};
  (void)unused;
  check_phase(&reads);
}

/* ---- metrics ---- */

static void begin_metric(world *w) {
  static const float predictions[ROWS * CLASSES] = {1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1};
  static const int32_t labels[ROWS] = {0, 1, 2, 2, 1, 0};
  w->x = helio_constant(predictions, HELIO_SHAPE(ROWS, CLASSES));
  w->y = helio_constant(labels, HELIO_SHAPE(ROWS), .type = HELIO_INT32);
  w->metric = helio_sparse_categorical_accuracy();
  assert_ok(helio_metric_update(w->metric, w->y, w->x));
}

static helio_status update_metric(world *w) {
  return helio_metric_update(w->metric, w->y, w->x);
}

static helio_status read_metric(world *w) {
  double number = helio_item(helio_metric_result(w->metric));
  if (!helio_error_pending()) w->number = number;
  return helio_error_pending();
}

static helio_status reset_metric(world *w) {
  return helio_metric_reset(w->metric);
}

static void metrics(void **unused) {
  static const phase phases[] = {
      {"updating a metric", begin_metric, update_metric, .sample = 0},
      {"reading a metric", begin_metric, read_metric, .sample = 0},
      {"resetting a metric", begin_metric, reset_metric, .needs_none = true},
  };
  (void)unused;
  for (size_t i = 0; i < COUNT_OF(phases); i++) check_phase(&phases[i]);
}

/* ---- files ---- */

static const char *path_of(const world *w) {
  static char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", w->folder, w->file);
  return path;
}

static helio_status save_weights(world *w) {
  return helio_save_weights(w->model, path_of(w));
}

static helio_status load_weights(world *w) {
  return helio_load_weights(w->model, path_of(w));
}

static helio_status save_model(world *w) {
  helio_status status = helio_model_set_note(w->model, "of images");
  return status ? status : helio_save_model(w->model, path_of(w));
}

static helio_status load_model(world *w) {
  return replace_model(w, helio_load_model(path_of(w)));
}

static helio_status save_optimizer(world *w) {
  return helio_save_optimizer(w->optimizer, path_of(w));
}

static helio_status load_optimizer(world *w) {
  return helio_load_optimizer(w->optimizer, path_of(w));
}

/* A file of what was before a step lies there, and a step was taken since. */
static void begin_file(world *w, const char *file, helio_status (*save)(world *w)) {
  if (w->strategy) begin_images(w);
  if (!w->strategy) begin_alone(w);
  make_folder(w->folder);
  w->file = file;
  assert_ok(save(w));
  HELIO_POOL assert_ok(w->strategy ? run_step(w) : minimize(w));
}

static void begin_weights(world *w) {
  begin_file(w, "weights.safetensors", save_weights);
}

static void begin_model(world *w) {
  begin_file(w, "model.safetensors", save_model);
}

static void begin_slots(world *w) {
  begin_file(w, "optimizer.safetensors", save_optimizer);
}

static void files(void **unused) {
  static const phase phases[] = {
      {"saving weights", begin_weights, save_weights, .sample = 100},
      {"loading weights", begin_weights, load_weights, .sample = 100},
      {"saving a model", begin_model, save_model, .sample = 100},
      {"loading a model", begin_model, load_model, .sample = 100},
      {"saving an optimizer", begin_slots, save_optimizer, .sample = 100},
      {"loading an optimizer", begin_slots, load_optimizer, .sample = 100},
      {"saving mirrored weights", begin_weights, save_weights, .replicas = 2, .sample = 50},
      {"loading mirrored weights", begin_weights, load_weights, .replicas = 2, .sample = 50},
      {"saving a mirrored optimizer", begin_slots, save_optimizer, .replicas = 2, .sample = 50},
      {"loading a mirrored optimizer", begin_slots, load_optimizer, .replicas = 2, .sample = 50},
  };
  (void)unused;
  for (size_t i = 0; i < COUNT_OF(phases); i++) check_phase(&phases[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(starting),    TEST(strategies), TEST(models),  TEST(architectures), TEST(steps_of_replicas),
      TEST(steps_alone), TEST(data),       TEST(metrics), TEST(files),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, start_afresh, start_afresh);
}
