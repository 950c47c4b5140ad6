/* SPDX-License-Identifier: Apache-2.0 */
/* helio bench training: how many samples a second a small convolutional network trains on, mirrored on all devices. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "command.h"
#include "output.h"

enum { JSON, QUICK, BATCH, REPLICAS };

static const command_option options[] = {
    [JSON] = {"json", NULL, NULL, "print JSON"},
    [QUICK] = {"quick", NULL, NULL, "fewer samples and epochs"},
    [BATCH] = {"batch", "COUNT", NULL, "samples of a global batch (256)"},
    [REPLICAS] = {"replicas", "COUNT", NULL, "cut the preferred device into so many, and use those"},
    {0},
};

enum { SAMPLES = 10240, QUICK_SAMPLES = 2560, EPOCHS = 5, QUICK_EPOCHS = 3, MOST_REPLICAS = HELIO_MAX_REPLICAS };

/* ---------------------------------------------------------------------------------------------------------------------
 * The network: 12,810 weights
 */

typedef struct trainer {
  helio_model *model;
  helio_optimizer *optimizer;
  helio_loss *loss;
} trainer;

static void make(trainer *t) {
  t->model = helio_sequential({helio_conv2d(16, 3, .activation = HELIO_RELU), helio_max_pool2d(),
                               helio_conv2d(32, 3, .activation = HELIO_RELU), helio_max_pool2d(), helio_flatten(),
                               helio_dense(10, .activation = HELIO_SOFTMAX)},
                              .input_shape = HELIO_SHAPE(28, 28, 1));
  t->optimizer = helio_adam();
  t->loss = helio_sparse_categorical_crossentropy();
}

static helio_status step(void *argument, const helio_element *batch, helio_element *result) {
  trainer *t = argument;
  (void)result;
  helio_tape *tape = helio_tape_new();
  helio_tensor *loss = NULL, *images = helio_expand_dims(helio_cast(batch->part[0], HELIO_FLOAT32), -1);
  images = helio_mul(images, helio_fill(HELIO_SCALAR, 1.0 / 255));
  HELIO_TAPE(tape) {
    loss = helio_compute_loss(t->loss, batch->part[1], helio_call(t->model, images, .training = true));
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
 * The command
 */

static json_t *describe(const helio_strategy *strategy, const char *source, int64_t samples, int64_t batch,
                        double *rates, int epochs) {
  json_t *result = json_object(), *devices = json_array();
  for (int i = 0; i < helio_num_replicas(strategy); i++) {
    json_array_append_new(devices, output_text(helio_strategy_device(strategy, i)));
  }
  output_set(result, "version", output_text(helio_version()));
  output_set(result, "devices", devices);
  output_set(result, "collective", output_text(helio_strategy_collective(strategy)));
  output_set(result, "source", output_text(source));
  output_set(result, "samples", json_integer(samples));
  output_set(result, "batch", json_integer(batch));
  output_set(result, "epochs", json_integer(epochs));
  output_set(result, "samples_per_second", json_real(bench_median(rates, epochs)));
  output_set(result, "slowest", json_real(rates[0]));
  output_set(result, "fastest", json_real(rates[epochs - 1]));
  return result;
}

static json_t *measure(bool quick, int64_t batch) {
  trainer t = {0};
  helio_samples all = {0};
  const char *source = bench_samples(&all, quick);
  int64_t samples = quick ? QUICK_SAMPLES : SAMPLES;
  int epochs = quick ? QUICK_EPOCHS : EPOCHS;
  double rates[EPOCHS];
  helio_strategy *strategy = source ? helio_mirrored() : NULL;
  HELIO_SCOPE(strategy) make(&t);
  helio_dataset *dataset = helio_dataset_take(helio_dataset_from_slices(all.x, all.y), samples);
  helio_distributed *data = helio_distribute(strategy, helio_dataset_batch(dataset, batch));
  json_t *result = NULL;
  bool good = data && run_epoch(&t, strategy, data, samples) >= 0; /* not counted: memory is taken in it */
  for (int i = 0; i < epochs && good; i++) {
    rates[i] = run_epoch(&t, strategy, data, samples);
    good = rates[i] >= 0;
  }
  if (good) result = describe(strategy, source, samples, batch, rates, epochs);
  helio_release(t.model);
  return result;
}

static void show(const json_t *result) {
  printf("%.0f samples/s (median of %d epochs of %d samples; %.0f to %.0f), batches of %d on %d device%s\n",
         json_real_value(json_object_get(result, "samples_per_second")),
         (int)json_integer_value(json_object_get(result, "epochs")),
         (int)json_integer_value(json_object_get(result, "samples")),
         json_real_value(json_object_get(result, "slowest")), json_real_value(json_object_get(result, "fastest")),
         (int)json_integer_value(json_object_get(result, "batch")),
         (int)json_array_size(json_object_get(result, "devices")),
         json_array_size(json_object_get(result, "devices")) == 1 ? "" : "s");
}

static bool cut_device(int count) {
  int devices;
  const helio_device *const *list = helio_physical_devices(NULL, &devices);
  return list && devices > 0 && helio_set_logical_devices(list[0]->name, NULL, count) == HELIO_OK;
}

static int run_bench_training(const command_line *line) {
  long long batch = bench_number(line->values[BATCH], 256, 1000000);
  long long replicas = bench_number(line->values[REPLICAS], 0, MOST_REPLICAS);
  if (batch < 0) {
    return command_usage_error(line->path, "--batch needs a number of samples, not '%s'", line->values[BATCH]);
  }
  if (replicas < 0) {
    return command_usage_error(line->path, "--replicas needs a number up to %d, not '%s'", MOST_REPLICAS,
                               line->values[REPLICAS]);
  }
  helio_set_log_level(HELIO_LOG_WARNING);
  json_t *result = NULL;
  if (replicas == 0 || cut_device((int)replicas)) {
    HELIO_POOL {
      result = measure(line->values[QUICK] != NULL, batch);
    }
  }
  return bench_finish(line->path, result, line->values[JSON], show);
}

const command command_bench_training = {
    .name = "training",
    .summary = "Measures mirrored training",
    .description =
        "Samples a second that a convolutional network of 12,810 weights trains on, mirrored on all devices:\n"
        "images of bytes (Fashion-MNIST, or made up), split among the devices, a step of Adam for each batch.",
    .options = options,
    .run = run_bench_training,
};
