/* SPDX-License-Identifier: Apache-2.0 */
#include "training_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "output.h"

/* ---------------------------------------------------------------------------------------------------------------------
 * Before
 */

/* "CPU:0" of "/job:localhost/replica:0/task:0/device:CPU:0". */
static const char *short_name(const char *device) {
  const char *found = strstr(device, "device:");
  return found ? found + strlen("device:") : device;
}

static void print_data(const session *s) {
  printf("%s: %" PRId64 " samples to train on", helio_layer_name(s->model), sample_set_count(s->samples.x));
  if (s->samples.test_x) printf(", %" PRId64 " to validate on", sample_set_count(s->samples.test_x));
  printf("; batches of %" PRId64 ", %" PRId64 " step%s in an epoch\n", s->batch, s->steps, s->steps == 1 ? "" : "s");
}

/* Another column than the one that was meant would be learnt as well. */
static void print_labels(const sample_set *set) {
  char name[100];
  if (!set->label_column) return;
  printf("labels: column %d", set->label_column);
  if (set->label_name) printf(" (%s)", output_printable(name, sizeof name, set->label_name));
  printf(set->label_found  ? "\n"
         : set->label_name ? ", the last one: none is called label, class, target or y\n"
                           : ", the last one: there is no line of names\n");
}

static void print_devices(const session *s) {
  const char *wanted = s->asked->devices.collective;
  printf("%s on", devices_kind(s->strategy));
  for (int i = 0; i < s->device_count; i++) printf("%s %s", i ? "," : "", short_name(s->devices[i]));
  const char *collective = helio_strategy_collective(s->strategy);
  if (*collective) printf("; sums by %s", collective);
  if (!*collective && wanted) printf("; with one device %s has nothing to sum", wanted);
  printf("\n");
}

static void print_rate(const session *s) {
  const training *t = s->asked;
  bool grows = t->scaling != HELIO_SCALE_NONE && s->device_count > 1;
  double factor = t->scaling == HELIO_SCALE_LINEAR ? s->device_count : sqrt(s->device_count);
  printf(" with a rate %s %g", grows ? "that grows from" : "of", s->rate);
  if (t->resume && t->rate == 0) {
    printf(", or %s that of a checkpoint, if it goes on from one%s", grows ? "from" : "with", grows ? "," : "");
  }
  if (grows) {
    printf(" in %" PRId64 " step%s to %g times as much, for %d replicas", s->steps, s->steps == 1 ? "" : "s", factor,
           s->device_count);
  } else if (t->scaling != HELIO_SCALE_NONE) {
    printf(", not scaled for one replica");
  }
  printf("\n");
}

static void print_objective(const session *s) {
  objective_print(&s->objective);
  printf(", %s", helio_optimizer_name(s->optimizer));
  print_rate(s);
}

void report_begin(const session *s) {
  print_data(s);
  print_labels(&s->samples);
  print_devices(s);
  print_objective(s);
  fflush(stdout);
  helio_model_summary(s->model);
}

void report_resumed(const helio_training *t) {
  printf("It goes on with a rate of %g\n", helio_optimizer_learning_rate(t->optimizer));
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Behind
 */

static double last_of(const helio_history *history, const char *name) {
  int epochs = helio_history_epochs(history);
  return epochs ? helio_history_value(history, name, epochs - 1) : NAN;
}

static double samples_per_second(const session *s) {
  return s->tally.samples > 0 && s->tally.seconds > 0 ? (double)s->tally.samples / s->tally.seconds : NAN;
}

/* Of a training that went on without validation, what was validated before says nothing. */
static bool is_missing(const session *s, const char *name) {
  return strncmp(name, "val_", 4) == 0 && !s->samples.test_x && s->tally.steps > s->tally.begun;
}

void report_text(const session *s, const helio_history *history) {
  int epochs = helio_history_epochs(history);
  if (epochs == 0) return;
  if (s->tally.begun > 0 && s->tally.steps == s->tally.begun) {
    printf("Nothing was left to do: step %" PRId64 " had been reached before; more --epochs or --steps go on from it\n",
           s->tally.begun);
  }
  printf("After %d epoch%s, %" PRId64 " step%s:", epochs, epochs == 1 ? "" : "s", s->tally.steps,
         s->tally.steps == 1 ? "" : "s");
  for (int i = 0; i < helio_history_count(history); i++) {
    const char *name = helio_history_name(history, i);
    if (!is_missing(s, name)) printf("%s %s %.4f", i ? "," : "", name, output_unsigned_nan(last_of(history, name)));
  }
  printf("\n");
}

void report_files(const training *t, const files_written *written) {
  if (t->save && written->model) printf("model: %s\n", t->save);
  if (t->plot && written->plot) printf("plot: %s\n", t->plot);
  if (t->log && written->of_steps) printf("log: %s\n", t->log);
  if (t->timeline && written->of_steps) printf("timeline: %s\n", t->timeline);
  if (t->tensorboard) printf("tensorboard --logdir %s\n", t->tensorboard);
  if (t->checkpoint && written->checkpoints) printf("checkpoints: %s\n", t->checkpoint);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * For programs
 */

static json_t *devices_json(const session *s) {
  json_t *devices = json_array();
  for (int i = 0; i < helio_num_replicas(s->strategy); i++) {
    output_append(devices, output_text(helio_strategy_device(s->strategy, i)));
  }
  return devices;
}

static bool has_device(const helio_strategy *strategy, const char *name) {
  for (int i = 0; i < helio_num_replicas(strategy); i++) {
    if (strcmp(helio_strategy_device(strategy, i), name) == 0) return true;
  }
  return false;
}

/* Collectives that could not serve, operations that ran elsewhere, devices that were lost. */
static json_t *fallbacks_json(const session *s) {
  json_t *list = output_split(helio_strategy_fallbacks(s->strategy), "\n");
  uint64_t elsewhere = helio_placement_counts().operations;
  char text[300];
  if (elsewhere > 0) {
    snprintf(text, sizeof text, "%" PRIu64 " operations ran on other devices than asked for", elsewhere);
    output_append(list, output_text(text));
  }
  for (int i = 0; i < s->device_count; i++) {
    if (has_device(s->strategy, s->devices[i])) continue;
    snprintf(text, sizeof text, "%s was lost", s->devices[i]);
    output_append(list, output_text(text));
  }
  return list;
}

void report_json(const session *s, const helio_history *history) {
  static const char *const always[] = {"loss", "accuracy", "val_loss", "val_accuracy"};
  json_t *result = json_object();
  const char *collective = helio_strategy_collective(s->strategy);
  for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
    output_set(result, always[i], output_number(last_of(history, always[i])));
  }
  for (int i = 0; i < helio_history_count(history); i++) {
    const char *name = helio_history_name(history, i);
    output_set(result, name, output_number(last_of(history, name)));
  }
  output_set(result, "epochs", json_integer(helio_history_epochs(history)));
  output_set(result, "steps", json_integer(s->tally.steps));
  output_set(result, "samples_per_second", output_number(samples_per_second(s)));
  output_set(result, "devices", devices_json(s));
  output_set(result, "strategy", output_text(devices_kind(s->strategy)));
  output_set(result, "collective", *collective ? output_text(collective) : json_null());
  output_set(result, "fallbacks", fallbacks_json(s));
  output_json(result);
}
