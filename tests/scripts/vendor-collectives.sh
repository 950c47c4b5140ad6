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

on_three() { # backend, gpusim's options, what the command is to do…
  local backend=$1 options=$2
  shift 2
  # shellcheck disable=SC2086 # options are meant
  HELIO_BACKEND=$backend HELIO_PLUGIN_PATH=$build/backends/$backend/.libs:$build/backends/cpu/.libs:$collectives \
    timeout 120 "$run" --"$backend" 3 --patience 60 $options "$helio" "$@" >"$log" 2>&1
}

# Trains a line.
train() { # backend, gpusim's options, options…
  on_three "$1" "$2" train linear --steps 6 "${@:3}"
}

# Leaves what is told of one plugin.
plugin() { # name, backend, gpusim's options
  on_three "$2" "$3" plugins --json
  local status=$? report
  report=$(grep -F "\"name\": \"$1\"" -A 3 "$log") && echo "$report" >"$log"
  return $status
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

  # An old library knows no group of aborts. gpusim tells if it is asked for one, or for ranks one by one.
  # shellcheck disable=SC2086
  train $backend "--nccl 21003 --fault collective:3@1" $three
  expect 0 $? "lost replica 1 (" "Training goes on with 2 replicas" "6 steps"

  # One rank's communicator cannot be made: those of the others are given back, and another collective sums, unless this
  # one was asked for.
  for version in 22809 21003; do
    # shellcheck disable=SC2086
    train $backend "--nccl $version --fault communicator:1@1" $three
    expect 0 $? "communicators could not be made: $title says: unhandled cuda error" "; ring takes its place" \
      "sums by ring" "After 1 epoch, 6 steps"
    # shellcheck disable=SC2086
    train $backend "--nccl $version --fault communicator:1@1" $three --collective $name
    expect 1 $? "communicators could not be made: $title says: unhandled cuda error"
  done

  # The library has no memory for its buffers, on a card that is well: that is no lost card.
  # shellcheck disable=SC2086
  train $backend "--fault connect:1@1" $three
  expect 1 $? "the part of rank 1 failed in a collective: $title says: unhandled cuda error" "no memory for buffers" -lost

  # Parts of one card, a processor among them, a library that is too old: the reason, and another collective.
  train $backend "" --logical gpu:0=2 --devices gpu:0,gpu:1
  expect 0 $? "WARNING:helio:$name: $title is not supported when using virtual GPUs, falling back to reduction to one device" \
    "sums by reduce-to-one"
  train $backend "" --devices gpu:0,cpu:0
  expect 0 $? "WARNING:helio:$name: There are non-GPU devices in the strategy, not using $name allreduce."
  # shellcheck disable=SC2086
  train $backend "--fault missing:ncclCommAbort" $three
  expect 0 $? "has no ncclCommAbort: it is too old, install $title" "sums by ring"

  # Whether it can be used at all is what helio plugins tells.
  plugin $name $backend ""
  expect 0 $? '"status": "usable"' "$title 2.28.9 ("
  plugin $name $backend "--fault missing:ncclCommAbort"
  expect 0 $? '"status": "no use here"' "has no ncclCommAbort: it is too old, install $title"

  # Calls that come back before they are done are of no use. Old libraries do not know the variable.
  # shellcheck disable=SC2086
  NCCL_COMM_BLOCKING=0 train $backend "" $three
  expect 0 $? "NCCL_COMM_BLOCKING=0 lets calls of $title come back before they are done" "sums by ring"
  # shellcheck disable=SC2086
  NCCL_COMM_BLOCKING=0x0 train $backend "" $three --collective $name
  expect 1 $? "the collective $name cannot serve these devices: NCCL_COMM_BLOCKING=0x0 lets calls"
  # shellcheck disable=SC2086
  NCCL_COMM_BLOCKING=0 train $backend "--nccl 21003" $three
  expect 0 $? "sums by $name"
  # shellcheck disable=SC2086
  NCCL_COMM_BLOCKING=1 train $backend "" $three
  expect 0 $? "sums by $name"

  train $backend "" --logical gpu:0=2 --devices gpu:0,gpu:1 --collective $name
  expect 1 $? "the collective $name cannot serve these devices: $title is not supported when using virtual GPUs"
done

# A library that the system does not find is looked for where the backend looks for its own.
home=$(mktemp -d) || exit 1
trap 'rm -rf "$log" "$home"' EXIT
mkdir "$home/lib64" "$home/lib"
ln -s "$build/tests/gpusim/libs/libnccl.so.2" "$home/lib64"
ln -s "$build/tests/gpusim/libs/librccl.so.1" "$home/lib"
for case in cuda:nccl:CUDA_PATH cuda:nccl:CUDA_HOME hip:rccl:ROCM_PATH hip:rccl:CONDA_PREFIX; do
  IFS=: read -r backend name variable <<<"$case"
  export "$variable=$home"
  # shellcheck disable=SC2086
  train "$backend" "--fault missing:libnccl.so.2,missing:librccl.so.1" $three
  expect 0 $? "sums by $name"
  unset "$variable"
done

# Who asks for the processor alone gets nothing of the vendors' opened, which takes long and may not even end well.
HELIO_BACKEND=cpu HELIO_PLUGIN_PATH=$build/backends/cuda/.libs:$build/backends/hip/.libs:$build/backends/cpu/.libs:$collectives \
  LD_DEBUG=files timeout 120 "$run" --cuda 2 --hip 2 "$helio" devices >"$log" 2>&1
expect 0 $? "calling init: $build/collectives/nccl/.libs/rccl.so" "-calling init: $build/tests/gpusim"

# One of another ROCm brings its own runtime along, which knows nothing of our devices.
# shellcheck disable=SC2086
HELIO_RCCL_LIBRARIES=$build/tests/gpu/beside train hip "--fault missing:librccl.so.1" $three
expect 0 $? "beside/librccl.so.1 was built for another runtime" "sums by ring"
[ $bad -ne 0 ] || echo "NCCL and RCCL serve, refuse and fail as they should"
exit $bad
