# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A small set of data in the form of MNIST, for scripts that read this file: images of 28 × 28, where what is bright tells
# the class.
big_endian() { printf '%b' "$(printf '\\x%02x' $(($1 >> 24)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)))"; }

# Ten images, one of each class.
ten_digits() {
  local class
  for class in 0 1 2 3 4 5 6 7 8 9; do
    head -c $((class * 70)) /dev/zero
    head -c 70 /dev/zero | tr '\0' '\377'
    head -c $((714 - class * 70)) /dev/zero
  done
}

# Standard input, so many times.
repeated() {
  local file
  file=$(mktemp)
  cat >"$file"
  yes "$file" | head -n "$1" | xargs cat
  rm "$file"
}

# make_split FILE-NAME-START IMAGES, a multiple of ten
make_split() {
  { printf '\0\0\10\3' && big_endian "$2" && big_endian 28 && big_endian 28 && ten_digits | repeated $(($2 / 10)); } \
    >"$1-images-idx3-ubyte"
  { printf '\0\0\10\1' && big_endian "$2" && printf '\0\1\2\3\4\5\6\7\10\11' | repeated $(($2 / 10)); } \
    >"$1-labels-idx1-ubyte"
}

# make_digits FOLDER TRAINING-IMAGES TEST-IMAGES
make_digits() {
  mkdir -p "$1"
  make_split "$1/train" "$2"
  make_split "$1/t10k" "$3"
}
