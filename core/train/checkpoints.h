/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints as files: a folder has one safetensors file for each, checkpoint-000000000042.safetensors for step 42. A
 * file has its name only when all of it is on disk, and a checksum says whether it still is what was written. Several
 * processes may use a folder at the same time. What a checkpoint holds is the caller's business. */
#ifndef HI_CHECKPOINTS_H
#define HI_CHECKPOINTS_H

#include "data/safetensors.h"

/* Adds all that the checkpoint shall hold. What it adds without a copy must live until hi_checkpoint_write() returns. A
 * failure ends the writing; its status is passed on. */
typedef helio_status hi_checkpoint_fill(void *user, hi_safetensors_writer *writer);

/* Makes the folder if need be, with those that lead to it, and writes the checkpoint of a step from 0 on; one that the
 * step has already is replaced in one step. After an error the folder's checkpoints are as they were, and no part of
 * the new one is left. (If only the folder could not be brought to disk in the end, the error says so.)
 *
 * If `keep` is not 0, all whole checkpoints but those of the `keep` highest steps are removed then, never the one just
 * written. (Their checksums are looked at for that: those that stay and those that go are read.) A damaged one is not
 * counted, not removed and not overwritten: if the step is its own, it is kept as NAME.damaged. What could not be
 * removed is no error, but a warning in the log; so is a damaged one, of which nobody was told before. So it is with
 * temporary files that killed processes left, which are removed before, see data/replacement.h. */
helio_status hi_checkpoint_write(const char *folder, int64_t step, int keep, hi_checkpoint_fill *fill, void *user);

/* Opens the whole checkpoint of the highest step. NULL without an error if the folder has none or is not there. Each
 * that is damaged or cannot be read is passed over, with a warning in the log that names it and the cause; if that
 * leaves none, it is an error, because nobody wants to start from nothing unawares. `step` is set on success only. No
 * error may be pending before. */
hi_safetensors *hi_checkpoint_open_last(const char *folder, int64_t *step);

#endif
