#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is installed can be used: a C and a C++ program compile against helio.pc and the headers, run, and find the
# plugin, as does the command.
#
#   check-install.sh             installs into a folder of its own (DESTDIR) first: make check
#   check-install.sh installed   takes what is installed under $HELIO_TEST_INSTALLED (DESTDIR, may be empty): make
#                                installcheck, where the plugin must be found without being told where
set -eu
if [ -n "${HELIO_TEST_SANITIZERS-}" ]; then
  echo "SKIP: a program without sanitizers cannot load a library with them"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "${1-}" = installed ]; then
  root=${HELIO_TEST_INSTALLED-}
else
  root=$work/root
  # This make is one of its own, not part of the one that may have started the tests.
  env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS "${MAKE:-make}" -C "$HELIO_TEST_BUILD" install DESTDIR="$root" \
    >"$work/install.log" 2>&1 || { tail -n 40 "$work/install.log"; exit 1; }
fi
library_folder=$root$HELIO_TEST_LIBDIR
plugin_folder=$root$HELIO_TEST_PLUGINDIR
export LD_LIBRARY_PATH=$library_folder
unset HELIO_PLUGIN_PATH HELIO_BACKEND
[ -z "$root" ] || export HELIO_PLUGIN_PATH=$plugin_folder

ls "$plugin_folder"/*.so >/dev/null || { echo "no plugin in $plugin_folder"; exit 1; }

if command -v "${PKG_CONFIG:-pkg-config}" >/dev/null; then
  helio_pc() {
    PKG_CONFIG_PATH=$library_folder/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root "${PKG_CONFIG:-pkg-config}" "$@" helio
  }
else
  echo "SKIP: pkg-config is not installed"
  exit 77
fi
read -ra flags <<<"$(helio_pc --cflags)"
read -ra libraries <<<"$(helio_pc --libs)"

cat >"$work/program.c" <<'END'
#include <helio/helio.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  float product[4] = {0};
  HELIO_POOL {
    helio_tensor *a = helio_constant((float[]){1, 2, 3, 4, 5, 6}, HELIO_SHAPE(2, 3), .name = "a");
    helio_tensor *b = helio_constant((float[]){1, 2, 3, 4, 5, 6}, HELIO_SHAPE(3, 2), .name = "b");
    helio_tensor_read(helio_matmul(a, b), product, sizeof product);
  }
  if (helio_error_pending()) {
    fprintf(stderr, "%s\n", helio_error_message());
    return 1;
  }
  printf("version %s, product %g %g %g %g\n", helio_version(), product[0], product[1], product[2], product[3]);
  if (argc != 2 || strcmp(helio_version(), argv[1]) != 0) return 1;
  return !(product[0] == 22 && product[1] == 28 && product[2] == 49 && product[3] == 64);
}
END
read -ra compiler <<<"${CC:-gcc}"
"${compiler[@]}" -std=c11 -Wall -Wextra -Wpedantic -Werror "${flags[@]}" "$work/program.c" -o "$work/program" \
  "${libraries[@]}"
"$work/program" "$(helio_pc --modversion)"

if command -v "${CXX:-g++}" >/dev/null; then
  cat >"$work/program.cpp" <<'END'
#include <helio/helio.h>
#include <helio/plugin.h>

int main() {
  const float values[] = {1, 2};
  helio_constant_options options = {};
  options.size = sizeof options;
  options.data = values;
  options.shape.rank = 1;
  options.shape.extent[0] = 2;
  double second = helio_item(helio_slice(helio_constant_with(&options), helio_shape{1, {1}}, helio_shape{1, {1}}));
  return second == 2 && helio_shutdown() == HELIO_OK ? 0 : 1;
}
END
  "${CXX:-g++}" -std=c++11 -Wall -Wextra -Werror "${flags[@]}" "$work/program.cpp" -o "$work/program++" "${libraries[@]}"
  "$work/program++"
  echo "C++ works as well"
fi

command_place=$root$HELIO_TEST_BINDIR/helio
if [ -x "$command_place" ]; then
  "$command_place" plugins --json >"$work/plugins.json"
  grep -qF "\"$plugin_folder/" "$work/plugins.json" || {
    cat "$work/plugins.json"
    echo "$command_place does not show a plugin in $plugin_folder"
    exit 1
  }
  "$command_place" devices >"$work/devices.txt"
  grep -q 'CPU:0' "$work/devices.txt" || { cat "$work/devices.txt"; echo "no CPU among the devices"; exit 1; }
  echo "$command_place finds its plugin and the CPU"
  if [ -e "$HELIO_TEST_BUILD/tools/completions/helio" ]; then
    data_folder=$root$HELIO_TEST_DATADIR
    cmp "$data_folder/bash-completion/completions/helio" <("$command_place" completion bash)
    cmp "$data_folder/fish/vendor_completions.d/helio.fish" <("$command_place" completion fish)
    cmp "$data_folder/zsh/site-functions/_helio" <("$command_place" completion zsh)
    echo "shells find their completions in $data_folder"
  fi
fi
