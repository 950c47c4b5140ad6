#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The conformance program at length: the CPU with each vector code that the processor has, the strict device in several
# orders of its streams.
set -u
. "$(dirname "$0")/programs.bash"
program="conformance/conformance --long"

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
  run "conformance, cpu $code" "$program" "${cpu[@]}" HELIO_CPU_ISA=$code
  run "conformance, cpu $code without OpenBLAS" "$program" "${cpu[@]}" HELIO_CPU_ISA=$code HELIO_CPU_BLAS=none
done
for seed in 1 2 3; do
  run "conformance, strict, seed $seed" "$program" "${strict[@]}" HELIO_STRICT_SEED=$seed
done
exit $status
