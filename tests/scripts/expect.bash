# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What scripts share that test the command helio: they read this file. It gives $helio, $golden, $small, $work (a folder
# that is removed at the end, with a home of its own) and $failures (how many there were).
helio=$HELIO_TEST_BUILD/tools/helio
if [ ! -x "$helio" ]; then
  echo "SKIP: the command was not built: configure was called with --enable-tool=no, or did not find what it needs"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
golden=$HELIO_TEST_SOURCE/golden
small=$golden/train/traces # the real sets' form, 1,280 samples each
export HOME=$work/home XDG_CACHE_HOME=$work/cache
mkdir "$HOME"

fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# Runs helio with the arguments that follow; leaves its streams in $work/out and $work/err.
expect_status() {
  local expected=$1 status
  shift
  "$helio" "$@" >"$work/out" 2>"$work/err" </dev/null
  status=$?
  [ "$status" -eq "$expected" ] || fail "helio $*: exit status $status, not $expected: $(cat "$work/err")"
}

expect_error() { # status, fixed text, arguments…
  expect_status "$1" "${@:3}"
  grep -qF -- "$2" "$work/err" || fail "helio ${*:3}: no \"$2\" in: $(cat "$work/err")"
  [ ! -s "$work/out" ] || fail "helio ${*:3}: an error, but it printed $(head -c 200 "$work/out")"
}

expect_output() { # fixed text
  grep -qF -- "$1" "$work/out" || fail "no \"$1\" in: $(head -c 2000 "$work/out")"
}

# Python reads JSON strictly; without it at least the ends must fit. It asks $1, an expression of `data`, if there is one.
expect_json() {
  if python3 -c '' 2>/dev/null; then
    python3 -c 'import json, sys
data = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else "not so: " + sys.argv[2])' "$work/out" "${1-True}" >"$work/python" 2>&1 ||
      fail "JSON: $(tail -n 1 "$work/python")"
  else
    case $(tr -d '[:space:]' <"$work/out") in '{'*'}' | '['*']') ;; *) fail "not JSON: $(head -c 200 "$work/out")" ;; esac
  fi
}

await() { # command…; a minute at the most
  for _ in $(seq 6000); do
    "$@" && return
    sleep 0.01
  done
}
has_files() { [ -n "$(ls "$1" 2>/dev/null)" ]; }
