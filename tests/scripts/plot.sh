#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pictures of trainings show what they should: plot.py draws histories that never were and reads the pictures like a
# person, by the numbers beside their axes. Once more where a comma stands in numbers.
set -eu
draw=$HELIO_TEST_BUILD/tests/tools/draw_plot
python3 -c '' 2>/dev/null || { echo "SKIP: python3 is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 "$HELIO_TEST_SOURCE/scripts/plot.py" "$draw" "$work/plain"

# A locale with a decimal comma; those of the system may have none.
mkdir "$work/locales"
if localedef -i de_DE -f UTF-8 "$work/locales/de_DE.UTF-8" >"$work/localedef" 2>&1; then
  comma=(env "LOCPATH=$work/locales" LC_ALL=de_DE.UTF-8) # a shell that is running may not look at LOCPATH again
  [ "$("${comma[@]}" printf '%.1f' 0,5 2>&1)" = 0,5 ] || { echo "the locale that was made has no decimal comma"; exit 1; }
  "${comma[@]}" python3 "$HELIO_TEST_SOURCE/scripts/plot.py" "$draw" "$work/comma"
  diff -r "$work/plain" "$work/comma" || { echo "pictures depend on the locale"; exit 1; }
else
  echo "SKIP: localedef cannot make a locale with a decimal comma here"
fi
