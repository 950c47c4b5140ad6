#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the manual page of each command, helio-devices.1 and so on:
#
#   pages.sh HELIO PAGE FOLDER      the command that was built, helio.1, where the pages go
#
# What a command does and its options are cut out of helio.1, which has all commands; names and synopses are what
# `helio help` prints.
set -eu -o pipefail
export LC_ALL=C
helio=$1 whole=$2 folder=$3

commands_of() { "$helio" help "$@" | sed -n '/^Commands:$/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p'; }

# The first line below "Usage:", as a phrase.
summary_of() { "$helio" help "$@" | sed -n '3{s/\.$//;s/^./\L&/;s/-/\\-/g;p;}'; }

# Bold are names and options, italic is what they stand for.
synopsis_of() {
  echo ".B helio $*"
  "$helio" help "$@" | sed -n "1{s/^Usage: helio $* \{0,1\}//;p;}" | tr ' ' '\n' | sed -E '
    /^$/d
    s/-/\\-/g
    s/^\[(\\-\\-[^]]*)\]$/.RB [ \1 ]/
    s/^\[(\\-\\-.*)$/.RB [ \1/
    s/^([^.].*)\]$/.IR \1 ]/
    s/^([^.].*)$/.I \1/' |
    sed -E 's/\[([^ ]*\.\.\.)$/[ \1/'
}

# The part of helio.1 about one command: "text" before the options, or "options".
section_of() { # part, name
  awk -v part="$1" -v heading=".SS $2" '
    /^\.S[HS] / { inside = $0 == heading; options = 0; next }
    inside && /^\.TP/ { options = 1 }
    inside && options == (part == "options") { print }' "$whole"
}

examples_of() {
  awk -v name="helio $1" '
    function flush() { if (wanted) printf "%s", item; item = ""; wanted = 0 }
    /^\.SH / { flush(); inside = $0 == ".SH EXAMPLES"; next }
    inside && /^\.TP/ { flush() }
    inside { item = item $0 "\n"; if ($1 == ".B" && index($0 " ", name " ")) wanted = 1 }
    END { flush() }' "$whole"
}

version() { sed -n 's/^\.TH .*"\(Heliostat [0-9.]*\)".*/\1/p' "$whole"; }

write_page() { # command
  local name=$1 below command
  cat <<END
.\\" SPDX-License-Identifier: Apache-2.0
.\\" Written by docs/pages.sh from helio.1 and \`helio help\`: make -C build/docs pages. A test compares.
.TH HELIO\\-${name^^} 1 "" "$(version)" "User Commands"
.SH NAME
helio\\-$name \\- $(summary_of "$name")
.SH SYNOPSIS
END
  mapfile -t below < <(commands_of "$name")
  if [ ${#below[@]} -eq 0 ]; then
    synopsis_of "$name"
  else
    synopsis_of "$name" "${below[0]}"
    for command in "${below[@]:1}"; do
      echo .br
      synopsis_of "$name" "$command"
    done
  fi
  echo ".SH DESCRIPTION"
  section_of text "helio $name"
  echo ".SH OPTIONS"
  section_of options "helio $name"
  [ ${#below[@]} -eq 0 ] || echo ".SH COMMANDS"
  for command in "${below[@]}"; do
    echo ".SS helio $name $command"
    section_of text "helio $name $command"
    section_of options "helio $name $command"
  done
  local examples
  examples=$(examples_of "$name")
  [ -z "$examples" ] || printf '.SH EXAMPLES\n%s\n' "$examples"
  cat <<END
.SH SEE ALSO
.BR helio (1),
which has exit statuses, environment variables and the other commands.
END
}

for command in $(commands_of); do
  write_page "$command" >"$folder/helio-$command.new"
  mv "$folder/helio-$command.new" "$folder/helio-$command.1"
done
