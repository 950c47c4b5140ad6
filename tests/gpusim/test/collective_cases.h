/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLECTIVE_CASES_H
#define COLLECTIVE_CASES_H

#include <stdbool.h>

/* Runs a case by its name with four devices of a vendor. 0: all is well; else the process ended with a message. */
int collective_case(const char *name, bool hip);

/* Each file's share of them. */
void numbers_case(void);
void threads_case(void);
void rounding_case(void);
void sum_case(void);
void transfers_case(void);

#endif
