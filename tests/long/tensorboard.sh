#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# TensorBoard reads what we write: its loader and both of its accumulators, as PYTHON (python3) has them, find the tags,
# steps, times and values that test_event_file has put into a file.
set -u
python=${PYTHON:-python3}
export TF_CPP_MIN_LOG_LEVEL=3 # tensorboard loads tensorflow if it is there, which tells much about itself
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! "$python" -c 'import tensorboard' 2>"$work/log"; then
  echo "skipped  tensorboard: $(tail -n 1 "$work/log") (to have it: pip install tensorboard, PYTHON=its python)"
  exit 0
fi
if HELIO_TEST_KEEP=$work/events "$HELIO_TEST_BUILD/tests/unit/test_event_file" >"$work/log" 2>&1 &&
  "$python" -B "$HELIO_TEST_SOURCE/golden/train/make_events.py" --check "$work/events" >"$work/log" 2>&1; then
  echo "ok       tensorboard: $(tail -n 1 "$work/log")"
else
  echo "FAILED   tensorboard"
  tail -n 5 "$work/log"
  exit 1
fi
