#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# helio train, eval, predict and summary: typos and what cannot be done, training as TensorFlow does it, ends in the
# middle, files that are written; what a training takes in memory and time. models.sh has models and data of one's own.
set -u
# shellcheck source=tests/scripts/expect.bash
. "$HELIO_TEST_SOURCE/scripts/expect.bash"
mkdir "$work/out-dir"
mnist="train mnist --data $small"

# An error, and nothing is left in the folder that it was to write to.
expect_refusal() {
  expect_error "$@"
  [ -z "$(ls -A "$work/out-dir")" ] || fail "helio ${*:3}: left $(ls -A "$work/out-dir")"
}

# --- Typos and what is wrong on the command line ---------------------------------------------------------------------

expect_error 2 "helio train: which recipe? 'helio train --help' lists them" train
expect_error 2 "helio train: unknown recipe 'mnsit'; did you mean 'mnist'?" train mnsit
expect_error 2 "unknown recipe 'qqqq'; there are fashion-mnist, mnist, reuters, linear" train qqqq
names=$(sed -n "s/.*; there are //p" "$work/err" | tr -d ,) # help and completion know all of them, and no others
expect_status 0 train --help
for name in $names; do grep -q "^  $name  " "$work/out" || fail "the recipe $name is not in the help"; done
[ "$(sed -n '/^Recipes:/,/^.helio/s/^  [a-z]/&/p' "$work/out" | wc -l)" -eq "$(echo "$names" | wc -w)" ] ||
  fail "help has other recipes than $names"
expect_status 0 completion bash
expect_output "words='$names'"
expect_error 2 "one RECIPE at a time; there is 'linear' too" train mnist linear
expect_error 2 "'own/m.json' is no recipe; --model own/m.json --data … trains the model of a file" train own/m.json
expect_error 2 "mnist is a recipe, not a file: 'helio train mnist' trains it" train --model mnist --data mnist
expect_error 2 "unknown recipe '?[31mred'; there are" train $'\x1b[31mred'
expect_error 2 "unknown recipe '??31mred'; there are" train $'\xc2\x9b31mred'
expect_error 2 "unknown recipe 'q'; there are" train q # one letter is like none
POSIXLY_CORRECT=1 expect_status 0 train linear --steps 1 --quiet # options may follow whatever the environment says
expect_error 2 "unknown option '--no-shufle'; did you mean '--no-shuffle'?" train linear --no-shufle
expect_error 2 "unknown option '--epcohs'; did you mean '--epochs'?" train linear --epcohs=3
expect_error 2 "--epochs needs a value" train linear --epochs
expect_error 2 "--epochs takes a number from 1 to 1000000, not '0'" train linear --epochs 0
expect_error 2 "--steps takes a number from 1 to 1000000000, not '3x'" train linear --steps 3x
expect_error 2 "--lr takes a number above 0, not '-1'" train linear --lr -1
expect_error 2 "--lr takes a number above 0, not 'nan'" train linear --lr nan
for fraction in 0 -0.5 nan; do
  expect_error 2 "--validation-split takes a number above 0, not '$fraction'" train linear --validation-split $fraction
done
expect_error 2 "--validation-split takes a number between 0 and 1, not '1'" train linear --validation-split 1
# shellcheck disable=SC2086 # several arguments are meant
expect_error 2 "the data bring samples to validate on: leave --validation-split out" $mnist --validation-split 0.1
expect_error 1 "--validation-split 0.9999 leaves none of 1000 samples to train on" train linear --validation-split 0.9999
expect_error 1 "--validation-split 1e-17 leaves none of 1000 samples to validate on" train linear --validation-split 1e-17
for rate in 1e-60 1e39; do # 0 and infinity to the devices
  expect_error 2 "--lr takes a number from 1.2e-38 to 3.4e+38, as float32 holds, not '$rate'" train linear --lr $rate
done
expect_error 2 "unknown value of --optimizer 'adm'; did you mean 'adam'?" train linear --optimizer adm
expect_error 2 "unknown value of --strategy 'mirored'; did you mean 'mirrored'?" train linear --strategy mirored
expect_error 2 "unknown value of --scale-lr 'linaer'; did you mean 'linear'?" train linear --scale-lr linaer
expect_error 2 "--batch and --batch-per-replica exclude each other" train linear --batch 8 --batch-per-replica 4
expect_error 2 "--resume needs --checkpoint" train linear --resume
expect_error 2 "--checkpoint-every needs --checkpoint" train linear --checkpoint-every 3
expect_error 2 "linear makes its data itself: leave --data out" train linear --data "$work"
expect_error 2 "--weights takes a number above 0 for each device, as 3,1, not '3,'" train linear --weights 3,
expect_error 2 "--devices takes up to 64 names, as cpu:0,cpu:1, not 'cpu:0,'" train linear --devices cpu:0,
expect_error 2 "--weights is for several devices, but --strategy is one-device" train linear --strategy one-device --weights 1,1
expect_error 2 "--log and --timeline name the same place" train linear --log "$work/x" --timeline "$work/x"
expect_error 2 "a recipe has its model: leave 'linear' or --model out" train linear --model x.json --data y.npz
expect_error 2 "--model needs --data" train --model x.json
expect_error 2 "helio eval: which file? 'helio train RECIPE --save FILE' writes one" eval
expect_error 2 "one FILE at a time; there is 'b' too" predict a b
expect_error 2 "unknown value of --recipe 'mnst'; did you mean 'mnist'?" eval x --recipe mnst
expect_error 2 "helio summary: unknown recipe 'mnst'; did you mean 'mnist'?" summary mnst
expect_error 2 "which recipe or file?" summary
expect_error 2 "one RECIPE|FILE at a time; there is 'fashion-mnist' too" summary mnist fashion-mnist
expect_error 2 "helio train: --logical needs a value" train linear --logical ''
expect_error 2 "--weights 3,1 is for several devices, but there is one: --devices names more of them, or --logical cuts" \
  train linear --weights 3,1
expect_error 2 "for several devices, but there is one" train linear --logical cpu:0=2 --devices cpu:1 --weights 3,1
expect_error 2 "--weights 3,1,1: 3 given for 2 devices; give one for each" \
  train linear --logical cpu:0=2 --weights 3,1,1
expect_error 2 "a recipe takes the folder in which the files of its set are, or its archive (.npz)" \
  train mnist --data "$work/a.csv"
expect_error 2 "a recipe takes the folder" train mnist --data "$golden/data/table.csv"

# --- What cannot be done ---------------------------------------------------------------------------------------------

expect_refusal 1 "'helio devices' lists those that there are; HELIO_LOGICAL_DEVICES, or --logical of 'helio train', makes" train linear --devices cpu:9 --save "$work/out-dir/m.safetensors"
HELIO_BACKEND=cpu expect_error 1 "'helio devices' lists those that there are; 'helio plugins' says why there are no others" \
  train linear --devices cpu:0,/device:GPU:0
if grep -q -e --logical "$work/err"; then fail "no GPU can be cut from a CPU: $(cat "$work/err")"; fi
expect_error 1 "helio train: --logical cpu0: 'cpu0' is not of the form" train linear --logical cpu0
expect_error 1 "helio train: --logical tpu:0=2: there is no physical device 'tpu:0'" train linear --logical tpu:0=2
HELIO_TIMEOUT=-1 expect_error 1 "helio train: HELIO_TIMEOUT=-1: expected seconds" train linear --logical cpu:0=2
HELIO_VISIBLE_DEVICES=gpu:9 expect_error 1 "HELIO_VISIBLE_DEVICES: there is no physical device 'gpu:9'" train linear
expect_error 1 "there is no collective locl; did you mean local?" train linear --logical cpu:0=2 --collective locl
expect_error 1 "there is no collective rign; did you mean ring?" train linear --collective rign
expect_status 0 train linear --collective ring --steps 1
expect_output "mirrored on CPU:0; with one device ring has nothing to sum"
expect_error 2 "give it a name that ends in .svg, not '$work/a.png'" train linear --plot "$work/a.png"
expect_error 2 "--save: a name of a file has at most" train linear --save "$work/$(printf 'a%.0s' $(seq 300)).safetensors"
expect_error 2 "--save writes a .safetensors file: give it a name that ends so, not '$work/m.h5'" train linear --save "$work/m.h5"
expect_error 2 "there is no loss 'msee'; did you mean 'mse'?" train linear --loss msee
expect_error 2 "there is no loss 'foo'; there are mean_squared_error, mean_absolute_error, " train linear --loss foo
expect_error 1 "helio data get mnist" train mnist
expect_error 1 "--data $work/none: No such file or directory; it names the folder or the archive of mnist" train mnist --data "$work/none"
expect_error 1 "helio data get mnist" train mnist --data "$work/out-dir"
expect_error 1 "there is no array" train mnist --data "$small/reuters/reuters.npz"
expect_error 1 "--init: $work/none cannot be opened: No such file or directory" train linear --init "$work/none"
expect_error 2 "--init needs a value" train linear --init ''
expect_error 1 "No such file or directory" train --model "$work/none.json" --data mnist
expect_error 1 "$work/none: No such file or directory" eval "$work/none"
expect_error 1 "out-dir is a folder, not a saved model; if it has checkpoints, 'helio train … --checkpoint $work/out-dir \
--resume --save FILE' goes on" eval "$work/out-dir"
expect_error 1 "table.csv: this is no model: a .json that Keras' model.to_json() wrote, or a saved model" \
  train --model "$golden/data/table.csv" --data "$golden/data/table.csv"
expect_error 1 "table.csv: this is no model" summary "$golden/data/table.csv"
echo '{"class_name": "Sequental", "config": {}}' >"$work/wrong.json"
expect_error 1 "Sequental" train --model "$work/wrong.json" --data mnist
expect_error 1 "Sequental" summary "$work/wrong.json"
expect_error 1 "did you mean 'Sequential'?" summary "$work/wrong.json"
echo '{"class_name": ' >"$work/wrong.json"
expect_error 1 "line 2, column 0" train --model "$work/wrong.json" --data mnist

# What no machine has is refused before any of it is taken: 4096 numbers to 2^30 are 16 TiB of weights.
echo '{"class_name": "Sequential", "config": {"name": "huge", "layers": [
  {"class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 4096]}},
  {"class_name": "Dense", "config": {"name": "dense", "units": 1073741824}}]}}' >"$work/huge.json"
expect_error 1 "CPU:0: RandomUniform asked for 16.0 TiB; limit " summary "$work/huge.json"
grep -qF "limit none" "$work/err" && fail "there is no limit: $(cat "$work/err")"

# Where it cannot write is known before it trains.
expect_error 1 "--save $work/none/m.safetensors: there is no folder $work/none; 'mkdir -p $work/none' makes it" \
  train linear --save "$work/none/m.safetensors"
expect_error 2 "--log takes the name of a file, not of a folder" train linear --log "$work/out-dir"
expect_error 1 "--log /dev/null is not a regular file" train linear --log /dev/null
"$helio" train linear --timeline /dev/stdout 2>"$work/err" </dev/null | cat >"$work/out"
[ "${PIPESTATUS[0]}" -eq 1 ] && [ ! -s "$work/out" ] || fail "a timeline into a pipe: $(head -c 200 "$work/out")"
grep -qF -- "--timeline /dev/stdout is not a regular file; name another" "$work/err" || fail "a pipe: $(cat "$work/err")"
mkdir -p "$work/named/helio" # which is in nobody's way
expect_status 0 train linear --steps 1 --quiet --checkpoint "$work/named/steps"
touch "$work/plain"
expect_error 1 "--checkpoint $work/plain" train linear --checkpoint "$work/plain/c"
expect_error 1 "--tensorboard $work/plain: nothing can be written there" train linear --tensorboard "$work/plain"

# Two that would be one, however they are spelt; only a model may take the place of the one it began with.
ln -s out-dir "$work/link"
expect_refusal 2 "--log and --plot name the same place" \
  train linear --plot "$work/out-dir/a.svg" --log "$work/link/../out-dir/a.svg"
expect_refusal 2 "--log and --timeline name the same place" train linear --log "$work/out-dir/a" --timeline "$work/link/a"
expect_refusal 2 "--checkpoint and --save name the same place" \
  train linear --save "$work/out-dir/c.safetensors" --checkpoint "$work/link/c.safetensors"
touch "$work/one" && ln "$work/one" "$work/other"
expect_refusal 2 "--log and --timeline name the same place" train linear --log "$work/one" --timeline "$work/other"
cp "$golden/data/table.csv" "$work/kept.csv"
expect_refusal 2 "--data and --log name the same place" train --model m.json --data "$work/kept.csv" --log "$work/kept.csv"
cmp -s "$golden/data/table.csv" "$work/kept.csv" || fail "the data were overwritten"
expect_status 2 train linear --steps 1 --json --log /dev/stdout
grep -qF -- "--log /dev/stdout: the command prints to this file; name another" "$work/err" || fail "$(cat "$work/err")"
"$helio" train linear --steps 1 --quiet --log "$work/err" 2>"$work/err" && fail "--log takes the place of messages"
for option in save:m.safetensors plot:p.svg log:l timeline:t checkpoint:c tensorboard:b; do # root may not write there either
  expect_error 1 "making a file in the folder failed: " train linear --${option%:*} "/sys/${option#*:}"
  grep -q "^helio train: --${option%:*} /sys/.*; choose another place" "$work/err" || fail "unwritable: $(cat "$work/err")"
done

# A training that fails at its first step takes nothing away and leaves nothing; nor does one that has nothing to do.
# (The log of a training that goes on goes on as well.)
no_step="train linear --loss sparse_categorical_crossentropy"
# shellcheck disable=SC2086
expect_status 1 $no_step --log "$work/out-dir/l" --timeline "$work/out-dir/t"
[ -z "$(ls -A "$work/out-dir")" ] || fail "helio $no_step: left $(ls -A "$work/out-dir")"
expect_status 0 train linear --steps 2 --checkpoint "$work/two" --quiet
for arguments in "1 $no_step" "0 train linear --steps 2 --checkpoint $work/two --resume"; do
  echo old | tee "$work/old.log" >"$work/old.json"
  # shellcheck disable=SC2086
  expect_status $arguments --log "$work/old.log" --timeline "$work/old.json"
  for file in log json; do
    [ "$(head -n 1 "$work/old.$file")" = old ] || fail "helio ${arguments#* }: the $file has lost what it had"
  done
done

# What is protected against writing stays, also root's own without root's rights.
unprivileged() { if [ "$(id -u)" -eq 0 ]; then setpriv --bounding-set=-dac_override "$@"; else "$@"; fi; }
for option in save:m.safetensors plot:p.svg log:l timeline:t; do
  echo kept >"$work/${option#*:}" && chmod a-w "$work/${option#*:}"
  unprivileged "$helio" train linear --${option%:*} "$work/${option#*:}" >"$work/out" 2>"$work/err" </dev/null &&
    fail "--${option%:*} replaced a file that is protected"
  grep -q "^helio train: --${option%:*} .*: Permission denied; choose another place" "$work/err" || fail "protected: $(cat "$work/err")"
  [ "$(cat "$work/${option#*:}")" = kept ] || fail "--${option%:*} wrote into a file that is protected"
  rm -f "$work/${option#*:}"
done

# A disk that is full, as far as a process can see: nothing half-written stays, nor folders that nothing came into; logs
# end in a whole line, and a timeline is whole JSON as far as it goes.
full_disk() { # KiB of room, arguments…
  local room=$1
  shift
  (
    trap '' XFSZ
    ulimit -f "$room"
    "$helio" "$@" --quiet 2>&1 >/dev/null
  ) | cat >"$work/err" # a file of its own would have no room either
  [ "${PIPESTATUS[0]}" -eq 1 ] || fail "helio $*: a full disk is no failure"
  grep -q "out-dir/.*: .* failed: File too large; make room there, or name another place" "$work/err" ||
    fail "helio $*: a full disk: $(cat "$work/err")"
}
# shellcheck disable=SC2086 # several arguments are meant
full_disk 1 $mnist --batch 256 --steps 1 --save "$work/out-dir/m.safetensors"
full_disk 1 train linear --plot "$work/out-dir/p.svg"
# shellcheck disable=SC2086
full_disk 1 $mnist --batch 256 --steps 1 --checkpoint "$work/out-dir/c/d"
for option in log timeline checkpoint tensorboard; do full_disk 0 train linear --$option "$work/out-dir/o"; done
full_disk 0 train linear --tensorboard "$work/out-dir/a/b/c"
[ -z "$(ls -A "$work/out-dir")" ] || fail "a full disk: $(ls -A "$work/out-dir") is left"
mkdir "$work/out-dir/mine" # which others made stays
full_disk 0 train linear --checkpoint "$work/out-dir/mine/c" --tensorboard "$work/out-dir/mine"
rmdir "$work/out-dir/mine" || fail "a full disk: $(ls -A "$work/out-dir/mine") is left"
full_disk 1 train linear --timeline "$work/out-dir/t.json"
cp "$work/out-dir/t.json" "$work/out"
expect_json "len(data) > 3"
rm "$work/out-dir/t.json"
full_disk 1 train linear --log "$work/out-dir/l.jsonl"
for file in "$work"/out-dir/*; do
  [ ! -s "$file" ] || [ -z "$(tail -c 1 "$file" | tr -d '\n}')" ] || fail "a full disk: $file ends in $(tail -c 20 "$file")"
done
rm -f "$work"/out-dir/*

# --- The line: each step divides the error by five, so that float32 soon knows none ----------------------------------

expect_status 0 train linear --json
expect_json "data['loss'] == 0 and data['epochs'] == 2 and data['steps'] == 200 and data['strategy'] == 'one-device'"
expect_json "data['accuracy'] is None and data['val_loss'] is None and data['val_accuracy'] is None"
expect_json "data['collective'] is None and data['fallbacks'] == [] and data['samples_per_second'] > 0"
expect_json "data['devices'] == ['/job:localhost/replica:0/task:0/device:CPU:0']"
expect_status 0 train linear --json --logical cpu:0=3 --weights 3,2,1 --batch-per-replica 10
expect_json "data['strategy'] == 'mirrored' and len(data['devices']) == 3 and data['steps'] == 2 * 34"
expect_json "data['collective'] == 'local' and data['loss'] < 1e-6"
HELIO_LOGICAL_DEVICES=cpu:0=2 expect_status 0 train linear --json
expect_json "data['strategy'] == 'mirrored' and len(data['devices']) == 2"
HELIO_LOGICAL_DEVICES=cpu:0=2 expect_status 0 train linear --json --strategy one-device
expect_json "data['strategy'] == 'one-device' and len(data['devices']) == 1"
expect_status 0 train linear --json --logical cpu:0=2 --devices cpu:1
expect_json "data['strategy'] == 'one-device' and data['devices'][0].endswith('CPU:1')"
expect_status 0 train linear --json --logical cpu:0=2 --collective reduce-to-one --devices cpu:1,cpu:0 --steps 3
expect_json "data['collective'] == 'reduce-to-one' and data['steps'] == 3 and data['epochs'] == 1"
expect_last_word() { # the begin of the only message
  [ "$(wc -l <"$work/err")" -eq 1 ] && grep -q "^$1" "$work/err" || fail "not \"$1\" alone: $(cat "$work/err")"
}
expect_status 0 train linear --lr 1e30
expect_output "loss nan"
expect_last_word "helio train: warning: the loss became nan; try a smaller --lr, and check the data for empty cells"
expect_status 1 train linear --lr 1e30 --checkpoint "$work/no-numbers"
grep -q "WARNING:helio:the loss is nan: no checkpoint is written" "$work/err" || fail "-nan: $(cat "$work/err")"
grep -q "^helio train: the loss became nan, so no checkpoint was written; try" "$work/err" || fail "nan: $(cat "$work/err")"
if grep -q "^checkpoints:" "$work/out"; then fail "checkpoints are promised of a loss that is no number"; fi
echo good >"$work/good.safetensors"
expect_status 1 train linear --lr 1e30 --quiet --save "$work/good.safetensors"
expect_last_word "helio train: the loss became nan, so the model was not saved; try a smaller --lr"
expect_status 1 train linear --lr 1e10 --steps 3 --save "$work/good.safetensors"
expect_output "loss inf"
expect_last_word "helio train: the loss became inf, so the model was not saved; try a smaller --lr"
[ "$(cat "$work/good.safetensors")" = good ] || fail "a model of nonsense took the place of another"
expect_status 0 train linear --scale-lr linear
expect_output "not scaled for one replica"
expect_status 0 train linear --quiet
[ ! -s "$work/out" ] && [ ! -s "$work/err" ] || fail "--quiet is not: $(cat "$work/out" "$work/err")"
expect_status 0 train linear
expect_output "one-device on CPU:0"
expect_output 'Model: "linear"'
expect_output "Epoch 2/2"
expect_output "After 2 epochs, 200 steps: loss 0.0000"

# --- As TensorFlow: from the start values of make_traces.py, in the order of the file --------------------------------

if python3 -c '' 2>/dev/null; then
  python3 - "$golden/train/traces.txt" "$work" <<'END'
import json, struct, sys
lines = [line.split() for line in open(sys.argv[1]) if line.startswith("small mnist 256 ")]
json.dump([float(word) for word in lines[0][3:]], open(sys.argv[2] + "/expected.json", "w"))
shapes = {"conv2d/kernel": (3, 3, 1, 16), "conv2d/bias": (16,), "conv2d_1/kernel": (3, 3, 16, 32),
          "conv2d_1/bias": (32,), "dense/kernel": (800, 10), "dense/bias": (10,)}
state, header, data = 1, {}, b""
for name, shape in shapes.items():
    count, window = 1, 1
    for extent in shape: count *= extent
    for extent in shape[:-2]: window *= extent
    values = [0.0] * count
    if len(shape) > 1:
        limit = (6 / (window * (shape[-2] + shape[-1]))) ** 0.5
        for i in range(count):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            values[i] = ((state >> 33) / 1073741824.0 - 1) * limit
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
    data += struct.pack(f"<{count}f", *values)
text = json.dumps(header).encode()
open(sys.argv[2] + "/start.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
END
  for devices in "" "--logical cpu:0=2" "--logical cpu:0=3 --weights 3,2,1"; do
    # shellcheck disable=SC2086 # several arguments are meant
    expect_status 0 $mnist --batch 256 --steps 40 --no-shuffle --init "$work/start.safetensors" --log "$work/log" --json $devices
    expect_json "(lambda losses, e: len(losses) == 40 and max(abs(a - b) for a, b in zip(losses, e)) < 1e-3 * max(e))(
      [line['loss'] for line in map(json.loads, open('$work/log')) if 'step' in line], json.load(open('$work/expected.json')))"
    expect_json "abs(data['val_loss'] / json.load(open('$work/expected.json'))[40] - 1) < 1e-2"
    expect_json "abs(data['val_accuracy'] - json.load(open('$work/expected.json'))[41]) < 0.011 and data['steps'] == 40"
  done
else
  echo "SKIP: losses as TensorFlow's: python3 is not installed"
fi

# --- Files that are written ------------------------------------------------------------------------------------------

files=$work/files
mkdir "$files"
# shellcheck disable=SC2086
expect_status 0 $mnist --batch 128 --epochs 3 --seed 3 --lr 0.005 --save "$files/m.safetensors" --log "$files/log.jsonl" \
  --plot "$files/plot.svg" --timeline "$files/time.json" --tensorboard "$files/board/deep" --checkpoint "$files/check/deep"
expect_output "model: $files/m.safetensors"
expect_output "plot: $files/plot.svg"
for file in m.safetensors log.jsonl plot.svg time.json board/deep/train board/deep/validation check/deep; do
  [ -e "$files/$file" ] || fail "$file was not written"
done
[ "$(ls "$files/check/deep" | wc -l)" -eq 3 ] || fail "not a checkpoint for each epoch: $(ls "$files/check/deep")"
grep -q '<svg' "$files/plot.svg" || fail "plot.svg is no picture: $(head -c 200 "$files/plot.svg")"
expect_status 0 eval "$files/m.safetensors" --data "$small" --json
cp "$work/out" "$work/evaluated"
expect_json "data['samples'] == 100 and 0.3 < data['accuracy'] <= 1"
expect_json "(lambda e: [line for line in e if 'epoch' in line][-1]['epoch'] == 3 and len(e) == 33 and
  abs([line for line in e if 'epoch' in line][-1]['val_loss'] - data['loss']) < 1e-4 and
  {'step', 'loss', 'samples', 'ms'} == set(e[0]) and e[0]['samples'] == 128)([json.loads(l) for l in open('$files/log.jsonl')])"
expect_json "sum(span.get('name') == 'compute' for span in json.load(open('$files/time.json'))) >= 30"

# What it says of each input is what evaluation has counted; a file of inputs and the set say the same.
expect_status 0 predict "$files/m.safetensors" --data "$small" --json
cp "$work/out" "$work/predicted"
expect_json "len(data) == 100 and all(0 < row['probability'] <= 1 for row in data)"
expect_json "abs(sum(row['class'] == label for row, label in
  zip(data, __import__('gzip').open('$small/mnist/t10k-labels-idx1-ubyte.gz').read()[8:])) / 100 -
  json.load(open('$work/evaluated'))['accuracy']) < 1e-6"
expect_status 0 predict "$files/m.safetensors" --data "$small/mnist/t10k-images-idx3-ubyte.gz" --json
cmp -s "$work/out" "$work/predicted" || fail "a file of inputs is predicted otherwise than the set"
expect_status 0 predict "$files/m.safetensors" --data "$small" --count 2
[ "$(wc -l <"$work/out")" -eq 3 ] || fail "not two rows: $(cat "$work/out")"
expect_error 1 "the model takes (28, 28, 1)" predict "$files/m.safetensors" --data "$small/mnist/t10k-labels-idx1-ubyte.gz"
expect_status 0 summary "$files/m.safetensors"
expect_output "12,810"

# --- Ends in the middle ----------------------------------------------------------------------------------------------

# shellcheck disable=SC2086
once="$mnist --batch 128 --seed 3 --quiet"
# shellcheck disable=SC2086
expect_status 0 $once --steps 25 --save "$work/whole.safetensors"
# shellcheck disable=SC2086
expect_status 0 $once --steps 13 --checkpoint "$work/steps"
# shellcheck disable=SC2086
expect_error 1 "resume" $once --steps 25 --checkpoint "$work/steps"
# shellcheck disable=SC2086
expect_status 0 $once --steps 25 --checkpoint "$work/steps" --resume --save "$work/parts.safetensors"
cmp -s "$work/whole.safetensors" "$work/parts.safetensors" || fail "25 steps are not 13 and 12 that follow"
# shellcheck disable=SC2086
expect_status 0 $once --steps 25 --checkpoint "$work/steps" --resume --json
expect_json "data['steps'] == 25 and data['samples_per_second'] is None"

# Where it goes on from is told, and so is that nothing is left to do.
last_checkpoint=$(find "$work/steps" -name 'checkpoint-*.safetensors' | sort | tail -n 1)
# shellcheck disable=SC2086
expect_status 0 $mnist --batch 128 --seed 3 --steps 26 --checkpoint "$work/steps" --resume
grep -qF "the training goes on from $last_checkpoint: epoch" "$work/err" || fail "from where? $(cat "$work/err")"
expect_status 0 train linear --epochs 2 --checkpoint "$work/done" --quiet
expect_status 0 train linear --epochs 2 --checkpoint "$work/done" --resume
expect_output "Nothing was left to do: step 200 had been reached before"
expect_output "After 2 epochs, 200 steps: loss 0.0000"
expect_status 0 train linear --epochs 2 --checkpoint "$work/done" --resume --json
expect_json "data['steps'] == 200 and data['epochs'] == 2"
# What is not written is not told.
expect_status 0 train linear --epochs 2 --checkpoint "$work/done" --resume --log "$work/out-dir/l" --timeline "$work/out-dir/t"
if grep -e "^log:" -e "^timeline:" "$work/out"; then fail "files of no steps are told"; fi
[ -z "$(ls -A "$work/out-dir")" ] || fail "a training without steps left $(ls -A "$work/out-dir")"
# Nor is validation that did not take place.
expect_status 0 train linear --epochs 1 --validation-split 0.5 --checkpoint "$work/unvalidated" --quiet
expect_status 0 train linear --epochs 2 --checkpoint "$work/unvalidated" --resume
expect_output "After 2 epochs, "
if grep "^After .*val_" "$work/out"; then fail "what was not validated is told"; fi

# Two recipes may have variables of the same names and shapes: the checkpoints of one are none of the other.
# shellcheck disable=SC2086
expect_status 0 $mnist --batch 128 --epochs 1 --checkpoint "$work/recipe" --quiet
expect_refusal 1 "it was written by a training of mnist, and this is one of fashion-mnist; give the folder of this" \
  train fashion-mnist --data "$small" --epochs 2 --checkpoint "$work/recipe" --resume --quiet \
  --save "$work/out-dir/m.safetensors"

# A signal lets it write a checkpoint, from which it goes on to what it would have come to.
for signal in INT:130 TERM:143 HUP:129; do
  folder=$work/signal-${signal%:*}
  # A shell that is no terminal's starts what runs beside it with SIGINT ignored, and what is ignored stays so.
  # shellcheck disable=SC2086
  env --default-signal=INT,HUP "$helio" $once --epochs 100000 --checkpoint "$folder" --checkpoint-every 5 --json \
    >"$work/out" 2>"$work/err" &
  process=$!
  await has_files "$folder"
  kill -"${signal%:*}" $process
  wait $process
  status=$?
  [ $status -eq "${signal#*:}" ] || fail "SIG${signal%:*}: exit status $status: $(cat "$work/err")"
  grep -q "after step .*--resume goes on from there" "$work/err" || fail "SIG${signal%:*}: $(cat "$work/err")"
  expect_json "data['steps'] >= 5"
done
last=$(ls "$work/signal-INT" | tail -n 1 | tr -dc 0-9)
last=$((10#$last + 3))
# shellcheck disable=SC2086
expect_status 0 $once --steps $last --checkpoint "$work/signal-INT" --resume --save "$work/parts.safetensors"
# shellcheck disable=SC2086
expect_status 0 $once --steps $last --save "$work/whole.safetensors"
cmp -s "$work/whole.safetensors" "$work/parts.safetensors" || fail "a training that was ended by SIGINT went on otherwise"
# It goes on with the rate of its checkpoint, or with one that is asked for.
expect_status 0 train linear --steps 3 --lr 0.01 --checkpoint "$work/rate" --quiet
expect_status 0 train linear --steps 5 --checkpoint "$work/rate" --resume --log "$work/log"
expect_output "sgd with a rate of 0.2, or with that of a checkpoint, if it goes on from one"
expect_output "It goes on with a rate of 0.01"
grep -q '^{"epoch".*"learning_rate": 0.01[,0-9]' "$work/log" || fail "it went on with another rate: $(tail -n 1 "$work/log")"
for other in "--seed 9" --no-shuffle; do
  # shellcheck disable=SC2086
  expect_status 1 train linear --steps 7 --checkpoint "$work/rate" --resume --quiet $other
  grep -qF "go on with the same dataset, batch size, seed and shuffling" "$work/err" || fail "$other: $(cat "$work/err")"
done
expect_status 0 train linear --steps 7 --lr 0.2 --checkpoint "$work/rate" --resume --log "$work/log" --quiet
tail -n 1 "$work/log" | grep -q '"learning_rate": 0.2' || fail "--lr does not hold for a training that goes on: $(tail -n 1 "$work/log")"
# Where there is none yet that is told; and the mean of one loss does not go on with another.
expect_status 0 train linear --steps 3 --checkpoint "$work/first" --resume
grep -qF "there is no checkpoint in $work/first yet: the training begins" "$work/err" || fail "begun: $(cat "$work/err")"
expect_status 1 train linear --steps 7 --checkpoint "$work/first" --resume --loss mae
grep -q "written by a training with mean_squared_error, and this is one with mean_absolute_error" "$work/err" ||
  fail "another loss: $(cat "$work/err")"
# A checkpoint is no model, and nobody has to guess what to do with one.
for arguments in "eval" "train linear --quiet --init"; do
  # shellcheck disable=SC2086
  expect_error 1 "7.safetensors is a checkpoint, the state of a training, and not a saved model: go on from it" \
    $arguments "$work/rate/checkpoint-000000000007.safetensors"
done

# Of numbers that are none there is no checkpoint, and none is promised.
rm -f "$work/log"
"$helio" train linear --lr 1e30 --epochs 100000 --checkpoint "$work/nan" --log "$work/log" >"$work/out" 2>"$work/err" &
process=$!
await test -s "$work/log"
kill -TERM $process
wait $process
[ $? -eq 143 ] || fail "SIGTERM: $(cat "$work/err")"
grep -q "of which no checkpoint was written, nor is there one in $work/nan" "$work/err" || fail "a loss that is no number: $(cat "$work/err")"
[ -z "$(ls "$work/nan" 2>/dev/null)" ] || fail "a loss that is no number: $(ls "$work/nan")"

# --- Rates -----------------------------------------------------------------------------------------------------------

rates_of_epochs() { # of a log
  sed -n 's/^{"epoch".*"learning_rate": \([0-9.e-]*\),.*/\1/p' "$1"
}
for scaling in none:0.001 linear:0.003 sqrt:0.00173205; do
  # shellcheck disable=SC2086
  expect_status 0 $mnist --batch 256 --epochs 2 --logical cpu:0=3 --scale-lr ${scaling%:*} --log "$work/log"
  rate=$(rates_of_epochs "$work/log" | tail -n 1)
  case $rate in
    ${scaling#*:}*) ;;
    *) fail "--scale-lr ${scaling%:*}: a rate of $rate, not ${scaling#*:}" ;;
  esac
  case $scaling in
    linear*) expect_output "grows from 0.001 in 5 steps to 3 times as much, for 3 replicas" ;;
    sqrt*) expect_output "grows from 0.001 in 5 steps to 1.73205 times as much, for 3 replicas" ;;
  esac
done
expect_status 0 train linear --steps 1 --logical cpu:0=3 --scale-lr linear
expect_output "sgd with a rate that grows from 0.2 in 100 steps to 3 times as much, for 3 replicas"
expect_output "After 1 epoch, 1 step:"
# More epochs than were planned at first have the rates that they would have had.
scaled="train linear --logical cpu:0=2 --scale-lr linear --batch 100 --quiet"
# shellcheck disable=SC2086
expect_status 0 $scaled --epochs 6 --log "$work/whole.log"
for epochs in 1 2 6; do
  # shellcheck disable=SC2086
  expect_status 0 $scaled --epochs $epochs --checkpoint "$work/scaled" --resume --log "$work/parts.log"
done
[ "$(rates_of_epochs "$work/parts.log")" = "$(rates_of_epochs "$work/whole.log")" ] ||
  fail "the rates are $(rates_of_epochs "$work/parts.log"), not $(rates_of_epochs "$work/whole.log")"
# The rate that grows is the checkpoint's, or the one that is named then; so it is where one replica has nothing to scale.
rm -rf "$work/scaled"
for devices in 2 1; do
  scaled="train linear --logical cpu:0=$devices --scale-lr linear --batch 100 --quiet --checkpoint $work/scaled-$devices"
  # shellcheck disable=SC2086
  expect_status 0 $scaled --epochs 1 --lr 0.01
  rm -f "$work/rate.log"
  for rate in "" "--lr 0.02"; do
    # shellcheck disable=SC2086
    expect_status 0 $scaled --epochs $((${#rate} / 9 + 2)) --resume $rate --log "$work/rate.log"
  done
  factors=$(rates_of_epochs "$work/rate.log" | awk -v n=$devices '{ printf "%g ", $1 / 0.01 / n }')
  [ "$factors" = "1 2 " ] || fail "rates of $devices devices: $(rates_of_epochs "$work/rate.log")"
done
# Nothing to go on from: a log of another training makes way.
rm -rf "$work/log" "$work/nothing"
for _ in 1 2; do
  expect_status 0 train linear --steps 2 --log "$work/log" --checkpoint "$work/nothing" --resume
  rm -rf "$work/nothing"
done
[ "$(grep -c '^{"step"' "$work/log")" -eq 2 ] || fail "two trainings in one log: $(cat "$work/log")"

# --- Other recipes ---------------------------------------------------------------------------------------------------

for loss in "" "--loss sparse_categorical_crossentropy"; do # its own
  # shellcheck disable=SC2086
  expect_status 0 train reuters --data "$small" --steps 2 $loss --json
  expect_json "0 <= data['sparse_top_k_categorical_accuracy'] <= 1 and 0 <= data['val_sparse_top_k_categorical_accuracy'] <= 1"
done
expect_status 0 train reuters --data "$small/reuters/reuters.npz" --steps 1 --quiet --save "$work/topics.safetensors"
expect_status 0 predict "$work/topics.safetensors" --data "$small" --json
expect_json "len(data) > 0 and all(0 <= row['class'] < 46 for row in data)"
cp "$work/out" "$work/predicted"
expect_status 0 predict "$work/topics.safetensors" --data "$small/reuters/reuters.npz" --json
cmp -s "$work/out" "$work/predicted" || fail "the set's file is predicted otherwise than the set's folder"
expect_error 2 "has its layers already: leave --data out" summary "$work/topics.safetensors" --data "$small"
expect_error 1 "'cpu:0,cpu:1' is not the name of a device" eval "$work/topics.safetensors" --data "$small" --device cpu:0,cpu:1
expect_status 0 train fashion-mnist --data "$small" --steps 2
expect_output "batches of 128, 10 steps in an epoch"
# Two devices of one card: the collective that was given up for another is told.
strict=$HELIO_TEST_BUILD/tests/plugins/strict/.libs
if [ -e "$strict/strict.so" ]; then
  HELIO_PLUGIN_PATH=$strict:$HELIO_TEST_BUILD/tests/plugins/refusing/.libs:${HELIO_PLUGIN_PATH-} HELIO_BACKEND=strict \
    expect_status 0 train linear --logical strict:0=2 --json
  expect_json "data['collective'] == 'reduce-to-one' and [f[:14] for f in data['fallbacks']] == ['nccl: NCCL is ']"
fi
# shellcheck disable=SC2086
expect_status 0 $mnist --steps 1 --logical cpu:0=2
expect_output "batches of 8192"
expect_status 0 summary reuters
expect_output "(None, 300, 7)"
expect_output "216,874" # 30,982 words of 7 numbers
expect_status 0 summary reuters --data "$small"
grep -q 216,874 "$work/out" && fail "summary --data does not look at the data"
expect_status 0 summary fashion-mnist
expect_output 'Model: "fashion-mnist"'

# --- Memory and time -------------------------------------------------------------------------------------------------

# As many images as MNIST has, in batches of 4096: below 500 MB, and the first step is done within 1.5 s of the start of
# the process, in one of ten runs, because the machine may have other things to do. The time is that of the whole process,
# whose validation is on few images.
if [ -z "${HELIO_TEST_SANITIZERS-}" ] && [ -x "$HELIO_TEST_BUILD/tests/tools/usage" ]; then
  mkdir -p "$work/large/mnist"
  cp "$small/mnist/"t10k-* "$work/large/mnist/"
  repeat() { # file, bytes of its header, the header of the large one, bytes of the large one
    { printf "$3"; for _ in $(seq 47); do gzip -dc "$small/mnist/$1" | tail -c +$(($2 + 1)); done | head -c "$4"; } |
      gzip -1 >"$work/large/mnist/$1"
  }
  repeat train-images-idx3-ubyte.gz 16 '\0\0\10\3\0\0\352\140\0\0\0\34\0\0\0\34' 47040000
  repeat train-labels-idx1-ubyte.gz 8 '\0\0\10\1\0\0\352\140' 60000
  for steps in 1 4; do
    "$HELIO_TEST_BUILD/tests/tools/usage" "$helio" train mnist --data "$work/large" --steps $steps --strategy one-device \
      --quiet 3>"$work/usage" || fail "a training of many images"
    read -r peak milliseconds <"$work/usage"
    echo "mnist, batches of 4096, $steps steps: $((peak / 1024)) MiB, $milliseconds ms of processors"
    [ "$peak" -lt 488281 ] || fail "$peak KiB are more than 500 MB"
  done
  best=1000000
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ "$best" -ge 1500 ] || break
    start=${EPOCHREALTIME/[.,]/}
    expect_status 0 train mnist --data "$work/large" --steps 1 --strategy one-device --quiet
    milliseconds=$(((${EPOCHREALTIME/[.,]/} - start) / 1000))
    [ "$milliseconds" -ge "$best" ] || best=$milliseconds
  done
  echo "mnist, batches of 4096, first step: $best ms"
  [ "$best" -lt 1500 ] || fail "the first step is done only after $best ms"
fi

[ "$failures" -eq 0 ]
