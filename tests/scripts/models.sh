#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# helio train, eval, predict and summary with models of Keras' and with data of one's own: what fits together, what is told
# of it, and what is wrong with files.
set -u
# shellcheck source=tests/scripts/expect.bash
. "$HELIO_TEST_SOURCE/scripts/expect.bash"
mkdir "$work/out-dir"

# --- Models and data of one's own ------------------------------------------------------------------------------------

"$helio" summary mnist --json >"$work/model.json" || fail "summary --json"
cp "$work/model.json" "$work/out"
expect_json "data['class_name'] == 'Sequential' and data['config']['layers'][1]['class_name'] == 'Conv2D'"
export HELIO_DATA_DIR=$small
expect_status 0 train --model "$work/model.json" --data mnist --batch 128 --epochs 1
expect_output "sparse_categorical_crossentropy (by the last layer and the labels; --loss chooses another), adam"
expect_error 2 "unknown file or set of data 'mnits'; did you mean 'mnist'?" train --model "$work/model.json" --data mnits
expect_error 2 "unknown file or set of data 'nosuch'; 'helio data list' lists the sets that there are" \
  train --model "$work/model.json" --data nosuch
# A model of one's own on a known set: what it says of the set's inputs is what evaluation counts.
sed 's/"mnist"/"mine"/' "$work/model.json" >"$work/mine.json"
expect_status 0 train --model "$work/mine.json" --data mnist --batch 128 --epochs 2 --quiet --save "$work/mine.safetensors"
expect_status 0 eval "$work/mine.safetensors" --data mnist --json
cp "$work/out" "$work/evaluated"
expect_status 0 predict "$work/mine.safetensors" --data mnist --json
cp "$work/out" "$work/mine.predicted"
expect_json "abs(sum(row['class'] == label for row, label in
  zip(data, __import__('gzip').open('$small/mnist/t10k-labels-idx1-ubyte.gz').read()[8:])) / 100 -
  json.load(open('$work/evaluated'))['accuracy']) < 1e-6"
# Bytes of a file become what they were in the training, also in one that goes on from the saved model.
images=$small/mnist/t10k-images-idx3-ubyte.gz
expect_status 0 predict "$work/mine.safetensors" --data "$images" --json
cmp -s "$work/out" "$work/mine.predicted" || fail "the set's file is predicted otherwise than the set by its name"
[ ! -s "$work/err" ] || fail "a model that tells how it takes bytes: $(cat "$work/err")"
expect_status 0 train --model "$work/mine.safetensors" --data mnist --steps 1 --lr 1e-9 --quiet --save "$work/further.safetensors"
expect_status 0 predict "$work/further.safetensors" --data "$images" --json
expect_json "all(a['class'] == b['class'] and abs(a['probability'] - b['probability']) < 1e-4
  for a, b in zip(data, json.load(open('$work/mine.predicted'))))"
# The model may take the place of the one that it began with, and no other file may.
cp "$work/further.safetensors" "$work/again.safetensors"
expect_status 0 train --model "$work/again.safetensors" --data mnist --steps 1 --quiet --save "$work/again.safetensors"
if cmp -s "$work/again.safetensors" "$work/further.safetensors"; then fail "the model that it began with was kept"; fi
expect_error 2 "--model and --log name the same place" \
  train --model "$work/again.safetensors" --data mnist --log "$work/again.safetensors"
# One that takes bytes by itself, and gives logits, as the README's.
cat >"$work/bytes.json" <<'END'
{"class_name": "Sequential", "config": {"name": "bytes", "layers": [
  {"class_name": "InputLayer", "config": {"batch_shape": [null, 28, 28], "dtype": "float32", "name": "in"}},
  {"class_name": "Rescaling", "config": {"name": "scale", "scale": 0.00392156862745098, "offset": 0.0}},
  {"class_name": "Flatten", "config": {"name": "flatten"}},
  {"class_name": "Dense", "config": {"name": "dense", "units": 10, "activation": "linear"}}]}}
END
expect_status 0 train --model "$work/bytes.json" --data mnist --epochs 5 --json --save "$work/bytes.safetensors"
cp "$work/out" "$work/trained"
for from in "--data mnist" "--recipe mnist"; do
  # shellcheck disable=SC2086
  expect_status 0 eval "$work/bytes.safetensors" $from --json
  expect_json "abs(data['loss'] - json.load(open('$work/trained'))['val_loss']) < 1e-4 and data['accuracy'] > 0.5"
done
# The name of a set is no place: a file may have it.
mkdir "$work/here"
(cd "$work/here" && "$helio" train --model "$work/bytes.json" --data mnist --steps 1 --quiet --log mnist) ||
  fail "a log with the name of a set"
[ -s "$work/here/mnist" ] || fail "no log with the name of a set"
# Texts of which those to validate on are longer or shorter: a model without a shape learns one that fits both.
export HELIO_DATA_DIR=$golden/data
cat >"$work/texts.json" <<'END'
{"class_name": "Sequential", "config": {"name": "texts", "layers": [
  {"class_name": "Embedding", "config": {"name": "embedding", "input_dim": 100, "output_dim": 2}},
  {"class_name": "Flatten", "config": {"name": "flatten"}},
  {"class_name": "Dense", "config": {"name": "dense", "units": 1, "activation": "sigmoid"}}]}}
END
expect_status 0 train --model "$work/texts.json" --data imdb --epochs 1 --json --save "$work/texts.safetensors"
expect_json "data['val_loss'] > 0"
expect_status 0 summary "$work/texts.safetensors" --json
expect_json "data['config']['layers'][0]['config']['dtype'] == 'int32'"
unset HELIO_DATA_DIR

own_model() { # units, activation
  cat <<END
{"class_name": "Sequential", "config": {"name": "own", "layers": [
  {"class_name": "InputLayer", "config": {"batch_shape": [null, 2], "dtype": "float32", "name": "in"}},
  {"class_name": "Dense", "config": {"name": "dense", "units": $1, "activation": "$2"}}]}}
END
}
awk 'BEGIN { print "a,b,label"; for (i = 0; i < 400; i++) { a = i % 20 - 9.5; b = int(i / 20) - 9.5; print a "," b "," (a + b > 0) } }' \
  >"$work/sides.csv"
awk 'BEGIN { print "a\tb\tsum"; for (i = 0; i < 100; i++) print i % 10 / 10 "\t" int(i / 10) / 10 "\t" i % 10 / 5 - int(i / 10) / 10 }' \
  >"$work/sums.tsv"
for form in "2 softmax:sparse_categorical_crossentropy (" "2 linear:sparse_categorical_crossentropy from logits" \
  "1 sigmoid:binary_crossentropy ("; do
  # shellcheck disable=SC2086
  own_model ${form%%:*} >"$work/own.json"
  expect_status 0 train --model "$work/own.json" --data "$work/sides.csv" --lr 0.05 --save "$work/own.safetensors"
  expect_output "${form#*:}"
  expect_status 0 eval "$work/own.safetensors" --data "$work/sides.csv" --json
  expect_json "data['accuracy'] > 0.95 and data['samples'] == 400"
  expect_status 0 predict "$work/own.safetensors" --data "$work/sides.csv" --json
  case $form in
    *linear*) expect_json "len(data) == 400 and all(len(row['values']) == 2 for row in data)" ;;
    *) expect_json "data[0]['class'] == 0 and data[399]['class'] == 1 and data[399]['probability'] > 0.9" ;;
  esac
done
# In a graph, too, what only moves numbers is not what makes them.
tensor() { # layer: what is made of its output
  echo '"inbound_nodes": [{"args": [{"class_name": "__keras_tensor__", "config":
    {"shape": [null, 2], "dtype": "float32", "keras_history": ["'"$1"'", 0, 0]}}], "kwargs": {}}]'
}
cat >"$work/graph.json" <<END
{"class_name": "Functional", "config": {"name": "graph", "layers": [
  {"class_name": "Reshape", "name": "moved", "config": {"name": "moved", "target_shape": [2]}, $(tensor dense)},
  {"class_name": "Dense", "name": "dense", "config": {"name": "dense", "units": 2, "activation": "softmax"}, $(tensor in)},
  {"class_name": "InputLayer", "name": "in", "config": {"batch_shape": [null, 2], "name": "in"}, "inbound_nodes": []}],
  "input_layers": [["in", 0, 0]], "output_layers": [["moved", 0, 0]]}}
END
expect_status 0 train --model "$work/graph.json" --data "$work/sides.csv" --steps 1
expect_output "sparse_categorical_crossentropy ("
# What has no trained weights, or is no model at all.
for command in eval predict; do
  expect_error 1 "own.json is an architecture without trained weights; 'helio train --model" $command "$work/own.json" \
    --data "$work/sides.csv"
  expect_error 1 "sides.csv: this is no model: a .json that Keras" $command "$work/sides.csv" --data "$work/sides.csv"
done
cut -d, -f3 "$work/sides.csv" >"$work/labels.csv"
expect_error 1 "labels.csv has only a column of labels: features are needed" predict "$work/own.safetensors" \
  --data "$work/labels.csv"
# A long name is not cut within a letter.
sed "s/Dense/$(printf 'Z%.0s' $(seq 99))é/" "$work/own.json" >"$work/long.json"
expect_status 1 summary "$work/long.json"
iconv -f UTF-8 -t UTF-8 "$work/err" >"$work/out" 2>&1 || fail "half a letter: $(cat "$work/err")"
# The last samples are kept to validate on, however the others are shuffled: of 400 the last 134 are 0.3331, rounded up.
# It is the training on the others, also one that goes on from a checkpoint.
mkdir "$work/split"
head -n 267 "$work/sides.csv" >"$work/split/first.csv"
{ head -n 1 "$work/sides.csv" && tail -n 134 "$work/sides.csv"; } >"$work/split/last.csv"
own="train --model $work/own.json --seed 5"
# shellcheck disable=SC2086 # several arguments are meant
expect_status 0 $own --data "$work/split/first.csv" --epochs 2 --quiet --save "$work/split/first.safetensors"
split="$own --data $work/sides.csv --validation-split 0.3331 --checkpoint $work/split/steps --resume"
# shellcheck disable=SC2086
expect_status 0 $split --steps 4 --quiet
# shellcheck disable=SC2086
expect_status 0 $split --epochs 2 --json --save "$work/split/split.safetensors"
cp "$work/out" "$work/trained"
cmp -s "$work/split/first.safetensors" "$work/split/split.safetensors" || fail "--validation-split leaves other samples to train on"
expect_status 0 eval "$work/split/split.safetensors" --data "$work/split/last.csv" --json
expect_json "data['samples'] == 134 and abs(data['loss'] - json.load(open('$work/trained'))['val_loss']) < 1e-6"
# Which column the labels are is told; capitals make no other name, and y may be a feature.
awk -F, -v OFS=, '{ print $3, $1, $2 }' "$work/sides.csv" | sed '1s/.*/ Label,x,y/' >"$work/capital.csv"
expect_status 0 train --model "$work/own.json" --data "$work/capital.csv" --lr 0.05 --save "$work/capital.safetensors"
expect_output "labels: column 1 ( Label)"
expect_status 0 eval "$work/capital.safetensors" --data "$work/capital.csv" --json
expect_json "data['accuracy'] > 0.95"
printf 'a,b,\033[31mc\n1,2,0\n3,4,1\n' >"$work/last.csv"
expect_status 0 train --model "$work/own.json" --data "$work/last.csv" --epochs 1
expect_output "labels: column 3 (?[31mc), the last one: none is called label, class, target or y"
# Endings in capitals are the same endings.
cp "$work/sides.csv" "$work/SIDES.CSV"
expect_status 0 train --model "$work/own.json" --data "$work/SIDES.CSV" --epochs 1 --quiet --plot "$work/SIDES.SVG" \
  --save "$work/SIDES.SAFETENSORS"
expect_status 0 eval "$work/SIDES.SAFETENSORS" --data "$work/SIDES.CSV"
cp "$small/reuters/reuters.npz" "$work/REUTERS.NPZ"
expect_status 0 train reuters --data "$work/REUTERS.NPZ" --steps 1
# A table without a line of names begins with a sample.
tail -n +2 "$work/sides.csv" >"$work/nameless.csv"
expect_status 0 eval "$work/own.safetensors" --data "$work/nameless.csv" --json
expect_json "data['accuracy'] > 0.95 and data['samples'] == 400"
expect_status 0 train --model "$work/own.json" --data "$work/nameless.csv" --epochs 1
expect_output "labels: column 3, the last one: there is no line of names"
# What it is to predict may have labels or none, and a line of names or none.
expect_status 0 predict "$work/own.safetensors" --data "$work/sides.csv" --json
cp "$work/out" "$work/predicted"
cut -d, -f1,2 "$work/sides.csv" | sed '1s/.*/x,y/' >"$work/features.csv"
tail -n +2 "$work/features.csv" >"$work/bare.csv"
for table in nameless features bare; do
  expect_status 0 predict "$work/own.safetensors" --data "$work/$table.csv" --json
  cmp -s "$work/out" "$work/predicted" || fail "$table.csv is predicted otherwise: $(head -c 200 "$work/err")"
done
sed '2s/^[^,]*/nan/' "$work/sides.csv" >"$work/nan.csv"
expect_status 0 eval "$work/own.safetensors" --data "$work/nan.csv"
expect_output "loss nan"
grep -q "warning: the loss is no number: the model or the data" "$work/err" || fail "no warning: $(cat "$work/err")"
# What is no number is no class.
own_model 2 softmax >"$work/own.json"
expect_status 0 train --model "$work/own.json" --data "$work/sides.csv" --epochs 1 --quiet --save "$work/two.safetensors"
for model in two own; do # one of classes and one of yes or no
  expect_status 0 predict "$work/$model.safetensors" --data "$work/nan.csv" --json
  grep -q "warning: some answers are no numbers: the model or the data" "$work/err" || fail "no warning: $(cat "$work/err")"
  expect_json "data[0] == {'class': None, 'probability': None} and all(row['class'] in (0, 1) for row in data[1:])"
  expect_status 0 predict "$work/$model.safetensors" --data "$work/nan.csv"
  [ "$(sed -n '2s/  */ /gp' "$work/out")" = " 0 - -" ] || fail "a class of nan: $(sed -n 2p "$work/out")"
done
expect_error 2 "own was trained by no recipe: --data gives it the samples of a file or of a known set" eval "$work/own.safetensors"
own_model 1 linear >"$work/own.json"
expect_status 0 train --model "$work/own.json" --data "$work/sums.tsv" --lr 0.05 --epochs 60 --json
expect_json "data['loss'] < 1e-3 and data['mean_absolute_error'] < 0.03 and data['accuracy'] is None"
expect_status 0 train --model "$work/own.json" --data "$work/sums.tsv" --loss mae --epochs 1 --save "$work/mae.safetensors"
expect_output "mean_absolute_error, adam"
# Evaluation has the loss of the training, here the mean of what the answers are off by, unless another is asked for.
expect_status 0 predict "$work/mae.safetensors" --data "$work/sums.tsv" --json
off=$(sed -n 's/^ *\([-0-9][0-9.e-]*\)$/\1/p' "$work/out" | paste - <(tail -n +2 "$work/sums.tsv") |
  awk '{ d = $1 - $4; sum += d < 0 ? -d : d } END { print sum / NR }')
expect_status 0 eval "$work/mae.safetensors" --data "$work/sums.tsv" --json
expect_json "abs(data['loss'] - $off) < 1e-5 and list(data) == ['loss', 'samples']"
expect_status 0 eval "$work/mae.safetensors" --data "$work/sums.tsv"
expect_output "mean_absolute_error (as it was trained; --loss chooses another)"
expect_status 0 train --model "$work/mae.safetensors" --data "$work/sums.tsv" --epochs 1
expect_output "mean_absolute_error (as it was trained; --loss chooses another), adam"
expect_status 0 eval "$work/mae.safetensors" --data "$work/sums.tsv" --loss mse
grep -qx "mean_squared_error" "$work/out" || fail "--loss mse: $(cat "$work/out")"
# An architecture that says no shape, on two devices; and what files may have wrong.
own_model 1 linear | grep -v InputLayer >"$work/shapeless.json"
expect_error 1 "$work/shapeless.json says no shape of its input, from which the sizes of its layers follow: give the" \
  summary "$work/shapeless.json"
expect_status 0 summary "$work/shapeless.json" --json
expect_status 0 train --model "$work/shapeless.json" --data "$work/sums.tsv" --lr 0.05 --epochs 60 --logical cpu:0=2 --json
expect_json "data['loss'] < 1e-3 and len(data['devices']) == 2"
printf 'a,b,label\n1,x,0\n2,y,1\n' >"$work/words.csv"
expect_error 1 "$work/words.csv: column 2 (b) is text, not numbers: line 2 has \"x\"" train --model "$work/own.json" --data "$work/words.csv"
printf 'a,b,label\n' >"$work/empty.csv"
expect_error 1 "$work/empty.csv: there are no rows in it but the line of names" \
  train --model "$work/own.json" --data "$work/empty.csv"
expect_error 1 "a sample of the data has the shape (2,), the model takes (28, 28, 1)" \
  train --model "$work/model.json" --data "$work/sides.csv"
echo a >"$work/one.csv"
expect_error 1 "features and a label are needed" train --model "$work/own.json" --data "$work/one.csv"
expect_error 2 "--data takes an .npz, .csv or .tsv file or the name of a set here" \
  train --model "$work/own.json" --data "$work/own.json"
expect_error 2 "--data $work/out-dir: a folder is for recipes; HELIO_DATA_DIR=$work/out-dir lets a set be found there" \
  train --model "$work/own.json" --data "$work/out-dir"
own_model 100000000 softmax >"$work/two.json"
HELIO_MEMORY_LIMIT=64M expect_error 1 \
  "the model is too large: there is no memory for its variable dense/kernel of shape (2, 100000000): out of memory on" \
  summary "$work/two.json"
own_model 2 softmax >"$work/two.json"
printf '%s\n' a,b,label 1,2,0 3,4,0.5 >"$work/half.csv"
expect_error 1 "the labels are not classes: the model tells 2 of them, whole numbers from 0 to 1, but there is 0.5; \
a model whose last layer has one unit, without softmax, is for numbers" \
  train --model "$work/two.json" --data "$work/half.csv"
# Yes or no is from 0 to 1; of what is more the loss would fall without end.
own_model 1 sigmoid >"$work/odds.json"
expect_status 0 train --model "$work/odds.json" --data "$work/half.csv" --epochs 1
printf '%s\n' a,b,label 1,2,0 3,4,7 >"$work/seven.csv"
expect_error 1 "the labels are not yes or no: binary_crossentropy takes numbers from 0 to 1, but there is 7; a last layer of" \
  train --model "$work/odds.json" --data "$work/seven.csv"
expect_status 0 train --model "$work/odds.json" --data "$work/seven.csv" --epochs 1 --loss mean_squared_error
# Classes that the last layer has no unit for; and a loss that takes as many labels as there are units.
expect_error 1 "the model tells 2 of them, whole numbers from 0 to 1, but there is 7; to tell so many classes the last layer" \
  train --model "$work/two.json" --data "$work/seven.csv"
expect_error 1 "there is one label where the model gives 2 numbers, each of which mean_squared_error compares with a label" \
  train --model "$work/two.json" --data "$work/seven.csv" --loss mean_squared_error
sed 's/"units"/"unitts"/' "$work/two.json" >"$work/slip.json"
expect_error 1 "the key 'unitts' is not known; did you mean 'units'?" train --model "$work/slip.json" --data "$work/seven.csv"
sed 's/"layers"/"layer"/' "$work/two.json" >"$work/slip.json"
expect_error 1 "the key 'layer' is not known; did you mean 'layers'?" train --model "$work/slip.json" --data "$work/seven.csv"
printf '%s\n' a,b,label 1,2,rose 3,4,lily >"$work/words.csv"
expect_error 1 "has \"rose\"; words must be written as numbers first, as classes 0, 1, 2" \
  train --model "$work/two.json" --data "$work/words.csv"
printf '%s\n' a,b,label 1,2,0.0 3,4,1.0 >"$work/half.csv"
expect_status 0 train --model "$work/two.json" --data "$work/half.csv" --epochs 1
expect_output "sparse_categorical_crossentropy ("
expect_error 1 "the labels are numbers of classes: --loss sparse_categorical_crossentropy takes these, categorical_cross" \
  train --model "$work/two.json" --data "$work/half.csv" --loss categorical_crossentropy
expect_error 1 "has neither x_train and y_train nor x and y" train --model "$work/own.json" --data "$golden/data/deflated.npz"
if python3 -c '' 2>/dev/null; then
  # Functional ones, as Keras 3 has written them.
  python3 - "$golden/nn/architectures.safetensors" "$work" <<'END'
import json, struct, sys
with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
for name in "listed", "skip":
    open(f"{sys.argv[2]}/{name}.json", "w").write(json.loads(header["__metadata__"][name])["json"])
END
  awk 'BEGIN { print "a,b,c,label"; for (i = 0; i < 60; i++) print i % 2 "," i % 3 "," i % 5 "," i % 2 }' >"$work/three.csv"
  expect_status 0 train --model "$work/listed.json" --data "$work/three.csv" --epochs 1
  expect_output "sparse_categorical_crossentropy from logits"
  expect_error 1 "takes several inputs; this command gives one" train --model "$work/skip.json" --data "$work/three.csv"
  cat >"$work/npz.py" <<'END'
import struct, zipfile
def save(path, **arrays): # name = (type as struct has it, shape, numbers)
    with zipfile.ZipFile(path, "w") as file:
        for name, (kind, shape, numbers) in arrays.items():
            descr = {"B": "|u1", "i": "<i4", "q": "<i8", "f": "<f4", "d": "<f8"}[kind]
            head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
            data = struct.pack(f"<{len(numbers)}{kind}", *numbers)
            file.writestr(name + ".npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + data)
END
  export PYTHONPATH=$work
  python3 - "$work/own.npz" <<'END'
import sys, npz
points = [(a - 9.5, b - 9.5) for a in range(20) for b in range(20)]
x = ("d", (400, 2), [c for p in points for c in p])
y = ("q", (400,), [sum(p) > 0 for p in points])
npz.save(sys.argv[1], x_train=x, y_train=y, x_test=x, y_test=y)
END
  # The test set takes a second to go through.
  python3 - "$work/long.npz" <<'END'
import sys, npz
x, y = lambda n: ("f", (n, 2), [0.0] * 2 * n), lambda n: ("q", (n,), [0] * n)
npz.save(sys.argv[1], x_train=x(400), y_train=y(400), x_test=x(200000), y_test=y(200000))
END
  # Also where a layer behind the last one only moves its numbers, and under the name of a recipe.
  own_model 2 softmax | sed 's/}}\]}}$/}}, {"class_name": "Flatten", "config": {"name": "flat"}}]}}/; s/"own"/"linear"/' \
    >"$work/own.json"
  expect_status 0 train --model "$work/own.json" --data "$work/own.npz" --lr 0.05 --json --save "$work/own.safetensors"
  expect_json "data['val_accuracy'] > 0.95 and data['epochs'] == 10"
  for part in "x_test,y_test" "x_test,y_test,x_train" "x_test"; do
    python3 -c 'import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as whole, zipfile.ZipFile(sys.argv[2], "w") as part:
    for name in sys.argv[3].split(","): part.writestr(name + ".npy", whole.read(name + ".npy"))' \
      "$work/own.npz" "$work/part-$part.npz" "$part"
  done
  expect_status 0 eval "$work/own.safetensors" --data "$work/part-x_test,y_test.npz" --json
  expect_json "data['accuracy'] > 0.95 and data['samples'] == 400"
  expect_status 0 predict "$work/own.safetensors" --data "$work/part-x_test.npz" --json
  expect_json "data[0]['class'] == 0 and data[399]['class'] == 1 and data[399]['probability'] > 0.9"
  expect_error 2 "linear was trained by no recipe" eval "$work/own.safetensors"
  expect_error 1 "has only samples for testing; x_train and y_train are needed" \
    train --model "$work/own.json" --data "$work/part-x_test,y_test.npz"
  expect_error 1 "has x_train but no y_train" train --model "$work/own.json" --data "$work/part-x_test,y_test,x_train.npz"
  expect_error 1 "has x_test but no y_test" eval "$work/own.safetensors" --data "$work/part-x_test.npz"
  # SIGTERM in the last validation, a second long, ends a training that is complete: --steps has been reached.
  "$helio" train --model "$work/own.json" --data "$work/long.npz" --batch 4 --epochs 10 --steps 3 \
    --checkpoint "$work/long" --save "$work/long.safetensors" >"$work/out" 2>"$work/err" &
  process=$!
  await has_files "$work/long"
  kill -TERM $process
  wait $process
  [ $? -eq 143 ] || fail "SIGTERM in the last validation: $(cat "$work/err")"
  expect_output "model: $work/long.safetensors"
  if grep -q -e --resume "$work/err"; then fail "nothing is left to resume: $(cat "$work/err")"; fi
  grep -q "Terminated came when the last step was taken: nothing is missing" "$work/err" || fail "SIGTERM: $(cat "$work/err")"
  # x_val and y_val are another spelling, and what is not used is told: nothing of one's own is left out in silence.
  for names in "x_train y_train x_val y_val" "x y x_test y_test" "x y x_val y_val sample_weight c" \
    "x_train y_train x y x_test y_test x_val" "x_train y_train x_val y_val x_test"; do
    python3 - "$work/own.npz" "$work/named.npz" "$names" <<'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as old, zipfile.ZipFile(sys.argv[2], "w") as new:
    for name in sys.argv[3].split(): new.writestr(name + ".npy", old.read(("x" if name[0] == "x" else "y") + "_train.npy"))
END
    expect_status 0 train --model "$work/own.json" --data "$work/named.npz" --epochs 1 --json
    expect_json "data['val_loss'] is not None"
    case $names in
      *c) unused="sample_weight, c" ;;
      *test\ x_val) unused="x, y, x_val" ;;
      *val\ x_test) unused=x_test ;; # without labels nothing can be measured on it
      *) unused= ;;
    esac
    case $unused in
      "") [ ! -s "$work/err" ] || fail "$names: $(cat "$work/err")" ;;
      *) grep -qF "warning: $work/named.npz has arrays that are not used: $unused" "$work/err" ||
        fail "$names: not told that $unused are not used: $(cat "$work/err")" ;;
    esac
    expect_status 0 predict "$work/own.safetensors" --data "$work/named.npz" --json
    expect_json "len(data) == 400"
  done
  # Numbers of words that somebody has padded already.
  expect_status 0 train reuters --data "$small" --steps 1 --quiet --save "$work/topics.safetensors"
  python3 -c 'import sys, npz; npz.save(sys.argv[1], x_test=("i", (2, 300), [1] * 600))' "$work/padded.npz"
  expect_status 0 predict "$work/topics.safetensors" --data "$work/padded.npz" --json
  expect_json "len(data) == 2 and data[0] == data[1] and 0 <= data[0]['class'] < 46"

  # A class at each of five places: by number, in an axis of its own or not, or one-hot, it is the same training.
  cat >"$work/places.json" <<'END'
{"class_name": "Sequential", "config": {"name": "places", "layers": [
  {"class_name": "InputLayer", "config": {"batch_shape": [null, 5, 2], "dtype": "float32", "name": "in"}},
  {"class_name": "Conv1D", "config": {"name": "conv", "filters": 3, "kernel_size": [1], "activation": "softmax"}}]}}
END
  python3 - "$work" <<'END'
import sys, npz
x = [((7 * i) % 31 - 15) / 15 for i in range(200 * 5 * 2)]
classes = [0 if a > 0.2 else 1 if b > 0 else 2 for a, b in zip(x[::2], x[1::2])]
one_hot = [float(c == k) for c in classes for k in range(3)]
labels = {"numbers": ("q", (200, 5), classes), "column": ("q", (200, 5, 1), classes), "ones": ("f", (200, 5, 3), one_hot)}
for name, y in labels.items(): npz.save(f"{sys.argv[1]}/{name}.npz", x=("f", (200, 5, 2), x), y=y)
END
  for form in numbers:sparse_categorical column:sparse_categorical ones:categorical; do
    own="--model $work/places.json --data $work/${form%:*}.npz --seed 3"
    # shellcheck disable=SC2086 # several arguments are meant
    expect_status 0 train $own --epochs 1
    expect_output "${form#*:}_crossentropy (by the last layer and the labels"
    # shellcheck disable=SC2086
    expect_status 0 train $own --lr 0.1 --json --save "$work/places.safetensors"
    [ -e "$work/trained-places" ] || cp "$work/out" "$work/trained-places"
    expect_json "(lambda first: data['accuracy'] > 0.8 and abs(data['accuracy'] - first['accuracy']) < 1e-6 and
      abs(data['loss'] - first['loss']) < 1e-5)(json.load(open('$work/trained-places')))"
  done
  expect_status 0 eval "$work/places.safetensors" --data "$work/ones.npz" --json
  cp "$work/out" "$work/evaluated" # the loss of the training, in the form that these labels have
  expect_status 0 eval "$work/places.safetensors" --data "$work/numbers.npz" --json
  expect_json "abs(data['loss'] - json.load(open('$work/evaluated'))['loss']) < 1e-6"
  # The values of all places, three of which add up to 1; no class is that of the whole.
  expect_status 0 predict "$work/places.safetensors" --data "$work/numbers.npz" --json
  expect_json "len(data) == 200 and all(list(row) == ['values'] and len(row['values']) == 15 and
    all(abs(sum(row['values'][k:k + 3]) - 1) < 1e-5 for k in range(0, 15, 3)) for row in data)"
  # Nor where a layer makes one row of them.
  sed 's/}}\]}}$/}}, {"class_name": "Flatten", "config": {"name": "flat"}}]}}/' "$work/places.json" >"$work/row.json"
  python3 - "$work" <<'END'
import sys, npz
npz.save(f"{sys.argv[1]}/row.npz", x=("f", (20, 5, 2), [0.5] * 200), y=("f", (20, 15), [0.25] * 300))
npz.save(f"{sys.argv[1]}/bytes.npz", x=("B", (20, 5, 2), [9] * 200), y=("f", (20, 15), [0.25] * 300))
END
  expect_status 0 train --model "$work/row.json" --data "$work/bytes.npz" --epochs 1 --quiet --save "$work/row.safetensors"
  expect_status 0 predict "$work/row.safetensors" --data "$work/row.npz" --json
  expect_json "len(data) == 20 and all(len(row['values']) == 15 for row in data)"
  # Who learnt from other numbers last does not know any more how to take bytes.
  expect_status 0 predict "$work/row.safetensors" --data "$work/bytes.npz" --json
  [ ! -s "$work/err" ] || fail "the model tells how it takes bytes: $(cat "$work/err")"
  expect_status 0 train --model "$work/row.safetensors" --data "$work/row.npz" --epochs 1 --quiet --save "$work/row.safetensors"
  expect_status 0 predict "$work/row.safetensors" --data "$work/bytes.npz" --json
  grep -q "the model does not tell how it takes them" "$work/err" || fail "bytes: no warning: $(cat "$work/err")"
  expect_error 1 "there is one label where the model gives 3 numbers, each of which mean_absolute_error compares with a" \
    train --model "$work/places.json" --data "$work/numbers.npz" --loss mae

  # Yes or no is a logit above 0; and where several units say it, each of them is counted by itself.
  own_model 1 linear >"$work/logit.json"
  own_model 3 sigmoid >"$work/several.json"
  python3 - "$work/several.npz" "$work/sides.csv" <<'END'
import sys, npz
points = [line.split(",") for line in open(sys.argv[2]).readlines()[1:]]
x = [(float(a), float(b)) for a, b, _ in points]
y = [int(on) for a, b in x for on in (a > 0, b > 3, a < b)]
npz.save(sys.argv[1], x=("f", (400, 2), [c for p in x for c in p]), y=("B", (400, 3), y))
END
  for form in "logit sides.csv 0" "several several.npz 0.5"; do
    read -r name data threshold <<<"$form"
    own="$work/$name.safetensors --data $work/$data --json"
    expect_status 0 train --model "$work/$name.json" --data "$work/$data" --loss binary_crossentropy --epochs 2 --seed 4 \
      --save "$work/$name.safetensors" --quiet
    # shellcheck disable=SC2086
    expect_status 0 eval $own
    cp "$work/out" "$work/evaluated"
    # shellcheck disable=SC2086
    expect_status 0 predict $own
    cp "$work/out" "$work/predicted"
    python3 - "$work/predicted" "$threshold" "$work/$data" >"$work/out" <<'END'
import json, sys, zipfile
if sys.argv[3].endswith(".csv"):
    labels = [int(line.split(",")[2]) for line in open(sys.argv[3]).readlines()[1:]]
else:
    labels = list(zipfile.ZipFile(sys.argv[3]).read("y.npy")[128:])
values = [v for row in json.load(open(sys.argv[1])) for v in row["values"]]
print(json.dumps(sum((v > float(sys.argv[2])) == (l > 0) for v, l in zip(values, labels)) / len(labels)))
END
    expect_json "abs(data - json.load(open('$work/evaluated'))['accuracy']) < 1e-6"
  done

  # The set's bytes as arrays: divided where the training divided them; and as they are where it took them so, also when
  # they come from the set by its name.
  python3 - "$small/mnist/t10k" "$work/bytes.npz" <<'END'
import gzip, sys, npz
x, y = (list(gzip.open(f"{sys.argv[1]}-{kind}-ubyte.gz").read()) for kind in ("images-idx3", "labels-idx1"))
npz.save(sys.argv[2], x=("B", (len(y) - 8, 28, 28), x[16:]), y=("B", (len(y) - 8,), y[8:]))
END
  expect_status 0 train --model "$work/mine.json" --data "$work/bytes.npz" --epochs 1 --lr 1e-5 --quiet --save "$work/raw.safetensors"
  for model in mine raw; do
    HELIO_DATA_DIR=$small expect_status 0 eval "$work/$model.safetensors" --data mnist --json
    cp "$work/out" "$work/evaluated"
    expect_status 0 eval "$work/$model.safetensors" --data "$work/bytes.npz" --json
    cmp -s "$work/out" "$work/evaluated" || fail "$model: bytes of a file are evaluated otherwise than the set's"
  done
  # Whole numbers are not divided: 255 would be 1, and the rest 0.
  cat >"$work/words.json" <<END
{"class_name": "Sequential", "config": {"name": "words", "layers": [
  {"class_name": "InputLayer", "config": {"batch_shape": [null, 784], "dtype": "int32", "name": "in"}},
  {"class_name": "Embedding", "config": {"name": "embedding", "input_dim": 256, "output_dim": 1}},
  {"class_name": "Flatten", "config": {"name": "flatten"}},
  {"class_name": "Dense", "config": {"name": "dense", "units": 10, "activation": "softmax"}}]}}
END
  HELIO_DATA_DIR=$small expect_status 0 train --model "$work/words.json" --data mnist --steps 1 --quiet \
    --save "$work/words.safetensors"
  grep -qaF 'bytes_divided_by\": 1.0' "$work/words.safetensors" || fail "whole numbers were divided"

  # What a recipe's model has learnt since is not that recipe's.
  HELIO_DATA_DIR=$small expect_status 0 train --model "$work/mine.safetensors" --data fashion-mnist --steps 1 --quiet \
    --save "$work/since.safetensors"
  expect_error 2 "was trained by no recipe: --data gives it the samples" eval "$work/since.safetensors"
  HELIO_DATA_DIR=$small expect_status 0 eval "$work/since.safetensors" --data fashion-mnist
  expect_output " samples of fashion-mnist"

  # A file that a program wrote tells nothing of that: the recipe does, or there is a warning.
  python3 - "$work/mine.safetensors" "$work/untold.safetensors" <<'END'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
end = 8 + struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:end])
for key in "helio_note", "helio_crc32": del header["__metadata__"][key]
text = json.dumps(header).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + data[end:])
END
  expect_status 0 predict "$work/untold.safetensors" --data "$images" --json
  grep -qF "warning: $images has bytes, and the model does not tell how it takes them" "$work/err" || fail "no warning of bytes"
  expect_status 0 predict "$work/untold.safetensors" --data "$images" --recipe mnist --json
  cmp -s "$work/out" "$work/mine.predicted" || fail "--recipe mnist does not tell how a model takes bytes"
  [ ! -s "$work/err" ] || fail "--recipe mnist: $(cat "$work/err")"
  expect_status 0 eval "$work/untold.safetensors" --data "$work/bytes.npz" --recipe mnist
  expect_output "sparse_categorical_crossentropy (as it was trained"
  expect_status 0 train --model "$work/untold.safetensors" --data "$work/bytes.npz" --steps 1 --quiet
  grep -qF "warning: $work/bytes.npz has bytes, and the model does not tell" "$work/err" || fail "no warning of bytes to train on"

  # Of a file of bytes and of other numbers only bytes are divided, and what there is to train on does not matter to a test.
  python3 - "$small/mnist/t10k" "$work/mixed.npz" "$work/ones-hot.npz" <<'END'
import gzip, sys, npz
x, y = (list(gzip.open(f"{sys.argv[1]}-{kind}-ubyte.gz").read()) for kind in ("images-idx3", "labels-idx1"))
x, y = x[16:], y[8:]
shape = (len(y), 28, 28)
npz.save(sys.argv[2], x_train=("B", (2, 5), [200] * 10), y_train=("q", (2,), [-1, 77]),
         x_test=("f", shape, [v / 255 for v in x]), y_test=("B", shape[:1], y))
npz.save(sys.argv[3], x=("B", shape, x), y=("B", (len(y), 10), [int(c == k) for c in y for k in range(10)]))
END
  expect_status 0 eval "$work/mine.safetensors" --data "$work/bytes.npz" --json
  cp "$work/out" "$work/evaluated"
  expect_status 0 eval "$work/mine.safetensors" --data "$work/mixed.npz" --json
  expect_json "(lambda a: a['accuracy'] == data['accuracy'] and
    abs(a['loss'] - data['loss']) < 1e-5)(json.load(open('$work/evaluated')))"
  expect_status 0 predict "$work/mine.safetensors" --data "$work/mixed.npz" --json
  expect_json "[row['class'] for row in data] == [row['class'] for row in json.load(open('$work/mine.predicted'))]"

  # Logits of classes are measured on labels of either form.
  expect_status 0 eval "$work/bytes.safetensors" --data "$work/bytes.npz" --json
  cp "$work/out" "$work/evaluated"
  expect_status 0 eval "$work/bytes.safetensors" --data "$work/ones-hot.npz"
  expect_output "categorical_crossentropy from logits (as it was trained"
  expect_status 0 eval "$work/bytes.safetensors" --data "$work/ones-hot.npz" --json
  expect_json "all(abs(data[k] - value) < 1e-5 for k, value in json.load(open('$work/evaluated')).items())"

  # Archives that do not serve are named, with what is wrong; lists are pickled as numpy does it.
  python3 - "$work" <<'END'
import struct, sys, zipfile
def npy(kind, shape, data):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + data
lists = (b"\x80\2cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0tU\1btR(K\1(K\1tcnumpy\ndtype\n(U\2O8K\0K\1tR"
         b"(K\3U\1|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb\x89](](K\5K\6eetb.")
points, one = npy("<f4", (2, 2), bytes(16)), npy("<i8", (1,), bytes(8))
archives = {"fewer": (points, one), "single": (points, npy("<i8", (), bytes(8))), "short": (points, npy("<i2", (2,), bytes(4))),
            "lists": (npy("|O", (1,), lists), one)}
for name, (x, y) in archives.items():
    with zipfile.ZipFile(f"{sys.argv[1]}/{name}.npz", "w") as file:
        file.writestr("x.npy", x)
        file.writestr("y.npy", y)
END
  expect_error 1 "fewer.npz: x has 2 samples, but y has 1" train --model "$work/own.json" --data "$work/fewer.npz"
  expect_error 1 "single.npz: y is a single number" train --model "$work/own.json" --data "$work/single.npz"
  expect_error 1 "short.npz, member y.npy, byte 20: the type '<i2' is not supported; there are float32, " \
    train --model "$work/own.json" --data "$work/short.npz"
  expect_error 1 "bring them to one length before they are saved" train --model "$work/own.json" --data "$work/lists.npz"
  expect_error 1 "lists.npz has too few samples: none is left to train on" train reuters --data "$work/lists.npz"
  expect_status 0 predict "$work/topics.safetensors" --data "$work/lists.npz" --json # one is enough to tell its topic
  expect_json "len(data) == 1"
else
  echo "SKIP: functional models and .npz files of one's own: python3 is not installed"
fi

[ "$failures" -eq 0 ]
