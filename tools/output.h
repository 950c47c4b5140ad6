/* SPDX-License-Identifier: Apache-2.0 */
/* What subcommands print: tables for people, JSON for programs, Markdown for documents. Where memory runs out these
 * functions end the process with a message: a command has nothing better to do. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <helio/helio.h>
#include <jansson.h>

_Noreturn void output_out_of_memory(void); /* says so and exits */

/* A table is filled cell by cell, row by row; the first row is its head. A note is a line of its own below a row and
 * counts for no column's width. */
typedef struct output_table output_table;

output_table *output_table_new(int columns);
void output_cell(output_table *table, const char *format, ...) HELIO_PRINTF(2, 3);
void output_note(output_table *table, const char *format, ...) HELIO_PRINTF(2, 3);

/* Lines for people end within so many characters as far as words allow: the last column goes on below itself. */
void output_table_wrap(output_table *table, int characters);

/* Both print the table and free it. */
void output_table_print(output_table *table);
void output_table_markdown(output_table *table);

enum { OUTPUT_BYTES = 32 };

/* "15.6 GiB", written to `text`, which is returned. */
const char *output_bytes(char text[OUTPUT_BYTES], uint64_t bytes);

/* The text without what would move the cursor or change colours, written to `to`, which is returned: files are not
 * trusted. It is cut where it is too long, but not inside a character. */
const char *output_printable(char *to, size_t size, const char *text);

/* A JSON string. Bytes that are not UTF-8, as file names may have, become '?'. */
json_t *output_text(const char *text);

/* NaN has a sign that says nothing: it is left out where a number is printed. */
double output_unsigned_nan(double value);

/* A number; JSON has no word for those that are not finite: they are null. */
json_t *output_number(double value);

/* The parts of "a|b|c" as an array of strings; "" has none. */
json_t *output_split(const char *text, const char *separator);

/* Both take the value over. */
void output_set(json_t *object, const char *key, json_t *value);
void output_append(json_t *array, json_t *value);

/* Prints and releases it, keys in the order in which they were set. */
void output_json(json_t *value);

/* Was everything really written? The exit status: `status` if so, or if it is a failure already, else EXIT_FAILURE with
 * a message. */
int output_finish(int status);

#endif
