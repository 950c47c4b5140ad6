/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that must not meet: see turn_begin of helio_host. */
#ifndef HI_TURNS_H
#define HI_TURNS_H

#include <helio/plugin.h>

void hi_turn_begin(helio_turn turn);
void hi_turn_end(helio_turn turn);

#endif
