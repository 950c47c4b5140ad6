#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every call of a training made to fail in every way, on the strict device.
set -u
log=$HELIO_TEST_BUILD/tests/logs/faults-long.log
mkdir -p "$(dirname "$log")"
if HELIO_TEST_FAULTS=all "$HELIO_TEST_BUILD/tests/faults/faults" >"$log" 2>&1; then
  grep 'calls of kind' "$log"
  echo "ok       faults, every call: $(grep -c '^\[       OK \]' "$log") passed"
else
  echo "FAILED   faults, every call"
  grep -E '^HELIO_TEST_FAULTS=|^\[  FAILED  \]' "$log" | head -n 40
  exit 1
fi
