#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The examples of placement print what TensorFlow's guide "Use a GPU" prints, to the byte, on the CPU and with "Tensor("
# for "tf.Tensor("; those of models learn what they should. What both streams carry is compared as one text, so their order counts too.
set -u
examples=$HELIO_TEST_BUILD/examples
unset HELIO_LOG HELIO_LOGICAL_DEVICES HELIO_LOG_PLACEMENT HELIO_SOFT_PLACEMENT HELIO_VISIBLE_DEVICES
export HELIO_BACKEND=cpu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# $1 what is expected of exit status and output (standard input), $2… the program
expect() {
  local expected_status=$1 status
  shift
  cat >"$work/expected"
  "$examples/$1" "${@:2}" >"$work/actual" 2>&1 </dev/null
  status=$?
  [ "$status" -eq "$expected_status" ] || fail "$*: exit status $status, not $expected_status"
  cmp -s "$work/expected" "$work/actual" || {
    fail "$*: the output differs (< expected, > printed)"
    diff "$work/expected" "$work/actual"
  }
}

cpu=/job:localhost/replica:0/task:0/device:CPU

expect 0 placement <<END
Executing op MatMul in device $cpu:0
Tensor(
[[22. 28.]
 [49. 64.]], shape=(2, 2), dtype=float32)
END

expect 0 placement --pinned <<END
Executing op MatMul in device $cpu:0
Tensor(
[[22. 28.]
 [49. 64.]], shape=(2, 2), dtype=float32)
END

expect 0 placement /device:CPU:0 <<END
Executing op MatMul in device $cpu:0
Tensor(
[[22. 28.]
 [49. 64.]], shape=(2, 2), dtype=float32)
END

expect 0 manual_replication <<END
Executing op MatMul in device $cpu:0
Executing op MatMul in device $cpu:1
Executing op AddN in device $cpu:0
Tensor(
[[ 44.  56.]
 [ 98. 128.]], shape=(2, 2), dtype=float32)
END

# The device that does not exist: an error on standard error alone.
"$examples/placement" /device:GPU:2 >"$work/out" 2>"$work/err"
status=$?
[ "$status" -eq 1 ] || fail "placement /device:GPU:2: exit status $status, not 1"
[ ! -s "$work/out" ] || fail "placement /device:GPU:2 printed: $(cat "$work/out")"
tail -n 1 "$work/err" | grep -q 'unknown device\.$' ||
  fail "placement /device:GPU:2: the message does not end in 'unknown device.': $(cat "$work/err")"
grep -q 'device:GPU:2' "$work/err" || fail "placement /device:GPU:2: the message does not name the device"

# With soft placement it runs elsewhere, and says so.
"$examples/placement" --soft /device:GPU:2 >"$work/out" 2>"$work/err"
status=$?
[ "$status" -eq 0 ] || fail "placement --soft /device:GPU:2: exit status $status, not 0"
printf '%s\n' 'Tensor(' '[[22. 28.]' ' [49. 64.]], shape=(2, 2), dtype=float32)' | cmp -s - "$work/out" ||
  fail "placement --soft /device:GPU:2 printed: $(cat "$work/out")"
grep -qx "Executing op MatMul in device $cpu:0" "$work/err" ||
  fail "placement --soft /device:GPU:2: no placement line: $(cat "$work/err")"
grep -q '^WARNING:helio:.*device:GPU:2' "$work/err" ||
  fail "placement --soft /device:GPU:2: it is not said that the device is another one: $(cat "$work/err")"

"$examples/placement" --nonsense >/dev/null 2>&1
status=$?
[ "$status" -eq 2 ] || fail "placement --nonsense: exit status $status, not 2"

# Logical devices that are there already are taken as they are.
HELIO_LOGICAL_DEVICES=cpu:0=3 "$examples/manual_replication" >"$work/out" 2>/dev/null
grep -qF '[[ 66.  84.]' "$work/out" || fail "manual_replication on three devices: $(cat "$work/out")"

# linear: the law it states. Each step divides the error by five, so the loss by 25, and the line goes through (1, 1).
"$examples/linear" >"$work/out" 2>&1 || fail "linear: exit status $?: $(cat "$work/out")"
awk '/^step/ { if (last && $2 < 7 && (last / $4 < 24.5 || last / $4 > 25.5)) wrong = 1; last = $4; count++ }
  END { exit wrong || count != 10 }' "$work/out" || fail "linear: a loss is not a 25th of the one before: $(cat "$work/out")"
grep -qx 'f(1) = 1.0000' "$work/out" || fail "linear: $(tail -n 1 "$work/out")"
grep -q '^ Total params: 2 (8.00 B)$' "$work/out" || fail "linear: no summary: $(cat "$work/out")"

# subclass: it learns, and the variables that its first call made are those of the same model in Keras.
"$examples/subclass" >"$work/out" 2>&1 || fail "subclass: exit status $?: $(cat "$work/out")"
awk -F'Test Accuracy: ' '/^Step 60,/ { good = $2 > 95 } END { exit !good }' "$work/out" ||
  fail "subclass does not learn: $(cat "$work/out")"
grep -q '^ Total params: 12,810 (50.04 KB)$' "$work/out" || fail "subclass: not the model's summary: $(cat "$work/out")"

[ "$failures" -eq 0 ]
