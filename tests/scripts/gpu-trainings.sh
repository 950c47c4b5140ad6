#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# helio train on the emulated GPU gives the CPU's losses: 40 steps of 32 samples, in file order, of each recipe, on one, two
# and three devices of either vendor, with the vendor's collective, the ring and reduce-to-one, for both widths of a warp
# and all orders of threads. Nothing may be reported by gpusim, and nothing left. HELIO_TEST_TRAININGS=all: every line of
# gpu-trainings.list, not only the first six.
set -u
list=$HELIO_TEST_SOURCE/scripts/gpu-trainings.list
helio=$HELIO_TEST_BUILD/tools/helio
gpusim=$HELIO_TEST_BUILD/tests/gpusim/run
small=$HELIO_TEST_SOURCE/golden/train/traces # the real sets' form, 1,280 samples each
[ -x "$helio" ] || { echo "the command was not built"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work/home HELIO_ARENA_DEBUG=1 HELIO_LOG=warning
mkdir "$HOME"
unset HELIO_DATA_DIR HELIO_LOGICAL_DEVICES HELIO_SEED HELIO_PLUGIN_PATH XDG_CACHE_HOME
status=0

fail() {
  echo "FAILED   $1"
  status=1
}

# --- The list covers what it is to cover ------------------------------------------------------------------------------

awk '
  /^#/ || !NF { next }
  NF != 7 { print "line " FNR " has " NF " words, not 7"; bad = 1 }
  {
    lines++
    for (i = 1; i <= 7; i++) {
      values[i, $i] = 1
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

train() { # log, recipe, options…
  local log=$1 recipe=$2
  shift 2
  [ "$recipe" = linear ] || set -- --data "$small" "$@"
  "${prefix[@]}" "$helio" train "$recipe" --batch 32 --steps 40 --no-shuffle --seed 5 --log "$log" --quiet "$@" >"$work/out" 2>&1
}

losses() { sed -n 's/^{"step": *[0-9]*, *"loss": *\([^,]*\),.*/\1/p' "$1"; }

# The largest difference of two columns of losses, by the largest of the second.
difference() {
  paste -d' ' "$1" "$2" | awk '
    function size(x) { return x < 0 ? -x : x }
    NF != 2 || $1 != $1 + 0 || $2 != $2 + 0 { broken = 1 }
    { d = size($1 - $2); if (d > most) most = d; if (size($2) > scale) scale = size($2); n++ }
    END { if (broken || n != 40) print "none: " n + 0 " losses"; else printf "%.1e\n", most / scale }'
}

# What the CPU gives, once for each recipe.
reference() { # recipe
  [ -e "$work/$1.cpu" ] && return
  prefix=(env HELIO_BACKEND=cpu)
  train "$work/log" "$1" || fail "$1 on the CPU: $(tail -n 3 "$work/out")"
  losses "$work/log" >"$work/$1.cpu"
}

names_of() { # vendor, count
  local i names=
  for ((i = 0; i < $2; i++)); do names=$names${names:+,}$1:$i; done
  echo "$names"
}

compare() { # recipe, vendor, devices, collective, warp, seed, order
  local recipe=$1 vendor=$2 devices=$3 collective=$4 name="$*" begin=$SECONDS result answer
  [ "$collective" != vendor ] || case $vendor in cuda) collective=nccl ;; hip) collective=rccl ;; esac
  reference "$recipe"
  rm -f "$work/log" "$work/report"
  prefix=("$gpusim" "--$vendor" "$devices" --warp "$5" --seed "$6" --order "$7" --report "$work/report" env "HELIO_BACKEND=$vendor")
  train "$work/log" "$recipe" --devices "$(names_of "$vendor" "$devices")" --collective "$collective"
  result=$?
  losses "$work/log" >"$work/gpu" 2>/dev/null
  answer=$(difference "$work/gpu" "$work/$recipe.cpu")
  if [ $result -ne 0 ] || [ -s "$work/report" ]; then
    fail "$name: status $result; $(cat "$work/report" "$work/out" 2>/dev/null | head -n 12)"
  elif ! awk -v d="$answer" 'BEGIN { exit !(d ~ /^[0-9]/ && d + 0 <= 1e-4) }'; then
    fail "$name: losses differ by $answer"
  else
    echo "ok       $name: losses differ by $answer, $((SECONDS - begin)) s"
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
