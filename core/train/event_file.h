/* SPDX-License-Identifier: Apache-2.0 */
/* Files that TensorBoard shows: TFRecord frames, each with an Event message of TensorFlow's in it. A reader meanwhile
 * sees whole events, at worst a last one that is cut short. Threads may call all but open and close at once. */
#ifndef HI_EVENT_FILE_H
#define HI_EVENT_FILE_H

#include <helio/helio.h>

typedef struct hi_event_file hi_event_file;

/* A new file events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER in the folder, which is made if need be, with those that
 * lead to it. NULL with the error set. */
hi_event_file *hi_event_file_open(const char *folder);

/* The tag is UTF-8 and not empty; what stands before its first / groups charts. The wall time is in seconds since 1970.
 * The value is kept as float32, as TensorFlow keeps it, and need not be finite. What is refused leaves the file as it
 * was; of a failure to write all later calls tell as well. */
helio_status hi_event_file_scalar(hi_event_file *file, const char *tag, int64_t step, double wall_time, double value);

/* TensorBoard sees all scalars so far. Without it they come in pieces of some thousand. */
helio_status hi_event_file_flush(hi_event_file *file);

/* Flushes and frees, the latter also on failure. NULL is fine. */
helio_status hi_event_file_close(hi_event_file *file);

#endif
