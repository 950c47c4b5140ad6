/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel text after its macros were replaced. Two things must still be done to it, and both need no more than its
 * words: kernels are found by their marker, for the table of them at the end, and shared memory whose size the launch
 * tells, `extern __shared__ float values[];`, becomes a reference to where it is. */
#define _GNU_SOURCE
#include "compile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 256 };

typedef struct word {
  const char *start;
  size_t length;
} word;

typedef struct reader {
  const char *at;
  FILE *out, *table;
  char **log;
  char *names; /* of kernels that were found, each as "(name)" */
  bool in_template;
  int depth, scopes; /* braces that are open, and those of them that are no extern "C" and no namespace */
  bool is_scope[DEPTH];
  word before, last; /* the two words that were read last */
} reader;

static bool is(word w, const char *text) {
  return w.length == strlen(text) && !strncmp(w.start, text, w.length);
}

static bool is_name_start(char c) {
  return isalpha((unsigned char)c) || c == '_';
}

static size_t quoted_length(const char *at) {
  size_t length = 1;
  while (at[length] && at[length] != at[0]) length += at[length] == '\\' && at[length + 1] ? 2 : 1;
  return length + (at[length] != 0);
}

/* A name, a number, something in quotes, a line of the preprocessor or one other character. */
static word next_word(const char *at) {
  while (isspace((unsigned char)*at)) {
    at++;
    if (at[-1] == '\n' && *at == '#') at += strcspn(at, "\n");
  }
  size_t length = *at != 0;
  if (*at == '"' || *at == '\'') {
    length = quoted_length(at);
  } else if (isalnum((unsigned char)*at) || *at == '_') {
    bool is_number = isdigit((unsigned char)*at);
    while (isalnum((unsigned char)at[length]) || at[length] == '_' || (is_number && at[length] == '\'')) length++;
  }
  return (word){at, length};
}

static const char *behind(word w) {
  return w.start + w.length;
}

/* From an opening bracket to behind the one that closes it. */
static const char *behind_brackets(const char *at) {
  int depth = 0;
  for (word w = next_word(at); w.length; w = next_word(behind(w))) {
    if (is(w, "(")) depth++;
    if (is(w, ")") && --depth == 0) return behind(w);
  }
  return at + strlen(at);
}

static void remember_kernel(reader *r, word name, const char *bounds, int bounds_length) {
  char *key = sim_print("(%.*s)", (int)name.length, name.start);
  if (key && !strstr(r->names, key)) {
    fprintf(r->table, "SIM_ENTRY(%.*s%s%.*s),\n", (int)name.length, name.start, bounds_length ? ", " : "",
            bounds_length, bounds);
    char *names = sim_print("%s%s", r->names, key);
    free(r->names);
    r->names = names;
  }
  free(key);
}

/* Behind the marker: attributes, a type, the bounds of its launch, and the name, which is what brackets follow. */
static void read_kernel(reader *r, const char *at) {
  const char *bounds = "";
  int bounds_length = 0;
  for (word w = next_word(at); w.length; w = next_word(at)) {
    at = behind(w);
    if (!is_name_start(*w.start) || !is(next_word(at), "(")) continue;
    const char *end = behind_brackets(at);
    if (is(w, "sim_marker_bounds")) {
      bounds = next_word(at).start + 1;
      bounds_length = (int)(end - 1 - bounds);
    } else if (!is(w, "__attribute__")) {
      remember_kernel(r, w, bounds, bounds_length);
      return;
    }
    at = end;
  }
}

/* Is the declaration that begins here one of shared memory without a size? Then its end and the name that it declares.
 */
static bool is_dynamic(const char *at, const char **end, word *name) {
  bool is_extern = false, is_shared = false;
  word declared = {0}, w = next_word(at);
  for (; w.length && !is(w, ";"); w = next_word(behind(w))) {
    if (is(w, "{") || is(w, "=") || is(w, "\"C\"")) return false;
    is_extern |= is(w, "extern");
    is_shared |= is(w, "sim_marker_shared");
    if (is_name_start(*w.start) && is(next_word(behind(w)), "[")) declared = w;
  }
  *end = w.start;
  *name = declared;
  return is_extern && is_shared && declared.length;
}

/* Shared memory has no initial value. */
static bool is_initialized(const char *at) {
  word w = next_word(at);
  while (w.length && !is(w, ";") && !is(w, "=") && !is(w, "{")) w = next_word(behind(w));
  return w.length && !is(w, ";");
}

static bool write_dynamic(reader *r, const char *at, const char *end, word name) {
  if (r->scopes == 0) {
    *r->log =
        sim_print("gpusim: \"%.*s\": shared memory without a size must be declared in the function that uses it\n",
                  (int)name.length, name.start);
    return false;
  }
  for (word w = next_word(at); w.start < name.start; w = next_word(behind(w)))
    if (!is(w, "extern") && !is(w, "sim_marker_shared")) fprintf(r->out, "%.*s ", (int)w.length, w.start);
  fprintf(r->out, "(&%.*s)%.*s = reinterpret_cast<decltype(%.*s)>(*sim_current.dynamic)", (int)name.length, name.start,
          (int)(end - behind(name)), behind(name), (int)name.length, name.start);
  return true;
}

static void follow_braces(reader *r, word w) {
  if (is(w, "{") && r->depth < DEPTH) {
    bool is_linkage = is(r->before, "extern") && *r->last.start == '"';
    bool is_namespace = is(r->before, "namespace") || is(r->last, "namespace");
    r->is_scope[r->depth] = !is_linkage && !is_namespace;
    r->scopes += r->is_scope[r->depth++];
  } else if (is(w, "}") && r->depth > 0) {
    r->scopes -= r->is_scope[--r->depth];
  }
  if (is(w, "{") || is(w, "}") || is(w, ";")) r->in_template = false;
}

/* Reads one word and writes it, or what stands for it. */
static bool step(reader *r, word w) {
  const char *end;
  word name;
  fwrite(r->at, 1, (size_t)(w.start - r->at), r->out);
  r->at = behind(w);
  if (is(w, "sim_marker_shared") && is_initialized(r->at)) {
    *r->log = sim_print("error: initializer not allowed for __shared__ variable\n");
    return false;
  }
  follow_braces(r, w);
  if (is(w, "template")) r->in_template = true;
  if (is(w, "sim_marker_global") && !r->in_template) read_kernel(r, r->at);
  if ((is(w, "extern") || is(w, "sim_marker_shared")) && is_dynamic(w.start, &end, &name)) {
    if (!write_dynamic(r, w.start, end, name)) return false;
    r->at = end;
  } else {
    fwrite(w.start, 1, w.length, r->out);
  }
  r->before = r->last;
  r->last = w;
  return true;
}

static bool read_all(reader *r) {
  word w;
  while ((w = next_word(r->at)).length)
    if (!step(r, w)) return false;
  return true;
}

static void write_table(FILE *out, const char *table) {
  /* An entry without a name at the end, because there may be no kernel at all. */
  fprintf(
      out,
      "\n# 1 \"gpusim\"\n"
      "#define SIM_ENTRY(name, ...) sim_kernel_of<&name>::entry(#name, (const void *)&name __VA_OPT__(,) __VA_ARGS__)\n"
      "static const sim_entry sim_entries[] = {\n%s{}};\n"
      "extern \"C\" __attribute__((used, visibility(\"default\"))) const sim_kernel_table sim_kernels = {\n"
      "SIM_KERNEL_VERSION, sizeof(sim_block), sim_this_block, sim_entries,\n"
      "sizeof sim_entries / sizeof *sim_entries - 1};\n",
      table);
}

char *sim_text_complete(const char *text, char **log) {
  char *out = NULL, *table = NULL;
  size_t out_size, table_size;
  reader r = {.at = text, .log = log, .names = strdup("")};
  r.out = open_memstream(&out, &out_size);
  r.table = open_memstream(&table, &table_size);
  bool good = r.out && r.table && r.names && read_all(&r);
  if (r.table) fclose(r.table);
  if (good) write_table(r.out, table);
  if (r.out) fclose(r.out);
  free(table);
  free(r.names);
  if (good) return out;
  free(out);
  return NULL;
}
