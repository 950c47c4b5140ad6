#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tutorials' programs on emulated GPUs of both vendors print what TensorFlow prints on two GPUs, and one unchanged
# binary trains the same on CUDA, HIP and the CPU, chosen by HELIO_BACKEND and nothing else.
set -u
examples=$HELIO_TEST_BUILD/examples
gpusim=$HELIO_TEST_BUILD/tests/gpusim/run
unset HELIO_LOG HELIO_LOGICAL_DEVICES HELIO_LOG_PLACEMENT HELIO_SOFT_PLACEMENT HELIO_VISIBLE_DEVICES HELIO_PLUGIN_PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work/home XDG_CACHE_HOME=$HELIO_TEST_BUILD/tests/gpusim/cache HELIO_ARENA_DEBUG=1
mkdir "$HOME"
failures=0
local_device=/job:localhost/replica:0/task:0/device

fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# Starts an example on emulated devices, its lines as a terminal would show them: into $work/out, its $process. Lines go
# out one by one, so that those of both streams keep their order. The programs leave their end to the system.
begin() { # options of gpusim -- example, arguments…
  local options=()
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  rm -f "$work/report"
  "$gpusim" "${options[@]}" --leaks 0 --report "$work/report" stdbuf -oL "$examples/$1" "${@:2}" >"$work/out" 2>&1 </dev/null &
  process=$!
}

finish() { # what begin was called with
  local status
  wait $process
  status=$?
  [ ! -s "$work/report" ] || fail "$*: $(head -n 12 "$work/report")"
  return $status
}

run() {
  begin "$@"
  finish "$@"
}

# The beginning of an example, up to a line of its output.
run_until() { # the line, options of gpusim -- example, arguments…
  local line=$1
  shift
  begin "$@"
  while kill -0 $process 2>/dev/null && ! grep -qx "$line" "$work/out"; do sleep 0.1; done
  kill $process 2>/dev/null
  finish "$@"
}

expect() { # options of gpusim -- example, arguments…; the output on standard input
  cat >"$work/expected"
  run "$@" || fail "$*: exit status $?: $(cat "$work/out")"
  diff "$work/expected" "$work/out" || fail "$*: the output differs (< expected, > printed)"
}

# --- Placement and manual replication ---------------------------------------------------------------------------------

for vendor in cuda hip; do
  export HELIO_BACKEND=$vendor
  expect --$vendor 2 -- placement <<END
Executing op MatMul in device $local_device:GPU:0
Tensor(
[[22. 28.]
 [49. 64.]], shape=(2, 2), dtype=float32)
END
  expect --$vendor 2 -- manual_replication <<END
Executing op MatMul in device $local_device:GPU:0
Executing op MatMul in device $local_device:GPU:1
Executing op AddN in device $local_device:CPU:0
Tensor(
[[ 44.  56.]
 [ 98. 128.]], shape=(2, 2), dtype=float32)
END
  run --$vendor 2 -- placement /device:GPU:2 && fail "placement on /device:GPU:2 of two $vendor devices did not fail"
  grep -q 'device:GPU:2.*unknown device\.$' "$work/out" || fail "placement /device:GPU:2: $(cat "$work/out")"
  run --$vendor 2 -- placement --soft /device:GPU:2 || fail "placement --soft /device:GPU:2: exit status $?"
  grep -qF '[[22. 28.]' "$work/out" || fail "placement --soft /device:GPU:2: $(cat "$work/out")"
  grep -qx "Executing op MatMul in device $local_device:GPU:0" "$work/out" || fail "soft placement: $(cat "$work/out")"
done

# --- One binary -------------------------------------------------------------------------------------------------------

# shellcheck source=tests/scripts/digits.bash
. "$HELIO_TEST_SOURCE/scripts/digits.bash"
make_digits "$work/data/mnist" 300 50
export HELIO_DATA_DIR=$work/data HELIO_SEED=3 HELIO_LOG=warning
for backend in cpu cuda hip; do
  HELIO_BACKEND=$backend run --cuda 1 --hip 1 -- mirrored_fit 3 || fail "mirrored_fit on $backend: exit status $?: $(cat "$work/out")"
  grep -o 'loss: [0-9.e-]*' "$work/out" >"$work/losses.$backend"
  [ "$(wc -l <"$work/losses.$backend")" -eq 6 ] || fail "mirrored_fit on $backend: $(cat "$work/out")"
done
for backend in cuda hip; do
  paste "$work/losses.cpu" "$work/losses.$backend" | awk '
    { d = $2 - $4; if (d < 0) d = -d; if ($2 < 1.5 || d > 1e-4 * $2) wrong = 1 } END { exit wrong }' || # four digits are told
    fail "mirrored_fit: other losses on $backend: $(paste "$work/losses.cpu" "$work/losses.$backend")"
done

# --- The Reuters tutorial ---------------------------------------------------------------------------------------------

unset HELIO_LOG
export HELIO_BACKEND=cuda
run_until 'Epoch 2/10' --cuda 1 -- reuters
sed -i '/^Epoch 2\/10$/q' "$work/out" # it may have gone on for a while
gpus="'$local_device:GPU:0', '$local_device:GPU:1'"
# Numbers and times left out, the summary but its first line, and that kernels are compiled, which they are but once.
sed -nE '/compiling kernels/d; s/ - [0-9]+s - [0-9]+(us|ms|s)\/step//; s/: [0-9.]+(e-[0-9]+)?/: #/g; /Physical|WARNING|INFO|^Model|^Epoch|loss/p' \
  "$work/out" >"$work/lines"
epoch='30/30 - loss: # - sparse_categorical_accuracy: # - sparse_top_k_categorical_accuracy: #'
epoch+=' - val_loss: # - val_sparse_categorical_accuracy: # - val_sparse_top_k_categorical_accuracy: #'
diff - "$work/lines" <<END || fail "reuters: the lines differ (< expected, > printed)"
1 Physical GPU, 2 Logical GPUs
WARNING:helio:nccl: NCCL is not supported when using virtual GPUs, falling back to reduction to one device
INFO:helio:Using MirroredStrategy with devices ($gpus)
Model: "sequential"
Epoch 1/10
INFO:helio:Reduce to $local_device:GPU:0 then broadcast to ($gpus).
INFO:helio:Reduce to $local_device:CPU:0 then broadcast to ('$local_device:CPU:0',).
$epoch
Epoch 2/10
END

[ "$failures" -eq 0 ]
