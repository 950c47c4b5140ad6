/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks, and the list of those that a training tells. */
#ifndef HI_CALLBACK_H
#define HI_CALLBACK_H

#include "tensor/object.h"

struct helio_callback {
  hi_object object;
  helio_callback_options options;
};

/* For those who make callbacks: zeros for what one has as its user, and "KIND:DETAIL" as the name of its state, both to
 * be freed. NULL with the error set. */
void *hi_callback_user(size_t bytes);
char *hi_callback_path(const char *path); /* a copy of one that is not empty, likewise */
char *hi_callback_name(const char *kind, const char *detail);

enum { HI_MOST_TOLD = HELIO_MOST_CALLBACKS + 2 };

typedef struct hi_callbacks {
  int count;
  helio_callback *list[HI_MOST_TOLD]; /* references */
} hi_callbacks;

/* Puts those up to the first NULL behind the others. */
helio_status hi_callbacks_add(hi_callbacks *callbacks, helio_callback *const *list, int most);
void hi_callbacks_end(hi_callbacks *callbacks);

/* Tells all of a moment, in their order, until one fails: hi_tell(&callbacks, epoch_end, &training). */
#define hi_tell(callbacks, when, training)                                                                             \
  hi_callbacks_tell(callbacks, offsetof(helio_callback_options, when), #when, training)
helio_status hi_callbacks_tell(const hi_callbacks *callbacks, size_t offset, const char *when,
                               helio_training *training);

/* Tells all of the end, also behind one that fails; the first failure is the result. */
helio_status hi_callbacks_tell_end(const hi_callbacks *callbacks, helio_training *training);

#endif
