#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpusim's own programs under many seeds: every planted mistake is found, and without it each passes.
set -u
. "$(dirname "$0")/programs.bash"

for program in test_gpusim test_gpusim_kernels test_gpusim_libraries test_gpusim_collectives; do
  run "$program, 20 seeds" gpusim/$program GPUSIM_TEST_SEEDS=20
done
exit $status
