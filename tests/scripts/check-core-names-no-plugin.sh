#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The core knows no vendor and no plugin: no such name in its code (comments may explain), no include from a plugin.
set -eu
cd "$HELIO_TEST_SOURCE/.."

# C without comments. Lines keep their numbers.
without_comments() {
  awk '
    { line = $0; out = "" }
    { while (line != "") {
        if (inside) {
          at = index(line, "*/")
          if (!at) { line = ""; break }
          line = substr(line, at + 2); inside = 0
        } else {
          at = index(line, "/*"); end = index(line, "//")
          if (end && (!at || end < at)) { out = out substr(line, 1, end - 1); line = ""; break }
          if (!at) { out = out line; break }
          out = out substr(line, 1, at - 1); line = substr(line, at + 2); inside = 1
        }
      }
      print FILENAME ":" FNR ":" out }
  ' "$1"
}

mapfile -t files < <(find core -path core/include -prune -o -name '*.[ch]' -type f -print | LC_ALL=C sort)
[ ${#files[@]} -gt 0 ] || { echo "no sources found in $PWD/core"; exit 1; }

bad=0
code=$(for file in "${files[@]}"; do without_comments "$file"; done)
names='cuda|cudnn|cublas|nccl|rccl|rocm|rocblas|miopen|nvrtc|openblas|opencl|[^a-z]hip([^a-z]|$)|[^A-Za-z]hip[A-Z]'
if grep -E -i "^[^:]*:[0-9]+:.*($names)" <<<"$code"; then
  echo "the core must not name a vendor or a plugin"
  bad=1
fi
if grep -E '^[^:]*:[0-9]+:[[:space:]]*#[[:space:]]*include.*(backends|collectives|plugins)/' <<<"$code"; then
  echo "the core must not include from a plugin"
  bad=1
fi
[ $bad -ne 0 ] || echo "${#files[@]} files name no plugin"
exit $bad
