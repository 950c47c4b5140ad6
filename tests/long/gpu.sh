#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every training of scripts/gpu-trainings.list on the emulated GPU.
set -u
HELIO_TEST_TRAININGS=all bash "$HELIO_TEST_SOURCE/scripts/gpu-trainings.sh"
