/* SPDX-License-Identifier: Apache-2.0 */
/* The models of golden/nn that Keras wrote as JSON. */
#ifndef HELIO_TEST_ARCHITECTURES_H
#define HELIO_TEST_ARCHITECTURES_H

#include "golden.h"

static inline const char *text_in(const json_t *description, const char *key) {
  const char *text = json_string_value(json_object_get(description, key));
  if (!text) fail_msg("the description has no %s", key);
  return text;
}

static inline helio_model *model_of(const json_t *description) {
  helio_model *model = helio_model_from_json(text_in(description, "json"));
  assert_made(model);
  return model;
}

static inline char *written_of(helio_model *model) {
  char *text = helio_model_to_json(model);
  assert_made(text);
  return text;
}

/* Calls a function for each case that has weights, with the model that was made of its JSON. */
typedef void visit_case(golden *file, const char *name, const json_t *description, helio_model *model);

static inline void for_each_case(const char *category, visit_case *visit) {
  golden *file = golden_open(category);
  json_t *order = golden_json(file, "order");
  for (size_t i = 0; i < json_array_size(order); i++) {
    const char *name = json_string_value(json_array_get(order, i));
    json_t *description = golden_json(file, name);
    HELIO_POOL {
      helio_model *model = json_object_get(description, "weights") ? model_of(description) : NULL;
      if (model) visit(file, name, description, model);
      helio_release(model);
    }
    json_decref(description);
  }
  json_decref(order);
  golden_close(file);
}

#endif
