#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The law of mirrored training with everything: each number of replicas, collective, batch size and split with each
# model, way to build it and optimizer, on the CPU and on the strict device in several orders of its streams.
set -u
. "$(dirname "$0")/programs.bash"

run "law, cpu" unit/test_law "${cpu[@]}" HELIO_TEST_LAW=all
for seed in 1 2; do
  run "law, strict, seed $seed" unit/test_law "${strict[@]}" HELIO_TEST_LAW=all HELIO_STRICT_SEED=$seed
done
exit $status
