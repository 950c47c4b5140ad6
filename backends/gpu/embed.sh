#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints a C file that has the kernel texts of the files given as strings, by their names without folder and ending.
set -eu
cat <<'END'
/* Made by embed.sh from the kernel texts: changes are lost. */
#include "../gpu/text.h"
#pragma GCC diagnostic ignored "-Woverlength-strings"
const gpu_text gpu_texts[] = {
END
for file in "$@"; do
  name=${file##*/}
  printf '{"%s",\n' "${name%.cu}"
  sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$/\\n"/' "$file"
  printf '},\n'
done
printf '{0, 0}};\n'
