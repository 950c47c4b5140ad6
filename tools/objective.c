/* SPDX-License-Identifier: Apache-2.0 */
#include "objective.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

enum { LABELS_AT_A_TIME = 1 << 16 };

/* ---- the last layer ---- */

static json_t *layers_of(const json_t *model) {
  return json_object_get(json_object_get(model, "config"), "layers");
}

static json_t *layer_named(const json_t *layers, const char *name) {
  json_t *layer;
  size_t i;
  json_array_foreach(layers, i, layer) {
    const char *own = json_string_value(json_object_get(layer, "name"));
    if (name && own && strcmp(own, name) == 0) return layer;
  }
  return NULL;
}

/* A functional model says which layer gives its output, ["dense", 0, 0] or in a list of such; a sequential one has it
 * last. */
static json_t *last_layer(const json_t *model) {
  json_t *layers = layers_of(model), *output = json_object_get(json_object_get(model, "config"), "output_layers");
  while (json_is_array(output)) output = json_array_get(output, 0);
  json_t *named = layer_named(layers, json_string_value(output));
  return named ? named : json_array_get(layers, json_array_size(layers) - 1);
}

/* The layer whose output this one takes: in a functional model its node names it, in a sequential one it stands before.
 */
static json_t *layer_before(const json_t *layers, const json_t *layer) {
  json_t *node = json_array_get(json_object_get(layer, "inbound_nodes"), 0), *other;
  json_t *tensor = json_array_get(json_object_get(node, "args"), 0);
  json_t *history = json_object_get(json_object_get(tensor, "config"), "keras_history");
  json_t *named = layer_named(layers, json_string_value(json_array_get(history, 0)));
  size_t i;
  if (named) return named;
  json_array_foreach(layers, i, other) {
    if (json_array_get(layers, i + 1) == layer) return other;
  }
  return NULL;
}

static bool only_moves(const json_t *layer) {
  static const char *const classes[] = {"Flatten", "Reshape", "Permute", "Dropout"};
  const char *class = json_string_value(json_object_get(layer, "class_name"));
  for (size_t i = 0; class && i < sizeof classes / sizeof classes[0]; i++) {
    if (strcmp(class, classes[i]) == 0) return true;
  }
  return false;
}

static json_t *last_that_computes(const json_t *model) {
  json_t *last = last_layer(model);
  while (only_moves(last)) last = layer_before(layers_of(model), last);
  return last;
}

static char *activation_in(const json_t *model) {
  json_t *last = last_that_computes(model), *config = json_object_get(last, "config");
  const char *class = json_string_value(json_object_get(last, "class_name"));
  const char *name = json_string_value(json_object_get(config, "activation"));
  if (class && json_object_get(config, "layers")) return activation_in(last); /* a model in the model */
  if (class && strcmp(class, "Softmax") == 0) name = "softmax";
  return strdup(name ? name : "");
}

char *objective_activation(helio_model *model) {
  char *text = helio_model_to_json(model);
  json_t *json = text ? json_loads(text, 0, NULL) : NULL;
  char *activation = json ? activation_in(json) : NULL;
  json_decref(json);
  free(text);
  return activation;
}

/* ---- choosing ---- */

/* What the model makes of the first sample. */
static bool output_shape(helio_model *model, sample_set *set, helio_shape *shape) {
  helio_dataset *one = sample_set_batches(set, helio_array_part(set->x ? set->x : set->test_x, 0, 1), NULL, 1, 0);
  helio_array *output = helio_predict(model, one);
  if (output) *shape = helio_array_shape(output);
  return output;
}

/* The numbers of an output's last axis: where there are several they may stand for as many classes. */
static int64_t units_of(const helio_shape *output) {
  return output->rank > 1 ? output->extent[output->rank - 1] : 1;
}

/* Is there one label for the numbers of the last axis, which the labels may have as an axis of 1? */
static bool is_one_for_each(const helio_array *labels, const helio_shape *output) {
  int rows = output->rank - 1; /* the axes before the last */
  helio_shape shape = labels ? helio_array_shape(labels) : (helio_shape){0};
  bool one = rows > 0 && (shape.rank == rows || (shape.rank == rows + 1 && shape.extent[rows] == 1));
  for (int i = 1; one && i < rows; i++) one = shape.extent[i] == output->extent[i];
  return one;
}

static bool is_one_for_several(const helio_array *labels, const helio_shape *output) {
  return units_of(output) > 1 && is_one_for_each(labels, output);
}

typedef struct range {
  int64_t most; /* from 0 on */
  bool whole;   /* numbers only */
} range;

static bool is_within(const range *allowed, double label) {
  return label >= 0 && label <= (double)allowed->most && !(allowed->whole && label != floor(label));
}

static bool piece_is_beyond(helio_array *piece, const range *allowed, double *label) {
  const double *values = helio_array_data(piece);
  int64_t count = values ? helio_array_elements(piece) : 0;
  for (int64_t i = 0; i < count; i++) {
    if (is_within(allowed, values[i])) continue;
    *label = values[i];
    return true;
  }
  return false;
}

/* Is there a label beyond the range? Piece by piece: all of them would need eight times the room of masks in bytes. */
static bool is_beyond(helio_array *labels, range allowed, double *label) {
  int64_t rows = sample_set_count(labels), each = rows ? helio_array_elements(labels) / rows : 0;
  int64_t piece = each < LABELS_AT_A_TIME ? LABELS_AT_A_TIME / (each ? each : 1) : 1;
  bool found = false;
  for (int64_t first = 0; first < rows && !found && !helio_error_pending(); first += piece) {
    HELIO_POOL {
      helio_array *some = helio_array_part(labels, first, rows - first < piece ? rows - first : piece);
      found = piece_is_beyond(helio_array_cast(some, HELIO_FLOAT64), &allowed, label);
    }
  }
  return found;
}

static bool is_no_class(helio_array *labels, int64_t classes, double *label) {
  return is_beyond(labels, (range){.most = classes - 1, .whole = true}, label);
}

/* Where a model tells classes, labels of 0.0 and 1.0 are classes, whatever wrote the point: numbers could not be
 * compared with several outputs anyway. */
static helio_array *as_classes(helio_array *labels, const helio_shape *output) {
  double label;
  if (!is_one_for_several(labels, output) || helio_type_is_integer(helio_array_type(labels))) return labels;
  return is_no_class(labels, units_of(output), &label) ? labels : helio_array_cast(labels, HELIO_INT32);
}

/* Classes by number or one-hot, yes or no, or numbers. */
static const char *loss_for(const helio_shape *output, const char *activation, const helio_array *labels) {
  bool integers = helio_type_is_integer(helio_array_type(labels));
  if (integers && is_one_for_several(labels, output)) return "sparse_categorical_crossentropy";
  if (units_of(output) > 1 && strcmp(activation, "softmax") == 0) return "categorical_crossentropy";
  if (strcmp(activation, "sigmoid") == 0) return "binary_crossentropy";
  return "mean_squared_error";
}

static bool is_sparse(const char *loss) {
  return strncmp(loss, "sparse_", 7) == 0;
}

static bool is_binary(const char *loss) {
  return strcmp(loss, "binary_crossentropy") == 0;
}

/* Only labels that are numbers of classes stay integers; others have the shape of what they are compared with. */
static helio_array *suit_labels(helio_array *labels, const helio_shape *output) {
  if (!labels) return NULL;
  helio_shape shape = *output;
  helio_array *numbers = helio_array_cast(labels, HELIO_FLOAT32);
  shape.extent[0] = sample_set_count(labels);
  return units_of(output) == 1 && is_one_for_each(labels, output) ? helio_array_reshape(numbers, shape) : numbers;
}

/* Of classes, by number or one-hot, it is one loss: the labels choose between its two names. */
static const char *for_labels(const char *trained_with, const helio_shape *output, const helio_array *labels) {
  if (!strstr(trained_with, "categorical_crossentropy")) return trained_with;
  return is_one_for_several(labels, output) ? "sparse_categorical_crossentropy" : "categorical_crossentropy";
}

static void choose_loss(objective *aim, const helio_shape *output, const char *activation, const helio_array *labels,
                        const char *trained_with) {
  if (aim->loss) return;
  aim->loss = trained_with ? for_labels(trained_with, output, labels) : loss_for(output, activation, labels);
  aim->reason = trained_with ? "as it was trained; --loss chooses another"
                             : "by the last layer and the labels; --loss chooses another";
}

static void choose_metrics(objective *aim) {
  bool classes = strstr(aim->loss, "crossentropy");
  aim->metrics[0] = classes ? "accuracy" : strcmp(aim->loss, "mean_absolute_error") ? "mean_absolute_error" : NULL;
  aim->metrics[1] = NULL;
}

static int refuse_label(int64_t classes, double label, const char *path) {
  static const char too_few[] = "to tell so many classes the last layer needs a unit for each";
  static const char no_classes[] = "a model whose last layer has one unit, without softmax, is for numbers";
  bool beyond = label >= (double)classes && label == floor(label);
  return command_failure(path,
                         "the labels are not classes: the model tells %lld of them, whole numbers from 0 to %lld, but "
                         "there is %g; %s",
                         (long long)classes, (long long)classes - 1, label, beyond ? too_few : no_classes);
}

/* Of a model that gives several numbers for each label: it must be that of a class. */
static int check_classes(const objective *aim, const helio_shape *output, helio_array *labels, const char *path) {
  double label = 0;
  int64_t units = units_of(output);
  if (!is_one_for_several(labels, output)) return EXIT_SUCCESS;
  if (!strstr(aim->loss, "categorical_crossentropy")) {
    return command_failure(path,
                           "there is one label where the model gives %lld numbers, each of which %s compares with a "
                           "label; --loss sparse_categorical_crossentropy takes the number of a class",
                           (long long)units, aim->loss);
  }
  if (is_no_class(labels, units, &label)) return refuse_label(units, label, path);
  if (is_sparse(aim->loss)) return EXIT_SUCCESS;
  return command_failure(path, "the labels are numbers of classes: --loss sparse_%s takes these, %s takes one-hot ones",
                         aim->loss, aim->loss);
}

/* Logarithms of other numbers than these make a loss that falls without end. */
static int check_odds(const objective *aim, helio_array *labels, const char *path) {
  double label = 0;
  if (!labels || !is_binary(aim->loss) || !is_beyond(labels, (range){.most = 1}, &label)) return EXIT_SUCCESS;
  return command_failure(path,
                         "the labels are not yes or no: %s takes numbers from 0 to 1, but there is %g; a last layer "
                         "of several units with softmax is for more classes, --loss mean_squared_error for numbers",
                         aim->loss, label);
}

static int check_labels(const objective *aim, const helio_shape *output, const sample_set *set, const char *path) {
  int status = check_classes(aim, output, set->y, path);
  if (status == EXIT_SUCCESS) status = check_classes(aim, output, set->test_y, path);
  if (status == EXIT_SUCCESS) status = check_odds(aim, set->y, path);
  return status == EXIT_SUCCESS ? check_odds(aim, set->test_y, path) : status;
}

/* A name that does not exist is a slip of the command line. */
static int refuse_loss(const char *path) {
  helio_error error = {.message = ""};
  bool unknown = helio_error_take(&error) == HELIO_INVALID_ARGUMENT;
  return (unknown ? command_usage_error : command_failure)(path, "%s", error.message);
}

int objective_choose(objective *aim, helio_model *model, sample_set *set, const char *asked, const char *trained_with,
                     const char *path) {
  helio_shape output = {0};
  helio_loss *given = asked ? helio_loss_named(asked) : NULL;
  if (asked && !given) return refuse_loss(path);
  char *activation = output_shape(model, set, &output) ? objective_activation(model) : NULL;
  set->y = as_classes(set->y, &output);
  set->test_y = as_classes(set->test_y, &output);
  if (!activation || helio_error_pending()) {
    free(activation);
    return command_library_failure(path);
  }
  bool probabilities = strcmp(activation, "softmax") == 0 || strcmp(activation, "sigmoid") == 0;
  *aim = (objective){.loss = given ? helio_loss_name(given) : NULL};
  choose_loss(aim, &output, activation, set->y ? set->y : set->test_y, trained_with);
  aim->from_logits = strstr(aim->loss, "crossentropy") && !probabilities;
  free(activation);
  choose_metrics(aim);
  int status = check_labels(aim, &output, set, path);
  if (status != EXIT_SUCCESS) return status;
  if (!is_sparse(aim->loss)) {
    set->y = suit_labels(set->y, &output);
    set->test_y = suit_labels(set->test_y, &output);
  }
  return helio_error_pending() ? command_library_failure(path) : EXIT_SUCCESS;
}

/* ---- compiling ---- */

static helio_loss *make_loss(const objective *aim) {
  if (!aim->from_logits) return helio_loss_named(aim->loss);
  if (is_sparse(aim->loss)) return helio_sparse_categorical_crossentropy(.from_logits = true);
  if (is_binary(aim->loss)) return helio_binary_crossentropy(.from_logits = true);
  return helio_categorical_crossentropy(.from_logits = true);
}

/* Keras chooses an accuracy by the shapes alone. What is yes or no in each of several units is no class of them, and a
 * logit above 0, not above 0.5, is a yes. */
static helio_metric *make_metric(const objective *aim, const char *name) {
  bool yes_or_no = is_binary(aim->loss) && strcmp(name, "accuracy") == 0;
  if (!yes_or_no) return helio_metric_named(name, NULL);
  return helio_binary_accuracy(.name = name, .threshold = aim->from_logits ? HELIO_ZERO : 0.5);
}

helio_status objective_compile(const objective *aim, helio_model *model, helio_optimizer *optimizer) {
  helio_compile_options o = {.size = sizeof o, .model = model, .optimizer = optimizer, .loss = make_loss(aim)};
  for (int i = 0; i < MOST_OBJECTIVE_METRICS && aim->metrics[i]; i++) o.metrics[i] = make_metric(aim, aim->metrics[i]);
  return helio_compile_with(&o);
}

void objective_print(const objective *aim) {
  printf("%s%s", aim->loss, aim->from_logits ? " from logits" : "");
  if (aim->reason) printf(" (%s)", aim->reason);
}
