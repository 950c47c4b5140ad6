/* SPDX-License-Identifier: Apache-2.0 */
/* Variables: values that stay and are assigned. */
#ifndef HI_VARIABLE_H
#define HI_VARIABLE_H

#include "tensor/object.h"

struct helio_variable {
  hi_object object;
  char *name;
  bool trainable;
  helio_tensor *tensor; /* the value: always this tensor, assignments write into its memory */
};

/* A variable that takes over a value, which nothing else may use; owned by the innermost pool. */
helio_variable *hi_variable_new(const char *name, helio_tensor *value, bool trainable);

/* The value, without tapes being told. */
helio_tensor *hi_variable_tensor(const helio_variable *variable);

/* Writes host data of the variable's size into it. */
helio_status hi_variable_write(helio_variable *variable, const void *data);

/* Counts changes of which variables there are and which of them are trainable: lists made before are to be made anew.
 */
unsigned hi_variables_generation(void);
void hi_variables_changed(void);

/* Sets the error and returns false if the variable is NULL or has outlived helio_shutdown(). */
bool hi_variable_usable(const helio_variable *variable);

#endif
