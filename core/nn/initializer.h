/* SPDX-License-Identifier: Apache-2.0 */
/* Starting values of variables, and the seed that all random numbers follow from. */
#ifndef HI_INITIALIZER_H
#define HI_INITIALIZER_H

#include <helio/helio.h>

/* Takes the seed from the environment. */
void hi_seed_start(void);

/* A key for random numbers that belongs to a name: the same in every process with the same seed. `seed` 0: the one of
 * helio_set_seed(). */
uint64_t hi_seed_key(uint64_t seed, const char *name);

/* Draws a starting value on the host and hands it to the placement's device. The numbers follow from the name and from
 * how many values of that name were drawn since the seed was set. NULL with the error set. */
helio_tensor *hi_initialize(const helio_initializer *initializer, const char *name, helio_type type,
                            const helio_shape *shape);

/* Through these the names of Keras are read and written: "glorot_uniform" and "GlorotUniform" both give the kind; 0 if
 * there is none of that name. */
helio_initializer_kind hi_initializer_named(const char *name);
const char *hi_initializer_class(helio_initializer_kind kind); /* "GlorotUniform" */

#endif
