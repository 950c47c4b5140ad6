#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every call of a training made to fail in every way, on the strict device.
set -u
. "$(dirname "$0")/programs.bash"

run "faults, every call" faults/faults HELIO_TEST_FAULTS=all
exit $status
