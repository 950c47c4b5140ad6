/* SPDX-License-Identifier: Apache-2.0 */
/* What happens at which call. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wrap.h"

/* ---- what may happen ---- */

typedef struct action {
  const char *name;
  /* (optional) Before the call, which a status other than HELIO_OK ends. */
  helio_status (*before)(const wrap_rule *rule, const wrap_call *call);
  /* (optional) Behind it: gives the status that the caller sees. */
  helio_status (*after)(const wrap_rule *rule, const wrap_call *call, helio_status status);
} action;

struct wrap_rule {
  wrap_kind kind;
  unsigned long long first, last; /* calls, from 1 */
  long device;                    /* −1: every one */
  const action *action;
  unsigned long long amount;
};

static helio_status take_time(const wrap_rule *rule, const wrap_call *call) {
  unsigned long long left = rule->amount * (unsigned long long)call->rows;
  struct timespec sleep = {.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
  while (left > 0 && nanosleep(&sleep, &sleep) != 0) continue; /* a signal came */
  return HELIO_OK;
}

static helio_status fail(const wrap_rule *rule, const wrap_call *call) {
  const helio_host *host = call->device->state->inner.real;
  (void)rule;
  return host->fail(host, HELIO_DEVICE_FAILURE, "HELIO_WRAP_RULES lets %s fail", call->name);
}

static helio_status tell(const wrap_rule *rule, const wrap_call *call, helio_status status) {
  const helio_host *host = call->device->state->inner.real;
  (void)rule;
  host->log(host, HELIO_LOG_INFO, "device %u, call %llu: %s of %zu on stream %p", call->device->number, call->number,
            call->name, call->elements, (const void *)call->stream);
  return status;
}

static const action actions[] = {
    {.name = "time", .before = take_time},
    {.name = "fail", .before = fail},
    {.name = "tell", .after = tell},
};

/* ---- at a call ---- */

static bool fits(const wrap_rule *rule, const wrap_call *call) {
  return rule->kind == call->kind && call->number >= rule->first && call->number <= rule->last &&
         (rule->device < 0 || rule->device == (long)call->device->number);
}

helio_status wrap_before(wrap_call *call) {
  const helio_plugin_state *state = call->device->state;
  helio_status status = HELIO_OK;
  call->number = atomic_fetch_add(&call->device->calls[call->kind], 1) + 1;
  for (size_t i = 0; i < state->rule_count && !status; i++) {
    const wrap_rule *rule = &state->rules[i];
    if (rule->action->before && fits(rule, call)) status = rule->action->before(rule, call);
  }
  return status;
}

helio_status wrap_after(const wrap_call *call, helio_status status) {
  const helio_plugin_state *state = call->device->state;
  for (size_t i = 0; i < state->rule_count; i++) {
    const wrap_rule *rule = &state->rules[i];
    if (rule->action->after && fits(rule, call)) status = rule->action->after(rule, call, status);
  }
  return status;
}

/* ---- reading ---- */

static void skip_spaces(const char **text) {
  while (isspace((unsigned char)**text)) ++*text;
}

/* Takes the sign if it comes next. */
static bool takes(const char **text, char sign) {
  skip_spaces(text);
  if (**text != sign) return false;
  ++*text;
  return true;
}

static bool takes_number(const char **text, unsigned long long *number) {
  char *end;
  skip_spaces(text);
  if (!isdigit((unsigned char)**text)) return false;
  *number = strtoull(*text, &end, 10);
  *text = end;
  return true;
}

/* The word's place in a list of which each element begins with a name; −1 if it is not there. */
static int takes_word(const char **text, const void *list, size_t element, int count) {
  skip_spaces(text);
  size_t length = strspn(*text, "abcdefghijklmnopqrstuvwxyz");
  for (int i = 0; i < count; i++) {
    const char *name = *(const char *const *)((const char *)list + (size_t)i * element);
    if (strlen(name) != length || strncmp(name, *text, length) != 0) continue;
    *text += length;
    return i;
  }
  return -1;
}

static bool takes_rule(const char **text, wrap_rule *rule) {
  static const char *const kinds[WRAP_KINDS] = {"allocation", "copy", "kernel", "event"};
  unsigned long long device;
  int kind = takes_word(text, kinds, sizeof kinds[0], WRAP_KINDS);
  *rule = (wrap_rule){.kind = (wrap_kind)kind, .first = 1, .last = ~0ULL, .device = -1};
  if (kind < 0) return false;
  if (takes(text, '@')) {
    if (!takes_number(text, &rule->first)) return false;
    if (!takes(text, '+')) rule->last = rule->first;
  }
  if (takes(text, '/')) {
    if (!takes_number(text, &device)) return false;
    rule->device = (long)device;
  }
  if (!takes(text, ':')) return false;
  int which = takes_word(text, actions, sizeof actions[0], sizeof actions / sizeof actions[0]);
  if (which < 0) return false;
  rule->action = &actions[which];
  return !takes(text, '=') || takes_number(text, &rule->amount);
}

helio_status wrap_rules_read(helio_plugin_state *state, const char *text) {
  const helio_host *host = state->inner.real;
  size_t most = 1;
  for (const char *at = text; (at = strchr(at, ';')); at++) most++;
  state->rules = host->allocate(host, most * sizeof *state->rules);
  if (!state->rules) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for %zu rules", most);
  for (const char *at = text; skip_spaces(&at), *at;) {
    const char *rule = at;
    if (takes_rule(&at, &state->rules[state->rule_count]) && (takes(&at, ';') || !*at)) {
      state->rule_count++;
      continue;
    }
    host->release(host, state->rules);
    return host->fail(host, HELIO_INVALID_ARGUMENT, "HELIO_WRAP_RULES: this is no rule: %s", rule);
  }
  return HELIO_OK;
}
