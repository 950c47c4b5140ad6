#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The conformance program at length: the CPU with each vector code that the processor has, the strict device in several
# orders of its streams; both GPU backends with every type on the emulated GPU, for each width of a warp and order of
# threads.
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
on_gpusim() { # vendor, warp, order
  run "conformance, $1, warps of $2, $3" conformance/conformance HELIO_BACKEND="$1" HELIO_ARENA_DEBUG=1 \
    XDG_CACHE_HOME="$HELIO_TEST_BUILD/tests/gpusim/cache" \
    HELIO_PLUGIN_PATH="$HELIO_TEST_BUILD/backends/$1/.libs:$HELIO_TEST_BUILD/backends/cpu/.libs" \
    "$HELIO_TEST_BUILD/tests/gpusim/run" "--$1" 1 --warp "$2" --order "$3"
}
on_gpusim cuda 32 down
on_gpusim cuda 64 shuffled
on_gpusim hip 64 up
on_gpusim hip 32 down
exit $status
