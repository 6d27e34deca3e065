#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rocm-smi 5.2.3: on a machine where amdgpu is not loaded, it prints an error to standard error and exits with 0. With
# --json, it prints nothing at all. Expected: another exit code, as rocminfo 5.2.3 has (1), and an object, even if it is
# empty. Remedy: check the output, not the exit code. Seen: exit code 0, 0 bytes, "Driver not initialized".
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian rocm-smi=5.2.3-2 librocm-smi64-1=5.2.3-2 rocminfo=5.2.3-2 libhsa-runtime64-1=5.2.3-3 libhsakmt1=5.2.3+dfsg-1 \
  libdrm-amdgpu1=2.4.114-1+b1 libdrm2=2.4.114-1+b1 libnuma1=2.0.16-1
needs python3
[[ ! -e /dev/kfd && ! -e /dev/dri ]] || cannot "this is about a machine without a GPU"
[[ ! -e /sys/module/amdgpu ]] || cannot "amdgpu is loaded"
smi() { timeout 60 python3 "$root/usr/libexec/rocm_smi/rocm_smi.py" "$@"; }

still "exit code" 0 "$(smi --showuse > "$tmp/out" 2> "$tmp/errors" && echo 0)"
still "the line" 'Driver not initialized' "$(grep -o 'Driver not initialized' "$tmp/errors")"
still "JSON: exit code and bytes" '0 0' \
  "$(smi --showuse --json > "$tmp/out" 2> "$tmp/errors" && echo "0 $(wc -c < "$tmp/out")")"
still "rocminfo" 1 "$(code=0; timeout 60 "$root/usr/bin/rocminfo" > "$tmp/out" 2>&1 || code=$?; echo $code)"
