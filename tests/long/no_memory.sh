#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every allocation fails once, alone and with all behind it, on the CPU and on the strict device in several orders of its
# streams.
set -u
. "$(dirname "$0")/programs.bash"

run "no memory, cpu" unit/test_no_memory "${cpu[@]}" HELIO_TEST_NO_MEMORY=all
for seed in 1 2; do
  run "no memory, strict, seed $seed" unit/test_no_memory "${strict[@]}" HELIO_TEST_NO_MEMORY=all \
    HELIO_STRICT_SEED=$seed
done
exit $status
