/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HI_FOLDER_H
#define HI_FOLDER_H

#include <helio/helio.h>

/* Makes the folder and those that lead to it, as far as they are not there. What stands in the place of one and is no
 * folder comes up when a file is made in it. */
helio_status hi_folder_make(const char *folder);

#endif
