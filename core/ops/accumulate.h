/* SPDX-License-Identifier: Apache-2.0 */
/* The host table's arithmetic for collectives (plugin.h). The host is not looked at. */
#ifndef HI_ACCUMULATE_H
#define HI_ACCUMULATE_H

#include <helio/plugin.h>

helio_status hi_host_accumulate(const helio_host *host, const helio_member *member, const helio_accumulation *what);

#endif
