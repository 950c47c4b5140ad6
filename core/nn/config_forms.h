/* SPDX-License-Identifier: Apache-2.0 */
/* How each kind of field stands in JSON: its reader and its writer. */
#ifndef HI_CONFIG_FORMS_H
#define HI_CONFIG_FORMS_H

#include "nn/config.h"

typedef struct hi_form {
  /* Writes the option only on success. */
  helio_status (*read)(const hi_field *field, const json_t *value, void *place);

  /* NULL if memory is out, or with the error set. */
  json_t *(*write)(const hi_field *field, const void *place);
} hi_form;

/* config_numbers.c */
extern const hi_form hi_form_int, hi_form_int64, hi_form_real, hi_form_flag, hi_form_seed;
extern const hi_form hi_form_pair, hi_form_borders, hi_form_shape, hi_form_batch_shape, hi_form_axes;

/* config_objects.c */
extern const hi_form hi_form_padding, hi_form_interpolation, hi_form_name, hi_form_fixed;
extern const hi_form hi_form_activation, hi_form_type, hi_form_input_type, hi_form_initializer, hi_form_regularizer;

/* "expected …, got …" */
helio_status hi_form_refuse(helio_status status, const char *expected, const json_t *value);

#endif
