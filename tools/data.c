/* SPDX-License-Identifier: Apache-2.0 */
/* helio data: the known sets of data. helio data list: which there are, and where each was found. */
#include "data.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data_sources.h"
#include "output.h"

int data_count(char *const *list) {
  int count = 0;
  while (list[count]) count++;
  return count;
}

int data_check_name(const char *path, const char *kind, const char *name) {
  char **names = helio_data_names();
  if (!names) return command_library_failure(path);
  int count = data_count(names), status = EXIT_SUCCESS;
  bool known = false;
  for (int i = 0; i < count; i++) known |= strcmp(names[i], name) == 0;
  if (!known) {
    status = command_unknown(path, kind, name, (const char *const *)names, count,
                             "'helio data list' lists the sets that there are");
  }
  free(names);
  return status;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * helio data list
 */

enum { DATA, JSON };

static const command_option options[] = {
    [DATA] = {"data", "DIR", NULL, "look here first"},
    [JSON] = {"json", NULL, NULL, "print JSON"},
    {0},
};

/* The files of a set where they are, NULL: not found or not whole, with what the library says of it in `error`, and
 * none is pending. */
static char **find(const char *set, const char *folder, helio_error *error) {
  char **files = helio_data_files(set, folder);
  if (!files) helio_error_take(error);
  return files;
}

static uint64_t file_bytes(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 ? (uint64_t)about.st_size : 0;
}

static json_t *source_json(const data_source *source) {
  json_t *files = json_array();
  for (int i = 0; i < source->count; i++) {
    const data_file *file = &source->files[i];
    char url[500];
    json_t *object = json_object();
    snprintf(url, sizeof url, "%s%s", source->url, file->name);
    output_set(object, "name", output_text(file->name));
    output_set(object, "form", output_text(source->form));
    output_set(object, "bytes", json_integer((json_int_t)file->bytes));
    output_set(object, "sha256", output_text(file->sha256));
    if (file->other_sha256) {
      output_set(object, "other_bytes", json_integer((json_int_t)file->other_bytes));
      output_set(object, "other_sha256", output_text(file->other_sha256));
    }
    output_set(object, "url", output_text(url));
    output_append(files, object);
  }
  return files;
}

static json_t *set_json(const char *set, const char *folder) {
  json_t *object = json_object(), *found = json_array(), *known = json_array();
  const data_source *source;
  helio_error error = {.message = ""};
  char **files = find(set, folder, &error);
  for (int i = 0; files && files[i]; i++) {
    json_t *file = json_object();
    output_set(file, "path", output_text(files[i]));
    output_set(file, "bytes", json_integer((json_int_t)file_bytes(files[i])));
    output_append(found, file);
  }
  bool damaged = !files && error.status == HELIO_BAD_DATA;
  free(files);
  for (int number = 0; (source = data_source_of(set, number)); number++) {
    json_t *part = source_json(source);
    json_array_extend(known, part);
    json_decref(part);
  }
  output_set(object, "name", output_text(set));
  output_set(object, "found", found);
  if (damaged) output_set(object, "error", output_text(error.message));
  output_set(object, "files", known);
  return object;
}

static void print_json(char *const *sets, char *const *folders, const char *folder) {
  json_t *object = json_object(), *list = json_array(), *places = json_array();
  for (; *folders; folders++) output_append(places, output_text(*folders));
  for (; *sets; sets++) output_append(list, set_json(*sets, folder));
  output_set(object, "folders", places);
  output_set(object, "sets", list);
  output_json(object);
}

static void add_rows(output_table *table, const char *set, const char *folder) {
  const data_source *source;
  char text[OUTPUT_BYTES];
  for (int number = 0; (source = data_source_of(set, number)); number++) {
    for (int i = 0; i < source->count; i++) {
      output_cell(table, "%s", number + i == 0 ? set : "");
      output_cell(table, "%s", source->files[i].name);
      output_cell(table, "%s", output_bytes(text, source->files[i].bytes));
      output_cell(table, "%s", source->files[i].sha256);
    }
  }
  helio_error error = {.message = ""};
  char **files = find(set, folder, &error);
  for (int i = 0; files && files[i]; i++) {
    output_note(table, "found: %s (%s)", files[i], output_bytes(text, file_bytes(files[i])));
  }
  if (!files) output_note(table, "%s", error.status == HELIO_BAD_DATA ? error.message : "not found");
  free(files);
}

static void print_text(char *const *sets, char *const *folders, const char *folder) {
  output_table *table = output_table_new(4);
  output_cell(table, "SET");
  output_cell(table, "FILE");
  output_cell(table, "SIZE");
  output_cell(table, "SHA-256");
  for (; *sets; sets++) add_rows(table, *sets, folder);
  output_table_print(table);
  printf("\nLooked for in this order, in each place in the folder of the set's name first:\n");
  for (; *folders; folders++) printf("    %s\n", *folders);
  printf("'helio data get SET' downloads a set; with --from DIR it takes files that are there.\n");
}

static int run_list(const command_line *line) {
  const char *folder = line->values[DATA];
  char **folders = helio_data_folders(folder), **sets = folders ? helio_data_names() : NULL;
  int status = sets ? EXIT_SUCCESS : command_library_failure(line->path);
  if (sets) (line->values[JSON] ? print_json : print_text)(sets, folders, folder);
  free(sets);
  free(folders);
  return status;
}

const command command_data_list = {
    .name = "list",
    .summary = "Lists the known data sets, their files and where they were found",
    .description = "A set is looked for in the folder given, in HELIO_DATA_DIR, in the cache folder and in Debian's.",
    .options = options,
    .run = run_list,
};

/* ---------------------------------------------------------------------------------------------------------------------
 * helio data
 */

static const command *const subcommands[] = {&command_data_list, &command_data_get, &command_data_show, NULL};

const command command_data = {
    .name = "data",
    .summary = "Lists, downloads and shows data sets",
    .subcommands = subcommands,
};
