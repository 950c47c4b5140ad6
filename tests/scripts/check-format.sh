#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every C file is as .clang-format says. Versions of clang-format differ in details, so only the one in use counts.
set -eu
version=14
cd "$HELIO_TEST_SOURCE/.."

formatter=
for candidate in "clang-format-$version" clang-format; do
  if "$candidate" --version 2>/dev/null | grep -q "version $version\."; then formatter=$candidate; break; fi
done
if [ -z "$formatter" ]; then
  echo "SKIP: clang-format $version is not installed"
  exit 77
fi

mapfile -t files < <(find core backends collectives plugins tools examples tests -name '*.[ch]' -type f | LC_ALL=C sort)
[ ${#files[@]} -gt 0 ] || { echo "no C files found in $PWD"; exit 1; }
"$formatter" --dry-run -Werror "${files[@]}" >"$HELIO_TEST_BUILD/tests/logs/clang-format.log" 2>&1 || {
  echo "not formatted; to do it: $formatter -i FILE…"
  sed -n 's/^\([^: ]*\):[0-9]*:.*error:.*/\1/p' "$HELIO_TEST_BUILD/tests/logs/clang-format.log" | LC_ALL=C sort | uniq -c
  exit 1
}
echo "${#files[@]} files are well formatted"
