#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A copy faults, a newer ROCr writes a gpucore file, and the kernel writes its own: `sdma doctor` names the packet.
#
#   gpucore.sh SDMA PROGRAM      SDMA_TEST_ROCR: the folder of the newer libhsa-runtime64.so.1
set -euo pipefail
sdma=$(realpath "$1") program=$(realpath "$2")
if [[ -z ${SDMA_TEST_ROCR:-} ]]; then
  echo 'skipped: SDMA_TEST_ROCR does not name the folder of a libhsa-runtime64.so.1 that writes gpucore files'
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
ulimit -c unlimited
# Meson sets it, and ROCr allocates 4 GiB to ask for its devices: filling them takes longer than the program waits.
unset MALLOC_PERTURB_
if LD_LIBRARY_PATH=$SDMA_TEST_ROCR timeout 60 "$sdma" emulate --gpus=2 -- "$program" 'a copy from nowhere' >out 2>&1; then
  echo 'the program should have ended with a fault'
  exit 1
fi
grep -q 'Memory access fault by GPU' out || { cat out; exit 1; }
files=(gpucore.*)
[[ -e ${files[0]} ]] || { echo 'ROCr has not written a gpucore file'; cat out; exit 1; }

# expect PATTERN FILE...: what the doctor says of these files.
expect() {
  local pattern=$1 answer status=0
  shift
  answer=$("$sdma" doctor "$@" 2>&1) || status=$?
  grep -q -- "$pattern" <<<"$answer" || { echo "exit $status, and no '$pattern' in:"; echo "$answer"; exit 1; }
}
expect '^gpu 0 queue 0  0 ' "${files[@]}"
# Where the kernel puts its core file is the machine's choice (kernel.core_pattern).
core=$(find . -maxdepth 1 -name 'core*' -print -quit)
if [[ -n $core ]]; then
  # The ring is in the program's own memory, which only this file has. The order of the files is of no importance.
  for order in "${files[0]} $core" "$core ${files[0]}"; do
    # shellcheck disable=SC2086  # two words
    expect 'The packet reads \[0x123456789000, 0x123456799000), which is not mapped' $order
  done
else
  # Without it, the doctor says what is missing.
  expect 'the ring of gpu 0 queue 0 at .* is not in the file' "${files[@]}"
fi
