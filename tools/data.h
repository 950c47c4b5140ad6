/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands `helio data …` share. */
#ifndef DATA_H
#define DATA_H

#include "command.h"

/* The known sets, for shells to offer; tests/scripts/completion.sh compares them with what the library knows. */
#define DATA_WORDS "mnist|fashion-mnist|reuters|imdb"

extern const command command_data_list;
extern const command command_data_get;
extern const command command_data_show;

/* Is this the name of a known set? If not, says so with the nearest one; `kind` is what it might have been, such as
 * "set of data". The exit status. */
int data_check_name(const char *path, const char *kind, const char *name);

/* How many texts a list has that the library gave. */
int data_count(char *const *list);

#endif
