/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <string.h>

static const uint8_t type_sizes[] = {
#define TYPE_SIZE(name, value, text, bytes) [value] = bytes,
    HELIO_TYPE_LIST(TYPE_SIZE)
#undef TYPE_SIZE
};

static const char *const type_names[] = {
#define TYPE_NAME(name, value, text, bytes) [value] = text,
    HELIO_TYPE_LIST(TYPE_NAME)
#undef TYPE_NAME
};

static const char *const operation_names[] = {
#define OPERATION_NAME(name, value) [value] = #name,
    HELIO_OPERATION_LIST(OPERATION_NAME)
#undef OPERATION_NAME
};

size_t call_type_size(uint32_t type) {
  return type < sizeof type_sizes ? type_sizes[type] : 0;
}

const char *call_type_name(uint32_t type) {
  return call_type_size(type) == 0 ? "an unknown type" : type_names[type];
}

size_t call_element_count(const helio_argument *argument) {
  size_t count = 1;
  for (uint32_t i = 0; i < argument->rank; i++) count *= (size_t)argument->extent[i];
  return count;
}

bool call_same_shape(const helio_argument *a, const helio_argument *b) {
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++) {
    if (a->extent[i] != b->extent[i]) return false;
  }
  return true;
}

/* An argument is understood if its size covers the axes it has and nothing unknown follows. */
static bool argument_understood(const helio_argument *argument) {
  if (argument->size < HELIO_STRUCT_SIZE(helio_argument, rank) || argument->rank > HELIO_MAX_RANK) return false;
  if (argument->size < offsetof(helio_argument, extent) + argument->rank * sizeof argument->extent[0]) return false;
  for (uint32_t i = 0; i < argument->rank; i++) {
    if (argument->extent[i] < 0) return false;
  }
  return helio_struct_fits(argument, sizeof *argument);
}

static uint32_t types_of(const call_signature *signature, char letter) {
  switch (letter) {
  case 'I':
  case 'i':
    return HELIO_TYPE_BIT(HELIO_INT32) | HELIO_TYPE_BIT(HELIO_INT64);
  case 'B':
    return HELIO_TYPE_BIT(HELIO_BOOL);
  case 'W':
  case 'w':
    return HELIO_TYPE_BIT(HELIO_UINT8) | HELIO_TYPE_BIT(HELIO_INT32);
  case '?':
    return CALL_ALL_TYPES;
  default:
    return signature->types;
  }
}

static helio_status check_argument(const helio_host *host, const char *where, const helio_call *call, uint32_t index,
                                   char letter, const call_signature *signature) {
  const char *name = operation_names[call->operation];
  const helio_argument *argument = call->arguments[index], *first = call->arguments[0];
  if (argument == NULL && letter >= 'a' && letter <= 'z') return HELIO_OK;
  if (argument == NULL) return host->fail(host, HELIO_INVALID_ARGUMENT, "%s: argument %u is missing", name, index);
  if (!argument_understood(argument))
    return host->fail(host, HELIO_NOT_SUPPORTED, "%s: argument %u is of a kind that is unknown here", name, index);
  if (call_type_size(argument->type) == 0 || (types_of(signature, letter) & HELIO_TYPE_BIT(argument->type)) == 0)
    return host->fail(host, HELIO_NOT_SUPPORTED, "%s in %s has no kernel on %s", name, call_type_name(argument->type),
                      where);
  if (strchr("TtVv", letter) != NULL && argument->type != first->type)
    return host->fail(host, HELIO_NOT_SUPPORTED, "%s of %s and %s has no kernel on %s", name,
                      call_type_name(first->type), call_type_name(argument->type), where);
  return HELIO_OK;
}

helio_status call_check(const helio_host *host, const char *where, const helio_call *call,
                        const helio_plan_answer *answer, const call_signature *signature) {
  if (call->size < HELIO_STRUCT_SIZE(helio_call, arguments) || !helio_struct_fits(call, sizeof *call))
    return host->fail(host, HELIO_NOT_SUPPORTED, "the call is of a kind that is unknown here");
  if (answer->size < HELIO_STRUCT_SIZE(helio_plan_answer, workspace))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "there is no room for the plan's answer");
  uint32_t inputs = (uint32_t)strcspn(signature->inputs, "*"), outputs = (uint32_t)strlen(signature->outputs);
  bool any_number = signature->inputs[inputs] == '*';
  if (call->input_count < inputs || (!any_number && call->input_count > inputs) || call->output_count != outputs)
    return host->fail(host, HELIO_NOT_SUPPORTED, "%s with %u inputs and %u outputs has no kernel on %s",
                      operation_names[call->operation], call->input_count, call->output_count, where);
  for (uint32_t i = 0; i < call->input_count + outputs; i++) {
    char letter = i >= call->input_count ? signature->outputs[i - call->input_count]
                                         : signature->inputs[i < inputs ? i : inputs - 1];
    helio_status status = check_argument(host, where, call, i, letter, signature);
    if (status != HELIO_OK) return status;
  }
  return HELIO_OK;
}

helio_status call_attributes(const helio_host *host, const helio_call *call, void *known, size_t size) {
  const char *name = operation_names[call->operation];
  const void *given = call->size < HELIO_STRUCT_SIZE(helio_call, attributes) ? NULL : call->attributes;
  if (given == NULL) return host->fail(host, HELIO_INVALID_ARGUMENT, "%s: attributes are missing", name);
  size_t given_size = *(const size_t *)given;
  if (given_size < sizeof(size_t) || !helio_struct_fits(given, size))
    return host->fail(host, HELIO_NOT_SUPPORTED, "%s: an attribute is set that is unknown here", name);
  memset(known, 0, size);
  memcpy(known, given, given_size < size ? given_size : size);
  return HELIO_OK;
}

const char *call_operation_name(uint32_t operation) {
  return operation_names[operation];
}

helio_status run_refuse(const helio_host *host) {
  return host->fail(host, HELIO_NOT_SUPPORTED, "the run is of a kind that is unknown here");
}
