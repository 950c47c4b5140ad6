#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A process that writes checkpoints, and one that trains, is killed at 200 moments: a whole checkpoint is always there, and
# the training that goes on ends as one that was not killed.
set -u
. "$(dirname "$0")/programs.bash"

run "checkpoints, 200 kills" unit/test_checkpoints HELIO_TEST_KILLS=200
run "trainings, 200 kills, cpu" unit/test_resume "${cpu[@]}" HELIO_TEST_KILLS=200
run "trainings, 200 kills, strict" unit/test_resume "${strict[@]}" HELIO_TEST_KILLS=200
exit $status
