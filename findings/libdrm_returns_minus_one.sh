#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# libdrm 2.4.114: if a descriptor is not that of a DRM device, amdgpu_device_initialize returns -1, whatever the reason.
# Its header promises a negative POSIX error code, as which -1 is EPERM: a program that prints it reports "Operation not
# permitted". Expected: -ENOTTY for /dev/null and -EBADF for a closed descriptor. Remedy: errno, which has the reason.
# The function also prints a line to standard error. Seen: -1 with errno 25, and -1 with errno 9.
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian libdrm-amdgpu1=2.4.114-1+b1 libdrm2=2.4.114-1+b1
needs python3
cat > "$tmp/open.py" << 'PYTHON'
import ctypes, os
drm = ctypes.CDLL("libdrm_amdgpu.so.1", use_errno=True)
for name, fd in (("/dev/null", os.open("/dev/null", os.O_RDWR)), ("closed", 1000)):
    major, minor, device = ctypes.c_uint32(), ctypes.c_uint32(), ctypes.c_void_p()
    ctypes.set_errno(0)
    result = drm.amdgpu_device_initialize(fd, ctypes.byref(major), ctypes.byref(minor), ctypes.byref(device))
    print(name, result, "errno", ctypes.get_errno())
PYTHON

still "-1" $'/dev/null -1 errno 25\nclosed -1 errno 9' "$(timeout 60 python3 "$tmp/open.py" 2> "$tmp/errors")"
still "its own line" 'amdgpu_device_initialize: amdgpu_get_auth (1) failed (-1)' "$(head -1 "$tmp/errors")"
