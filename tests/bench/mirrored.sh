#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training mirrored on two devices that share the cores of a CPU, against one device with all of them and the same global
# batch, by turns; the median of the ratios:
#
#   tests/bench/mirrored.sh [BUILD]      BUILD: the top of the build tree (build)
#
# Fails below LEAST (0.97). PAIRS (9) says how often; what stands in OPTIONS is handed to helio bench training.
set -eu
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:-$here/../../build}" && pwd)
pairs=${PAIRS:-9} least=${LEAST:-0.97}
helio=$build/tools/helio
[ -x "$helio" ] || { echo "$helio is not there: run make first" >&2; exit 2; }

rate() {
  # shellcheck disable=SC2086
  "$helio" bench training --json --replicas "$1" ${OPTIONS-} | sed -n 's/.*"samples_per_second": *\([0-9.e+]*\).*/\1/p'
}

for ((i = 1; i <= pairs; i++)); do
  one=$(rate 1) two=$(rate 2)
  echo "$one $two" | awk '{ printf "one device %.0f samples/s, two %.0f: %.3f\n", $1, $2, $2 / $1 }'
done | tee /dev/stderr | awk -F': ' '{ print $2 }' | sort -g | awk -v least="$least" '
  { ratio[NR] = $1 }
  END {
    median = NR % 2 ? ratio[(NR + 1) / 2] : (ratio[NR / 2] + ratio[NR / 2 + 1]) / 2
    printf "median of %d pairs: %.3f, at least %s is wanted\n", NR, median, least
    exit !(NR > 0 && median >= least)
  }'
