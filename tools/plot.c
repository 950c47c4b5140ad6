/* SPDX-License-Identifier: Apache-2.0 */
#include "plot.h"

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axis.h"
#include "whole_file.h"
#include "xml_text.h"

/* Lengths, in pixels. */
enum {
  MARGIN = 24,
  HEAD = 40,       /* of the picture: its title and the legend */
  PANEL_HEAD = 48, /* its title, and below that what is worth knowing */
  PANEL_FOOT = 40, /* epochs */
  PLOT_HEIGHT = 220,
  PLOT_WIDTH = 360,
  LONE_PLOT_WIDTH = 600,
  GAP = 24,            /* between panels */
  TICK_GAP = 8,        /* between numbers and what they stand beside */
  LAST_GAP = 11,       /* likewise, and the ring around the best */
  DIGIT = 7,           /* of the size of numbers */
  LETTER = 8,          /* of the size of panels' titles */
  TITLE_LETTER = 10,   /* of the size of the picture's title */
  LINE = 15,           /* the least distance of numbers that stand below each other */
  SAMPLE = 26,         /* of a curve, in the legend */
  LEGEND_ENTRY = 110,  /* with its name */
  MOST_DOTS = 30,      /* if there are more epochs, they have no dots of their own */
  MOST_STRETCHES = 400 /* of a curve: more than the eye tells apart */
};

/* One curve is all that was measured under one name. */
typedef struct curve {
  const helio_history *history;
  const char *name;  /* NULL: it was not measured */
  const char *kind;  /* for people, and for the style sheet */
  bool gaps;         /* what is no number interrupts it; else it was not measured in that epoch */
  int drawn, absent; /* how many of its values can be drawn, and how many of those that were measured cannot */
  int last, best;    /* of those that are drawn; −1: none */
} curve;

typedef struct panel {
  const char *name;
  curve training, validation;
  axis values;
  double left, top; /* of what the axes enclose */
} panel;

typedef struct plot {
  const char *title;
  const helio_history *history;
  axis epochs;
  panel *panels;
  int count, columns;
  bool validated;
  int plot_width;
  int left, right; /* of a panel, beside what the axes enclose: room for numbers */
  FILE *out;
} plot;

/* ---------------------------------------------------------------------------------------------------------------------
 * What there is to draw
 */

static const char LEARNING_RATE[] = "learning_rate", VALIDATION[] = "val_";

static double value_of(const curve *self, int index) {
  return helio_history_value(self->history, self->name, index);
}

static bool has_one_of(const char *name, const char *const *words) {
  for (int i = 0; words[i]; i++) {
    if (strstr(name, words[i])) return true;
  }
  return false;
}

/* 1: the larger, the better; −1: the smaller; 0: nobody can tell. The history has only names. */
static int direction_of(const char *name) {
  static const char *const smaller[] = {"loss", "error", "entropy", "divergence", "mse", "mae", "bce", NULL};
  static const char *const larger[] = {"accuracy", "acc", "precision", "recall", "auc", "f1", NULL};
  return has_one_of(name, smaller) ? -1 : has_one_of(name, larger) ? 1 : 0;
}

static void measure(curve *self, int direction) {
  self->last = self->best = -1;
  for (int i = 0; self->name && i < helio_history_epochs(self->history); i++) {
    double value = value_of(self, i);
    if (!axis_takes(value)) {
      self->absent += self->gaps || !isnan(value);
      continue;
    }
    self->drawn++;
    self->last = i;
    if (!direction) continue;
    if (self->best < 0 || direction * value > direction * value_of(self, self->best)) self->best = i;
  }
}

static void stretch(const curve *self, double *least, double *most) {
  for (int i = 0; self->name && i < helio_history_epochs(self->history); i++) {
    double value = value_of(self, i);
    if (!axis_takes(value)) continue;
    *least = fmin(*least, value);
    *most = fmax(*most, value);
  }
}

static const char *find_name(const helio_history *history, const char *prefix, const char *name) {
  size_t length = strlen(prefix);
  for (int i = 0; i < helio_history_count(history); i++) {
    const char *other = helio_history_name(history, i);
    if (strncmp(other, prefix, length) == 0 && strcmp(other + length, name) == 0) return other;
  }
  return NULL;
}

static void fill_panel(panel *self, const helio_history *history, const char *name) {
  bool rate = strcmp(name, LEARNING_RATE) == 0;
  int direction = rate ? 0 : direction_of(name);
  double least = INFINITY, most = -INFINITY;
  self->name = name;
  self->training = (curve){history, find_name(history, "", name), "training", .gaps = true};
  self->validation = (curve){history, find_name(history, VALIDATION, name), "validation", .gaps = false};
  measure(&self->training, direction);
  measure(&self->validation, direction);
  stretch(&self->training, &least, &most);
  stretch(&self->validation, &least, &most);
  if (least > most) least = 0, most = 1; /* there is nothing to draw */
  self->values = axis_of_values(least, most, rate || direction < 0);
}

/* A learning rate that stays as it is needs no picture. */
static bool is_constant(const helio_history *history, const char *name) {
  double least = INFINITY, most = -INFINITY;
  curve all = {.history = history, .name = name};
  stretch(&all, &least, &most);
  return least >= most;
}

static void add_panel(plot *self, const char *name) {
  bool validation = strncmp(name, VALIDATION, strlen(VALIDATION)) == 0;
  if (validation) {
    self->validated = true;
    name += strlen(VALIDATION);
    if (find_name(self->history, "", name)) return; /* it has its place beside that */
  }
  fill_panel(&self->panels[self->count++], self->history, name);
}

/* In the order of progress; the learning rate, if it has a panel, last. */
static void add_panels(plot *self) {
  for (int i = 0; i < helio_history_count(self->history); i++) {
    const char *name = helio_history_name(self->history, i);
    if (strcmp(name, LEARNING_RATE) != 0) add_panel(self, name);
  }
  if (!is_constant(self->history, LEARNING_RATE)) add_panel(self, LEARNING_RATE);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Where it lies
 */

static int text_width(const char *text) {
  return (int)strlen(text) * DIGIT;
}

/* Numbers beside the axes of all panels get the room that the longest needs, so that panels stand in line. */
static void make_room(plot *self) {
  char text[AXIS_TEXT];
  for (int i = 0; i < self->count; i++) {
    const panel *p = &self->panels[i];
    for (int tick = 0; tick < p->values.tick_count; tick++) {
      axis_tick_text(&p->values, tick, text);
      if (text_width(text) + TICK_GAP > self->left) self->left = text_width(text) + TICK_GAP;
    }
    const curve *curves[] = {&p->training, &p->validation};
    for (int c = 0; c < 2; c++) {
      if (curves[c]->last < 0) continue;
      axis_value_text(value_of(curves[c], curves[c]->last), text);
      if (text_width(text) + LAST_GAP > self->right) self->right = text_width(text) + LAST_GAP;
    }
  }
}

static int panel_width(const plot *self) {
  return self->left + self->plot_width + self->right;
}

static int panel_height(void) {
  return PANEL_HEAD + PLOT_HEIGHT + PANEL_FOOT;
}

static int whole_width(const plot *self) {
  return 2 * MARGIN + self->columns * panel_width(self) + (self->columns - 1) * GAP;
}

static int whole_height(const plot *self) {
  int rows = (self->count + self->columns - 1) / self->columns;
  return 2 * MARGIN + HEAD + rows * panel_height() + (rows - 1) * GAP / 2;
}

static void lay_out(plot *self) {
  int epochs = helio_history_epochs(self->history);
  self->epochs =
      axis_of_epochs(helio_history_epoch(self->history, 0) + 1.0, helio_history_epoch(self->history, epochs - 1) + 1.0);
  self->columns = self->count <= 3 ? self->count : self->count == 4 ? 2 : 3;
  self->plot_width = self->columns == 1 ? LONE_PLOT_WIDTH : PLOT_WIDTH;
  make_room(self);
  for (int i = 0; i < self->count; i++) {
    int column = i % self->columns, row = i / self->columns;
    self->panels[i].left = MARGIN + column * (panel_width(self) + GAP) + self->left;
    self->panels[i].top = MARGIN + HEAD + row * (panel_height() + GAP / 2) + PANEL_HEAD;
  }
}

static double epoch_of(const plot *self, int index) {
  return helio_history_epoch(self->history, index) + 1.0;
}

static double x_of(const plot *self, const panel *p, double epoch) {
  return p->left + self->plot_width * axis_place(&self->epochs, epoch);
}

static double y_at(const panel *p, double place) {
  return p->top + PLOT_HEIGHT * (1 - place);
}

static double y_of(const panel *p, double value) {
  return y_at(p, axis_place(&p->values, value));
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Axes
 */

/* Ticks of a logarithmic axis are powers, of which it has the place already. */
static double y_of_tick(const panel *p, int tick) {
  const axis *values = &p->values;
  return y_at(p, (values->ticks[tick] - values->first) / (values->last - values->first));
}

static void draw_values_axis(const plot *self, const panel *p) {
  char text[AXIS_TEXT];
  fputs("<path class=\"grid\" d=\"", self->out);
  for (int i = 0; i < p->values.tick_count; i++) {
    fprintf(self->out, "M%.1f,%.1fh%d", p->left, y_of_tick(p, i), self->plot_width);
  }
  fputs("\"/>\n<g class=\"values\">", self->out);
  for (int i = 0; i < p->values.tick_count; i++) {
    axis_tick_text(&p->values, i, text);
    fprintf(self->out, "<text x=\"%.1f\" y=\"%.1f\">%s</text>", p->left - TICK_GAP, y_of_tick(p, i) + 4, text);
  }
  fputs("</g>\n", self->out);
}

static void draw_epochs_axis(const plot *self, const panel *p) {
  double bottom = p->top + PLOT_HEIGHT;
  fprintf(self->out, "<path class=\"axis\" d=\"M%.1f,%.1fh%d", p->left, bottom, self->plot_width);
  for (int i = 0; i < self->epochs.tick_count; i++) {
    fprintf(self->out, "M%.1f,%.1fv4", x_of(self, p, self->epochs.ticks[i]), bottom);
  }
  fputs("\"/>\n<g class=\"epochs\">", self->out);
  for (int i = 0; i < self->epochs.tick_count; i++) {
    fprintf(self->out, "<text x=\"%.1f\" y=\"%.1f\">%.0f</text>", x_of(self, p, self->epochs.ticks[i]), bottom + 18,
            self->epochs.ticks[i]);
  }
  fprintf(self->out, "<text x=\"%.1f\" y=\"%.1f\">epoch</text></g>\n", p->left + self->plot_width / 2.0, bottom + 36);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Curves
 */

static void draw_point(const plot *self, const panel *p, const curve *c, int index, bool *pen_down) {
  fprintf(self->out, "%s%.1f,%.1f%s", *pen_down ? "L" : "M", x_of(self, p, epoch_of(self, index)),
          y_of(p, value_of(c, index)), *pen_down ? "" : "h0"); /* a point alone is a dot, by its round ends */
  *pen_down = true;
}

/* Of the epochs from `first` on, those that the curve goes through: the least and the greatest, in their order. */
static void draw_stretch(const plot *self, const panel *p, const curve *c, int first, int end, bool *pen_down) {
  int least = -1, most = -1;
  for (int i = first; i < end; i++) {
    double value = value_of(c, i);
    if (!axis_takes(value)) continue;
    if (least < 0 || value < value_of(c, least)) least = i;
    if (most < 0 || value > value_of(c, most)) most = i;
  }
  if (least < 0) {
    *pen_down = *pen_down && !c->gaps;
    return;
  }
  draw_point(self, p, c, least < most ? least : most, pen_down);
  if (least != most) draw_point(self, p, c, least < most ? most : least, pen_down);
}

static void draw_line(const plot *self, const panel *p, const curve *c) {
  int epochs = helio_history_epochs(self->history), stride = (epochs + MOST_STRETCHES - 1) / MOST_STRETCHES;
  bool pen_down = false;
  fprintf(self->out, "<path class=\"%s\" d=\"", c->kind);
  for (int i = 0; i < epochs; i += stride) {
    draw_stretch(self, p, c, i, i + stride < epochs ? i + stride : epochs, &pen_down);
  }
  fputs("\"/>\n", self->out);
}

/* With what a pointer on it tells. */
static void draw_dot(const plot *self, const panel *p, const curve *c, int index, const char *mark) {
  char text[AXIS_TEXT];
  axis_value_text(value_of(c, index), text);
  fprintf(self->out,
          "<circle class=\"%s %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"><title>epoch %.0f: %s</title></circle>\n", c->kind,
          mark, x_of(self, p, epoch_of(self, index)), y_of(p, value_of(c, index)),
          strcmp(mark, "best") == 0 ? "5" : "2.5", epoch_of(self, index), text);
}

static void draw_curve(const plot *self, const panel *p, const curve *c) {
  if (c->drawn == 0) return;
  draw_line(self, p, c);
  for (int i = 0; i < helio_history_epochs(self->history) && c->drawn <= MOST_DOTS; i++) {
    if (axis_takes(value_of(c, i))) draw_dot(self, p, c, i, "dot");
  }
}

/* The curve whose best value counts. */
static const curve *judged(const panel *p) {
  return p->validation.drawn > 0 ? &p->validation : &p->training;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Words
 */

static void draw_last_value(const plot *self, const panel *p, const curve *c, double y) {
  char text[AXIS_TEXT];
  axis_value_text(value_of(c, c->last), text);
  fprintf(self->out, "<text class=\"last %s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", c->kind,
          p->left + self->plot_width + LAST_GAP, y + 4, text);
}

/* Where both would meet they make way for each other, within the panel. */
static void draw_last_values(const plot *self, const panel *p) {
  const curve *t = &p->training, *v = &p->validation;
  double training = t->last < 0 ? 0 : y_of(p, value_of(t, t->last));
  double validation = v->last < 0 ? 0 : y_of(p, value_of(v, v->last));
  if (t->last >= 0 && v->last >= 0 && fabs(training - validation) < LINE) {
    double middle = fmin(fmax((training + validation) / 2, p->top + LINE / 2.0), p->top + PLOT_HEIGHT - LINE / 2.0);
    double half = training < validation ? LINE / 2.0 : -LINE / 2.0;
    training = middle - half;
    validation = middle + half;
  }
  if (t->last >= 0) draw_last_value(self, p, t, training);
  if (v->last >= 0) draw_last_value(self, p, v, validation);
}

static void draw_panel_title(const plot *self, const panel *p) {
  const char *remark = p->values.logarithmic ? "logarithmic" : "";
  int most = (self->plot_width + self->right) / LETTER - (int)strlen(remark) - 1;
  fprintf(self->out, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">", p->left, p->top - PANEL_HEAD + 16);
  xml_text_put(self->out, p->name, most);
  fprintf(self->out, "<tspan class=\"note\" dx=\"%d\">%s</tspan></text>\n", TICK_GAP, remark);
}

/* "best validation 0.8931 in epoch 9; training not finite in 2 epochs" */
static void draw_panel_note(const plot *self, const panel *p) {
  const curve *c = judged(p);
  char text[AXIS_TEXT];
  fprintf(self->out, "<text class=\"note\" x=\"%.1f\" y=\"%.1f\">", p->left, p->top - PANEL_HEAD + 34);
  if (c->best >= 0) {
    axis_value_text(value_of(c, c->best), text);
    fprintf(self->out, "best %s %s in epoch %.0f", c->kind, text, epoch_of(self, c->best));
  }
  int absent = p->training.absent + p->validation.absent;
  if (absent > 0)
    fprintf(self->out, "%snot finite: %d value%s", c->best >= 0 ? "; " : "", absent, absent > 1 ? "s" : "");
  fputs("</text>\n", self->out);
}

static void draw_panel(const plot *self, const panel *p) {
  fputs("<g><title>", self->out);
  xml_text_put(self->out, p->name, INT_MAX);
  fputs("</title>\n", self->out);
  draw_panel_title(self, p);
  draw_panel_note(self, p);
  if (p->training.drawn + p->validation.drawn > 0) {
    draw_values_axis(self, p);
  } else {
    fprintf(self->out, "<text class=\"note middle\" x=\"%.1f\" y=\"%.1f\">nothing finite to draw</text>\n",
            p->left + self->plot_width / 2.0, p->top + PLOT_HEIGHT / 2.0);
  }
  draw_epochs_axis(self, p);
  draw_curve(self, p, &p->training);
  draw_curve(self, p, &p->validation);
  if (judged(p)->best >= 0) draw_dot(self, p, judged(p), judged(p)->best, "best");
  draw_last_values(self, p);
  fputs("</g>\n", self->out);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The whole
 */

static void draw_legend_entry(const plot *self, int x, const char *kind) {
  fprintf(self->out, "<path class=\"%s\" d=\"M%d,%dh%d\"/><text x=\"%d\" y=\"%d\">%s</text>\n", kind, x, MARGIN + 12,
          SAMPLE, x + SAMPLE + TICK_GAP, MARGIN + 16, kind);
}

static void draw_head(const plot *self) {
  int entries = self->validated ? 2 : 1, right = whole_width(self) - MARGIN;
  int most = (right - entries * LEGEND_ENTRY - MARGIN) / TITLE_LETTER;
  fprintf(self->out, "<text class=\"title\" x=\"%d\" y=\"%d\">", MARGIN, MARGIN + 18);
  xml_text_put(self->out, self->title, most);
  fputs("</text>\n", self->out);
  draw_legend_entry(self, right - entries * LEGEND_ENTRY, "training");
  if (self->validated) draw_legend_entry(self, right - LEGEND_ENTRY, "validation");
}

/* On a dark page, and by itself where the reader prefers dark ones, it is dark. */
static void draw_styles(const plot *self) {
  fputs("<style>\n"
        "svg{font:12px system-ui,sans-serif;fill:#1f2328}\n"
        ".page{fill:#fff;stroke:#d0d7de}\n"
        ".title{font-size:18px;font-weight:600}.name{font-size:14px;font-weight:600}\n"
        ".note,.values,.epochs{fill:#59636e;font-weight:400;font-size:12px}\n"
        ".values{text-anchor:end}.epochs,.middle{text-anchor:middle}\n"
        ".grid{stroke:#e6e9ed}.axis{stroke:#8c959f}\n"
        "path.training,path.validation{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\n"
        "path.validation{stroke-dasharray:5 4}\n"
        ".training{stroke:#1668dc;fill:#1668dc}.validation{stroke:#d4570a;fill:#d4570a}\n"
        ".dot,.last{stroke:none}.last{font-weight:600}.best{fill:none;stroke-width:1.5}\n"
        "@media(prefers-color-scheme:dark){\n"
        "svg{fill:#e6edf3}.page{fill:#161b22;stroke:#30363d}.note,.values,.epochs{fill:#9198a1}\n"
        ".grid{stroke:#2a313a}.axis{stroke:#656c76}\n"
        ".training{stroke:#58a6ff;fill:#58a6ff}.validation{stroke:#ff9e57;fill:#ff9e57}\n"
        ".dot,.last{stroke:none}.best{fill:none}path.training,path.validation{fill:none}\n"
        "}\n</style>\n",
        self->out);
}

static void draw(const plot *self) {
  int width = whole_width(self), height = whole_height(self);
  fprintf(self->out,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
          "role=\"img\">\n<title>",
          width, height, width, height);
  xml_text_put(self->out, self->title, INT_MAX);
  fputs("</title>\n", self->out);
  draw_styles(self);
  fprintf(self->out, "<rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n", width - 1,
          height - 1);
  draw_head(self);
  for (int i = 0; i < self->count; i++) draw_panel(self, &self->panels[i]);
  fputs("</svg>\n", self->out);
}

/* The picture as a text of malloc(), with a point in its numbers wherever the program runs; NULL: no memory. */
static char *draw_text(plot *self, size_t *bytes) {
  char *text = NULL;
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  self->out = plain ? open_memstream(&text, bytes) : NULL;
  bool good = false;
  if (self->out) {
    locale_t users = uselocale(plain);
    lay_out(self);
    draw(self);
    uselocale(users);
    good = !ferror(self->out);
    good = fclose(self->out) == 0 && good;
  }
  if (plain) freelocale(plain);
  if (good) return text;
  free(text);
  return NULL;
}

const char *plot_write(const char *path, const char *title, const helio_history *history) {
  static const char no_memory[] = "no memory for drawing the picture";
  plot self = {.title = title ? title : "", .history = history};
  size_t bytes = 0;
  if (helio_history_epochs(history) == 0) return "there is nothing to draw: no epoch was trained";
  self.panels = calloc((size_t)helio_history_count(history) + 1, sizeof *self.panels);
  if (!self.panels) return no_memory;
  add_panels(&self);
  char *text = self.count > 0 ? draw_text(&self, &bytes) : NULL;
  const char *problem = self.count == 0 ? "there is nothing to draw: nothing was measured"
                        : !text         ? no_memory
                                        : whole_file_write(path, text, bytes);
  free(text);
  free(self.panels);
  return problem;
}
