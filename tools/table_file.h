/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as all commands take them: whether there is a line of names, and which column the labels are. */
#ifndef TABLE_FILE_H
#define TABLE_FILE_H

#include <helio/helio.h>

bool table_file_is(const char *file); /* by its name, .csv or .tsv */

/* One whose first line has only numbers begins with a row, not with names. NULL with the error pending. */
helio_csv *table_file_open(const char *file, bool no_header);

/* False: its columns are called by their numbers. */
bool table_file_has_names(const helio_csv *csv);

/* The column of labels that is called so, −1: none is. */
int table_file_labels(const helio_csv *csv);

#endif
