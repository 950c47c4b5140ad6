/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/dispatch.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/copy.h"
#include "device/topology.h"
#include "ops/placement.h"
#include "ops/plans.h"
#include "ops/tape.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

enum { ON_STACK = 16 };

/* Where a call runs. */
typedef struct choice {
  hi_device *device;
  hi_plan *plan;
  bool elsewhere; /* than asked for or preferred */
} choice;

/* A device that has no kernel at all is not opened for finding out. */
static helio_status try_device(const hi_call *call, hi_device *device, choice *result) {
  helio_status status = hi_plan_possible(device, call);
  if (!status) status = hi_device_use(device);
  if (!status) status = hi_plan_get(device, call, &result->plan);
  if (!status) result->device = device;
  return status;
}

static bool writes(const hi_row *row, int input) {
  return (size_t)input < strlen(row->inputs) && toupper((unsigned char)row->inputs[input]) == 'V';
}

/* The first device in order of preference that can; `preferred` and `reason` say why it is not what was hoped for. */
static helio_status try_all(const hi_call *call, const char *preferred, const char *reason, choice *result) {
  char first_reason[600] = "";
  int count;
  hi_device *const *devices = hi_devices(&count), *first = hi_device_first();
  for (int i = 0; i < count; i++) {
    if (hi_device_lost(devices[i]) && devices[i] != first) continue;
    helio_status status = try_device(call, devices[i], result);
    if (!status) {
      result->elsewhere = preferred || devices[i] != first;
      if (!result->elsewhere) return HELIO_OK;
      status = hi_placement_elsewhere(call->row, devices[i], preferred ? preferred : first->name,
                                      preferred ? reason : first_reason);
      if (status) hi_plan_release(result->plan);
      return status;
    }
    if (status != HELIO_NOT_SUPPORTED) return status;
    if (devices[i] == first) snprintf(first_reason, sizeof first_reason, "%s", hi_reason(status));
  }
  return hi_fail(HELIO_NOT_SUPPORTED, "no device can run %s: %s", call->row->info.label,
                 reason ? reason : first_reason);
}

static helio_status choose(const hi_call *call, choice *result) {
  hi_request request = hi_placement_request();
  if (call->row->inputs[0] == 'V') { /* what is written stays where it is, whatever scope the caller is in */
    request.named = true;
    request.device = call->inputs[0]->device;
  }
  if (!request.named) return try_all(call, NULL, NULL, result);
  if (!request.device) {
    char wanted[HI_NAME_LENGTH];
    if (!hi_placement_soft()) return hi_device_unknown(&request.name, false);
    hi_name_print(request.name.kind, request.name.index, wanted);
    return try_all(call, wanted, "there is no such device", result);
  }
  helio_status status = try_device(call, request.device, result);
  if (status != HELIO_NOT_SUPPORTED) return status;
  if (!hi_placement_soft() && !request.lenient && call->row->inputs[0] != 'V') {
    return hi_fail(HELIO_NOT_SUPPORTED, "%s cannot run on %s: %s. With soft placement it would run elsewhere",
                   call->row->info.label, request.device->name, hi_reason(status));
  }
  char reason[600];
  snprintf(reason, sizeof reason, "%s", hi_reason(status));
  return try_all(call, request.device->name, reason, result);
}

/* Fills the places of inputs, copied to the device where they are not there. `moved` receives the copies of inputs that
 * the kernel writes. */
static helio_status gather_inputs(const hi_call *call, const choice *where, helio_place *places, helio_tensor **moved) {
  for (int i = 0; i < call->input_count; i++) {
    helio_tensor *input = call->inputs[i];
    places[i] = (helio_place){NULL, 0};
    if (!input) continue;
    if (input->device != where->device) {
      input = hi_tensor_on(input, where->device);
      if (!input) return helio_error_pending();
      hi_placement_copied(hi_tensor_bytes(input), where->elsewhere);
      if (i < HI_MAX_FIXED_INPUTS && writes(call->row, i)) moved[i] = input;
    }
    places[i] = hi_tensor_place(input);
  }
  return HELIO_OK;
}

static helio_status make_outputs(const hi_call *call, const choice *where, helio_place *places,
                                 helio_tensor **outputs) {
  for (int i = 0; call->row->outputs[i]; i++) {
    const hi_output *output = &call->outputs[i];
    places[call->input_count + i] = (helio_place){NULL, 0};
    if (call->no_outputs >> i & 1) continue;
    outputs[i] = hi_tensor_new(where->device, output->type, &output->shape, call->row->info.label);
    if (!outputs[i]) return helio_error_pending();
    places[call->input_count + i] = hi_tensor_place(outputs[i]);
  }
  return HELIO_OK;
}

/* What was written elsewhere goes home. */
static helio_status return_moved(const hi_call *call, helio_tensor *const *moved) {
  for (int i = 0; i < call->input_count && i < HI_MAX_FIXED_INPUTS; i++) {
    if (!moved[i]) continue;
    helio_tensor *home = call->inputs[i];
    helio_status status = hi_copy(home->device, hi_tensor_place(home), moved[i]->device, hi_tensor_place(moved[i]),
                                  hi_tensor_bytes(home));
    if (status) return status;
  }
  return HELIO_OK;
}

/* Tapes notice that memory which they keep was written. */
static void count_writes(const hi_call *call) {
  for (int i = 0; i < call->input_count && call->row->inputs[0] == 'V'; i++) {
    if (call->inputs[i] && writes(call->row, i)) atomic_fetch_add(&call->inputs[i]->block->version, 1);
  }
}

/* Is anything written at all? */
static bool has_work(const hi_call *call, helio_tensor *const *outputs) {
  for (int i = 0; i < HI_MAX_OUTPUTS; i++) {
    if (outputs[i] && outputs[i]->elements > 0) return true;
  }
  return call->row->inputs[0] == 'V' && call->inputs[0]->elements > 0;
}

/* Copies of inputs are needed for this call alone: they belong to a pool that ends with it. */
static helio_status run_with_inputs(const hi_call *call, const choice *where, helio_place *places, bool work) {
  helio_tensor *moved[HI_MAX_FIXED_INPUTS] = {NULL};
  helio_scope pool = helio_pool_enter();
  helio_status status = gather_inputs(call, where, places, moved);
  if (!status) {
    hi_placement_log(call->row, where->device);
    if (work) status = hi_plan_run(where->plan, where->device, HI_STREAM_COMPUTE, call, places);
    if (!status && work) status = return_moved(call, moved);
  }
  helio_pool_leave(&pool);
  return status;
}

static helio_status run_at(const hi_call *call, const choice *where, helio_place *places, helio_tensor **outputs) {
  helio_status status = make_outputs(call, where, places, outputs);
  return status ? status : run_with_inputs(call, where, places, has_work(call, outputs));
}

helio_status hi_dispatch(hi_call *call, helio_tensor **outputs) {
  helio_place on_stack[ON_STACK], *places = on_stack;
  choice where = {0};
  memset(outputs, 0, HI_MAX_OUTPUTS * sizeof *outputs);
  helio_status status = hi_call_check(call);
  if (!status) status = choose(call, &where);
  if (status) return status;
  size_t count = (size_t)(call->input_count + hi_row_outputs(call->row));
  if (count > ON_STACK) places = malloc(count * sizeof *places);
  status = places ? run_at(call, &where, places, outputs) : hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a call");
  hi_plan_release(where.plan);
  if (places != on_stack) free(places);
  count_writes(call);
  return status ? status : hi_tape_record(call, outputs);
}

helio_tensor *hi_dispatch_one(hi_call *call) {
  helio_tensor *outputs[HI_MAX_OUTPUTS];
  return hi_dispatch(call, outputs) ? NULL : outputs[0];
}

/* ---- in two parts ---- */

helio_status hi_dispatch_prepare(hi_prepared *p) {
  choice where = {0};
  p->call.inputs = p->inputs;
  helio_status status = hi_call_check(&p->call);
  if (!status) status = choose(&p->call, &where);
  if (status) return status;
  p->plan = where.plan;
  p->device = where.device;
  status = gather_inputs(&p->call, &where, p->places, p->moved);
  return status ? status : hi_plan_workspace(p->plan, p->device, HI_STREAM_COMPUTE, &p->workspace);
}

helio_status hi_dispatch_prepared(const hi_prepared *p) {
  helio_status status = HELIO_OK;
  hi_placement_log(p->call.row, p->device);
  if (p->inputs[0]->elements > 0) {
    status = hi_plan_run_in(p->workspace, p->plan, p->device, HI_STREAM_COMPUTE, &p->call, p->places);
    if (!status) status = return_moved(&p->call, p->moved);
  }
  count_writes(&p->call);
  return status;
}

void hi_prepared_end(hi_prepared *p) {
  if (p->plan) hi_plan_release(p->plan);
  hi_block_release(p->workspace);
}

bool hi_runs_where_wanted(hi_call *call) {
  choice where = {0};
  hi_request request = hi_placement_request();
  hi_device *device = request.named ? request.device : hi_device_first();
  if (!device || hi_call_check(call)) return true; /* dispatch will say what is wrong */
  helio_status status = try_device(call, device, &where);
  if (!status) hi_plan_release(where.plan);
  return status != HELIO_NOT_SUPPORTED;
}
