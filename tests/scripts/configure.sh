#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# configure finds the vendors' SDKs where it is told and says which it found, in which version; without any it is content.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources=$(cd "$HELIO_TEST_SOURCE/.." && pwd)
failures=0
if [ -n "${HELIO_TEST_SANITIZERS-}" ]; then
  echo "SKIP: what configure finds does not depend on sanitizers"
  exit 77
fi

if [ -e "$sources/config.status" ]; then
  echo "SKIP: the sources are configured themselves, so that no other folder can be"
  exit 77
fi

# Headers as the SDKs have them, as far as configure looks.
cuda=$work/cuda rocm=$work/rocm
mkdir -p "$cuda/include" "$rocm/include/hip" "$work/build"
echo '#define CUDA_VERSION 12040' >"$cuda/include/cuda.h"
touch "$cuda/include/cublas_v2.h" "$cuda/include/nvrtc.h"
printf '#define %s\n' 'CUDNN_MAJOR 9' 'CUDNN_MINOR 1' 'CUDNN_PATCHLEVEL 7' >"$cuda/include/cudnn.h"
printf '#define %s\n' 'NCCL_MAJOR 2' 'NCCL_MINOR 21' 'NCCL_PATCH 5' >"$cuda/include/nccl.h"
printf '#define %s\n' 'HIP_VERSION_MAJOR 6' 'HIP_VERSION_MINOR 3' 'HIP_VERSION_PATCH 2' >"$rocm/include/hip/hip_runtime_api.h"
touch "$rocm/include/hip/hiprtc.h"

configure() {
  (cd "$work/build" && env -u CFLAGS CONFIG_SHELL=/bin/sh /bin/sh "$sources/configure" -C --enable-tool=no \
    --enable-tests=no "$@") >"$work/out" 2>&1 </dev/null && return
  echo "FAILED: configure $*"
  tail -n 20 "$work/out"
  failures=$((failures + 1))
}

expect() { # what, as it is found
  grep -qxE "  $1 +$2" "$work/out" && return
  echo "FAILED: configure does not say that $1 is \"$2\", but: $(grep -E "^  $1 " "$work/out")"
  failures=$((failures + 1))
}

configure --with-cuda="$cuda" --with-rocm="$rocm"
expect 'CUDA Toolkit' "12\.4 in $cuda"
expect cuDNN '9\.1\.7'
expect NCCL '2\.21\.5'
expect HIP "6\.3\.2 in $rocm"
for library in MIOpen rocBLAS RCCL; do expect $library no; done

configure --with-cuda=no --with-rocm=no
for library in 'CUDA Toolkit' cuDNN NCCL HIP MIOpen rocBLAS RCCL; do expect "$library" no; done

(cd "$work/build" && /bin/sh "$sources/configure" -C --with-cuda="$work/none") >"$work/out" 2>&1 </dev/null && {
  echo "FAILED: configure --with-cuda takes a folder without a CUDA Toolkit"
  failures=$((failures + 1))
}
grep -q "$work/none" "$work/out" || { echo "FAILED: configure --with-cuda=$work/none: $(tail -n 3 "$work/out")"; failures=$((failures + 1)); }

[ "$failures" -eq 0 ]
