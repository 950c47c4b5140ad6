/* SPDX-License-Identifier: Apache-2.0 */
#include "goal.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

/* ---- the last layer ---- */

/* A functional model says which layer gives its output, ["dense", 0, 0] or in a list of such; a sequential one has it
 * last. */
static json_t *last_layer(const json_t *model) {
  json_t *config = json_object_get(model, "config"), *layers = json_object_get(config, "layers"), *layer;
  json_t *output = json_object_get(config, "output_layers");
  size_t i, count = json_array_size(layers);
  while (json_is_array(output)) output = json_array_get(output, 0);
  json_array_foreach(layers, i, layer) {
    const char *name = json_string_value(json_object_get(layer, "name"));
    if (name && json_is_string(output) && strcmp(name, json_string_value(output)) == 0) return layer;
  }
  return count ? json_array_get(layers, count - 1) : NULL;
}

static bool only_moves(const json_t *layer) {
  static const char *const classes[] = {"Flatten", "Reshape", "Permute", "Dropout"};
  const char *class = json_string_value(json_object_get(layer, "class_name"));
  for (size_t i = 0; class && i < sizeof classes / sizeof classes[0]; i++) {
    if (strcmp(class, classes[i]) == 0) return true;
  }
  return false;
}

/* Of a functional model the layer before is not known by its place. */
static json_t *last_that_computes(const json_t *model) {
  json_t *last = last_layer(model), *layers = json_object_get(json_object_get(model, "config"), "layers");
  bool sequential = !json_object_get(json_object_get(model, "config"), "output_layers");
  for (size_t i = json_array_size(layers); sequential && i > 1 && only_moves(last); i--) {
    last = json_array_get(layers, i - 2);
  }
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

char *goal_activation(helio_model *model) {
  char *text = helio_model_to_json(model);
  json_t *json = text ? json_loads(text, 0, NULL) : NULL;
  char *activation = json ? activation_in(json) : NULL;
  json_decref(json);
  free(text);
  return activation;
}

/* ---- choosing ---- */

static bool is_integer(helio_type type) {
  return type == HELIO_INT32 || type == HELIO_INT64 || type == HELIO_UINT8 || type == HELIO_BOOL;
}

/* What the model makes of the first sample. */
static bool output_shape(helio_model *model, lesson *l, helio_shape *shape) {
  helio_dataset *one = lesson_batches(l, helio_array_part(l->x ? l->x : l->test_x, 0, 1), NULL, 1, 0);
  helio_array *output = helio_predict(model, one);
  if (output) *shape = helio_array_shape(output);
  return output;
}

static bool is_one_for_each(const helio_array *labels) {
  helio_shape shape = labels ? helio_array_shape(labels) : (helio_shape){0};
  return shape.rank == 1 || (shape.rank == 2 && shape.extent[1] == 1);
}

static bool is_class_of_each(const helio_array *labels) {
  return is_integer(helio_array_type(labels)) && is_one_for_each(labels);
}

/* A label for each sample that cannot be the number of its class. */
static bool is_no_class(const helio_array *labels, int64_t classes, double *label) {
  helio_array *numbers = helio_array_cast((helio_array *)labels, HELIO_FLOAT64);
  const double *values = helio_array_data(numbers);
  for (int64_t i = 0; values && i < helio_array_elements(numbers); i++) {
    *label = values[i];
    if (!(*label >= 0 && *label < (double)classes && *label == floor(*label))) return true;
  }
  return false;
}

/* Where a model tells classes, labels of 0.0 and 1.0 are classes, whatever wrote the point: numbers could not be
 * compared with several outputs anyway. */
static helio_array *as_classes(helio_array *labels, const helio_shape *output) {
  double label;
  bool several = output->rank == 2 && output->extent[1] > 1;
  if (!several || !is_one_for_each(labels) || is_integer(helio_array_type(labels))) return labels;
  return is_no_class(labels, output->extent[1], &label) ? labels : helio_array_cast(labels, HELIO_INT32);
}

/* Classes by number or one-hot, yes or no, or numbers. */
static const char *loss_for(const helio_shape *output, const char *activation, const helio_array *labels) {
  bool several = output->rank == 2 && output->extent[1] > 1;
  if (several && is_class_of_each(labels)) return "sparse_categorical_crossentropy";
  if (several && strcmp(activation, "softmax") == 0) return "categorical_crossentropy";
  if (strcmp(activation, "sigmoid") == 0) return "binary_crossentropy";
  return "mean_squared_error";
}

static bool is_sparse(const char *loss) {
  return strncmp(loss, "sparse_", 7) == 0;
}

/* Only labels that are numbers of classes stay integers; others have the shape of what they are compared with. */
static helio_array *suit_labels(helio_array *labels, const helio_shape *output) {
  if (!labels) return NULL;
  helio_shape shape = helio_array_shape(labels);
  helio_array *numbers = helio_array_cast(labels, HELIO_FLOAT32);
  bool column = shape.rank == 1 && output->rank == 2 && output->extent[1] == 1;
  return column ? helio_array_reshape(numbers, HELIO_SHAPE(-1, 1)) : numbers;
}

static void choose_metrics(goal *g) {
  bool classes = strstr(g->loss, "crossentropy");
  g->metrics[0] = classes ? "accuracy" : strcmp(g->loss, "mean_absolute_error") ? "mean_absolute_error" : NULL;
  g->metrics[1] = NULL;
}

/* Of a model that tells classes: one number for each sample must be that of its class. */
static int check_classes(const goal *g, const helio_shape *output, const helio_array *labels, const char *path) {
  double label = 0;
  bool classes = output->rank == 2 && output->extent[1] > 1 && strstr(g->loss, "categorical_crossentropy");
  if (!classes || !is_one_for_each(labels)) return EXIT_SUCCESS;
  long long last = output->extent[1] - 1;
  if (!is_integer(helio_array_type(labels)) && is_no_class(labels, last + 1, &label)) {
    return command_failure(
        path,
        "the labels are not classes: the model tells %lld of them, whole numbers from 0 to %lld, but "
        "there is %g; a model whose last layer has one unit, without softmax, is for numbers",
        last + 1, last, label);
  }
  if (is_sparse(g->loss)) return EXIT_SUCCESS;
  return command_failure(path, "the labels are numbers of classes: --loss sparse_%s takes these, %s takes one-hot ones",
                         g->loss, g->loss);
}

/* Logarithms of other numbers than these make a loss that falls without end. */
static int check_odds(const goal *g, const helio_array *labels, const char *path) {
  if (!labels || strcmp(g->loss, "binary_crossentropy") != 0) return EXIT_SUCCESS;
  helio_array *numbers = helio_array_cast((helio_array *)labels, HELIO_FLOAT64);
  const double *values = helio_array_data(numbers);
  for (int64_t i = 0; values && i < helio_array_elements(numbers); i++) {
    if (values[i] >= 0 && values[i] <= 1) continue;
    return command_failure(path,
                           "the labels are not yes or no: %s takes numbers from 0 to 1, but there is %g; a last layer "
                           "of several units with softmax is for more classes, --loss mean_squared_error for numbers",
                           g->loss, values[i]);
  }
  return EXIT_SUCCESS;
}

static int check_labels(const goal *g, const helio_shape *output, const lesson *l, const char *path) {
  int status = check_classes(g, output, l->y, path);
  if (status == EXIT_SUCCESS) status = check_classes(g, output, l->test_y, path);
  if (status == EXIT_SUCCESS) status = check_odds(g, l->y, path);
  return status == EXIT_SUCCESS ? check_odds(g, l->test_y, path) : status;
}

/* A name that does not exist is a slip of the command line. */
static int refuse_loss(const char *path) {
  helio_error error = {.message = ""};
  bool unknown = helio_error_take(&error) == HELIO_INVALID_ARGUMENT;
  return (unknown ? command_usage_error : command_failure)(path, "%s", error.message);
}

int goal_choose(goal *g, helio_model *model, lesson *l, const char *loss, const char *path) {
  helio_shape output = {0};
  helio_loss *given = loss ? helio_loss_named(loss) : NULL;
  if (loss && !given) return refuse_loss(path);
  char *activation = output_shape(model, l, &output) ? goal_activation(model) : NULL;
  l->y = as_classes(l->y, &output);
  l->test_y = as_classes(l->test_y, &output);
  if (!activation || helio_error_pending()) {
    free(activation);
    return command_library_failure(path);
  }
  bool probabilities = strcmp(activation, "softmax") == 0 || strcmp(activation, "sigmoid") == 0;
  *g = (goal){.loss = given ? helio_loss_name(given) : loss_for(&output, activation, l->y ? l->y : l->test_y)};
  g->from_logits = strstr(g->loss, "crossentropy") && !probabilities;
  free(activation);
  choose_metrics(g);
  int status = check_labels(g, &output, l, path);
  if (status != EXIT_SUCCESS || is_sparse(g->loss)) return status;
  l->y = suit_labels(l->y, &output);
  l->test_y = suit_labels(l->test_y, &output);
  return helio_error_pending() ? command_library_failure(path) : EXIT_SUCCESS;
}

/* ---- compiling ---- */

static helio_loss *make_loss(const goal *g) {
  if (!g->from_logits) return helio_loss_named(g->loss);
  if (is_sparse(g->loss)) return helio_sparse_categorical_crossentropy(.from_logits = true);
  if (strncmp(g->loss, "binary", 6) == 0) return helio_binary_crossentropy(.from_logits = true);
  return helio_categorical_crossentropy(.from_logits = true);
}

helio_status goal_compile(const goal *g, helio_model *model, helio_optimizer *optimizer) {
  helio_compile_options o = {
      .size = sizeof o, .model = model, .optimizer = optimizer, .loss = make_loss(g), .metric_names = {NULL}};
  for (int i = 0; i < MOST_GOAL_METRICS; i++) o.metric_names[i] = g->metrics[i];
  return helio_compile_with(&o);
}
