/* SPDX-License-Identifier: Apache-2.0 */
/* Heliostat: training as Keras has it. Included by helio.h; there is no need to include it by itself.
 *
 *   helio_compile(model, .optimizer = helio_adam(), .loss = helio_sparse_categorical_crossentropy(),
 *                 .metrics = {helio_sparse_categorical_accuracy()});
 *   helio_fit(model, train, .epochs = 10, .validation = test);
 *
 * A model that was made in the scope of a strategy is trained by that strategy: batches are cut among its replicas,
 * and with any number of them the result is that of one device, to rounding. When a device is lost, the step is
 * repeated on those that are left, unless the strategy says HELIO_STOP. Outside of scopes the same calls train on one
 * device.
 */
#ifndef HELIO_TRAIN_H
#define HELIO_TRAIN_H

#include <helio/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- compile ---- */

#define HELIO_MOST_METRICS 16

/* Says how the model learns and what is measured. The model holds the objects it is given. Metrics are taken over: they
 * begin at zero and count over all replicas. Compiling again replaces all of this; the weights stay. */
typedef struct helio_compile_options {
  size_t size;
  helio_model *model;
  helio_optimizer *optimizer; /* NULL: optimizer_name, which is "rmsprop" unless given, as in Keras */
  const char *optimizer_name;
  helio_loss *loss; /* NULL: loss_name; neither: the model only predicts */
  const char *loss_name;
  helio_metric *metrics[HELIO_MOST_METRICS]; /* up to the first NULL; after them those of metric_names */
  const char *metric_names[HELIO_MOST_METRICS];
  helio_metric *weighted_metrics[HELIO_MOST_METRICS]; /* weighted by sample weights, as the loss is */
  int input_count; /* of a model of the user's own that takes several; 0: what the model says, else 1 */
} helio_compile_options;

HELIO_EXPORT helio_status helio_compile_with(const helio_compile_options *options);
#define helio_compile(...) HELIO_MAKE(helio_compile_with, helio_compile_options, __VA_ARGS__)

HELIO_EXPORT helio_optimizer *helio_model_optimizer(const helio_model *model); /* NULL: it was not compiled */

/* ---- what was measured ---- */

/* Values by name, in the order in which progress shows them: "loss", metrics as they were compiled, then the same with
 * "val_". Reading a value waits for it. */
typedef struct helio_logs helio_logs;

HELIO_EXPORT int helio_logs_count(const helio_logs *logs);
HELIO_EXPORT const char *helio_logs_name(const helio_logs *logs, int index);
HELIO_EXPORT double helio_logs_value(helio_logs *logs, int index); /* NaN with the error set if it cannot be read */
HELIO_EXPORT double helio_logs_get(helio_logs *logs, const char *name); /* likewise if there is none of that name */

/* ---- callbacks ---- */

/* Where a training stands, for callbacks. */
typedef struct helio_training {
  size_t size;
  helio_model *model;
  helio_optimizer *optimizer;
  helio_strategy *strategy;
  int epoch, epochs;         /* this one, from 0, and how many there are */
  int64_t step, steps;       /* in this epoch: taken so far, and how many there are; −1: not known */
  int64_t resumed_steps;     /* how many of `step` were taken before the training resumed */
  int64_t total_steps;       /* taken since the training began, resumed ones among them */
  int64_t samples;           /* of the batch; after an epoch, of all its batches */
  double seconds;            /* that the batch or the epoch took; after a training, all of it */
  helio_logs *logs;          /* after a batch means since the epoch began, after an epoch those of the epoch */
  helio_logs *batch_logs;    /* after a batch: its own loss alone */
  double input_seconds;      /* of `seconds`: waiting for data; */
  double reduce_seconds;     /* summing over replicas and waiting for each other, the mean over replicas; */
  double validation_seconds; /* measuring on validation data; samples / (seconds − this) is how fast it trains */
  bool stop;                 /* may be set: ends the training after the batch or epoch */
  bool failed;               /* after a training: it ended by an error */
} helio_training;

typedef helio_status (*helio_callback_function)(void *user, helio_training *training);

/* Functions of the user's, each of which may be NULL. A status that is not HELIO_OK ends the training with it. */
typedef struct helio_callback_options {
  size_t size;
  void *user;
  helio_callback_function train_begin, train_end; /* the end is called even if the training fails */
  helio_callback_function epoch_begin, epoch_end;
  helio_callback_function batch_begin, batch_end;
  helio_callback_function test_begin, test_end; /* of validation and of helio_evaluate() */
  helio_callback_function test_batch_end;
  const char *name;                                       /* of its state in checkpoints; NULL: it has none */
  char *(*save)(void *user);                              /* the state as a text of malloc(); NULL: failed */
  helio_status (*restore)(void *user, const char *state); /* of a training that goes on, before train_begin */
  void (*release)(void *user);                            /* when nobody holds the callback any more */
} helio_callback_options;

typedef struct helio_callback helio_callback;
HELIO_EXPORT helio_callback *helio_callback_with(const helio_callback_options *options);
#define helio_callback(...) HELIO_MAKE(helio_callback_with, helio_callback_options, __VA_ARGS__)

/* The usual ones, with Keras' names, arguments and defaults. Each is owned by the pool, like everything that a call
 * makes; fit holds those that it is given until it ends. Files that cannot be written end the training with an error.
 */

/* A line for each epoch: "epoch,accuracy,loss,val_accuracy,val_loss", then numbers, the first of which counts from 0.
 * Columns are the values of the first epoch, sorted by name, as in Keras, and those of validation even if it had none.
 * A value that an epoch lacks is NA. */
typedef struct helio_csv_logger_options {
  size_t size;
  const char *path;
  bool append;    /* to the file's lines, with its columns; a training that resumes always appends */
  char separator; /* 0: ',' */
} helio_csv_logger_options;

/* A JSON object on a line for each step, {"step": 1, "loss": 2.3, "samples": 128, "ms": 4.2}, and one for each epoch,
 * {"epoch": 1, "steps": 469, "seconds": 2.1, "learning_rate": 0.001, "loss": …, "val_loss": …}. Both count from 1,
 * steps over all epochs; a value that is not finite is null. Unless epochs_only, it reads the loss of each step, and so
 * waits for it. */
typedef struct helio_json_logger_options {
  size_t size;
  const char *path;
  bool append; /* as above */
  bool epochs_only;
} helio_json_logger_options;

/* Some callbacks watch a value by name. If no value has that name, a warning lists once those that there are. A value
 * is better if it improves by more than min_delta, compared as float32. */
typedef enum helio_monitor_mode {
  HELIO_MONITOR_MIN = 1, /* the smaller, the better */
  HELIO_MONITOR_MAX = 2,
} helio_monitor_mode;

/* Saves the model, or its weights, after epochs. The path may contain "{epoch}", "{epoch:02d}", with every_steps
 * "{batch}", and the names of values, "{val_loss:.2f}", as in Keras; both numbers count from 1. Missing folders are
 * made. The best value is that over all trainings with this callback, and is kept in checkpoints. */
typedef struct helio_model_checkpoint_options {
  size_t size;
  const char *path;
  const char *monitor;     /* NULL: "val_loss" */
  helio_monitor_mode mode; /* 0: by the metric of that name: smaller is better for losses, larger for accuracies */
  bool save_best_only, save_weights_only;
  int64_t every_steps;      /* 0: after each epoch */
  double initial_threshold; /* with has_threshold: the first value must be better than this */
  bool has_threshold;
  bool verbose; /* logs what it does; likewise below */
} helio_model_checkpoint_options;

/* Ends the training when the value has not improved for a while. Checkpoints keep the best value and how long ago it
 * was, not the best weights: if no epoch after resuming is better, the weights of the last epoch stay, with a warning.
 */
typedef struct helio_early_stopping_options {
  size_t size;
  const char *monitor; /* NULL: "val_loss" */
  double min_delta;    /* what counts as better */
  int patience;        /* epochs in a row without improvement after which training stops */
  helio_monitor_mode mode;
  double baseline; /* with has_baseline: the value must be better than this to count */
  bool has_baseline;
  bool restore_best_weights; /* in the end, whether it was stopped or not */
  int start_from_epoch;
  bool verbose;
} helio_early_stopping_options;

/* Returns the rate of an epoch, given its number, from 0, and the rate before. This and the next callback add
 * "learning_rate" to the values, for the history and for callbacks after them, and refuse an optimizer with a schedule.
 */
typedef double (*helio_rate_function)(void *user, int epoch, double rate);

typedef struct helio_reduce_on_plateau_options {
  size_t size;
  const char *monitor; /* NULL: "val_loss" */
  double factor;       /* 0: 0.1, HELIO_ZERO: 0 */
  int patience;        /* 0: 10, HELIO_INTEGER_ZERO: 0 */
  helio_monitor_mode mode;
  double min_delta; /* 0: 0.0001, HELIO_ZERO: 0 */
  int cooldown;     /* epochs after a reduction that are not counted */
  double min_learning_rate;
  bool verbose;
} helio_reduce_on_plateau_options;

/* Event files for TensorBoard, in `folder`/train and `folder`/validation: epoch_loss and the like, epoch_learning_rate,
 * epoch_step_ms; evaluation_loss_vs_iterations; with every_steps also batch_loss and the like, means since the epoch
 * began, and batch_step_ms. The tags are Keras', except for times. */
typedef struct helio_tensorboard_options {
  size_t size;
  const char *folder;
  int64_t every_steps; /* 0: only epochs */
} helio_tensorboard_options;

HELIO_EXPORT helio_callback *helio_csv_logger_with(const helio_csv_logger_options *options);
HELIO_EXPORT helio_callback *helio_json_logger_with(const helio_json_logger_options *options);
HELIO_EXPORT helio_callback *helio_model_checkpoint_with(const helio_model_checkpoint_options *options);
HELIO_EXPORT helio_callback *helio_early_stopping_with(const helio_early_stopping_options *options);
HELIO_EXPORT helio_callback *helio_reduce_on_plateau_with(const helio_reduce_on_plateau_options *options);
HELIO_EXPORT helio_callback *helio_tensorboard_with(const helio_tensorboard_options *options);
#define helio_csv_logger(...)       HELIO_MAKE(helio_csv_logger_with, helio_csv_logger_options, __VA_ARGS__)
#define helio_json_logger(...)      HELIO_MAKE(helio_json_logger_with, helio_json_logger_options, __VA_ARGS__)
#define helio_model_checkpoint(...) HELIO_MAKE(helio_model_checkpoint_with, helio_model_checkpoint_options, __VA_ARGS__)
#define helio_early_stopping(...)   HELIO_MAKE(helio_early_stopping_with, helio_early_stopping_options, __VA_ARGS__)
#define helio_reduce_on_plateau(...)                                                                                   \
  HELIO_MAKE(helio_reduce_on_plateau_with, helio_reduce_on_plateau_options, __VA_ARGS__)
#define helio_tensorboard(...) HELIO_MAKE(helio_tensorboard_with, helio_tensorboard_options, __VA_ARGS__)

HELIO_EXPORT helio_callback *helio_learning_rate_scheduler(helio_rate_function function, void *user);
HELIO_EXPORT helio_callback *helio_terminate_on_nan(void); /* reads the loss of each batch, and so waits for it */

/* A Chrome trace, for chrome://tracing and Perfetto: a track for each replica with "compute", until its gradients are
 * there, and "reduce", until it has the sums; and a track with waits for "input". Sums that are formed while gradients
 * are still computed count as compute. The values of each epoch are drawn as curves. */
HELIO_EXPORT helio_callback *helio_timeline(const char *path);

/* ---- fit ---- */

#define HELIO_MOST_CALLBACKS 16

typedef enum helio_verbosity {
  HELIO_VERBOSE = 1, /* a bar on a terminal, else a line for each epoch */
  HELIO_LINES = 2,   /* a line for each epoch */
  HELIO_QUIET = 3,
} helio_verbosity;

/* Samples: a dataset of batches, whose elements are features (one part for each input of the model), labels and,
 * optionally, sample weights; or arrays or tensors, which are cut into batches. */
typedef struct helio_fit_options {
  size_t size;
  helio_model *model;
  helio_dataset *dataset;
  helio_array *x, *y, *sample_weights; /* instead of a dataset */
  helio_tensor *x_tensor, *y_tensor;   /* instead of arrays */
  int64_t batch_size;                  /* of arrays; 0: 32 */
  bool no_shuffle;                     /* arrays in their order; else shuffled in every epoch */
  int epochs;                          /* 0: 1 */
  int initial_epoch;                   /* to begin with; earlier ones count as done */
  int64_t steps_per_epoch;             /* 0: until the data end. One iteration then serves all epochs */
  const double *class_weights;         /* by label: weights of samples in training; validation has none */
  int class_count;
  int accumulate_steps; /* at least 2: a step takes the mean gradient of this many batches; 0: as set in the
                         * optimizer, which keeps a number given here */

  helio_dataset *validation;
  helio_array *validation_x, *validation_y, *validation_weights; /* instead of a dataset */
  helio_tensor *validation_x_tensor, *validation_y_tensor;       /* instead of arrays */
  double validation_split;                                       /* the last part of the arrays, as in Keras */
  int validation_frequency;                                      /* in epochs; 0: 1 */
  int64_t validation_steps;                                      /* 0: until the data end */
  int64_t validation_batch_size;                                 /* of arrays; 0: batch_size */

  /* Checkpoints: files in a folder from which the training continues, to the bit. With a folder, SIGINT, SIGTERM and
   * SIGHUP make helio_fit() finish the step, write a checkpoint and return; a second SIGINT ends the process at once.
   */
  const char *checkpoint;         /* the folder; NULL: none are written */
  int64_t checkpoint_every_steps; /* 0: not by steps */
  int checkpoint_every_epochs;    /* 0: each, unless they are written by steps. One is written at the end, too */
  int keep_checkpoints;           /* how many of the last ones; 0: 3, HELIO_ALL: all */
  bool resume;                    /* from the last undamaged one, from the beginning if there is none; that of a model
                                   * of another name, or of another loss, is refused */
  bool no_signals;                /* do not catch them */

  helio_callback *callbacks[HELIO_MOST_CALLBACKS]; /* up to the first NULL, in this order */
  helio_verbosity verbose;                         /* 0: HELIO_VERBOSE */

  /* How many samples a replica computes at a time, if its part of a batch has more: gradients are added up, which needs
   * less memory and gives the same step, to rounding. It is an error for models of the user's own or with layers that
   * look at several samples together or draw random numbers (BatchNormalization, Dropout), and for losses whose mean is
   * divided by weights or by classes that count. 0: all at once. */
  int64_t micro_batch;
} helio_fit_options;

/* What was measured in each epoch; owned by the pool. NULL if the training failed. */
typedef struct helio_history helio_history;
HELIO_EXPORT helio_history *helio_fit_with(const helio_fit_options *options);
#define helio_fit(...) HELIO_MAKE(helio_fit_with, helio_fit_options, __VA_ARGS__)

/* The signal that ended the training; 0: none. All epochs may be done even so, if it came late. */
HELIO_EXPORT int helio_history_signal(const helio_history *history);

/* How many steps had been taken when the last checkpoint was written; −1: none was. */
HELIO_EXPORT int64_t helio_history_checkpoint_step(const helio_history *history);

HELIO_EXPORT int helio_history_epochs(const helio_history *history);              /* how many it has */
HELIO_EXPORT int helio_history_epoch(const helio_history *history, int index);    /* the number of one, from 0 */
HELIO_EXPORT int helio_history_count(const helio_history *history);               /* of names */
HELIO_EXPORT const char *helio_history_name(const helio_history *history, int i); /* in the order of progress */
/* NaN, which is no error, where there is none: validation is not measured in every epoch. */
HELIO_EXPORT double helio_history_value(const helio_history *history, const char *name, int index);

/* ---- evaluate, predict, single batches ---- */

typedef struct helio_evaluate_options {
  size_t size;
  helio_model *model;
  helio_dataset *dataset;
  helio_array *x, *y, *sample_weights; /* instead of a dataset */
  helio_tensor *x_tensor, *y_tensor;   /* instead of arrays */
  int64_t batch_size;                  /* of arrays; 0: 32 */
  int64_t steps;                       /* 0: until the data end */
  helio_callback *callbacks[HELIO_MOST_CALLBACKS];
  helio_verbosity verbose;
} helio_evaluate_options;

/* Owned by the pool; NULL with the error set. Only one thread at a time may train or evaluate a model: another one is
 * refused meanwhile. */
HELIO_EXPORT helio_logs *helio_evaluate_with(const helio_evaluate_options *options);
#define helio_evaluate(...) HELIO_MAKE(helio_evaluate_with, helio_evaluate_options, __VA_ARGS__)

typedef struct helio_predict_options {
  size_t size;
  helio_model *model;
  helio_dataset *dataset; /* the first parts of its elements are the model's inputs, others are ignored */
  helio_array *x;         /* instead of a dataset */
  helio_tensor *x_tensor; /* instead of an array */
  int64_t batch_size;     /* of arrays; 0: 32 */
  int64_t steps;          /* 0: until the data end */
} helio_predict_options;

/* The model's results for all samples, one after the other: helio_predict(model, .x = images). Needs no
 * helio_compile(). */
HELIO_EXPORT helio_array *helio_predict_with(const helio_predict_options *options);
#define helio_predict(...) HELIO_MAKE(helio_predict_with, helio_predict_options, __VA_ARGS__)

/* One step with one batch, cut among the replicas like any other: helio_train_on_batch(model, .x = x, .y = y). The
 * values returned are those of this batch alone. */
typedef struct helio_batch_options {
  size_t size;
  helio_model *model;
  helio_array *x, *y, *sample_weights;
  helio_tensor *x_tensor, *y_tensor;
  const double *class_weights;
  int class_count;
} helio_batch_options;

HELIO_EXPORT helio_logs *helio_train_on_batch_with(const helio_batch_options *options);
HELIO_EXPORT helio_logs *helio_test_on_batch_with(const helio_batch_options *options);
#define helio_train_on_batch(...) HELIO_MAKE(helio_train_on_batch_with, helio_batch_options, __VA_ARGS__)
#define helio_test_on_batch(...)  HELIO_MAKE(helio_test_on_batch_with, helio_batch_options, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
