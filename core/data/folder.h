/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HI_FOLDER_H
#define HI_FOLDER_H

#include <helio/helio.h>

#include "data/folders.h"

/* hi_folders_make() with the error set, and for all whom the umask lets. *made, 0 on failure, is for
 * hi_folders_remove_empty(). */
helio_status hi_folder_make(const char *folder, int *made);

#endif
