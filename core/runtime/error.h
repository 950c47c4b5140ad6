/* SPDX-License-Identifier: Apache-2.0 */
/* The thread's pending error, and the reasons that plugins give. */
#ifndef HI_ERROR_H
#define HI_ERROR_H

#include <helio/helio.h>
#include <stdarg.h>

/* Begins a call of the public interface: names it for errors and starts the library if need be. A status other than
 * HELIO_OK means that the call must do nothing: an error is pending, or starting failed. */
helio_status hi_enter(const char *function);

/* The same for calls that work without a started library. */
helio_status hi_enter_unstarted(const char *function);

/* The same for calls that release something, which work while an error is pending too: only names the call. */
void hi_enter_release(const char *function);

/* Makes an error pending, unless one is, and returns the status of the one that is pending then. */
helio_status hi_fail(helio_status status, const char *format, ...) HELIO_PRINTF(2, 3);

/* Puts text before the pending error's message, such as the name of the layer that an operation failed in. Does nothing
 * if none is pending. */
void hi_error_prefix(const char *format, ...) HELIO_PRINTF(1, 2);

/* Whatever call inside it has failed, to the program it is this one that did. Does nothing if no error is pending. */
void hi_error_blame(const char *function);

/* What a plugin said of its last failure on this thread is kept apart from the pending error, because a refusal is not
 * an error where another device can do the work. */
void hi_reason_set(const char *format, va_list arguments) HELIO_PRINTF(1, 0);
void hi_reason_say(const char *format, ...) HELIO_PRINTF(1, 2);
void hi_reason_clear(void);

/* For services that a plugin calls, where `status` is what came of it: a failure's pending error becomes the reason and
 * is pending no longer, because the thread may be the plugin's own, where nobody would ever take it. Returns the
 * error's status, `status` if none is pending. */
helio_status hi_error_as_reason(helio_status status);

/* The plugin's words; the status' own text if it said nothing. */
const char *hi_reason(helio_status status);

#endif
