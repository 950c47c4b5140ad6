/* SPDX-License-Identifier: Apache-2.0 */
/* What happens at which call. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "wrap.h"

static const char *const kinds[WRAP_KINDS] = {"allocation", "copy", "kernel", "event", "collective"};

/* ---- what may happen ---- */

typedef struct action {
  const char *name;
  /* (optional) Before the call, which a status other than HELIO_OK ends. */
  helio_status (*before)(const wrap_rule *rule, wrap_call *call);
  /* (optional) Behind it: gives the status that the caller sees. */
  helio_status (*after)(const wrap_rule *rule, const wrap_call *call, helio_status status);
} action;

struct wrap_rule {
  wrap_kind kind;
  unsigned long long first, last; /* calls, from 1 */
  long number;                    /* of the device or rank; −1: every one */
  const action *action;
  unsigned long long amount;
};

static const helio_host *host_of(const wrap_call *call) {
  return call->target->inner->real;
}

static helio_status take_time(const wrap_rule *rule, wrap_call *call) {
  unsigned long long left = rule->amount * (unsigned long long)call->rows;
  struct timespec sleep = {.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
  while (left > 0 && nanosleep(&sleep, &sleep) != 0) continue; /* a signal came */
  return HELIO_OK;
}

static helio_status fail_now(const wrap_call *call) {
  return host_of(call)->fail(host_of(call), HELIO_DEVICE_FAILURE, "a rule lets %s fail", call->name);
}

static helio_status fail(const wrap_rule *rule, wrap_call *call) {
  (void)rule;
  call->failing = true;
  return call->waits ? HELIO_OK : fail_now(call);
}

/* What a device works on by itself has not been done then; the rest has. */
static helio_status fail_late(const wrap_rule *rule, wrap_call *call) {
  (void)rule;
  call->skipped = call->kind == WRAP_KERNEL || call->kind == WRAP_COPY;
  atomic_store(&call->target->late, true);
  return HELIO_OK;
}

/* For ever, or so many milliseconds. Nobody could go on without the program's own thread. */
static helio_status hang(const wrap_rule *rule, wrap_call *call) {
  (void)call;
  if (gettid() == getpid()) return HELIO_OK;
  if (rule->amount > 0) {
    usleep((useconds_t)(rule->amount * 1000));
  } else {
    while (pause() != 0) continue; /* a signal came */
  }
  return HELIO_OK;
}

/* An allocation without a buffer, half of a copy, the rest not at all. */
static helio_status answer_short(const wrap_rule *rule, wrap_call *call) {
  (void)rule;
  call->halved = call->kind == WRAP_COPY && call->bytes >= 2;
  call->skipped = !call->halved;
  return HELIO_OK;
}

/* Not a number, as float32 and as float64. */
static helio_status spoil(const wrap_rule *rule, const wrap_call *call, helio_status status) {
  static const unsigned char ones = 0xFF;
  (void)rule;
  if (status || call->bytes == 0) return status;
  if (!call->host) return call->memory->fill(call->device, call->stream, call->place, &ones, 1, call->bytes);
  status = call->streams->synchronize(call->device, call->stream);
  if (!status) memset(call->host, ones, call->bytes);
  return status;
}

static helio_status tell(const wrap_rule *rule, const wrap_call *call, helio_status status) {
  (void)rule;
  host_of(call)->log(host_of(call), HELIO_LOG_INFO, "device %u, call %llu: %s of %zu on stream %p",
                     call->target->number, call->number, call->name, call->elements, (const void *)call->stream);
  return status;
}

static const action actions[] = {
    {.name = "time", .before = take_time},     {.name = "fail", .before = fail},
    {.name = "late", .before = fail_late},     {.name = "hang", .before = hang},
    {.name = "short", .before = answer_short}, {.name = "nan", .after = spoil},
    {.name = "tell", .after = tell},
};

/* ---- at a call ---- */

static bool fits(const wrap_rule *rule, const wrap_call *call) {
  return rule->kind == call->kind && call->number >= rule->first && call->number <= rule->last &&
         (rule->number < 0 || rule->number == (long)call->target->number);
}

helio_status wrap_late(wrap_target *target, const char *name) {
  const helio_host *host = target->inner->real;
  if (!atomic_load(&target->late)) return HELIO_OK;
  return host->fail(host, HELIO_DEVICE_FAILURE, "a rule let something fail before %s", name);
}

helio_status wrap_before(wrap_call *call) {
  const wrap_inner *inner = call->target->inner;
  helio_status status = HELIO_OK;
  call->number = atomic_fetch_add(&call->target->calls[call->kind], 1) + 1;
  for (size_t i = 0; i < inner->rule_count && !status; i++) {
    const wrap_rule *rule = &inner->rules[i];
    if (rule->action->before && fits(rule, call)) status = rule->action->before(rule, call);
  }
  return status;
}

/* A wait that fails has waited all the same: else the device would go on to write where nobody expects it. */
helio_status wrap_after(const wrap_call *call, helio_status status) {
  const wrap_inner *inner = call->target->inner;
  if (call->waits && !status) status = call->failing ? fail_now(call) : wrap_late(call->target, call->name);
  for (size_t i = 0; i < inner->rule_count; i++) {
    const wrap_rule *rule = &inner->rules[i];
    if (rule->action->after && fits(rule, call)) status = rule->action->after(rule, call, status);
  }
  return status;
}

void wrap_target_begin(wrap_target *target, const wrap_inner *inner, uint32_t number) {
  target->inner = inner;
  target->number = number;
  wrap_counts_clear(number);
  atomic_init(&target->late, false);
  for (int i = 0; i < WRAP_KINDS; i++) atomic_init(&target->calls[i], 0);
}

void wrap_target_end(wrap_target *target) {
  const helio_host *host = target->inner->real;
  for (int i = 0; i < WRAP_KINDS; i++) {
    unsigned long long calls = atomic_load(&target->calls[i]);
    if (calls) host->log(host, HELIO_LOG_DEBUG, "device %u: %llu of kind %s", target->number, calls, kinds[i]);
  }
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
  unsigned long long number;
  int kind = takes_word(text, kinds, sizeof kinds[0], WRAP_KINDS);
  *rule = (wrap_rule){.kind = (wrap_kind)kind, .first = 1, .last = ~0ULL, .number = -1};
  if (kind < 0) return false;
  if (takes(text, '@')) {
    if (!takes_number(text, &rule->first)) return false;
    if (!takes(text, '+')) rule->last = rule->first;
  }
  if (takes(text, '/')) {
    if (!takes_number(text, &number)) return false;
    rule->number = (long)number;
  }
  if (!takes(text, ':')) return false;
  int which = takes_word(text, actions, sizeof actions[0], sizeof actions / sizeof actions[0]);
  if (which < 0) return false;
  rule->action = &actions[which];
  return !takes(text, '=') || takes_number(text, &rule->amount);
}

helio_status wrap_rules_read(wrap_inner *inner, const char *text) {
  const helio_host *host = inner->real;
  size_t most = 1;
  for (const char *at = text; (at = strchr(at, ';')); at++) most++;
  inner->rules = host->allocate(host, most * sizeof *inner->rules);
  if (!inner->rules) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for %zu rules", most);
  for (const char *at = text; skip_spaces(&at), *at;) {
    const char *rule = at;
    if (takes_rule(&at, &inner->rules[inner->rule_count]) && (takes(&at, ';') || !*at)) {
      inner->rule_count++;
      continue;
    }
    return host->fail(host, HELIO_INVALID_ARGUMENT, "this is no rule: %s", rule);
  }
  return HELIO_OK;
}
