#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every allocation fails once, alone and with all behind it, on the CPU and on the strict device in several orders of its
# streams.
set -u
program=$HELIO_TEST_BUILD/tests/unit/test_no_memory
cpu=$HELIO_TEST_BUILD/backends/cpu/.libs
strict=$HELIO_TEST_BUILD/tests/plugins/strict/.libs
log=$HELIO_TEST_BUILD/tests/logs/no_memory-long.log
mkdir -p "$(dirname "$log")"
status=0

run() { # name, settings…
  local name=$1
  shift
  if env HELIO_TEST_NO_MEMORY=all "$@" "$program" >"$log" 2>&1; then
    echo "ok       $name: $(grep -c '^\[       OK \]' "$log") passed"
    grep -h '^SKIP: ' "$log" | sort -u | sed 's/^SKIP: /skipped  /'
  else
    echo "FAILED   $name"
    grep -B 6 '^\[  FAILED  \]' "$log" || tail -n 5 "$log"
    status=1
  fi
}

run "no memory, cpu" HELIO_PLUGIN_PATH="$cpu" HELIO_BACKEND=cpu
for seed in 1 2; do
  run "no memory, strict, seed $seed" HELIO_PLUGIN_PATH="$strict:$cpu" HELIO_BACKEND=strict HELIO_STRICT_SEED=$seed
done
exit $status
