/* SPDX-License-Identifier: Apache-2.0 */
/* helio env: every environment variable that the library and its plugins read. */
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "output.h"

enum { JSON, MARKDOWN };

static const command_option options[] = {
    [JSON] = {"json", NULL, NULL, "print JSON"},
    [MARKDOWN] = {"markdown", NULL, NULL, "print the page docs/environment.md"},
    {0},
};

static void print_json(const helio_setting *const *settings, int count) {
  json_t *array = json_array();
  for (int i = 0; i < count; i++) {
    const helio_setting *setting = settings[i];
    json_t *object = json_object();
    output_set(object, "name", output_text(setting->name));
    output_set(object, "value", output_text(setting->value));
    output_set(object, "set", json_boolean(setting->set));
    output_set(object, "default", output_text(setting->default_value));
    output_set(object, "kind", output_text(setting->kind));
    output_set(object, "choices", output_split(setting->choices, "|"));
    output_set(object, "help", output_text(setting->help));
    output_set(object, "owner", output_text(setting->owner));
    output_append(array, object);
  }
  output_json(array);
}

/* Depends on no value in force: the page is the same on every machine with the same plugins. */
static void print_markdown(const helio_setting *const *settings, int count) {
  printf(
      "# Environment variables\n\n"
      "Every variable that Heliostat reads, once, when it starts. Each is a call of `helio/helio.h` as well where it\n"
      "concerns a program; a call made by the program wins. `helio env` shows the values in force. A variable that\n"
      "begins with `HELIO_` and is not in this table is warned about. This page is written by\n"
      "`helio env --markdown`; a test compares the two.\n\n");
  output_table *table = output_table_new(6);
  output_cell(table, "Variable");
  output_cell(table, "Kind");
  output_cell(table, "Default");
  output_cell(table, "Choices");
  output_cell(table, "Meaning");
  output_cell(table, "Owner");
  for (int i = 0; i < count; i++) {
    const helio_setting *setting = settings[i];
    const char *tick = setting->default_value[0] ? "`" : "";
    output_cell(table, "`%s`", setting->name);
    output_cell(table, "%s", setting->kind);
    output_cell(table, "%s%s%s", tick, setting->default_value, tick);
    tick = setting->choices[0] ? "`" : "";
    output_cell(table, "%s%s%s", tick, setting->choices, tick);
    output_cell(table, "%s", setting->help);
    output_cell(table, "%s", setting->owner);
  }
  output_table_markdown(table);
}

static void print_text(const helio_setting *const *settings, int count) {
  output_table *table = output_table_new(4);
  output_cell(table, "  VARIABLE");
  output_cell(table, "VALUE");
  output_cell(table, "DEFAULT");
  output_cell(table, "KIND");
  for (int i = 0; i < count; i++) {
    const helio_setting *setting = settings[i];
    output_cell(table, "%s %s", setting->set ? "*" : " ", setting->name);
    output_cell(table, "%s", setting->value);
    output_cell(table, "%s", setting->default_value);
    output_cell(table, "%s", setting->choices[0] ? setting->choices : setting->kind);
    output_note(table, "%s", setting->help);
  }
  output_table_print(table);
  printf("\n* is set in the environment\n");
}

static int run_env(const command_line *line) {
  if (line->values[JSON] && line->values[MARKDOWN]) {
    return command_usage_error(line->path, "--json and --markdown exclude each other");
  }
  int count = 0;
  const helio_setting *const *settings = helio_settings(&count);
  if (!settings) return command_library_failure(line->path);
  if (line->values[JSON]) {
    print_json(settings, count);
  } else if (line->values[MARKDOWN]) {
    print_markdown(settings, count);
  } else {
    print_text(settings, count);
  }
  return EXIT_SUCCESS;
}

const command command_env = {
    .name = "env",
    .summary = "Lists the environment variables with their values and meaning",
    .options = options,
    .run = run_env,
};
