/* SPDX-License-Identifier: Apache-2.0 */
#include "sample_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "data.h"
#include "output.h"
#include "table_file.h"

/* ---- archives ---- */

static bool has(char *const *names, const char *name) {
  for (; *names; names++) {
    if (strcmp(*names, name) == 0) return true;
  }
  return false;
}

static int check_counts(const char *file, const char *const pair[2], const helio_array *x, const helio_array *y,
                        const char *path) {
  helio_shape of_x = helio_array_shape(x), of_y = helio_array_shape(y);
  if (of_x.rank == 0 || of_y.rank == 0) {
    return command_failure(path, "%s: %s is a single number, not an array of one element for each sample", file,
                           pair[of_x.rank != 0]);
  }
  if (of_x.extent[0] == of_y.extent[0]) return EXIT_SUCCESS;
  return command_failure(path, "%s: %s has %lld samples, but %s has %lld", file, pair[0], (long long)of_x.extent[0],
                         pair[1], (long long)of_y.extent[0]);
}

/* Both of a pair, or none: features without labels teach nothing, and to leave them out would be a surprise. */
static int read_pair(char *const *names, const char *file, const char *const pair[2], helio_array **x, helio_array **y,
                     const char *path) {
  bool first = has(names, pair[0]), second = has(names, pair[1]);
  if (first != second) {
    return command_failure(path, "%s has %s but no %s", file, pair[!first], pair[first]);
  }
  if (!first) return EXIT_SUCCESS;
  *x = helio_read_npz(file, pair[0]);
  *y = helio_read_npz(file, pair[1]);
  return *x && *y ? check_counts(file, pair, *x, *y, path) : command_library_failure(path);
}

static bool is_one_of(const char *const pair[2], const char *name) {
  return strcmp(pair[0], name) == 0 || strcmp(pair[1], name) == 0;
}

/* Weights of samples and the like would be missed. */
static void warn_of_others(char *const *names, const char *file, const char *const train[2], const char *const test[2],
                           const char *path) {
  char list[200] = "", printable[200];
  for (; *names; names++) {
    size_t length = strlen(list);
    if (is_one_of(train, *names) || is_one_of(test, *names)) continue;
    snprintf(list + length, sizeof list - length, "%s%s", length ? ", " : "", *names);
  }
  if (!*list) return;
  command_tell(path, "warning: %s has arrays that are not used: %s", file,
               output_printable(printable, sizeof printable, list));
}

static bool has_both(char *const *names, const char *const pair[2]) {
  return has(names, pair[0]) && has(names, pair[1]);
}

/* Samples for testing may have no labels, where others validate. */
static int read_archive(sample_set *set, const char *file, const char *path) {
  static const char *const pairs[][2] = {{"x_train", "y_train"}, {"x", "y"}, {"x_test", "y_test"}, {"x_val", "y_val"}};
  char **names = helio_npz_names(file);
  if (!names) return command_library_failure(path);
  const char *const *train = pairs[has(names, "x_train") ? 0 : 1];
  const char *const *test = pairs[has_both(names, pairs[2]) || !has(names, "x_val") ? 2 : 3];
  int status = read_pair(names, file, train, &set->x, &set->y, path);
  if (!status) status = read_pair(names, file, test, &set->test_x, &set->test_y, path);
  if (!status && (set->x || set->test_x)) warn_of_others(names, file, train, test, path);
  free(names);
  if (status || set->x || set->test_x) return status;
  return command_failure(
      path, "%s has neither x_train and y_train nor x and y; numpy.savez(file, x=…, y=…) writes them", file);
}

bool sample_file_has_lists(const char *file) {
  helio_sequences *lists = NULL;
  if (!command_ends_in(file, ".npz")) return false;
  HELIO_POOL lists = helio_read_npz_sequences(file, "x");
  if (!lists) helio_error_take(NULL);
  return lists;
}

/* ---- tables ---- */

/* All columns but one as a matrix. */
static helio_array *features_of(helio_csv *csv, int left_out) {
  int64_t rows = helio_csv_rows(csv), columns = helio_csv_columns(csv) - (left_out >= 0), at = 0;
  float *values = calloc((size_t)(rows * columns) + 1, sizeof *values);
  helio_array *matrix = NULL;
  for (int i = 0; values && i < helio_csv_columns(csv); i++) {
    if (i == left_out) continue;
    HELIO_POOL {
      helio_array *column = helio_array_cast(helio_csv_column_at(csv, i), HELIO_FLOAT32);
      const float *numbers = helio_array_data(column);
      for (int64_t row = 0; numbers && row < rows; row++) values[row * columns + at] = numbers[row];
    }
    at++;
  }
  if (values && !helio_error_pending()) matrix = helio_array_of(values, HELIO_SHAPE(rows, columns));
  free(values);
  return matrix;
}

static int read_table(sample_set *set, const char *file, const char *path) {
  helio_csv *csv = table_file_open(file, false);
  if (!csv) return command_library_failure(path);
  int label = table_file_labels(csv), last = helio_csv_columns(csv) - 1;
  if (last < 1) return command_failure(path, "%s has %d column: features and a label are needed", file, last + 1);
  int chosen = label >= 0 ? label : last;
  set->label_found = label >= 0;
  set->label_column = chosen + 1;
  set->label_name = table_file_has_names(csv) ? helio_csv_name(csv, chosen) : NULL;
  set->x = features_of(csv, chosen);
  set->y = helio_csv_column_at(csv, chosen);
  return set->x && set->y ? EXIT_SUCCESS : command_library_failure(path);
}

/* ---- known sets ---- */

static int64_t longest_of(const helio_sequences *texts) {
  int64_t longest = 0;
  for (int64_t i = 0; i < helio_sequences_count(texts); i++) {
    int64_t length = 0;
    helio_sequences_at(texts, i, &length);
    if (length > longest) longest = length;
  }
  return longest;
}

/* As long as the model takes them, else as the longest of both splits: a model may learn its shape from one of them. */
static void pad_texts(sample_set *set, const helio_samples *train, const helio_samples *test,
                      const helio_model *model) {
  helio_shape shape = helio_model_input_shape(model, 0);
  int64_t longest = longest_of(train->sequences), other = longest_of(test->sequences);
  int64_t length = shape.rank == 1 && shape.extent[0] > 0 ? shape.extent[0] : longest > other ? longest : other;
  set->x = helio_pad_sequences(train->sequences, length);
  set->test_x = helio_pad_sequences(test->sequences, length);
}

static int read_set(sample_set *set, const char *name, const helio_model *model, const char *path) {
  helio_samples train, test;
  if (helio_load_data(name, &train, &test) != HELIO_OK) return command_library_failure(path);
  *set = (sample_set){.x = train.x, .y = train.y, .test_x = test.x, .test_y = test.y, .divisor = train.x ? 255 : 0};
  if (!train.x) pad_texts(set, &train, &test, model);
  return set->x && set->test_x ? EXIT_SUCCESS : command_library_failure(path);
}

/* ---- any ---- */

static int read_named(sample_set *set, const char *name, const helio_model *model, const char *path) {
  int status = data_check_name(path, "file or set of data", name);
  return status == EXIT_SUCCESS ? read_set(set, name, model, path) : status;
}

/* Only a recipe knows which of a folder's files it wants. */
static int refuse_folder(const char *folder, const char *path) {
  return command_usage_error(path,
                             "--data %s: a folder is for recipes; HELIO_DATA_DIR=%s lets a set be found there by its "
                             "name, as --data mnist",
                             folder, folder);
}

static int check_file(const char *data, const char *path) {
  if (access(data, R_OK) != 0) return command_failure(path, "--data %s: %s", data, strerror(errno));
  return command_is_folder(data) ? refuse_folder(data, path) : EXIT_SUCCESS;
}

int sample_set_read(sample_set *set, const char *data, const helio_model *model, const char *path) {
  *set = (sample_set){0};
  if (command_is_word(data)) return read_named(set, data, model, path);
  int status = check_file(data, path);
  if (status != EXIT_SUCCESS) return status;
  if (command_ends_in(data, ".npz")) return read_archive(set, data, path);
  if (table_file_is(data)) return read_table(set, data, path);
  return command_usage_error(path, "--data takes an .npz, .csv or .tsv file or the name of a set here, not '%s'", data);
}

static helio_array *inputs_of_archive(const char *file) {
  char **names = helio_npz_names(file);
  if (!names) return NULL;
  bool alone = names[0] && !names[1];
  const char *name = has(names, "x_test") ? "x_test" : has(names, "x_val") ? "x_val" : "x";
  helio_array *inputs = helio_read_npz(file, alone ? names[0] : name);
  free(names);
  return inputs;
}

/* How many numbers the model takes of a sample; −1 where any number will do. */
static int64_t width_of(const helio_model *model) {
  helio_shape shape = helio_model_input_shape(model, 0);
  int64_t width = shape.rank ? 1 : -1;
  for (int i = 0; i < shape.rank; i++) width = width < 0 || shape.extent[i] < 0 ? -1 : width * shape.extent[i];
  return width;
}

/* With labels or without them: as many columns as the model takes are its inputs, and of one more the labels are left
 * out, which are where training takes them from. */
static int labels_to_leave_out(helio_csv *csv, const helio_model *model) {
  int columns = helio_csv_columns(csv), labels = table_file_labels(csv);
  int64_t width = width_of(model);
  if (width == columns) return -1;
  return labels < 0 && width == columns - 1 ? columns - 1 : labels;
}

static int read_inputs_of_table(sample_set *set, const char *file, const helio_model *model, const char *path) {
  helio_csv *csv = table_file_open(file, false);
  if (!csv) return command_library_failure(path);
  int left_out = labels_to_leave_out(csv, model);
  if (left_out >= 0 && helio_csv_columns(csv) == 1) {
    return command_failure(path, "%s has only a column of labels: features are needed", file);
  }
  set->test_x = features_of(csv, left_out);
  return set->test_x ? EXIT_SUCCESS : command_library_failure(path);
}

static helio_array *read_array(const char *file) {
  if (command_ends_in(file, ".npz")) return inputs_of_archive(file);
  return command_ends_in(file, ".npy") ? helio_read_npy(file) : helio_read_idx(file);
}

int sample_set_read_inputs(sample_set *set, const char *data, const helio_model *model, const char *path) {
  *set = (sample_set){0};
  if (command_is_word(data)) return read_named(set, data, model, path);
  int status = check_file(data, path);
  if (status != EXIT_SUCCESS) return status;
  if (table_file_is(data)) return read_inputs_of_table(set, data, model, path);
  set->test_x = read_array(data);
  return set->test_x ? EXIT_SUCCESS : command_library_failure(path);
}
