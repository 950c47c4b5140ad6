/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizers: what slots they keep, what their updates are told, and which options they take. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "nn/optimizer.h"
#include "ops/options.h"
#include "runtime/error.h"
#include "runtime/nearest.h"

/* ---- slots and scalars, in the order of the rows in plugin.h ---- */

static void set_scalars(hi_update_step *step, const double *values, size_t count) {
  for (size_t i = 0; i < count; i++) step->scalars[i].real = values[i];
}
#define SCALARS(step, ...)                                                                                             \
  set_scalars(step, (const double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))

static int sgd_slots(const helio_optimizer_options *o, hi_slot *slots) {
  int count = 0;
  if (o->momentum > 0) slots[count++] = (hi_slot){"momentum", 0, 1};
  return count;
}

static void sgd_scalars(const helio_optimizer_options *o, hi_update_step *step) {
  SCALARS(step, step->rate, step->decay, o->momentum);
}

static int adam_slots(const helio_optimizer_options *o, hi_slot *slots) {
  (void)o;
  slots[0] = (hi_slot){"momentum", 0, 1};
  slots[1] = (hi_slot){"velocity", 0, 2};
  return 2;
}

/* 1 − betaᵗ. Keras takes beta for float32 here, whatever the type of the variable, and elsewhere not: of 0.999 the
 * first steps become smaller by 6.4e-6 of themselves. */
static double correction(double beta, double t) {
  return 1 - pow((float)beta, t);
}

static void adam_scalars(const helio_optimizer_options *o, hi_update_step *step) {
  double t = (double)step->number;
  double corrected = step->rate * sqrt(correction(o->beta2, t)) / correction(o->beta1, t);
  SCALARS(step, corrected, step->decay, o->beta1, o->beta2, o->epsilon);
}

/* Nadam's momentum grows with its steps from about half of beta1 to all of it. */
static double nadam_momentum(const helio_optimizer_options *o, double t) {
  return o->beta1 * (1 - 0.5 * pow(0.96, t));
}

static void nadam_scalars(const helio_optimizer_options *o, hi_update_step *step) {
  double t = (double)step->number, now = nadam_momentum(o, t), next = nadam_momentum(o, t + 1);
  step->momentum_product *= now;
  double on_momentum = next / (1 - step->momentum_product * next);
  double on_gradient = (1 - now) / (1 - step->momentum_product);
  double on_velocity = 1 / (1 - pow(o->beta2, t));
  SCALARS(step, step->rate, step->decay, o->beta1, o->beta2, o->epsilon, on_momentum, on_gradient, on_velocity);
}

static int rmsprop_slots(const helio_optimizer_options *o, hi_slot *slots) {
  int count = 0;
  slots[count++] = (hi_slot){"velocity", 0, 1};
  if (o->momentum > 0) slots[count++] = (hi_slot){"momentum", 0, 2};
  if (o->centered) slots[count++] = (hi_slot){"average_gradient", 0, 3};
  return count;
}

static void rmsprop_scalars(const helio_optimizer_options *o, hi_update_step *step) {
  SCALARS(step, step->rate, step->decay, o->rho, o->momentum, o->epsilon);
}

static int adagrad_slots(const helio_optimizer_options *o, hi_slot *slots) {
  slots[0] = (hi_slot){"accumulator", o->initial_accumulator_value, 1};
  return 1;
}

static void adagrad_scalars(const helio_optimizer_options *o, hi_update_step *step) {
  SCALARS(step, step->rate, step->decay, o->epsilon);
}

/* ---- the kinds ---- */

/* Options that not all have. */
enum { MOMENTUM = 1, NESTEROV = 2, BETAS = 4, RHO = 8, CENTERED = 16, ACCUMULATOR = 32, EPSILON = 64 };

static const hi_optimizer_kind sgd = {
    .class_name = "SGD",
    .name = "sgd",
    .function = "helio_sgd",
    .update = HELIO_OP_SGD_UPDATE,
    .knows = MOMENTUM | NESTEROV,
    .learning_rate = 0.01,
    .slots = sgd_slots,
    .scalars = sgd_scalars,
};

static const hi_optimizer_kind adam = {
    .class_name = "Adam",
    .name = "adam",
    .function = "helio_adam",
    .update = HELIO_OP_ADAM_UPDATE,
    .knows = BETAS | EPSILON,
    .learning_rate = 0.001,
    .by_variable = true,
    .slots = adam_slots,
    .scalars = adam_scalars,
};

static const hi_optimizer_kind adamw = {
    .class_name = "AdamW",
    .name = "adam_w",
    .function = "helio_adamw",
    .update = HELIO_OP_ADAM_UPDATE,
    .knows = BETAS | EPSILON,
    .learning_rate = 0.001,
    .weight_decay = 0.004,
    .by_variable = true,
    .slots = adam_slots,
    .scalars = adam_scalars,
};

static const hi_optimizer_kind nadam = {
    .class_name = "Nadam",
    .name = "nadam",
    .function = "helio_nadam",
    .update = HELIO_OP_NADAM_UPDATE,
    .knows = BETAS | EPSILON,
    .learning_rate = 0.001,
    .by_variable = true,
    .momentum_product = true,
    .slots = adam_slots,
    .scalars = nadam_scalars,
};

static const hi_optimizer_kind rmsprop = {
    .class_name = "RMSprop",
    .name = "rm_sprop",
    .function = "helio_rmsprop",
    .update = HELIO_OP_RMSPROP_UPDATE,
    .knows = RHO | MOMENTUM | CENTERED | EPSILON,
    .learning_rate = 0.001,
    .slots = rmsprop_slots,
    .scalars = rmsprop_scalars,
};

static const hi_optimizer_kind adagrad = {
    .class_name = "Adagrad",
    .name = "adagrad",
    .function = "helio_adagrad",
    .update = HELIO_OP_ADAGRAD_UPDATE,
    .knows = ACCUMULATOR | EPSILON,
    .learning_rate = 0.001,
    .slots = adagrad_slots,
    .scalars = adagrad_scalars,
};

static const hi_optimizer_kind *const kinds[] = {&sgd, &adam, &adamw, &nadam, &rmsprop, &adagrad};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- options ---- */

typedef enum range { FROM_ZERO, TO_ONE, BELOW_ONE } range;

static const char *const range_texts[] = {"from 0 on", "from 0 to 1", "from 0 to below 1"};

typedef struct number {
  const char *name;
  unsigned bit;     /* 0: all have it */
  size_t offset;    /* of a double in the options */
  range wanted;     /* where it must lie */
  double otherwise; /* if it is not given */
} number;

#define NUMBER(name, bit, range, otherwise)                                                                            \
  { #name, bit, offsetof(helio_optimizer_options, name), range, otherwise }

static const number numbers[] = {
    NUMBER(learning_rate, 0, FROM_ZERO, 0),
    NUMBER(momentum, MOMENTUM, TO_ONE, 0),
    NUMBER(beta1, BETAS, BELOW_ONE, 0.9),
    NUMBER(beta2, BETAS, BELOW_ONE, 0.999),
    NUMBER(rho, RHO, TO_ONE, 0.9),
    NUMBER(initial_accumulator_value, ACCUMULATOR, FROM_ZERO, 0.1),
    NUMBER(epsilon, EPSILON, FROM_ZERO, 1e-7),
    NUMBER(weight_decay, 0, FROM_ZERO, 0),
    NUMBER(clip_value, 0, FROM_ZERO, 0),
    NUMBER(clip_norm, 0, FROM_ZERO, 0),
    NUMBER(global_clip_norm, 0, FROM_ZERO, 0),
};

enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

/* 0 stands for the default, −0.0 for zero. */
static bool given(double value) {
  return value != 0 || signbit(value);
}

static bool lies_in(double value, range wanted) {
  if (!isfinite(value) || value < 0) return false;
  return wanted == FROM_ZERO || value < 1 || (wanted == TO_ONE && value == 1);
}

static helio_status has_no(const hi_optimizer_kind *kind, const char *option) {
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s has no %s", kind->class_name, option);
}

/* Checks each number by itself and puts defaults in place. */
static helio_status complete_numbers(const hi_optimizer_kind *kind, helio_optimizer_options *o) {
  for (int i = 0; i < NUMBERS; i++) {
    const number *n = &numbers[i];
    double *value = (double *)(void *)((char *)o + n->offset);
    if (given(*value) && (n->bit & ~kind->knows)) return has_no(kind, n->name);
    if (!lies_in(*value, n->wanted)) {
      return hi_fail(HELIO_INVALID_ARGUMENT, "%s is %g; it must be a number %s", n->name, *value,
                     range_texts[n->wanted]);
    }
    *value = given(*value) ? *value + 0.0 : n->otherwise; /* −0.0 + 0.0 is 0.0 */
  }
  return HELIO_OK;
}

static helio_status check_clipping(const helio_optimizer_options *o) {
  if (given(o->clip_norm) + given(o->clip_value) + given(o->global_clip_norm) <= 1) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT,
                 "Only one of clip_norm, clip_value and global_clip_norm can be set. Received: clip_norm=%g, "
                 "clip_value=%g, global_clip_norm=%g",
                 o->clip_norm, o->clip_value, o->global_clip_norm);
}

static helio_status complete_options(const hi_optimizer_kind *kind, helio_optimizer_options *o) {
  if (o->nesterov && !(kind->knows & NESTEROV)) return has_no(kind, "nesterov");
  if (o->centered && !(kind->knows & CENTERED)) return has_no(kind, "centered");
  if (o->schedule && given(o->learning_rate)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "learning_rate and schedule are both set");
  }
  if (o->accumulate_steps < 0 || o->accumulate_steps == 1) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "accumulate_steps must be >= 2, or 0. Received: accumulate_steps=%d",
                   o->accumulate_steps);
  }
  bool own_rate = given(o->learning_rate), own_decay = given(o->weight_decay);
  helio_status status = check_clipping(o);
  if (!status) status = complete_numbers(kind, o);
  if (!own_rate) o->learning_rate = kind->learning_rate;
  if (!own_decay) o->weight_decay = kind->weight_decay;
  return status;
}

/* ---- making one ---- */

static helio_optimizer *make(const hi_optimizer_kind *kind, const helio_optimizer_options *from) {
  helio_optimizer_options o;
  if (!hi_options_enter(kind->function, &o, sizeof o, from) || complete_options(kind, &o)) return NULL;
  return hi_optimizer_new(kind, &o);
}

helio_optimizer *helio_sgd_with(const helio_optimizer_options *options) {
  return make(&sgd, options);
}

helio_optimizer *helio_adam_with(const helio_optimizer_options *options) {
  return make(&adam, options);
}

helio_optimizer *helio_adamw_with(const helio_optimizer_options *options) {
  return make(&adamw, options);
}

helio_optimizer *helio_nadam_with(const helio_optimizer_options *options) {
  return make(&nadam, options);
}

helio_optimizer *helio_rmsprop_with(const helio_optimizer_options *options) {
  return make(&rmsprop, options);
}

helio_optimizer *helio_adagrad_with(const helio_optimizer_options *options) {
  return make(&adagrad, options);
}

helio_optimizer *helio_optimizer_named(const char *name) {
  const char *names[KINDS];
  if (hi_enter(__func__)) return NULL;
  for (int i = 0; i < KINDS; i++) {
    names[i] = kinds[i]->class_name;
    if (name && !strcasecmp(name, names[i])) return make(kinds[i], &(helio_optimizer_options){.size = sizeof(size_t)});
  }
  const char *near = name ? hi_nearest(name, names, KINDS) : NULL;
  hi_fail(HELIO_INVALID_ARGUMENT, "there is no optimizer '%s' among SGD, Adam, AdamW, Nadam, RMSprop and Adagrad%s%s%s",
          name ? name : "NULL", near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
  return NULL;
}
