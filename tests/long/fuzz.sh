#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every reader of files under libFuzzer with the address and undefined-behaviour sanitizers, from the small files of
# tests/golden, for HELIO_FUZZ_SECONDS each (60). HELIO_FUZZ_ONLY: names such as "npy csv". What was found lies in
# BUILD/tests/fuzz, and what they learnt, from which the next run goes on.
set -u
source=$HELIO_TEST_SOURCE
build=$HELIO_TEST_BUILD/tests/fuzz
seconds=${HELIO_FUZZ_SECONDS:-60}
golden=$source/golden
flags='-g -O1 -fno-omit-frame-pointer -fno-sanitize-recover=undefined'
mkdir -p "$build/core" || exit 1

if ! echo 'int LLVMFuzzerTestOneInput(const char *a, unsigned long b) { return a == 0 && b; }' |
  clang -x c -fsanitize=fuzzer,address,undefined -o "$build/probe" - 2>"$build/probe.log"; then
  echo "skipped  fuzz: clang with libFuzzer is not installed (Debian: clang libclang-rt-dev)"
  exit 0
fi

# The core once more, so instrumented.
(
  cd "$build/core" || exit 1
  if [ ! -e config.status ]; then
    "$source/../configure" CC=clang CFLAGS="$flags -fsanitize=fuzzer-no-link,address,undefined" \
      --enable-tests=no --enable-tool=no || exit 1
  fi
  ${MAKE:-make} -j"$(nproc)" -C core libheliocore.la
) >"$build/build.log" 2>&1 || { echo "FAILED   fuzz: the core was not built, see $build/build.log"; exit 1; }

seeds() { # name of a target
  case $1 in
    idx) ls "$golden"/data/*.idx "$golden"/data/*.idx.gz ;;
    npy) ls "$golden"/data/*.npy ;;
    npz) ls "$golden"/data/{mnist,zip64,reuters,imdb,unsupported}.npz ;;
    pickle) ls "$golden"/data/*.pickle ;;
    csv) ls "$golden"/data/table.csv ;;
    safetensors) ls "$golden"/safetensors/*.safetensors ;;
  esac
}

status=0
for name in ${HELIO_FUZZ_ONLY:-idx npy npz pickle csv safetensors}; do
  target=$build/fuzz_$name log=$build/$name.log corpus=$build/corpus-$name
  mkdir -p "$corpus" "$build/seeds-$name"
  seeds "$name" | xargs cp -t "$build/seeds-$name"
  # shellcheck disable=SC2086 # flags are several words
  if ! clang $flags -D_GNU_SOURCE= -fsanitize=fuzzer,address,undefined -I"$source/../core" -I"$source/../core/include" \
    -o "$target" "$source/fuzz/fuzz_$name.c" "$build/core/core/.libs/libheliocore.a" \
    -ljansson -lz -lm >"$log" 2>&1; then
    echo "FAILED   fuzz_$name was not built"
    tail -n 5 "$log"
    status=1
  elif "$target" -max_total_time="$seconds" -max_len=16384 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=256 \
    -artifact_prefix="$build/$name-" -print_final_stats=1 "$corpus" "$build/seeds-$name" >"$log" 2>&1; then
    echo "ok       fuzz_$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s"
  else
    echo "FAILED   fuzz_$name, see $log"
    grep -E '^(==|SUMMARY|artifact_prefix)|ERROR' "$log" | head -n 5
    status=1
  fi
done
exit $status
