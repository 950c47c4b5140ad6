#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every call of a training on two emulated GPUs made to fail in every way, for both vendors.
set -u
. "$(dirname "$0")/programs.bash"

for backend in cuda hip; do
  run "faults on gpusim, $backend, every call" "gpusim/run --$backend 2 $HELIO_TEST_BUILD/tests/gpu/test_gpu_faults" \
    HELIO_TEST_FAULTS=all HELIO_BACKEND=$backend XDG_CACHE_HOME="$HELIO_TEST_BUILD/tests/gpusim/cache" \
    HELIO_PLUGIN_PATH="$HELIO_TEST_BUILD/backends/$backend/.libs:$HELIO_TEST_BUILD/backends/cpu/.libs"
done
exit $status
