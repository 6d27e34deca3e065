#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# libdrm 2.4.114: amdgpu_device_initialize returns -1 for a descriptor that is no DRM device, whatever the reason; its header promises a negative POSIX
# error code, and -1 would be EPERM. A program that prints strerror(-result) says "Operation not permitted", and users look for
# permissions. Expected: -ENOTTY for /dev/null and -EBADF for a closed descriptor. errno still has the reason. It also prints
# a line to standard error by itself. Seen: -1 with errno 25, and -1 with errno 9.
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
