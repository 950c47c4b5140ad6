#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpusim's stand-ins export nothing that the real library of the same soname does not: a program that runs on them would
# find the same names there. Compared with the libraries that configure found (HELIO_TEST_CUDA, HELIO_TEST_ROCM).
set -eu
nm=${NM:-nm}
nm=${nm%% *}
if [ -n "${HELIO_TEST_SANITIZERS-}" ]; then
  echo "SKIP: sanitizers add symbols"
  exit 77
fi

libraries=$HELIO_TEST_BUILD/tests/gpusim/libs
multiarch=$("${CC:-cc}" -print-multiarch 2>/dev/null || true)

# Names alone, without the version that nm appends to them.
defined() { "$nm" -D --defined-only "$1" | awk '$(NF - 1) != "A" { sub(/@.*/, "", $NF); print $NF }' | sort -u; }
soname() { readelf -d "$1" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p'; }

# Where vendors put libraries. The driver belongs to the machine, not to the SDK, which has a stub of it.
folders=()
if [ -n "${HELIO_TEST_CUDA-}" ]; then
  folders+=("$HELIO_TEST_CUDA/lib64" "$HELIO_TEST_CUDA/lib" "$HELIO_TEST_CUDA/lib64/stubs" "$HELIO_TEST_CUDA/lib/stubs")
fi
[ -z "${HELIO_TEST_ROCM-}" ] || folders+=("$HELIO_TEST_ROCM/lib")
folders+=("/usr/lib/$multiarch" /usr/lib64)

# The real library: first one of the same soname, then for HIP the last one before it, which lacks what came later.
find_real() { # soname
  local folder file
  for folder in "${folders[@]}"; do
    for file in "$folder/$1" "$folder/${1%.so.*}.so"; do
      [ -e "$file" ] && [ "$(soname "$file")" = "$1" ] && { echo "$file"; return; }
    done
  done
  [ "$1" != libamdhip64.so.6 ] || find_real libamdhip64.so.5
}

# What a newer library has than the one that was found.
newer_names() { # real library
  case $(soname "$1") in
    libamdhip64.so.5) echo hipGetDevicePropertiesR0600 ;;
  esac
}

bad=0 compared=0
absent=()
for face in "$libraries"/*.so.*; do
  [ -e "$face" ] || { echo "$libraries has no stand-ins"; exit 1; }
  name=${face##*/}
  [ "$(soname "$face")" = "$name" ] || { echo "$name has the soname $(soname "$face")"; bad=1; }
  case $name in
    libcudnn_*) ;; # a part that is there for its name
    *) [ -n "$(defined "$face")" ] || { echo "$name exports nothing"; bad=1; } ;;
  esac
  real=$(find_real "$name")
  if [ -z "$real" ]; then
    absent+=("$name")
    continue
  fi
  surplus=$(comm -23 <(defined "$face") <({ defined "$real"; newer_names "$real"; } | sort -u))
  if [ -n "$surplus" ]; then
    printf '%s exports what %s does not:\n%s\n' "$name" "$real" "$surplus"
    bad=1
  else
    echo "$name: $(defined "$face" | wc -l) names, all of them in $real"
  fi
  compared=$((compared + 1))
done
[ "$bad" = 0 ] || exit 1
if [ "$compared" = 0 ]; then
  echo "SKIP: none of the vendors' libraries is installed: ${absent[*]}"
  exit 77
fi
[ ${#absent[@]} = 0 ] || echo "SKIP: not installed, so not compared: ${absent[*]}"
