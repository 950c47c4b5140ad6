#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The conformance program at length: the CPU with each vector code that the processor has, the strict device in several
# orders of its streams.
set -u
program=$HELIO_TEST_BUILD/tests/conformance/conformance
cpu=$HELIO_TEST_BUILD/backends/cpu/.libs
strict=$HELIO_TEST_BUILD/tests/plugins/strict/.libs
log=$HELIO_TEST_BUILD/tests/logs/conformance-long.log
mkdir -p "$(dirname "$log")"
status=0

run() { # name, settings…
  local name=$1
  shift
  if env "$@" "$program" --long >"$log" 2>&1; then
    echo "ok       $name: $(grep -c '^\[       OK \]' "$log") passed"
  else
    echo "FAILED   $name"
    grep -B 6 '^\[  FAILED  \]' "$log" || tail -n 5 "$log"
    status=1
  fi
}

for code in portable avx2 avx512; do
  case $code in
    avx2) flag=avx2 ;;
    avx512) flag=avx512bw ;;
    *) flag= ;;
  esac
  if [ -n "$flag" ] && ! grep -qw "$flag" /proc/cpuinfo; then
    echo "skipped  cpu $code: the processor has no $flag"
    continue
  fi
  run "cpu $code" HELIO_PLUGIN_PATH="$cpu" HELIO_BACKEND=cpu HELIO_CPU_ISA=$code
  run "cpu $code without OpenBLAS" HELIO_PLUGIN_PATH="$cpu" HELIO_BACKEND=cpu HELIO_CPU_ISA=$code HELIO_CPU_BLAS=none
done
for seed in 1 2 3; do
  run "strict, seed $seed" HELIO_PLUGIN_PATH="$strict:$cpu" HELIO_BACKEND=strict HELIO_STRICT_SEED=$seed
done
exit $status
