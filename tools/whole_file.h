/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are written whole or not at all: under another name in the same folder, which takes the place of the old
 * file, if there is one, when all of it is on disk. As the library writes its own (core/data/replacement.h), with texts
 * for messages. */
#ifndef WHOLE_FILE_H
#define WHOLE_FILE_H

#include <stddef.h>

/* NULL, or why it could not be written (a text that lives until the next call). Through a symbolic link the file that
 * it leads to is replaced, if it leads to one; who might read the old file may read the new one. */
const char *whole_file_write(const char *path, const char *data, size_t bytes);

/* The same answer before there is anything to write, for who would learn of an unwritable folder only after hours. */
const char *whole_file_check(const char *path);

#endif
