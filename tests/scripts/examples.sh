#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The examples of placement print what TensorFlow's guide "Use a GPU" prints, to the byte, on the CPU and with "Tensor("
# for "tf.Tensor("; those of models learn what they should. What both streams carry is compared as one text, so their
# order counts too.
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

# callbacks: a loss every ten steps, until it does not fall any more, and files that tell of the same steps and epochs.
(cd "$work" && "$examples/callbacks") >"$work/out" 2>&1 || fail "callbacks: exit status $?: $(cat "$work/out")"
epochs=$(sed -n 's/^it has learned after \([0-9]*\) epochs$/\1/p' "$work/out")
steps=$((${epochs:-0} * 16))
[ "${epochs:-0}" -gt 3 ] && [ "$epochs" -lt 100 ] || fail "callbacks: it did not stop: $(tail -n 1 "$work/out")"
[ "$(grep -c '^step' "$work/out")" -eq $((steps / 10)) ] || fail "callbacks: $(cat "$work/out")"
[ "$(head -n 1 "$work/training.csv")" = epoch,loss,val_loss ] && [ "$(wc -l <"$work/training.csv")" -eq $((epochs + 1)) ] ||
  fail "callbacks: $(cat "$work/training.csv")"
awk -F, 'NR > 1 { last = $3 } END { exit !(last < 1e-5) }' "$work/training.csv" || fail "callbacks: $(cat "$work/training.csv")"
[ "$(grep -c '^{"step": .*}$' "$work/training.jsonl")" -eq "$steps" ] &&
  [ "$(grep -c '^{"epoch": .*}$' "$work/training.jsonl")" -eq "$epochs" ] || fail "callbacks: $(cat "$work/training.jsonl")"

# contexts: TensorFlow's rules of where a thread is.
expect 0 contexts <<END
outside: DefaultStrategy of 1, in a replica
INFO:helio:Using MirroredStrategy with devices ('$cpu:0', '$cpu:1')
in the scope: MirroredStrategy of 2, in no replica, across replicas
v on $cpu:0
v/replica_1 on $cpu:1
where replicas meet: MirroredStrategy of 2, in no replica, across replicas
INFO:helio:Reduce to $cpu:0 then broadcast to ('$cpu:0',).
replica 0 got 3
replica 1 got 3
END

# logical_devices: the line of the guide, and a loss that falls at every report.
"$examples/logical_devices" >"$work/out" 2>"$work/err" || fail "logical_devices: exit status $?: $(cat "$work/err")"
head -n 1 "$work/out" | grep -qx '1 Physical CPU, 2 Logical CPUs' || fail "logical_devices: $(head -n 1 "$work/out")"
awk '/^step/ { if (last && $4 >= last) wrong = 1; last = $4; count++ } END { exit wrong || count != 4 }' "$work/out" ||
  fail "logical_devices does not learn: $(cat "$work/out")"
grep -qx "INFO:helio:Using MirroredStrategy with devices ('$cpu:0', '$cpu:1')" "$work/err" ||
  fail "logical_devices: no line about the devices: $(cat "$work/err")"

# The same where the preferred device is a GPU, which the strict test device says it is: losses and words.
strict=$HELIO_TEST_BUILD/tests/plugins/strict/.libs:$HELIO_TEST_BUILD/backends/cpu/.libs
HELIO_BACKEND=strict HELIO_PLUGIN_PATH=$strict "$examples/logical_devices" >"$work/gpu" 2>"$work/err" ||
  fail "logical_devices on strict: exit status $?: $(cat "$work/err")"
sed 's/CPU/GPU/g' "$work/out" | cmp -s - "$work/gpu" || fail "logical_devices on a GPU: $(cat "$work/gpu")"

# mirrored_loop: the law on one and three devices, and both tutorials' steps, each on the same images under two names.
fashion=/usr/share/datasets/fashion-mnist
if [ -d "$fashion" ]; then
  mkdir -p "$work/data"
  ln -s "$fashion" "$work/data/mnist"
  loop() {
    local devices=$1
    shift
    HELIO_DATA_DIR=$work/data HELIO_LOG=warning HELIO_LOGICAL_DEVICES="cpu:0=$devices" \
      "$examples/mirrored_loop" "$@" >"$work/loop" 2>&1 || fail "mirrored_loop $*: exit status $?: $(cat "$work/loop")"
    head -n 1 "$work/loop" | grep -qx "Number of devices: $devices" || fail "mirrored_loop $*: $(head -n 1 "$work/loop")"
    tail -n 1 "$work/loop"
  }
  one=$(loop 1 mnist 1 1000)
  three=$(loop 3 mnist 1 1000)
  other=$(loop 3 fashion-mnist 1 1000)
  printf '%s\n' "$one" "$three" "$other" | awk -F'[:,] *' '
    function far(a, b) { return a - b > 1e-4 * b || b - a > 1e-4 * b }
    !/^Epoch 1, Loss: [0-9.]+, Accuracy: [0-9.]+, Test Loss: [0-9.]+, Test Accuracy: [0-9.]+$/ { wrong = 1 }
    { if (NR > 1 && (far($3, loss) || far($7, test))) wrong = 1; loss = $3; test = $7 }
    END { exit wrong || NR != 3 || loss > 2.3 }' || fail "mirrored_loop: not one loss: $one; $three; $other"
else
  echo "mirrored_loop is not run: there is no $fashion (Debian's package dataset-fashion-mnist)"
fi

# --- compile and fit ---

source=$HELIO_TEST_SOURCE/../examples
export XDG_CACHE_HOME=$work/cache HELIO_DATA_DIR=$work/small HELIO_LOG=warning

# What is measured under which name and in which order, without numbers and times.
names() { sed -E 's/ - [0-9]+s - [0-9]+(us|ms|s)\/step//; s/: [0-9.]+(e-[0-9]+)?/: #/g; s/^([0-9]+ epochs?) in .*/\1/' "$1"; }

# All losses of two outputs are the same to rounding.
same_losses() {
  paste <(grep -o 'loss: [0-9.e-]*' "$1") <(grep -o 'loss: [0-9.e-]*' "$2") | awk -F'loss: ' '
    { a = $2 + 0; b = $3 + 0; if (a - b > 1e-3 * b || b - a > 1e-3 * b) wrong = 1 } END { exit wrong || NR == 0 }'
}

# The losses of an output fall from epoch to epoch.
falling_losses() {
  awk -F'loss: ' '/loss/ { if (last && $2 + 0 >= last) wrong = 1; last = $2 + 0 } END { exit wrong || !last }' "$1"
}

# Runs the program $1… and compares the names that it prints with standard input.
expect_names() {
  cat >"$work/expected"
  "$examples/$1" "${@:2}" >"$work/out" 2>"$work/err" </dev/null || fail "$*: exit status $?: $(cat "$work/err")"
  names "$work/out" >"$work/actual"
  cmp -s "$work/expected" "$work/actual" || {
    fail "$*: the output differs (< expected, > printed)"
    diff "$work/expected" "$work/actual"
  }
}

# Digits of 28 × 28.
# shellcheck source=tests/scripts/digits.bash
. "$HELIO_TEST_SOURCE/scripts/digits.bash"
make_digits "$work/small/mnist" 4100 100

# fit: 4,100 samples in batches of 4,096 are two steps.
epoch='2/2 - loss: # - accuracy: # - val_loss: # - val_accuracy: #'
expect_names fit 3 <<END
Train Data's Shape :  (4100, 28, 28, 1) (4100,)
Test Data's Shape :  (100, 28, 28, 1) (100,)
Network Built!
Epoch 1/3
$epoch
Epoch 2/3
$epoch
Epoch 3/3
$epoch
3 epochs
END
falling_losses "$work/out" || fail "fit does not learn: $(cat "$work/out")"
cp "$work/out" "$work/one"
[ "$(wc -l <"$source/fit.c")" -lt 40 ] || fail "fit.c has 40 lines or more"

# mirrored_fit: on one device the same training; on several the batch is larger, and so here all samples.
HELIO_LOGICAL_DEVICES=cpu:0=1 "$examples/mirrored_fit" 3 >"$work/out" 2>&1 || fail "mirrored_fit: exit status $?"
names "$work/one" | sed '1i1 Physical CPU, 1 Logical CPU' | diff - <(names "$work/out") ||
  fail "mirrored_fit on one device prints something else than fit"
same_losses "$work/one" "$work/out" || fail "mirrored_fit on one device is not fit: $(cat "$work/out")"
for devices in 2 3; do
  HELIO_LOGICAL_DEVICES=cpu:0=$devices expect_names mirrored_fit 1 <<END
1 Physical CPU, $devices Logical CPUs
Train Data's Shape :  (4100, 28, 28, 1) (4100,)
Test Data's Shape :  (100, 28, 28, 1) (100,)
Network Built!
1/1 - loss: # - accuracy: # - val_loss: # - val_accuracy: #
1 epoch
END
  cp "$work/out" "$work/on_$devices"
done
same_losses "$work/on_2" "$work/on_3" || fail "mirrored_fit: not one loss: $(cat "$work/on_2" "$work/on_3")"

# The two programs differ by devices, strategy, scope and batch, and by nothing else.
diff "$source/fit.c" "$source/mirrored_fit.c" | grep '^[<>]' |
  grep -vE '^[<>] /\*|^< +train\(epochs, 4096\);$|^> .*(memory_growth|physical|Physical|logical|device|strategy)|^> }?$' &&
  fail "mirrored_fit.c differs from fit.c by these lines"

# Without the data: what to do, and nothing printed before.
HELIO_DATA_DIR='' "$examples/fit" >"$work/out" 2>"$work/err" && fail "fit without data did not fail"
grep -q 'helio data get mnist' "$work/err" || fail "fit without data: $(cat "$work/err")"
[ ! -s "$work/out" ] || fail "fit without data printed: $(cat "$work/out")"

# reuters: made-up articles, 960 of them in batches of 32, on two logical devices of the CPU.
epoch='30/30 - loss: # - sparse_categorical_accuracy: # - sparse_top_k_categorical_accuracy: #'
epoch+=' - val_loss: # - val_sparse_categorical_accuracy: # - val_sparse_top_k_categorical_accuracy: #'
"$examples/reuters" 3 >"$work/out" 2>"$work/err" || fail "reuters: exit status $?: $(cat "$work/err")"
names "$work/out" | sed -n '1p; 3p; /^Epoch/,$p' >"$work/actual"
diff - "$work/actual" <<END || fail "reuters: the output differs (< expected, > printed)"
1 Physical CPU, 2 Logical CPUs
The articles that follow are made up.
Epoch 1/3
$epoch
Epoch 2/3
$epoch
Epoch 3/3
$epoch
3 epochs
END
sed -n 2p "$work/out" | grep -q '^reuters was not found in .*helio data get reuters' ||
  fail "reuters does not say where it looked: $(sed -n 2p "$work/out")"
grep -q '^ Total params: 120,777 (471.79 KB)$' "$work/out" || fail "reuters: not the model's summary: $(cat "$work/out")"
falling_losses "$work/out" || fail "reuters does not learn: $(cat "$work/out")"

# The same on a GPU of which two are made.
HELIO_BACKEND=strict HELIO_PLUGIN_PATH=$strict "$examples/reuters" 3 >"$work/gpu" 2>"$work/err" ||
  fail "reuters on strict: exit status $?: $(cat "$work/err")"
names "$work/out" | sed 's/CPU/GPU/g' | diff - <(names "$work/gpu") || fail "reuters on a GPU prints something else"
same_losses "$work/out" "$work/gpu" || fail "reuters on a GPU learns something else: $(cat "$work/gpu")"

# Articles of a file: words up to the highest that Keras reads from it.
vectors=$(awk '/^case/ { cases++ } cases == 1 && !/^case/ { for (i = 3; i <= NF; i++) if ($i > most) most = $i }
  END { print (most + 1) * 7 }' "$HELIO_TEST_SOURCE/golden/data/reuters.txt")
HELIO_DATA_DIR=$HELIO_TEST_SOURCE/golden/data "$examples/reuters" 1 >"$work/out" 2>&1 ||
  fail "reuters of a file: exit status $?: $(cat "$work/out")"
grep -q "embedding (Embedding) .* (None, 300, 7) .* $vectors " "$work/out" || fail "reuters: not $vectors: $(cat "$work/out")"
grep -q '^1/1 ' "$work/out" || fail "reuters of a file: not one step of 32 samples: $(cat "$work/out")"
grep -q 'made up' "$work/out" && fail "reuters of a file: made up"
echo broken >"$work/small/reuters.npz"
"$examples/reuters" 1 >"$work/out" 2>&1 && fail "reuters of a broken file did not fail"
grep -q 'made up' "$work/out" && fail "reuters of a broken file: made up"

# predict: where the points are can be seen, and probabilities add up to one, the class having the largest.
"$examples/predict" "$work/model.safetensors" >"$work/out" 2>&1 || fail "predict: exit status $?: $(cat "$work/out")"
[ -s "$work/model.safetensors" ] || fail "predict: no file"
tr -d '(,:)' <"$work/out" | awk '{ corner = 2 * ($2 > 0) + ($1 > 0); sum = $7 + $8 + $9 + $10
    if ($6 != corner || $(7 + corner) < 0.5 || sum < 0.9998 || sum > 1.0002) wrong = 1; seen[corner] = 1 }
  END { exit wrong || NR != 4 || length(seen) != 4 }' || fail "predict: $(cat "$work/out")"
[ "$(wc -l <"$source/predict.c")" -lt 50 ] || fail "predict.c has 50 lines or more"
"$examples/predict" "$work/nowhere/model" >"$work/out" 2>"$work/err" && fail "predict did not fail where it cannot save"
grep -q nowhere "$work/err" || fail "predict where it cannot save: $(cat "$work/err")"

[ "$failures" -eq 0 ]
