#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training against TensorFlow's with everything: each batch size on each number of devices, with the small sets and with
# the real ones, where they are found (HELIO_TEST_DATA, or shared/data beside the project; Debian's Fashion-MNIST).
set -u
. "$(dirname "$0")/programs.bash"

run "traces, cpu" unit/test_traces "${cpu[@]}" HELIO_TEST_TRACES=all
for seed in 1 2; do
  run "traces, strict, seed $seed" unit/test_traces "${strict[@]}" HELIO_TEST_TRACES=all HELIO_STRICT_SEED=$seed
done
exit $status
