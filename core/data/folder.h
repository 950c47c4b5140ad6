/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HI_FOLDER_H
#define HI_FOLDER_H

#include <helio/helio.h>

/* Makes the folder and those that lead to it, as far as they are not there, and brings their names to disk. */
helio_status hi_folder_make(const char *folder);

#endif
