#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The law of mirrored training with everything: each number of replicas, collective, batch size and split with each
# model, way to build it and optimizer, on the CPU and on the strict device in several orders of its streams.
set -u
program=$HELIO_TEST_BUILD/tests/unit/test_law
cpu=$HELIO_TEST_BUILD/backends/cpu/.libs
strict=$HELIO_TEST_BUILD/tests/plugins/strict/.libs
log=$HELIO_TEST_BUILD/tests/logs/law-long.log
mkdir -p "$(dirname "$log")"
status=0

run() { # name, settings…
  local name=$1
  shift
  if env HELIO_TEST_LAW=all "$@" "$program" >"$log" 2>&1; then
    echo "ok       $name: $(grep -c '^\[       OK \]' "$log") passed"
    grep -h '^SKIP: ' "$log" | sort -u | sed 's/^SKIP: /skipped  /'
  else
    echo "FAILED   $name"
    grep -B 6 '^\[  FAILED  \]' "$log" || tail -n 5 "$log"
    status=1
  fi
}

run "law, cpu" HELIO_PLUGIN_PATH="$cpu" HELIO_BACKEND=cpu
for seed in 1 2; do
  run "law, strict, seed $seed" HELIO_PLUGIN_PATH="$strict:$cpu" HELIO_BACKEND=strict HELIO_STRICT_SEED=$seed
done
exit $status
