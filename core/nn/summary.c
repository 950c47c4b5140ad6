/* SPDX-License-Identifier: Apache-2.0 */
/* Keras' table of a model, to the byte: what model.summary() of Keras 3.15 prints by way of the Python package rich,
 * whose rules for columns, wrapping and cutting are followed here. The locale plays no part in that text; on a terminal
 * the table is as wide as fits, and ASCII where the terminal has no more. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/model.h"
#include "runtime/error.h"
#include "runtime/terminal.h"

/* Without a terminal Keras assumes 80 columns and takes four less; only the text above the table has them all. */
enum { CONSOLE = 80, LINE = CONSOLE - 4, MOST_LINE = 10000, LEAST_COLUMN = 4, MOST_COLUMNS = 4 };

static const char spaces[] = " \t\n\v\f\r";

/* ---- how wide text is ---- */

/* Leaves out what is rare in names: scripts whose marks combine, and symbols that stand alone. */
static const struct range {
  uint32_t first, last;
  int width;
} ranges[] = {
    {0x0000, 0x001f, 0},   {0x007f, 0x009f, 0},   {0x0300, 0x036f, 0},   {0x0483, 0x0489, 0},   {0x0591, 0x05bd, 0},
    {0x0610, 0x061a, 0},   {0x064b, 0x065f, 0},   {0x1100, 0x115f, 2},   {0x1160, 0x11ff, 0},   {0x1ab0, 0x1add, 0},
    {0x1dc0, 0x1dff, 0},   {0x200b, 0x200f, 0},   {0x2028, 0x202e, 0},   {0x2060, 0x206f, 0},   {0x20d0, 0x20f0, 0},
    {0x2e80, 0x3029, 2},   {0x302a, 0x302f, 0},   {0x3030, 0x303e, 2},   {0x3041, 0x3096, 2},   {0x3099, 0x309a, 0},
    {0x309b, 0xa4c6, 2},   {0xa960, 0xa97c, 2},   {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},
    {0xfe20, 0xfe2f, 0},   {0xfe30, 0xfe6b, 2},   {0xfeff, 0xfeff, 0},   {0xff01, 0xff60, 2},   {0xffe0, 0xffe6, 2},
    {0x17000, 0x1b2fb, 2}, {0x1f300, 0x1f320, 2}, {0x1f32d, 0x1f335, 2}, {0x1f337, 0x1f37c, 2}, {0x1f37e, 0x1f393, 2},
    {0x1f3a0, 0x1f3ca, 2}, {0x1f3fb, 0x1f3ff, 0}, {0x1f400, 0x1f43e, 2}, {0x1f442, 0x1f4fc, 2}, {0x1f4ff, 0x1f53d, 2},
    {0x1f5fb, 0x1f64f, 2}, {0x1f680, 0x1f6c5, 2}, {0x1f90c, 0x1f93a, 2}, {0x1f93c, 0x1f945, 2}, {0x1f947, 0x1f9ff, 2},
    {0x20000, 0x3fffd, 2},
};

/* Steps over one character of UTF-8 and returns how many columns it takes. */
static int step(const char **at) {
  unsigned char byte = (unsigned char)*(*at)++;
  int more = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
  uint32_t code = more ? byte & (0x3fu >> more) : byte;
  for (; more > 0 && (**at & 0xc0) == 0x80; more--) code = code << 6 | ((unsigned char)*(*at)++ & 0x3fu);
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
    if (code >= ranges[i].first && code <= ranges[i].last) return ranges[i].width;
  }
  return 1;
}

static int width_of(const char *text, size_t bytes) {
  int width = 0;
  for (const char *at = text; at < text + bytes;) width += step(&at);
  return width;
}

/* ---- lines ---- */

static size_t without_spaces(const char *text, size_t bytes) {
  while (bytes > 0 && strchr(spaces, text[bytes - 1])) bytes--;
  return bytes;
}

/* How many bytes of the text fit, none of the characters being cut; and how wide they are. */
static size_t fitting(const char *text, size_t bytes, int width, int *taken) {
  const char *at = text;
  *taken = 0;
  while (at < text + bytes) {
    const char *next = at;
    int one = step(&next);
    if (*taken + one > width) break;
    *taken += one;
    at = next;
  }
  return (size_t)(at - text);
}

/* A word with the white space around it. */
static size_t word_bytes(const char *text) {
  size_t bytes = strspn(text, spaces);
  bytes += strcspn(text + bytes, spaces);
  return bytes + strspn(text + bytes, spaces);
}

/* The bytes of the text's first line: as many words as fit and at least one, which may be too long; `fold` breaks such
 * a word. */
static size_t line_bytes(const char *text, int width, bool fold) {
  size_t bytes = word_bytes(text);
  int taken = width_of(text, without_spaces(text, bytes));
  if (taken > width && fold) {
    size_t part = fitting(text, bytes, width, &taken);
    return part ? part : bytes;
  }
  taken = width_of(text, bytes);
  while (text[bytes]) {
    size_t word = word_bytes(text + bytes);
    if (taken + width_of(text + bytes, without_spaces(text + bytes, word)) > width) break;
    taken += width_of(text + bytes, word);
    bytes += word;
  }
  return bytes;
}

static int line_count(const char *text, int width) {
  int count = 0;
  for (; *text; count++) text += line_bytes(text, width, false);
  return count;
}

static void repeat(FILE *out, const char *text, int times) {
  for (int i = 0; i < times; i++) fputs(text, out);
}

/* A line in a field of this width; what does not fit ends in an ellipsis. */
static void put_field(FILE *out, const char *text, size_t bytes, int width, bool right) {
  bytes = without_spaces(text, bytes);
  int taken = width_of(text, bytes);
  bool cut = taken > width;
  if (cut) bytes = fitting(text, bytes, width - 1, &taken);
  if (right && !cut) repeat(out, " ", width - taken);
  fwrite(text, 1, bytes, out);
  if (cut) repeat(out, " ", width - 1 - taken);
  if (cut && width > 0) fputs("…", out);
  if (!right && !cut) repeat(out, " ", width - taken);
}

/* Text outside of the table. */
static void put_folded(FILE *out, const char *text, int width) {
  while (*text) {
    size_t line = line_bytes(text, width, true), bytes = line;
    while (bytes > 0 && width_of(text, bytes) > width && strchr(spaces, text[bytes - 1])) bytes--;
    fwrite(text, 1, bytes, out);
    fputc('\n', out);
    text += line;
  }
}

/* ---- the table ---- */

typedef struct table {
  FILE *out;
  int count; /* of columns */
  int width[MOST_COLUMNS];
} table;

static const char *const header[MOST_COLUMNS] = {"Layer (type)", "Output Shape", "Param #", "Connected to"};

/* Keras gives each column its share of the line and rich takes from them what borders and spaces need: 3 from each, and
 * the one that is left over from the last but one. */
static helio_status set_widths(table *t, bool connections, int line) {
  static const double three[] = {0.45, 0.80, 1.0}, four[] = {0.3, 0.56, 0.74, 1.0};
  int before = 0;
  t->count = connections ? 4 : 3;
  for (int i = 0; i < t->count; i++) {
    int end = (int)((connections ? four : three)[i] * line);
    if (end - before < LEAST_COLUMN || line > MOST_LINE) {
      return hi_fail(HELIO_INVALID_ARGUMENT, "%d columns are too %s for a summary", line,
                     line > MOST_LINE ? "many" : "few");
    }
    t->width[i] = end - before - 3 - (i == t->count - 2);
    before = end;
  }
  return HELIO_OK;
}

static void put_rule(const table *t, const char *left, const char *along, const char *between, const char *right) {
  for (int i = 0; i < t->count; i++) {
    fputs(i == 0 ? left : between, t->out);
    repeat(t->out, along, t->width[i] + 2);
  }
  fprintf(t->out, "%s\n", right);
}

/* Cells begin at the top, those of the header end at the bottom. */
static void put_row(const table *t, const char *const cells[MOST_COLUMNS], bool head) {
  const char *at[MOST_COLUMNS], *border = head ? "┃" : "│";
  int lines[MOST_COLUMNS], height = 1;
  for (int i = 0; i < t->count; i++) {
    at[i] = cells[i];
    lines[i] = line_count(cells[i], t->width[i]);
    if (height < lines[i]) height = lines[i];
  }
  for (int line = 0; line < height; line++) {
    for (int i = 0; i < t->count; i++) {
      bool empty = head && line < height - lines[i];
      size_t bytes = empty || !*at[i] ? 0 : line_bytes(at[i], t->width[i], false);
      fprintf(t->out, "%s ", border);
      put_field(t->out, at[i], bytes, t->width[i], i == 2);
      fputc(' ', t->out);
      at[i] += bytes;
    }
    fprintf(t->out, "%s\n", border);
  }
}

/* ---- what stands in the cells ---- */

static void put_number(FILE *out, int64_t number) {
  if (number < 1000) {
    fprintf(out, "%d", (int)number);
    return;
  }
  put_number(out, number / 1000);
  fprintf(out, ",%03d", (int)(number % 1000));
}

/* "(None, 28, 28, 1)"; a batch that is not known may be given. */
static void put_shape(FILE *out, const helio_shape *shape, int64_t batch) {
  fputc('(', out);
  for (int i = 0; i < shape->rank; i++) {
    int64_t extent = shape->extent[i] == HI_ANY && i == 0 && batch ? batch : shape->extent[i];
    if (i > 0) fputs(", ", out);
    if (extent == HI_ANY) {
      fputs("None", out);
    } else {
      fprintf(out, "%lld", (long long)extent);
    }
  }
  fputc(')', out);
}

/* In a graph a layer may have several shapes: Keras shows that of its last use. */
static void put_shapes(FILE *out, const hi_model *model, int index, const helio_shape *shape) {
  const helio_node *last = NULL, *node = NULL;
  while ((node = hi_model_next_use(model, model->layers[index], last))) last = node;
  if (!last) {
    put_shape(out, shape, model->first_input.rank > 0 ? model->first_input.extent[0] : 0);
    return;
  }
  if (last->output_count > 1) fputc('[', out);
  for (int i = 0; i < last->output_count; i++) {
    if (i > 0) fputs(", ", out);
    put_shape(out, &last->shapes[i], 0);
  }
  if (last->output_count > 1) fputc(']', out);
}

/* "left[0][0], encoder[1][0]": a layer, which of its uses, which of its outputs. */
static void put_connections(FILE *out, const hi_model *model, const helio_layer *layer) {
  int count = 0;
  for (const helio_node *node = hi_model_next_use(model, layer, NULL); node;
       node = hi_model_next_use(model, layer, node)) {
    for (int i = 0; i < node->input_count; i++, count++) {
      const helio_node *input = node->inputs[i], *first = input->first ? input->first : input;
      fprintf(out, "%s%s[%d][%d]", count ? ", " : "", hi_name_within(model, first->layer), first->applied,
              input->output);
    }
  }
  if (count == 0) fputc('-', out);
}

static int64_t params_of(helio_layer *layer) {
  int64_t count = 0;
  if (layer->model) return helio_count_params(layer);
  for (int i = 0; i < layer->weight_count; i++) count += hi_variable_tensor(layer->weights[i].variable)->elements;
  return count;
}

static helio_status no_memory(void) {
  return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a summary");
}

static helio_status put_layer(const table *t, const hi_model *model, int index, const helio_shape *shape) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes); /* the cells behind one another, each with a 0 at its end */
  if (!out) return no_memory();
  fprintf(out, "%s (%s)%c", model->names[index], model->layers[index]->kind->class_name, 0);
  put_shapes(out, model, index, shape);
  fputc(0, out);
  put_number(out, params_of(model->layers[index]));
  fputc(0, out);
  put_connections(out, model, model->layers[index]);
  bool written = !ferror(out);
  if (fclose(out) != 0 || !written) {
    free(text);
    return no_memory();
  }
  const char *cells[MOST_COLUMNS] = {text};
  for (int i = 1; i < MOST_COLUMNS; i++) cells[i] = cells[i - 1] + strlen(cells[i - 1]) + 1;
  put_row(t, cells, false);
  free(text);
  return HELIO_OK;
}

/* A chain of layers, each of which is used once, needs no column for connections. */
static bool is_chain(const hi_model *model) {
  bool chain = model->step_count == 0 || model->step_count == model->layer_count;
  for (int i = 0; i < model->step_count && chain; i++) {
    const hi_graph_step *one = &model->steps[i];
    chain = one->node->input_count == (i > 0) && (i == 0 || one->inputs[0] >= one[-1].result);
  }
  return chain;
}

static helio_status put_table(FILE *out, const helio_layer *owner, int line) {
  const hi_model *model = owner->model;
  bool chained = owner->kind == &hi_sequential_kind && model->input_count > 0;
  helio_shape shape = chained ? model->input_shapes[0] : (helio_shape){0};
  table t = {.out = out};
  helio_status status = set_widths(&t, !is_chain(model), line);
  if (status) return status;
  put_rule(&t, "┏", "━", "┳", "┓");
  put_row(&t, header, true);
  put_rule(&t, "┡", "━", "╇", "┩");
  for (int i = 0; i < model->layer_count && !status; i++) {
    const helio_layer *layer = model->layers[i];
    helio_shape input = shape;
    shape = layer->output_shape; /* of its first use, which may have been in another model */
    if (chained && layer->kind != &hi_custom_kind) status = hi_layer_shape(layer, &input, 1, &shape);
    if (i > 0) put_rule(&t, "├", "─", "┼", "┤");
    if (!status) status = put_layer(&t, model, i, &shape);
  }
  put_rule(&t, "└", "─", "┴", "┘");
  return status;
}

/* ---- totals ---- */

typedef struct total {
  int64_t params;
  uint64_t bytes;
} total;

static void add(total *sum, const helio_variables *variables) {
  for (int i = 0; variables && i < variables->count; i++) {
    const helio_tensor *tensor = hi_variable_tensor(variables->at[i]);
    sum->params += tensor->elements;
    sum->bytes += hi_tensor_bytes(tensor);
  }
}

/* " Total params: 12,810 (50.04 KB)", half hundredths rounded to even ones as in Python. */
static void put_total(FILE *out, const char *label, total sum) {
  static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  int unit = 0;
  while (unit < 5 && sum.bytes >> (10 * (unit + 1))) unit++;
  uint64_t one = (uint64_t)1 << (10 * unit), whole = sum.bytes / one, rest = sum.bytes % one * 100;
  uint64_t hundredths = whole * 100 + rest / one, twice = rest % one * 2;
  if (twice > one || (twice == one && hundredths % 2 == 1)) hundredths++;
  fprintf(out, " %s: ", label);
  put_number(out, sum.params);
  fprintf(out, " (%llu.%02llu %s)\n", (unsigned long long)hundredths / 100, (unsigned long long)hundredths % 100,
          units[unit]);
}

static helio_status put_totals(FILE *out, helio_layer *owner, const helio_variables *optimizer) {
  const helio_variables *trainable = helio_trainable_variables(owner), *fixed = helio_non_trainable_variables(owner);
  if (!trainable || !fixed) return helio_error_pending();
  total sums[4] = {0};
  const helio_variables *const lists[] = {trainable, fixed, optimizer};
  for (int i = 0; i < 3; i++) {
    add(&sums[0], lists[i]);
    add(&sums[i + 1], lists[i]);
  }
  put_total(out, "Total params", sums[0]);
  put_total(out, "Trainable params", sums[1]);
  put_total(out, "Non-trainable params", sums[2]);
  if (optimizer) put_total(out, "Optimizer params", sums[3]);
  return HELIO_OK;
}

/* ---- all of it ---- */

static helio_status put_title(FILE *out, const helio_layer *owner, int width) {
  char *title = NULL;
  if (asprintf(&title, "Model: \"%s\"", hi_layer_label(owner)) < 0) return no_memory();
  put_folded(out, title, width);
  free(title);
  return HELIO_OK;
}

char *hi_model_summary_text(helio_layer *owner, int columns, const helio_variables *optimizer) {
  if (!hi_model_ready(owner)) return NULL;
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  helio_status status = out ? put_title(out, owner, columns > CONSOLE ? columns : CONSOLE) : no_memory();
  if (!status) status = put_table(out, owner, columns ? columns : LINE);
  if (!status) status = put_totals(out, owner, optimizer);
  if (out && ferror(out) && !status) status = no_memory();
  if (out && fclose(out) != 0 && !status) status = no_memory();
  if (!status) return text;
  free(text);
  return NULL;
}

char *helio_model_summary_text(helio_model *model, int columns) {
  return hi_enter(__func__) ? NULL : hi_model_summary_text(model, columns, NULL);
}

/* ---- on a terminal ---- */

/* What stands for a character, as often as it has columns: the frame is drawn as frames were drawn before. */
static char plain_of(const char *text, size_t bytes) {
  static const struct {
    const char *drawn;
    char plain;
  } signs[] = {{"━─", '-'}, {"┃│", '|'}, {"┏┳┓┡╇┩├┼┤└┴┘", '+'}, {"…", '.'}};
  for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
    if (memmem(signs[i].drawn, strlen(signs[i].drawn), text, bytes)) return signs[i].plain;
  }
  return '?';
}

/* In its place: no character has more columns than bytes. */
static void make_ascii(char *text) {
  char *to = text;
  for (const char *at = text; *at;) {
    const char *next = at;
    int width = step(&next);
    bool ascii = next == at + 1 && (unsigned char)*at < 128;
    char plain = ascii ? *at : plain_of(at, (size_t)(next - at));
    for (int i = 0; i < (ascii ? 1 : width); i++) *to++ = plain;
    at = next;
  }
  *to = 0;
}

/* As wide as the terminal, if that is narrower than the table would be, but no narrower than it can be. */
static int columns_of_table(void) {
  enum { LEAST_LINE = 24 };
  int columns = hi_terminal_columns();
  if (columns == 0 || columns >= LINE) return 0;
  return columns > LEAST_LINE ? columns : LEAST_LINE;
}

helio_status helio_model_summary(helio_model *model) {
  helio_status status = hi_enter(__func__);
  if (status) return status;
  char *text = hi_model_summary_text(model, columns_of_table(), NULL);
  if (!text) return helio_error_pending();
  if (hi_terminal_columns() > 0 && !hi_terminal_is_utf8()) make_ascii(text);
  bool written = fputs(text, stdout) >= 0 && fflush(stdout) == 0;
  free(text);
  return written ? HELIO_OK : hi_fail(HELIO_IO_FAILURE, "cannot write to standard output: %s", strerror(errno));
}
