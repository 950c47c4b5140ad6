/* SPDX-License-Identifier: Apache-2.0 */
#include "train/bar.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"

enum { CELLS = 20, INDENT = 7 };           /* of Keras' bar; of lines behind a finished one */
enum { BOLD = 1, GREEN = 32, WHITE = 37 }; /* as terminals number them */

/* ---- text that grows ---- */

typedef struct text {
  char *bytes;
  size_t count, room;
  bool failed; /* something could not be put: there was no memory */
  locale_t plain, users;
} text;

/* Until text_end() numbers have points, whatever the user's locale has. */
static text text_begin(void) {
  text made = {.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
  made.failed = !made.plain;
  if (made.plain) made.users = uselocale(made.plain);
  return made;
}

static void make_room(text *out, size_t more) {
  if (out->failed || more <= out->room - out->count) return;
  size_t room = 2 * (out->count + more);
  char *bytes = realloc(out->bytes, room);
  out->failed = !bytes;
  if (!bytes) return;
  out->bytes = bytes;
  out->room = room;
}

HELIO_PRINTF(2, 3) static void put(text *out, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  out->failed = out->failed || length < 0;
  make_room(out, (size_t)length + 1);
  if (!out->failed) out->count += (size_t)vsnprintf(out->bytes + out->count, (size_t)length + 1, format, again);
  va_end(again);
  va_end(arguments);
}

static void repeat(text *out, const char *what, int times) {
  for (int i = 0; i < times; i++) put(out, "%s", what);
}

static char *text_end(text *made) {
  put(made, "%s", ""); /* an empty text is one too */
  if (made->plain) {
    uselocale(made->users);
    freelocale(made->plain);
  }
  if (!made->failed) return made->bytes;
  free(made->bytes);
  hi_fail(HELIO_OUT_OF_MEMORY, "no memory for showing the progress of a training");
  return NULL;
}

/* ---- names ---- */

/* The first character of UTF-8 and its length in bytes; 0: there is none. */
static int decode(const char *name, uint32_t *code) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* that needs so many bytes */
  unsigned char first = (unsigned char)name[0];
  int bytes = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf8 ? 4 : 0;
  *code = bytes > 1 ? first & (0x7fu >> bytes) : first;
  for (int i = 1; i < bytes; i++) {
    if (((unsigned char)name[i] & 0xc0) != 0x80) return 0;
    *code = *code << 6 | ((unsigned char)name[i] & 0x3fu);
  }
  bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
  return *code < least[bytes] || *code > 0x10ffff || surrogate ? 0 : bytes;
}

/* Characters that command a terminal or, like the last two ranges, end a line or turn its direction. */
static bool is_control(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

/* Puts a name, with '?' for what cannot be shown, and returns how many columns it takes at most: from U+1100 on, where
 * the first wide characters are, two are counted for each. `out` may be NULL. */
static int64_t put_name(text *out, const char *name, bool utf8) {
  int64_t columns = 0;
  while (*name) {
    uint32_t code;
    int bytes = decode(name, &code);
    bool shown = bytes > 0 && !is_control(code) && (utf8 || code < 0x80);
    if (out) put(out, "%.*s", shown ? bytes : 1, shown ? name : "?");
    columns += shown && code >= 0x1100 ? 2 : 1;
    name += bytes > 0 ? bytes : 1;
  }
  return columns;
}

/* ---- numbers ---- */

enum { NUMBER = 400 }; /* bytes: the largest double has 309 digits before its point */

/* Without a terminal Keras forgets that numbers can be negative, and so has exponents for all that are. */
static void print_value(char number[NUMBER], double value, bool on_terminal) {
  double size = on_terminal ? fabs(value) : value;
  if (isnan(value)) {
    snprintf(number, NUMBER, "nan"); /* printf() would show its sign */
  } else {
    snprintf(number, NUMBER, size > 1e-3 ? "%.4f" : "%.4e", value);
  }
}

/* A clock that was turned back, or is out of order, has not moved. */
static double time_of(double seconds) {
  return isfinite(seconds) && seconds > 0 ? seconds : 0;
}

static double time_per_step(const hi_bar_state *state) {
  double seconds = time_of(state->seconds), first = state->columns > 0 ? time_of(state->first_step) : 0;
  int64_t steps = state->step - state->resumed;
  if (steps <= 0) return 0;
  if (first == 0 || steps == 1) return seconds / (double)steps;
  return time_of((seconds - first) / (double)(steps - 1));
}

static void print_pace(char pace[NUMBER], double seconds) {
  if (seconds >= 1 || seconds == 0) {
    snprintf(pace, NUMBER, "%.0fs/step", seconds);
  } else if (seconds >= 1e-3) {
    snprintf(pace, NUMBER, "%.0fms/step", seconds * 1e3);
  } else {
    snprintf(pace, NUMBER, "%.0fus/step", seconds * 1e6);
  }
}

static void print_duration(char duration[NUMBER], double seconds) {
  int64_t whole = seconds < 1e18 ? (int64_t)seconds : INT64_C(1000000000000000000);
  int minutes = (int)(whole / 60 % 60), rest = (int)(whole % 60);
  if (seconds > 3600) {
    snprintf(duration, NUMBER, "%" PRId64 ":%02d:%02d", whole / 3600, minutes, rest);
  } else if (seconds > 60) {
    snprintf(duration, NUMBER, "%" PRId64 ":%02d", whole / 60, rest);
  } else {
    snprintf(duration, NUMBER, "%" PRId64 "s", whole);
  }
}

/* ---- lines ---- */

/* A line without its values, as it is without colours. */
typedef struct parts {
  int64_t step, target; /* target 0: not known */
  char count[64], time[NUMBER], pace[NUMBER];
} parts;

static parts parts_of(const hi_bar_state *state) {
  parts made = {.step = state->step > 0 ? state->step : 0};
  made.target = state->target >= 0 ? state->target : state->finished ? made.step : 0;
  double per_step = time_per_step(state);
  print_pace(made.pace, per_step);
  if (made.target > 0) {
    int digits = snprintf(NULL, 0, "%" PRId64, made.target);
    snprintf(made.count, sizeof made.count, "%*" PRId64 "/%" PRId64, digits, made.step, made.target);
  } else {
    snprintf(made.count, sizeof made.count, "%7" PRId64 "/Unknown", made.step);
  }
  if (made.target > 0 && !state->finished) {
    print_duration(made.time, time_of(per_step * (double)(made.target - made.step)));
  } else {
    snprintf(made.time, NUMBER, "%.0fs", time_of(state->seconds));
  }
  return made;
}

/* What of a line fits: a part does only if all that are more important do. */
typedef struct fit {
  bool count, time, pace; /* the most important first, then the bar, then values in their order */
  int cells, values;
} fit;

static bool take(int64_t *room, int64_t columns) {
  if (columns > *room) return false;
  *room -= columns;
  return true;
}

static int64_t value_columns(const hi_bar_state *state, int index) {
  char number[NUMBER];
  print_value(number, state->values[index], true);
  return (int64_t)strlen(" - : ") + put_name(NULL, state->names[index], state->utf8) + (int64_t)strlen(number);
}

static fit fit_parts(const hi_bar_state *state, const parts *shown) {
  fit fits = {0};
  int64_t room = state->columns - 1; /* in the last column a cursor is about to wrap */
  fits.count = take(&room, (int64_t)strlen(shown->count));
  fits.time = fits.count && take(&room, 1 + (int64_t)strlen(shown->time));
  fits.pace = fits.time && take(&room, 1 + (int64_t)strlen(shown->pace));
  if (!fits.pace) return fits;
  int around = state->utf8 ? 1 : 3; /* the space before the bar, and brackets */
  int most = shown->target > 0 ? CELLS : 0;
  fits.cells = most;
  while (fits.cells > 0 && !take(&room, around + fits.cells)) fits.cells--;
  if (fits.cells < most) return fits;
  while (fits.values < state->value_count && take(&room, value_columns(state, fits.values))) fits.values++;
  return fits;
}

static void put_styled(text *out, bool color, int style, const char *what, int times) {
  if (color) put(out, "\x1b[%dm", style);
  repeat(out, what, times);
  if (color) put(out, "\x1b[0m");
}

/* Keras' bar; or that of Keras 2, where the locale has no such characters. More steps than were expected make a full
 * bar, where Keras' grows. */
static void put_bar(text *out, const hi_bar_state *state, const parts *shown, int cells) {
  double progress = (double)shown->step / (double)shown->target;
  int done = progress < 1 ? (int)(cells * progress) : cells;
  if (state->utf8) {
    if (done > 0) put_styled(out, state->color, GREEN, "━", done);
    put_styled(out, state->color, WHITE, state->color ? "━" : "─", cells - done);
    return;
  }
  put(out, "[");
  repeat(out, "=", done - 1);
  if (done > 0) put(out, shown->step < shown->target ? ">" : "=");
  repeat(out, ".", cells - done);
  put(out, "]");
}

static void put_value(text *out, const hi_bar_state *state, int index) {
  char number[NUMBER];
  put(out, " - ");
  put_name(out, state->names[index], state->utf8);
  print_value(number, state->values[index], state->columns > 0);
  put(out, ": %s", number);
}

static void put_values(text *out, const hi_bar_state *state, int count) {
  for (int i = 0; i < count; i++) put_value(out, state, i);
}

/* What did not fit stands on lines of its own when nothing is drawn over them any more: nothing is left out for good.
 */
static void put_rest(text *out, const hi_bar_state *state, int first) {
  int64_t room = 0;
  for (int i = first; i < state->value_count; i++) {
    if (i == first || !take(&room, value_columns(state, i))) {
      put(out, "\n%*s", INDENT, "");
      room = state->columns - 1 - INDENT - value_columns(state, i);
    }
    put_value(out, state, i);
  }
}

static void put_terminal_line(text *out, const hi_bar_state *state, const parts *shown) {
  fit fits = fit_parts(state, shown);
  put(out, "\r");
  if (fits.count) put_styled(out, state->color && shown->target > 0, BOLD, shown->count, 1);
  if (fits.cells > 0) {
    put(out, " ");
    put_bar(out, state, shown, fits.cells);
  }
  if (fits.time) {
    put(out, " ");
    put_styled(out, state->color, BOLD, shown->time, 1);
  }
  if (fits.pace) put(out, " %s", shown->pace);
  put_values(out, state, fits.values);
  put(out, "\x1b[K"); /* erases what is left of the line before */
  if (!state->finished) return;
  put_rest(out, state, fits.values);
  put(out, "\n");
}

char *hi_bar_line(const hi_bar_state *state) {
  text made = text_begin();
  parts shown = parts_of(state);
  if (state->columns > 0) {
    put_terminal_line(&made, state, &shown);
  } else if (state->finished && shown.target > 0) {
    put(&made, "%s - %s - %s", shown.count, shown.time, shown.pace);
    put_values(&made, state, state->value_count);
    put(&made, "\n");
  }
  return text_end(&made);
}

char *hi_bar_epoch(int64_t epoch, int64_t epochs) {
  text made = text_begin();
  if (epochs > 1) put(&made, "Epoch %" PRId64 "/%" PRId64 "\n", epoch + 1, epochs);
  return text_end(&made);
}

/* ---- the summary ---- */

/* With commas between thousands. */
static void put_count(text *out, int64_t number) {
  if (number >= 1000) {
    put_count(out, number / 1000);
    put(out, ",%03d", (int)(number % 1000));
  } else {
    put(out, "%d", (int)number);
  }
}

static void put_seconds(text *out, double seconds) {
  char duration[NUMBER];
  if (seconds < 0.9995) {
    put(out, "%.0f ms", seconds * 1e3);
  } else if (seconds < 60) {
    put(out, "%.1f s", seconds);
  } else {
    print_duration(duration, seconds);
    put(out, "%s", duration);
  }
}

static void put_rate(text *out, double per_second) {
  if (!(per_second > 0 && per_second < 1e18)) return;
  put(out, ", ");
  if (per_second < 9.95) {
    put(out, "%.1f", per_second);
  } else {
    put_count(out, (int64_t)(per_second + 0.5));
  }
  put(out, " samples/s");
}

static void put_replicas(text *out, const hi_bar_totals *totals) {
  double compute = time_of(totals->compute), reduce = time_of(totals->reduce), input = time_of(totals->input);
  double percent = (compute + reduce + input) / 100;
  put(out, "; %d replicas", totals->replicas);
  if (percent > 0) {
    put(out, ": compute %.0f %%, reduce %.0f %%, input %.0f %%", compute / percent, reduce / percent, input / percent);
  }
  if (totals->efficiency > 0) put(out, "%s efficiency %.2f", percent > 0 ? "," : ":", totals->efficiency);
}

char *hi_bar_summary(const hi_bar_totals *totals) {
  text made = text_begin();
  double seconds = time_of(totals->seconds);
  put(&made, "%" PRId64 " epoch%s in ", totals->epochs, totals->epochs == 1 ? "" : "s");
  put_seconds(&made, seconds);
  double training = seconds - time_of(totals->validation);
  put_rate(&made, training > 0 ? (double)totals->samples / training : 0);
  if (totals->replicas > 1) put_replicas(&made, totals);
  put(&made, "\n");
  return text_end(&made);
}
