# SPDX-License-Identifier: Apache-2.0
# For the scripts of this folder: runs a cmocka program of the build under some settings and says how it ended. A script
# ends with `exit $status`.
cpu=(HELIO_PLUGIN_PATH="$HELIO_TEST_BUILD/backends/cpu/.libs" HELIO_BACKEND=cpu)
strict=(HELIO_PLUGIN_PATH="$HELIO_TEST_BUILD/tests/plugins/strict/.libs:$HELIO_TEST_BUILD/backends/cpu/.libs"
  HELIO_BACKEND=strict)
logs=$HELIO_TEST_BUILD/tests/logs
mkdir -p "$logs"
status=0

run() { # what it is called, program and its arguments in one word, settings…
  local name=$1 program=$2 log=$logs/long.${1//[ ,]/_}.log
  shift 2
  # shellcheck disable=SC2086 # the program's arguments are words
  if env "$@" "$HELIO_TEST_BUILD"/tests/$program >"$log" 2>&1; then
    echo "ok       $name: $(grep -c '^\[       OK \]' "$log") passed"
    grep -h '^SKIP: ' "$log" | sort -u | sed 's/^SKIP: /skipped  /'
  else
    echo "FAILED   $name"
    grep -E -B 6 '^\[  FAILED  \]|^HELIO_TEST_FAULTS=' "$log" || tail -n 5 "$log"
    echo "  all of it: $log"
    status=1
  fi
}
