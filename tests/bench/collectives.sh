#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All-reduce between two devices of the CPU against Open MPI between two processes, by turns, the median of each:
#
#   tests/bench/collectives.sh [BUILD]      BUILD: the top of the build tree (build)
#
# Fails if the local collective is not twice as fast at 16 MiB, or slower at 4 KiB. PAIRS (9) says how
# often. Needs mpicc and mpirun: on Debian, apt-get install libopenmpi-dev openmpi-bin.
set -eu
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:-$here/../../build}" && pwd)
pairs=${PAIRS:-9}
helio=$build/tools/helio
[ -x "$helio" ] || { echo "$helio is not there: run make first" >&2; exit 2; }
for tool in mpicc mpirun; do
  command -v $tool >/dev/null || { echo "$tool is not installed; on Debian: apt-get install libopenmpi-dev openmpi-bin" >&2; exit 2; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpicc -O2 -std=gnu11 -o "$work/allreduce_mpi" "$here/allreduce_mpi.c"
as_root=()
[ "$(id -u)" -ne 0 ] || as_root=(--allow-run-as-root)

# "bytes microseconds" lines.
run_helio() {
  "$helio" bench collectives --only local --ranks 2 --json |
    sed -n 's/.*"bytes": *\([0-9]*\).*/\1/p; s/.*"microseconds": *\([0-9.e+-]*\).*/\1/p' | paste -d' ' - -
}
run_mpi() { mpirun ${as_root[@]+"${as_root[@]}"} -n 2 "$work/allreduce_mpi"; }

for ((i = 1; i <= pairs; i++)); do
  run_helio >>"$work/helio"
  run_mpi >>"$work/mpi"
  printf '\r%d of %d pairs' "$i" "$pairs" >&2
done
echo >&2

median_of() { # file, bytes
  awk -v bytes="$2" '$1 == bytes { print $2 }' "$1" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

bad=0
printf '%10s %14s %14s %8s\n' bytes 'local us' 'Open MPI us' ratio
for bytes in 4096 1048576 16777216 67108864; do
  ours=$(median_of "$work/helio" $bytes) theirs=$(median_of "$work/mpi" $bytes)
  least=0
  case $bytes in 4096) least=1 ;; 16777216) least=2 ;; esac
  awk -v b=$bytes -v o="$ours" -v t="$theirs" -v least=$least 'BEGIN {
    printf "%10d %14.2f %14.2f %8.2f%s\n", b, o, t, t / o, t / o < least ? "  too slow" : ""
    exit t / o < least
  }' || bad=1
done
exit $bad
