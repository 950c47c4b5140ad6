#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# helio train on the emulated GPU gives the CPU's losses: 40 steps of 32 samples, in file order, of each recipe, on one, two
# and three devices of either vendor, with the vendor's collective, the ring and reduce-to-one, for both widths of a warp
# and all orders of threads. Nothing may be reported by gpusim, and nothing left. HELIO_TEST_TRAININGS=all: every line of
# gpu-trainings.list, not only the first six.
set -u
. "$HELIO_TEST_SOURCE/scripts/trainings.bash"
list=$HELIO_TEST_SOURCE/scripts/gpu-trainings.list
gpusim=$HELIO_TEST_BUILD/tests/gpusim/run
export HELIO_ARENA_DEBUG=1 XDG_CACHE_HOME=$HELIO_TEST_BUILD/tests/gpusim/cache # kernels are compiled once

# --- The list covers what it is to cover ------------------------------------------------------------------------------

awk '
  BEGIN {
    split("linear mnist fashion-mnist reuters/cuda hip/1 2 3/vendor ring reduce-to-one/32 64/1 2 3/up down shuffled", columns, "/")
    for (i = 1; i <= 7; i++) {
      n = split(columns[i], words, " ")
      for (j = 1; j <= n; j++) values[i, words[j]] = 1
    }
  }
  /^#/ || !NF { next }
  NF != 7 { print "line " FNR " has " NF " words, not 7"; bad = 1 }
  {
    lines++
    for (i = 1; i <= 7; i++) {
      if (!((i, $i) in values)) { print "line " FNR ": there is no " $i; bad = 1 }
      if (lines <= 6) early[i, $i] = 1
      for (j = i + 1; j <= 7; j++) pairs[i, $i, j, $j] = 1
    }
  }
  END {
    for (a in values) {
      split(a, x, SUBSEP)
      if (!(a in early)) { print x[2] " is in none of the first six lines"; bad = 1 }
      for (b in values) {
        split(b, y, SUBSEP)
        if (x[1] < y[1] && !((x[1], x[2], y[1], y[2]) in pairs)) { print x[2] " never meets " y[2]; bad = 1 }
      }
    }
    if (lines > 40) { print lines " lines, more than 40"; bad = 1 }
    exit bad
  }' "$list" || fail "gpu-trainings.list does not cover its settings"

# --- Trainings --------------------------------------------------------------------------------------------------------

compare() { # recipe, vendor, devices, collective, warp, seed, order
  local recipe=$1 vendor=$2 devices=$3 collective=$4 begin=$SECONDS result
  [ "$collective" != vendor ] || case $vendor in cuda) collective=nccl ;; hip) collective=rccl ;; esac
  reference "$recipe"
  rm -f "$work/log" "$work/report"
  prefix=("$gpusim" "--$vendor" "$devices" --warp "$5" --seed "$6" --order "$7" --report "$work/report" env "HELIO_BACKEND=$vendor")
  train "$work/log" "$recipe" --devices "$(names_of "$vendor" "$devices")" --collective "$collective"
  result=$?
  if [ -s "$work/report" ]; then
    fail "$*: status $result; $(head -n 12 "$work/report")"
  else
    judge "$*" "$recipe" $result $((SECONDS - begin))
  fi
}

count=0
while read -r line; do
  case $line in '' | '#'*) continue ;; esac
  count=$((count + 1))
  [ "${HELIO_TEST_TRAININGS-}" = all ] || [ $count -le 6 ] || break
  # shellcheck disable=SC2086 # words are meant
  compare $line
done <"$list"
exit $status
