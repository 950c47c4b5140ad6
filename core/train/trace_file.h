/* SPDX-License-Identifier: Apache-2.0 */
/* Files that chrome://tracing and Perfetto show: the array form of the trace event format, JSON that is whole after
 * each flush. So a program that dies, or finds the disk full, leaves what happened until then, which tells why: it is
 * not thrown away for not being all, and nothing that cannot be read is left. Threads may call all but open and close
 * at once.
 *
 * A call that is refused leaves the file as it was. The first failure to write ends the file, is an error of that call
 * and of all later ones, and so of close too; if not even the first event could be written, there is no file. Names are
 * UTF-8; times are in seconds from any one moment on. */
#ifndef HI_TRACE_FILE_H
#define HI_TRACE_FILE_H

#include <helio/helio.h>

typedef struct hi_trace_file hi_trace_file;

/* Replaces a file that is there. `process` is the name that viewers show above all tracks. NULL with the error set. */
hi_trace_file *hi_trace_file_open(const char *path, const char *process);

/* Names a track, a row of spans. Tracks are numbers from 0 and need no name. */
helio_status hi_trace_file_name(hi_trace_file *file, int track, const char *name);

/* Spans of one track may lie within each other, but not overlap in part. Neither number may be negative. */
helio_status hi_trace_file_span(hi_trace_file *file, int track, const char *name, double start_seconds, double seconds);

/* From that time on the counter has this value. One that is not finite, for which JSON has no number, is left out. */
helio_status hi_trace_file_counter(hi_trace_file *file, const char *name, double at_seconds, double value);

/* All so far is in the file, even if the program dies. */
helio_status hi_trace_file_flush(hi_trace_file *file);

/* Flushes and frees, the latter also on failure. NULL is fine. */
helio_status hi_trace_file_close(hi_trace_file *file);

#endif
