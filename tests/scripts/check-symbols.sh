#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libhelio exports helio_ symbols only and needs the C library, jansson and zlib only; a plugin exports its entry and needs nothing of
# libhelio. The library without its plugins is small.
set -eu
nm=${NM:-nm}
nm=${nm%% *}
if [ -n "${HELIO_TEST_SANITIZERS-}" ]; then
  echo "SKIP: sanitizers add symbols and libraries"
  exit 77
fi

bad=0
complain() { # headline, lines
  [ -n "$2" ] || return 0
  printf '%s:\n%s\n' "$1" "$2"
  bad=1
}

# Names alone, without the version that nm appends to them. Nodes of the version script (type A) are no symbols.
defined() { "$nm" -D --defined-only "$1" | awk '$(NF - 1) != "A" { sub(/@.*/, "", $NF); print $NF }'; }
undefined() { "$nm" -D --undefined-only "$1" | awk '{ sub(/@.*/, "", $NF); print $NF }'; }
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
run_paths() { readelf -d "$1" | grep -E '\((RPATH|RUNPATH)\)' || true; }

library=$HELIO_TEST_BUILD/core/.libs/libhelio.so
[ -e "$library" ] || { echo "$library is not there"; exit 1; }
[ -n "$(defined "$library")" ] || complain "$library" "exports nothing"
complain "$library exports" "$(defined "$library" | grep -v '^helio_' || true)"
complain "$library needs" \
  "$(needed "$library" | grep -Ev '^(lib(c|m|dl|pthread|jansson|z)\.so\.[0-9]+|ld-linux.*\.so\.[0-9]+)$' || true)"
most=2000000 # bytes
bytes=$(size "$library" | awk 'NR == 2 { print $1 + $2 }')
[ "$bytes" -lt $most ] || complain "$library" "has $bytes bytes of code and data, over $most"

count=0
for plugin in "$HELIO_TEST_BUILD"/backends/*/.libs/*.so "$HELIO_TEST_BUILD"/collectives/*/.libs/*.so; do
  [ -e "$plugin" ] || continue
  count=$((count + 1))
  [ "$(defined "$plugin")" = helio_plugin_entry ] || complain "$plugin should export helio_plugin_entry alone, not" \
    "$(defined "$plugin")"
  complain "$plugin lacks" "$(undefined "$plugin" | grep '^helio_' || true)"
  complain "$plugin has" "$(run_paths "$plugin")"
done
[ $count -gt 0 ] || complain "$HELIO_TEST_BUILD/backends" "no plugin found"

[ $bad -ne 0 ] || echo "libhelio and $count plugin(s) export and need what they should"
exit $bad
