/* SPDX-License-Identifier: Apache-2.0 */
/* helio bench data: how many samples a second an input pipeline brings to a device: images of bytes, shuffled, in
 * batches, as float32 from 0 to 1, made ahead by a thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "command.h"
#include "output.h"
#include "sample_set.h"

enum { JSON, QUICK, DEVICE, BATCH };

static const command_option options[] = {
    [JSON] = {"json", NULL, NULL, "print JSON"},
    [QUICK] = {"quick", NULL, NULL, "fewer samples and epochs"},
    [DEVICE] = {"device", "NAME", NULL, "bring them to this device instead of the preferred one"},
    [BATCH] = {"batch", "COUNT", NULL, "batch size (default: 4096)"},
    {0},
};

/* ---------------------------------------------------------------------------------------------------------------------
 * Data
 */

enum { SAMPLES = 60000, QUICK_SAMPLES = 10000, SIDE = 28, EPOCHS = 11, QUICK_EPOCHS = 3 };

/* Images as many and as large, where the real ones are not there. */
static bool make_up(helio_samples *samples) {
  size_t count = (size_t)SAMPLES * SIDE * SIDE;
  uint8_t *images = malloc(count), *labels = malloc(SAMPLES);
  if (!images || !labels) output_out_of_memory();
  uint64_t state = 1;
  for (size_t i = 0; i < count; i++) images[i] = (uint8_t)(bench_draw(&state) >> 24);
  for (int i = 0; i < SAMPLES; i++) labels[i] = (uint8_t)(i % 10);
  samples->x = helio_array_of(images, HELIO_SHAPE(SAMPLES, SIDE, SIDE), .type = HELIO_UINT8);
  samples->y = helio_array_of(labels, HELIO_SHAPE(SAMPLES), .type = HELIO_UINT8);
  free(images);
  free(labels);
  return samples->x && samples->y;
}

const char *bench_samples(helio_samples *samples, bool quick) {
  const char *source = "fashion-mnist";
  if (helio_load_data("fashion-mnist", .train = samples) != HELIO_OK) {
    helio_error_take(NULL);
    source = "made up";
    if (!make_up(samples)) return NULL;
  }
  if (quick && sample_set_count(samples->x) > QUICK_SAMPLES) {
    samples->x = helio_array_part(samples->x, 0, QUICK_SAMPLES);
    samples->y = helio_array_part(samples->y, 0, QUICK_SAMPLES);
  }
  return samples->x && samples->y ? source : NULL;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The pipeline
 */

static helio_status scale(void *argument, helio_element *element) {
  (void)argument;
  helio_tensor *images = helio_cast(element->part[0], HELIO_FLOAT32);
  element->part[0] = helio_mul(images, helio_fill(HELIO_SCALAR, 1.0 / 255));
  return HELIO_OK;
}

static helio_dataset *build(const helio_samples *samples, int64_t batch) {
  helio_dataset *dataset = helio_dataset_from_slices(samples->x, samples->y);
  dataset = helio_dataset_shuffle(dataset, SAMPLES);
  dataset = helio_dataset_batch(dataset, batch);
  dataset = helio_dataset_map(dataset, scale);
  return helio_dataset_prefetch(dataset, HELIO_AUTO);
}

/* Samples of one epoch a second, with all work that the device was handed done; negative on failure. */
static double run_epoch(helio_dataset *dataset, const char *device) {
  int64_t count = 0;
  double start = bench_seconds();
  HELIO_POOL {
    helio_iterator *iterator = helio_iterate(dataset);
    helio_element element;
    bool more = true;
    while (more) {
      HELIO_POOL {
        more = helio_next(iterator, &element);
        if (more) count += helio_tensor_shape(element.part[0]).extent[0];
      }
    }
    helio_synchronize(device);
  }
  return helio_error_pending() ? -1 : (double)count / (bench_seconds() - start);
}

static json_t *measure(const bench_options *bench, int64_t batch) {
  helio_samples samples = {0};
  const char *source = bench_samples(&samples, bench->quick);
  helio_dataset *dataset = source ? build(&samples, batch) : NULL;
  int epochs = bench->quick ? QUICK_EPOCHS : EPOCHS;
  double rates[EPOCHS];
  if (!dataset || run_epoch(dataset, bench->device->name) < 0) return NULL; /* not counted: memory is taken in it */
  for (int i = 0; i < epochs; i++) {
    rates[i] = run_epoch(dataset, bench->device->name);
    if (rates[i] < 0) return NULL;
  }
  json_t *result = json_object();
  output_set(result, "version", output_text(helio_version()));
  output_set(result, "device", output_text(bench->device->name));
  output_set(result, "source", output_text(source));
  bench_set_rates(result, sample_set_count(samples.x), batch, rates, epochs);
  return result;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The command
 */

static void show(const json_t *result) {
  printf("28 x 28 images (%s), shuffled, in batches of %d, float32 on %s:\n",
         json_string_value(json_object_get(result, "source")),
         (int)json_integer_value(json_object_get(result, "batch")),
         json_string_value(json_object_get(result, "device")));
  bench_show_rates(result);
  printf("\n");
}

static int run_bench_data(const command_line *line) {
  int64_t batch = 4096;
  int status = command_integer(line, options, BATCH, 1, 1000000, &batch);
  if (status) return status;
  bench_options bench = {.device = bench_device(line->values[DEVICE]), .quick = line->values[QUICK] != NULL};
  json_t *result = NULL;
  if (bench.device) {
    HELIO_POOL {
      HELIO_DEVICE(bench.device->name) result = measure(&bench, batch);
    }
  }
  return bench_finish(line->path, result, line->values[JSON], show);
}

const command command_bench_data = {
    .name = "data",
    .summary = "Measures an input pipeline",
    .description = "Samples a second that come to a device: images of bytes (Fashion-MNIST, or made up), shuffled, in\n"
                   "batches, as float32 from 0 to 1, made ahead by a thread.",
    .options = options,
    .run = run_bench_data,
};
