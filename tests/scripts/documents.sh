#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Documents tell the truth: the C in them compiles without warnings, runs and prints what they show; names of functions,
# settings and files exist, links lead somewhere, and the guide's index has every name of TensorFlow's that it must have.
set -u
top=$HELIO_TEST_SOURCE/..
scripts=$HELIO_TEST_SOURCE/scripts
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
cd "$top" || exit 1

fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# What belongs to the project, not to a build in one of its folders.
mapfile -t documents < <(find . \( -name 'build*' -o -name '_*' -o -name .git \) -prune -o -name '*.md' -print |
  sed 's|^\./||' | LC_ALL=C sort)
[ ${#documents[@]} -ge 5 ] || fail "only ${#documents[@]} documents were found"

# --- The C in them ---------------------------------------------------------------------------------------------------

mkdir "$work/blocks"
echo 0 >"$work/blocks/count"
for document in "${documents[@]}"; do
  awk -f "$scripts/documents.awk" -v folder="$work/blocks" -v document="$document" -v begin="$(cat "$work/blocks/count")" \
    "$document"
done
[ ! -e "$work/blocks/wrong" ] || fail "$(cat "$work/blocks/wrong")"

read -ra compiler <<<"${CC:-gcc}"
library=$HELIO_TEST_BUILD/core/.libs
flags=(-std=gnu11 -g -Wall -Wextra -Werror -I"$top/core/include" -I"$scripts")
# A piece shows what it is about, and need not use all that it names.
piece_flags=(-Wno-unused-variable -Wno-unused-but-set-variable -Wno-unused-parameter -Wno-unused-function)
[ -z "${HELIO_TEST_SANITIZERS-}" ] || flags+=(-fsanitize="$HELIO_TEST_SANITIZERS")

compile() { # number, kind, place
  local more=()
  case $2 in piece*) more=("${piece_flags[@]}") ;; esac
  "${compiler[@]}" "${flags[@]}" ${more[@]+"${more[@]}"} "$work/blocks/$1.c" -o "$work/program" -L"$library" -lhelio \
    -Wl,-rpath,"$library" >"$work/compiler" 2>&1 || {
    fail "$3 does not compile: $(grep -E "error|warning" "$work/compiler" || cat "$work/compiler")"
    return 1
  }
}

# Small sets of data under all names, and two devices for those who can use them.
# shellcheck source=tests/scripts/digits.bash
. "$scripts/digits.bash"
make_digits "$work/data/mnist" 400 100
ln -s mnist "$work/data/fashion-mnist"
ln -s "$(cd "$HELIO_TEST_SOURCE/golden/data" && pwd)/reuters.npz" "$work/data/reuters.npz"
export HELIO_DATA_DIR=$work/data XDG_CACHE_HOME=$work/cache
cpu=$HELIO_TEST_BUILD/backends/cpu/.libs
collectives=$HELIO_TEST_BUILD/collectives/local/.libs
strict=$HELIO_TEST_BUILD/tests/plugins/strict/.libs

run() { # number, kind, place
  local settings=(HELIO_LOGICAL_DEVICES="cpu:0=2" HELIO_PLUGIN_PATH="$cpu:$collectives") expected=$work/blocks/$1.expected
  case $2 in *-on-gpus) settings=(HELIO_BACKEND=strict HELIO_PLUGIN_PATH="$strict:$cpu:$collectives") ;; esac
  (cd "$work/data" && env "${settings[@]}" timeout 60 "$work/program") >"$work/out" 2>&1 </dev/null ||
    fail "$3: exit status $?: $(cat "$work/out")"
  if grep -q '^ERROR:helio:' "$work/out"; then fail "$3: $(grep '^ERROR:helio:' "$work/out")"; fi
  [ -e "$expected" ] || return 0
  grep -v '^INFO:helio:' "$work/out" >"$work/printed"
  compare "$expected" "$work/printed" || fail "$3 does not print what the document shows (< shown, > printed): $(
    diff "$expected" "$work/printed")"
}

# Is it the same, line by line, … being anything?
compare() {
  local shown printed
  [ "$(wc -l <"$1")" -eq "$(wc -l <"$2")" ] || return 1
  while IFS= read -r shown <&3 && IFS= read -r printed <&4; do
    shown=$(printf '%s' "$shown" | sed -e 's/[][\\.*^$]/\\&/g' -e 's/…/.*/g')
    printf '%s\n' "$printed" | grep -qx -e "$shown" || return 1
  done 3<"$1" 4<"$2"
}

blocks=0
while read -r number kind place; do
  blocks=$((blocks + 1))
  compile "$number" "$kind" "$place" && run "$number" "$kind" "$place"
done <"$work/blocks/list"
[ "$blocks" -ge 20 ] || fail "only $blocks blocks of C were found"
echo "$blocks blocks of C, $(ls "$work"/blocks/*.expected | wc -l) of them with what they print"

# Python, where there is one to ask.
if python3 -c '' 2>/dev/null; then
  python3 - "${documents[@]}" >"$work/python" 2>&1 <<'END' || fail "$(cat "$work/python")"
import ast, re, sys
for document in sys.argv[1:]:
    for block in re.findall(r"^```python\n(.*?)^```$", open(document, encoding="utf-8").read(), re.M | re.S):
        try:
            ast.parse(block)
        except SyntaxError as error:
            sys.exit(f"{document}: {error}: {block}")
END
else
  echo "SKIP: the Python in documents: python3 is not installed"
fi

# --- Names -----------------------------------------------------------------------------------------------------------

# Of functions and types: those of the headers. Not meant are the key of a checksum and an example of a name.
{
  grep -ohE '\bhelio_[a-z0-9_]*[a-z0-9]' core/include/helio/*.h
  printf '%s\n' helio_crc32 helio_noun_verb
} | LC_ALL=C sort -u >"$work/names"
grep -ohE '\bhelio_[a-z0-9_]*[a-z0-9]' "${documents[@]}" | LC_ALL=C sort -u | LC_ALL=C comm -23 - "$work/names" >"$work/unknown"
[ ! -s "$work/unknown" ] || fail "not in core/include/helio: $(tr '\n' ' ' <"$work/unknown")"

# Of options of calls.
cat core/include/helio/*.h >"$work/headers"
for option in $(grep -ohE '[({, ]\.[a-z][a-z0-9_]* = ' README.md docs/guide.md | grep -oE '[a-z][a-z0-9_]*' | LC_ALL=C sort -u); do
  grep -qw -e "$option" "$work/headers" /usr/include/*/bits/sigaction.h 2>/dev/null || fail "no call has an option .$option"
done

# Of constants, macros and settings; lists of names are X(NAME, …).
{
  grep -ohE '\bHELIO_[A-Z0-9_]*[A-Z0-9]' core/include/helio/*.h docs/environment.md tests/run-tests tests/plugins/*/*.c
  sed -nE 's/^ *X\(([A-Z0-9_]+),.*/HELIO_\1\nHELIO_PLUGIN_\1/p' core/include/helio/*.h
} | LC_ALL=C sort -u >"$work/names"
grep -ohE '\bHELIO_[A-Z0-9_]*[A-Z0-9]' "${documents[@]}" | LC_ALL=C sort -u | LC_ALL=C comm -23 - "$work/names" >"$work/unknown"
[ ! -s "$work/unknown" ] || fail "neither a setting nor in a header: $(tr '\n' ' ' <"$work/unknown")"

# Of files.
for document in "${documents[@]}"; do
  for path in $(grep -oE '`(core|backends|collectives|plugins|tools|examples|docs|tests|autotools|\.ci)/[^` ]*`' "$document" |
    tr -d '`'); do
    compgen -G "$path" >/dev/null || fail "$document: there is no $path"
  done
done
for path in $(grep -oE '`tests/bench/[^` ]*`' README.md | tr -d '`'); do
  [ -x "$path" ] || fail "README.md: $path is given as a command, but cannot be run"
done
for path in $(grep -ohE '(core|backends|collectives)/[a-z0-9_/]+\.[ch]' docs/*.svg); do
  [ -e "$path" ] || fail "a picture names $path, which does not exist"
done

# Of commands and their options, where the command was built.
helio=$HELIO_TEST_BUILD/tools/helio
check_command() { # document, "helio bench ops --quick"
  local words path=() word
  read -ra words <<<"$2"
  for word in "${words[@]:1}"; do
    case $word in [a-z]*) "$helio" help "${path[@]}" "$word" >/dev/null 2>&1 && path+=("$word") || break ;; *) break ;; esac
  done
  [ ${#path[@]} -gt 0 ] || { fail "$1: there is no command '$2'"; return; }
  "$helio" help "${path[@]}" >"$work/help"
  for word in $(grep -oE -e '--[a-z][a-z-]*' <<<"$2"); do
    grep -qE -e "^  (-h, )?$word " "$work/help" || fail "$1: '$2': helio ${path[*]} has no option $word"
  done
}
if [ -x "$helio" ]; then
  for document in "${documents[@]}"; do
    while read -r line; do check_command "$document" "$line"; done < <(
      grep -oE '(`|^    )helio [a-z][^`#]*' "$document" | sed 's/^[` ]*//' | LC_ALL=C sort -u)
  done
fi

# --- Links -----------------------------------------------------------------------------------------------------------

# The names that headings have as targets of links.
anchors() {
  awk '/^```/ { code = !code } !code && /^#+ / { sub(/^#+ /, ""); print }' "$1" | tr '[:upper:]' '[:lower:]' |
    sed -e 's/[^a-z0-9 _-]//g' -e 's/ /-/g'
}

check_link() { # document, target
  local file=${2%%#*} anchor=''
  case $2 in *'#'*) anchor=${2#*#} ;; esac
  if [ -n "$file" ]; then file=$(dirname "$1")/$file; else file=$1; fi
  [ -e "$file" ] || { fail "$1: a link leads to $2, which does not exist"; return; }
  [ -z "$anchor" ] || anchors "$file" | grep -qx -e "$anchor" || fail "$1: a link leads to $2, but no heading is called so"
}

links=0
for document in "${documents[@]}"; do
  while read -r target; do
    case $target in http:* | https:* | mailto:*) continue ;; esac
    links=$((links + 1))
    check_link "$document" "$target"
  done < <({
    grep -oE '\]\([^) ]+\)' "$document" | sed 's/^](\(.*\))$/\1/'
    grep -oE '(src|srcset|href)="[^"]+"' "$document" | sed 's/^[a-z]*="\(.*\)"$/\1/'
  })
done
echo "${#documents[@]} documents, $links links"

# --- The index of the guide ------------------------------------------------------------------------------------------

sed -n "/^## Index of TensorFlow's names/,\$p" docs/guide.md | grep '^| `' >"$work/index"
while read -r name; do
  [ -z "$name" ] || grep -qwF -e "$name" "$work/index" || fail "the guide's index lacks $name"
done <<'END'
tf.config.experimental.list_physical_devices
tf.config.list_physical_devices
tf.config.experimental.list_logical_devices
tf.config.list_logical_devices
set_memory_growth
tf.config.experimental.set_virtual_device_configuration
tf.config.set_logical_device_configuration
VirtualDeviceConfiguration(memory_limit)
LogicalDeviceConfiguration(memory_limit)
tf.config.gpu.set_per_process_memory_growth
tf.config.gpu.set_per_process_memory_fraction
tf.config.set_soft_device_placement
tf.debugging.set_log_device_placement
tf.device
tf.constant
tf.matmul
tf.add_n
tf.newaxis
CUDA_VISIBLE_DEVICES
tf.distribute.MirroredStrategy
tf.distribute.OneDeviceStrategy
Strategy.scope
Strategy.run
Strategy.experimental_run_v2
Strategy.reduce
ReduceOp.SUM
ReduceOp.MEAN
experimental_distribute_dataset
num_replicas_in_sync
tf.distribute.get_strategy
tf.distribute.get_replica_context
tf.distribute.ReplicaContext
tf.function
tf.GradientTape
tape.gradient
apply_gradients
trainable_variables
tf.nn.compute_average_loss
losses.SparseCategoricalCrossentropy(from_logits, reduction)
Reduction.NONE
metrics.Mean
metrics.SparseCategoricalAccuracy
metrics.SparseTopKCategoricalAccuracy
update_state
metric.result
reset_states
reset_state
optimizers.Adam
optimizers.Nadam
optimizers.SGD
tf.train.GradientDescentOptimizer
tf.keras.Sequential
model.add
tf.keras.Model
tf.keras.Input
layers.Dense
layers.Conv1D
layers.Conv2D
layers.MaxPooling1D
layers.MaxPooling2D
layers.Flatten
layers.Embedding
model.compile
model.fit
model.summary
backend.clear_session
datasets.mnist.load_data
datasets.fashion_mnist.load_data
datasets.reuters.load_data
pad_sequences
Dataset.from_tensor_slices
Dataset.from_tensors
Dataset.shuffle
Dataset.batch
Dataset.repeat
Dataset.prefetch
AUTOTUNE
Dataset.cache
tf.__version__
END

[ "$failures" -eq 0 ]
