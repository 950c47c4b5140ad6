#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every kernel text with every type of elements for every architecture, by the vendors' own compilers where they are
# installed: minutes.
set -eu
for vendor in cuda hip; do
  "$HELIO_TEST_BUILD/tests/gpu/test_${vendor}_texts" --long
done
