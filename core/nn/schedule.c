/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/schedule.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/options.h"
#include "runtime/error.h"

/* What differs from one schedule to the next. */
struct hi_schedule_kind {
  const char *function; /* the public one, for messages */
  unsigned knows;       /* a bit for each of `settings` */
  helio_status (*check)(helio_schedule_options *o);
  double (*rate)(const helio_schedule_options *o, double step);
};

/* ---- options ---- */

enum { INITIAL, STEPS, RATE, STAIRCASE, END, POWER, CYCLE, ALPHA, WARMUP_TARGET, WARMUP_STEPS, PIECES, SETTINGS };

static const char *const settings[SETTINGS] = {
    "initial", "steps", "rate",          "staircase",    "end",        "power",
    "cycle",   "alpha", "warmup_target", "warmup_steps", "boundaries",
};

/* 0 stands for the default, −0.0 for zero. */
static bool given(double value) {
  return value != 0 || signbit(value);
}

static unsigned settings_given(const helio_schedule_options *o) {
  bool pieces = o->boundaries || o->values || o->boundary_count;
  bool set[SETTINGS] = {given(o->initial),       o->steps != 0,        given(o->rate), o->staircase,
                        given(o->end),           given(o->power),      o->cycle,       given(o->alpha),
                        given(o->warmup_target), o->warmup_steps != 0, pieces};
  unsigned result = 0;
  for (unsigned i = 0; i < SETTINGS; i++) result |= (unsigned)set[i] << i;
  return result;
}

static bool is_rate(double value) {
  return isfinite(value) && value >= 0;
}

static helio_status check_options(const hi_schedule_kind *kind, helio_schedule_options *o) {
  unsigned unknown = settings_given(o) & ~kind->knows;
  for (int i = 0; i < SETTINGS; i++) {
    if (unknown >> i & 1) return hi_fail(HELIO_INVALID_ARGUMENT, "%s has no %s", kind->function, settings[i]);
  }
  const double numbers[] = {o->initial, o->rate, o->end, o->power, o->alpha, o->warmup_target};
  const int names[] = {INITIAL, RATE, END, POWER, ALPHA, WARMUP_TARGET};
  for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++) {
    if (is_rate(numbers[i])) continue;
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s is %g; it must be a number from 0 on", settings[names[i]], numbers[i]);
  }
  if (kind->knows >> STEPS & 1 && o->steps <= 0) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "steps must be > 0. Received: steps=%" PRId64, o->steps);
  }
  return kind->check ? kind->check(o) : HELIO_OK;
}

/* ---- the schedules ---- */

static helio_status check_exponential(helio_schedule_options *o) {
  return given(o->rate) ? HELIO_OK : hi_fail(HELIO_INVALID_ARGUMENT, "rate, the factor of the decay, is missing");
}

static double exponential(const helio_schedule_options *o, double step) {
  double passed = step / (double)o->steps;
  return o->initial * pow(o->rate, o->staircase ? floor(passed) : passed);
}

static helio_status check_polynomial(helio_schedule_options *o) {
  if (!given(o->end)) o->end = 0.0001;
  if (!given(o->power)) o->power = 1;
  return HELIO_OK;
}

static double polynomial(const helio_schedule_options *o, double step) {
  double steps = (double)o->steps;
  if (!o->cycle) {
    step = fmin(step, steps);
  } else if (step > 0) {
    steps *= ceil(step / steps);
  }
  return (o->initial - o->end) * pow(1 - step / steps, o->power) + o->end;
}

static helio_status check_cosine(helio_schedule_options *o) {
  if (o->warmup_steps < 0) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "warmup_steps must be >= 0. Received: warmup_steps=%" PRId64,
                   o->warmup_steps);
  }
  if (given(o->warmup_target) || o->warmup_steps == 0) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "warmup_steps need a warmup_target");
}

static double cosine(const helio_schedule_options *o, double step) {
  bool warms_up = given(o->warmup_target);
  double warmup = (double)o->warmup_steps, steps = (double)o->steps;
  if (step < warmup) return (o->warmup_target - o->initial) * (step / warmup) + o->initial;
  double passed = fmin(step - warmup, steps) / steps;
  double decayed = 0.5 * (1 + cos(3.14159265358979323846 * passed));
  return (warms_up ? o->warmup_target : o->initial) * ((1 - o->alpha) * decayed + o->alpha);
}

static helio_status check_piecewise(helio_schedule_options *o) {
  if (o->boundary_count < 1 || !o->boundaries || !o->values) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "boundaries, values or boundary_count is missing");
  }
  for (int i = 0; i <= o->boundary_count; i++) {
    if (!is_rate(o->values[i])) {
      return hi_fail(HELIO_INVALID_ARGUMENT, "values[%d] is %g; a learning rate is a number from 0 on", i,
                     o->values[i]);
    }
    if (i == 0 || i == o->boundary_count || o->boundaries[i - 1] < o->boundaries[i]) continue;
    return hi_fail(HELIO_INVALID_ARGUMENT, "boundaries[%d] is not larger than the one before it", i);
  }
  return HELIO_OK;
}

static double piecewise(const helio_schedule_options *o, double step) {
  int piece = 0;
  while (piece < o->boundary_count && step > (double)o->boundaries[piece]) piece++;
  return o->values[piece];
}

#define BIT(setting) (1u << (setting))

static const hi_schedule_kind exponential_kind = {
    "helio_exponential_decay", BIT(INITIAL) | BIT(STEPS) | BIT(RATE) | BIT(STAIRCASE), check_exponential, exponential};
static const hi_schedule_kind polynomial_kind = {"helio_polynomial_decay",
                                                 BIT(INITIAL) | BIT(STEPS) | BIT(END) | BIT(POWER) | BIT(CYCLE),
                                                 check_polynomial, polynomial};
static const hi_schedule_kind cosine_kind = {
    "helio_cosine_decay", BIT(INITIAL) | BIT(STEPS) | BIT(ALPHA) | BIT(WARMUP_TARGET) | BIT(WARMUP_STEPS), check_cosine,
    cosine};
static const hi_schedule_kind piecewise_kind = {"helio_piecewise_constant_decay", BIT(PIECES), check_piecewise,
                                                piecewise};

/* ---- life ---- */

static void end(void *object) {
  helio_schedule *schedule = object;
  free((void *)(uintptr_t)schedule->options.boundaries);
  free((void *)(uintptr_t)schedule->options.values);
  free(schedule);
}

static void *copy_of(const void *data, size_t bytes) {
  void *copy = malloc(bytes);
  return copy ? memcpy(copy, data, bytes) : NULL;
}

static helio_status copy_pieces(helio_schedule_options *o) {
  size_t count = (size_t)o->boundary_count;
  if (!count) return HELIO_OK;
  o->boundaries = copy_of(o->boundaries, count * sizeof *o->boundaries);
  o->values = copy_of(o->values, (count + 1) * sizeof *o->values);
  return o->boundaries && o->values ? HELIO_OK : hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %zu boundaries", count);
}

static helio_schedule *make(const hi_schedule_kind *kind, const helio_schedule_options *from) {
  helio_schedule_options o;
  if (!hi_options_enter(kind->function, &o, sizeof o, from) || check_options(kind, &o)) return NULL;
  helio_schedule *schedule = hi_object_new(sizeof *schedule, end, "a schedule");
  if (!schedule) return NULL;
  schedule->kind = kind;
  helio_status status = copy_pieces(&o);
  schedule->options = o;
  return status ? NULL : schedule;
}

helio_schedule *helio_exponential_decay_with(const helio_schedule_options *options) {
  return make(&exponential_kind, options);
}

helio_schedule *helio_piecewise_constant_decay_with(const helio_schedule_options *options) {
  return make(&piecewise_kind, options);
}

helio_schedule *helio_cosine_decay_with(const helio_schedule_options *options) {
  return make(&cosine_kind, options);
}

helio_schedule *helio_polynomial_decay_with(const helio_schedule_options *options) {
  return make(&polynomial_kind, options);
}

/* ---- rates ---- */

double hi_schedule_rate(const helio_schedule *schedule, int64_t step) {
  return schedule->kind->rate(&schedule->options, (double)step);
}

double helio_schedule_rate(const helio_schedule *schedule, int64_t step) {
  if (hi_enter_unstarted(__func__)) return NAN;
  if (schedule && step >= 0) return hi_schedule_rate(schedule, step);
  if (schedule) {
    hi_fail(HELIO_INVALID_ARGUMENT, "steps count from 0; this is %" PRId64, step);
  } else {
    hi_fail(HELIO_INVALID_ARGUMENT, "the schedule is NULL");
  }
  return NAN;
}
