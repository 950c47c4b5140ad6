/* SPDX-License-Identifier: Apache-2.0 */
/* helio bench training: how many samples a second a network trains on, mirrored on all devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_models.h"
#include "command.h"
#include "output.h"
#include "sample_set.h"

enum { JSON, QUICK, MODEL, BATCH, REPLICAS, BY_LINE };

static const command_option options[] = {
    [JSON] = {"json", NULL, NULL, "print JSON"},
    [QUICK] = {"quick", NULL, NULL, "fewer samples and epochs"},
    [MODEL] = {"model", "NAME", BENCH_MODELS, "train this network, on data that are made up"},
    [BATCH] = {"batch", "COUNT", NULL, "global batch size (default: 256; mlp 128, reuters 32)"},
    [REPLICAS] = {"replicas", "COUNT", NULL, "cut the preferred device into this many logical ones"},
    [BY_LINE] = {"by-line", NULL, NULL, "take as many steps as each line of standard input says"},
    {0},
};

enum { SAMPLES = 10240, QUICK_SAMPLES = 2560, EPOCHS = 5, QUICK_EPOCHS = 3, MOST_REPLICAS = HELIO_MAX_REPLICAS };
enum { BATCHES_BY_LINE = 4, MOST_STEPS = 1000000 };

typedef struct bench_training {
  const bench_model *model;
  int64_t batch;
  bool made_up, quick;
} bench_training;

/* ---------------------------------------------------------------------------------------------------------------------
 * Training
 */

typedef struct trainer {
  helio_model *model;
  helio_optimizer *optimizer;
  helio_loss *loss;
} trainer;

static void make(trainer *t, const bench_model *model) {
  t->model = bench_model_make(model);
  t->optimizer = bench_model_optimizer(model);
  t->loss = helio_sparse_categorical_crossentropy();
}

/* Images of files are bytes, without an axis of channels. */
static helio_tensor *prepare(helio_tensor *inputs) {
  if (helio_tensor_type(inputs) != HELIO_UINT8) return inputs;
  helio_tensor *images = helio_expand_dims(helio_cast(inputs, HELIO_FLOAT32), -1);
  return helio_mul(images, helio_fill(HELIO_SCALAR, 1.0 / 255));
}

static helio_status step(void *argument, const helio_element *batch, helio_element *result) {
  trainer *t = argument;
  (void)result;
  helio_tape *tape = helio_tape_new();
  helio_tensor *loss = NULL, *inputs = prepare(batch->part[0]);
  HELIO_TAPE(tape) {
    loss = helio_compute_loss(t->loss, batch->part[1], helio_call(t->model, inputs, .training = true));
  }
  return helio_minimize(t->optimizer, tape, loss, helio_trainable_variables(t->model));
}

/* Samples of one epoch a second, with all work done; negative on failure. */
static double run_epoch(trainer *t, helio_strategy *strategy, helio_distributed *data, int64_t samples) {
  double start = bench_seconds();
  HELIO_POOL {
    helio_distributed_iterator *iterator = helio_iterate_distributed(data);
    for (bool more = true; more;) {
      HELIO_POOL {
        helio_values *batch = helio_next_values(iterator);
        more = batch && helio_run(strategy, step, t, batch);
      }
    }
    helio_synchronize(NULL);
  }
  return helio_error_pending() ? -1 : (double)samples / (bench_seconds() - start);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * By line: for programs that measure something else in between
 */

static bool take_steps(trainer *t, helio_strategy *strategy, helio_distributed_iterator *iterator, long long count) {
  for (long long i = 0; i < count && !helio_error_pending(); i++) {
    HELIO_POOL {
      helio_run(strategy, step, t, helio_next_values(iterator));
    }
  }
  return helio_synchronize(NULL) == HELIO_OK && !helio_error_pending();
}

/* Until the input ends. EXIT_FAILURE with the library's error pending, EXIT_USAGE with what is no number in `text`. */
static int follow_lines(trainer *t, helio_strategy *strategy, helio_distributed_iterator *iterator, char *text,
                        int size) {
  while (fgets(text, size, stdin)) {
    text[strcspn(text, "\n")] = 0;
    char *end;
    long long steps = strtoll(text, &end, 10);
    if (*end || end == text || steps < 1 || steps > MOST_STEPS) return EXIT_USAGE;
    double start = bench_seconds();
    if (!take_steps(t, strategy, iterator, steps)) return EXIT_FAILURE;
    printf("{\"steps\": %lld, \"seconds\": %.9f}\n", steps, bench_seconds() - start);
    fflush(stdout);
  }
  return EXIT_SUCCESS;
}

static int run_by_line(const char *path, const bench_training *bench) {
  trainer t = {0};
  helio_samples all = {0};
  char text[32] = "";
  helio_strategy *strategy =
      bench_make_up(bench->model, BATCHES_BY_LINE * bench->batch, &all) ? helio_mirrored() : NULL;
  HELIO_SCOPE(strategy) make(&t, bench->model);
  helio_dataset *dataset = helio_dataset_batch(helio_dataset_from_slices(all.x, all.y), bench->batch);
  dataset = helio_dataset_prefetch(helio_dataset_repeat(dataset, -1), HELIO_AUTO);
  helio_distributed_iterator *iterator = helio_iterate_distributed(helio_distribute(strategy, dataset));
  int status = iterator ? follow_lines(&t, strategy, iterator, text, sizeof text) : EXIT_FAILURE;
  helio_release(t.model);
  if (status == EXIT_FAILURE) return command_library_failure(path);
  if (status != EXIT_USAGE) return status;
  return command_usage_error(path, "a line of standard input should be a number of steps, not '%s'", text);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The command
 */

static json_t *describe(const helio_strategy *strategy, const bench_training *bench, const char *source,
                        int64_t samples, double *rates, int epochs) {
  json_t *result = json_object(), *devices = json_array();
  for (int i = 0; i < helio_num_replicas(strategy); i++) {
    json_array_append_new(devices, output_text(helio_strategy_device(strategy, i)));
  }
  output_set(result, "version", output_text(helio_version()));
  output_set(result, "devices", devices);
  output_set(result, "collective", output_text(helio_strategy_collective(strategy)));
  output_set(result, "model", output_text(bench->model->name));
  output_set(result, "source", output_text(source));
  bench_set_rates(result, samples, bench->batch, rates, epochs);
  return result;
}

static const char *get_samples(const bench_training *bench, int64_t count, helio_samples *samples) {
  if (!bench->made_up) return bench_samples(samples, bench->quick);
  return bench_make_up(bench->model, count, samples) ? "made up" : NULL;
}

static json_t *measure(const bench_training *bench) {
  trainer t = {0};
  helio_samples all = {0};
  int64_t wanted = bench->quick ? QUICK_SAMPLES : SAMPLES;
  int epochs = bench->quick ? QUICK_EPOCHS : EPOCHS;
  double rates[EPOCHS];
  const char *source = get_samples(bench, wanted, &all);
  int64_t there = sample_set_count(all.x), samples = there < wanted ? there : wanted;
  helio_strategy *strategy = source ? helio_mirrored() : NULL;
  HELIO_SCOPE(strategy) make(&t, bench->model);
  helio_dataset *dataset = helio_dataset_take(helio_dataset_from_slices(all.x, all.y), samples);
  helio_distributed *data = helio_distribute(strategy, helio_dataset_batch(dataset, bench->batch));
  json_t *result = NULL;
  bool good = data && run_epoch(&t, strategy, data, samples) >= 0; /* not counted: memory is taken in it */
  for (int i = 0; i < epochs && good; i++) {
    rates[i] = run_epoch(&t, strategy, data, samples);
    good = rates[i] >= 0;
  }
  if (good) result = describe(strategy, bench, source, samples, rates, epochs);
  helio_release(t.model);
  return result;
}

static void show(const json_t *result) {
  int devices = (int)json_array_size(json_object_get(result, "devices"));
  bench_show_rates(result);
  printf(", batches of %d on %d device%s\n", (int)json_integer_value(json_object_get(result, "batch")), devices,
         devices == 1 ? "" : "s");
}

static bool cut_device(int count) {
  int devices;
  const helio_device *const *list = helio_physical_devices(NULL, &devices);
  return list && devices > 0 && helio_set_logical_devices(list[0]->name, NULL, count) == HELIO_OK;
}

static int run_bench_training(const command_line *line) {
  bench_training bench = {
      .model = bench_model_of(line->values[MODEL]),
      .made_up = line->values[MODEL] != NULL,
      .quick = line->values[QUICK] != NULL,
  };
  int64_t replicas = 0;
  int without = line->values[JSON] ? JSON : QUICK;
  if (line->values[BY_LINE] && line->values[without]) {
    return command_usage_error(line->path, "--by-line takes no --%s", options[without].name);
  }
  bench.batch = bench.model->batch;
  int status = command_integer(line, options, BATCH, 1, 1000000, &bench.batch);
  if (!status) status = command_integer(line, options, REPLICAS, 1, MOST_REPLICAS, &replicas);
  if (status) return status;
  if (replicas > 0 && !cut_device((int)replicas)) return command_library_failure(line->path);
  json_t *result = NULL;
  HELIO_POOL {
    if (line->values[BY_LINE]) {
      status = run_by_line(line->path, &bench);
    } else {
      result = measure(&bench);
    }
  }
  return line->values[BY_LINE] ? status : bench_finish(line->path, result, line->values[JSON], show);
}

const command command_bench_training = {
    .name = "training",
    .summary = "Measures mirrored training",
    .description =
        "Samples a second that a network trains on, mirrored on all devices, a step for each batch. Unless a model is\n"
        "named, it is that of the recipe mnist (convolutions, 12,810 weights, Adam), and the data are images of bytes\n"
        "(Fashion-MNIST, or made up). mlp has dense layers of 512, 512 and 10; reuters is the recipe's, with Nadam.",
    .options = options,
    .run = run_bench_training,
};
