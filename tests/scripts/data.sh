#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# helio data: listings, downloads from a server that behaves well and badly, folders, what cannot be written, and what
# is shown of files. Needs no network: whatever is got comes from this machine.
set -u
# shellcheck source=tests/scripts/expect.bash
. "$HELIO_TEST_SOURCE/scripts/expect.bash"
export no_proxy='*'
unset HELIO_DATA_DIR http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_COLOR

# --- Typos and what is wrong on the command line ---------------------------------------------------------------------

expect_error 2 "helio data: which command?" data
expect_error 2 "helio data: unknown command 'lsit'; did you mean 'list'?" data lsit
expect_error 2 "helio data get: unknown set of data 'mnst'; did you mean 'mnist'?" data get mnst
expect_error 2 "helio data get: unknown set of data 'qqqqqq'" data get qqqqqq
expect_error 2 "helio data get: which set of data?" data get
expect_error 2 "one NAME at a time; there is 'imdb' too" data get mnist imdb
expect_error 2 "unknown option '--form'; did you mean '--from'?" data get mnist --form x
expect_error 2 "--from takes http://, https://, file:// or a folder, not 'gopher://x'" data get mnist --from gopher://x
expect_error 2 "--to needs a value" data get mnist --to ""
expect_error 2 "--timeout takes a number from 1 to 86400, not '0'" data get mnist --timeout 0
expect_error 2 "--timeout takes a number from 1 to 86400, not '3s'" data get mnist --timeout 3s
expect_error 2 "--rows takes a number from 0 to 1000, not '-1'" data show --rows -1 x.npy
expect_error 2 "helio data list: takes no argument, but there is 'mnist'" data list mnist
expect_error 2 "helio data show: which file?" data show

# --- List ------------------------------------------------------------------------------------------------------------

expect_status 0 data list
for name in mnist fashion-mnist reuters imdb; do expect_output "$name "; done
expect_output 731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1
expect_output "not found"
expect_output "$XDG_CACHE_HOME/helio"
mkdir -p "$work/own/imdb" "$work/set"
touch "$work/own/imdb/imdb.npz" "$work/set/imdb.npz"
export HELIO_DATA_DIR=$work/set
expect_status 0 data list --json
expect_json "data['folders'][:2] == ['$work/set', '$XDG_CACHE_HOME/helio'] and len(data['folders']) == 3"
expect_json "[s['name'] for s in data['sets']] == ['mnist', 'fashion-mnist', 'reuters', 'imdb']"
expect_json "data['sets'][3]['found'] == [{'path': '$work/set/imdb.npz', 'bytes': 0}]"
expect_json "all(len(f['sha256']) == 64 and f['bytes'] > 0 and f['url'] for s in data['sets'] for f in s['files'])"
expect_status 0 data list --json --data "$work/own"
expect_json "data['folders'][:2] == ['$work/own', '$work/set']"
expect_json "data['sets'][3]['found'][0]['path'] == '$work/own/imdb/imdb.npz'"
mkdir "$work/own/mnist"
touch "$work/own/mnist/train-images-idx3-ubyte"
expect_status 0 data list --data "$work/own"
expect_output "mnist is not whole: $work/own/mnist/t10k-labels-idx1-ubyte is missing or cannot be read"
expect_status 0 data list --data "$work/own" --json
expect_json "'mnist is not whole: $work/own/mnist/' in data['sets'][0]['error'] and 'error' not in data['sets'][2]"
unset HELIO_DATA_DIR

# Not found: where it was looked for, and two commands.
expect_error 1 "imdb was not found in $XDG_CACHE_HOME/helio, /usr/share/datasets" data show imdb
grep -q 'helio data get imdb.*helio data get imdb --from DIR' "$work/err" || fail "no commands: $(cat "$work/err")"
expect_error 1 "nor is it a known set of data; did you mean 'imdb'?" data show imbd

# --- Show ------------------------------------------------------------------------------------------------------------

printf '\0\0\10\1\0\0\0\6\3\1\3\0\3\1' >"$work/small-idx1-ubyte"
gzip -c "$work/small-idx1-ubyte" >"$work/small-idx1-ubyte.gz"
cp "$work/small-idx1-ubyte.gz" "$work/nameless"
for file in small-idx1-ubyte small-idx1-ubyte.gz nameless; do
  expect_status 0 data show "$work/$file"
  expect_output "uint8 (6,)"
  expect_output "3 1 3 0 3 1"
  expect_output "from 0 to 3, 3 different values"
  grep -Eq '^ +3 +3  #{40}$' "$work/out" || fail "no histogram: $(cat "$work/out")"
  expect_status 0 data show --json "$work/$file"
  expect_json "data[0]['format'] == 'idx' and data[0]['parts'][0]['shape'] == [6]"
  expect_json "[(b['value'], b['count']) for b in data[0]['parts'][0]['histogram']] == [(0, 1), (1, 2), (3, 3)]"
done

printf 'label,height,name\n0,1.5,a\n1,,"b, c"\n1,nan,\033[31md\n' >"$work/table.csv"
expect_status 0 data show "$work/table.csv"
expect_output "3 rows of 3 columns"
expect_output "int64  float32  text"
expect_output "?[31md" # a file has no say about the terminal
expect_output "from 0 to 1, 2 different values"
expect_status 0 data show --json "$work/table.csv"
expect_json "data[0]['rows'] == 3 and [p['type'] for p in data[0]['parts']] == ['int64', 'float32', 'text']"
expect_json "data[0]['parts'][2]['cells'] == ['a', 'b, c', '\x1b[31md']"
expect_status 0 data show --no-header "$work/table.csv"
expect_output "4 rows of 3 columns"
printf '1,\n3,4\n' >"$work/nameless.csv" # as for training
expect_status 0 data show --json "$work/nameless.csv"
expect_json "data[0]['rows'] == 2 and [p['name'] for p in data[0]['parts']] == ['0', '1']"
tr , '\t' <"$work/table.csv" >"$work/table.tsv"
expect_status 0 data show "$work/table.tsv"
expect_output "tsv, 3 rows of 3 columns"

expect_status 0 data show "$golden/safetensors/python.safetensors"
expect_output "doubles: float64 (2, 2)"
expect_output "0.1 -inf"
expect_output "dense/bias: float32 (0, 3)"
expect_status 0 data show --json --rows 1 "$golden/safetensors/python.safetensors"
expect_json "[p for p in data[0]['parts'] if p['name'] == 'doubles'][0]['rows'] == [{'values': [0.1, '-inf']}]"

expect_status 0 data show "$golden/data/float32.npy" "$golden/data/deflated.npz"
expect_output "float32.npy: npy"
expect_output "deflated.npz: npz"
expect_status 0 data show --rows 0 --json "$golden/data/deflated.npz"
expect_json "all(p['type'] and 'error' not in p and not p.get('rows') for p in data[0]['parts'])"
expect_status 0 data show "$golden/data/reuters.npz"
grep -Eq '^  x: [0-9]+ sequences of [0-9]+ to [0-9]+ integers' "$work/out" || fail "no sequences: $(cat "$work/out")"
expect_status 0 data show --json "$golden/data/reuters.npz"
expect_json "[p['type'] for p in data[0]['parts'] if p['name'] == 'x'] == ['sequences']"
expect_json "all(r['count'] >= len(r['values']) for p in data[0]['parts'] if p['name'] == 'x' for r in p['rows'])"

# What cannot be read: an error that names the file, never a crash; members of an archive stand for themselves.
expect_error 1 "No such file or directory" data show "$work/none.npy"
expect_error 1 "is a folder" data show "$work"
printf '\0\0\10' >"$work/short-ubyte"
expect_error 1 "$work/short-ubyte, byte 0" data show "$work/short-ubyte"
printf 'text' >"$work/text"
expect_error 1 "none of the files that can be read" data show "$work/text"
expect_status 1 data show "$golden/data/refused.npz"
expect_output "cannot be read"
grep -qF "refused.npz" "$work/err" || fail "refused.npz: $(cat "$work/err")"
expect_status 1 data show --json "$golden/data/refused.npz" "$work/small-idx1-ubyte"
expect_json "any('error' in p for p in data[0]['parts']) and data[1]['parts'][0]['shape'] == [6]"

# --- Get: what fails without a source --------------------------------------------------------------------------------

expect_error 1 "no connection" data get imdb --from http://127.0.0.1:1/ --timeout 10
grep -q -- '--from DIR' "$work/err" || fail "no advice: $(cat "$work/err")"
expect_error 1 "file://$work/absent/imdb.npz" data get imdb --from "file://$work/absent"
expect_error 1 "cannot read the folder $work/absent: No such file or directory" data get imdb --from "$work/absent"
expect_error 1 "cannot read the folder $work/text: Not a directory" data get imdb --from "$work/text"
expect_error 1 "neither $work/home nor $work/home/mnist has the files of mnist" data get mnist --from "$work/home"
expect_error 1 "the folder $work/text cannot be made: File exists" data get imdb --from "$work/own" --to "$work/text"
HOME='' XDG_CACHE_HOME='' expect_error 1 "there is no cache folder" data get imdb --from "$work/own"
expect_error 1 "it has 0 bytes and SHA-256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855, but should \
have 17464789 bytes and SHA-256 69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f" \
  data get imdb --from "$work/own"
[ ! -e "$XDG_CACHE_HOME" ] || fail "left behind: $(find "$XDG_CACHE_HOME")"
mkdir -p "$XDG_CACHE_HOME/others"
expect_error 1 "file://$work/absent/imdb.npz" data get imdb --from "file://$work/absent"
rmdir "$XDG_CACHE_HOME/others" "$XDG_CACHE_HOME" || fail "left behind: $(find "$XDG_CACHE_HOME")"

# --- Get: from files that are there ----------------------------------------------------------------------------------

set=fashion-mnist source=/usr/share/datasets/fashion-mnist
[ -e "$source/t10k-labels-idx1-ubyte.gz" ] || set=mnist source=${HELIO_TEST_DATA-$HELIO_TEST_SOURCE/../../shared/data}/mnist
if [ ! -e "$source/t10k-labels-idx1-ubyte.gz" ]; then
  [ "$failures" -eq 0 ] || exit 1
  echo "SKIP: there is no set of data to get; on Debian: apt-get install dataset-fashion-mnist"
  exit 77
fi
file=train-images-idx3-ubyte.gz # the first one of the set
cache=$XDG_CACHE_HOME/helio/$set

expect_whole() { # folder: has all files, and nothing else
  local name
  for name in t10k-images-idx3-ubyte t10k-labels-idx1-ubyte train-images-idx3-ubyte train-labels-idx1-ubyte; do
    cmp -s "$source/$name.gz" "$1/$name.gz" || fail "$1/$name.gz is not what it should be"
  done
  [ "$(find "$1" -type f | wc -l)" -eq 4 ] || fail "in $1: $(ls "$1")"
}

expect_nothing() { # folder: neither the file nor a part of it
  [ ! -e "$1/$file" ] && [ ! -e "$1/$file.part" ] || fail "left behind: $(ls "$1")"
}

expect_status 0 data get "$set" --from "$source" --to "$work/a folder"
expect_output "$work/a folder/$set/$file: copied"
[ "$(wc -l <"$work/out")" -eq 4 ] || fail "not a line for each file: $(cat "$work/out")"
grep -qF "HELIO_DATA_DIR=$work/a folder" "$work/err" || fail "no word of HELIO_DATA_DIR: $(cat "$work/err")"
expect_status 0 data get "$set" --from "$source" --to "$work/"$'\x1b[31mred'
grep -qF "HELIO_DATA_DIR=$work/?[31mred makes" "$work/err" || fail "a name is shown with its escapes: $(cat -v "$work/err")"
expect_whole "$work/a folder/$set"
expect_status 0 data list --json --data "$work/a folder"
expect_json "[s for s in data['sets'] if s['name'] == '$set'][0]['found'][0]['path'] == '$work/a folder/$set/$file'"

# Into the cache folder; the folder above the set's own serves as well.
expect_status 0 data get "$set" --from "$(dirname "$source")" --json
expect_json "data['name'] == '$set' and [f['status'] for f in data['files']] == ['copied'] * 4"
expect_json "data['files'][0]['path'] == '$cache/$file' and len(data['files'][0]['sha256']) == 64"
expect_whole "$cache"
expect_status 0 data get "$set" --from "$source"
[ "$(grep -c ': already there' "$work/out")" -eq 4 ] || fail "not already there: $(cat "$work/out")"
expect_status 0 data get "$set"
[ "$(grep -c ': already there' "$work/out")" -eq 4 ] || fail "not already there: $(cat "$work/out")"
expect_status 0 data get "$set" --from "file://$source" --to "$work/url" --quiet
[ ! -s "$work/out" ] && [ ! -s "$work/err" ] || fail "not quiet: $(cat "$work/out" "$work/err")"
expect_status 0 data get "$set" --from "file://$source" --to "$work/url" --quiet --json
expect_json "data['name'] == '$set' and len(data['files']) == 4"
[ ! -s "$work/err" ] || fail "not quiet: $(cat "$work/err")"
expect_whole "$work/url/$set"

# Files that are unpacked, in a folder whose name needs care in a URL.
mkdir "$work/un%20packed #?"
for path in "$source"/*.gz; do
  name=$(basename "$path" .gz)
  gzip -dc "$path" >"$work/un%20packed #?/$name"
done
expect_status 0 data get "$set" --from "$work/un%20packed #?" --to "$work/plain"
cmp -s "$work/plain/$set/train-labels-idx1-ubyte" "$work/un%20packed #?/train-labels-idx1-ubyte" || fail "not copied"
expect_status 0 data show "$set" --data "$work/plain" --rows 1
expect_output "$work/plain/$set/train-labels-idx1-ubyte: idx"

# One that is damaged is got again. Where a program would find another one first, that is said.
printf x >>"$cache/$file"
expect_status 0 data get "$set" --from "$source"
expect_output "$cache/$file: copied"
expect_whole "$cache"
mkdir -p "$work/first/$set"
for path in "$source"/*.gz; do echo >"$work/first/$set/$(basename "$path")"; done
HELIO_DATA_DIR=$work/first expect_status 0 data get "$set" --from "$source"
grep -qF "warning: programs find $work/first/$set/$file first" "$work/err" || fail "no warning: $(cat "$work/err")"

# --- Get: from a server ----------------------------------------------------------------------------------------------

"$HELIO_TEST_BUILD/tests/tools/file_server" "$source" "$work/log" >"$work/port" &
server=$!
trap 'kill $server; rm -rf "$work"' EXIT
for _ in {1..100}; do
  port=$(cat "$work/port")
  [ -z "$port" ] || break
  sleep 0.1
done
url=http://127.0.0.1:$port
size=$(stat -c %s "$source/$file")

# A folder that lacks the first file, the largest.
begin() {
  rm -rf "$work/to"
  mkdir -p "$work/to/$set"
  cp "$source"/*.gz "$work/to/$set/"
  rm "$work/to/$set/$file"
  : >"$work/log"
}

expect_request() { # lines of the log
  [ "$(cat "$work/log")" = "$1" ] || fail "requests: $(cat "$work/log"), not: $1"
}

get() { # status, kind of server, options…
  expect_status "$1" data get "$set" --from "$url/$2" --to "$work/to" --timeout 20 "${@:3}"
}

expect_refused() { # fixed text
  grep -qF -- "$1" "$work/err" || fail "no \"$1\" in: $(cat "$work/err")"
}

begin
get 0 good
expect_whole "$work/to/$set"
expect_request "good $file -"
begin
get 0 moved/
expect_whole "$work/to/$set"

# All sets of images call their files the same: only the sums tell them apart. A mirror may have one form or another.
other=$([ $set = mnist ] && echo fashion-mnist || echo mnist)
: >"$work/log"
expect_error 1 "refused and removed" data get $other --from "$url/good" --to "$work/to"
case $other in mnist) expect_request "good mnist.npz -
good $file -" ;; esac
expect_error 1 "refused and removed" data get $other --from "$source" --to "$work/to"
expect_nothing "$work/to/$other"

# An earlier attempt left a part: the rest is asked for, and all of it where that does not work.
begin
head -c 100000 "$source/$file" >"$work/to/$set/$file.part"
get 0 good --json
expect_json "data['files'][0]['resumed_at'] == 100000 and data['files'][0]['bytes'] == $size"
expect_whole "$work/to/$set"
expect_request "good $file 100000"
for kind in no-range shifted no-resume; do
  begin
  head -c 100000 "$source/$file" >"$work/to/$set/$file.part"
  get 0 $kind --json
  expect_json "data['files'][0]['resumed_at'] == 0"
  expect_whole "$work/to/$set"
done
begin
head -c 100000 /dev/zero >"$work/to/$set/$file.part" # of some other file
get 0 good
expect_whole "$work/to/$set"
expect_request "good $file 100000
good $file -"
begin
cp "$source/$file" "$work/to/$set/$file.part" # all of it
get 0 good
expect_whole "$work/to/$set"

# The connection breaks: the part is kept, and the next attempt goes on.
begin
get 1 cut
expect_refused "the same command goes on from there"
[ ! -e "$work/to/$set/$file" ] || fail "a part has the name of the whole"
[ "$(stat -c %s "$work/to/$set/$file.part")" -eq $((size / 2)) ] || fail "the part: $(ls -l "$work/to/$set")"
get 0 cut
expect_output "from an earlier attempt"
expect_whole "$work/to/$set"
expect_request "cut $file -
cut $file $((size / 2))"
begin
head -c 100000 "$source/$file" >"$work/to/$set/$file.part"
expect_status 0 data get "$set" --from "$source" --to "$work/to" --json
expect_json "data['files'][0]['resumed_at'] == 100000"
expect_whole "$work/to/$set"

# The file as the server's kind "wrong" sends it.
wrong_sum() {
  local last
  last=$(tail -c 1 "$source/$file" | od -An -tu1)
  { head -c -1 "$source/$file"; printf "\\x$(printf %x $((last ^ 1)))"; } | sha256sum | cut -c 1-64
}

# What is wrong is refused and leaves nothing behind.
begin
get 1 wrong
expect_refused "refused and removed"
expect_refused "but should have"
expect_refused "SHA-256 $(wrong_sum)"
expect_nothing "$work/to/$set"
begin
get 1 endless
expect_refused "refused, because more than"
expect_nothing "$work/to/$set"
for code in 403 404 410 500 503; do
  begin
  get 1 $code
  expect_refused "HTTP status $code"
  expect_nothing "$work/to/$set"
done
begin
get 1 stall --timeout 1
expect_refused "timed out, nothing came for 1 seconds"
expect_nothing "$work/to/$set"

# Two at a time: one of them waits for nobody.
begin
"$helio" data get "$set" --from "$url/stall" --to "$work/to" --timeout 20 >/dev/null 2>&1 &
other=$!
for _ in {1..100}; do
  grep -q stall "$work/log" && break
  sleep 0.1
done
get 1 good
expect_refused "is being written by another process"
kill $other
wait $other 2>/dev/null
get 0 good
expect_whole "$work/to/$set"

# Killed on the way: the next attempt goes on.
begin
"$helio" data get "$set" --from "$url/slow" --to "$work/to" >/dev/null 2>&1 &
other=$!
for _ in {1..100}; do
  [ -s "$work/to/$set/$file.part" ] && break
  sleep 0.1
done
kill -9 $other
wait $other 2>/dev/null
[ ! -e "$work/to/$set/$file" ] || fail "a part has the name of the whole"
get 0 good --json
expect_json "0 < data['files'][0]['resumed_at'] < $size"
expect_whole "$work/to/$set"

# A link that somebody has put where the part will be is not followed.
begin
ln -s "$work/victim" "$work/to/$set/$file.part"
get 1 good
expect_refused "cannot write $work/to/$set/$file.part"
[ ! -e "$work/victim" ] || fail "a link was followed"

# --- What cannot be written ------------------------------------------------------------------------------------------

begin
(ulimit -f 100 && get 1 good && exit "$failures") || failures=$((failures + 1))
expect_refused "cannot write $work/to/$set/$file.part: File too large"
[ ! -e "$work/to/$set/$file" ] || fail "a part has the name of the whole"
get 0 good
expect_whole "$work/to/$set"

if [ "$(id -u)" -eq 0 ] && unshare -m mount -t tmpfs -o size=1m none "$work/own" 2>/dev/null; then
  unshare -m bash -c 'mount -t tmpfs -o size=1m none "$1" && "${@:2}"' - "$work/own" \
    "$helio" data get "$set" --from "$url/good" --to "$work/own" >"$work/out" 2>"$work/err" && fail "a full disk"
  expect_refused "$file.part: No space left on device"
fi

begin
as_user=()
[ "$(id -u)" -ne 0 ] || as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
chmod -R a+rX "$work"
chmod 755 "$work"
if ${as_user[@]+"${as_user[@]}"} "$helio" --version >/dev/null 2>&1; then
  chmod 555 "$work/to/$set"
  ${as_user[@]+"${as_user[@]}"} "$helio" data get "$set" --from "$url/good" --to "$work/to" >"$work/out" 2>"$work/err" &&
    fail "wrote into a folder that must not be written"
  expect_refused "cannot write $work/to/$set/$file.part: Permission denied"
  ${as_user[@]+"${as_user[@]}"} "$helio" data get imdb --from "$url/good" --to "$work/to/$set" >"$work/out" 2>"$work/err" &&
    fail "made a folder where it must not"
  expect_refused "the folder $work/to/$set/imdb cannot be made: Permission denied"
  chmod 755 "$work/to/$set"
else
  echo "SKIP: folders that must not be written: root cannot run the command as another user here"
fi

# --- On a terminal ---------------------------------------------------------------------------------------------------

# Pieces of what was drawn, one on each line: none may be as wide as the terminal.
look() { # columns, environment…
  begin
  script -qec "stty cols $1 && env ${*:2} '$helio' data get $set --from $url/slow --to '$work/to'" /dev/null \
    >"$work/screen" 2>&1 </dev/null
  tr '\r' '\n' <"$work/screen" | grep '%' >"$work/lines"
  [ -s "$work/lines" ] || fail "$1 columns: no progress: $(cat "$work/screen")"
  sed 's/\x1b\[[0-9]*m//g' "$work/lines" | awk -v most="$1" 'length >= most { exit 1 }' ||
    fail "$1 columns: too wide: $(cat "$work/lines")"
  expect_whole "$work/to/$set"
}
if command -v script >/dev/null; then
  look 40 TERM=xterm
  grep -q $'\x1b\[32m' "$work/lines" || fail "no colour"
  look 80 TERM=xterm NO_COLOR=1
  ! grep -q $'\x1b' "$work/screen" || fail "NO_COLOR has colours"
  look 20 TERM=dumb
  ! grep -q $'\x1b' "$work/screen" || fail "a dumb terminal got colours"
  begin
  script -qec "'$helio' data get $set --from $url/slow --to '$work/to' --quiet" /dev/null >"$work/screen" 2>&1 </dev/null
  [ ! -s "$work/screen" ] || fail "not quiet: $(cat "$work/screen")"
fi

[ "$failures" -eq 0 ]
