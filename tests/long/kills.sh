#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A process that writes checkpoints is killed at 200 moments: a whole one is always there.
set -u
. "$(dirname "$0")/programs.bash"

run "checkpoints, 200 kills" unit/test_checkpoints HELIO_TEST_KILLS=200
exit $status
