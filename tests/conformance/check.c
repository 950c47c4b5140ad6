/* SPDX-License-Identifier: Apache-2.0 */
/* Running an example on the device, in all ways that must give the same. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "device/copy.h"
#include "ops/dispatch.h"
#include "ops/plans.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

/* Bytes around a tensor that is placed by hand: one element before, so that its offset is as odd as it may be, and
 * enough behind. */
enum { BEHIND = 64, PAD = 0xA5 };

/* Of one test: more would say no more. */
enum { MOST_FAILURES = 5 };

/* What a run gave: outputs or, of updates, the inputs that were written. */
typedef struct outcome {
  int count;
  array results[MOST_RESULTS]; /* absent where there is none */
  void *bytes[MOST_RESULTS];
} outcome;

/* How a run differs from the plain one. */
typedef struct manner {
  const char *words;
  uint32_t no_outputs;
  bool by_hand;  /* places at odd offsets, with something around them that must stay */
  int onto;      /* the output lies on input onto − 1; 0: on none */
  bool bad_data; /* it must be reported */
  int64_t value; /* likewise */
} manner;

static bool is_update(const hi_row *row) {
  return row->inputs[0] == 'V';
}

static bool writes(const hi_row *row, int input) {
  return is_update(row) && toupper((unsigned char)row->inputs[input]) == 'V';
}

static void outcome_free(outcome *o) {
  for (int i = 0; i < MOST_RESULTS; i++) {
    array_free(&o->results[i]);
    free(o->bytes[i]);
  }
}

/* ---- tensors ---- */

static void encode_inputs(example *e) {
  for (int i = 0; i < e->input_count; i++) {
    const array *input = &e->inputs[i];
    if (!input->values) continue;
    e->bytes[i] = calloc((size_t)input->elements + 1, helio_type_bytes(input->type));
    if (!e->bytes[i]) exit(2);
    array_encode(input, e->bytes[i]);
  }
}

/* A tensor of its own or, by hand, one in the middle of another, which `base` receives. No data: whatever. */
static helio_tensor *tensor_of(const array *a, const void *data, bool by_hand, helio_tensor **base) {
  size_t element = helio_type_bytes(a->type), bytes = (size_t)a->elements * element;
  helio_tensor *tensor;
  if (!by_hand || a->elements == 0) {
    tensor = *base = helio_constant(data, a->shape, .type = a->type);
  } else {
    unsigned char *padded = malloc(element + bytes + BEHIND);
    if (!padded) exit(2);
    memset(padded, PAD, element + bytes + BEHIND);
    if (data) memcpy(padded + element, data, bytes);
    helio_shape flat = {1, {(int64_t)((element + bytes + BEHIND) / element)}};
    *base = helio_constant(padded, flat, .type = a->type);
    tensor = *base ? hi_tensor_view(*base, &a->shape, element) : NULL;
    free(padded);
  }
  return tensor;
}

/* The tensor's bytes, to be freed; NULL with the error pending. */
static void *bytes_of(const helio_tensor *tensor) {
  size_t bytes = hi_tensor_bytes(tensor);
  void *data = calloc(bytes + 1, 1);
  if (!data) exit(2);
  if (!helio_tensor_read(tensor, data, bytes)) return data;
  free(data);
  return NULL;
}

/* Is what lies around a tensor that was placed by hand as it was? */
static bool pads_intact(const helio_tensor *base, const helio_tensor *tensor) {
  if (base == tensor) return true;
  unsigned char *data = bytes_of(base);
  size_t before = tensor->offset - base->offset, end = before + hi_tensor_bytes(tensor), all = hi_tensor_bytes(base);
  bool intact = data != NULL;
  for (size_t i = 0; intact && i < all; i++) intact = (i >= before && i < end) || data[i] == PAD;
  free(data);
  return intact;
}

/* ---- runs ---- */

typedef struct attempt {
  const example *e;
  const manner *how;
  hi_call call;
  helio_tensor *inputs[MOST_INPUTS], *input_bases[MOST_INPUTS];
  helio_tensor *outputs[HI_MAX_OUTPUTS], *output_bases[HI_MAX_OUTPUTS];
} attempt;

static bool prepare(attempt *a) {
  const example *e = a->e;
  a->call = (hi_call){.row = hi_row_of(e->family->operation),
                      .inputs = a->inputs,
                      .input_count = e->input_count,
                      .attributes = e->attributes,
                      .no_outputs = a->how->no_outputs,
                      .keep_dims = e->keep_dims,
                      .wanted = e->wanted,
                      .wanted_type = e->wanted_type};
  memcpy(a->call.scalars, e->scalars, sizeof e->scalars);
  for (int i = 0; i < e->input_count; i++) {
    a->inputs[i] = a->input_bases[i] = NULL;
    if (!e->inputs[i].values) continue;
    a->inputs[i] = tensor_of(&e->inputs[i], e->bytes[i], a->how->by_hand, &a->input_bases[i]);
    if (!a->inputs[i]) return false;
  }
  return true;
}

/* Outputs in the middle of other tensors, or on an input. */
static helio_status place_outputs(attempt *a, helio_place *places, bool *has_work) {
  for (int i = 0; a->call.row->outputs[i]; i++) {
    const hi_output *output = &a->call.outputs[i];
    if (a->how->no_outputs >> i & 1) continue;
    array form = {.type = output->type, .shape = output->shape, .elements = shape_elements(&output->shape)};
    a->outputs[i] = tensor_of(&form, NULL, true, &a->output_bases[i]);
    if (!a->outputs[i]) return helio_error_pending();
    if (a->how->onto) a->outputs[i] = a->inputs[a->how->onto - 1];
    if (a->how->onto) a->output_bases[i] = a->input_bases[a->how->onto - 1];
    places[a->call.input_count + i] = hi_tensor_place(a->outputs[i]);
    *has_work |= a->outputs[i]->elements > 0;
  }
  return HELIO_OK;
}

static helio_status run_by_hand(attempt *a) {
  helio_place places[MOST_INPUTS + HI_MAX_OUTPUTS] = {{NULL, 0}};
  hi_plan *plan;
  helio_status status = hi_call_check(&a->call);
  if (status) return status;
  status = hi_plan_get(run.device, &a->call, &plan);
  if (status) return hi_fail(status, "%s", hi_reason(status));
  bool has_work = is_update(a->call.row) && a->inputs[0]->elements > 0;
  for (int i = 0; i < a->call.input_count; i++) {
    if (a->inputs[i]) places[i] = hi_tensor_place(a->inputs[i]);
  }
  status = place_outputs(a, places, &has_work);
  if (!status && has_work) status = hi_plan_run(plan, run.device, HI_STREAM_COMPUTE, &a->call, places);
  hi_plan_release(plan);
  return status;
}

static helio_status run_attempt(attempt *a) {
  if (a->how->by_hand) return run_by_hand(a);
  helio_status status = hi_dispatch(&a->call, a->outputs);
  for (int i = 0; i < HI_MAX_OUTPUTS; i++) a->output_bases[i] = a->outputs[i];
  return status;
}

/* ---- what came out ---- */

static bool collect_one(outcome *o, int index, const helio_tensor *tensor) {
  o->bytes[index] = bytes_of(tensor);
  if (!o->bytes[index]) return false;
  o->results[index] = array_new(tensor->type, &tensor->shape);
  array_decode(&o->results[index], o->bytes[index]);
  return true;
}

static bool collect(const attempt *a, outcome *o) {
  const hi_row *row = a->call.row;
  if (is_update(row)) {
    for (int i = 0; i < a->call.input_count; i++) {
      if (a->inputs[i] && writes(row, i) && !collect_one(o, i, a->inputs[i])) return false;
      if (writes(row, i)) o->count = i + 1;
    }
    return true;
  }
  o->count = hi_row_outputs(row);
  for (int i = 0; i < o->count; i++) {
    if (a->outputs[i] && !collect_one(o, i, a->outputs[i])) return false;
  }
  return true;
}

static bool input_unchanged(const attempt *a, int index) {
  const array *given = &a->e->inputs[index];
  if (!a->inputs[index] || writes(a->call.row, index) || a->how->onto == index + 1) return true;
  void *now = bytes_of(a->inputs[index]);
  bool same = now && memcmp(a->e->bytes[index], now, (size_t)given->elements * helio_type_bytes(given->type)) == 0;
  free(now);
  return same;
}

static void complain(const attempt *a, const char *what, int index) {
  char words[1000];
  failed("%s, %s: %s %d%s%s", example_words(a->e, words), a->how->words, what, index, helio_error_pending() ? ": " : "",
         helio_error_message());
  helio_error_take(NULL);
}

static bool check_surroundings(const attempt *a) {
  for (int i = 0; i < a->call.input_count; i++) {
    if (!input_unchanged(a, i)) return complain(a, "it has changed input", i), false;
    if (a->inputs[i] && !pads_intact(a->input_bases[i], a->inputs[i])) {
      return complain(a, "it wrote outside of input", i), false;
    }
  }
  for (int i = 0; i < HI_MAX_OUTPUTS; i++) {
    if (!a->outputs[i]) continue;
    if (a->outputs[i]->device != run.device) return complain(a, "it ran elsewhere: output", i), false;
    if (!pads_intact(a->output_bases[i], a->outputs[i])) return complain(a, "it wrote outside of output", i), false;
  }
  return true;
}

/* A kernel may refuse a call; it has then done nothing. */
static bool refused(helio_status status) {
  if (status != HELIO_NOT_SUPPORTED || run.is_host) return false;
  snprintf(run.reason, sizeof run.reason, "%s", helio_error_message());
  run.refused++;
  helio_error_take(NULL);
  return true;
}

/* The first read after the run must tell of the bad value, and those that follow of nothing. */
static bool expect_bad_data(const attempt *a) {
  char value[40];
  helio_error error;
  void *data = bytes_of(a->outputs[0] ? a->outputs[0] : a->inputs[0]);
  free(data);
  snprintf(value, sizeof value, " %lld is out of range", (long long)a->how->value);
  helio_status status = helio_error_take(&error);
  const char *label = a->call.row->info.label;
  if (status == HELIO_BAD_DATA && strstr(error.message, label) && strstr(error.message, value)) return true;
  failed("%s, %s: expected HELIO_BAD_DATA with %s and %s, got %s: %s", a->call.row->info.name, a->how->words, label,
         value, helio_status_name(status), error.message);
  return false;
}

/* Runs the example in a manner. False: it could not or did something wrong, of which the user knows. */
static bool attempt_example(const example *e, const manner *how, outcome *o) {
  bool good = false;
  memset(o, 0, sizeof *o);
  HELIO_POOL {
    attempt a = {.e = e, .how = how};
    helio_status status = prepare(&a) ? run_attempt(&a) : helio_error_pending();
    if (refused(status)) break;
    if (status) {
      complain(&a, "it failed with status", (int)status);
      break;
    }
    if (how->bad_data && !expect_bad_data(&a)) break;
    if (!collect(&a, o)) {
      complain(&a, "reading the results failed with status", (int)helio_error_pending());
      break;
    }
    good = check_surroundings(&a);
  }
  if (helio_synchronize(NULL)) {
    failed("%s, %s: %s", hi_row_of(e->family->operation)->info.name, how->words, helio_error_message());
    helio_error_take(NULL);
    good = false;
  }
  if (!good) outcome_free(o);
  return good;
}

/* ---- comparison ---- */

static bool same_form(const array *seen, const array *expected) {
  return seen->type == expected->type && shape_same(&seen->shape, &expected->shape);
}

static void compare_one(const example *e, const manner *how, int index, const array *seen, const array *expected) {
  char words[1000], shape[200], other[200];
  int64_t at;
  if (!expected->values) return;
  if (!same_form(seen, expected)) {
    failed("%s, %s: result %d is %s%s, expected %s%s", example_words(e, words), how->words, index,
           helio_type_name(seen->type), shape_words(&seen->shape, shape), helio_type_name(expected->type),
           shape_words(&expected->shape, other));
    return;
  }
  double error = array_error(seen, expected, &at);
  double allowed =
      e->tolerance > 0 && is_float(expected->type) ? e->tolerance : tolerance_of(expected->type, e->long_sum);
  if (error <= allowed) return;
  failed("%s, %s: result %d has error %.3g, allowed %.3g; element %lld is %.17g, expected %.17g",
         example_words(e, words), how->words, index, error, allowed, (long long)at, seen->values[at],
         expected->values[at]);
}

static void round_results(array *results) {
  for (int i = 0; i < MOST_RESULTS; i++) {
    for (int64_t k = 0; results[i].values && is_float(results[i].type) && k < results[i].elements; k++) {
      results[i].values[k] = as_type(results[i].type, results[i].values[k]);
    }
  }
}

static void free_results(array *results) {
  for (int i = 0; i < MOST_RESULTS; i++) array_free(&results[i]);
}

/* Runs in a manner and compares with what is expected. */
static bool try_manner(const example *e, const manner *how, const array *expected) {
  outcome o;
  int before = run.failures;
  if (!attempt_example(e, how, &o)) return false;
  for (int i = 0; i < o.count; i++) {
    bool wanted = !(how->no_outputs >> i & 1) && o.results[i].values;
    if (wanted) compare_one(e, how, i, &o.results[i], &expected[i]);
  }
  outcome_free(&o);
  return run.failures == before;
}

/* The same call again must give the same bits. */
static bool try_twice(const example *e, const array *expected) {
  static const manner plain = {.words = "plainly"}, again = {.words = "again"};
  outcome first, second;
  int before = run.failures;
  if (!attempt_example(e, &plain, &first)) return false;
  for (int i = 0; i < first.count; i++) {
    if (first.results[i].values) compare_one(e, &plain, i, &first.results[i], &expected[i]);
  }
  if (attempt_example(e, &again, &second)) {
    for (int i = 0; i < first.count; i++) {
      size_t bytes = (size_t)first.results[i].elements * helio_type_bytes(first.results[i].type);
      if (!first.bytes[i] || memcmp(first.bytes[i], second.bytes[i], bytes) == 0) continue;
      char words[1000];
      failed("%s: the same call gave other bits in result %d", example_words(e, words), i);
    }
    outcome_free(&second);
  }
  outcome_free(&first);
  return run.failures == before;
}

static void try_without_outputs(const example *e, const array *expected) {
  const hi_row *row = hi_row_of(e->family->operation);
  uint32_t optional = 0;
  for (int i = 0; row->outputs[i]; i++) optional |= hi_row_output_optional(row, i) ? 1u << i : 0;
  for (uint32_t left_out = 1; left_out < 1u << HI_MAX_OUTPUTS; left_out++) {
    if (left_out & ~optional) continue;
    char words[60];
    snprintf(words, sizeof words, "without outputs of mask %u", left_out);
    try_manner(e, &(manner){.words = words, .no_outputs = left_out}, expected);
  }
}

/* "The output of ADD, SUB, MUL, ADD_N, MAXIMUM, MINIMUM and RELU may lie exactly on an input of the same shape" */
static bool may_alias(helio_operation operation) {
  return operation == HELIO_OP_ADD || operation == HELIO_OP_SUB || operation == HELIO_OP_MUL ||
         operation == HELIO_OP_ADD_N || operation == HELIO_OP_MAXIMUM || operation == HELIO_OP_MINIMUM ||
         operation == HELIO_OP_RELU;
}

static void try_in_place(const example *e, const array *expected) {
  for (int i = 0; i < e->input_count && may_alias(e->family->operation); i++) {
    char words[60];
    if (!same_form(&e->inputs[i], &expected[0]) || (e->once && i > 0)) continue;
    snprintf(words, sizeof words, "onto input %d", i);
    try_manner(e, &(manner){.words = words, .by_hand = true, .onto = i + 1}, expected);
  }
}

/* The thread sanitizer takes its time, and has little to see in small examples, which one thread does: there, most of
 * them are left out unless --long is given. */
static bool left_out(const example *e) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(THREAD_SANITIZER)
  return !e->once && !run.lengthy && run.examples % 4 != 1;
#else
  (void)e;
  return false;
#endif
}

void check_example(example *e) {
  static const manner by_hand = {.words = "at odd offsets", .by_hand = true};
  array expected[MOST_RESULTS] = {{0}};
  run.examples++;
  if (run.failures < MOST_FAILURES && !left_out(e)) {
    encode_inputs(e);
    e->family->reference(e, expected);
    round_results(expected);
    bool good = try_twice(e, expected);
    if (good && !e->once) try_manner(e, &by_hand, expected);
    if (good) try_without_outputs(e, expected);
    if (good) try_in_place(e, expected);
    free_results(expected);
  }
  example_free(e);
}

void check_bad_data(example *e, int64_t value) {
  const manner plain = {.words = "with bad data", .bad_data = true, .value = value};
  const manner by_hand = {.words = "with bad data at odd offsets", .by_hand = true, .bad_data = true, .value = value};
  outcome o;
  run.examples++;
  encode_inputs(e);
  if (run.failures < MOST_FAILURES && attempt_example(e, &plain, &o)) outcome_free(&o);
  if (run.failures < MOST_FAILURES && attempt_example(e, &by_hand, &o)) outcome_free(&o);
  example_free(e);
}

bool run_for_result(example *e, array *result) {
  static const manner plain = {.words = "plainly"};
  outcome o;
  run.examples++;
  encode_inputs(e);
  bool good = attempt_example(e, &plain, &o);
  if (good) *result = array_copy(&o.results[0]);
  if (good) outcome_free(&o);
  example_free(e);
  return good;
}
