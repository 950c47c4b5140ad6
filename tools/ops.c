/* SPDX-License-Identifier: Apache-2.0 */
/* helio ops: every operation with its attributes, and which backend has it in which types. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "output.h"

enum { JSON, MARKDOWN };

static const command_option options[] = {
    [JSON] = {"json", NULL, NULL, "print JSON"},
    [MARKDOWN] = {"markdown", NULL, NULL, "print the page docs/operations.md"},
    {0},
};

enum { MAX_BACKENDS = 16, TYPES_TEXT = 160 };

typedef struct operation_table {
  const helio_operation_info *const *operations;
  int count;
  const char *backends[MAX_BACKENDS];
  int backend_count;
} operation_table;

#define NAMED_TYPE(symbol, value, text, bytes) {HELIO_##symbol, text},
static const struct {
  helio_type type;
  const char *name;
} types[] = {HELIO_TYPE_LIST(NAMED_TYPE)};
#undef NAMED_TYPE

enum { TYPE_COUNT = sizeof types / sizeof types[0] };

static bool read_table(operation_table *table) {
  int plugins = 0;
  const helio_plugin_report *const *reports = helio_plugins(&plugins);
  table->operations = helio_operations(&table->count);
  if (!reports || !table->operations) return false;
  for (int i = 0; i < plugins && table->backend_count < MAX_BACKENDS; i++) {
    if (!reports[i]->is_backend || reports[i]->status != HELIO_PLUGIN_USABLE) continue;
    table->backends[table->backend_count++] = reports[i]->name;
  }
  return true;
}

static json_t *types_json(uint32_t set) {
  json_t *array = json_array();
  for (int i = 0; i < TYPE_COUNT; i++) {
    if (set & HELIO_TYPE_BIT(types[i].type)) output_append(array, output_text(types[i].name));
  }
  return array;
}

static json_t *backends_json(const operation_table *table, const helio_operation_info *operation) {
  json_t *object = json_object();
  for (int i = 0; i < table->backend_count; i++) {
    uint32_t set = helio_operation_types(operation->name, table->backends[i]);
    if (set) output_set(object, table->backends[i], types_json(set));
  }
  return object;
}

static void print_json(const operation_table *table) {
  json_t *array = json_array();
  for (int i = 0; i < table->count; i++) {
    const helio_operation_info *operation = table->operations[i];
    json_t *object = json_object();
    output_set(object, "name", output_text(operation->name));
    output_set(object, "label", output_text(operation->label));
    output_set(object, "summary", output_text(operation->summary));
    output_set(object, "attributes", output_split(operation->attributes, ", "));
    output_set(object, "needs_kernel", json_boolean(operation->needs_kernel));
    output_set(object, "backends", backends_json(table, operation));
    output_append(array, object);
  }
  output_json(array);
}

/* Short names keep the table within a screen's width. */
static const char *short_name(int type) {
  static const char *const names[] = {
      [HELIO_FLOAT32] = "f32", [HELIO_FLOAT64] = "f64", [HELIO_FLOAT16] = "f16", [HELIO_BFLOAT16] = "bf16",
      [HELIO_INT32] = "i32",   [HELIO_INT64] = "i64",   [HELIO_UINT8] = "u8",    [HELIO_BOOL] = "bool",
  };
  bool known = types[type].type < sizeof names / sizeof names[0] && names[types[type].type];
  return known ? names[types[type].type] : types[type].name;
}

/* "f32 f64", "all types", or "-" where the backend lacks the operation. */
static const char *types_text(char text[TYPES_TEXT], uint32_t set) {
  int known = 0, length = 0;
  text[0] = '\0';
  for (int i = 0; i < TYPE_COUNT; i++) {
    if (!(set & HELIO_TYPE_BIT(types[i].type))) continue;
    length += snprintf(text + length, (size_t)(TYPES_TEXT - length), "%s%s", known ? " " : "", short_name(i));
    known++;
  }
  if (known == 0) return "-";
  return known == TYPE_COUNT ? "all types" : text;
}

/* A word for the sets that many operations have, else the types themselves. */
static const char *short_types_text(char text[TYPES_TEXT], uint32_t set) {
  const uint32_t floats = HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64) |
                          HELIO_TYPE_BIT(HELIO_FLOAT16) | HELIO_TYPE_BIT(HELIO_BFLOAT16);
  if (set == floats) return "floats";
  if (set == (floats | HELIO_TYPE_BIT(HELIO_INT32) | HELIO_TYPE_BIT(HELIO_INT64))) return "numbers";
  return types_text(text, set);
}

/* One cell for each backend, by one of the two functions above. */
static void add_backend_cells(output_table *output, const operation_table *table, const helio_operation_info *operation,
                              const char *(*show)(char text[TYPES_TEXT], uint32_t set)) {
  char text[TYPES_TEXT];
  for (int i = 0; i < table->backend_count; i++) {
    uint32_t set = operation->needs_kernel ? helio_operation_types(operation->name, table->backends[i]) : 0;
    output_cell(output, "%s", operation->needs_kernel ? show(text, set) : "every device");
  }
}

static void print_text(const operation_table *table) {
  enum { LINE = 100 };
  output_table *output = output_table_new(table->backend_count + 2);
  output_table_wrap(output, LINE);
  output_cell(output, "OPERATION");
  for (int i = 0; i < table->backend_count; i++) output_cell(output, "%s", table->backends[i]);
  output_cell(output, "WHAT IT COMPUTES [ATTRIBUTES]");
  for (int i = 0; i < table->count; i++) {
    const helio_operation_info *operation = table->operations[i];
    bool any = operation->attributes[0] != '\0';
    output_cell(output, "%s", operation->name);
    add_backend_cells(output, table, operation, short_types_text);
    output_cell(output, "%s%s%s%s", operation->summary, any ? " [" : "", operation->attributes, any ? "]" : "");
  }
  output_table_print(output);
  printf("\nfloats: f32 f64 f16 bf16; numbers: floats, i32 and i64 (f float, bf bfloat, i int, u uint, each with\n"
         "its bits). -: the backend lacks it; 'every device': it needs no kernel.\n");
}

static void print_markdown(const operation_table *table) {
  printf(
      "# Operations\n\n"
      "Every operation, its name in placement lines, its attributes, and the types in which each backend has it\n"
      "(f float, bf bfloat, i int, u uint, each with its bits). One that needs no kernel runs on every device. What a\n"
      "backend lacks runs on the next device that has it. The type is that of the first input, of the result where\n"
      "there is none. What each input is and how attributes are handed to a kernel stands in `helio/plugin.h`. This\n"
      "page is written by `helio ops --markdown`; a test compares the two.\n\n");
  output_table *output = output_table_new(table->backend_count + 4);
  output_cell(output, "Operation");
  output_cell(output, "Label");
  output_cell(output, "Attributes");
  for (int i = 0; i < table->backend_count; i++) output_cell(output, "%s", table->backends[i]);
  output_cell(output, "Meaning");
  for (int i = 0; i < table->count; i++) {
    const helio_operation_info *operation = table->operations[i];
    output_cell(output, "`%s`", operation->name);
    output_cell(output, "%s", operation->label);
    output_cell(output, "%s", operation->attributes);
    add_backend_cells(output, table, operation, types_text);
    output_cell(output, "%s", operation->summary);
  }
  output_table_markdown(output);
}

static int run_ops(const command_line *line) {
  if (line->values[JSON] && line->values[MARKDOWN]) {
    return command_usage_error(line->path, "--json and --markdown exclude each other");
  }
  operation_table table = {0};
  if (!read_table(&table)) return command_library_failure(line->path);
  if (line->values[JSON]) {
    print_json(&table);
  } else if (line->values[MARKDOWN]) {
    print_markdown(&table);
  } else {
    print_text(&table);
  }
  return EXIT_SUCCESS;
}

const command command_ops = {
    .name = "ops",
    .summary = "Lists the operations with their attributes, and which backend supports them for which types",
    .options = options,
    .run = run_ops,
};
