/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/initializer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "device/topology.h"
#include "ops/options.h"
#include "ops/placement.h"
#include "ops/tape.h"
#include "ops/variable.h"
#include "runtime/error.h"
#include "tensor/pool.h"
#include "tensor/tensor.h"

/* ---- names ---- */

typedef struct kind_name {
  helio_initializer_kind kind;
  const char *class_name, *name;
} kind_name;

static const kind_name names[] = {
    {HELIO_ZEROS, "Zeros", "zeros"},
    {HELIO_ONES, "Ones", "ones"},
    {HELIO_CONSTANT, "Constant", "constant"},
    {HELIO_GLOROT_UNIFORM, "GlorotUniform", "glorot_uniform"},
    {HELIO_GLOROT_NORMAL, "GlorotNormal", "glorot_normal"},
    {HELIO_HE_UNIFORM, "HeUniform", "he_uniform"},
    {HELIO_HE_NORMAL, "HeNormal", "he_normal"},
    {HELIO_LECUN_UNIFORM, "LecunUniform", "lecun_uniform"},
    {HELIO_LECUN_NORMAL, "LecunNormal", "lecun_normal"},
    {HELIO_RANDOM_UNIFORM, "RandomUniform", "random_uniform"},
    {HELIO_RANDOM_NORMAL, "RandomNormal", "random_normal"},
    {HELIO_TRUNCATED_NORMAL, "TruncatedNormal", "truncated_normal"},
};
enum { NAME_COUNT = sizeof names / sizeof names[0] };

helio_initializer_kind hi_initializer_named(const char *name) {
  for (int i = 0; i < NAME_COUNT; i++) {
    if (!strcmp(names[i].class_name, name) || !strcmp(names[i].name, name)) return names[i].kind;
  }
  return (helio_initializer_kind)0;
}

const char *hi_initializer_class(helio_initializer_kind kind) {
  for (int i = 0; i < NAME_COUNT; i++) {
    if (names[i].kind == kind) return names[i].class_name;
  }
  return "";
}

/* ---- drawing ---- */

/* What an initializer comes down to: a constant, or a distribution with its two numbers. */
typedef struct drawing {
  enum { CONSTANT, UNIFORM, NORMAL, TRUNCATED } how;
  double first, second; /* the value; low and high; mean and deviation */
} drawing;

/* Keras' rule: all axes but the last two are the field that a kernel sees. */
static void fans(const helio_shape *shape, double *in, double *out) {
  double field = 1;
  for (int i = 0; i < shape->rank - 2; i++) field *= (double)shape->extent[i];
  *in = shape->rank < 1 ? 1 : (double)shape->extent[shape->rank < 2 ? 0 : shape->rank - 2] * field;
  *out = shape->rank < 1 ? 1 : (double)shape->extent[shape->rank - 1] * field;
}

/* Cutting a normal distribution at two deviations narrows it to this. */
static const double narrowed = 0.87962566103423978;

static drawing scaled(double scale, double fan, bool uniform) {
  double variance = scale / fmax(1, fan), limit = sqrt(3 * variance);
  return uniform ? (drawing){UNIFORM, -limit, limit} : (drawing){TRUNCATED, 0, sqrt(variance) / narrowed};
}

static drawing drawing_of(const helio_initializer *o, const helio_shape *shape) {
  double in, out, deviation = o->deviation == 0 && !signbit(o->deviation) ? 0.05 : o->deviation;
  drawing mean = {CONSTANT, o->mean + 0.0, 0}; /* not −0 */
  fans(shape, &in, &out);
  switch (o->kind) {
  case HELIO_ZEROS:
    return (drawing){CONSTANT, 0, 0};
  case HELIO_ONES:
    return (drawing){CONSTANT, 1, 0};
  case HELIO_CONSTANT:
    return (drawing){CONSTANT, o->value, 0};
  case HELIO_GLOROT_NORMAL:
    return scaled(1, (in + out) / 2, false);
  case HELIO_HE_UNIFORM:
    return scaled(2, in, true);
  case HELIO_HE_NORMAL:
    return scaled(2, in, false);
  case HELIO_LECUN_UNIFORM:
    return scaled(1, in, true);
  case HELIO_LECUN_NORMAL:
    return scaled(1, in, false);
  case HELIO_RANDOM_UNIFORM:
    return o->low == 0 && o->high == 0 ? (drawing){UNIFORM, -0.05, 0.05} : (drawing){UNIFORM, o->low, o->high};
  case HELIO_RANDOM_NORMAL:
    return deviation == 0 ? mean : (drawing){NORMAL, o->mean, deviation};
  case HELIO_TRUNCATED_NORMAL:
    return deviation == 0 ? mean : (drawing){TRUNCATED, o->mean, deviation};
  default:
    return scaled(1, (in + out) / 2, true);
  }
}

/* What is too far out is replaced by the same place of the next step's numbers, so that each element is a pure function
 * of its place. A draw is too far out with probability 0.046. */
static helio_tensor *draw_truncated(const drawing *d, const helio_random_options *from) {
  enum { MOST_TRIES = 64 };
  helio_random_options o = *from;
  helio_tensor *result = NULL, *deviation = helio_fill(HELIO_SCALAR, 2 * d->second, .type = o.type);
  helio_tensor *mean = helio_fill(HELIO_SCALAR, d->first, .type = o.type);
  for (int i = 0; i < MOST_TRIES; i++) {
    o.step = (uint64_t)i;
    helio_tensor *next = helio_random_normal_with(&o);
    result = result ? helio_where(helio_greater(helio_abs(helio_sub(result, mean)), deviation), next, result) : next;
    helio_tensor *outside = helio_cast(helio_greater(helio_abs(helio_sub(result, mean)), deviation), HELIO_FLOAT32);
    if (!outside || helio_item(helio_sum(outside)) == 0) break;
  }
  return helio_error_pending() ? NULL : result;
}

static helio_tensor *draw(const helio_initializer *initializer, const char *name, helio_type type,
                          const helio_shape *shape) {
  drawing d = drawing_of(initializer, shape);
  uint64_t key = hi_seed_key(initializer->seed, name), times = 0;
  if (d.how != CONSTANT && !initializer->seed && hi_seed_count(key, &times)) return NULL;
  helio_random_options o = {.size = sizeof o,
                            .shape = *shape,
                            .key = key + times * UINT64_C(0x9E3779B97F4A7C15),
                            .type = type == HELIO_FLOAT64 ? HELIO_FLOAT64 : HELIO_FLOAT32};
  switch (d.how) {
  case CONSTANT:
    return helio_fill(*shape, d.first, .type = type);
  case UNIFORM:
    o.low = d.first, o.high = d.second;
    return helio_random_uniform_with(&o);
  case NORMAL:
    o.mean = d.first, o.deviation = d.second;
    return helio_random_normal_with(&o);
  default:
    o.mean = d.first, o.deviation = d.second;
    return draw_truncated(&d, &o);
  }
}

/* Drawn on the host, so that every device starts from the same numbers. */
helio_tensor *hi_initialize(const helio_initializer *initializer, const char *name, helio_type type,
                            const helio_shape *shape) {
  helio_tensor *value = NULL;
  int64_t elements;
  if (initializer->kind && !*hi_initializer_class(initializer->kind)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%s: %d is not an initializer", name, (int)initializer->kind);
    return NULL;
  }
  if (!hi_shape_elements(shape, &elements)) {
    char text[HI_SHAPE_TEXT];
    hi_fail(HELIO_INVALID_ARGUMENT, "%s: %s is not a shape for a variable, or too large", name,
            hi_shape_text(shape, text));
    return NULL;
  }
  hi_tape_pause();
  helio_scope pool = helio_pool_enter();
  helio_scope host = hi_placement_enter(hi_device_host());
  value = draw(initializer, name, type, shape);
  if (value && value->type != type) value = helio_cast(value, type);
  helio_device_leave(&host);
  hi_device *device = value ? hi_placement_for_data(NULL) : NULL;
  value = device ? hi_tensor_on(value, device) : NULL;
  value = hi_pool_leave_with(&pool, value);
  hi_tape_resume();
  return value;
}

/* ---- variables ---- */

static helio_variable *make_variable(const helio_variable_options *o) {
  const char *name = o->name ? o->name : "Variable";
  helio_tensor *value = NULL;
  if (o->value) {
    hi_tape_pause();
    value = helio_copy(o->value);
    hi_tape_resume();
  } else {
    value = hi_initialize(&o->initializer, name, o->type ? o->type : HELIO_FLOAT32, &o->shape);
  }
  hi_variable_traits traits = {.trainable = value && !o->not_trainable && hi_type_is_float(value->type),
                               .synchronization = o->synchronization,
                               .aggregation = o->aggregation};
  return hi_variable_new(name, value, &traits);
}

typedef struct request {
  const helio_variable_options *options;
  helio_variable *made; /* with a reference */
} request;

/* Replicas that make a variable at once get the same one, as replica 0 asked for it. */
static helio_status make_together(void *const *brought, int count) {
  helio_scope pool = helio_pool_enter();
  helio_variable *made = make_variable(((const request *)brought[0])->options);
  for (int i = 0; made && i < count; i++) {
    hi_hold(made);
    ((request *)brought[i])->made = made;
  }
  helio_pool_leave(&pool);
  return made ? HELIO_OK : helio_error_pending();
}

helio_variable *helio_variable_with(const helio_variable_options *given) {
  helio_variable_options o;
  if (!hi_options_enter("helio_variable", &o, sizeof o, given)) return NULL;
  hi_replicas *together = hi_replicas_together();
  if (!together) return make_variable(&o);
  request mine = {.options = &o};
  if (together->services->meet(together, make_together, &mine)) return NULL;
  if (hi_pool_add(&mine.made->object)) return mine.made;
  hi_drop(mine.made);
  return NULL;
}
