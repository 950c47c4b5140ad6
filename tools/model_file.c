/* SPDX-License-Identifier: Apache-2.0 */
#include "model_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"

enum { LARGEST = 8 << 20 }; /* as helio_model_from_json() has it */

static char *refuse(const char *file, const char *why, const char *path) {
  command_failure(path, "%s: %s", file, why);
  return NULL;
}

/* One byte more than the largest is asked for, so that a longer file is noticed. */
static char *read_all(FILE *from, const char *file, const char *path) {
  char *text = malloc(LARGEST + 2);
  if (!text) return refuse(file, strerror(ENOMEM), path);
  size_t bytes = fread(text, 1, LARGEST + 1, from);
  text[bytes] = '\0';
  const char *why = ferror(from) ? strerror(errno) : bytes > LARGEST ? "it has more than 8 MiB" : NULL;
  if (!why && strlen(text) != bytes) why = "it is no text: there are zero bytes in it";
  if (!why) return text;
  free(text);
  return refuse(file, why, path);
}

static char *read_text(const char *file, const char *path) {
  struct stat about;
  if (stat(file, &about) != 0) return refuse(file, strerror(errno), path);
  if (!S_ISREG(about.st_mode)) return refuse(file, "it is not a file", path);
  FILE *from = fopen(file, "re");
  if (!from) return refuse(file, strerror(errno), path);
  char *text = read_all(from, file, path);
  fclose(from);
  return text;
}

static helio_model *read_architecture(const char *file, const char *path) {
  char *text = read_text(file, path);
  if (!text) return NULL;
  helio_error error;
  helio_model *model = helio_model_from_json(text);
  free(text);
  if (model) return model;
  helio_error_take(&error);
  refuse(file, error.message, path);
  return NULL;
}

/* Can it be a saved model: is it there, and does it begin as a .safetensors file does, the length of a JSON object and
 * the object? What cannot be read is for the library to tell. */
static bool can_be_saved_model(const char *file) {
  char begin[9];
  struct stat about;
  FILE *from = stat(file, &about) == 0 && S_ISREG(about.st_mode) ? fopen(file, "re") : NULL;
  if (!from) return true;
  bool other = fread(begin, 1, sizeof begin, from) < sizeof begin || begin[8] != '{';
  fclose(from);
  return !other;
}

bool model_file_is_architecture(const char *file) {
  return command_ends_in(file, ".json");
}

helio_model *model_file_read(const char *file, const char *path) {
  if (model_file_is_architecture(file)) return read_architecture(file, path);
  if (!command_ends_in(file, ".safetensors") && !can_be_saved_model(file)) {
    refuse(file,
           "this is no model: a .json that Keras' model.to_json() wrote, or a saved model (.safetensors) is needed",
           path);
    return NULL;
  }
  helio_model *model = helio_load_model(file);
  if (!model) command_library_failure(path);
  return model;
}
