#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The command helio: help, typos, exit statuses, JSON, what its listings must show, and that the manual pages and
# docs/environment.md say the same as the command.
set -u
documents=$HELIO_TEST_SOURCE/../docs
# shellcheck source=tests/scripts/expect.bash
. "$HELIO_TEST_SOURCE/scripts/expect.bash"

# --- Help: every command, found by walking through the lists of commands ---------------------------------------------

list_commands() { # of the help text on standard input
  sed -n '/^Commands:$/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p'
}

list_options() {
  sed -n '/^Options:$/,/^$/s/^  \(-h, \)\{0,1\}--\([a-z][a-z-]*\).*/\2/p'
}

# One line "command: option" for each, from the help of the command given and of those below it.
walk() {
  local name
  expect_status 0 "$@" --help
  cp "$work/out" "$work/by-option"
  expect_status 0 help "$@"
  cmp -s "$work/by-option" "$work/out" || fail "helio help $* differs from helio $* --help"
  expect_output "Usage: helio${*:+ $*}"
  expect_status 0 "$@" -h
  list_options <"$work/by-option" | sed "s/^/helio${*:+ $*}: /" >>"$work/help-options"
  for name in $(list_commands <"$work/by-option"); do walk "$@" "$name"; done
}

: >"$work/help-options"
walk
for name in train eval predict summary devices plugins ops env data bench completion help; do
  grep -q "^helio $name: help" "$work/help-options" || fail "helio --help does not list $name"
done

expect_status 0 --version
grep -Eq '^helio [0-9]+\.[0-9]+\.[0-9]+$' "$work/out" || fail "helio --version: $(cat "$work/out")"

# --- The manual pages have the same commands and options -------------------------------------------------------------

# One line "command: option" for each option of a page. Those of a command's own page stand under OPTIONS.
page_options() { # page, the command that it is about
  awk -v command="$2" '
    { gsub(/\\-/, "-") }
    /^\.SH / { section = $2 == "OPTIONS" ? command : ""; next }
    /^\.SS / { section = substr($0, 5); gsub(/"/, "", section); next }
    tagged && section != "" && match($0, /--[a-z][a-z-]*/) { print section ": " substr($0, RSTART + 2, RLENGTH - 2) }
    { tagged = $1 == ".TP" }
  ' "$1" | sort
}

expect_same_options() { # which page, options of the help, options of the page
  cmp -s "$2" "$3" && return
  fail "help and $1 differ (< help only, > page only)"
  diff "$2" "$3"
}

sort -o "$work/help-options" "$work/help-options"
page_options "$documents/helio.1" "" >"$work/page-options"
expect_same_options helio.1 "$work/help-options" "$work/page-options"

mkdir "$work/pages"
bash "$documents/pages.sh" "$helio" "$documents/helio.1" "$work/pages" || fail "docs/pages.sh: exit status $?"
for page in "$work"/pages/*; do
  page=${page##*/}
  command="helio ${page#helio-}"
  command=${command%.1}
  grep -e "^$command[: ]" "$work/help-options" >"$work/own-options"
  page_options "$documents/$page" "$command" >"$work/page-options"
  expect_same_options "$page" "$work/own-options" "$work/page-options"
  cmp -s "$work/pages/$page" "$documents/$page" || fail "docs/$page is not what helio.1 says: make -C build/docs pages"
  grep -qwF -e "$page" "$documents/Makefile.am" || fail "docs/Makefile.am does not name $page"
done
for page in "$documents"/helio*.1; do
  page=${page##*/}
  [ "$page" = helio.1 ] || [ -e "$work/pages/$page" ] || fail "there is a page $page, but no such command"
  command -v groff >/dev/null || continue
  groff -man -ww -z -Tutf8 "$documents/$page" 2>"$work/err"
  [ ! -s "$work/err" ] || fail "$page: $(cat "$work/err")"
done

# --- Typos -----------------------------------------------------------------------------------------------------------

expect_error 2 "helio: unknown command 'devcies'; did you mean 'devices'?" devcies
expect_error 2 "helio: unknown command 'qqqqqq'; see 'helio --help'" qqqqqq
expect_error 2 "helio bench: unknown command 'opps'; did you mean 'ops'?" bench opps
expect_error 2 "helio: unknown command 'plugin'; did you mean 'plugins'?" help plugin
expect_error 2 "helio devices: unknown option '--jsn'; did you mean '--json'?" devices --jsn
expect_error 2 "helio train: option '--che' may be --checkpoint, --checkpoint-every" train linear --che 3
expect_error 2 "helio devices: unknown option '-json'; did you mean '--json'?" devices -json
expect_error 2 "helio env: unknown option '--markdwon'; did you mean '--markdown'?" env --markdwon=3
expect_error 2 "helio: unknown option '--versoin'; did you mean '--version'?" --versoin
expect_error 2 "unknown value of --type 'gpuu'; did you mean 'gpu'?" devices --type gpuu
expect_error 2 "helio devices: --type needs a value" devices --type
expect_error 2 "helio ops: --json takes no value" ops --json=yes
expect_error 2 "helio env: takes no argument, but there is 'all'" env all
expect_error 2 "helio: which command?"
expect_error 2 "helio bench: which command?" bench
expect_error 2 "exclude each other" env --json --markdown
expect_error 2 "unknown operation 'matmull'; did you mean 'matmul'?" bench ops --only matmull
expect_error 1 "unknown device" bench ops --device gpu:9
expect_error 1 "unknown device" bench data --device gpu:9
expect_error 2 "--batch takes a number from 1 to 1000000, not 'many'" bench data --batch many
expect_error 2 "unknown collective 'locl'; did you mean 'local'?" bench collectives --only locl
expect_error 2 "helio completion: unknown shell 'bsh'; did you mean 'bash'?" completion bsh
expect_error 2 "helio completion: which shell?" completion
expect_error 2 "helio completion: one SHELL at a time; there is 'zsh' too" completion bash zsh
expect_error 2 "--replicas takes a number from 1 to 64, not '65'" bench training --replicas 65

# --- Listings --------------------------------------------------------------------------------------------------------

expect_status 0 devices
expect_output /physical_device:CPU:0
expect_output /job:localhost/replica:0/task:0/device:CPU:0
expect_status 0 devices --type gpu --json
expect_json "data == {'physical': [], 'logical': []}"

# A file may have a name that is no UTF-8.
expect_status 0 devices --json
blas=$(sed -n 's/^ *"blas_library": "\(.*\)",*$/\1/p' "$work/out" | head -n 1)
if [ -n "$blas" ]; then
  ln -s "$blas" "$work/"$'b\xff.so'
  HELIO_CPU_BLAS=$work/$'b\xff.so' expect_status 0 devices --json
  expect_output "\"blas_library\": \"$work/b?.so\""
  expect_json "data['physical'][0]['properties']['blas_library'] == '$work/b?.so'"
fi

export HELIO_LOGICAL_DEVICES="cpu:0=2"
expect_status 0 devices --json
unset HELIO_LOGICAL_DEVICES
expect_json "len(data['physical']) == 1 and len(data['logical']) == 2"
expect_json "{d['physical'] for d in data['logical']} == {'/physical_device:CPU:0'}"
count=$(grep -c '"name": "/job:localhost/replica:0/task:0/device:CPU:[01]"' "$work/out")
[ "$count" -eq 2 ] || fail "two logical CPUs were asked for, $count are listed"
count=$(grep -c '"name": "/physical_device:' "$work/out")
[ "$count" -eq 1 ] || fail "there should be one physical device, $count are listed"

export HELIO_BACKEND=cuda
expect_error 1 cuda devices
grep -q 'cpu' "$work/err" || fail "HELIO_BACKEND=cuda: what there is is not said: $(cat "$work/err")"
HELIO_BACKEND='cuda?,cpu'
expect_status 0 devices
unset HELIO_BACKEND

expect_status 0 ops
expect_output matmul
expect_status 0 ops --json
expect_json "[o for o in data if o['name'] == 'matmul'][0]['backends']['cpu'][:2] == ['float32', 'float64']"
expect_json "not [o for o in data if o['name'] == 'reshape'][0]['needs_kernel']"

export HELIO_NUM_THREADS=1
expect_status 0 env
grep -Eq '^\* HELIO_NUM_THREADS +1 ' "$work/out" || fail "helio env does not mark HELIO_NUM_THREADS=1"
expect_status 0 env --json
expect_json "[s['name'] for s in data if s['set'] and s['name'] != 'HELIO_PLUGIN_PATH'] == ['HELIO_NUM_THREADS']"
unset HELIO_NUM_THREADS

expect_page() { # page, arguments
  expect_status 0 "${@:2}"
  cmp -s "$documents/$1" "$work/out" && return
  fail "docs/$1 is not what 'helio ${*:2}' prints (< page, > command)"
  diff "$documents/$1" "$work/out"
}
expect_page environment.md env --markdown

# The table of operations has the GPUs' backends as well, which emulated ones show.
command=$helio helio=$work/helio-on-emulated-gpus
cat >"$helio" <<'END'
#!/bin/sh
b=$HELIO_TEST_BUILD
export HELIO_PLUGIN_PATH="$b/backends/cpu/.libs:$b/backends/cuda/.libs:$b/backends/hip/.libs"
exec "$b/tests/gpusim/run" --cuda 1 --hip 1 "$b/tools/helio" "$@"
END
chmod +x "$helio"
expect_page operations.md ops --markdown
helio=$command

# --- Plugins: the state of each bad one, and the good ones survive them ----------------------------------------------

bad=$HELIO_TEST_BUILD/tests/plugins/bad/.libs
expect_plugin() { # file without .so, status, text of the reason
  local line
  line=$(grep -F "\"path\": \"$bad/$1.so\"" -A 3 "$work/out" | tr -d '\n')
  case $line in
    *"\"status\": \"$2\""*"\"reason\": \""*"$3"*) ;;
    *) fail "plugin $1: not \"$2\" with \"$3\": ${line:-not listed}" ;;
  esac
}
own_path=${HELIO_PLUGIN_PATH-}
export HELIO_PLUGIN_PATH=$bad${own_path:+:$own_path}
expect_status 0 plugins
expect_output crashed
expect_status 0 plugins --json
expect_json
expect_plugin older_minor "too old" "ABI"
expect_plugin newer_major "too new" "ABI"
expect_plugin wrong_magic "not a plugin" "magic"
expect_plugin short_struct "malformed" ""
expect_plugin unknown_tail "malformed" "does not know"
expect_plugin no_symbol "no symbol" "helio_plugin_entry"
expect_plugin text "cannot open" ""
expect_plugin no_devices "no device" ""
expect_plugin probe_fails "probe failed" ""
expect_plugin init_fails "init failed" ""
case ${HELIO_TEST_SANITIZERS-} in
  '') expect_plugin crashes_in_probe "crashed" "signal" ;;
  *) expect_plugin crashes_in_probe "crashed" "" ;; # a sanitizer turns the signal into an exit status
esac
expect_plugin minimal "usable" ""
expect_plugin zero_tail "usable" ""
expect_plugin short_tables "usable" ""
expect_plugin zero_size "malformed" "0 bytes"
expect_plugin unknown_table_tail "malformed" "does not know"
expect_plugin missing_required "malformed" "required"
expect_plugin bad_name "malformed" "name"
expect_plugin bad_parameter "malformed" "parameter"
expect_plugin foreign "no symbol" "helio_plugin_entry"

# A program that meets the family goes on with the good ones and says what is wrong with the others. The one that crashes
# takes the program along, but its name is the last thing in the log.
mkdir "$work/family"
cp "$bad"/*.so "$work/family/"
rm "$work/family/crashes_in_probe.so"
export HELIO_PLUGIN_PATH=$work/family${own_path:+:$own_path}
expect_status 0 devices
expect_output /physical_device:CPU:0
for state in "too old" "too new" "not a plugin" malformed "no symbol" "cannot open" "probe failed" "init failed"; do
  grep -q "^WARNING:helio:.*$state" "$work/err" || fail "helio devices: the log does not say \"$state\""
done
cp "$bad/crashes_in_probe.so" "$work/family/"
(HELIO_LOG=debug "$helio" devices; exit $?) >"$work/out" 2>"$work/err" && fail "crashes_in_probe did not crash"
grep -v '^AddressSanitizer\|^=\|^ \|^$\|^UndefinedBehavior\|^ThreadSanitizer' "$work/err" | grep -q 'crashes_in_probe' ||
  fail "the log does not name crashes_in_probe: $(cat "$work/err")"

# The same file in two folders: the first one found is taken.
mkdir "$work/again"
cp "$bad/minimal.so" "$work/again/"
export HELIO_PLUGIN_PATH=$bad:$work/again${own_path:+:$own_path}
expect_status 0 plugins --json
grep -F "\"path\": \"$work/again/minimal.so\"" -A 2 "$work/out" | grep -qF '"status": "shadowed"' ||
  fail "the second minimal.so is not shadowed"
if [ -n "$own_path" ]; then HELIO_PLUGIN_PATH=$own_path; else unset HELIO_PLUGIN_PATH; fi

# --- Output that cannot be written -----------------------------------------------------------------------------------

expect_lost() { # how it was lost, exit status
  [ "$2" -eq 1 ] || fail "$1: exit status $2, not 1"
  [ "$(grep -c 'cannot write to standard output' "$work/err")" -eq 1 ] || fail "$1: not one message: $(cat "$work/err")"
}
for arguments in "--version" "--help" "env --json" "plugins" "devices" "data list" "summary mnist" "train linear"; do
  # shellcheck disable=SC2086 # several arguments are meant
  "$helio" $arguments >&- 2>"$work/err"
  expect_lost "helio $arguments with standard output closed" $?
  [ -e /dev/full ] || continue
  # shellcheck disable=SC2086
  "$helio" $arguments >/dev/full 2>"$work/err"
  expect_lost "helio $arguments on a full disk" $?
done

# --- Measurements ----------------------------------------------------------------------------------------------------

number() { # a key of the JSON in $work/out
  sed -n "s/^ *\"$1\": \([0-9.e+-]*\),\{0,1\}\$/\1/p" "$work/out" | head -n 1
}

expect_status 0 bench data --quick --json
expect_json "data['samples'] == 10000 and data['batch'] == 4096 and data['epochs'] == 3 and data['source']"
expect_json "0 < data['slowest'] <= data['samples_per_second'] <= data['fastest'] and 'CPU:0' in data['device']"
expect_status 0 bench data --quick --batch 64
expect_output "samples/s"

expect_status 0 bench collectives --quick --json --only local
expect_json "[(row['ranks'], row['bytes']) for row in data['rows']] == \
  [(ranks, kib << 10) for ranks in (2, 4) for kib in (4, 1 << 10, 16 << 10, 64 << 10)]"
expect_json "all(row['collective'] == 'local' and 0 < row['fastest_microseconds'] <= row['microseconds'] and
  abs(row['gigabytes_per_second'] * row['microseconds'] * 1e3 / row['bytes'] - 1) < 1e-3 for row in data['rows'])"
expect_status 0 bench training --quick --json --replicas 3 --batch 100
expect_json "data['samples'] == 2560 and data['batch'] == 100 and data['epochs'] == 3 and len(data['devices']) == 3"
expect_json "0 < data['slowest'] <= data['samples_per_second'] <= data['fastest'] and data['collective'] == 'local'"
expect_status 0 bench training --quick --json --model reuters
expect_json "data['model'] == 'reuters' and data['batch'] == 32 and data['source'] == 'made up'"
for model in mnist mlp reuters; do
  printf '2\n1\n' | "$helio" bench training --model $model --batch 4 --by-line >"$work/out" 2>"$work/err" ||
    fail "helio bench training --model $model --by-line: $(cat "$work/err")"
  { echo '['; sed '1s/$/,/' "$work/out"; echo ']'; } >"$work/lines" && mv "$work/lines" "$work/out"
  expect_json "[row['steps'] for row in data] == [2, 1] and all(row['seconds'] > 0 for row in data)"
done
for option in json quick; do
  expect_error 2 "--by-line takes no --$option" bench training --by-line --$option
done
echo many | "$helio" bench training --by-line >"$work/out" 2>"$work/err" && fail "--by-line takes many for a number"
grep -q "should be a number of steps, not 'many'" "$work/err" || fail "--by-line: $(cat "$work/err")"
expect_status 0 bench training --quick
expect_output "on 1 device"
# A set that is smaller than what is asked for is taken as it is, and its samples are those that are counted.
for measured in data training; do
  HELIO_DATA_DIR=$HELIO_TEST_SOURCE/golden/train/traces expect_status 0 bench $measured --quick --batch 256 --json
  expect_json "data['samples'] == 1280 and data['source'] == 'fashion-mnist'"
done

# Two devices that share the cores are about as fast as one that has them all. Other programs may take either one's
# cores: one good attempt of five is enough.
for attempt in 1 2 3 4 5; do
  PAIRS=3 LEAST=0.85 OPTIONS=--quick bash "$HELIO_TEST_SOURCE/bench/mirrored.sh" "$HELIO_TEST_BUILD" \
    >"$work/mirrored" 2>&1 && break
  [ $attempt -lt 5 ] || fail "mirrored training on two devices is slow: $(cat "$work/mirrored")"
done

# A machine that is busy with other things makes dispatch and start slower, never faster: the best of the attempts
# counts. It disturbs either side of the comparison with BLAS: there the middle one of the last five counts, because what
# disturbs may last for half a minute. One good attempt is enough.
judge() {
  awk '
    function middle(n) { return n % 2 ? ratio[(n + 1) / 2] : (ratio[n / 2] + ratio[n / 2 + 1]) / 2 }
    $1 != "none" { ratio[++n] = $1 }
    NR == 1 || $2 < dispatch { dispatch = $2 }
    NR == 1 || $3 < start { start = $3 }
    END {
      printf "matmul %s of BLAS called directly, dispatch %.0f ns, start %.1f ms\n", n ? middle(n) : "?", dispatch, start
      exit !((n == 0 || middle(n) >= 0.85) && dispatch < 1000 && start < 50)
    }' < <(tail -n 5 "$work/figures" | sort -n)
}
: >"$work/figures"
slow=true
for _ in $(seq 12); do
  expect_status 0 bench ops --quick --json
  expect_json "data['memory']['flat'] and data['rows'] and data['unmeasured'] == []"
  expect_json "all('gflops' in r and 'gigabytes_per_second' in r for r in data['rows'] if r['microseconds'] is not None)"
  grep -q '"flat": true' "$work/out" || fail "memory of a steady loop is not flat: $(cat "$work/out")"
  ratio=$(number ratio) # none where there is no BLAS to compare with
  echo "${ratio:-none} $(number dispatch_ns) $(number start_ms)" >>"$work/figures"
  judge && slow=false
  [ -z "${HELIO_TEST_SANITIZERS-}" ] || slow=false
  $slow || break
  sleep 5 # whatever else runs may end
done
! $slow || fail "too slow: $(cat "$work/figures")"

[ "$failures" -eq 0 ]
