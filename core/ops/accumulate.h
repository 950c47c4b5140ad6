/* SPDX-License-Identifier: Apache-2.0 */
/* The host table's arithmetic for collectives (plugin.h). */
#ifndef HI_ACCUMULATE_H
#define HI_ACCUMULATE_H

#include <helio/plugin.h>

helio_status hi_host_accumulate(const helio_host *host, const helio_member *member, helio_stream *stream,
                                helio_place into, helio_place from, helio_type type, size_t count, double scale);

#endif
