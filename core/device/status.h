/* SPDX-License-Identifier: Apache-2.0 */
/* Bad data that kernels meet, and who handed it to them.
 *
 * A kernel tells of bad data by a helio_status_word that is read much later, when the caller is long gone. So a device
 * has many words, and a call gets that of its caller: the word's place says who it was, whatever the backend. */
#ifndef HI_STATUS_H
#define HI_STATUS_H

#include <helio/plugin.h>

struct hi_device;

/* The values that a call accepts are those below `limit`, in words: "index 7 is out of range: the table has 5 rows".
 * The texts are constants. */
typedef struct hi_range {
  const char *operation;   /* "GatherV2"; NULL: the call accepts all values */
  const char *value;       /* "index" */
  const char *has, *units; /* "the table has", "rows" */
  int64_t limit;
} hi_range;

/* Names who makes the calls of this thread from now on, as messages begin with it: "embedding (Embedding)". NULL:
 * nobody. Returns who did so far, for hi_blame_leave(). `name` is not copied and must stay until then. */
const char *hi_blame_enter(const char *name);
void hi_blame_leave(const char *previous);

enum { HI_STATUS_WORDS = 32, HI_BLAME_LENGTH = 128 };

/* Makes the words of a device that is being opened and has its arena; frees those of one that has come to rest. */
helio_status hi_status_open(struct hi_device *device);
void hi_status_close(struct hi_device *device);

/* The number of the word for a call that the thread is about to hand to the stream, given back when it has. Word 0 is
 * everybody's: without a caller, and the only one left where all others are in use. */
int hi_status_take(struct hi_device *device, int stream, const hi_range *range);
void hi_status_return(struct hi_device *device, int word);

/* What the words were at some time. */
typedef struct hi_status_reading {
  uint64_t time;
  int count;
  helio_status_word words[HI_STATUS_WORDS];
} hi_status_reading;

/* Hands the copying of the words to the compute stream, to room for HI_STATUS_WORDS of them; a failure is left to the
 * caller to report. When the stream has come so far, and the words are those of the reading, hi_status_judge() takes
 * what was read for an error if it says so, and clears the words that told of it. */
helio_status hi_status_read(struct hi_device *device, hi_status_reading *reading, helio_status_word *words);
helio_status hi_status_judge(struct hi_device *device, const hi_status_reading *reading);

#endif
