/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/layer.h"
#include "ops/placement.h"
#include "ops/tape.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "tensor/tensor.h"

/* ---- life ---- */

static void forget(hi_tracked *tracked) {
  for (int i = 0; tracked->variables && i < tracked->count; i++) hi_drop(tracked->variables[i]);
  for (int i = 0; tracked->list && i < tracked->list_count; i++) hi_drop(tracked->list[i]);
  free(tracked->variables);
  free(tracked->list);
}

static void end(void *object) {
  helio_optimizer *optimizer = object;
  forget(&optimizer->tracked);
  hi_drop(optimizer->schedule);
  free(optimizer->name);
  free(optimizer);
}

uint64_t hi_list_number(void) {
  static atomic_uint_least64_t last;
  return atomic_fetch_add(&last, 1) + 1;
}

helio_optimizer *hi_optimizer_new(const hi_optimizer_kind *kind, const helio_optimizer_options *options) {
  helio_optimizer *optimizer = hi_object_new(sizeof *optimizer, end, "an optimizer");
  if (!optimizer) return NULL;
  hi_census_name(&optimizer->object, &optimizer->name);
  optimizer->number = hi_list_number();
  optimizer->kind = kind;
  optimizer->options = *options;
  optimizer->slot_count = kind->slots(options, optimizer->slots);
  optimizer->numbers = (hi_optimizer_numbers){.learning_rate = options->learning_rate, .momentum_product = 1};
  optimizer->schedule = options->schedule;
  if (optimizer->schedule) hi_hold(optimizer->schedule);
  optimizer->name = strdup(options->name ? options->name : kind->name);
  optimizer->options.name = optimizer->name;
  if (optimizer->name) return optimizer;
  hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of an optimizer");
  return NULL;
}

/* ---- variables and slots ---- */

int hi_optimizer_find(const helio_optimizer *optimizer, const helio_variable *variable, int guess) {
  const hi_tracked *tracked = &optimizer->tracked;
  if (guess < tracked->count && tracked->variables[guess] == variable) return guess;
  for (int i = 0; i < tracked->count; i++) {
    if (tracked->variables[i] == variable) return i;
  }
  hi_fail(HELIO_INVALID_ARGUMENT,
          "Unknown variable: %s. This optimizer can only be called for the variables it was originally built with. "
          "When working with a new set of variables, you should recreate a new optimizer instance.",
          helio_variable_name(variable));
  return -1;
}

/* Where a slot stands in the list of a number of variables: behind the accumulators, in Keras' order. */
static int place_of(const helio_optimizer *optimizer, int variables, int variable, int slot) {
  int first = optimizer->options.accumulate_steps ? variables : 0;
  return first + (optimizer->kind->by_variable ? variable * optimizer->slot_count + slot : slot * variables + variable);
}

helio_variable *hi_optimizer_slot(const helio_optimizer *optimizer, int variable, int slot) {
  return optimizer->tracked.list[place_of(optimizer, optimizer->tracked.count, variable, slot)];
}

helio_variable *hi_optimizer_accumulator(const helio_optimizer *optimizer, int variable) {
  return optimizer->options.accumulate_steps ? optimizer->tracked.list[variable] : NULL;
}

/* "adam/conv2d_kernel_momentum", to be freed. Variables of inner models may have equal names: the second one's is
 * "adam/conv2d_kernel_1_momentum". */
static char *slot_name(const helio_optimizer *optimizer, const hi_tracked *of, int variable, const char *slot) {
  char *name, number[16] = "";
  const char *own = of->variables[variable]->name;
  int twins = 0;
  for (int i = 0; i < variable; i++) twins += strcmp(of->variables[i]->name, own) == 0;
  if (twins) snprintf(number, sizeof number, "_%d", twins);
  if (asprintf(&name, "%s/%s%s_%s", optimizer->name, own, number, slot) < 0) return NULL;
  for (char *c = name + strlen(optimizer->name) + 1; *c; c++) {
    if (*c == '/') *c = '_';
  }
  return name;
}

/* Makes a variable like one of those tracked, with copies where that one has them. */
static helio_status make_slot(const helio_optimizer *optimizer, const hi_tracked *of, int variable, const hi_slot *slot,
                              helio_variable **result) {
  const helio_tensor *model = hi_variable_tensor(of->variables[variable]);
  char *name = slot_name(optimizer, of, variable, slot->name);
  if (!name) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of a slot");
  helio_scope device = hi_placement_enter(model->device);
  helio_tensor *value = helio_fill(model->shape, slot->start, .type = model->type);
  helio_device_leave(&device);
  hi_context before = hi_context_set((hi_context){.replicas = of->variables[variable]->replicas});
  *result = hi_variable_new(name, value, &(hi_variable_traits){0});
  hi_context_set(before);
  free(name);
  if (!*result) return helio_error_pending();
  hi_hold(*result);
  return HELIO_OK;
}

static helio_status make_slots(const helio_optimizer *optimizer, hi_tracked *to) {
  static const hi_slot accumulator = {.name = "gradient_accumulator"};
  helio_status status = HELIO_OK;
  for (int i = 0; i < to->count && !status; i++) {
    if (optimizer->options.accumulate_steps) status = make_slot(optimizer, to, i, &accumulator, &to->list[i]);
    for (int j = 0; j < optimizer->slot_count && !status; j++) {
      status = make_slot(optimizer, to, i, &optimizer->slots[j], &to->list[place_of(optimizer, to->count, i, j)]);
    }
  }
  return status;
}

static helio_status hold_variables(const helio_variables *variables, hi_tracked *to, int per_variable) {
  to->variables = calloc((size_t)variables->count + 1, sizeof *to->variables);
  to->list = calloc((size_t)variables->count * (size_t)per_variable + 1, sizeof *to->list);
  if (!to->variables || !to->list) {
    return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a list of %d variables", variables->count);
  }
  to->list_count = variables->count * per_variable;
  for (int i = 0; i < variables->count; i++) {
    hi_hold(variables->at[i]);
    to->variables[to->count++] = variables->at[i];
  }
  return HELIO_OK;
}

static helio_status track(helio_optimizer *optimizer, const helio_variables *variables) {
  hi_tracked tracked = {0};
  helio_scope pool = helio_pool_enter();
  hi_tape_pause();
  helio_status status =
      hold_variables(variables, &tracked, optimizer->slot_count + (optimizer->options.accumulate_steps > 0));
  if (!status) status = make_slots(optimizer, &tracked);
  hi_tape_resume();
  helio_pool_leave(&pool);
  if (status) {
    forget(&tracked);
    return status;
  }
  optimizer->tracked = tracked;
  optimizer->listed = (helio_variables){tracked.list_count, tracked.list};
  atomic_store(&optimizer->ready, true);
  return HELIO_OK;
}

helio_status hi_optimizer_track(helio_optimizer *optimizer, const helio_variables *variables) {
  if (atomic_load(&optimizer->ready)) return HELIO_OK;
  hi_context before = hi_build_lock();
  helio_status status = atomic_load(&optimizer->ready) ? HELIO_OK : track(optimizer, variables);
  hi_build_unlock(before);
  return status;
}

/* ---- checks ---- */

static helio_status check_variable(const helio_optimizer *optimizer, const helio_variable *variable) {
  if (!hi_variable_usable(variable) || !hi_variable_assignable(variable)) return helio_error_pending();
  helio_type type = helio_variable_type(variable);
  if (type == HELIO_FLOAT32 || type == HELIO_FLOAT64) return HELIO_OK;
  return hi_fail(HELIO_NOT_SUPPORTED, "%s: %s is %s; only float32 and float64 variables can be updated",
                 optimizer->name, variable->name, helio_type_name(type));
}

static helio_status check_distinct(const helio_variables *variables) {
  for (int i = 0; i < variables->count; i++) {
    for (int j = 0; j < i; j++) {
      if (variables->at[i] != variables->at[j]) continue;
      return hi_fail(HELIO_INVALID_ARGUMENT, "%s stands twice in the list of variables", variables->at[i]->name);
    }
  }
  return HELIO_OK;
}

helio_status hi_optimizer_check(const helio_optimizer *optimizer, const helio_variables *variables) {
  if (!optimizer) return hi_fail(HELIO_INVALID_ARGUMENT, "the optimizer is NULL");
  if (!variables || variables->count < 0 || (variables->count > 0 && !variables->at)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "the list of variables is not valid");
  }
  helio_status status = HELIO_OK;
  bool known = atomic_load(&optimizer->ready);
  for (int i = 0; i < variables->count && !status; i++) {
    status = check_variable(optimizer, variables->at[i]);
    if (!status && known && hi_optimizer_find(optimizer, variables->at[i], i) < 0) {
      status = helio_error_pending();
    }
  }
  return status || known ? status : check_distinct(variables);
}

/* ---- what the user sees ---- */

helio_status helio_optimizer_build(helio_optimizer *optimizer, const helio_variables *variables) {
  helio_status status = hi_enter(__func__);
  if (!status) status = hi_optimizer_check(optimizer, variables);
  return status ? status : hi_optimizer_track(optimizer, variables);
}

const helio_variables *helio_optimizer_variables(helio_optimizer *optimizer) {
  if (hi_enter(__func__)) return NULL;
  if (optimizer) return &optimizer->listed;
  hi_fail(HELIO_INVALID_ARGUMENT, "the optimizer is NULL");
  return NULL;
}

const char *helio_optimizer_name(const helio_optimizer *optimizer) {
  return optimizer ? optimizer->name : "";
}

int64_t hi_optimizer_updates(const helio_optimizer *optimizer) {
  int every = optimizer->options.accumulate_steps;
  return optimizer->numbers.calls / (every ? every : 1);
}

int64_t helio_optimizer_iterations(const helio_optimizer *optimizer) {
  return optimizer ? hi_optimizer_updates(optimizer) : 0;
}

helio_status hi_optimizer_accumulate(helio_optimizer *optimizer, int steps) {
  int now = optimizer->options.accumulate_steps;
  if (steps == 0 || steps == (now ? now : 1)) return HELIO_OK;
  if (steps < 0) return hi_fail(HELIO_INVALID_ARGUMENT, "accumulate_steps is %d", steps);
  if (atomic_load(&optimizer->ready)) {
    return hi_fail(HELIO_WRONG_STATE, "%s accumulates %d steps already and cannot change to %d: make a new one",
                   optimizer->name, now ? now : 1, steps);
  }
  optimizer->options.accumulate_steps = steps > 1 ? steps : 0;
  return HELIO_OK;
}

double hi_optimizer_rate(const helio_optimizer *optimizer) {
  const hi_optimizer_numbers *numbers = &optimizer->numbers;
  return optimizer->schedule ? hi_schedule_rate(optimizer->schedule, numbers->calls) : numbers->learning_rate;
}

double helio_optimizer_learning_rate(const helio_optimizer *optimizer) {
  if (hi_enter_unstarted(__func__)) return NAN;
  if (!optimizer) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the optimizer is NULL");
    return NAN;
  }
  return hi_optimizer_rate(optimizer);
}

helio_status helio_optimizer_set_learning_rate(helio_optimizer *optimizer, double rate) {
  helio_status status = hi_enter_unstarted(__func__);
  if (status) return status;
  if (!optimizer) return hi_fail(HELIO_INVALID_ARGUMENT, "the optimizer is NULL");
  if (optimizer->schedule) {
    return hi_fail(HELIO_WRONG_STATE, "%s was made with a schedule, hence its learning rate is not settable",
                   optimizer->name);
  }
  if (!isfinite(rate) || rate < 0) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "the learning rate is %g; it must be a number from 0 on", rate);
  }
  optimizer->numbers.learning_rate = rate;
  return HELIO_OK;
}

/* ---- by the number of replicas ---- */

static helio_status check_scaling(const helio_optimizer *optimizer, helio_rate_scaling scaling, int replicas,
                                  int64_t warmup_steps) {
  if (!optimizer) return hi_fail(HELIO_INVALID_ARGUMENT, "the optimizer is NULL");
  if (scaling < HELIO_SCALE_NONE || scaling > HELIO_SCALE_SQRT || replicas < 1 || warmup_steps < 0) {
    return hi_fail(
        HELIO_INVALID_ARGUMENT,
        "the scaling is %d, there are %d replicas and %lld steps: it must be one of helio_rate_scaling, with "
        "1 replica at least and no negative number of steps",
        (int)scaling, replicas, (long long)warmup_steps);
  }
  if (optimizer->schedule) {
    return hi_fail(HELIO_WRONG_STATE, "%s has a schedule, which its rate follows: scale its rate when it is made",
                   optimizer->name);
  }
  /* A rate that was scaled at once is that of a checkpoint, and would be scaled again. */
  if (optimizer->numbers.calls > 0 && warmup_steps == 0) {
    return hi_fail(HELIO_WRONG_STATE, "%s has taken steps already: scale its rate when it is made", optimizer->name);
  }
  return HELIO_OK;
}

/* Up along a line, then as it is: what a decay does downwards. */
static helio_status warm_up(helio_optimizer *optimizer, double rate, int64_t steps) {
  helio_scope pool = helio_pool_enter();
  helio_schedule *schedule =
      helio_polynomial_decay(.initial = optimizer->numbers.learning_rate, .steps = steps, .end = rate);
  if (schedule) hi_hold(schedule);
  optimizer->schedule = schedule;
  helio_pool_leave(&pool);
  return schedule ? HELIO_OK : helio_error_pending();
}

helio_status helio_scale_learning_rate(helio_optimizer *optimizer, helio_rate_scaling scaling, int replicas,
                                       int64_t warmup_steps) {
  helio_status status = hi_enter_unstarted(__func__);
  if (!status) status = check_scaling(optimizer, scaling, replicas, warmup_steps);
  if (status) return status;
  double factor = scaling == HELIO_SCALE_LINEAR ? replicas : scaling == HELIO_SCALE_SQRT ? sqrt(replicas) : 1;
  double before = optimizer->numbers.learning_rate, rate = before * factor;
  if (rate == before) return HELIO_OK;
  if (warmup_steps > 0) {
    status = warm_up(optimizer, rate, warmup_steps);
  } else {
    status = helio_optimizer_set_learning_rate(optimizer, rate);
  }
  if (status) return status;
  hi_log(HELIO_LOG_INFO, "%s: learning rate %g for %d replicas, %g times the %g of one, reached in %lld steps",
         optimizer->name, rate, replicas, factor, before, (long long)warmup_steps);
  return HELIO_OK;
}
