/* SPDX-License-Identifier: Apache-2.0 */
#include "train/callback.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/options.h"
#include "runtime/error.h"

static void end(void *object) {
  helio_callback *callback = object;
  if (callback->options.release) callback->options.release(callback->options.user);
  free((char *)callback->options.name);
  free(callback);
}

helio_callback *helio_callback_with(const helio_callback_options *given) {
  helio_callback_options o;
  if (!hi_options_enter("helio_callback", &o, sizeof o, given)) return NULL;
  char *name = o.name ? strdup(o.name) : NULL;
  if (o.name && !name) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of a callback");
    return NULL;
  }
  helio_callback *callback = hi_object_new(sizeof *callback, end, "a callback");
  if (!callback) {
    free(name);
    return NULL;
  }
  callback->options = o;
  callback->options.name = name;
  return callback;
}

void *hi_callback_user(size_t bytes) {
  void *user = calloc(1, bytes);
  if (!user) hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a callback");
  return user;
}

char *hi_callback_path(const char *path) {
  char *copy = path && *path ? strdup(path) : NULL;
  if (!path || !*path) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the path is %s", path ? "\"\"" : "NULL");
  } else if (!copy) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a path");
  }
  return copy;
}

char *hi_callback_name(const char *kind, const char *detail) {
  char *name = NULL;
  if (asprintf(&name, "%s:%s", kind, detail) >= 0) return name;
  hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of a callback");
  return NULL;
}

helio_status hi_callbacks_add(hi_callbacks *callbacks, helio_callback *const *list, int most) {
  for (int i = 0; i < most && list[i]; i++) {
    if (callbacks->count == HI_MOST_TOLD) return hi_fail(HELIO_INVALID_ARGUMENT, "there are too many callbacks");
    hi_hold(list[i]);
    callbacks->list[callbacks->count++] = list[i];
  }
  return HELIO_OK;
}

void hi_callbacks_end(hi_callbacks *callbacks) {
  for (int i = 0; i < callbacks->count; i++) hi_drop(callbacks->list[i]);
  callbacks->count = 0;
}

/* A callback that fails without having said why is named by what it was told. */
static helio_status call(const helio_callback *callback, size_t offset, const char *when, helio_training *training) {
  helio_callback_function function;
  memcpy(&function, (const char *)&callback->options + offset, sizeof function);
  if (!function) return HELIO_OK;
  helio_status status = function(callback->options.user, training);
  if (status && !helio_error_pending()) {
    hi_fail(status, "a callback's %s returned %s", when, helio_status_name(status));
  }
  return helio_error_pending();
}

helio_status hi_callbacks_tell(const hi_callbacks *callbacks, size_t offset, const char *when,
                               helio_training *training) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < callbacks->count && !status; i++) status = call(callbacks->list[i], offset, when, training);
  return status;
}

helio_status hi_callbacks_tell_end(const hi_callbacks *callbacks, helio_training *training) {
  helio_error first = {.status = HELIO_OK}, other;
  for (int i = 0; i < callbacks->count; i++) {
    helio_status status = call(callbacks->list[i], offsetof(helio_callback_options, train_end), "train_end", training);
    if (status) helio_error_take(first.status ? &other : &first);
  }
  return first.status ? hi_fail(first.status, "%s", first.message) : HELIO_OK;
}
