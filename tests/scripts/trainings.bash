# SPDX-License-Identifier: Apache-2.0
# For scripts that compare trainings by helio train with the CPU's: 40 steps of 32 samples, in file order. Sourced; sets
# $helio, $work and $status, and leaves with 77 where there is no command.
helio=$HELIO_TEST_BUILD/tools/helio
small=$HELIO_TEST_SOURCE/golden/train/traces # the real sets' form, 1,280 samples each
[ -x "$helio" ] || { echo "SKIP: the command was not built"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work/home HELIO_LOG=warning
mkdir "$HOME"
unset HELIO_DATA_DIR HELIO_LOGICAL_DEVICES HELIO_SEED HELIO_PLUGIN_PATH XDG_CACHE_HOME
status=0

fail() {
  echo "FAILED   $1"
  status=1
}

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

# Whether the losses in $work/log, of a training that ended so, are those of the CPU.
judge() { # name, recipe, exit status, seconds
  local answer
  losses "$work/log" >"$work/losses" 2>/dev/null
  answer=$(difference "$work/losses" "$work/$2.cpu")
  if [ "$3" -ne 0 ]; then
    fail "$1: status $3; $(head -n 12 "$work/out")"
  elif ! awk -v d="$answer" 'BEGIN { exit !(d ~ /^[0-9]/ && d + 0 <= 1e-4) }'; then
    fail "$1: losses differ by $answer"
  else
    echo "ok       $1: losses differ by $answer, $4 s"
  fi
}
