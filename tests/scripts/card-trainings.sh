#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# helio train on the GPUs that the machine has gives the CPU's losses: each recipe on one device, and on all of them, if
# there are several, with the vendor's collective, the ring and reduce-to-one. Skipped without a GPU.
# HELIO_TEST_RECIPES="linear mnist": only these.
set -u
. "$HELIO_TEST_SOURCE/scripts/trainings.bash"

compare() { # recipe, backend, devices, collective or ""
  local recipe=$1 backend=$2 devices=$3 collective=$4 begin=$SECONDS result
  reference "$recipe"
  rm -f "$work/log"
  prefix=(env "HELIO_BACKEND=$backend")
  train "$work/log" "$recipe" --devices "$(names_of "$backend" "$devices")" ${collective:+--collective "$collective"}
  result=$?
  judge "$*" "$recipe" $result $((SECONDS - begin))
}

reasons=
for pair in cuda:nccl hip:rccl; do
  backend=${pair%:*}
  if ! HELIO_BACKEND=$backend "$helio" devices >"$work/devices" 2>"$work/reason"; then
    reasons+="${reasons:+; }$backend: $(tail -n 1 "$work/reason")"
    continue
  fi
  count=$(grep -c "^/physical_device:GPU:" "$work/devices")
  for recipe in ${HELIO_TEST_RECIPES:-linear mnist fashion-mnist reuters}; do
    compare $recipe "$backend" 1 ""
    [ "$count" -ge 2 ] || continue
    for collective in "${pair#*:}" ring reduce-to-one; do compare $recipe "$backend" "$count" $collective; done
  done
  ran=yes
done
[ -n "${ran-}" ] || { echo "SKIP: $reasons"; exit 77; }
exit $status
