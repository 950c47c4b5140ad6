/* SPDX-License-Identifier: Apache-2.0 */
/* helio train: trains a model that is known by name, or one whose architecture Keras has written. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "course.h"
#include "outlets.h"

enum {
  MODEL,
  DATA,
  STRATEGY,
  DEVICES,
  LOGICAL,
  COLLECTIVE,
  WEIGHTS,
  BATCH,
  BATCH_PER_REPLICA,
  EPOCHS,
  STEPS,
  OPTIMIZER,
  LR,
  SCALE_LR,
  LOSS,
  SEED,
  NO_SHUFFLE,
  INIT,
  SAVE,
  CHECKPOINT,
  CHECKPOINT_EVERY,
  RESUME,
  LOG,
  PLOT,
  TENSORBOARD,
  TIMELINE,
  JSON,
  QUIET
};

static const command_option options[] = {
    [MODEL] = {"model", "FILE.json", NULL, "train this architecture (Keras' model.to_json()), not a recipe"},
    [DATA] = {"data", "DIR|FILE", NULL, "where the samples are; unless given, where sets are looked for"},
    [STRATEGY] = {"strategy", "NAME", "one-device|mirrored", "how devices share the work"},
    [DEVICES] = {"devices", "NAMES", NULL, "train on these, as cpu:0,cpu:1"},
    [LOGICAL] = {"logical", "CUTS", NULL, "cut devices, as cpu:0=2 (HELIO_LOGICAL_DEVICES)"},
    [COLLECTIVE] = {"collective", "NAME", NULL, "what sums between devices"},
    [WEIGHTS] = {"weights", "NUMBERS", NULL, "shares of the devices in a batch, as 3,1"},
    [BATCH] = {"batch", "COUNT", NULL, "samples of a batch, for all devices together"},
    [BATCH_PER_REPLICA] = {"batch-per-replica", "COUNT", NULL, "samples of a batch for each device"},
    [EPOCHS] = {"epochs", "COUNT", NULL, "how often to go through the samples"},
    [STEPS] = {"steps", "COUNT", NULL, "end after so many steps"},
    [OPTIMIZER] = {"optimizer", "NAME", "sgd|adam|adamw|nadam|rmsprop|adagrad", "in place of the recipe's"},
    [LR] = {"lr", "RATE", NULL, "the learning rate"},
    [SCALE_LR] = {"scale-lr", "HOW", "none|linear|sqrt", "multiply the rate by the devices or their root"},
    [LOSS] = {"loss", "NAME", NULL, "in place of the one that suits the model"},
    [SEED] = {"seed", "NUMBER", NULL, "from which start values and orders follow"},
    [NO_SHUFFLE] = {"no-shuffle", NULL, NULL, "samples in the order of their file"},
    [INIT] = {"init", "FILE", NULL, "begin with these weights (.safetensors, Keras' names)"},
    [SAVE] = {"save", "FILE", NULL, "write the trained model (.safetensors)"},
    [CHECKPOINT] = {"checkpoint", "DIR", NULL, "write checkpoints there, also on SIGINT and SIGTERM"},
    [CHECKPOINT_EVERY] = {"checkpoint-every", "STEPS", NULL, "write one every so many steps, not each epoch"},
    [RESUME] = {"resume", NULL, NULL, "go on from the last checkpoint"},
    [LOG] = {"log", "FILE", NULL, "write a line of JSON for each step and epoch"},
    [PLOT] = {"plot", "FILE.svg", NULL, "draw the curves of training and validation"},
    [TENSORBOARD] = {"tensorboard", "DIR", NULL, "write events for TensorBoard"},
    [TIMELINE] = {"timeline", "FILE.json", NULL, "write what each device did when, as a Chrome trace"},
    [JSON] = {"json", NULL, NULL, "print the result as JSON, and nothing else"},
    [QUIET] = {"quiet", NULL, NULL, "print nothing but errors and what --json asks for"},
    {0},
};

_Static_assert(sizeof options / sizeof options[0] <= COMMAND_MAX_OPTIONS + 1, "a line has no room for all options");

/* ---------------------------------------------------------------------------------------------------------------------
 * The command line
 */

static int read_subject(const command_line *line, course *c) {
  const char *word = line->operand_count ? line->operands[0] : NULL;
  c->architecture = line->values[MODEL];
  if (line->operand_count > 1) {
    return command_usage_error(line->path, "one recipe at a time; there is '%s' too", line->operands[1]);
  }
  if (!word && !c->architecture) {
    return command_usage_error(line->path, "which recipe? '%s --help' lists them", line->path);
  }
  if (word && c->architecture) {
    return command_usage_error(line->path, "a recipe has its model: leave '%s' or --model out", word);
  }
  if (c->architecture && !line->values[DATA]) {
    return command_usage_error(line->path, "--model needs --data: an .npz or .csv file, or the name of a set");
  }
  c->recipe = word ? recipe_named(word) : NULL;
  return word && !c->recipe ? recipe_unknown(word, line->path) : EXIT_SUCCESS;
}

static int read_numbers(const command_line *line, course *c) {
  static const int64_t many = 1000000000;
  int status = command_integer(line, options, BATCH, 1, many, &c->batch);
  if (!status)
    status = command_integer(line, options, BATCH_PER_REPLICA, 1, many / HELIO_MAX_REPLICAS, &c->replica_batch);
  if (!status) status = command_integer(line, options, EPOCHS, 1, 1000000, &c->epochs);
  if (!status) status = command_integer(line, options, STEPS, 1, many, &c->limit);
  if (!status) status = command_integer(line, options, SEED, 0, INT64_MAX, &c->seed);
  if (!status) status = command_integer(line, options, CHECKPOINT_EVERY, 1, many, &c->checkpoint_every);
  return status ? status : command_real(line, options, LR, &c->rate);
}

static helio_rate_scaling scaling_of(const char *word) {
  if (!word || strcmp(word, "none") == 0) return HELIO_SCALE_NONE;
  return strcmp(word, "linear") == 0 ? HELIO_SCALE_LINEAR : HELIO_SCALE_SQRT;
}

/* Options that need or exclude others, and names that promise something else. */
static int check_together(const command_line *line) {
  const char *const *given = line->values;
  if (given[BATCH] && given[BATCH_PER_REPLICA]) {
    return command_usage_error(line->path, "--batch and --batch-per-replica exclude each other");
  }
  if (given[PLOT] && !command_ends_in(given[PLOT], ".svg")) {
    return command_usage_error(line->path, "--plot writes a picture in SVG: give it a name that ends in .svg, not '%s'",
                               given[PLOT]);
  }
  if (given[SAVE] && !command_ends_in(given[SAVE], ".safetensors")) {
    return command_usage_error(line->path, "--save writes a .safetensors file: give it a name that ends so, not '%s'",
                               given[SAVE]);
  }
  if (!given[CHECKPOINT] && (given[RESUME] || given[CHECKPOINT_EVERY])) {
    return command_usage_error(line->path, "--%s needs --checkpoint, the folder",
                               options[given[RESUME] ? RESUME : CHECKPOINT_EVERY].name);
  }
  return EXIT_SUCCESS;
}

static int read_options(const command_line *line, course *c) {
  const char *const *given = line->values;
  *c = (course){.path = line->path,
                .data = given[DATA],
                .loss = given[LOSS],
                .init = given[INIT],
                .devices = {given[STRATEGY], given[DEVICES], given[LOGICAL], given[COLLECTIVE], given[WEIGHTS]},
                .optimizer = given[OPTIMIZER],
                .scaling = scaling_of(given[SCALE_LR]),
                .seed = -1,
                .in_order = given[NO_SHUFFLE],
                .save = given[SAVE],
                .checkpoint = given[CHECKPOINT],
                .log = given[LOG],
                .plot = given[PLOT],
                .tensorboard = given[TENSORBOARD],
                .timeline = given[TIMELINE],
                .resume = given[RESUME],
                .json = given[JSON],
                .quiet = given[QUIET]};
  int status = read_subject(line, c);
  if (!status) status = read_numbers(line, c);
  return status ? status : check_together(line);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * What will be written
 */

static const int files[] = {SAVE, LOG, PLOT, TIMELINE};
static const int others[] = {MODEL, DATA, INIT, CHECKPOINT, TENSORBOARD}; /* that no file may take the place of */
enum { FILES = sizeof files / sizeof files[0], OTHERS = sizeof others / sizeof others[0] };

static int check_pair(const command_line *line, int one, int other) {
  const char *const *given = line->values;
  if (!given[one] || !given[other] || !outlet_is_same(given[one], given[other])) return EXIT_SUCCESS;
  return command_usage_error(line->path, "--%s and --%s name the same place", options[one].name, options[other].name);
}

/* Only a model may take the place of the one that it began with. */
static int check_different(const command_line *line) {
  int status = EXIT_SUCCESS;
  for (int i = 0; i < FILES; i++) {
    for (int k = 0; k < i && !status; k++) status = check_pair(line, files[k], files[i]);
    for (int k = 0; k < OTHERS && !status; k++) {
      if (files[i] != SAVE || others[k] != INIT) status = check_pair(line, others[k], files[i]);
    }
  }
  return status;
}

static int check_outlets(const command_line *line) {
  int status = check_different(line);
  for (int i = 0; i < FILES && !status; i++) {
    status = outlet_check_file(options[files[i]].name, line->values[files[i]], line->path);
  }
  if (!status) status = outlet_check_folder("checkpoint", line->values[CHECKPOINT], line->path);
  return status ? status : outlet_check_folder("tensorboard", line->values[TENSORBOARD], line->path);
}

static int run_train(const command_line *line) {
  course c;
  int status = read_options(line, &c);
  if (!status) status = check_outlets(line);
  if (status) return status;
  return course_run(&c);
}

const command command_train = {
    .name = "train",
    .summary = "Trains a model on one device or on several",
    .description = RECIPE_HELP "'helio data get NAME' brings the data of the first three.",
    .operands = "RECIPE",
    .operand_words = RECIPE_WORDS,
    .options = options,
    .run = run_train,
};
