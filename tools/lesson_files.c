/* SPDX-License-Identifier: Apache-2.0 */
#include "lesson_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "data.h"
#include "table_file.h"

/* ---- archives ---- */

static bool has(char *const *names, const char *name) {
  for (; *names; names++) {
    if (strcmp(*names, name) == 0) return true;
  }
  return false;
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
  return *x && *y ? EXIT_SUCCESS : command_library_failure(path);
}

static int read_archive(lesson *l, const char *file, const char *path) {
  static const char *const whole[] = {"x", "y"}, *const train[] = {"x_train", "y_train"},
                           *const test[] = {"x_test", "y_test"};
  char **names = helio_npz_names(file);
  if (!names) return command_library_failure(path);
  int status = read_pair(names, file, has(names, "x_train") ? train : whole, &l->x, &l->y, path);
  if (!status) status = read_pair(names, file, test, &l->test_x, &l->test_y, path);
  free(names);
  if (status || l->x || l->test_x) return status;
  return command_failure(
      path, "%s has neither x_train and y_train nor x and y; numpy.savez(file, x=…, y=…) writes them", file);
}

bool lesson_file_has_lists(const char *file) {
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

static int read_table(lesson *l, const char *file, const char *path) {
  helio_csv *csv = table_file_open(file, false);
  if (!csv) return command_library_failure(path);
  int label = table_file_labels(csv), last = helio_csv_columns(csv) - 1;
  if (last < 1) return command_failure(path, "%s has %d column: features and a label are needed", file, last + 1);
  int chosen = label >= 0 ? label : last;
  l->label_found = label >= 0;
  l->label_column = chosen + 1;
  l->label_name = table_file_has_names(csv) ? helio_csv_name(csv, chosen) : NULL;
  l->x = features_of(csv, chosen);
  l->y = helio_csv_column_at(csv, chosen);
  return l->x && l->y ? EXIT_SUCCESS : command_library_failure(path);
}

/* ---- known sets ---- */

static helio_array *texts(const helio_samples *samples, const helio_model *model) {
  helio_shape shape = helio_model_input_shape(model, 0);
  return helio_pad_sequences(samples->sequences, shape.rank == 1 && shape.extent[0] > 0 ? shape.extent[0] : 0);
}

static int read_set(lesson *l, const char *name, const helio_model *model, const char *path) {
  helio_samples train, test;
  if (helio_load_data(name, &train, &test) != HELIO_OK) return command_library_failure(path);
  *l = (lesson){.x = train.x, .y = train.y, .test_x = test.x, .test_y = test.y, .divisor = train.x ? 255 : 0};
  if (!train.x) l->x = texts(&train, model);
  if (!train.x) l->test_x = texts(&test, model);
  return l->x && l->test_x ? EXIT_SUCCESS : command_library_failure(path);
}

/* ---- any ---- */

/* A word that is no file and does not look like one. */
static bool is_name(const char *data) {
  return access(data, F_OK) != 0 && !strpbrk(data, "./");
}

static int read_named(lesson *l, const char *name, const helio_model *model, const char *path) {
  int status = data_check_name(path, name);
  return status == EXIT_SUCCESS ? read_set(l, name, model, path) : status;
}

/* Only a recipe knows which of a folder's files it wants. */
static int refuse_folder(const char *folder, const char *path) {
  return command_usage_error(path,
                             "--data %s: a folder is for recipes; HELIO_DATA_DIR=%s lets a set be found there by its "
                             "name, as --data mnist",
                             folder, folder);
}

static int check_file(const char *data, const char *path) {
  struct stat about;
  if (access(data, R_OK) != 0 || stat(data, &about) != 0) {
    return command_failure(path, "--data %s: %s", data, strerror(errno));
  }
  return S_ISDIR(about.st_mode) ? refuse_folder(data, path) : EXIT_SUCCESS;
}

int lesson_read(lesson *l, const char *data, const helio_model *model, const char *path) {
  *l = (lesson){0};
  if (is_name(data)) return read_named(l, data, model, path);
  int status = check_file(data, path);
  if (status != EXIT_SUCCESS) return status;
  if (command_ends_in(data, ".npz")) return read_archive(l, data, path);
  if (table_file_is(data)) return read_table(l, data, path);
  return command_usage_error(path, "--data takes an .npz, .csv or .tsv file or the name of a set here, not '%s'", data);
}

static helio_array *inputs_of_archive(const char *file) {
  char **names = helio_npz_names(file);
  if (!names) return NULL;
  const char *name = has(names, "x_test") ? "x_test" : has(names, "x") ? "x" : names[0] && !names[1] ? names[0] : "x";
  helio_array *inputs = helio_read_npz(file, name);
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
static helio_array *inputs_of_table(const char *file, const helio_model *model) {
  helio_csv *csv = table_file_open(file, false);
  if (!csv) return NULL;
  int columns = helio_csv_columns(csv), labels = table_file_labels(csv);
  int64_t width = width_of(model);
  if (width == columns) return features_of(csv, -1);
  return features_of(csv, labels < 0 && width == columns - 1 ? columns - 1 : labels);
}

static helio_array *inputs_of(const char *file, const helio_model *model) {
  if (table_file_is(file)) return inputs_of_table(file, model);
  if (command_ends_in(file, ".npz")) return inputs_of_archive(file);
  return command_ends_in(file, ".npy") ? helio_read_npy(file) : helio_read_idx(file);
}

int lesson_read_inputs(lesson *l, const char *data, const helio_model *model, const char *path) {
  *l = (lesson){0};
  if (is_name(data)) return read_named(l, data, model, path);
  int status = check_file(data, path);
  if (status != EXIT_SUCCESS) return status;
  l->test_x = inputs_of(data, model);
  return l->test_x ? EXIT_SUCCESS : command_library_failure(path);
}
