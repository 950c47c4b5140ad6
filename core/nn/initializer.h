/* SPDX-License-Identifier: Apache-2.0 */
/* Starting values of variables. */
#ifndef HI_INITIALIZER_H
#define HI_INITIALIZER_H

#include <helio/helio.h>

#include "tensor/seed.h"

/* Draws a starting value on the host and hands it to the placement's device. The numbers follow from the name and from
 * how many values of that name were drawn since the seed was set. NULL with the error set. */
helio_tensor *hi_initialize(const helio_initializer *initializer, const char *name, helio_type type,
                            const helio_shape *shape);

/* Through these the names of Keras are read and written: "glorot_uniform" and "GlorotUniform" both give the kind; 0 if
 * there is none of that name. */
helio_initializer_kind hi_initializer_named(const char *name);
const char *hi_initializer_class(helio_initializer_kind kind); /* "GlorotUniform" */

#endif
