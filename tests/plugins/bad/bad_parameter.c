/* SPDX-License-Identifier: Apache-2.0 */
/* Bad: a parameter without help. */
#define MINIMAL_NAME       "bad-parameter"
#define MINIMAL_PARAMETERS parameters
#define MINIMAL_OWN_ENTRY
#include "minimal.h"

static const helio_parameter silent = {
    .size = sizeof(helio_parameter),
    .name = "HELIO_BAD_PARAMETER_SILENT",
    .kind = HELIO_PARAMETER_INTEGER,
    .default_value = "1",
};

static const helio_parameter *const parameters[] = {&silent, NULL};

const helio_plugin helio_plugin_entry = MINIMAL_ENTRY;
