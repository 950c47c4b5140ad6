/* SPDX-License-Identifier: Apache-2.0 */
/* The text that stands in front of every kernel text, taken into the library as it is. */
#include "compile.h"

__asm__(".pushsection .rodata\n"
        ".global sim_shim_text\n.hidden sim_shim_text\n"
        "sim_shim_text:\n"
        ".incbin \"" SIM_FOLDER "/core/kernel.h\"\n"
        ".incbin \"" SIM_FOLDER "/core/shim.hpp\"\n"
        ".incbin \"" SIM_FOLDER "/core/shim_math.hpp\"\n"
        ".byte 0\n"
        ".popsection\n");
