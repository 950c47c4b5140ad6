/* SPDX-License-Identifier: Apache-2.0 */
/* helio train: trains a model that is known by name, or one of a file: an architecture that Keras has written, or a
 * saved model. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "output_paths.h"
#include "training.h"

enum {
  MODEL,
  DATA,
  VALIDATION_SPLIT,
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
    [MODEL] = {"model", "FILE", NULL, "train this architecture (Keras' model.to_json()) or saved model"},
    [DATA] = {"data", "DIR|FILE", NULL, "folder or file of samples (default: where 'helio data list' looks)"},
    [VALIDATION_SPLIT] = {"validation-split", "FRACTION", NULL,
                          "keep this part of the samples, the last, for validation"},
    [STRATEGY] = {"strategy", "NAME", "one-device|mirrored", "how devices share the work"},
    [DEVICES] = {"devices", "NAMES", NULL, "train on these devices, such as gpu:0,gpu:1"},
    [LOGICAL] = {"logical", "CUTS", NULL, "cut devices into logical ones, such as cpu:0=2"},
    [COLLECTIVE] = {"collective", "NAME", NULL, "what sums gradients across devices (local, ring, ...)"},
    [WEIGHTS] = {"weights", "NUMBERS", NULL, "shares of the devices in a batch, such as 3,1"},
    [BATCH] = {"batch", "COUNT", NULL, "global batch size (default: the recipe's; 32 with --model)"},
    [BATCH_PER_REPLICA] = {"batch-per-replica", "COUNT", NULL, "batch size per device"},
    [EPOCHS] = {"epochs", "COUNT", NULL, "passes over the samples (default: 10; linear: 2)"},
    [STEPS] = {"steps", "COUNT", NULL, "stop after this many steps"},
    [OPTIMIZER] = {"optimizer", "NAME", "sgd|adam|adamw|nadam|rmsprop|adagrad",
                   "override the recipe's, or adam with --model"},
    [LR] = {"lr", "RATE", NULL, "the learning rate (default: the recipe's or the optimizer's)"},
    [SCALE_LR] = {"scale-lr", "HOW", "none|linear|sqrt",
                  "scale the learning rate by the number of devices or its square root"},
    [LOSS] = {"loss", "NAME", NULL, "override the loss chosen from the last layer and the labels"},
    [SEED] = {"seed", "NUMBER", NULL, "seed of initial weights and shuffling (default: HELIO_SEED)"},
    [NO_SHUFFLE] = {"no-shuffle", NULL, NULL, "take the samples in the order of their file"},
    [INIT] = {"init", "FILE", NULL, "start from these weights (.safetensors, Keras' names)"},
    [SAVE] = {"save", "FILE", NULL, "write the trained model (.safetensors)"},
    [CHECKPOINT] = {"checkpoint", "DIR", NULL, "write checkpoints to this folder, also when it is interrupted"},
    [CHECKPOINT_EVERY] = {"checkpoint-every", "STEPS", NULL, "write one every STEPS steps instead of after each epoch"},
    [RESUME] = {"resume", NULL, NULL, "continue from the last checkpoint"},
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

static int read_subject(const command_line *line, training *t) {
  const char *word = line->operand_count ? line->operands[0] : NULL;
  t->architecture = line->values[MODEL];
  if (!word && !t->architecture) {
    return command_usage_error(line->path, "which recipe? '%s --help' lists them; --model FILE is for other models",
                               line->path);
  }
  if (word && t->architecture) {
    return command_usage_error(line->path, "a recipe has its model: leave '%s' or --model out", word);
  }
  if (t->architecture && !line->values[DATA]) {
    return command_usage_error(line->path, "--model needs --data: an .npz or .csv file, or the name of a set");
  }
  if (t->architecture && recipe_named(t->architecture) && access(t->architecture, F_OK) != 0) {
    return command_usage_error(line->path, "%s is a recipe, not a file: '%s %s' trains it", t->architecture, line->path,
                               t->architecture);
  }
  t->recipe = word ? recipe_named(word) : NULL;
  if (word && !t->recipe && strpbrk(word, "./")) {
    return command_usage_error(line->path, "'%s' is no recipe; --model %s --data … trains the model of a file", word,
                               word);
  }
  return word && !t->recipe ? recipe_unknown(word, line->path) : EXIT_SUCCESS;
}

static int read_split(const command_line *line, training *t) {
  int status = command_real(line, options, VALIDATION_SPLIT, &t->validation_split);
  if (status || t->validation_split < 1) return status;
  return command_usage_error(line->path, "--validation-split takes a number between 0 and 1, not '%s'",
                             line->values[VALIDATION_SPLIT]);
}

static int read_numbers(const command_line *line, training *t) {
  static const int64_t many = 1000000000;
  int status = command_integer(line, options, BATCH, 1, many, &t->batch);
  if (!status)
    status = command_integer(line, options, BATCH_PER_REPLICA, 1, many / HELIO_MAX_REPLICAS, &t->replica_batch);
  if (!status) status = command_integer(line, options, EPOCHS, 1, 1000000, &t->epochs);
  if (!status) status = command_integer(line, options, STEPS, 1, many, &t->limit);
  if (!status) status = command_integer(line, options, SEED, 0, INT64_MAX, &t->seed);
  if (!status) status = command_integer(line, options, CHECKPOINT_EVERY, 1, many, &t->checkpoint_every);
  if (!status) status = read_split(line, t);
  return status ? status : command_real(line, options, LR, &t->rate);
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

static int read_options(const command_line *line, training *t) {
  const char *const *given = line->values;
  *t = (training){.path = line->path,
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
                  .talks = !given[JSON] && !given[QUIET]};
  int status = read_subject(line, t);
  if (!status) status = read_numbers(line, t);
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
  if (!given[one] || !given[other] || !output_path_is_same(given[one], given[other])) return EXIT_SUCCESS;
  if (one == DATA && command_is_word(given[one])) return EXIT_SUCCESS; /* the name of a set */
  return command_usage_error(line->path, "--%s and --%s name the same place", options[one].name, options[other].name);
}

/* Only a model may take the place of the one that it began with. */
static int check_different(const command_line *line) {
  int status = EXIT_SUCCESS;
  for (int i = 0; i < FILES; i++) {
    for (int k = 0; k < i && !status; k++) status = check_pair(line, files[k], files[i]);
    for (int k = 0; k < OTHERS && !status; k++) {
      bool same_model = files[i] == SAVE && (others[k] == INIT || others[k] == MODEL);
      if (!same_model) status = check_pair(line, others[k], files[i]);
    }
  }
  return status;
}

static int check_outputs(const command_line *line) {
  int status = check_different(line);
  for (int i = 0; i < FILES && !status; i++) {
    bool grows = files[i] == LOG || files[i] == TIMELINE;
    status = output_path_check_file(options[files[i]].name, line->values[files[i]], grows, line->path);
  }
  if (!status) status = output_path_check_folder("checkpoint", line->values[CHECKPOINT], line->path);
  return status ? status : output_path_check_folder("tensorboard", line->values[TENSORBOARD], line->path);
}

static int run_train(const command_line *line) {
  training t;
  int status = read_options(line, &t);
  if (!status) status = check_outputs(line);
  if (status) return status;
  return training_run(&t);
}

const command command_train = {
    .name = "train",
    .summary = "Trains a model on one device or on several",
    .description = RECIPE_HELP "'helio data get NAME' brings the data of the first three.",
    .operands = "[RECIPE]",
    .operand_words = RECIPE_WORDS,
    .options = options,
    .run = run_train,
};
