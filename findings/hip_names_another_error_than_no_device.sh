#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# HIP 5.2.3 on a machine without a GPU: hipGetDeviceCount returns hipErrorNoDevice (100), but every other call that was
# tried returns hipErrorInvalidDevice (101), as for a wrong number: hipInit, hipMemcpy from host to host, and
# hipGetLastError, each time and even as the first call. So a program that clears an error with hipGetLastError and
# checks again never sees success. Expected: 100 from all, then success. hipGetErrorString returns the name, not a text.
# Remedy: call hipGetDeviceCount first. Seen: the codes below.
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian libamdhip64-5=5.2.3-8 libamd-comgr2=5.2.3-2 libhsa-runtime64-1=5.2.3-3 libhsakmt1=5.2.3+dfsg-1 \
  libdrm-amdgpu1=2.4.114-1+b1 libdrm2=2.4.114-1+b1 libnuma1=2.0.16-1
needs python3
[[ ! -e /dev/kfd && ! -e /dev/dri ]] || cannot "this is about a machine without a GPU"

cat > "$tmp/calls.py" << 'PYTHON'
import ctypes
hip = ctypes.CDLL("libamdhip64.so.5")
hip.hipGetErrorName.restype = hip.hipGetErrorString.restype = ctypes.c_char_p
count, to = ctypes.c_int(-1), ctypes.create_string_buffer(8)
print("first hipGetLastError", hip.hipGetLastError())
print("hipGetDeviceCount", hip.hipGetDeviceCount(ctypes.byref(count)), count.value)
print("hipGetLastError", hip.hipGetLastError(), hip.hipGetLastError(), hip.hipGetLastError())
print("hipInit", hip.hipInit(0))
print("hipMemcpy, host to host", hip.hipMemcpy(to, ctypes.create_string_buffer(b"bytes", 8), 8, 0), to.value)
print(hip.hipGetErrorName(101).decode(), hip.hipGetErrorString(101).decode())
PYTHON

still "HIP without a GPU" "first hipGetLastError 101
hipGetDeviceCount 100 0
hipGetLastError 101 101 101
hipInit 101
hipMemcpy, host to host 101 b''
hipErrorInvalidDevice hipErrorInvalidDevice" "$(timeout 60 python3 "$tmp/calls.py")"
