#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# NCCL and RCCL in a training on three emulated GPUs: chosen by themselves, refused with the reason that users know, and
# gone on without a device that fails, in a collective or besides. Never a hang, never a leak: gpusim would tell (86).
set -u
build=$HELIO_TEST_BUILD
helio=$build/tools/helio
run=$build/tests/gpusim/run
[ -x "$helio" ] || { echo "SKIP: the command was not built"; exit 77; }
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
export XDG_CACHE_HOME=$build/tests/gpusim/cache
collectives=$build/collectives/nccl/.libs:$build/collectives/ring/.libs
bad=0

# Trains a line with options of gpusim's and of the command's.
train() { # backend, gpusim's options, options…
  local backend=$1 options=$2
  shift 2
  # shellcheck disable=SC2086 # options are meant
  HELIO_BACKEND=$backend HELIO_PLUGIN_PATH=$build/backends/$backend/.libs:$build/backends/cpu/.libs:$collectives \
    timeout 120 "$run" --"$backend" 3 --patience 60 $options "$helio" train linear --steps 6 "$@" >"$log" 2>&1
}

expect() { # status, text that must be there, or -text that must not, …
  local status=$1 found=$2 text
  shift 2
  [ "$found" = "$status" ] || { echo "exit status $found, not $status:"; cat "$log"; bad=1; }
  for text in "$@"; do
    case $text in
      -*) ! grep -qF -e "${text#-}" "$log" || { echo "\"${text#-}\" is there:"; cat "$log"; bad=1; } ;;
      *) grep -qF -e "$text" "$log" || { echo "\"$text\" is missing:"; cat "$log"; bad=1; } ;;
    esac
  done
}

three="--devices gpu:0,gpu:1,gpu:2"
for pair in cuda:nccl hip:rccl; do
  backend=${pair%:*} name=${pair#*:} title=${name^^}
  for seed in 1 2 3; do
    # shellcheck disable=SC2086
    train $backend "--seed $seed" $three
    expect 0 $? "sums by $name" "After 1 epoch, 6 steps" -WARNING -ERROR
  done

  # The rank whose device fails is the one that is lost, and the others go on.
  for fault in collective:3@1 collective:4+@2; do
    # shellcheck disable=SC2086
    train $backend "--fault $fault" $three
    expect 0 $? "lost replica ${fault#*@} (" "by $name: the device of rank ${fault#*@} failed in a collective: $title says:" \
      "Training goes on with 2 replicas" "6 steps"
  done
  # shellcheck disable=SC2086
  train $backend "--fault lost:collective:4@2" $three
  expect 0 $? "lost replica 2 (" "all_reduce on rank 2 of 3" "Training goes on with 2 replicas" "6 steps"
  # shellcheck disable=SC2086
  train $backend "--fault lost:launch:30@0" $three
  expect 0 $? "lost replica 0 (" "Training goes on with 2 replicas" "6 steps"

  # Parts of one card, a processor among them, a library that is too old: the reason, and another collective.
  train $backend "" --logical gpu:0=2 --devices gpu:0,gpu:1
  expect 0 $? "WARNING:helio:$name: $title is not supported when using virtual GPUs, falling back to reduction to one device" \
    "sums by reduce-to-one"
  train $backend "" --devices gpu:0,cpu:0
  expect 0 $? "WARNING:helio:$name: There are non-GPU devices in the strategy, not using $name allreduce."
  # shellcheck disable=SC2086
  train $backend "--fault missing:ncclCommAbort" $three
  expect 0 $? "has no ncclCommAbort: it is too old, install $title" "sums by ring"
  train $backend "" --logical gpu:0=2 --devices gpu:0,gpu:1 --collective $name
  expect 1 $? "the collective $name cannot serve these devices: $title is not supported when using virtual GPUs"
done
[ $bad -ne 0 ] || echo "NCCL and RCCL serve, refuse and fail as they should"
exit $bad
