/* SPDX-License-Identifier: Apache-2.0 */
/* The log: the only way in which the library says anything by itself. */
#ifndef HI_LOG_H
#define HI_LOG_H

#include <helio/helio.h>
#include <stdarg.h>

/* One line, "WARNING:helio:…". */
void hi_log(helio_log_level level, const char *format, ...) HELIO_PRINTF(2, 3);

/* A plugin's line, "WARNING:helio:cpu: …". */
void hi_log_plugin(helio_log_level level, const char *plugin, const char *format, va_list arguments) HELIO_PRINTF(3, 0);

/* A line of level INFO without the prefix, as placement lines have none. */
void hi_log_bare(const char *format, ...) HELIO_PRINTF(1, 2);

/* Sets the level unless the program has set one by helio_set_log_level(). */
void hi_log_default_level(helio_log_level level);

#endif
