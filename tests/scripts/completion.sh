#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shells complete command lines of helio: every command and option of every help is offered, and nothing else; values of
# options where they are known; files and folders where they belong. bash and fish are asked, of zsh the syntax is checked,
# each if it is installed.
set -u
# shellcheck source=tests/scripts/expect.bash
. "$HELIO_TEST_SOURCE/scripts/expect.bash"

for shell in bash fish zsh; do
  expect_status 0 completion $shell
  cp "$work/out" "$work/helio.$shell"
done
cmp -s "$work/helio.bash" "$HELIO_TEST_BUILD/tools/completions/helio" ||
  [ ! -e "$HELIO_TEST_BUILD/tools/completions" ] || fail "what is built differs from what the command prints"

mkdir "$work/place" "$work/place/folder"
touch "$work/place/file"

# --- How each shell is asked: a line with the cursor at its end; one answer a line, without remarks -------------------

ask_bash() {
  # Only bash itself cuts lines into words; here those of the tests, in which '=' is a word of its own, as bash has it.
  local line=${1//=/ = }
  (cd "$work/place" && bash -c '
    . "$1"
    read -ra COMP_WORDS <<<"$2"
    [ "${2% }" = "$2" ] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _helio
    printf "%s\n" "${COMPREPLY[@]}"' bash "$work/helio.bash" "$line") | sed 's/ *$//' | grep . | LC_ALL=C sort
}

# What it offers it may offer for a whole option with its value.
ask_fish() {
  # shellcheck disable=SC2016 # fish expands them
  (cd "$work/place" && HOME=$work fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$work/helio.fish" "$1") |
    cut -f 1 | sed 's/^--[a-z-]*=//; s|/$||' | LC_ALL=C sort
}

expect_offer() { # line, words that are offered for it
  local line=$1 expected answer shell
  shift
  expected=$(printf '%s\n' "$@" | grep . | LC_ALL=C sort)
  for shell in $shells; do
    answer=$("ask_$shell" "$line")
    [ "$answer" = "$expected" ] || fail "$shell offers for \"$line\": ${answer//$'\n'/ }, not ${expected//$'\n'/ }"
  done
}

shells=bash
if fish --version >/dev/null 2>&1; then shells+=" fish"; else echo "SKIP: fish is not installed"; fi
if zsh --version >/dev/null 2>&1; then
  zsh -n "$work/helio.zsh" || fail "zsh does not understand its completion"
else
  echo "SKIP: zsh is not installed"
fi

# --- All that helps list ----------------------------------------------------------------------------------------------

walk() { # command…
  local names options
  expect_status 0 "$@" --help
  names=$(sed -n '/^Commands:$/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p' "$work/out")
  options=$(sed -n '/^Options:$/,/^$/s/^  \(-h, \)\{0,1\}\(--[a-z][a-z-]*\).*/\2/p' "$work/out")
  # shellcheck disable=SC2086 # several words are meant
  [ "${*: -1}" = help ] || expect_offer "helio${*:+ $*} --" $options
  # shellcheck disable=SC2086
  [ -z "$names" ] || expect_offer "helio${*:+ $*} " $names
  for name in $names; do walk "$@" "$name"; done
}
walk

# --- Words that were begun, values, files -----------------------------------------------------------------------------

expect_offer "helio de" devices
expect_offer "helio bench tr" training
expect_offer "helio q" ""
expect_offer "helio help bench o" ops
expect_offer "helio help train " "" # what it is run with is no command
expect_offer "helio help eval " ""
expect_offer "helio devices --j" --json
expect_offer "helio devices --type " cpu gpu
expect_offer "helio devices --type g" gpu
expect_offer "helio devices --type=g" gpu
expect_offer "helio devices --json --type " cpu gpu
expect_offer "helio bench collectives --ranks " 2 4
expect_offer "helio bench training --batch " ""
expect_offer "helio completion " bash fish zsh
expect_offer "helio data show f" fashion-mnist file folder
expect_offer "helio data list --data f" folder
expect_offer "helio data get --to f" folder
expect_offer "helio data get --from f" folder
expect_offer "helio train --loss mean_a" mean_absolute_error

# What stands in the tables is what there is.
expect_status 0 data list --json
expect_json
# shellcheck disable=SC2046 # several words are meant
expect_offer "helio data get " $(sed -n 's/^      "name": "\(.*\)",$/\1/p' "$work/out")
expect_error 2 "there is no loss 'qqqq'; there are " train linear --loss qqqq
# shellcheck disable=SC2046
expect_offer "helio eval --loss " $(sed -n 's/.*; there are //p' "$work/err" | tr -d ,)

# Those that are made by plugins, the one of the core, and the choice.
expect_status 0 plugins --json
# shellcheck disable=SC2046
expect_offer "helio train --collective " auto reduce-to-one \
  $(awk -F '"' '/"name"/ { name = $4 } /"collective": true/ { print name }' "$work/out")

# Saved models, and folders that they may be in. fish offers all files.
shells=bash
touch "$work/place/model.safetensors"
expect_offer "helio eval " folder model.safetensors
expect_offer "helio predict m" model.safetensors
expect_offer "helio summary m" mnist model.safetensors

[ "$failures" -eq 0 ]
