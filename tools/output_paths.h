/* SPDX-License-Identifier: Apache-2.0 */
/* Places that a command will write to, looked at before hours are spent on what is to be written. Each gives the exit
 * status, after a message that names the option. A place of NULL is not asked for. */
#ifndef OUTPUT_PATHS_H
#define OUTPUT_PATHS_H

#include <stdbool.h>

/* Can a file of this name be written: in place, where it is written as it grows, else under another name in its folder?
 */
int output_path_check_file(const char *option, const char *file, bool in_place, const char *path);

/* Can files be written in this folder, which may have to be made? */
int output_path_check_folder(const char *option, const char *folder, const char *path);

/* Is it one place, however it is spelt? */
bool output_path_is_same(const char *one, const char *other);

#endif
