#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ROCr with a libhsakmt that has the model interface: rocminfo, and copies of every form that this client allows. Each program
# initialises ROCr once, because that client cannot be opened twice in one process.
#
#   model_rocr.sh SDMA LIBSDMA-MODEL PROGRAM [OPTION...]      SDMA_TEST_ROCR: the folder of the newer libhsa-runtime64.so.1
set -euo pipefail
export SDMA=$1 HSA_MODEL_LIB=$2
program=$3 options=("${@:4}")
if [[ -z ${SDMA_TEST_ROCR:-} ]]; then
  echo 'skipped: SDMA_TEST_ROCR does not name the folder of a libhsa-runtime64.so.1 with the model interface'
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for gpus in 1 2; do "$(dirname "$0")/../../scripts/model-tree" "$folder/$gpus" "--gpus=$gpus"; done
export LD_LIBRARY_PATH=$SDMA_TEST_ROCR

run() { HSA_MODEL_TOPOLOGY=$folder/$1 timeout 60 "$program" "${options[@]}" "$2"; }
for order in strict adversarial; do
  export SDMA_EMULATE_ORDER=$order
  run 1 'host to GPU*'
  run 2 'copies that depend*'
  run 2 'a box'
done

# Without the kernel's module, rocminfo looks no further than its list of modules, so that list is the node's.
found=$(HSA_MODEL_TOPOLOGY=$folder/2 "$SDMA" emulate -- rocminfo | grep -c '^  Name: *gfx942 *$')
[[ $found == 2 ]] || { echo "rocminfo found $found GPUs, not 2"; exit 1; }
